"""The page of a controller in this process."""

from collections.abc import Callable, Sequence

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.local import LocalSource
from dls_ik.viewer.presets import Preset, presets_for
from dls_ik.viewer.session import Session
from dls_ik.viewer.start import comfortable


def local_session(
    robot: RobotModel, methods: Sequence[str] = ()
) -> tuple[Session, Sequence[Preset]]:
    """One arm, or two for two methods, with the presets that suit the robot.

    Raises:
        MethodError: an unknown method, or one that follows no target.
    """
    start = comfortable(robot)
    method = methods[0] if methods else None
    session = Session(LocalSource(robot, method, start), rivals(robot, start))
    for method in methods[1:2]:
        session.compare(method)
    session.aim(robot.fk(start))
    return session, presets_for(robot)


def rivals(robot: RobotModel, start: Array) -> Callable[[str, Array | None], LocalSource]:
    """What makes a second arm for a robot, at (n,) given or else at `start`."""

    def rival(method: str, q: Array | None) -> LocalSource:
        source = LocalSource(robot, method, start=start)
        if q is not None:
            source.place(q)
        return source

    return rival
