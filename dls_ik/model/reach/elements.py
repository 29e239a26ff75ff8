"""One path of a chain by itself: transforms, and the range of every element."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain
from dls_ik.model.joint import FARTHEST
from dls_ik.model.rotations import inverse

PARALLEL = 1e-9  # squared sine of the angle between axes
TURN = 2.0 * np.pi


class Elements(NamedTuple):
    """m elements, each free within its own range, whatever else its variable drives."""

    fixed: Array  # (m + 1, 4, 4) before, between and after
    prismatic: NDArray[np.bool_]  # (m,)
    lower: Array  # (m,) [rad or m]
    upper: Array  # (m,)

    @property
    def length(self) -> float:
        """How far the tip can be from the base at most [m], not sharply."""
        slides = np.maximum(np.abs(self.lower), np.abs(self.upper))[self.prismatic]
        slides = slides[np.isfinite(slides)]
        return float(np.linalg.norm(self.fixed[:, :3, 3], axis=1).sum() + slides.sum())

    def scaled(self, factor: float) -> "Elements":
        """The same with all lengths multiplied."""
        fixed = self.fixed.copy()
        fixed[:, :3, 3] *= factor
        factors = np.where(self.prismatic, factor, 1.0)
        return Elements(fixed, self.prismatic, self.lower * factors, self.upper * factors)

    def split(self, k: int) -> tuple["Elements", "Elements"]:
        """Down to the frame of element k, and from there on."""
        _, prismatic, lower, upper = self
        fixed = np.concatenate([np.eye(4)[None], self.fixed[k + 1 :]])
        before = Elements(self.fixed[: k + 1], prismatic[:k], lower[:k], upper[:k])
        return before, Elements(fixed, prismatic[k:], lower[k:], upper[k:])


def elements_of(chain: Chain, tip: int) -> Elements:
    """The path to a tip, each element free within the limits of the variable that drives it.

    Without any where a limit is so far away that lengths would be lost beside it.
    """
    start, stop = chain.first[tip : tip + 2]
    path = slice(start, stop)
    fixed = chain.fixed[start + tip : stop + tip + 1]
    ends = np.stack([chain.lower, chain.upper])[:, chain.variable[path]]
    ends = chain.scale[path] * ends + chain.offset[path]
    far = (np.abs(ends) > FARTHEST).any(axis=0)
    ends[0, far], ends[1, far] = -np.inf, np.inf
    fixed = rigid(fixed[:, :, :3], fixed[:, :, 3])
    return Elements(fixed, chain.prismatic[path], ends.min(0), ends.max(0))


def rigid(rotations: Array, positions: Array) -> Array:
    """Transforms (b, 4, 4) from (b, 3, 3) and (b, 3)."""
    T = np.zeros((len(positions), 4, 4))
    T[:, :3, :3], T[:, :3, 3], T[:, 3, 3] = rotations, positions, 1.0
    return T


def motions(prismatic: bool, values: Array) -> Array:
    """The transforms (..., 4, 4) of an element at its values (...)."""
    T = np.zeros((*values.shape, 4, 4))
    T[..., range(4), range(4)] = 1.0
    if prismatic:
        T[..., 2, 3] = values
    else:
        T[..., 0, 0] = T[..., 1, 1] = np.cos(values)
        T[..., 1, 0] = np.sin(values)
        T[..., 0, 1] = -T[..., 1, 0]
    return T


def poses(elements: Elements, shares: Array) -> Array:
    """The last element's frame in the first one's and the tip in the base.

    Args:
        shares: (b, m) 0 to 1, from the lower to the upper end of each range.

    Returns:
        (2, b, 4, 4).
    """
    known = np.isfinite(elements.lower) & np.isfinite(elements.upper)
    lower = np.where(known, elements.lower, -0.5 * TURN)
    values = lower + shares * (np.where(known, elements.upper, 0.5 * TURN) - lower)
    T = np.broadcast_to(np.eye(4), (len(shares), 4, 4))
    inner = T
    for k, slides in enumerate(elements.prismatic):
        inner = T
        T = T @ motions(bool(slides), values[:, k]) @ elements.fixed[k + 1]
    return np.stack([inner, elements.fixed[0] @ T])


def end_axes(elements: Elements) -> tuple[Array, Array]:
    """The first axis in the base frame and the last one in the tip's: (2, 3) direction and point.

    The points are where these axes come nearest to the ones next to them, so that all the axes that
    meet in a shoulder or a wrist meet there; where parallel axes leave it open, one is beside the
    other in the middle of the ranges.
    """
    before, after = elements.fixed[0], inverse(elements.fixed[-1])
    b = t = None
    if len(elements.prismatic) > 1:
        b = _nearest_to(elements.fixed[1])
        t = _nearest_to(inverse(elements.fixed[-2]))
    home = poses(elements, np.full((1, len(elements.prismatic)), 0.5))[0, 0]
    if t is None:
        t = float((inverse(home) @ [0.0, 0.0, b or 0.0, 1.0])[2])
    if b is None:
        b = float((home @ [0.0, 0.0, t, 1.0])[2])
    first = np.array([before[:3, 2], before[:3, 3] + b * before[:3, 2]])
    return first, np.array([after[:3, 2], after[:3, 3] + t * after[:3, 2]])


def _nearest_to(T: Array) -> float | None:
    """Where on z the z axis of a frame T (4, 4) comes nearest; None where it is parallel."""
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return None if sine2 < PARALLEL else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)
