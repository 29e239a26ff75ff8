"""Saving pictures, the same bytes each time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dls_ik.errors import DlsIkError
from dls_ik.plot.canvas import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
_DATES = {".svg": "Date", ".pdf": "CreationDate"}


def check_picture(path: Path) -> None:
    """Refuse a kind of file that no picture can be saved as, and pictures without matplotlib.

    Raises:
        DlsIkError: the reason.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise DlsIkError(f"a picture is one of {', '.join(SUFFIXES)}, not {path.name}")
    new_figure(1.0, 1.0)


def save_picture(path: Path, figure: Figure, dpi: int = 150) -> None:
    """Save it as what its suffix says.

    Raises:
        DlsIkError: as :func:`check_picture`.
    """
    import matplotlib as mpl

    check_picture(path)
    date = _DATES.get(path.suffix.lower())
    with mpl.rc_context({"svg.hashsalt": "dls_ik"}):  # names of the parts of an SVG
        figure.savefig(path, dpi=dpi, metadata={date: None} if date else None)
