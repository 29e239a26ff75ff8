"""What makes links and joints a tree: the checks, and the indices they leave behind."""

from collections.abc import Mapping

from dls_ik.exceptions import RobotModelError
from dls_ik.model.joint import Joint
from dls_ik.model.names import listing, quoted


def by_name(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, Joint]:
    """Joints by name, refusing two of one name and a robot without links."""
    if not links:
        raise RobotModelError("the robot has no links")
    for name in (*links, *(joint.name for joint in joints)):
        check_printable(name)
    named: dict[str, Joint] = {}
    for joint in joints:
        if joint.name in named:
            raise RobotModelError(f"two joints are named {joint.name!r}")
        named[joint.name] = joint
    seen: set[str] = set()
    for link in links:
        if link in seen:
            raise RobotModelError(f"two links are named {link!r}")
        seen.add(link)
    return named


def check_printable(name: str) -> None:
    """Refuse names that would steer a terminal, or begin a line in a log."""
    if not name.isprintable():
        raise RobotModelError(f"the name {quoted(name)} has characters that cannot be printed")


def by_child(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, Joint]:
    """The joint above each link, refusing unknown links and a second parent."""
    known = set(links)
    above: dict[str, Joint] = {}
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                raise joint.error(f"unknown {role} link {link!r}; links: {listing(links)}")
        if joint.child in above:
            other = above[joint.child].name
            raise joint.error(f"its child link {joint.child!r} already hangs on joint {other!r}")
        above[joint.child] = joint
    return above


def by_parent(links: tuple[str, ...], joints: tuple[Joint, ...]) -> dict[str, tuple[Joint, ...]]:
    """The joints below each link, all of whose links are known."""
    below: dict[str, list[Joint]] = {link: [] for link in links}
    for joint in joints:
        below[joint.parent].append(joint)
    return {link: tuple(hanging) for link, hanging in below.items()}


def only_root(
    links: tuple[str, ...],
    above: Mapping[str, Joint],
    below: Mapping[str, tuple[Joint, ...]],
) -> str:
    """The one link that all others hang on, refusing none, several and cycles."""
    roots = [link for link in links if link not in above]
    if not roots:
        raise RobotModelError(f"no root link: the joints form a cycle, {_cycle(links[0], above)}")
    if len(roots) > 1:
        raise RobotModelError(f"{len(roots)} root links, expected one: {listing(roots)}")
    reached = _reached(roots[0], below)
    for link in links:
        if link not in reached:
            raise RobotModelError(f"the joints form a cycle, {_cycle(link, above)}")
    return roots[0]


def _reached(root: str, below: Mapping[str, tuple[Joint, ...]]) -> set[str]:
    reached, waiting = {root}, [root]
    while waiting:
        children = [joint.child for joint in below[waiting.pop()]]
        reached.update(children)
        waiting.extend(children)
    return reached


def _cycle(link: str, above: Mapping[str, Joint]) -> str:
    """The joints of the cycle that one runs into by climbing from a link."""
    climbed: dict[str, None] = {}  # ordered
    joint = above[link]
    while joint.name not in climbed:
        climbed[joint.name] = None
        joint = above[joint.parent]
    names = list(climbed)
    return listing(reversed(names[names.index(joint.name) :]))
