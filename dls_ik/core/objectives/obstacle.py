"""Keep the links away from a point: H = 1/2 sum over links of max(0, 1 - d / influence)^2.

d is the distance of the obstacle from a link: the segment between the origins of two consecutive
elements of a path, or from the last origin to the tip. A push on the nearest point of each link, as
in Maciejewski & Klein 1985. Links shared by several paths count once in each.
"""

from math import sqrt

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.types import Array, Chain

NAME = "obstacle"


@kernel
def gradient(
    chain: Chain, obstacle: Array, influence: float, axes: Array, T: Array, out: Array
) -> float:
    """Write grad H (n,); return H.

    Args:
        obstacle: (3,) [m], influence: [m].
        axes: (m, 2, 3), T: (k, 3, 4) from :func:`dls_ik.core.kinematics.forward`.
    """
    out.fill(0.0)
    H = 0.0
    near, push = np.empty(3), np.empty(3)
    for p in range(T.shape[0]):
        first, last = chain.first[p], chain.first[p + 1]
        for k in range(first, last):
            end = axes[k + 1, 1] if k + 1 < last else T[p, :, 3]
            along = _nearest(axes[k, 1], end, obstacle, near)
            depth = _push(near, obstacle, influence, push)
            if depth > 0.0:
                H += 0.5 * depth * depth
                _add_slopes(chain, axes, first, k, along, near, push, out)
    return H


@kernel
def _nearest(start: Array, end: Array, point: Array, near: Array) -> float:
    """Write the point of a segment nearest to `point`; return where it is, 0 to 1; (3,) each."""
    length2, along = 0.0, 0.0
    for i in range(3):
        length2 += (end[i] - start[i]) ** 2
        along += (end[i] - start[i]) * (point[i] - start[i])
    along = min(max(along / length2, 0.0), 1.0) if length2 > 0.0 else 0.0
    for i in range(3):
        near[i] = start[i] + along * (end[i] - start[i])
    return along


@kernel
def _push(near: Array, obstacle: Array, influence: float, push: Array) -> float:
    """Write the derivative of a link's term by its nearest point (3,); return 1 - d / influence.

    On the obstacle itself there is no way that leads away, and no push.
    """
    d2 = 0.0
    for i in range(3):
        d2 += (near[i] - obstacle[i]) ** 2
    d = sqrt(d2)
    depth = 1.0 - d / influence
    for i in range(3):
        push[i] = -depth / influence * (near[i] - obstacle[i]) / d if d > 0.0 else 0.0
    return depth


@kernel
def _add_slopes(
    chain: Chain,
    axes: Array,
    first: int,
    last: int,
    along: float,
    near: Array,
    push: Array,
    out: Array,
) -> None:
    """Add push . d near / dq for the elements from `first` to `last`, which moves the link.

    How far along the link the nearest point lies makes no difference to first order. The origin of
    an element is where it slides from: sliding moves only the far end of its own link.
    """
    for k in range(first, last + 1):
        z, origin = axes[k, 0], axes[k, 1]
        x, y, w = near[0] - origin[0], near[1] - origin[1], near[2] - origin[2]
        if chain.prismatic[k]:
            slope = push[0] * z[0] + push[1] * z[1] + push[2] * z[2]
            if k == last:
                slope *= along
        else:
            slope = push[0] * (z[1] * w - z[2] * y)
            slope += push[1] * (z[2] * x - z[0] * w)
            slope += push[2] * (z[0] * y - z[1] * x)
        out[chain.variable[k]] += chain.scale[k] * slope
