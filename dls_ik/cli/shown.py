"""What ``dls-ik view`` shows: an arm of this process, or that of a running node."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dls_ik.cli.group import MissingPartError
from dls_ik.cli.robot import find_robot
from dls_ik.exceptions import ChainError

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.viewer import NodeSource
    from dls_ik.viewer.presets.preset import Preset
    from dls_ik.viewer.session import Session


BRIEF = 1.0  # [s] for a node that only confirms which links are base and tip


class Ends(NamedTuple):
    """A robot as the command line names it."""

    name: str
    base: str | None
    tip: str | None

    def read(self) -> tuple[RobotModel, Path | str | None]:
        """The robot, and the URDF that says what it looks like, if there is one.

        Raises:
            RobotModelError: there is no such robot.
        """
        from dls_ik.model.load import find_urdf

        return find_robot(self.name, self.base, self.tip), find_urdf(self.name)


class Shown(NamedTuple):
    """A robot, a URDF that says what it looks like or None, and what makes the session."""

    robot: RobotModel
    description: Path | str | None
    begin: Callable[[], tuple[Session, Sequence[Preset]]]
    is_foreign: bool = False  # the URDF came over the network


@contextlib.contextmanager
def local(ends: Ends, methods: Sequence[str]) -> Iterator[Shown]:
    """An arm that a controller here moves, or two for two methods."""
    robot, path = ends.read()
    from dls_ik.viewer.view import local_session

    yield Shown(robot, path, lambda: local_session(robot, methods))


@contextlib.contextmanager
def remote(ends: Ends | None, namespace: str, patience: float) -> Iterator[Shown]:
    """The arm of a node, whose robot it is if none is named; waited for with patience [s].

    Of a robot that is named without base and tip these are the node's.

    Raises:
        MissingPartError: ROS is not here, or there is no node to say which robot it has.
        RobotModelError: it has none that is usable here.
    """
    from dls_ik.viewer.session import Session

    try:
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.client.robot import ForeignFileError
    except ImportError as error:
        raise MissingPartError(f"ROS 2 is not here: {error.name or error} is missing") from None
    try:
        source = _source(ends, namespace, patience)
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}: dls-ik view FILE --ros") from None
    except NOT_THERE as error:
        hint = "start ik_node, or say which one by --namespace, or name its robot to wait for it"
        raise MissingPartError(f"{error}: {hint}") from None
    with contextlib.closing(source):
        is_foreign = ends is None and isinstance(source.urdf, str)
        yield Shown(source.robot, source.urdf, lambda: (Session(source), ()), is_foreign)


def _source(ends: Ends | None, namespace: str, patience: float) -> NodeSource:
    """The node as a source of what is shown, which may come late where its robot is named."""
    from dls_ik.ros.client.connection import NOT_THERE
    from dls_ik.ros.viewer import Described, NodeSource

    if ends is None:
        return NodeSource(None, namespace, patience)
    if ends.base or ends.tip:
        return NodeSource(Described(*ends.read()), namespace, patience)
    named = ends.name
    try:
        alone: Described | None = Described(*ends.read())
    except ChainError:  # several links could be the tip: the node knows which
        alone = None
    try:
        return NodeSource(
            None, namespace, BRIEF if alone else patience,
            own=lambda base, tip: Described(*Ends(named, base, tip).read()),
        )  # fmt: skip
    except NOT_THERE:
        return NodeSource(alone or Described(*ends.read()), namespace, patience)
