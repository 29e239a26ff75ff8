"""The colours of the page: one for each arm, and three for how near a limit is."""

import numpy as np

from dls_ik.viewer.shapes import Colour

FIRST: Colour = (37, 99, 235)  # the arm of the first method, in plots and legend
SECOND: Colour = (234, 88, 12)  # the second one's ghost too
ARMS = (FIRST, SECOND)
GREEN: Colour = (22, 163, 74)
AMBER: Colour = (245, 158, 11)
RED: Colour = (220, 38, 38)
NEAR, AT = 0.15, 0.05  # share of the range that is left to the limit next to it


def css(colour: Colour) -> str:
    """As a style sheet has it."""
    return f"rgb{colour}"


def room(q: float, lower: float, upper: float) -> float:
    """What share of its range a joint is away from the limit next to it, from 0 to 0.5.

    0 beyond a limit; 0.5 for a joint that lacks a limit.
    """
    width = upper - lower
    if not np.isfinite(width):
        return 0.5
    if width <= 0.0:
        return 0.0
    return float(np.clip(min(q - lower, upper - q) / width, 0.0, 0.5))


def limit_colour(share: float) -> Colour:
    """Green with room, amber near a limit, red at it; for a share as of :func:`room`."""
    if share < AT:
        return RED
    return AMBER if share < NEAR else GREEN
