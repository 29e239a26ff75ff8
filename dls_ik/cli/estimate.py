"""How much a map is, how far it is, and how long the rest takes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from dls_ik.reachability.settings import Job

ENOUGH = 8  # chunks that tell how long the others take: they come in random order
LONG = 60.0  # [s] that are worth a line


class Estimate:
    """Hears of finished chunks; says on stderr what is asked for and, if it is long, how long."""

    def __init__(self, job: Job, out: str) -> None:
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
