"""The rotation that is missing: as rows of the error, and what an angular velocity takes off them.

E is what core/task.py says; the angular velocity w of the tip is along the axes of the same frame.
A row is taken off at the rate g . w; g is the exact derivative where a row has a tolerance.
"""

from math import atan2, cos, hypot, pi, sin, sqrt, tan

from dls_ik.core.jit import inlined
from dls_ik.core.se3 import quaternion
from dls_ik.core.types import Array

VANISHING = 1e-20  # (w^2 + p^2) of a twist: half a turn about another axis, where it has no angle
SMALL = 1e-4  # [rad] below which a series is exact
FLATTEST = 0.05  # least cosine of the second Euler angle that a derivative is divided by


@inlined
def missing_rotation(in_target: bool, T_d: Array, T: Array, E: Array) -> None:
    """Write E (3, 3): R_d R^T, or R^T R_d, the same rotation along the target's axes."""
    for i in range(3):
        for j in range(3):
            E[i, j] = 0.0
            for c in range(3):
                E[i, j] += T[c, i] * T_d[c, j] if in_target else T_d[i, c] * T[j, c]


@inlined
def swing(E: Array, axis: int, out: Array) -> None:
    """Write the shortest rotation vector (3,) [rad] that takes the tip's axis to the target's.

    In the frame the target's axis a_d is a unit vector, and the tip's is a = E^T a_d. At half a
    turn it is about the next axis, one of all that are perpendicular.
    """
    u, v = (axis + 1) % 3, (axis + 2) % 3
    sine, cosine = hypot(E[axis, u], E[axis, v]), E[axis, axis]  # |a x a_d|, a . a_d
    angle = atan2(sine, cosine)
    out[axis] = 0.0
    if sine > 0.0:
        out[u], out[v] = angle * (E[axis, v] / sine), -angle * (E[axis, u] / sine)
    else:
        out[u], out[v] = angle, 0.0


@inlined
def twist(E: Array, axis: int) -> float:
    """Return the angle of E about an axis, in (-pi, pi] [rad].

    That of the factor about the axis where E is a rotation about the axis and one across it, with
    the unit quaternion (w, v) of E, w >= 0: 2 atan2(v . a, w).
    """
    w, x, y, z = quaternion(E)
    p = x if axis == 0 else y if axis == 1 else z
    if w == 0.0:
        return pi if p != 0.0 else 0.0
    return 2.0 * atan2(p, w)


@inlined
def unit(c: int) -> tuple[float, float, float]:
    """Return an axis of the frame."""
    return 1.0 if c == 0 else 0.0, 1.0 if c == 1 else 0.0, 1.0 if c == 2 else 0.0


@inlined
def twist_gradient(E: Array, axis: int) -> tuple[float, float, float]:
    """Return g of d(twist)/dt = -g . omega, omega the angular velocity of the tip in the frame.

    With dw/dt = v . omega / 2 and dv/dt = -(w omega + v x omega) / 2 it is
    g = (w^2 a + w a x v + p v) / (w^2 + p^2), p = v . a. Without an angle, g is the axis a.
    """
    w, x, y, z = quaternion(E)
    a, b, c = unit(axis)
    p, whole = a * x + b * y + c * z, w * w + x * x + y * y + z * z
    size = w * w + p * p
    if size <= VANISHING * whole:
        return a, b, c
    gx = w * w * a + w * (b * z - c * y) + p * x
    gy = w * w * b + w * (c * x - a * z) + p * y
    gz = w * w * c + w * (a * y - b * x) + p * z
    return gx / size, gy / size, gz / size


@inlined
def euler(E: Array, out: Array) -> None:
    """Write minus the angles (a, b, c) of E^T = Rx(a) Ry(b) Rz(c), the tip seen from the target."""
    out[0] = atan2(E[2, 1], E[2, 2])
    out[1] = -atan2(E[2, 0], hypot(E[0, 0], E[1, 0]))
    out[2] = atan2(E[1, 0], E[0, 0])


@inlined
def euler_gradient(angles: Array, c: int) -> tuple[float, float, float]:
    """Return g for row `c` of :func:`euler`; bounded where the first and third axis fall together.

    w = a' x + b' Rx(a) y + c' Rx(a) Ry(b) z.
    """
    a, b = -angles[0], -angles[1]
    flat = max(cos(b), FLATTEST)
    if c == 0:
        return 1.0, sin(b) / flat * sin(a), -sin(b) / flat * cos(a)
    if c == 1:
        return 0.0, cos(a), sin(a)
    return 0.0, -sin(a) / flat, cos(a) / flat


@inlined
def vector_gradient(phi: Array, c: int) -> tuple[float, float, float]:
    """Return g for the rotation vector of E: row `c` of the inverse right Jacobian of SO(3).

    I + [phi] / 2 + k [phi]^2, k = (1 - (t / 2) cot(t / 2)) / t^2, t = |phi| (Chirikjian 2012).
    """
    x, y, z = phi[0], phi[1], phi[2]
    t2 = x * x + y * y + z * z
    share = 1.0 / 12.0
    if t2 > SMALL * SMALL:
        half = 0.5 * sqrt(t2)
        share = (1.0 - half / tan(half)) / t2
    i, j, k = unit(c)
    along, stays = share * phi[c], 1.0 - share * t2
    gx = stays * i + 0.5 * (j * z - k * y) + along * x
    gy = stays * j + 0.5 * (k * x - i * z) + along * y
    gz = stays * k + 0.5 * (i * y - j * x) + along * z
    return gx, gy, gz


@inlined
def swing_gradient(E: Array, axis: int, c: int) -> tuple[float, float, float]:
    """Return g for row `c` of :func:`swing`.

    The tip's axis a = E^T b, b the target's, moves by w x a, and the swing is f(a . b) a x b with
    f(cos t) = t / sin t. At half a turn, where it has no derivative, g is the axis `c`.
    """
    a = E[axis]
    u, v = (axis + 1) % 3, (axis + 2) % 3
    sine, cosine = hypot(a[u], a[v]), a[axis]
    f, slope = 1.0, -1.0 / 3.0
    if sine > SMALL:
        t = atan2(sine, cosine)
        f, slope = t / sine, (t * cosine - sine) / sine**3
    elif cosine < 0.0:
        return unit(c)
    bx, by, bz = unit(axis)
    i, j, k = unit(c)
    sx, sy, sz = a[1] * bz - a[2] * by, a[2] * bx - a[0] * bz, a[0] * by - a[1] * bx
    s = sx if c == 0 else sy if c == 1 else sz
    p, r = -slope * s, f * cosine
    q = -f * a[c]
    return p * sx + q * bx + r * i, p * sy + q * by + r * j, p * sz + q * bz + r * k
