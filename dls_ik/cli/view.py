# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik view``: a web page that shows an arm and its methods.

The arm is simulated in this process, or is the arm of a running node.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import webbrowser
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from dls_ik.cli import output
from dls_ik.cli.node_robot import node_source
from dls_ik.cli.options import (
    ROBOT_HELP,
    SECONDS_RANGE,
    TASK_CHOICES,
    ChosenRobot,
    ChosenScene,
    parse_task,
    plugin_option,
    robot_argument,
    scene_options,
    text_option,
)
from dls_ik.cli.redundancy import ChosenRedundancy, redundancy_options

if TYPE_CHECKING:
    from dls_ik.core.types import Array
    from dls_ik.model.robot import RobotModel
    from dls_ik.viewer.presets import Preset
    from dls_ik.viewer.replay import ReplayPath
    from dls_ik.viewer.session import Session
    from dls_ik.viewer.shapes import Shapes

DEFAULT_ROBOT = "wam"  # default robot
LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "::1")
WILDCARD_HOSTS = ("0.0.0.0", "::")  # noqa: S104  the server binds to them only if --host says so
MAX_ARMS = 4
NO_REDUNDANCY = ChosenRedundancy()


@click.command(
    epilog=f"{ROBOT_HELP} --tip accepts several links, separated by commas. docs/viewer.md "
    "describes the page. Ctrl-C stops it."
)
@plugin_option
@robot_argument(required=False)
@text_option("--method", metavar="A[,B,C,D]", help="A method, or up to four to compare.")
@click.option(
    "--task",
    type=click.Choice(TASK_CHOICES),
    help="Part of the target that counts, as in solve. Default: the pose; the position if the arm "
    "has too few joints.",
)
@redundancy_options
@scene_options
@click.option(
    "--replay",
    metavar="FILE",
    help="Replay a joint path: CSV or JSON of dls-ik path. JSON names the scene to show.",
)
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080)
@click.option(
    "--rate", type=click.FloatRange(10.0, 500.0), default=100.0, help="Updates per second."
)
@click.option("--ros", is_flag=True, help="Show a running node, and send targets to it.")
@text_option("--namespace", help="Namespace of the node.")
@click.option("--patience", type=SECONDS_RANGE, default=10.0, help="Timeout to find a node [s].")
@click.option("--record", metavar="FILE", help="File of recordings made on the page, as CSV.")
@click.option("--dark", is_flag=True, help="Start with dark colours.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def view(
    chosen: ChosenRobot,
    method: str,
    task: str | None,
    freedom: ChosenRedundancy,
    around: ChosenScene,
    replay: str | None,
    host: str,
    port: int,
    rate: float,
    ros: bool,
    namespace: str,
    patience: float,
    record: str | None,
    dark: bool,
    no_browser: bool,
) -> None:
    """Show an arm in the browser: drag its target, compare methods, watch limits and singularities.

    The default ROBOT is wam; with --ros it is the robot of the node.
    """
    methods = _methods(method)
    if ros:
        given = {"--method": methods, "--task": task, "--replay": replay}
        _check_remote(chosen, freedom, around, given)
    output.check_outputs(record)
    if ros:
        source = remote(chosen if chosen.name else None, namespace, patience, around.files)
    else:
        shown = chosen._replace(name=chosen.name or DEFAULT_ROBOT)
        if replay is not None and not around.files:
            around = around._replace(files=_scenes_of(Path(replay)))
        source = local(shown, methods, task, around, freedom)
    try:
        with output.record_sigint() as ended, source as arm:
            from dls_ik.viewer.page import serve
            from dls_ik.viewer.server import open_server

            shapes = _shapes(arm)
            path = None if replay is None else _read_path(arm.robot, replay)
            server = open_server(host, port, f"dls-ik: {arm.robot.name}")
            _announce(host, server.get_port(), no_browser)
            save = None if record is None else partial(_save, record)
            serve(
                server, arm.robot, shapes, arm.begin, rate, save, ended, dark, arm.note,
                lambda session: session.show_path(path),
            )  # fmt: skip
    except ImportError as error:
        message = f"{error.name or error} is missing: pip install 'dls-ik[viewer]'"
        raise output.MissingPartError(message) from None
    except KeyboardInterrupt:
        pass
    _exit_at_once()


