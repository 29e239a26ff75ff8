# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of task errors and Jacobians: closed forms and finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import rigid, rotation
from robots import LIMIT, joint, urdf

from dls_ik.core import kinematics, se3
from dls_ik.core.task import (
    ROTATION_FREE,
    ROTATION_SWING,
    ROTATION_TWIST,
    ROTATION_VECTOR,
    jacobian_derivatives,
    task_error,
    task_jacobian,
)
from dls_ik.core.types import TaskParams
from dls_ik.model import RobotModel

quick = settings(max_examples=100)
AXES = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda a: np.linalg.norm(a) > 1e-3)
ANGLES = st.one_of(
    st.floats(0.0, np.pi),
    st.floats(-12.0, -1.0).map(lambda x: 10.0**x),
    st.floats(-12.0, -1.0).map(lambda x: np.pi - 10.0**x),
    st.sampled_from([0.0, np.pi / 2, np.pi]),
)
TURNS = st.builds(rotation, AXES, ANGLES)
FRAMES, AXIS = st.booleans(), st.integers(0, 2)
ROWS = {ROTATION_FREE: 0, ROTATION_VECTOR: 3, ROTATION_SWING: 2, ROTATION_TWIST: 1}
WAM = RobotModel.wam()
AT = '<origin xyz="0.3 -0.1 0.4" rpy="0.2 0.4 -0.3"/>' + LIMIT
TORSO = RobotModel.from_urdf(
    urdf(
        "base trunk l_arm l_hand r_arm r_hand",
        joint("waist", parent="base", child="trunk", detail=AT),
        joint("l1", parent="trunk", child="l_arm", detail=AT, axis="0 1 0"),
        joint("l2", "prismatic", parent="l_arm", child="l_hand", detail=AT, axis="1 0 0"),
        joint("r1", parent="trunk", child="r_arm", detail=AT, axis="1 1 0"),
        joint("r2", parent="r_arm", child="r_hand", detail=AT, axis="0 -1 1"),
    ),
    tip=("l_hand", "r_hand"),
)


def task_of(*tips, position=(0, 1, 2), weight=None):
    """Return a task for tips with (turning, axis, in_target) each."""
    rows, groups = [], 0
    for p, (turning, axis, _) in enumerate(tips):
        angles = {
            ROTATION_FREE: [],
            ROTATION_VECTOR: [0, 1, 2],
            ROTATION_SWING: [c for c in range(3) if c != axis],
        }
        for components in (position, [3 + c for c in angles.get(turning, [axis])]):
            rows += [(p, c, groups) for c in components]
            groups += len(components) > 0
    tip, component, group = np.array(rows, np.int64).T.copy()
    turning, axis, in_target = zip(*tips, strict=True)
    return TaskParams(
        tip=tip,
        component=component,
        weight=np.ones(len(rows)) if weight is None else np.array(weight, float),
        group=np.append(group, groups),
        in_target=np.array(in_target, bool),
        rotation_kind=np.array(turning, np.int64),
        axis=np.array(axis, np.int64),
        exact_derivative=np.zeros(len(tips), bool),
        has_tolerance=False,
        tolerance=np.zeros(len(rows)),
        inner_tolerance=np.zeros(len(rows)),
        round=np.zeros(len(rows), bool),
    )


def error_of(task, T_d, T):
    e = np.full(len(task.tip), np.nan)
    T_d, T = np.reshape(T_d, (-1, 4, 4)), np.reshape(T, (-1, 4, 4))[:, :3].copy()
    largest = task_error(task, T_d, T, np.empty((3, 3)), e.copy(), e)
    return e, largest


def jacobian_of(robot, task, T_d, q):
    k, m = len(robot.tips), len(robot.chain.prismatic)
    axes, T, J = np.empty((m, 2, 3)), np.empty((k, 3, 4)), np.full((len(task.tip), robot.n), np.nan)
    kinematics.forward(robot.chain, q, axes, T)
    T_d = np.reshape(T_d, (-1, 4, 4))
    task_jacobian(robot.chain, task, T_d, axes, T, np.empty((3, 3)), J)
    return J


def turning_error(turning, axis, in_target, R_d, R):
    task = task_of((turning, axis, in_target), position=())
    e, (position, angle) = error_of(task, rigid(R_d, np.zeros(3)), rigid(R, np.ones(3)))
    assert position == 0.0
    assert angle == pytest.approx(np.linalg.norm(e), abs=1e-15)
    return e


