"""``dls-ik call``: one request to a running node, this package's or move_group."""

import json
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

import click
import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.rigid import rotation_about, rotation_from_rpy, transform

if TYPE_CHECKING:
    from dls_ik.ros.client import FkAnswer, IkAnswer, IkClient

NO_SOLUTION, MISSING = 1, 3
PAIRS = "NAME=VALUE,..."
Triple = tuple[float, float, float]
Quaternion = tuple[float, float, float, float]


def joint_values(context: Any, param: Any, given: tuple[str, ...]) -> dict[str, float]:
    """Values by name from words such as ``j1=0.1`` or ``j1=0.1,j2=0.2``.

    Raises:
        click.BadParameter: another form, or no finite number.
    """
    found = {}
    for pair in " ".join(given).replace(",", " ").split():
        name, _, number = pair.partition("=")
        try:
            found[name] = float(number)
        except ValueError:
            found[name] = np.nan
        if not name or not np.isfinite(found[name]):
            raise click.BadParameter(f"joint values are given as NAME=VALUE, not {pair!r}")
    return found


@click.command(
    epilog="Exit codes: 0 found, 1 no solution or refused, 2 bad input, 3 no service or no answer."
)
@click.option("--xyz", type=float, nargs=3, help="Position of the pose [m].")
@click.option("--rpy", type=float, nargs=3, help="Roll, pitch, yaw as in URDF [rad]. Default: 0.")
@click.option("--quat", type=float, nargs=4, help="Its rotation as a quaternion x y z w instead.")
@click.option(
    "--fk",
    metavar=PAIRS,
    multiple=True,
    callback=joint_values,
    help="Ask where links are, instead.",
)
@click.option("--frame", default="", help="Frame of the pose. Default: the root of the robot.")
@click.option("--link", default="", help="Link that is meant. Default: the tip.")
@click.option(
    "--seed",
    metavar=PAIRS,
    multiple=True,
    callback=joint_values,
    help="Where to begin; more than once.",
)
@click.option("--group", default="", help="Group of joints. Default: the server's.")
@click.option("--timeout", type=click.FloatRange(0.0, 3600.0), default=0.0, help="To solve in [s].")
@click.option("--service", default=None, help="Default: compute_ik, or compute_fk with --fk.")
@click.option("--patience", type=click.FloatRange(0.0), default=5.0, help="For the service [s].")
@click.option("--json", "as_json", is_flag=True, help="Print the answer as JSON.")
def call(
    xyz: Triple | None,
    rpy: Triple | None,
    quat: Quaternion | None,
    fk: dict[str, float],
    seed: dict[str, float],
    service: str | None,
    patience: float,
    as_json: bool,
    **request: Any,
) -> None:
    """Ask a running node for joint values of a pose, or with --fk for the pose of a link."""
    if (xyz is None) == (not fk):
        raise click.UsageError("give either --xyz, with --rpy or --quat, or --fk")
    pose = None if xyz is None else _pose(xyz, rpy, quat)
    try:
        from dls_ik.ros.client import IkClient, NoAnswerError, ServiceMissingError
    except ImportError as error:
        _leave(f"ROS 2 is not here: {error.name or error} is missing", MISSING)
    names = {"fk" if fk else "ik": service} if service else {}
    try:
        with IkClient(patience=patience, **names) as client:
            if pose is None:
                _show_fk(_asked_fk(client, fk, request), as_json)
            else:
                _show_ik(client.solve(pose, seed or None, **request), as_json)
    except (ServiceMissingError, NoAnswerError) as error:
        _leave(str(error), MISSING)


def _pose(xyz: Triple, rpy: Triple | None, quat: Quaternion | None) -> Array:
    if rpy is not None and quat is not None:
        raise click.UsageError("give --rpy or --quat, not both")
    if quat is None:
        return transform(rotation_from_rpy(*(rpy or (0.0, 0.0, 0.0))), np.array(xyz))
    axis, length = np.array(quat[:3]), float(np.linalg.norm(quat))
    if not 1e-6 < length < np.inf:
        raise click.UsageError(f"--quat {quat} has no direction")
    sine = float(np.linalg.norm(axis))
    return transform(
        rotation_about(axis / (sine or 1.0), 2.0 * np.arctan2(sine, quat[3])), np.array(xyz)
    )


def _asked_fk(client: "IkClient", q: Mapping[str, float], request: dict[str, Any]) -> "FkAnswer":
    links = [request["link"]] if request["link"] else []
    return client.fk(q or None, links, frame=request["frame"])


def _show_ik(answer: "IkAnswer", as_json: bool) -> None:
    if as_json:
        _print_json(answer, {"joints": answer.q})
    elif answer.success:
        width = max(map(len, answer.q), default=0)
        for name, value in answer.q.items():
            click.echo(f"{name:{width}} {value: .6f}")
    _end(answer)


def _show_fk(answer: "FkAnswer", as_json: bool) -> None:
    if as_json:
        poses = {link: T.tolist() for link, T in answer.poses.items()}
        _print_json(answer, {"frame": answer.frame, "poses": poses})
    else:
        for link, T in answer.poses.items():
            rows = np.array2string(T, precision=6, suppress_small=True)
            click.echo(f"{link} in {answer.frame}\n{rows}")
    _end(answer)


def _print_json(answer: "IkAnswer | FkAnswer", found: dict[str, Any]) -> None:
    about = {"success": answer.success, "code": answer.code, "message": answer.message}
    click.echo(json.dumps({**about, **found}))


def _end(answer: "IkAnswer | FkAnswer") -> None:
    if answer.success:
        click.echo(answer.message or "found", err=True)
    else:
        _leave(f"code {answer.code}: {answer.message or 'no words to it'}", NO_SOLUTION)


def _leave(words: str, code: int) -> NoReturn:
    click.echo(f"dls-ik: {' '.join(words.split())}", err=True)
    sys.exit(code)
