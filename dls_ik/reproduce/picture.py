"""Saving pictures of what was reproduced."""

from pathlib import Path

from dls_ik.plot import saving
from dls_ik.plot.saving import save_picture
from dls_ik.reproduce.experiment import ReproductionError

__all__ = ["check_picture", "save_picture"]


def check_picture(path: Path) -> None:
    """As :func:`dls_ik.plot.check_picture`, but a suffix is refused with a ReproductionError."""
    saving.check_picture(path, ReproductionError)
