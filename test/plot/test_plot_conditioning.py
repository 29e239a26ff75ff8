# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Errors and conditioning over time."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import PLANAR, TWO_TIPS, WAM, arm_of, assert_good, swing, texts

from dls_ik.errors import OptionError, PoseError
from dls_ik.plot import error_and_conditioning


def drawn(figure):
    """The lines of the four panels."""
    return [panel.lines[0].get_ydata() for panel in figure.axes]


def test_panels_show_errors_and_singular_values():
    times, q = swing(WAM)
    targets = WAM.fk(q)
    targets[:, 0, 3] += 1e-3
    turn = np.eye(3) + 0.01 * np.array([[0, -1, 0], [1, 0, 0], [0, 0, 0]])
    targets[:, :3, :3] = turn @ targets[:, :3, :3]
    figure = error_and_conditioning(WAM, times, q, targets, rotation_weight=0.3)
    assert_good(figure)
    position, rotation, least, condition = drawn(figure)
    np.testing.assert_allclose(position, 1e-3)
    np.testing.assert_allclose(rotation, 0.01, rtol=1e-3)
    weights = np.array([1.0, 1.0, 1.0, 0.3, 0.3, 0.3])[:, None]
    s = np.linalg.svd(weights * WAM.jacobian(q), compute_uv=False)
    np.testing.assert_allclose(least, s[:, -1])
    np.testing.assert_allclose(condition, s[:, 0] / s[:, -1])
    assert all(panel.get_yscale() == "log" for panel in figure.axes)


def test_always_vanishing_singular_values_are_left_out():
    arm = arm_of(3)
    times, q = swing(arm)
    flat = error_and_conditioning(PLANAR, *swing(PLANAR), PLANAR.fk([0.0, 0.0]))
    _, _, least, condition = drawn(flat)
    assert np.nanmin(least) > 1e-3
    assert np.nanmax(condition) < 1e3
    assert np.nanmin(drawn(error_and_conditioning(arm, times, q, arm.fk(q[0])))[2]) > 1e-9


def test_an_exact_singularity_is_noted():
    _, q = swing(WAM)
    q[10] = 0.0  # stretched
    figure = error_and_conditioning(WAM, np.arange(50.0), q, WAM.fk(q[0]))
    assert_good(figure)
    assert texts(figure).count(" at 10 s") == 2


def test_zero_error_is_noted_and_each_tip_has_a_line():
    times, q = swing(WAM)
    figure = error_and_conditioning(WAM, times, q, WAM.fk(q))
    assert texts(figure).count("0 throughout") == 2
    assert_good(figure)
    times, q = swing(TWO_TIPS)
    figure = error_and_conditioning(TWO_TIPS, times, q, TWO_TIPS.fk(q[0]))
    assert_good(figure)
    assert [line.get_label() for line in figure.axes[0].lines] == ["E0", "E1"]


def test_bad_targets_and_weights_are_refused():
    for target, said in [
        (np.zeros((3, 4, 4)), r"\(50, 4, 4\) or \(4, 4\); got \(3, 4, 4\)"),
        (np.full((4, 4), np.nan), "must be finite"),
    ]:
        with pytest.raises(PoseError, match=said):
            error_and_conditioning(WAM, *swing(WAM), target)
    for weight in (0.0, -1.0, np.inf, np.nan):
        with pytest.raises(OptionError, match="above 0"):
            error_and_conditioning(WAM, *swing(WAM), np.eye(4), weight)
