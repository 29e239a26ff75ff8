"""Where a chain begins and ends, and which tip it has when nobody says."""

from collections.abc import Sequence

from dls_ik.exceptions import ChainError
from dls_ik.model.names import listing, quoted
from dls_ik.model.tree import Tree

TipNames = str | Sequence[str] | None  # a link, several that are solved together, or find it


def choose_ends(tree: Tree, base: str | None, tip: TipNames) -> tuple[str, tuple[str, ...]]:
    """The base and the tips of a chain: as given, else the root, and the only tip that moves.

    Raises:
        ChainError: an unknown link, a tip given twice, or several links could be the tip; the
            message lists them.
    """
    base = tree.require(base or tree.root, "base link")
    tips = _given(tip) or (_only_tip(tree, base),)
    for each in tips:
        tree.require(each, "tip link")
    twice = [each for i, each in enumerate(tips) if each in tips[:i]]
    if twice:
        raise ChainError(f"each tip is given once; more than once: {listing(twice)}")
    return base, tips


def _given(tip: TipNames) -> tuple[str, ...]:
    """The names given, none for an empty name or sequence."""
    if tip is None or isinstance(tip, str):
        return (tip,) if tip else ()
    if not (isinstance(tip, Sequence) and all(isinstance(each, str) for each in tip)):
        raise ChainError(f"a tip is the name of a link or a sequence of names, not {quoted(tip)}")
    return tuple(tip)


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
