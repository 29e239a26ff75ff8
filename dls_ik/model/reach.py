"""Which numbers of a pose to bound for a robot, and their bounds: once a robot."""

import numpy as np

from dls_ik.core.reach_bounds import Reach
from dls_ik.core.types import Array, Chain
from dls_ik.model.extremes import Elements, extremes
from dls_ik.model.forms import Form, alignment, height, mutual_moment, squared_distance
from dls_ik.model.rigid import inverse, rotation_about, transform

PARALLEL = 1e-9  # squared sine of the angle between axes
APART = 0.3  # of the arm's length: between points on one axis


def build_reach(chain: Chain, tip: int = 0, position_only: bool = False) -> Reach:
    """Bounds that every configuration within the limits satisfies, of one tip.

    Args:
        tip: Which of the chain's tips.
        position_only: Nothing is said about rotations: only the tip's own point counts.
    """
    elements = elements_of(chain, tip)
    first, last = end_axes(elements)
    length = elements.length
    steps = APART * length * np.array([0.0, -1.0, 1.0])
    bases = first[1] + steps[:, None] * first[0]
    tips = np.zeros((1, 3)) if position_only else last[1] + steps[:, None] * last[0]
    b, t = (np.repeat(bases, len(tips), 0), np.tile(tips, (len(bases), 1)))
    squared = [bounds(elements, squared_distance(*pair, length)) for pair in zip(b, t, strict=True)]
    frame = elements.fixed[0, :3, :3]
    n = np.concatenate([np.repeat(frame[:, 2:].T, len(tips), 0), frame[:, :2].T])
    p = np.concatenate([tips, tips[:1], tips[:1]])
    heights = [bounds(elements, height(*pair, length)) for pair in zip(n, p, strict=True)]
    cosine = moment = np.array([-np.inf, np.inf])
    if not position_only:
        cosine = bounds(elements, alignment(first[0], last[0]))
        moment = bounds(elements, mutual_moment(first, last, length))
    distance = np.sqrt(np.maximum(squared, 0.0))
    return Reach(b, t, distance, n, p, np.array(heights), first, last, cosine, moment)


def bounds(elements: Elements, form: Form) -> Array:
    """The (2,) least and largest value, infinite where too many joints matter."""
    found = extremes(elements, form)
    return np.array([-np.inf, np.inf] if found is None else found)


def elements_of(chain: Chain, tip: int) -> Elements:
    """The path to a tip, each element free within the limits of the variable that drives it."""
    start, stop = chain.first[tip : tip + 2]
    path = slice(start, stop)
    fixed = np.zeros((stop - start + 1, 4, 4))
    fixed[:, :3] = chain.fixed[start + tip : stop + tip + 1]
    fixed[:, 3, 3] = 1.0
    ends = np.stack([chain.lower, chain.upper])[:, chain.variable[path]]
    ends = chain.scale[path] * ends + chain.offset[path]
    return Elements(fixed, chain.prismatic[path], ends.min(0), ends.max(0))


def end_axes(elements: Elements) -> tuple[Array, Array]:
    """The first axis in the base frame and the last one in the tip's: (2, 3) direction and point.

    The points are where these axes come nearest to the ones next to them, so that all the axes that
    meet in a shoulder or a wrist meet there.
    """
    before, after = elements.fixed[0], inverse(elements.fixed[-1])
    b = nearest_to_next(elements.fixed[1]) if len(elements.prismatic) > 1 else None
    t = nearest_to_next(inverse(elements.fixed[-2])) if len(elements.prismatic) > 1 else None
    at = home(elements)
    if t is None:
        t = 0.0 if b is None else float((inverse(at) @ [0.0, 0.0, b, 1.0])[2])
    if b is None:
        b = float((at @ [0.0, 0.0, t, 1.0])[2])
    first = np.array([before[:3, 2], before[:3, 3] + b * before[:3, 2]])
    return first, np.array([after[:3, 2], after[:3, 3] + t * after[:3, 2]])


def nearest_to_next(T: Array) -> float | None:
    """Where on z the z axis of frame T comes nearest; None where it is parallel.

    Args:
        T: (4, 4) in the frame whose z it is.
    """
    u, o = T[:3, 2], T[:3, 3]
    sine2 = u[:2] @ u[:2]
    return None if sine2 < PARALLEL else float(o[2] - u[2] * (u[:2] @ o[:2]) / sine2)


def home(elements: Elements) -> Array:
    """The last element's frame in the first one's (4, 4), all joints midway in their ranges."""
    T = np.eye(4)
    middle = 0.5 * (elements.lower + elements.upper)
    for k, value in enumerate(np.where(np.isfinite(middle), middle, 0.0)[:-1]):
        z = np.array([0.0, 0.0, 1.0])
        slides = elements.prismatic[k]
        T = T @ (transform(None, value * z) if slides else transform(rotation_about(z, value)))
        T = T @ elements.fixed[k + 1]
    return T
