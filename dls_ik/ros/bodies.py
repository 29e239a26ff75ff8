"""Links that never move against each other."""

from collections.abc import Iterable

from dls_ik.model.tree import Tree


def body(tree: Tree, link: str) -> str:
    """The link nearest the root that a link is rigidly attached to; itself, if none."""
    while link in tree.parent_joint and tree.parent_joint[link].kind == "fixed":
        link = tree.parent_joint[link].parent
    return link


def attached_pair(tree: Tree, links: Iterable[str]) -> tuple[str, str] | None:
    """The first two links that are rigidly attached to each other, or the same, if any are."""
    seen: dict[str, str] = {}
    for link in links:
        key = body(tree, link)
        if key in seen:
            return seen[key], link
        seen[key] = link
    return None
