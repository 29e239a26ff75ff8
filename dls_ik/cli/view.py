"""``dls-ik view``: a web page that shows an arm and its methods."""

from __future__ import annotations

import signal
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from dls_ik.cli.group import INTERRUPTED
from dls_ik.cli.output import check_writable, write_whole

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.viewer.panels.record import Save

MISSING = 3
LOCAL = ("localhost", "127.0.0.1", "::1")


@click.command(epilog="docs/viewer.md tells what the page shows. Ctrl-C ends it.")
@click.argument("robot", default="wam")
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
@click.option("--record", metavar="FILE", help="Where the page's recordings go, as CSV.")
@click.option("--no-browser", is_flag=True, help="Open none; only print the address.")
def view(
    robot: str,
    base: str | None,
    tip: str | None,
    method: str,
    host: str,
    port: int,
    rate: float,
    record: str | None,
    no_browser: bool,
) -> None:
    """Show an arm in the browser: drag its target, compare methods, watch limits and singularities.

    ROBOT is a URDF file or the name of a robot that comes with the package. Default: wam.
    """
    model, path = _robot(robot, base, tip)
    methods = _methods(method)
    save = _saving(record)
    try:
        from dls_ik.viewer.serve import open_server, serve
        from dls_ik.viewer.shapes import Shapes, load_shapes
        from dls_ik.viewer.skeleton import skeleton
        from dls_ik.viewer.view import local_session
    except ImportError as error:
        _leave(f"{error.name or error} is missing: pip install 'dls-ik[viewer]'", MISSING)
    shapes = Shapes(()) if path is None else load_shapes(path)
    if shapes.complaint:
        click.echo(f"dls-ik: {shapes.complaint}", err=True)
    if not shapes.pieces:
        shapes = skeleton(model)._replace(missing=shapes.missing)
    server = open_server(host, port, f"dls-ik: {model.name}")
    _announce(host, server.get_port(), no_browser)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
    try:
        serve(server, model, shapes, lambda: local_session(model, methods), rate, save)
    except KeyboardInterrupt:
        _leave("ended", INTERRUPTED)


def _robot(robot: str, base: str | None, tip: str | None) -> tuple[RobotModel, Path | None]:
    """The robot, and the file that says what it looks like."""
    from dls_ik.model.robot import RobotModel
    from dls_ik.model.shipped import shipped_names, shipped_urdf

    path = shipped_urdf(robot) if robot in shipped_names() else Path(robot)
    return RobotModel.from_urdf(path, base, tip), path


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
    url = f"http://{'localhost' if host in LOCAL else host}:{port}"
    click.echo(f"{url}  (Ctrl-C ends it)")
    if host in LOCAL:
        click.echo(f"from another machine: ssh -L {port}:localhost:{port} HOST, then the same URL")
    else:
        click.echo(f"dls-ik: whoever reaches {host} can see and move this arm", err=True)
    if not no_browser:
        webbrowser.open(url)


def _leave(words: str, code: int) -> NoReturn:
    click.echo(f"dls-ik: {' '.join(words.split())}", err=True)
    sys.exit(code)
