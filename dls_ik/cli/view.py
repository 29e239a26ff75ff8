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

from dls_ik.cli.exits import INTERRUPTED, MissingPartError, remembered, say
from dls_ik.cli.options import ROBOT, find_robot
from dls_ik.cli.output import check_writable, write_whole
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
BRIEF = 1.0  # [s] for a node that only confirms which links are base and tip


@click.command(epilog=f"{ROBOT} docs/viewer.md tells what the page shows. Ctrl-C ends it.")
@click.argument("robot", required=False)
@click.option("--base", metavar="LINK", help="Where the chain begins; found if there is no choice.")
@click.option("--tip", metavar="LINK", help="Where it ends; found if there is no choice.")
@click.option("--method", metavar="A[,B]", default="", help="A method, or two to compare.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option("--port", type=click.IntRange(0, 65535), default=8080, show_default=True)
@click.option(
    "--rate",
    type=click.FloatRange(10.0, 500.0),
    default=100.0,
    show_default=True,
    help="Steps of the controller [Hz].",
)
@click.option("--ros", is_flag=True, help="Show a running node, and send targets to it.")
@click.option("--namespace", default="", help="Of the node.")
@click.option(
    "--patience",
    type=click.FloatRange(0.0),
    default=10.0,
    show_default=True,
    help="For the node, where its robot is not given [s].",
)
@click.option("--record", metavar="FILE", help="Where the page's recordings go, as CSV.")
@click.option("--no-browser", is_flag=True, help="Open none; only print the address.")
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
        raise click.UsageError("--method is for an arm here; the page changes that of a node")
    if ros and not robot and (base or tip):
        raise click.UsageError("--base and --tip are those of the node, unless ROBOT is given too")
    save = _saving(record)
    ends = None if ros and not robot else Ends(robot or DEFAULT, base, tip)
    try:
        shown = local(ends, methods) if ends and not ros else remote(ends, namespace, patience)
        with remembered() as ended, shown as what:
            _serve(what, host, port, rate, save, no_browser, ended)
    except ImportError as error:
        words = f"{error.name or error} is missing: pip install 'dls-ik[viewer]'"
        raise MissingPartError(words) from None
    except KeyboardInterrupt:
        pass
    _end()


def _serve(
    what: Shown,
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
    if what.description is not None:
        shapes = load_shapes(what.description, what.is_foreign)
    if shapes.complaint:
        say(shapes.complaint)
    if not shapes.pieces:
        shapes = skeleton(what.robot)._replace(missing=shapes.missing)
    server = open_server(host, port, f"dls-ik: {what.robot.name}")
    _announce(host, server.get_port(), no_browser)
    serve(server, what.robot, shapes, what.begin, rate, save, ended)


def _methods(given: str) -> list[str]:
    from dls_ik.solver.method import parse_method

    names = [parse_method(name).name for name in given.split(",")] if given else []
    if len(names) > 2:
        raise click.UsageError(f"--method takes one method or two, not {len(names)}")
    return names


def _saving(record: str | None) -> Save | None:
    if record is None:
        return None
    check_writable([record])

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
        say(f"whoever reaches {host} can see and move this arm")
    if not no_browser and _has_screen():
        webbrowser.open(url)


def _has_screen() -> bool:
    """Whether there are windows; else a browser such as lynx would take the terminal."""
    screens = map(os.environ.get, ("DISPLAY", "WAYLAND_DISPLAY"))
    return sys.platform in ("darwin", "win32") or any(screens)


def _end() -> NoReturn:
    """Leave at once: threads of the server may still run, which an interpreter that ends can crash.

    All that was to be closed is.
    """
    with contextlib.suppress(OSError):  # nobody reads it
        click.echo("dls-ik: ended", err=True)
        sys.stdout.flush()
    os._exit(INTERRUPTED)


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
    from dls_ik.viewer.session import local_session

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
    from dls_ik.ros.client.robot import Described
    from dls_ik.ros.viewer_source import NodeSource

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