def _check_remote(
    chosen: ChosenRobot, freedom: ChosenRedundancy, around: ChosenScene, given: Mapping[str, Any]
) -> None:
    """Check that no options are given that cannot be combined with --ros.

    Args:
        chosen: Robot given on the command line.
        freedom: Options of the redundancy.
        around: Options of the scene.
        given: Values by name of further options that cannot be combined with --ros.

    Raises:
        click.UsageError: If such an option is given.
    """
    if freedom != NO_REDUNDANCY:
        raise click.UsageError(
            "--stack, --swivel, --posture, --frozen and --weights cannot be combined with --ros; "
            "set the parameters swivel, posture, frozen_joints and joint_weights of the node"
        )
    for name in (name for name, value in given.items() if value):
        raise click.UsageError(
            f"{name} cannot be combined with --ros: the page shows the motion of the node"
        )
    if around.srdf:
        raise click.UsageError(
            "--srdf cannot be combined with --ros; give ik_node an SRDF by its parameter or topic "
            "robot_description_semantic"
        )
    if not chosen.name and (chosen.base or chosen.tip):
        raise click.UsageError(
            "with --ros, --base and --tip need ROBOT; otherwise base and tip of the node are used"
        )


def _methods(given: str) -> list[str]:
    """Check that the methods given on the command line can follow targets, and return their names.

    Args:
        given: Names separated by commas; empty for the default.

    Raises:
        click.UsageError: If there are too many methods.
        MethodError: If a method is unknown or has no single steps.
    """
    from dls_ik.viewer.source import check_follows

    names = [check_follows(name) for name in given.split(",")] if given else []
    if len(names) > MAX_ARMS:
        raise click.UsageError(f"--method must be at most {MAX_ARMS} methods; got {len(names)}")
    return names


def _scenes_of(file: Path) -> tuple[str, ...]:
    """Return the scene files that a file of ``dls-ik path`` names; warn of those not found."""
    from dls_ik.viewer.replay import stored_scenes

    named = stored_scenes(file)
    for each in named:
        if not each.is_file():
            output.warn(f"{file} names the scene {each}, which does not exist; give --scene FILE")
    return tuple(str(each) for each in named if each.is_file())


