"""Saving pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dls_ik.plot.canvas import new_figure
from dls_ik.reproduce.experiment import ReproductionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")


def check_picture(path: Path) -> None:
    """Refuse a kind of file that no picture can be saved as, and pictures without matplotlib.

    Raises:
        DlsIkError: the reason.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ReproductionError(f"a picture is one of {', '.join(SUFFIXES)}, not {path.name}")
    new_figure(1.0, 1.0)


def save_picture(path: Path, figure: Figure) -> None:
    """Save it as what its suffix says."""
    figure.savefig(path, metadata={"Date": None} if path.suffix.lower() == ".svg" else None)
