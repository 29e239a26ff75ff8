"""Targets out of reach, or too fast to follow: the arm does what it can and stays calm."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive

from dls_ik import IkSolver
from dls_ik.servo import ServoState

pytestmark = pytest.mark.slow


def far_targets(rng, count):
    for T in WAM.fk(WAM.random(rng, count)):
        T[:3, 3] *= rng.uniform(1.2, 5.0) / np.linalg.norm(T[:3, 3])
        yield T


def size(position, rotation, weight):
    return np.hypot(position, weight * rotation)


@pytest.mark.parametrize("limits", [{}, {"acceleration": 8.0}])
def test_goes_to_the_nearest_point_and_is_still(limits):
    rng = np.random.default_rng(51)
    for T in far_targets(rng, 5):
        drive = Drive(WAM.random(rng), **limits).pose(T)
        drive.run(20.0)
        assert drive.last.state is ServoState.UNREACHABLE
        assert np.ptp(drive.q[-200:], axis=0).max() == 0.0
        drive.assert_limits(**limits)
        solver = IkSolver(WAM, max_restarts=500, timeout=60.0)
        best = solver.solve(T, drive.last.q)
        weight = solver.options.rotation_weight
        here = size(drive.last.position_error, drive.last.rotation_error, weight)
        assert here <= 1.12 * size(best.position_error, best.rotation_error, weight) + 1e-3


def test_leaves_at_once_when_the_target_comes_back():
    drive = Drive(BENT, acceleration=20.0)
    T_far = WAM.fk(BENT)
    T_far[:3, 3] *= 3.0
    drive.pose(T_far).run(20.0)
    assert drive.last.state is ServoState.UNREACHABLE
    here = drive.last.q
    drive.pose(WAM.fk(BENT)).run(0.05)
    assert np.abs(drive.last.q - here).max() > 1e-3
    assert drive.run_until(ServoState.REACHED, 20.0)


def test_a_target_out_of_reach_that_moves_does_not_make_it_wild():
    drive = Drive(BENT, acceleration=20.0)
    T = WAM.fk(BENT)

    def each(drive):
        T_d = T.copy()
        T_d[:3, 3] = 1.4 * np.cos(drive.now / 2), 1.4 * np.sin(drive.now / 2), 0.5
        drive.pose(T_d)

    drive.run(10.0, each)
    drive.assert_limits(20.0)
    speed = np.abs([out.velocity for out in drive.outputs])
    assert np.quantile(speed, 0.95) < 1.9


def eight(drive, rate):
    """A figure of eight about the tip's pose at BENT, once in 2 pi / rate [s]."""
    T = WAM.fk(BENT)
    T[1, 3] += 0.15 * np.sin(rate * drive.now)
    T[2, 3] += 0.1 * np.sin(2 * rate * drive.now)
    drive.pose(T)


@pytest.mark.parametrize("rate", [12.0, 120.0])
@pytest.mark.parametrize("limits", [{}, {"acceleration": 8.0}])
def test_too_fast_a_target_breaks_no_limit_and_is_calm_after(limits, rate):
    drive = Drive(BENT, **limits)
    drive.run(5.0, lambda drive: eight(drive, rate))
    drive.pose(WAM.fk(BENT))
    for _ in range(500):
        drive.run(0.01)
        drive.pose(WAM.fk(BENT))
    drive.assert_limits(**limits)
    assert drive.last.state is ServoState.REACHED
    assert np.ptp(drive.q[-50:], axis=0).max() == 0.0
