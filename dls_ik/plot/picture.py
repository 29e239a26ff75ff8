"""The figure of all pictures: a notebook shows it as the last line of a cell, without more."""

import io
from typing import Any

from matplotlib.figure import Figure
from PIL import Image

SHOWN_DPI, COLOURS = 90, 200  # in a notebook: small, since it is kept with its pictures


class Picture(Figure):
    """A figure of matplotlib that draws itself where it is shown."""

    def _repr_png_(self, **_: Any) -> bytes:
        """Return a PNG file with a palette, for notebooks."""
        drawn, small = io.BytesIO(), io.BytesIO()
        self.savefig(drawn, format="png", dpi=SHOWN_DPI)
        with Image.open(drawn) as image:
            reduced = image.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
        reduced.save(small, "png", optimize=True)
        return small.getvalue()
