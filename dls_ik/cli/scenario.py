# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik scenario``: iterations of a method on the chain in a scenario file."""

from __future__ import annotations

import sys
from typing import Any

import click
import numpy as np

from dls_ik.cli import output
from dls_ik.cli.options import plugin_option, settings_option
from dls_ik.cli.terminal import stdout_console
from dls_ik.tables import print_note, print_table

EPILOG = (
    "FILE (.yaml, .json or .mat) contains the links and the start as translate and theta, or as "
    "position; the goal as end_goal; and tolerance (Tabaczynski 2005, docs/command_line.md). Exit "
    "codes: 0 goal reached, 1 goal not reached, 2 bad input."
)


@click.command(epilog=EPILOG, short_help="Run a method on the chain of a scenario file.")
@click.argument("file")
@click.option("--method", default="dls", metavar="NAME", help="Method; see dls-ik methods.")
@click.option(
    "--iterations", type=int, default=100, metavar="N", help="Maximum number of iterations."
)
@plugin_option
@settings_option
@output.json_option
def scenario(
    file: str, method: str, iterations: int, settings: dict[str, Any], as_json: bool
) -> None:
    """Run a method on the chain in FILE, and print a line for each iteration.

    A line has the number of the iteration, the rank of the Jacobian, the distance of the tip from
    the goal, and the step of each joint [rad].
    """
    from dls_ik.solver.method import parse_method
    from dls_ik.solver.options import solver_options
    from dls_ik.solver.scenario import MIN_RANK_VALUE, read_scenario, run_scenario

    given = read_scenario(file)
    if "max_iterations" in settings:
        raise click.UsageError("give the number of iterations by --iterations")
    solver_options(parse_method(method), settings)  # refuses names that are no options
    trace = run_scenario(given, method, iterations, **settings)
    steps = np.diff(trace.q, axis=0)
    if as_json:
        output.print_json(
            {
                "method": method,
                "reached": trace.is_solved,
                "iterations": len(trace.q),
                "tolerance": given.tolerance,
                "rank": trace.rank.tolist(),
                "distance": trace.distance.tolist(),
                "q": trace.q.tolist(),
            }
        )
    else:
        console = stdout_console()
        headings = ["k", "rank", "distance", *(f"d{name}" for name in given.robot.joint_names)]
        rows = []
        for k, (rank, distance) in enumerate(zip(trace.rank, trace.distance, strict=True)):
            moved = [f"{x:.4f}" for x in steps[k]] if k < len(steps) else ["-"] * steps.shape[1]
            rows.append([str(k + 1), str(rank), f"{distance:.6g}", *moved])
        print_table(console, headings, rows, left=())
        word = "reached" if trace.is_solved else "not reached"
        print_note(
            console,
            f"goal {word} within {given.tolerance:g} in {len(trace.q)} iterations by {method}; "
            f"rank: number of singular values of at least {MIN_RANK_VALUE:g}; steps in rad",
        )
    if not trace.is_solved:
        sys.exit(output.EXIT_NO_SOLUTION)
