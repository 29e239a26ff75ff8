"""Which bounds refuse most: guessed from random configurations and random poses.

A guess that is wrong costs power, not rigour: what is chosen is bounded properly afterwards.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.elements import Elements, end_axes, poses, rigid
from dls_ik.model.forms import Form, value

SAMPLES = 3000
AT_END = 0.15  # share of the joints that stand at an end of their range
ROOM = 1.1  # of the box in which the tip was seen
STRETCH = 1.3
SIDES = 10  # at most
SAME = 1e-9  # of a form's scale: a number that no configuration changes
LEAST = 0.001  # share of the poses that a side must add


def telling_sides(
    elements: Elements, forms: Sequence[Form], plain: int
) -> list[tuple[int, tuple[bool, bool]]]:
    """Which forms to bound, most telling first, and whether from below and from above.

    Of the first so many, the plain ones, those that have one value only are all among them: random
    poses cannot tell which of them say the same, and they are what keeps a planar arm to its plane.
    """
    rng = np.random.default_rng(0)
    reached = poses(elements, _shares(elements, rng, AT_END))[1]
    asked = np.concatenate([_anywhere(reached, rng), _stretched(elements, rng)])
    refused, constant = [], []
    for form in forms:
        seen, numbers = value(form, reached), value(form, asked)
        spread = seen.max() - seen.min()
        margin = 1e-3 * spread + SAME * form.scale
        refused += [numbers < seen.min() - margin, numbers > seen.max() + margin]
        constant += 2 * [bool(spread < SAME * form.scale)]
    sides = _greedy(np.array(refused)) + np.flatnonzero(constant[: 2 * plain]).tolist()
    order = dict.fromkeys(side // 2 for side in sides)
    return [(i, (2 * i in sides, 2 * i + 1 in sides)) for i in order]


def _shares(elements: Elements, rng: np.random.Generator, at_end: float) -> Array:
    """Configurations (b, m) as shares of the ranges; so many of the joints at an end."""
    shares = rng.uniform(size=(SAMPLES, len(elements.prismatic)))
    rounded = rng.uniform(size=shares.shape) < at_end
    return np.asarray(np.where(rounded, np.round(shares), shares))


def _anywhere(reached: Array, rng: np.random.Generator) -> Array:
    """Poses (b, 4, 4) anywhere in the box about others, turned in any way."""
    low, high = reached[:, :3, 3].min(0), reached[:, :3, 3].max(0)
    Q, upper = np.linalg.qr(rng.normal(size=(len(reached), 3, 3)))
    Q *= np.sign(np.diagonal(upper, axis1=1, axis2=2))[:, None]
    Q[:, :, 0] *= np.linalg.det(Q)[:, None]
    shares = rng.uniform(-0.5 * ROOM, 0.5 * ROOM, (len(Q), 3))
    return rigid(Q, 0.5 * (low + high) + shares * (high - low))


def _stretched(elements: Elements, rng: np.random.Generator) -> Array:
    """Poses (b, 4, 4) of the arm without its limits and longer: of a planar arm in its plane."""
    widened = np.where(elements.prismatic, elements.upper - elements.lower, np.inf)
    lower, upper = elements.lower - 0.5 * widened, elements.upper + 0.5 * widened
    free = elements._replace(lower=lower, upper=upper)
    T = poses(free, _shares(elements, rng, 0.0))[1]
    b = end_axes(elements)[0][1]
    stretch = rng.uniform(1.0, STRETCH, (len(T), 1))
    return rigid(T[:, :3, :3], b + stretch * (T[:, :3, 3] - b))


def _greedy(refused: NDArray[np.bool_]) -> list[int]:
    """Sides in the order of how many poses they refuse that none before does.

    Args:
        refused: (sides, poses).
    """
    left = np.ones(refused.shape[1], np.bool_)
    sides: list[int] = []
    while len(sides) < SIDES:
        counts = (refused & left).sum(1)
        side = int(counts.argmax())
        if counts[side] <= LEAST * len(left):
            break
        sides.append(side)
        left &= ~refused[side]
    return sides
