"""Published experiments: what one consists of, how it runs, and all of them by name.

The module of a paper holds its experiments, and ``EXPERIMENTS`` lists them. ``run`` fills the
report in place, settings and printed figures first, then a row as soon as it is finished: whoever
interrupts it has the rows up to there. Kernel calls stay below a second, so that Ctrl-C is heard
between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeVar

from dls_ik.errors import DlsIkError
from dls_ik.reproduce.report import Reproduction, Table

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


ALL = "all"

# Module and name of each, imported when it is asked for. In the order of the report of all.
EXPERIMENTS = {
    "table-v": ("colome_torras_table_v", "TABLE_V"),
    "figure-1": ("colome_torras_laws", "FIGURE_1"),
    "figure-2": ("colome_torras_laws", "FIGURE_2"),
    "figure-3": ("buss_kim", "FIGURE_3"),
    "figure-4": ("buss_kim", "FIGURE_4"),
    "table-4-4": ("tabaczynski", "TABLE_4_4"),
    "figures-4-5": ("deo_walker", "FIGURES_4_5"),
    "figure-6": ("deo_walker", "FIGURE_6"),
    "figure-7": ("deo_walker", "FIGURE_7"),
    "dasl": ("matos", "DASL"),
}


def experiment(what: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ReproductionError: there is none; the message lists those there are.
    """
    if what not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ReproductionError(f"unknown experiment {what!r}; known are {known}")
    module, name = EXPERIMENTS[what]
    found = getattr(import_module(f"dls_ik.reproduce.{module}"), name)
    if not isinstance(found, Experiment):
        raise TypeError(f"{module}.{name} is not an Experiment")
    return found
