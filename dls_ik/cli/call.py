# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik call``: one service request to a running node, such as ik_node or move_group."""

from typing import TYPE_CHECKING, Any

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.options import (
    PAIRS_METAVAR,
    SECONDS_RANGE,
    TIMEOUT_RANGE,
    joint_values,
    text_option,
)
from dls_ik.cli.pose import ChosenPose, pose_options, warn_far_poses
from dls_ik.text import escape

if TYPE_CHECKING:
    from dls_ik.ros.client import FkAnswer, IkAnswer


@click.command(
    epilog="Exit codes: 0 found, 1 no solution or refused, 2 bad input, 3 no service or no answer.",
    short_help="Ask a running node for joint values or poses.",
)
@pose_options
@click.option(
    "--fk",
    metavar=PAIRS_METAVAR,
    multiple=True,
    callback=joint_values,
    help="Request the poses of links at these joint positions.",
)
@text_option("--frame", help="Frame of the pose. Default: the root of the robot.")
@text_option("--link", help="Link of the pose. Default: the tip.")
@click.option(
    "--seed",
    metavar=PAIRS_METAVAR,
    multiple=True,
    callback=joint_values,
    help="Start configuration; may be repeated.",
)
@text_option("--group", help="Group of joints. Default: the server's.")
@click.option(
    "--timeout", type=TIMEOUT_RANGE, default=0.0, show_default=False, help="Solve timeout [s]."
)
@click.option(
    "--avoid-collisions",
    is_flag=True,
    help="Find joint positions that are collision-free in the server's scene.",
)
@click.option("--service", default=None, help="Default: compute_ik, or compute_fk with --fk.")
@click.option(
    "--patience", type=SECONDS_RANGE, default=5.0, help="Timeout to find the service [s]."
)
@output.json_option
def call(
    pose: ChosenPose,
    fk: dict[str, float],
    seed: dict[str, float],
    service: str | None,
    patience: float,
    as_json: bool,
    **request: Any,
) -> None:
    """Request joint positions for a pose, or link poses with --fk, from a running node."""
    if (pose.T is None) == (not fk):
        raise click.UsageError("give either --xyz (with --rpy or --quat), or --matrix, or --fk")
    if pose.T is not None:
        warn_far_poses("the pose", pose.T)
    with output.ros_imports():
        from dls_ik.ros.client import IkClient
        from dls_ik.ros.client.connection import NOT_THERE
    names = {"fk" if fk else "ik": service} if service else {}
    try:
        with IkClient(patience=patience, **names) as client:
            if pose.T is None:
                links = [request["link"]] if request["link"] else []
                _print_fk(client.fk(fk, links, frame=request["frame"]), as_json)
            else:
                _print_ik(client.solve(pose.T, seed or None, **request), as_json)
    except NOT_THERE as error:
        output.exit_with(str(error), output.EXIT_MISSING)


def _print_ik(answer: "IkAnswer", as_json: bool) -> None:
    """Print the joint positions in the response of an inverse kinematics service."""
    width = max(map(len, answer.q), default=0)
    lines = [f"{escape(name):{width}} {value: .6f}" for name, value in answer.q.items()]
    _print_answer(answer, {"joints": answer.q}, lines if answer.success else [], as_json)


def _print_fk(answer: "FkAnswer", as_json: bool) -> None:
    """Print the link poses in the response of a forward kinematics service."""
    lines = [
        f"{escape(link)} in {escape(answer.frame)}\n"
        f"{np.array2string(T, precision=6, suppress_small=True)}"
        for link, T in answer.poses.items()
    ]
    _print_answer(answer, {"frame": answer.frame, "poses": answer.poses}, lines, as_json)


def _print_answer(
    answer: "IkAnswer | FkAnswer", found: dict[str, Any], lines: list[str], as_json: bool
) -> None:
    """Print the response of a service; exit with code 1 if the request failed.

    Args:
        answer: Response of the service.
        found: Content of the response for JSON.
        lines: Content of the response as text.
        as_json: Whether to print JSON instead of text.
    """
    if as_json:
        about = {"success": answer.success, "code": answer.code, "message": answer.message}
        output.print_json({**about, **found})
    else:
        for line in lines:
            click.echo(line)
    if not answer.success:
        reason = answer.message or "no message"
        output.exit_with(f"code {answer.code}: {reason}", output.EXIT_NO_SOLUTION)
    click.echo(escape(answer.message) or "found", err=True)
