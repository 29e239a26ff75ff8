"""The oracle beside closed forms worked out by hand: error and step bounds."""

from types import SimpleNamespace

import numpy as np
import oracle_bounds as bounds
from bare import diagonal, step_of


def test_step_bounds():
    e = [0.3, 3.0, -4.0]
    np.testing.assert_allclose(diagonal("max", [1, 1, 1], e, largest_change=2.0),
                               [0.15, 1.5, -2.0])  # fmt: skip
    np.testing.assert_allclose(diagonal("norm", [3, 1, 1], [0, 3, -4], Delta=0.5), [0, 0.3, -0.4])


def test_selective_damping():
    """Each of three directions, worth 1 each, is cut at gamma, and the whole in its 2-norm."""
    cut = np.array([0.3, 0.5, -0.5])
    dq = diagonal("sd", [3.0, 2.0, 1.0], [0.9, 6.0, -4.0])
    np.testing.assert_allclose(dq, 0.5 * cut / np.linalg.norm(cut))
    dq = diagonal("sd", [3.0, 2.0, 1.0], [0.9, 6.0, -4.0], bug_compatible=True)
    cut[2] = -4.0  # its largest component, signed, is 0
    np.testing.assert_allclose(dq, 0.5 * cut / np.linalg.norm(cut))


def test_selective_damping_where_joints_cancel():
    """v = (1, -1) / sqrt 2 and M = 1: its largest component is cut at gamma, the whole in its norm.

    Where the column that says how far a joint moves the tip is 4, M is 4 and gamma a quarter.
    """
    dq = step_of("sd", [[0.01, -0.01]], [1.0], gamma_max=0.4)
    np.testing.assert_allclose(dq, np.array([0.4, -0.4]) / np.sqrt(2.0))
    P, J = np.array([[1.0], [0.0]]), np.array([[0.5, 4.0]])
    o = SimpleNamespace(gamma_max=0.4, bug_compatible=False)
    moved = bounds.selectively_damped(P, J, np.zeros(2), np.array([9.0]), o, 8.0 * J)
    np.testing.assert_allclose(moved, [0.1, 0.0])  # M = 4


def test_sdls():
    """Two groups of one row each, u = (1, 1) / sqrt 2: N = sqrt 2. M is 2 * sqrt 2 / s * s / 2.

    Softly, the one direction ends below gamma_max, and the whole is left as it is.
    """
    J = np.array([[1.0, 0.0], [1.0, 0.0]])
    one = {"groups": [0, 0], "gamma_max": 0.4}
    two = {"groups": [0, 1], "gamma_max": 0.4}
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], **one), [0.4, 0.0])  # N = M = 1
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], **two), [0.4, 0.0])  # N = M = sqrt 2
    soft = step_of("sdls", J, [3.0, 3.0], soft=True, **two)
    np.testing.assert_allclose(soft, [0.4 * 3.0 / 3.4, 0.0])
    np.testing.assert_allclose(step_of("sdls", J, [3.0, 3.0], slides=[0], **two), [3.0, 0.0])


def test_sdls_where_joints_work_against_each_other():
    """P = (1, 1) for a J whose columns are 2 and 3 long: M = 5, N = 1, gamma = 0.08."""
    o = SimpleNamespace(gamma_max=0.4, soft=False)
    P, J = np.array([[1.0], [1.0]]), np.array([[-2.0, 3.0]])
    still = np.zeros(2)
    dq = bounds.sdls(P, J, still, np.array([1.0]), o, J, np.zeros(1), np.zeros(2, bool))
    np.testing.assert_allclose(dq, [0.08, 0.08])
    dq = bounds.sdls(P, J, still, np.array([1.0]), o, J, np.zeros(1), np.array([True, False]))
    np.testing.assert_allclose(dq, [1.0, 0.08])


def test_clamp():
    o = SimpleNamespace(D_max=1.0, adaptive=False, bug_compatible=False)
    e, groups = np.array([3.0, 4.0, 0.6, 0.0]), np.array([0, 0, 1, 1])
    np.testing.assert_allclose(bounds.clamped(o, e, groups, None, e), [0.6, 0.8, 0.6, 0.0])
    o.adaptive = True
    np.testing.assert_allclose(bounds.clamped(o, e, groups, None, e), e)
    last = np.array([0.0, 4.5, 9.0, 0.0])  # moved away by 0.5, and nearer
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), [0.9, 1.2, 0.6, 0.0])


def test_clamp_by_the_published_slip():
    """Group 1 of two positions looks at components 1 to 3 of the last error, not 3 to 5."""
    o = SimpleNamespace(D_max=1.0, adaptive=True, bug_compatible=True)
    e, groups = np.array([0.0, 0, 0, 5.0, 0, 0]), np.array([0, 0, 0, 1, 1, 1])
    last = np.array([0.0, 2.0, 0, 2.0, 0, 5.0])
    expected = [0, 0, 0, 1.0 + 5.0 - np.sqrt(8.0), 0, 0]
    np.testing.assert_allclose(bounds.clamped(o, e, groups, last, e), expected)


def test_halve():
    """What is out of reach of J = [1 0]^T, 0.4, is halved until it is within 0.15: twice."""
    J = np.array([[1.0], [0.0]])
    o = SimpleNamespace(halving=0.15)
    np.testing.assert_allclose(bounds.halved(o, np.array([2.0, 0.4]), J), [0.5, 0.1])
