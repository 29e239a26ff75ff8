# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Polynomials between timed joint positions, and the timing of joint paths."""

import numpy as np
import pytest

from dls_ik import IkSolver, PlanningScene, RobotModel
from dls_ik.scene.joint_paths import path_pairs
from dls_ik.servo.joint_motion import MotionLimits, TimedPath
from dls_ik.servo.joint_spline import JointSpline
from dls_ik.servo.spline_timing import time_dense_path, time_segments

WAM = RobotModel.wam()
HOME = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
TIMES = np.array([0.0, 0.4, 1.0, 1.7])
LIMITS = MotionLimits(WAM.velocity, np.full(7, 5.0), np.full(7, np.inf))


def random_points(seed, m=4, n=7):
    rng = np.random.default_rng(seed)
    return [rng.uniform(-1.0, 1.0, (m, n)) for _ in range(3)]


@pytest.mark.parametrize("has_accelerations", [False, True])
def test_polynomials_pass_all_points_and_have_the_given_derivatives(has_accelerations):
    q, v, a = random_points(0)
    spline = JointSpline(TIMES, q, v, a if has_accelerations else None)
    for k, t in enumerate(TIMES[:-1].tolist()):
        found = spline.at(t)
        np.testing.assert_allclose(found[0], q[k], atol=1e-12)
        np.testing.assert_allclose(found[1], v[k], atol=1e-12)
        before = spline.at(t - 1e-9) if k else found
        np.testing.assert_allclose(before[0], q[k], atol=1e-6)
        if has_accelerations:
            np.testing.assert_allclose(found[2], a[k], atol=1e-9)
    np.testing.assert_allclose(spline.at(9.0)[0], q[-1])


def test_derivatives_equal_finite_differences():
    spline = JointSpline(TIMES, *random_points(1))
    h = 1e-6
    for t in (0.1, 0.7, 1.3):
        (q0, v0, _), (q1, v1, _), (_, v, a) = spline.at(t - h), spline.at(t + h), spline.at(t)
        np.testing.assert_allclose((q1 - q0) / (2 * h), v, atol=1e-6)
        np.testing.assert_allclose((v1 - v0) / (2 * h), a, atol=1e-4)


def test_positions_alone_are_joined_without_overshoot_from_rest_to_rest():
    q = np.array([[0.0], [0.1], [0.9], [0.9], [0.2]])
    spline = JointSpline(np.array([0.0, 1.0, 2.0, 3.0, 4.0]), q)
    path = np.array([spline.at(t)[0] for t in np.linspace(0.0, 4.0, 401)])
    assert -1e-12 < path.min() < path.max() < 0.9 + 1e-12
    assert (np.diff(path[:201, 0]) > -1e-12).all()
    assert spline.at(0.0)[1] == spline.at(3.999999)[1].round(4) == 0.0


def test_peaks_and_positions_outside_limits_are_found_between_points():
    q = np.array([[0.0], [1.0]])
    spline = JointSpline(np.array([0.0, 2.0]), q)  # cubic: peak velocity 1.5 / 2, acceleration 6/4
    velocity, acceleration = spline.peaks(np.array([0.5]), np.array([1.0]))
    assert (velocity.value, velocity.time) == (pytest.approx(0.75), pytest.approx(1.0))
    assert acceleration.ratio == pytest.approx(1.5)
    assert spline.stretched(2.0).peaks(np.array([0.5]), np.array([1.0]))[0].ratio == pytest.approx(
        0.75
    )
    assert spline.outside(np.array([-1.0]), np.array([2.0])) is None
    joint, value, time = spline.outside(np.array([-1.0]), np.array([0.5]))
    assert (joint, 0.5 < value < 1.0, 0.5 < time <= 2.0) == (0, True, True)


