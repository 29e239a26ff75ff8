"""Which environments there are: the rows of the table."""

from __future__ import annotations

from typing import NamedTuple

PYTHONS = ("3.10", "3.11", "3.12", "3.13")  # the classifiers of setup.py
# For each Python the oldest numba that the metadata allow, and the oldest numpy that it takes.
OLDEST = {
    "3.10": ("0.59.0", "1.22.0"),
    "3.11": ("0.59.0", "1.23.2"),
    "3.12": ("0.59.0", "1.26.0"),
    "3.13": ("0.61.0", "2.1.0"),
}
OLDEST_OTHERS = ("click==8.0.0", "rich==12.0.0")  # as the metadata allow, for every Python
NUMPY_1 = "1.26.4"  # the last of its major version
WITHOUT_NUMPY_1 = ("3.13",)  # it came later
ROS_PYTHONS = ("3.12", "3.11", "3.10", "3.13")  # that of the distributions, or else the next
DISTRIBUTIONS = ("kilted", "jazzy")


class Row(NamedTuple):
    """One environment."""

    name: str
    pythons: tuple[str, ...]  # the first that is found is taken
    artefact: str = "wheel"  # or sdist
    pins: tuple[str, ...] = ()  # requirements beside the metadata's
    ros: str = ""  # distribution whose wheels are installed
    impossible: str = ""  # why nobody can run it

    @property
    def asked(self) -> str:
        """What is installed, for the table."""
        return ", ".join(self.pins) or "newest numba and numpy"


def rows() -> list[Row]:
    """Every row, in the order of the table."""
    found = []
    for python in PYTHONS:
        numba, numpy = OLDEST[python]
        oldest = (f"numba=={numba}", f"numpy=={numpy}", *OLDEST_OTHERS)
        reason = f"no wheel of numpy {NUMPY_1} for Python {python}"
        found += [
            Row(f"{python}-oldest", (python,), "wheel", oldest),
            Row(
                f"{python}-numpy1",
                (python,),
                "wheel",
                (f"numpy=={NUMPY_1}",),
                impossible=reason if python in WITHOUT_NUMPY_1 else "",
            ),
            Row(f"{python}-newest", (python,), "sdist"),
        ]
    return found + [Row(f"ros-{each}", ROS_PYTHONS, ros=each) for each in DISTRIBUTIONS]


def chosen(patterns: list[str]) -> list[Row]:
    """Rows whose names hold one of the patterns, or are one; all without patterns.

    Raises:
        ValueError: for a pattern that no row has.
    """
    every = rows()
    for pattern in patterns:
        if not any(pattern in row.name for row in every):
            names = ", ".join(row.name for row in every)
            raise ValueError(f"no row has {pattern!r} in its name; there are {names}")
    return [row for row in every if not patterns or any(p in row.name for p in patterns)]
