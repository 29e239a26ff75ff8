"""``dls-ik call``: one request to a running node, this package's or move_group."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli.exits import MISSING, NO_SOLUTION, leave
from dls_ik.cli.joints import PAIRS, joint_values
from dls_ik.cli.output import json_option, print_json
from dls_ik.cli.pose import FORMS, doubt_distance, given_pose, pose_options
from dls_ik.text import escape

if TYPE_CHECKING:
    from dls_ik.ros.client import FkAnswer, IkAnswer, IkClient


@click.command(
    epilog="Exit codes: 0 found, 1 no solution or refused, 2 bad input, 3 no service or no answer.",
    short_help="Ask a running node for joint values or poses.",
)
@pose_options
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
@json_option
def call(
    fk: dict[str, float],
    seed: dict[str, float],
    service: str | None,
    patience: float,
    as_json: bool,
    **request: Any,
) -> None:
    """Ask a running node for joint values of a pose, or with --fk for the pose of a link."""
    pose = given_pose(**{form: request.pop(form) for form in FORMS})
    if (pose is None) == (not fk):
        raise click.UsageError("give either --xyz, with --rpy or --quat, or --matrix, or --fk")
    if pose is not None:
        doubt_distance("the pose", pose)
    try:
        from dls_ik.ros.client import IkClient
        from dls_ik.ros.client.connection import NOT_THERE
    except ImportError as error:
        leave(f"ROS 2 is not here: {error.name or error} is missing", MISSING)
    names = {"fk" if fk else "ik": service} if service else {}
    try:
        with IkClient(patience=patience, **names) as client:
            if pose is None:
                _show_fk(_asked_fk(client, fk, request), as_json)
            else:
                _show_ik(client.solve(pose, seed or None, **request), as_json)
    except NOT_THERE as error:
        leave(str(error), MISSING)


def _asked_fk(client: "IkClient", q: Mapping[str, float], request: dict[str, Any]) -> "FkAnswer":
    links = [request["link"]] if request["link"] else []
    return client.fk(q or None, links, frame=request["frame"])


def _show_ik(answer: "IkAnswer", as_json: bool) -> None:
    if as_json:
        _print_json(answer, {"joints": answer.q})
    elif answer.success:
        width = max(map(len, answer.q), default=0)
        for name, value in answer.q.items():
            click.echo(f"{escape(name):{width}} {value: .6f}")
    _end(answer)


def _show_fk(answer: "FkAnswer", as_json: bool) -> None:
    if as_json:
        poses = {link: T.tolist() for link, T in answer.poses.items()}
        _print_json(answer, {"frame": answer.frame, "poses": poses})
    else:
        for link, T in answer.poses.items():
            rows = np.array2string(T, precision=6, suppress_small=True)
            click.echo(f"{escape(link)} in {escape(answer.frame)}\n{rows}")
    _end(answer)


def _print_json(answer: "IkAnswer | FkAnswer", found: dict[str, Any]) -> None:
    about = {"success": answer.success, "code": answer.code, "message": answer.message}
    print_json({**about, **found})


def _end(answer: "IkAnswer | FkAnswer") -> None:
    if answer.success:
        click.echo(escape(answer.message) or "found", err=True)
    else:
        leave(f"code {answer.code}: {answer.message or 'no words to it'}", NO_SOLUTION)
