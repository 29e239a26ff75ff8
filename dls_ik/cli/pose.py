"""A pose on the command line: xyz with rpy or a quaternion, or a matrix; read and printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click
import numpy as np

from dls_ik.cli.exits import say
from dls_ik.cli.options import Vector, numbers
from dls_ik.core.types import Array
from dls_ik.errors import PoseError
from dls_ik.model.rotations import (
    quaternion_from_rotation,
    rotation_from_quaternion,
    rotation_from_rpy,
    rpy_from_rotation,
    transform,
)

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

Command = TypeVar("Command", bound=Callable[..., Any])
FORMS = ("xyz", "rpy", "quat", "matrix", "deg", "mm")  # what the options give
MILLI = 1e-3
ROUNDED = 1e-2  # [rad] beyond a turn that rounding may add
FAR = 20.0  # [m] from where a pose is beyond all arms, where it is not known which one it is for
TIMES = 10.0  # the length of an arm from which on a pose can hardly be meant
OPTIONS = (
    click.option("--xyz", type=float, nargs=3, metavar="X Y Z", help="Position of the pose [m]."),
    click.option(
        "--rpy",
        type=float,
        nargs=3,
        metavar="R P Y",
        help="Roll, pitch, yaw as in URDF [rad]. Default: 0.",
    ),
    click.option(
        "--quat",
        type=float,
        nargs=4,
        metavar="X Y Z W",
        help="Its rotation as a quaternion instead.",
    ),
    click.option(
        "--matrix",
        callback=numbers(12, 16),
        metavar="NUMBERS",
        help="The whole pose instead: 12 or 16 numbers, row by row, in quotes.",
    ),
)
UNITS = (
    click.option("--deg", is_flag=True, help="Roll, pitch and yaw are given in degrees."),
    click.option("--mm", is_flag=True, help="Positions are given in millimetres."),
)


def pose_options(command: Command) -> Command:
    """Give a command --xyz, --rpy, --quat, --matrix, --deg, --mm, for :func:`given_pose`."""
    for option in reversed(OPTIONS + UNITS):
        command = option(command)
    return command


def unit_options(command: Command) -> Command:
    """Give a command --deg and --mm, for what it reads from a file."""
    for option in reversed(UNITS):
        command = option(command)
    return command


def given_pose(
    xyz: Vector,
    rpy: Vector,
    quat: Vector,
    matrix: Vector,
    deg: bool = False,
    mm: bool = False,
) -> Array | None:
    """The pose (4, 4) [m], None where no option gives one; angles beyond a turn are doubted aloud.

    Args:
        deg: roll, pitch and yaw are in degrees.
        mm: the position is in millimetres.

    Raises:
        click.UsageError: options that exclude each other, or lack the position.
        PoseError: no finite rigid transform.
    """
    if matrix is not None:
        if xyz is not None or rpy is not None or quat is not None:
            raise click.UsageError("give --matrix or --xyz with --rpy or --quat, not both")
        T = np.array([*matrix, 0.0, 0.0, 0.0, 1.0][:16]).reshape(4, 4)
        T[:3, 3] *= MILLI if mm else 1.0
        return _checked(T)
    if rpy is not None and quat is not None:
        raise click.UsageError("give --rpy or --quat, not both")
    if xyz is None:
        if rpy is not None or quat is not None:
            raise click.UsageError(f"{'--rpy' if quat is None else '--quat'} goes with --xyz")
        return None
    if deg and rpy is not None:
        rpy = tuple(np.radians(rpy).tolist())
    elif rpy is not None:
        doubt_angles("--rpy", rpy)
    try:
        return pose_of(tuple(MILLI * x for x in xyz) if mm else xyz, rpy, quat)
    except PoseError as error:
        raise click.UsageError(str(error)) from error


def pose_of(
    xyz: tuple[float, ...],
    rpy: Vector = None,
    quat: Vector = None,
) -> Array:
    """A position [m] with a rotation by roll, pitch, yaw [rad] or by a quaternion x y z w, (4, 4).

    Raises:
        PoseError: numbers that are not finite, or a quaternion without direction.
    """
    if not np.isfinite([*xyz, *(rpy or ()), *(quat or ())]).all():
        raise PoseError("a pose is of finite numbers, neither nan nor inf")
    if quat is None:
        return _checked(transform(rotation_from_rpy(*(rpy or (0.0, 0.0, 0.0))), np.array(xyz)))
    return _checked(transform(rotation_from_quaternion(quat), np.array(xyz)))


def doubt_angles(what: str, angles: Iterable[float]) -> None:
    """Ask on stderr whether angles [rad] beyond a turn are degrees."""
    most = max((abs(angle) for angle in angles), default=0.0)
    if 2.0 * np.pi + ROUNDED < most < np.inf:
        say(
            f"{what} has {most:g} rad, which is {most / (2.0 * np.pi):.3g} turns: with --deg "
            "angles are in degrees"
        )


def doubt_distance(what: str, T: Array, robot: RobotModel | None = None) -> None:
    """Ask on stderr whether poses (..., 4, 4) far beyond a robot are in millimetres.

    Args:
        robot: whose length counts; None: any arm's.
    """
    most = float(np.linalg.norm(T[..., :3, 3], axis=-1).max())
    if robot is None:
        is_far, beside = most > FAR, "farther than any arm reaches"
    else:
        from dls_ik.model.reach.pose_functionals import elements_of

        paths = (elements_of(robot.chain, tip) for tip in range(len(robot.tips)))
        length = max(path.length for path in paths)
        times = most / length if length > 0.0 else 0.0
        is_far, beside = times > TIMES, f"{times:.0f} times the length of {robot.name}"
    if is_far:
        say(f"{what} is {most:.3g} m away, {beside}: with --mm positions are in millimetres")


def _checked(T: Array) -> Array:
    from dls_ik.solver.poses import checked_pose

    return checked_pose(T)


def pose_facts(T: Array) -> dict[str, Any]:
    """A pose (4, 4) in all the forms that commands take."""
    return {
        "xyz": T[:3, 3].tolist(),
        "rpy": list(rpy_from_rotation(T[:3, :3])),
        "quat": list(quaternion_from_rotation(T[:3, :3])),
        "matrix": T.tolist(),
    }


def pose_pairs(T: Array, digits: int = 6) -> list[tuple[str, str]]:
    """Its lines in a terminal, rounded; each may be given to an option as it stands."""
    facts = pose_facts(T)
    pairs = [(name, figures(facts[name], digits)) for name in ("xyz", "rpy", "quat")]
    rows = [figures(row, digits) for row in facts["matrix"][:3]]
    return [*pairs, ("matrix", rows[0]), ("", rows[1]), ("", rows[2])]


def figures(numbers: Any, digits: int = 6) -> str:
    """Numbers in columns, none of them -0."""
    return " ".join(f"{round(float(x), digits) + 0.0:{digits + 4}.{digits}f}" for x in numbers)
