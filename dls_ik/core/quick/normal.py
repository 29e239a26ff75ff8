"""The damped normal equations of six rows, written out."""

from dls_ik.core.inverse import LEAST_PIVOT
from dls_ik.core.jit import inlined
from dls_ik.core.types import Array


@inlined
def solve_normal(J: Array, h: Array, e: Array, lambda2: float, y: Array) -> bool:
    """Solve (J J^T + lambda^2 I) y = e by a factorisation L D L^T.

    The 21 entries are numbers of their own, so that they stay in registers: a third of the time
    that loops over an array take. The right side is eliminated along with the rows.

    Args:
        J: (n, 6) columns of the Jacobian; those with h (n,) not zero are left out.
        e: (6,), y: (6,) out.

    Returns:
        False where a pivot is too small, relative to the largest entry of the diagonal.
    """
    a00 = a11 = a22 = a33 = a44 = a55 = lambda2
    a10 = a20 = a21 = a30 = a31 = a32 = a40 = a41 = a42 = a43 = 0.0
    a50 = a51 = a52 = a53 = a54 = 0.0
    for j in range(J.shape[0]):
        if h[j] != 0.0:
            continue
        c0, c1, c2, c3, c4, c5 = J[j, 0], J[j, 1], J[j, 2], J[j, 3], J[j, 4], J[j, 5]
        a00 += c0 * c0
        a10, a11 = a10 + c1 * c0, a11 + c1 * c1
        a20, a21, a22 = a20 + c2 * c0, a21 + c2 * c1, a22 + c2 * c2
        a30, a31, a32, a33 = a30 + c3 * c0, a31 + c3 * c1, a32 + c3 * c2, a33 + c3 * c3
        a40, a41, a42 = a40 + c4 * c0, a41 + c4 * c1, a42 + c4 * c2
        a43, a44 = a43 + c4 * c3, a44 + c4 * c4
        a50, a51, a52 = a50 + c5 * c0, a51 + c5 * c1, a52 + c5 * c2
        a53, a54, a55 = a53 + c5 * c3, a54 + c5 * c4, a55 + c5 * c5
    b0, b1, b2, b3, b4, b5 = e[0], e[1], e[2], e[3], e[4], e[5]
    least = LEAST_PIVOT * max(a00, a11, a22, a33, a44, a55)

    if not a00 > least:
        return False
    d0 = 1.0 / a00
    l10, l20, l30, l40, l50 = a10 * d0, a20 * d0, a30 * d0, a40 * d0, a50 * d0
    a11 -= l10 * a10
    a21, a22 = a21 - l20 * a10, a22 - l20 * a20
    a31, a32, a33 = a31 - l30 * a10, a32 - l30 * a20, a33 - l30 * a30
    a41, a42, a43, a44 = a41 - l40 * a10, a42 - l40 * a20, a43 - l40 * a30, a44 - l40 * a40
    a51, a52, a53 = a51 - l50 * a10, a52 - l50 * a20, a53 - l50 * a30
    a54, a55 = a54 - l50 * a40, a55 - l50 * a50
    b1, b2, b3, b4, b5 = b1 - l10 * b0, b2 - l20 * b0, b3 - l30 * b0, b4 - l40 * b0, b5 - l50 * b0

    if not a11 > least:
        return False
    d1 = 1.0 / a11
    l21, l31, l41, l51 = a21 * d1, a31 * d1, a41 * d1, a51 * d1
    a22 -= l21 * a21
    a32, a33 = a32 - l31 * a21, a33 - l31 * a31
    a42, a43, a44 = a42 - l41 * a21, a43 - l41 * a31, a44 - l41 * a41
    a52, a53, a54, a55 = a52 - l51 * a21, a53 - l51 * a31, a54 - l51 * a41, a55 - l51 * a51
    b2, b3, b4, b5 = b2 - l21 * b1, b3 - l31 * b1, b4 - l41 * b1, b5 - l51 * b1

    if not a22 > least:
        return False
    d2 = 1.0 / a22
    l32, l42, l52 = a32 * d2, a42 * d2, a52 * d2
    a33 -= l32 * a32
    a43, a44 = a43 - l42 * a32, a44 - l42 * a42
    a53, a54, a55 = a53 - l52 * a32, a54 - l52 * a42, a55 - l52 * a52
    b3, b4, b5 = b3 - l32 * b2, b4 - l42 * b2, b5 - l52 * b2

    if not a33 > least:
        return False
    d3 = 1.0 / a33
    l43, l53 = a43 * d3, a53 * d3
    a44 -= l43 * a43
    a54, a55 = a54 - l53 * a43, a55 - l53 * a53
    b4, b5 = b4 - l43 * b3, b5 - l53 * b3

    if not a44 > least:
        return False
    d4 = 1.0 / a44
    l54 = a54 * d4
    a55 -= l54 * a54
    b5 -= l54 * b4
    if not a55 > least:
        return False

    y5 = b5 / a55
    y4 = b4 * d4 - l54 * y5
    y3 = b3 * d3 - l43 * y4 - l53 * y5
    y2 = b2 * d2 - l32 * y3 - l42 * y4 - l52 * y5
    y1 = b1 * d1 - l21 * y2 - l31 * y3 - l41 * y4 - l51 * y5
    y0 = b0 * d0 - l10 * y1 - l20 * y2 - l30 * y3 - l40 * y4 - l50 * y5
    y[0], y[1], y[2], y[3], y[4], y[5] = y0, y1, y2, y3, y4, y5
    return True