def swing_vector(axis, e):
    return np.insert(e, axis, 0.0)


@quick
@given(TURNS, TURNS, st.floats(-2.0, 2.0))
def test_a_full_pose_in_the_base_is_the_pose_error(R, turn, x):
    T, T_d = rigid(R, [x, 0.5, 1.0]), rigid(turn @ R, [0.3, x, -1.0])
    e, largest = error_of(task_of((ROTATION_VECTOR, 0, False)), T_d, T)
    expected = np.empty(6)
    se3.pose_error(T_d, T, np.empty((3, 3)), expected)
    np.testing.assert_allclose(e, expected, rtol=0.0, atol=1e-15)
    norms = [np.linalg.norm(expected[:3]), np.linalg.norm(expected[3:])]
    np.testing.assert_allclose(largest, norms, rtol=1e-14)


@quick
@given(TURNS, AXES, st.floats(0.0, 3.14))
def test_target_frame_error_is_the_rotated_base_frame_error(R, axis, angle):
    R_d = rotation(axis, angle) @ R
    T, T_d = rigid(R, [1.0, 0.5, 1.0]), rigid(R_d, [0.3, 0.0, -1.0])
    base, largest = error_of(task_of((ROTATION_VECTOR, 0, False)), T_d, T)
    target, same = error_of(task_of((ROTATION_VECTOR, 0, True)), T_d, T)
    np.testing.assert_allclose(target[:3], R_d.T @ base[:3], atol=1e-14)
    np.testing.assert_allclose(target[3:], R_d.T @ base[3:], atol=1e-12)
    np.testing.assert_allclose(largest, same, atol=1e-14)


@quick
@given(TURNS, TURNS, AXIS, FRAMES)
def test_swing_is_the_shortest_rotation_of_the_axis_to_its_target(R, R_d, axis, in_target):
    phi = swing_vector(axis, turning_error(ROTATION_SWING, axis, in_target, R_d, R))
    E = R.T @ R_d if in_target else R_d @ R.T
    a_d = np.eye(3)[axis]
    a = E.T @ a_d
    angle = np.linalg.norm(phi)
    assert angle == pytest.approx(np.arctan2(np.linalg.norm(np.cross(a, a_d)), a @ a_d), abs=1e-14)
    moved = rotation(phi, angle) @ a if angle > 0.0 else a
    np.testing.assert_allclose(moved, a_d, atol=1e-14)


@quick
@given(AXIS, FRAMES, TURNS, st.floats(-3.0, 3.0), st.floats(-np.pi, np.pi), ANGLES)
def test_swing_and_twist_in_closed_form(axis, in_target, R, spin, way, angle):
    a, across = np.eye(3)[axis], np.roll([0.0, np.cos(way), np.sin(way)], axis)
    E = rotation(a, spin) @ rotation(across, angle)
    R_d = R @ E if in_target else E @ R
    phi = swing_vector(axis, turning_error(ROTATION_SWING, axis, in_target, R_d, R))
    if angle < np.pi - 1e-9:
        np.testing.assert_allclose(phi, angle * across, atol=1e-14 + 1e-15 / (np.pi - angle))
    if angle < 3.0:
        twist = turning_error(ROTATION_TWIST, axis, in_target, R_d, R)
        np.testing.assert_allclose(twist, spin, atol=1e-13)


@pytest.mark.parametrize("angle", [1e-14, 1e-11, 1e-8, 1e-5])
@pytest.mark.parametrize("axis", range(3))
def test_small_angles_are_accurate(axis, angle):
    for turning in (ROTATION_SWING, ROTATION_TWIST):
        c = axis if turning == ROTATION_TWIST else (axis + 1) % 3
        E = rotation(np.eye(3)[c], angle)
        e = turning_error(turning, axis, False, E, np.eye(3))
        assert np.linalg.norm(e) == pytest.approx(angle, rel=1e-12)


