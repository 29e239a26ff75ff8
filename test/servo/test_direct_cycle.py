# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A cycle by one call of a kernel equals a cycle of separate calls."""

import numpy as np
import pytest
from drive import BENT, WAM

from dls_ik.servo import Controller

DT = 0.01


def targets(rng, count):
    """Yield poses of a moving target that jumps, rests and leaves the workspace."""
    q, goal = BENT.copy(), BENT
    for k in range(count):
        if k % 40 == 0:
            goal = BENT + rng.uniform(-0.5, 0.5, WAM.n)
        q = q + 0.03 * (goal - q)
        T = WAM.fk(q)
        if 60 <= k < 80:
            T[:3, 3] *= 1.5
        yield T


def commands(controller, whole):
    """Return all fields of the outputs as rows of numbers, after a start outside a limit."""
    start = BENT.copy()
    start[3] = WAM.upper[3] + 0.05
    controller.seed(start)
    rows = []
    for k, T in enumerate(targets(np.random.default_rng(5), 160)):
        if k < 120 or k % 3 == 0:
            controller.follow_pose(T, k * DT)
        if k == 140:
            controller.stop()
        out = controller.cycle(k * DT, DT)
        assert (controller._tracker._direct is not None) == whole
        errors = out.position_error, out.rotation_error, out.least_singular_value, out.condition
        rows.append([*out.q, *out.velocity, *out.limit_activation, *errors, out.state.code])
    return np.array(rows)


@pytest.mark.parametrize("method", [None, "auto", "sns", "jc+ed"])
@pytest.mark.parametrize("limits", [{}, {"acceleration": 5.0}, {"acceleration": 5.0, "scale": 0.5}])
def test_one_call_equals_separate_calls(method, limits):
    one = commands(Controller(WAM, method, when_stuck="hold", **limits), True)
    controller = Controller(WAM, method, when_stuck="hold", **limits)
    controller._tracker._direct = None
    separate = commands(controller, False)
    np.testing.assert_allclose(one, separate, atol=1e-12, rtol=1e-9, equal_nan=True)


def test_methods_with_a_bound_that_changes_use_separate_calls():
    assert Controller(WAM, "odls")._tracker._direct is None
