"""The experiments by name. Their files are loaded when they are asked for."""

from importlib import import_module

from dls_ik.reproduce.experiment import Experiment, ReproductionError

ALL = "all"

# Each module has an ``EXPERIMENT``. In the order of the report of all.
EXPERIMENTS = {
    "table-v": "dls_ik.reproduce.table_v",
    "figure-1": "dls_ik.reproduce.figure_1",
    "figure-2": "dls_ik.reproduce.figure_2",
    "figure-3": "dls_ik.reproduce.figure_3",
    "figure-4": "dls_ik.reproduce.figure_4",
    "table-4-4": "dls_ik.reproduce.table_4_4",
    "figures-4-5": "dls_ik.reproduce.figures_4_5",
    "figure-6": "dls_ik.reproduce.figure_6",
    "figure-7": "dls_ik.reproduce.figure_7",
    "dasl": "dls_ik.reproduce.dasl",
}


def experiment(what: str) -> Experiment:
    """The experiment of that name.

    Raises:
        ReproductionError: there is none; the message lists those there are.
    """
    if what not in EXPERIMENTS:
        known = ", ".join(EXPERIMENTS)
        raise ReproductionError(f"unknown experiment {what!r}; known are {known}")
    found = import_module(EXPERIMENTS[what]).EXPERIMENT
    if not isinstance(found, Experiment):
        raise TypeError(f"{EXPERIMENTS[what]}.EXPERIMENT is not an Experiment")
    return found