@pytest.mark.parametrize("in_target", [False, True])
@pytest.mark.parametrize("axis", range(3))
@pytest.mark.parametrize("about", range(3))
def test_swing_and_twist_of_half_a_turn_match_closed_forms(axis, about, in_target):
    E = 2.0 * np.outer(np.eye(3)[about], np.eye(3)[about]) - np.eye(3)
    expected = 0.0 if about == axis else np.pi
    for R in (np.eye(3), E):
        T_d, T = rigid(E @ R, np.zeros(3)), rigid(R, np.zeros(3))
        for turning, angle in ((ROTATION_SWING, expected), (ROTATION_TWIST, np.pi - expected)):
            task = task_of((turning, axis, in_target), position=())
            assert error_of(task, T_d, T)[1][1] == pytest.approx(angle, abs=1e-15)
            assert np.isfinite(jacobian_of(WAM, task, T_d, np.full(7, 0.3))).all()


@quick
@given(TURNS, AXES, st.floats(-1e-15, 1e-15), AXIS, FRAMES)
def test_about_half_a_turn_all_is_finite(R, about, beyond, axis, in_target):
    T, T_d = rigid(R, np.zeros(3)), rigid(rotation(about, np.pi + beyond) @ R, np.zeros(3))
    for turning in (ROTATION_VECTOR, ROTATION_SWING, ROTATION_TWIST):
        task = task_of((turning, axis, in_target))
        e, largest = error_of(task, T_d, T)
        assert np.isfinite([*e, *largest]).all()
        assert largest[1] <= np.pi + 1e-12
        assert np.isfinite(jacobian_of(WAM, task, T_d, np.full(7, 0.3))).all()


def differences(robot, task, T_d, q, h=1e-6):
    """Return the decrease (r, n) of the error by each joint, by central differences."""
    columns = []
    for step in h * np.eye(robot.n):
        before, after = (error_of(task, T_d, robot.fk(q + s))[0] for s in (-step, step))
        columns.append((before - after) / (2 * h))
    return np.array(columns).T


def target_at(T, axis, angle, shift=0.3):
    return rigid(rotation(axis, angle) @ T[:3, :3], T[:3, 3] + shift)


@quick
@given(
    st.integers(0, 10**6),
    AXES,
    st.one_of(st.floats(0.0, 3.1), st.sampled_from([0.0, 1e-9, 1e-4])),
    AXIS,
    FRAMES,
    st.sampled_from([ROTATION_VECTOR, ROTATION_SWING, ROTATION_TWIST]),
)
def test_jacobian_times_error_is_the_descent_gradient(seed, about, angle, axis, in_target, turning):
    q = WAM.random(rng=np.random.default_rng(seed))
    T_d = target_at(WAM.fk(q), about, angle)
    weight = [2.0, 0.5, 3.0, *[0.7] * ROWS[turning]]
    task = task_of((turning, axis, in_target), weight=weight)
    e, largest = error_of(task, T_d, WAM.fk(q))
    if largest[1] > 3.1:  # the gradient jumps at half a turn
        return
    slope = jacobian_of(WAM, task, T_d, q).T @ e
    for j, step in enumerate(1e-6 * np.eye(7)):
        before, after = (error_of(task, T_d, WAM.fk(q + s))[0] for s in (-step, step))
        assert (before @ before - after @ after) / 4e-6 == pytest.approx(slope[j], abs=1e-6)


@quick
@given(
    st.integers(0, 10**6),
    AXIS,
    FRAMES,
    st.sampled_from([ROTATION_VECTOR, ROTATION_SWING, ROTATION_TWIST]),
)
def test_at_the_target_every_jacobian_is_exact(seed, axis, in_target, turning):
    q = WAM.random(rng=np.random.default_rng(seed))
    T_d = WAM.fk(q)
    task = task_of((turning, axis, in_target), weight=np.arange(1.0, 4 + ROWS[turning]))
    e, _ = error_of(task, T_d, WAM.fk(q))
    np.testing.assert_allclose(e, 0.0, atol=1e-14)
    J = jacobian_of(WAM, task, T_d, q)
    np.testing.assert_allclose(J, differences(WAM, task, T_d, q), atol=1e-8)


@quick
@given(
    st.integers(0, 10**6),
    AXES,
    st.one_of(st.floats(0.0, 2.5), st.sampled_from([0.0, 1e-9, 1e-5, 9e-5, 2e-4, 1e-3])),
    AXIS,
    FRAMES,
    st.sampled_from([ROTATION_VECTOR, ROTATION_SWING]),
)
def test_exact_jacobian_matches_finite_differences(seed, about, angle, axis, in_target, turning):
    q = WAM.random(rng=np.random.default_rng(seed))
    T_d = target_at(WAM.fk(q), about, angle)
    task = task_of((turning, axis, in_target))._replace(exact_derivative=np.ones(1, np.bool_))
    J = jacobian_of(WAM, task, T_d, q)
    np.testing.assert_allclose(J, differences(WAM, task, T_d, q), atol=2e-7)


