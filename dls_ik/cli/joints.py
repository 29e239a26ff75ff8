"""Joint values on the command line: in the order of the joints, or by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli.options import as_number, parsed_numbers
from dls_ik.cli.pose import doubt_angles
from dls_ik.core.types import Array
from dls_ik.text import did_you_mean, listing, quoted

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel

PAIRS = "NAME=VALUE,..."
VALUES = "VALUES"  # metavar of what joint_vector takes


def joint_values(context: Any, param: Any, given: tuple[str, ...]) -> dict[str, float]:
    """Values by name from words such as ``j1=0.1`` or ``j1=0.1,j2=0.2``, a callback of click.

    Raises:
        click.BadParameter: another form, or no finite number.
    """
    found: dict[str, float] = {}
    for pair in " ".join(given).replace(",", " ").split():
        name, _, number = pair.partition("=")
        value = as_number(number)
        if not name or not np.isfinite(value):
            raise click.BadParameter(f"joint values are given as NAME=VALUE, not {quoted(pair)}")
        if name in found:
            raise click.BadParameter(f"joint {quoted(name)} is given twice")
        found[name] = value
    return found


def joint_vector(
    robot: RobotModel, given: tuple[str, ...], option: str, deg: bool = False
) -> tuple[Array, dict[str, float]]:
    """Joint values (n,) from words such as ``0.1,0.2`` or ``j1=0.1,j2=0.2``, and those of others.

    Joints of the chain that are not named stand at 0, or at the limit next to 0.

    Args:
        deg: values of joints that turn are in degrees; else those beyond a turn are doubted
            aloud.

    Returns:
        Those of the chain, and of further joints of the robot by name.

    Raises:
        click.UsageError: not so many numbers, unknown names, or words that are neither.
    """
    in_order = not any("=" in words for words in given)
    named = (_in_order if in_order else _by_name)(robot, given, option)
    turning = [name for name in named if robot.tree.joint[name].kind != "prismatic"]
    if deg:
        named |= {name: float(np.radians(named[name])) for name in turning}
    else:
        doubt_angles(option, [named[name] for name in turning])
    q = np.clip(np.zeros(robot.n), robot.lower, robot.upper)
    for i, name in enumerate(robot.joint_names):
        q[i] = named.pop(name, q[i])
    return q, named


def _by_name(robot: RobotModel, given: tuple[str, ...], option: str) -> dict[str, float]:
    """Values of joints that move by themselves."""
    try:
        named = joint_values(None, None, given)
    except click.BadParameter as error:
        raise click.UsageError(f"{option}: {error.message}") from error
    drives = robot.tree.mimic_of
    unknown = [name for name in named if name not in drives]
    if unknown:
        hint = did_you_mean(unknown[0], drives) or f"joints: {listing(drives)}"
        raise click.UsageError(f"{option}: unknown joint {listing(unknown)}; {hint}")
    masters = {name: drives[name].master for name in named}
    followers = [f"{name} follows {master}" for name, master in masters.items() if master != name]
    if followers:
        raise click.UsageError(f"{option}: {listing(followers)}, which is given instead")
    return named


def _in_order(robot: RobotModel, given: tuple[str, ...], option: str) -> dict[str, float]:
    try:
        numbers = parsed_numbers(" ".join(given))
    except click.BadParameter as error:
        raise click.UsageError(f"{option}: {error.message}") from error
    if len(numbers) != robot.n:
        raise click.UsageError(
            f"{option}: {robot.n} joint values are wanted ({listing(robot.joint_names)}), "
            f"not {len(numbers)}"
        )
    return dict(zip(robot.joint_names, numbers, strict=True))