def _read_path(robot: RobotModel, file: str) -> ReplayPath:
    """Read a file with a joint path that the page replays.

    Raises:
        click.UsageError: If the file cannot be read.
        PathFileError: If the file is not a joint path.
    """
    from dls_ik.model.files import read_file
    from dls_ik.viewer.replay import MAX_RECORDING_BYTES, read_path

    try:
        content = read_file(Path(file), MAX_RECORDING_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise click.UsageError(f"cannot read {file}: {reason}") from error
    return read_path(robot, Path(file).name, content)


def _shapes(arm: ViewedArm) -> Shapes:
    """Load the shapes of a robot's links; warn if shapes are missing."""
    from dls_ik.viewer.shapes import robot_shapes

    shapes = robot_shapes(arm.robot, arm.description, arm.is_foreign)
    if shapes.complaint:
        output.warn(shapes.complaint)
    return shapes


def _save(record: str, content: bytes) -> str:
    """Write the content of a recording to the path `record`, and return that path."""
    output.write_whole(record, lambda part: part.write_bytes(content))
    return record


def _announce(host: str, port: int, no_browser: bool) -> None:
    """Print the address of the page, and open it in a browser if there is a screen."""
    name = {
        **dict.fromkeys(LOOPBACK_HOSTS, "localhost"),
        **dict.fromkeys(WILDCARD_HOSTS, socket.gethostname()),
    }
    url = f"http://{name.get(host, host)}:{port}"
    click.echo(f"{url}  (Ctrl-C stops it)")
    if host in LOOPBACK_HOSTS:
        click.echo(f"from another machine: ssh -L {port}:localhost:{port} HOST, then the same URL")
    else:
        output.warn(f"anybody with access to {host} can see and move this arm")
    from dls_ik.viewer.window import has_screen

    if not no_browser and has_screen():
        webbrowser.open(url)


def _exit_at_once() -> NoReturn:
    """Exit without shutting down the interpreter, which running server threads could crash."""
    with contextlib.suppress(OSError):  # stdout or stderr may be a closed pipe
        click.echo("dls-ik: stopped", err=True)
        sys.stdout.flush()
    os._exit(output.EXIT_INTERRUPTED)


class ViewedArm(NamedTuple):
    """Arm shown on the page, with its shapes and a function that starts its session."""

    robot: RobotModel
    description: Path | str | None  # file or text of the URDF, which contains the shapes
    begin: Callable[[Callable[[Array], Array]], tuple[Session, Sequence[Preset]]]
    is_foreign: bool = False  # whether the URDF was received over the network
    note: str = ""  # text shown on the page


def _read_robot(chosen: ChosenRobot) -> RobotModel:
    """Load the robot given on the command line; --tip may list links separated by commas."""
    from dls_ik.model.load import find_tree
    from dls_ik.model.robot import RobotModel

    tips = [tip.strip() for tip in (chosen.tip or "").split(",") if tip.strip()]
    if len(tips) < 2:
        return chosen.read()
    return RobotModel.from_tree(find_tree(chosen.name), chosen.base, tips)


@contextlib.contextmanager
def local(
    chosen: ChosenRobot,
    methods: Sequence[str],
    task: str | None,
    around: ChosenScene,
    freedom: ChosenRedundancy = NO_REDUNDANCY,
) -> Iterator[ViewedArm]:
    """Yield an arm moved by a controller in this process; with several methods one arm for each.

    Args:
        chosen: Robot given on the command line.
        methods: Names of the methods; empty for the default.
        task: Components of the target that are followed; None selects the default for the robot.
        around: Scene options of the command line.
        freedom: Options of the redundancy of the command line.
    """
    from dls_ik.model.load import find_urdf

    robot, path = _read_robot(chosen), find_urdf(chosen.name)
    from dls_ik.viewer.session import default_task, local_session

    scene = around.read(robot)
    rows = default_task(robot) if task is None else parse_task(task)
    stack = freedom.read_stack(robot, "position" if rows and task is None else task, deg=False)
    frozen = freedom.frozen_positions(robot, None, deg=False)
    options = freedom.with_weights(robot, {})
    note = ""
    if task is None and rows is not None and not freedom.stack:
        note = f"{robot.n} joints: only the position of the target counts; --task pose changes this"

    def begin(clearance: Callable[[Array], Array]) -> tuple[Session, Sequence[Preset]]:
        return local_session(
            robot, methods, rows if stack is None else stack, clearance, scene=scene,
            frozen=frozen, **options,
        )  # fmt: skip

    yield ViewedArm(robot, path, begin, note=note)


@contextlib.contextmanager
def remote(
    chosen: ChosenRobot | None, namespace: str, patience: float, scenes: Sequence[str] = ()
) -> Iterator[ViewedArm]:
    """Yield the arm of a running node.

    Args:
        chosen: Robot given on the command line, for which a missing base or tip is taken from the
            node; None stands for the robot of the node.
        namespace: Namespace of the node.
        patience: Timeout to find the node [s].
        scenes: Scene files whose objects are added to the scene of the node.

    Raises:
        MissingPartError: If ROS is not installed, or no node with a robot is found.
        RobotModelError: If the robot of the node is not usable on this machine.
        SceneError: If a file is not a scene.
    """
    from dls_ik.viewer.session import Session

    with output.ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.robot_source import ForeignFileError
    try:
        source = node_source(chosen, namespace, patience)
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}: dls-ik view FILE --ros") from None
    except NOT_THERE as error:
        hint = "start ik_node, choose a node by --namespace, or name its robot to wait for the node"
        raise output.MissingPartError(f"{error}: {hint}") from None
    with contextlib.closing(source):
        is_foreign = chosen is None and isinstance(source.urdf, str)
        for file in scenes:
            for note in source.scene.load(file):
                output.warn(f"{file}: {note}")
        session = Session(source, shared=source.scene)
        yield ViewedArm(source.robot, source.urdf, lambda _: (session, ()), is_foreign)
