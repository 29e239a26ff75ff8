# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik reachability``: map of the share of poses that an arm reaches in each voxel."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import click

from dls_ik.cli import output
from dls_ik.cli.options import ROBOT_HELP, ChosenRobot, ChosenScene, robot_options, scene_options
from dls_ik.cli.terminal import ChunkProgress, ProgressBars
from dls_ik.reachability.settings import (
    MAP_TASKS,
    MAP_TOLERANCE,
    ORIENTATIONS,
    RESOLUTION,
    RESTARTS,
)
from dls_ik.text import json_text

if TYPE_CHECKING:
    from dls_ik.reachability import ReachabilityMap
    from dls_ik.reachability.settings import MapJob

EPILOG = (
    f"{ROBOT_HELP} The same command continues an interrupted map: finished chunks are kept in "
    "FILE.parts. docs/reachability.md describes the computation, and clusters."
)
NO_CHUNK_MESSAGE = "no chunk was finished"


@click.command(epilog=EPILOG, short_help="Map what an arm reaches.")
@robot_options
@click.option("--resolution", type=float, default=RESOLUTION, help="Edge length of a voxel [m].")
@click.option(
    "--orientations",
    type=int,
    help=f"Number of orientations per voxel, evenly spread.  [default: {ORIENTATIONS}]",
)
@click.option(
    "--region",
    nargs=6,
    type=float,
    metavar="X0 X1 Y0 Y1 Z0 Z1",
    help="Box to map, in the base frame [m]; equal bounds: one layer.  [default: the arm's reach]",
)
@click.option(
    "--task",
    type=click.Choice(MAP_TASKS),
    default=MAP_TASKS[0],
    help="Target: the pose, the tool's z axis with any rotation about it, or the position.",
)
@click.option("--tolerance", type=float, default=MAP_TOLERANCE, help="Allowed error [m, rad].")
@click.option(
    "--restarts", type=int, default=RESTARTS, help="Attempts before a pose counts as unreachable."
)
@click.option("--seed", type=int, default=0, help="Seed of the restarts.")
@scene_options
@click.option(
    "--out",
    "out_path",
    metavar="FILE",
    help="File of the map: .npz, or .zarr with zarr.  [default: ROBOT-reachability.npz]",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Dask cluster to use, such as tcp://10.0.0.1:8786."
)
@output.plot_option("the map")
@click.option(
    "--show",
    type=click.Choice(["index", "manipulability", "collisions"]),
    default="index",
    help="Quantity in the picture.",
)
@click.option(
    "--json", "json_path", metavar="FILE", help="Write the summary to FILE; - for stdout."
)
def reachability(
    chosen: ChosenRobot,
    around: ChosenScene,
    restarts: int,
    seed: int,
    out_path: str | None,
    scheduler: str | None,
    plot: str | None,
    show: str,
    json_path: str | None,
    **settings: Any,
) -> None:
    """Map the poses that an arm reaches: per voxel, the share of orientations and the dexterity."""
    output.check_outputs(json_path, plot=plot)
    from dls_ik.reachability.settings import new_job

    robot = chosen.read()
    scene = around.read(robot)
    if show == "collisions" and scene is None:
        raise click.UsageError("--show collisions needs a map with --srdf or --scene")
    job = new_job(robot, max_restarts=restarts, random_seed=seed, scene=scene, **settings)
    out = out_path or re.sub(r"[^\w.-]+", "_", job.settings.robot) + "-reachability.npz"
    found = _compute(job, out, scheduler)
    summary = {**found.summary(), "map": out}
    if json_path != output.STDOUT:
        _print_summary(summary, scene is not None)
    if json_path is not None:
        output.write_text(json_path, json_text(summary) + "\n")
    if plot is not None:
        from dls_ik.reachability.picture import map_picture

        output.save_plot(plot, map_picture(found, show, scene))


def _compute(job: MapJob, out: str, scheduler: str | None) -> ReachabilityMap:
    """Compute a map; after Ctrl-C, exit with a message that explains how to continue."""
    from dls_ik.reachability.compute import compute

    bars = ProgressBars()
    settings = job.settings
    about = f"{settings.robot}: {settings.grid.size} voxels, {settings.poses} poses"
    progress = ChunkProgress(about, bars)
    try:
        with bars:
            return compute(job, out, scheduler, progress)
    except KeyboardInterrupt:
        kept = f"{progress.done} of {job.settings.chunks} chunks are kept in {out}.parts"
        words = f"{kept}; the same command continues the map"
        output.exit_interrupted(f"interrupted; {words if progress.done else NO_CHUNK_MESSAGE}")


def _print_summary(summary: dict[str, Any], has_scene: bool) -> None:
    """Print the totals of a map."""
    voxels = f"{summary['voxels_reached']} of {summary['voxels']} voxels"
    click.echo(f"reached       {summary['volume']:.4g} m3 in {voxels}")
    click.echo(f"poses         {summary['poses_reached']} of {summary['poses']}")
    click.echo(f"mean index    {100.0 * summary['mean_index']:.1f} % in reached voxels")
    click.echo(f"largest index {100.0 * summary['largest_index']:.1f} %")
    if has_scene:
        lost, every = summary["poses_only_in_collision"], summary["voxels_only_in_collision"]
        share = lost / max(lost + summary["poses_reached"], 1)
        click.echo(f"collisions    exclude {share:.1%}: {lost} poses, {every} entire voxels")
    click.echo(f"map           {summary['map']}")
