"""``dls-ik view``: a web page that shows an arm and its methods.

The arm is one of this process, or that of a running node.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, NoReturn

import click

from dls_ik.cli.options import ROBOT, SECONDS, find_robot, robot_argument, text_option
from dls_ik.cli.output import (
    INTERRUPTED,
    MissingPartError,
    check_writable,
    record_sigint,
    ros_imports,
    warn,
    write_whole,
)
from dls_ik.errors import ChainError

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.ros.viewer_source import NodeSource
    from dls_ik.viewer.panels import Save
    from dls_ik.viewer.presets import Preset
    from dls_ik.viewer.session import Session

DEFAULT = "wam"  # robot
LOCAL = ("localhost", "127.0.0.1", "::1")
ANY = ("0.0.0.0", "::")  # noqa: S104  only where --host says so
BRIEF = 1.0  # [s] for a node that only confirms base and tip


@click.command(epilog=f"{ROBOT} docs/viewer.md describes the page. Ctrl-C ends it.")
@robot_argument(required=False)
@text_option("--method", metavar="A[,B]", help="A method, or two to compare.")
@click.option("--host", default="127.0.0.1", help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080)
@click.option(
    "--rate", type=click.FloatRange(10.0, 500.0), default=100.0, help="Control rate [Hz]."
)
@click.option("--ros", is_flag=True, help="Show a running node, and send targets to it.")
@text_option("--namespace", help="Namespace of the node.")
@click.option("--patience", type=SECONDS, default=10.0, help="Time to find a node [s].")
@click.option("--record", metavar="FILE", help="Where the page's recordings go, as CSV.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def view(
    robot: str | None,
    base: str | None,
    tip: str | None,
    method: str,
    host: str,
    port: int,
    rate: float,
    ros: bool,
    namespace: str,
    patience: float,
    record: str | None,
    no_browser: bool,
) -> None:
    """Show an arm in the browser: drag its target, compare methods, watch limits and singularities.

    The default ROBOT is wam, and with --ros that of the node.
    """
    methods = _methods(method)
    if ros and methods:
        raise click.UsageError(
            "--method is for an arm of this process; the page changes that of a node"
        )
    if ros and not robot and (base or tip):
        raise click.UsageError("--base and --tip are those of the node, unless ROBOT is given too")
    save = _recorder(record)
    chosen = None if ros and not robot else ChosenRobot(robot or DEFAULT, base, tip)
    try:
        if chosen and not ros:
            source = local(chosen, methods)
        else:
            source = remote(chosen, namespace, patience)
        with record_sigint() as ended, source as arm:
            _serve(arm, host, port, rate, save, no_browser, ended)
    except ImportError as error:
        message = f"{error.name or error} is missing: pip install 'dls-ik[viewer]'"
        raise MissingPartError(message) from None
    except KeyboardInterrupt:
        pass
    _end()


def _serve(
    arm: ViewedArm,
    host: str,
    port: int,
    rate: float,
    save: Save | None,
    no_browser: bool,
    ended: threading.Event,
) -> None:
    from dls_ik.viewer.page import serve
    from dls_ik.viewer.server import open_server
    from dls_ik.viewer.shapes import Shapes, load_shapes, skeleton

    shapes = Shapes(())
    if arm.description is not None:
        shapes = load_shapes(arm.description, arm.is_foreign)
    if shapes.complaint:
        warn(shapes.complaint)
    if not shapes.pieces:
        shapes = skeleton(arm.robot)._replace(missing=shapes.missing)
    server = open_server(host, port, f"dls-ik: {arm.robot.name}")
    _announce(host, server.get_port(), no_browser)
    serve(server, arm.robot, shapes, arm.begin, rate, save, ended)


def _methods(given: str) -> list[str]:
    from dls_ik.solver.method import parse_method

    names = [parse_method(name).name for name in given.split(",")] if given else []
    if len(names) > 2:
        raise click.UsageError(f"--method takes one method or two, not {len(names)}")
    return names


def _recorder(record: str | None) -> Save | None:
    if record is None:
        return None
    check_writable(record)

    def save(content: bytes) -> str:
        write_whole(record, lambda part: part.write_bytes(content))
        return record

    return save


def _announce(host: str, port: int, no_browser: bool) -> None:
    name = {**dict.fromkeys(LOCAL, "localhost"), **dict.fromkeys(ANY, socket.gethostname())}
    url = f"http://{name.get(host, host)}:{port}"
    click.echo(f"{url}  (Ctrl-C ends it)")
    if host in LOCAL:
        click.echo(f"from another machine: ssh -L {port}:localhost:{port} HOST, then the same URL")
    else:
        warn(f"anybody who reaches {host} can see and move this arm")
    if not no_browser and _has_screen():
        webbrowser.open(url)


def _has_screen() -> bool:
    """Return True where there are windows; else a browser such as lynx would take the terminal."""
    screens = map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32") or any(screens)


def _end() -> NoReturn:
    """Leave at once: threads of the server may still run, and crash an interpreter that ends."""
    with contextlib.suppress(OSError):  # a closed pipe
        click.echo("dls-ik: ended", err=True)
        sys.stdout.flush()
    os._exit(INTERRUPTED)


class ChosenRobot(NamedTuple):
    """Robot of the command line."""

    name: str
    base: str | None
    tip: str | None

    def read(self) -> tuple[RobotModel, Path | str | None]:
        """Return the robot, and the URDF with its shapes, if there is one.

        Raises:
            RobotModelError: there is no such robot.
        """
        from dls_ik.model.load import find_urdf

        return find_robot(self.name, self.base, self.tip), find_urdf(self.name)


class ViewedArm(NamedTuple):
    """An arm on the page."""

    robot: RobotModel
    description: Path | str | None  # URDF with its shapes
    begin: Callable[[], tuple[Session, Sequence[Preset]]]  # makes the session
    is_foreign: bool = False  # the URDF came over the network


@contextlib.contextmanager
def local(chosen: ChosenRobot, methods: Sequence[str]) -> Iterator[ViewedArm]:
    """Yield an arm that a controller of this process moves; two methods move two."""
    robot, path = chosen.read()
    from dls_ik.viewer.session import local_session

    yield ViewedArm(robot, path, lambda: local_session(robot, methods))


@contextlib.contextmanager
def remote(chosen: ChosenRobot | None, namespace: str, patience: float) -> Iterator[ViewedArm]:
    """Yield the arm of a node, which is waited for with patience [s].

    Base and tip that are not given are the node's, and so is a robot that is not chosen.

    Raises:
        MissingPartError: ROS is not installed, or no node names its robot.
        RobotModelError: its robot is not usable here.
    """
    from dls_ik.viewer.session import Session

    with ros_imports():
        from dls_ik.ros.client.connection import NOT_THERE
        from dls_ik.ros.client.robot import ForeignFileError
    try:
        source = _source(chosen, namespace, patience)
    except ForeignFileError as error:
        raise ForeignFileError(f"{error}: dls-ik view FILE --ros") from None
    except NOT_THERE as error:
        hint = "start ik_node, or choose one by --namespace, or name its robot to wait for it"
        raise MissingPartError(f"{error}: {hint}") from None
    with contextlib.closing(source):
        is_foreign = chosen is None and isinstance(source.urdf, str)
        yield ViewedArm(source.robot, source.urdf, lambda: (Session(source), ()), is_foreign)


def _source(chosen: ChosenRobot | None, namespace: str, patience: float) -> NodeSource:
    """Return the node as a source of the page; it may start later where its robot is chosen."""
    from dls_ik.ros.client.connection import NOT_THERE
    from dls_ik.ros.client.robot import DescribedRobot
    from dls_ik.ros.viewer_source import NodeSource

    if chosen is None:
        return NodeSource(None, namespace, patience)
    if chosen.base or chosen.tip:
        return NodeSource(DescribedRobot(*chosen.read()), namespace, patience)
    name = chosen.name
    try:
        alone: DescribedRobot | None = DescribedRobot(*chosen.read())
    except ChainError:  # several links could be the tip: the node knows which
        alone = None
    try:
        return NodeSource(
            None, namespace, BRIEF if alone else patience,
            own=lambda base, tip: DescribedRobot(*ChosenRobot(name, base, tip).read()),
        )  # fmt: skip
    except NOT_THERE:
        return NodeSource(alone or DescribedRobot(*chosen.read()), namespace, patience)
