# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Leaves of trees of spheres, in a section of a bracket."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, Polygon

from dls_ik.core.types import Array
from dls_ik.scene.shapes import Mesh
from dls_ik.scene.sphere_fit import fit_spheres

OUTLINE = np.array([[0, 0], [10, 0], [10, 4], [4, 4], [4, 10], [0, 10]]) * 0.01  # [m]
HIGH = 0.05  # [m]
OUTER, INNER = "tab:blue", "tab:green"


def bracket() -> Mesh:
    """Return the outline, made a solid."""
    n = len(OUTLINE)
    low, high = (np.hstack([OUTLINE, np.full((n, 1), z)]) for z in (-HIGH / 2, HIGH / 2))
    cap = np.array([[0, 1, 2], [0, 2, 3], [0, 3, 4], [0, 4, 5]])
    i = np.arange(n)
    j = (i + 1) % n
    sides = np.vstack([np.stack([i, j, j + n], 1), np.stack([i, j + n, i + n], 1)])
    return Mesh(np.vstack([low, high]), np.vstack([cap[:, ::-1], cap + n, sides]))


def spheres() -> Figure:
    """Draw the leaves of three trees, from few to many."""
    figure = Figure(figsize=(9.0, 3.2), dpi=110)
    for axes, most in zip(figure.subplots(1, 3), (8, 32, 256), strict=True):
        tree = fit_spheres(bracket(), max_leaves=most)
        draw_leaves(axes, tree.node[tree.child < 0])
        axes.set_title(f"{most} leaves, at most {1e3 * tree.gap:.0f} mm between radii", fontsize=9)
    figure.tight_layout()
    return figure


def draw_leaves(axes: Axes, leaves: Array) -> None:
    """Draw a section through leaves (k, 5), with the outline."""
    for x, y, z, outer, inner in leaves:
        for radius, colour, filled in ((outer, OUTER, False), (inner, INNER, True)):
            if radius > abs(z):
                here = np.sqrt(radius**2 - z**2)
                alpha = min(0.15, 8.0 / len(leaves)) if filled else 0.5
                style = {"fill": filled, "color": colour, "alpha": alpha, "lw": 0.6}
                axes.add_patch(Circle((x, y), here, **style))
    axes.add_patch(Polygon(OUTLINE, fill=False, lw=1.6))
    axes.set(xlim=(-0.02, 0.13), ylim=(-0.02, 0.12), aspect="equal", xticks=[], yticks=[])