def test_contact_is_found_exactly_where_the_arm_would_touch_an_object():
    scene = PlanningScene(WAM)
    goal = HOME.copy()
    goal[0] = 0.8
    spline = JointSpline(np.array([0.0, 2.0]), np.array([HOME, goal]))
    assert spline.contact(path_pairs(scene.snapshot), 0.01) is None
    scene.add_box("post", [0.1, 0.1, 0.1], WAM.fk(0.5 * (HOME + goal))[:3, 3])
    time, names = spline.contact(path_pairs(scene.snapshot), 0.01)
    assert "post" in names
    assert 0.0 < time < 1.0
    assert not scene.in_collision(spline.at(time)[0])


@pytest.mark.parametrize("jerk", [np.inf, 40.0])
def test_points_of_a_timed_path_are_knots_of_cubics(jerk):
    limits = LIMITS._replace(jerk=np.full(7, jerk))
    corner = HOME + np.array([0.5, 0.1, 0.0, 0.0, 0.0, 0.2, 0.0])
    path = np.array([HOME, corner, corner + 0.2, HOME])
    timed, spline = TimedPath(path, limits), time_segments(path, limits)
    assert spline.duration == pytest.approx(timed.duration)
    for t in np.linspace(0.0, timed.duration, 200):
        np.testing.assert_allclose(spline.at(t)[0], timed.at(t), atol=1e-9)
    velocity, acceleration = spline.peaks(limits.velocity, limits.acceleration)
    assert max(velocity.ratio, acceleration.ratio) < 1.0 + 1e-9


def test_points_less_than_two_microseconds_apart_keep_limits_when_times_are_rounded():
    """Formerly rounded times raised accelerations in short intervals: plans were refused."""
    path = np.array([
        [-0.02838322824077277, -0.7562530218826877],
        [0.0923729378727236, 0.8530701184408076],
        [0.00350993226248764, -0.8718185133035481],
    ])  # fmt: skip
    limits = MotionLimits(np.full(2, 1.5), np.full(2, 1.2), np.full(2, np.inf))
    spline = time_segments(path, limits)
    times = np.round(spline.times, 9)  # rounded to nanoseconds
    velocity, acceleration = JointSpline(times, spline.q, spline.v).peaks(
        limits.velocity, limits.acceleration
    )
    assert max(velocity.ratio, acceleration.ratio) < 1.0 + 1e-9
    assert times[-1] == spline.duration


def test_dense_path_along_a_line_is_fast_within_limits_and_stays_on_the_line():
    T = WAM.fk(HOME)
    Ts = np.repeat(T[None], 161, axis=0)
    Ts[:, 1, 3] += np.linspace(0.0, 0.4, 161)
    answers = IkSolver(WAM).solve_path(Ts, HOME).q
    spline = time_dense_path(answers, LIMITS)
    velocity, acceleration = spline.peaks(LIMITS.velocity, LIMITS.acceleration)
    assert max(velocity.ratio, acceleration.ratio) < 1.0 + 1e-9
    assert max(velocity.ratio, acceleration.ratio) > 0.9
    assert spline.duration < 1.2
    poses = WAM.fk(np.array([spline.at(t)[0] for t in np.linspace(0, spline.duration, 500)]))
    assert np.abs(poses[:, [0, 2], 3] - T[[0, 2], 3]).max() < 1e-5
    np.testing.assert_allclose(poses[:, :3, :3], np.broadcast_to(T[:3, :3], (500, 3, 3)), atol=1e-5)


def test_path_with_a_tiny_motion_and_back_stands():
    """Equal configurations with another one in between are merged."""
    path = np.array([[0.0, 0.0], [0.5e-6, 0.0], [0.0, 0.0]])
    spline = time_dense_path(path, LIMITS)
    assert np.isfinite(spline.times).all()
    assert np.abs(spline.q).max() == 0.0


@pytest.mark.parametrize("count", [1, 2, 3])
def test_short_dense_paths_are_timed(count):
    path = HOME + np.linspace(0.0, 0.01, count)[:, None]
    spline = time_dense_path(path, LIMITS)
    np.testing.assert_allclose(spline.at(spline.duration)[0], path[-1])
    assert 0.0 < spline.duration < 1.0
