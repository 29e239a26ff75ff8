"""Published experiments: their parts, how they run, and a registry of them by name.

The module of a paper holds its experiments, and ``EXPERIMENTS`` lists them. ``run`` fills the
report in place, settings and printed figures first, then each row as soon as it is finished: an
interrupted run keeps its finished rows. Kernel calls take less than a second, so that Ctrl-C is
noticed between them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol, TypeVar

from dls_ik.errors import DlsIkError
from dls_ik.reproduce.tables import Reproduction, ResultTable

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Item = TypeVar("Item")


class ReproductionError(DlsIkError):
    """Raised for an unknown experiment, or for a number of samples it cannot run with."""


class Progress(Protocol):
    """Shows the progress of a run."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items; an item is finished when the next one is requested."""


class NoProgress:
    """Shows nothing."""

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """Yield the items."""
        del title
        yield from items


@dataclass(frozen=True)
class Experiment:
    """One table or figure of a paper."""

    what: str  # its name on the command line
    source: str  # author and year, table or figure
    title: str  # its subject, in a line
    tables: tuple[ResultTable, ...]
    run: Callable[[Reproduction, Progress], None]  # appends each row when it is finished
    plot: Callable[[Reproduction], Figure]  # of the data so far, also of an incomplete run
    samples: int  # default
    samples_are: str  # "pairs of start and goal", "points of the path"
    least_samples: int = 1

    def about(self, report: Reproduction) -> str:
        """Describe the sample of a report in a line."""
        text = f"{report.samples} {self.samples_are}, seed {report.seed}"
        return text if report.complete else f"{text}; interrupted: only what was finished"


def reproduce(
    experiment: Experiment,
    samples: int | None = None,
    seed: int = 0,
    progress: Progress | None = None,
) -> Reproduction:
    """Run an experiment to its end; ``begin`` and ``complete`` keep the rows of a part."""
    report = begin(experiment, samples, seed)
    complete(experiment, report, progress or NoProgress())
    return report


def begin(experiment: Experiment, samples: int | None = None, seed: int = 0) -> Reproduction:
    """Return an empty report, to be completed: it keeps the finished rows after Ctrl-C.

    Raises:
        ReproductionError: fewer samples than the experiment needs.
    """
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

# Module and name of each; modules are imported on demand. In the order of the report of all.
EXPERIMENTS = {
    "table-v": ("colome_torras_table_v", "TABLE_V"),
    "figure-1": ("colome_torras_figures", "FIGURE_1"),
    "figure-2": ("colome_torras_figures", "FIGURE_2"),
    "figure-3": ("buss_kim", "FIGURE_3"),
    "figure-4": ("buss_kim", "FIGURE_4"),
    "table-4-4": ("tabaczynski", "TABLE_4_4"),
    "figures-4-5": ("deo_walker", "FIGURES_4_5"),
    "figure-6": ("deo_walker", "FIGURE_6"),
    "figure-7": ("deo_walker", "FIGURE_7"),
    "dasl": ("matos", "DASL"),
}


def experiment(what: str) -> Experiment:
    """Return the experiment of that name.

    Raises:
        ReproductionError: an unknown name; the message lists the known ones.
    """
    if what not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ReproductionError(f"unknown experiment {what!r}; known are {known}")
    module, name = EXPERIMENTS[what]
    found: Experiment = getattr(import_module(f"dls_ik.reproduce.{module}"), name)
    return found