def test_a_full_pose_in_the_base_has_the_geometric_jacobian():
    q = WAM.random(rng=np.random.default_rng(0))
    J = jacobian_of(
        WAM, task_of((ROTATION_VECTOR, 0, False)), target_at(WAM.fk(q), [1, 2, 3], 2.0), q
    )
    np.testing.assert_array_equal(J, WAM.jacobian(q))


def test_rows_are_picked_and_weighted():
    T, T_d = rigid(np.eye(3), np.zeros(3)), rigid(np.eye(3), [0.1, 0.2, 0.3])
    task = task_of((ROTATION_FREE, 0, False), position=(2, 0), weight=[10.0, 1.0])
    e, largest = error_of(task, T_d, T)
    np.testing.assert_allclose(e, [3.0, 0.1])
    np.testing.assert_allclose(largest, [np.hypot(0.3, 0.1), 0.0])
    q = np.full(7, 0.2)
    J = jacobian_of(WAM, task, T_d, q)
    np.testing.assert_allclose(J, WAM.jacobian(q)[[2, 0]] * [[10.0], [1.0]])


def test_task_of_several_tips_stacks_the_rows_of_each_tip():
    q = TORSO.random(rng=np.random.default_rng(1))
    T = TORSO.fk(q)
    T_d = np.array([target_at(T[0], [1, 2, 3], 0.5, 0.1), target_at(T[1], [0, 1, 3], 1.5, 0.4)])
    kinds = [(ROTATION_TWIST, 1, True), (ROTATION_FREE, 0, False)]
    task = task_of(*kinds)
    assert (len(task.tip), task.group[-1]) == (7, 3)
    e, largest = error_of(task, T_d, T)
    for p, rows in ((0, slice(0, 4)), (1, slice(4, 7))):
        alone = error_of(task_of(kinds[p]), T_d[p], T[p])
        np.testing.assert_allclose(e[rows], alone[0], atol=1e-15)
    assert largest == pytest.approx((0.4 * np.sqrt(3), abs(e[3])))
    J = jacobian_of(TORSO, task, T_d, q)
    np.testing.assert_allclose(J, differences(TORSO, task, T_d, q), atol=1e-7)
    assert not J[:4, 3:].any()
    assert not J[4:, 1:3].any()


MIMIC = RobotModel.from_urdf(
    urdf(
        "base a b c",
        joint("j1", parent="base", child="a", detail=AT),
        joint("j2", "prismatic", parent="a", child="b", detail=AT, axis="0 1 1"),
        joint("j3", parent="b", child="c", detail=AT + '<mimic joint="j1" multiplier="-2"/>'),
    )
)


@pytest.mark.parametrize("robot", [WAM, TORSO, MIMIC], ids=["wam", "torso", "mimic"])
@pytest.mark.parametrize("turning", [ROTATION_VECTOR, ROTATION_SWING, ROTATION_FREE])
@pytest.mark.parametrize("in_target", [False, True])
def test_jacobian_derivatives_match_finite_differences(robot, turning, in_target):
    rng, h = np.random.default_rng(5), 1e-5
    k, chain, q = len(robot.tips), robot.chain, robot.random(rng=rng)
    task = task_of(*[(turning, 1, in_target)] * k)
    task = task._replace(weight=rng.uniform(0.1, 1.0, len(task.tip)))
    T_d = robot.fk(robot.random(rng=rng)).reshape(k, 4, 4)
    left = rng.normal(size=len(task.tip))
    axes, T = np.empty((len(chain.variable), 2, 3)), np.empty((k, 3, 4))
    kinematics.forward(chain, q, axes, T)
    K = np.empty((robot.n, robot.n))
    jacobian_derivatives(chain, task, T_d, axes, T, np.empty((3, 3)), left, K)
    for j, step in enumerate(h * np.eye(robot.n)):
        ends = [jacobian_of(robot, task, T_d, q + s * step).T @ left for s in (1.0, -1.0)]
        np.testing.assert_allclose(K[:, j], (ends[0] - ends[1]) / (2.0 * h), atol=1e-7)
