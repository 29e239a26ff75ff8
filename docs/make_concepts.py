# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Draw the pictures of concepts.md and collisions.md with the library's own kernels.

Run by: python docs/make_concepts.py [FOLDER [NAME...]]. The output is the same, byte by byte, for
the same matplotlib.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from concept_pictures import limits, numbers, plane, spheres
from PIL import Image

if TYPE_CHECKING:
    from matplotlib.figure import Figure

COLOURS = 200  # of a picture: a palette keeps the files small
PICTURES: dict[str, Callable[[], Figure]] = {
    "methods": numbers.methods,
    "error": plane.error,
    "singular": plane.singular,
    "laws": numbers.laws,
    "steps": numbers.steps,
    "activation": limits.activation,
    "nullspace": plane.nullspace,
    "restarts": numbers.restarts,
    "spheres": spheres.spheres,
}


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file with a palette."""
    drawn, small = io.BytesIO(), io.BytesIO()
    figure.savefig(drawn, format="png", dpi=figure.dpi)
    with Image.open(drawn) as picture:
        reduced = picture.convert("RGB").quantize(COLOURS, dither=Image.Dither.NONE)
    reduced.save(small, "png", optimize=True)
    return small.getvalue()


def main(folder: Path, names: Sequence[str] = ()) -> None:
    """Write the pictures of the given names, by default all, into a folder."""
    for name in names or PICTURES:
        (folder / f"concept_{name}.png").write_bytes(png(PICTURES[name]()))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images", sys.argv[2:])
