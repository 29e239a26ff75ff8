"""What an experiment is: where it is published, how it runs, what it shows.

A file of this folder holds one and ends in ``EXPERIMENT = Experiment(...)``; ``registry`` lists the
files. ``run`` fills the report in place, settings and printed figures first, then a row as soon as
it is finished: whoever interrupts it has the rows up to there. Kernel calls stay below a second, so
that Ctrl-C is heard between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

from dls_ik.exceptions import DlsIkError
from dls_ik.reproduce.report import Reproduction
from dls_ik.reproduce.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")


class ReproductionError(DlsIkError):
    """An experiment that is unknown, or asked for what it cannot do."""


class Progress(Protocol):
    """Who is told how far a run has come."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items one by one; an item is done when the next one is asked for."""


class Silence:
    """Nobody is told."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items one by one."""
        del title
        yield from items


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper."""

    what: str  # its name on the command line
    source: str  # author and year, table or figure
    title: str  # what it shows, in a line
    tables: tuple[Table, ...]  # how its rows are shown
    run: Callable[[Reproduction, Progress], None]  # appends to rows what is finished
    plot: Callable[[Reproduction], Figure]  # of what is there, also of a part
    samples: int  # when none are asked for
    samples_are: str  # "pairs of start and goal", "points of the path"
    least_samples: int = 1

    def about(self, report: Reproduction) -> str:
        """What a report rests on, in a line."""
        text = f"{report.samples} {self.samples_are}, seed {report.seed}"
        return text if report.complete else f"{text}; interrupted: only what was finished"


def reproduce(
    experiment: Experiment,
    samples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Reproduction:
    """Run an experiment to its end, all or nothing; ``begin`` and ``complete`` keep a part."""
    report = begin(experiment, samples, seed)
    complete(experiment, report, progress or Silence())
    return report


def begin(experiment: Experiment, samples: int | None = None, seed: int = 0) -> Reproduction:
    """An empty report, to be completed: whoever holds it has what was finished at Ctrl-C."""
    count = experiment.samples if samples is None else samples
    if count < experiment.least_samples:
        raise ReproductionError(
            f"{experiment.what} needs {experiment.least_samples} or more samples "
            f"({experiment.samples_are}), not {count}"
        )
    return Reproduction(experiment.what, count, seed)


def complete(experiment: Experiment, report: Reproduction, progress: Progress) -> None:
    """Run the experiment into the report."""
    experiment.run(report, progress)
    report.complete = True
