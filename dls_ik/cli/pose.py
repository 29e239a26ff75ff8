"""A pose on the command line: xyz with rpy or a quaternion, or a matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
import numpy as np

from dls_ik.cli.numbers import Vector, numbers
from dls_ik.core.types import Array
from dls_ik.exceptions import PoseError
from dls_ik.model.rigid import rotation_from_rpy, transform
from dls_ik.model.rotations import rotation_from_quaternion

Command = TypeVar("Command", bound=Callable[..., Any])
FORMS = ("xyz", "rpy", "quat", "matrix")  # what the options give
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


def pose_options(command: Command) -> Command:
    """Give a command --xyz, --rpy, --quat and --matrix; :func:`given_pose` takes what they got."""
    for option in reversed(OPTIONS):
        command = option(command)
    return command


def given_pose(
    xyz: Vector,
    rpy: Vector,
    quat: Vector,
    matrix: Vector,
) -> Array | None:
    """The pose (4, 4) [m], None where no option gives one.

    Raises:
        click.UsageError: options that exclude each other, or lack the position.
        PoseError: no finite rigid transform.
    """
    if matrix is not None:
        if xyz is not None or rpy is not None or quat is not None:
            raise click.UsageError("give --matrix or --xyz with --rpy or --quat, not both")
        return _checked(np.array([*matrix, 0.0, 0.0, 0.0, 1.0][:16]).reshape(4, 4))
    if rpy is not None and quat is not None:
        raise click.UsageError("give --rpy or --quat, not both")
    if xyz is None:
        if rpy is not None or quat is not None:
            raise click.UsageError(f"{'--rpy' if quat is None else '--quat'} goes with --xyz")
        return None
    try:
        return pose_of(xyz, rpy, quat)
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


def _checked(T: Array) -> Array:
    from dls_ik.solver.poses import checked_pose

    return checked_pose(T)
