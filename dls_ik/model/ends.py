"""Where a chain begins and ends when nobody says."""

from dls_ik.exceptions import ChainError
from dls_ik.model.names import listing
from dls_ik.model.tree import Tree


def choose_ends(tree: Tree, base: str | None, tip: str | None) -> tuple[str, str]:
    """The base and the tip of a chain: as given, else the root, and the only tip that moves.

    Raises:
        ChainError: an unknown link, or several links could be the tip; the message lists them.
    """
    base = tree.require(base or tree.root, "base link")
    return base, tree.require(tip or _only_tip(tree, base), "tip link")


def _only_tip(tree: Tree, base: str) -> str:
    moving = [leaf for leaf in tree.leaves if _moves(tree, base, leaf)]
    if len(moving) == 1:
        return moving[0]
    if not moving:
        raise ChainError(f"no link moves against the base {base!r}; links: {listing(tree.links)}")
    raise ChainError(f"several links could be the tip, name one: {listing(moving)}")


def _moves(tree: Tree, base: str, leaf: str) -> bool:
    """Whether a leaf hangs below the base with a joint between them that moves."""
    link, moves = leaf, False
    while link not in (base, tree.root):
        moves = moves or tree.above[link].kind != "fixed"
        link = tree.above[link].parent
    return moves and link == base
