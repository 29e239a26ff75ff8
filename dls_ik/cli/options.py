# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arguments and options that several commands share: robot, scene, solver, joint positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import wraps
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.core.types import Array
from dls_ik.errors import AmbiguousTipError
from dls_ik.model.files import shipped_names
from dls_ik.model.joint import TURN_TOLERANCE
from dls_ik.text import did_you_mean, listing, quoted

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.solver.task import Task

Command = Callable[..., Any]
Vector = tuple[float, ...] | None  # value of an option with several numbers
ROBOT_HELP = (
    f"ROBOT is {', '.join(shipped_names())}, a URDF, xacro or DH file (.yaml), or "
    "package://NAME/PATH; xacro arguments follow in quotes: 'FILE.xacro NAME:=VALUE'."
)
TASK_CHOICES = ("pose", "position", "pointing", "pointing-x", "pointing-y")
SET_WORDS = {"true": True, "false": False, "none": None}  # meanings of words in --set
PAIRS_METAVAR = "NAME=VALUE,..."  # metavar of options whose callback is joint_values

SECONDS_RANGE, TIMEOUT_RANGE = click.FloatRange(0.0), click.FloatRange(0.0, 3600.0)
POSITIVE = click.FloatRange(0.0, min_open=True)


def text_option(name: str, **settings: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds a text option to a command; the default is an empty text.

    Args:
        name: Name of the option, such as ``--frame``.
        **settings: Further arguments of ``click.option``.
    """
    return click.option(name, default="", show_default=False, **settings)


def node_options(command: Command) -> Command:
    """Add --namespace, --node and --patience, which select a running node, to a command."""
    patience = "Timeout to find the node [s]."
    for add in (
        click.option("--patience", type=SECONDS_RANGE, default=5.0, metavar="S", help=patience),
        click.option("--node", default="dls_ik", metavar="NAME", help="Name of the node."),
        text_option("--namespace", metavar="NAME", help="Namespace of the node."),
    ):
        command = add(command)
    return command


method_option = click.option(
    "--method", default="auto", metavar="NAME", help="Method; see dls-ik methods."
)
task_option = click.option(
    "--task",
    type=click.Choice(TASK_CHOICES),
    default=TASK_CHOICES[0],
    help="Target: the pose, the position, or the position and the direction of the tool's z, x, y.",
)


# Robot


class ChosenRobot(NamedTuple):
    """Robot given on the command line, with base link and tip link if given."""

    name: str  # name, file or package path, see dls_ik.model.load.find_tree
    base: str | None = None
    tip: str | None = None

    def read(self) -> RobotModel:
        """Load the robot, and return its model.

        Raises:
            RobotModelError: If the robot does not exist, or has no chain from base to tip.
        """
        from dls_ik.model.load import find_tree
        from dls_ik.model.robot import RobotModel

        tree = find_tree(self.name)
        try:
            return RobotModel.from_tree(tree, self.base, self.tip)
        except AmbiguousTipError as error:
            tips = listing(error.tips)
            message = f"several links could be the tip: {tips}; choose one: --tip {error.tips[0]}"
            raise AmbiguousTipError(message, error.tips) from error


def robot_argument(**argument: Any) -> Callable[[Command], Command]:
    """Return a decorator that adds ROBOT, --base and --tip to a command.

    The command receives them as one argument `chosen` of type ChosenRobot.

    Args:
        **argument: Further arguments of ``click.argument``.
    """

    def decorate(command: Command) -> Command:
        @click.argument("robot", **argument)
        @click.option("--base", metavar="LINK", help="Base link; default: the root.")
        @click.option("--tip", metavar="LINK", help="Tip link; default: the only leaf.")
        @wraps(command)
        def run(robot: str, base: str | None, tip: str | None, **rest: Any) -> Any:
            return command(chosen=ChosenRobot(robot, base, tip), **rest)

        return run

    return decorate


robot_options = robot_argument()


# Scene

SAMPLED_SRDF = "auto"  # value of --srdf by which the pairs that may touch are found by sampling


class ChosenScene(NamedTuple):
    """Collision options given on the command line: SRDF file and scene files."""

    srdf: str | None = None  # file, or SAMPLED_SRDF
    files: tuple[str, ...] = ()

    def read(self, robot: RobotModel) -> PlanningScene | None:
        """Return the scene of a robot, or None if neither --srdf nor --scene is given.

        Raises:
            MissingPartError: If coal is not installed.
            SceneError: If a file is not a scene, or the robot has no collision geometry.
        """
        return self.read_always(robot) if self.srdf or self.files else None

    def read_always(self, robot: RobotModel) -> PlanningScene:
        """Return the scene of a robot, which has no obstacles if --scene is not given.

        Raises:
            MissingPartError: If coal is not installed.
            SceneError: If a file is not a scene, or the robot has no collision geometry.
        """
        if find_spec("coal") is None:
            raise output.MissingPartError("coal is missing: pip install 'dls_ik[collision]'")
        from dls_ik.scene.planning_scene import PlanningScene

        scene = PlanningScene(robot, None if self.srdf == SAMPLED_SRDF else self.srdf)
        for file in self.files:
            for note in scene.load(file):
                output.warn(f"{file}: {note}")
        return scene


def scene_options(command: Command) -> Command:
    """Add --srdf and --scene to a command, which receives them as one argument `around`."""

    @click.option(
        "--srdf",
        metavar="FILE",
        help="Avoid collisions; an SRDF gives the pairs that may touch, auto finds them.",
    )
    @click.option(
        "--scene",
        "files",
        metavar="FILE",
        multiple=True,
        help="Avoid the obstacles in a .scene or YAML file of MoveIt; may be repeated.",
    )
    @wraps(command)
    def run(srdf: str | None, files: tuple[str, ...], **rest: Any) -> Any:
        return command(around=ChosenScene(srdf, files), **rest)

    return run


# Solver


def parse_task(name: str) -> Task | None:
    """Return the solver task for a name in `TASK_CHOICES`; None stands for the full pose."""
    from dls_ik.solver.task import Task

    if name == "pose":
        return None
    return Task.position_only() if name == "position" else Task.pointing(name[8:].strip("-") or "z")


def _parse_settings(context: Any, param: Any, given: tuple[str, ...]) -> dict[str, Any]:
    """Convert values of --set, such as ``max_restarts=10``, to a dict; used as a click callback.

    Raises:
        click.BadParameter: If a value is not of the form NAME=VALUE.
    """
    found: dict[str, Any] = {}
    for words in given:
        name, equals, value = (part.strip() for part in words.partition("="))
        if not (name and equals and value):
            raise click.BadParameter(f"an option must be NAME=VALUE; got {words!r}")
        found["lambda_" if name == "lambda" else name] = _parse_value(value)
    return found


def _parse_value(word: str) -> Any:
    """Convert a word to a boolean, None, a number or a tuple; return any other word unchanged."""
    if word.lower() in SET_WORDS:
        return SET_WORDS[word.lower()]
    if "," in word:
        return tuple(_parse_value(each.strip()) for each in word.split(","))
    for kind in (int, float):
        with suppress(ValueError):
            return kind(word)
    return word


settings_option = click.option(
    "--set",
    "settings",
    metavar="NAME=VALUE",
    multiple=True,
    callback=_parse_settings,
    help="Solver option such as position_tolerance=1e-4; may be repeated.",
)


# Numbers and joint positions

seed_option = click.option(
    "--seed",
    metavar="VALUES",
    multiple=True,
    help="Start configuration [rad or m]: all values (0.1,0.2), or some by name (j1=0.1).",
)


def parse_numbers(given: str, *counts: int) -> tuple[float, ...]:
    """Return the finite numbers in a text, separated by commas, semicolons or spaces.

    Args:
        given: Text with the numbers.
        *counts: Valid counts of numbers; none if every count is valid.

    Raises:
        click.BadParameter: If a word is not a finite number, or the count is not valid.
    """
    words = given.translate(str.maketrans(",;[]", "    ")).split()
    found = tuple(map(parse_number, words))
    for word, number in zip(words, found, strict=True):
        if not np.isfinite(number):
            raise click.BadParameter(f"{word!r} is not a finite number")
    if counts and len(found) not in counts:
        wanted = " or ".join(map(str, counts))
        raise click.BadParameter(f"expected {wanted} numbers; got {len(found)}")
    return found


def parse_number(word: str) -> float:
    """Convert a word to a float, or to NaN if the word is not a number."""
    try:
        return float(word)
    except ValueError:
        return np.nan


def joint_values(context: Any, param: Any, given: tuple[str, ...]) -> dict[str, float]:
    """Convert ``j1=0.1`` or ``j1=0.1,j2=0.2`` to positions by joint name; used as a click callback.

    Raises:
        click.BadParameter: If a pair is not valid, or a joint is given twice.
    """
    found: dict[str, float] = {}
    for pair in " ".join(given).replace(",", " ").split():
        name, _, number = pair.partition("=")
        value = parse_number(number)
        if not name or not np.isfinite(value):
            raise click.BadParameter(f"joint positions must be NAME=VALUE; got {quoted(pair)}")
        if name in found:
            raise click.BadParameter(f"joint {quoted(name)} is given twice")
        found[name] = value
    return found


def joint_vector(
    robot: RobotModel, given: tuple[str, ...], option: str, deg: bool = False
) -> tuple[Array, dict[str, float]]:
    """Convert joint positions given as ``0.1,0.2`` or ``j1=0.1,j2=0.2`` to numbers.

    Joints of the chain that are not given are at 0, or at the limit closest to 0.

    Args:
        robot: Robot with n joints in the chain.
        given: Values of the option, which may be repeated.
        option: Name of the option, for messages.
        deg: Whether positions of revolute joints are in degrees.

    Returns:
        Positions (n,) of the joints of the chain [rad or m], and a dict with the positions of
        joints outside the chain by name.

    Raises:
        click.UsageError: If the positions are not valid.
    """
    named = named_values(robot, given, option, deg)
    q = robot.clip(np.zeros(robot.n))
    for i, name in enumerate(robot.joint_names):
        q[i] = named.pop(name, q[i])
    return q, named


def named_values(
    robot: RobotModel, given: tuple[str, ...], option: str, deg: bool = False
) -> dict[str, float]:
    """Convert joint positions given as ``0.1,0.2`` or ``j1=0.1,j2=0.2`` to positions by joint name.

    Args:
        robot: Robot with n joints in the chain.
        given: Values of the option, which may be repeated.
        option: Name of the option, for messages.
        deg: Whether positions of revolute joints are in degrees.

    Returns:
        Positions [rad or m]; only those of the given joints.

    Raises:
        click.UsageError: If the positions are not valid.
    """
    parse = _parse_by_name if any("=" in words for words in given) else _parse_in_order
    try:
        named = parse(robot, given)
    except click.BadParameter as error:
        raise click.UsageError(f"{option}: {error.message}") from error
    turning = [name for name in named if robot.tree.joint[name].kind != "prismatic"]
    if deg:
        named |= {name: float(np.radians(named[name])) for name in turning}
    else:
        warn_large_angles(option, [named[name] for name in turning])
    return named


def start_values(robot: RobotModel, seed: tuple[str, ...], deg: bool) -> Array | None:
    """Return the start configuration (n,) given by --seed [rad or m], or None without --seed."""
    return joint_vector(robot, seed, "--seed", deg)[0] if seed else None


def _parse_by_name(robot: RobotModel, given: tuple[str, ...]) -> dict[str, float]:
    """Convert values such as ``j1=0.1`` to a dict of positions by joint name.

    Raises:
        click.BadParameter: If a joint is unknown or mimics another.
    """
    named = joint_values(None, None, given)
    drives = robot.tree.mimic_of
    unknown = [name for name in named if name not in drives]
    if unknown:
        hint = did_you_mean(unknown[0], drives) or f"joints: {listing(drives)}"
        raise click.BadParameter(f"unknown joint {listing(unknown)}; {hint}")
    masters = {name: drives[name].master for name in named}
    followers = [f"{name} mimics {master}" for name, master in masters.items() if master != name]
    if followers:
        raise click.BadParameter(f"{listing(followers)}; give the position of that joint instead")
    return named


def _parse_in_order(robot: RobotModel, given: tuple[str, ...]) -> dict[str, float]:
    """Convert values such as ``0.1,0.2``, in the order of the chain, to positions by joint name.

    Raises:
        click.BadParameter: If the count of numbers differs from the count of joints.
    """
    numbers = parse_numbers(" ".join(given))
    if len(numbers) != robot.n:
        names = listing(robot.joint_names)
        raise click.BadParameter(
            f"expected {robot.n} joint positions ({names}); got {len(numbers)}"
        )
    return dict(zip(robot.joint_names, numbers, strict=True))


def _load_plugins(context: click.Context, option: click.Parameter, paths: Sequence[str]) -> None:
    """Load Python files that define methods; used as a click callback."""
    del context, option
    from dls_ik.solver.plugins import load_plugin

    for path in paths:
        load_plugin(path)


plugin_option = click.option(
    "--plugin",
    metavar="FILE.py",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=_load_plugins,
    help="Add the method step(J, e, state) of a Python file, with the name of the file.",
)


def warn_large_angles(subject: str, angles: Iterable[float]) -> None:
    """Warn if an angle [rad] exceeds a full turn, because it may be meant in degrees.

    Args:
        subject: Option or file with the angles, for the message.
        angles: Angles [rad].
    """
    largest = max((abs(angle) for angle in angles), default=0.0)
    if 2.0 * np.pi + TURN_TOLERANCE < largest < np.inf:
        output.warn(
            f"{subject} has {largest:g} rad, which is {largest / (2.0 * np.pi):.3g} turns; "
            "use --deg for angles in degrees"
        )
