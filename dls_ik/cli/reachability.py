"""``dls-ik reachability``: a map of what an arm reaches."""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console

from dls_ik.cli.exits import INTERRUPTED
from dls_ik.cli.options import find_robot, robot_options
from dls_ik.cli.output import STDOUT, check_writable, write_whole
from dls_ik.cli.terminal import Bars
from dls_ik.plot import check_picture, save_picture
from dls_ik.reachability.grid import ORIENTATIONS, RESOLUTION, RESTARTS, TASKS, TOLERANCE

if TYPE_CHECKING:
    from dls_ik.reachability import ReachabilityMap
    from dls_ik.reachability.settings import MapJob

EPILOG = (
    "An interrupted map is gone on with by the same command: finished chunks are kept in "
    "FILE.parts. docs/reachability.md says what is computed, and how to use a cluster."
)
ENOUGH = 8  # chunks that tell how long the others take: they come in random order
LONG = 60.0  # [s] that are worth a line


@click.command(epilog=EPILOG, short_help="Map what an arm reaches.")
@robot_options
@click.option(
    "--resolution",
    type=float,
    default=RESOLUTION,
    show_default=True,
    help="Edge of a voxel [m].",
)
@click.option(
    "--orientations",
    type=int,
    help=f"How many to try in each voxel, spread evenly.  [default: {ORIENTATIONS}]",
)
@click.option(
    "--region",
    nargs=6,
    type=float,
    metavar="X0 X1 Y0 Y1 Z0 Z1",
    help="Box to map, in the base frame [m]; equal ends: one layer.  [default: the arm's reach]",
)
@click.option(
    "--task",
    type=click.Choice(TASKS),
    default=TASKS[0],
    show_default=True,
    help="What counts: all, the tool's z axis with any turn about it, or the position alone.",
)
@click.option(
    "--tolerance",
    type=float,
    default=TOLERANCE,
    show_default=True,
    help="Position and rotation error allowed [m, rad].",
)
@click.option(
    "--restarts",
    type=int,
    default=RESTARTS,
    show_default=True,
    help="After so many a pose counts as not reached.",
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of the random restarts.")
@click.option(
    "--out",
    "out_path",
    metavar="FILE",
    help="The map: .npz, or .zarr with zarr.  [default: ROBOT-reachability.npz]",
)
@click.option(
    "--scheduler", metavar="ADDRESS", help="Dask cluster to compute on, as tcp://10.0.0.1:8786."
)
@click.option("--plot", "plot_path", metavar="FILE", help="Draw it there: .png, .svg or .pdf.")
@click.option(
    "--show",
    type=click.Choice(["index", "manipulability"]),
    default="index",
    show_default=True,
    help="What the picture shows.",
)
@click.option("--json", "json_path", metavar="FILE", help="Write the summary there; - for stdout.")
def reachability(
    robot: str,
    out_path: str | None,
    scheduler: str | None,
    plot_path: str | None,
    show: str,
    json_path: str | None,
    **asked: Any,
) -> None:
    """Map what an arm reaches: in each voxel, the share of orientations, and how well it moves.

    ROBOT is wam, puma560, planar_2r, a URDF, xacro or DH file (.yaml), or package://NAME/PATH.
    """
    _check_outputs(plot_path, json_path)
    job = _job(robot, **asked)
    out = out_path or re.sub(r"[^\w.-]+", "_", job.settings.robot) + "-reachability.npz"
    found = _compute(job, out, scheduler)
    summary = {**found.summary(), "map": out}
    if json_path != STDOUT:
        _show_summary(summary)
    if json_path is not None:
        _write_json(json_path, summary)
    if plot_path is not None:
        _write_picture(plot_path, found, show)


def _check_outputs(plot_path: str | None, json_path: str | None) -> None:
    """Refuse before the work begins what could not be written after it."""
    if plot_path is not None:
        check_picture(Path(plot_path))
    if plot_path == STDOUT:
        raise click.UsageError("only --json can write to standard output")
    check_writable([path for path in (plot_path, json_path) if path is not None])


def _job(
    robot: str, base: str | None, tip: str | None, restarts: int, seed: int, **asked: Any
) -> MapJob:
    from dls_ik.reachability.settings import new_job

    return new_job(find_robot(robot, base, tip), max_restarts=restarts, random_seed=seed, **asked)


def _compute(job: MapJob, out: str, scheduler: str | None) -> ReachabilityMap:
    """Compute the map, or say how to go on after Ctrl-C."""
    from dls_ik.reachability.map import compute

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a script's background job ignores it
    estimate = Estimate(job, out)
    try:
        with Bars(Console(stderr=True)) as bars:
            estimate.show_in(bars.counter("chunks"))
            return compute(job, out, scheduler, estimate)
    except KeyboardInterrupt:
        click.echo(f"dls-ik: {estimate.interrupted()}", err=True)
        sys.exit(INTERRUPTED)


def _show_summary(summary: dict[str, Any]) -> None:
    volume = (
        f"{summary['volume']:.4g} m3 in {summary['voxels_reached']} of {summary['voxels']} voxels"
    )
    click.echo(f"reached       {volume}")
    click.echo(f"poses         {summary['poses_reached']} of {summary['poses']}")
    click.echo(f"mean index    {100.0 * summary['mean_index']:.1f} % where anything is reached")
    click.echo(f"largest index {100.0 * summary['largest_index']:.1f} %")
    click.echo(f"map           {summary['map']}")


def _write_json(path: str, summary: dict[str, Any]) -> None:
    text = json.dumps(summary, indent=2)
    if path == STDOUT:
        click.echo(text)
    else:
        write_whole(path, lambda part: part.write_text(text + "\n", encoding="utf-8"))


def _write_picture(path: str, found: ReachabilityMap, show: str) -> None:
    from dls_ik.reachability.picture import map_picture

    write_whole(path, lambda part: save_picture(part, map_picture(found, show)))
    click.echo(f"picture: {path}", err=True)


class Estimate:
    """Hears of finished chunks; says on stderr what is asked for and, if it is long, how long."""

    def __init__(self, job: MapJob, out: str) -> None:
        self._settings, self._out = job.settings, out
        self._bar: Callable[[int, int], None] = lambda done, total: None
        self._first: int | None = None  # chunks there were at the start
        self._begin = time.monotonic()
        self._done = 0

    def show_in(self, bar: Callable[[int, int], None]) -> None:
        """Pass everything on to a bar."""
        self._bar = bar

    def __call__(self, done: int, total: int) -> None:
        """So many of all chunks are finished."""
        self._done = done
        self._bar(done, total)
        if self._first is None:
            self._first, self._begin = done, time.monotonic()
            click.echo(self._size(done, total), err=True)
        elif done - self._first == ENOUGH:
            self._say_time(total)

    def interrupted(self) -> str:
        """What is kept, and how to go on."""
        if self._done == 0:
            return "interrupted; no chunk was finished yet"
        return (
            f"interrupted; {self._done} of {self._settings.chunks} chunks are kept in "
            f"{self._out}.parts: the same command goes on from there"
        )

    def _size(self, done: int, total: int) -> str:
        settings = self._settings
        there = f", {done} of them there already" if done else ""
        return (
            f"{settings.robot}: {settings.grid.size} voxels, {settings.poses} poses in {total} "
            f"chunk{'s' if total > 1 else ''}{there}"
        )

    def _say_time(self, total: int) -> None:
        seconds = (time.monotonic() - self._begin) / ENOUGH * (total - self._done)
        if seconds > LONG:
            click.echo(f"about {_duration(seconds)} to go", err=True)


def _duration(seconds: float) -> str:
    for unit, size in (("days", 86400.0), ("h", 3600.0)):
        if seconds >= 2.0 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds / 60.0:.0f} min"
