"""One cycle of a command that goes after a reference within all limits of the joints.

A joint that has moved at v for dt must still be able to stop before its position limit, d away:
v dt + v^2 / (2 A) <= d. A command for which that holds can go on so for ever, whatever the times
between later cycles are, because a joint that brakes in steps needs less way than one that brakes
continuously. So each cycle leaves an interval of velocities for each joint, never empty, in which
the command is kept, wherever the reference goes.
"""

import math

import numpy as np

from dls_ik.core.jit import kernel, spliced
from dls_ik.core.types import Array, Chain


@kernel
def advance(
    chain: Chain, acceleration: Array, q_r: Array, v_r: Array, dt: float, q: Array, v: Array
) -> None:
    """Move `q` (n,) by one cycle of `dt` [s] toward a reference, in place, with its velocity `v`.

    The joints come near to the reference at the same time, so that the way to one that stands is
    straight; the change of the velocity is scaled as a whole to the limits of acceleration.

    Args:
        acceleration: (n,) limits [rad/s^2 or m/s^2], infinite where there is none.
        q_r: (n,) reference at the end of the cycle [rad or m].
        v_r: (n,) its velocity [rad/s or m/s].
        v: (n,) in: velocity of the cycle before, out: of this one.
    """
    n = q.shape[0]
    wanted = np.empty(n)
    share = 1.0
    for j in range(n):
        d = abs(q_r[j] - q[j] - v_r[j] * dt)
        closing = _closing_speed(d, acceleration[j], dt)
        if d * share > closing * dt:
            share = closing * dt / d
    scale = 1.0
    for j in range(n):
        wanted[j] = v_r[j] + share * ((q_r[j] - q[j]) / dt - v_r[j])
        if abs(wanted[j]) * scale > chain.velocity[j]:
            scale = chain.velocity[j] / abs(wanted[j])
    for j in range(n):
        wanted[j] *= scale
    _accelerate(chain, acceleration, wanted, dt, q, v)


@kernel
def brake(chain: Chain, acceleration: Array, dt: float, q: Array, v: Array) -> None:
    """Move `q` by one cycle of slowing down: straight on, until the velocity `v` is zero."""
    _accelerate(chain, acceleration, np.zeros(q.shape[0]), dt, q, v)


@kernel
def stopping_point(chain: Chain, acceleration: Array, q: Array, v: Array, q_s: Array) -> None:
    """Write where the joints stand (n,) when each has slowed down as fast as it may."""
    for j in range(q.shape[0]):
        way = 0.5 * v[j] * abs(v[j]) / acceleration[j]
        lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
        q_s[j] = min(max(q[j] + way, lower), upper)


@spliced
def _accelerate(
    chain: Chain, acceleration: Array, wanted: Array, dt: float, q: Array, v: Array
) -> None:
    """Change `v` toward the velocity wanted, as far as the limits let it, and move `q`."""
    n = q.shape[0]
    share = 1.0
    for j in range(n):
        change = abs(wanted[j] - v[j])
        if change * share > acceleration[j] * dt:
            share = acceleration[j] * dt / change
    for j in range(n):
        most = acceleration[j] * dt
        up = _stopping_speed(chain.upper[j] - q[j], acceleration[j], dt)
        down = _stopping_speed(q[j] - chain.lower[j], acceleration[j], dt)
        speed = v[j] + share * (wanted[j] - v[j])
        speed = min(max(speed, -chain.velocity[j], -down), chain.velocity[j], up)
        speed = min(max(speed, v[j] - most), v[j] + most)
        lower, upper = min(chain.lower[j], q[j]), max(chain.upper[j], q[j])
        after = q[j] + speed * dt
        if after < lower or after > upper:
            after = min(max(after, lower), upper)
            speed = (after - q[j]) / dt
        q[j], v[j] = after, speed


@spliced
def _stopping_speed(d: float, A: float, dt: float) -> float:
    """The largest v with v dt + v^2 / (2 A) <= d; zero beyond the limit."""
    if d <= 0.0:
        return 0.0
    if math.isinf(A):
        return d / dt
    a = A * dt
    return 2.0 * A * d / (math.sqrt(a * a + 2.0 * A * d) + a)


@spliced
def _closing_speed(d: float, A: float, dt: float) -> float:
    """The largest speed relative to a reference d away that does not lead past it.

    Such a speed leaves room to slow down, or ends at the reference and is gone in the next cycle.
    """
    return max(_stopping_speed(d, A, dt), min(d / dt, A * dt))
