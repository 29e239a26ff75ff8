# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of tolerances in the kernels: dead zones of the oracle, and finite differences."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import rigid, rotation
from oracle_slack import beyond, components, dead_zone

from dls_ik import RobotModel, Task
from dls_ik.core import kinematics
from dls_ik.core.task import hold, release, task_error, task_jacobian
from dls_ik.solver.task import INNER_SHARE, build_task

WAM = RobotModel.wam()
quick = settings(max_examples=100)
REGIONS = {
    "box": {"position_tolerance": (0.05, 0.2, 0.01)},
    "ball": {"position_tolerance": 0.1, "round": "xyz"},
    "cylinder": {"position_tolerance": (0.1, 0.3, 0.1), "round": "xz"},
    "disc": {"position": "xy", "position_tolerance": 0.1, "round": "xy"},
    "one axis": {"position_tolerance": (0.0, 0.1, 0.0)},
    "any": {"position": ""},
}
TURNS = {
    "vector": {"rotation_tolerance": (0.1, 0.3, 0.05)},
    "vector about z": {"rotation_tolerance": (0.1, 0.3, 4.0)},
    "swing": {"rotation": "xz", "rotation_tolerance": 0.2},
    "twist": {"rotation": "y", "rotation_tolerance": 0.2},
    "euler": {"rotation_tolerance": (0.1, 0.3, 0.05), "angles": "euler"},
    "euler about x": {"rotation_tolerance": (4.0, 0.1, 0.2), "angles": "euler"},
    "euler of one axis": {"rotation": "z", "rotation_tolerance": 0.1, "angles": "euler"},
    "exact": {},
    "any": {"rotation": ""},
}
TASKS = [
    Task(**{**region, **turn}, frame=frame)
    for region in REGIONS.values()
    for turn in TURNS.values()
    for frame in ("base", "target")
    if region.get("position") != "" or turn.get("rotation") != ""
]
VECTORS = st.tuples(*[st.floats(-1.0, 1.0)] * 3).filter(lambda a: np.linalg.norm(a) > 1e-3)


def observed(task, T_d, q):
    """Return e and J of the kernels at q, without weights, and the largest errors."""
    built, k = build_task(WAM, task, 1.0), 1
    r = len(built.weight)
    axes, T, e = np.empty((7, 2, 3)), np.empty((k, 3, 4)), np.empty(r)
    J, whole, relative = np.empty((r, 7)), np.empty(r), np.empty((3, 3))
    kinematics.forward(WAM.chain, q, axes, T)
    largest = task_error(built, T_d[None], T, relative, whole, e)
    task_jacobian(WAM.chain, built, T_d[None], axes, T, relative, J)
    released = J.copy()
    release(built, e, np.zeros(r, bool), released)
    return built, e, released, J, whole, largest


def far_from_jumps(task, T_d, q):
    """Return whether errors are smooth: no half turn, no parallel first and third axis."""
    _, turn = components(task, T_d, WAM.fk(q))
    return np.linalg.norm(turn) < 2.9 and (task.angles == "vector" or abs(turn[1]) < 1.4)


def target(seed, away, about, angle):
    q = WAM.random(rng=np.random.default_rng(seed))
    T = WAM.fk(q)
    return q, rigid(rotation(about, angle) @ T[:3, :3], T[:3, 3] + away)


SOME = st.builds(
    target,
    st.integers(0, 10**6),
    VECTORS.map(lambda v: 0.3 * np.array(v)),
    VECTORS,
    st.floats(0.0, 2.8),
)


@quick
@given(st.sampled_from(TASKS), SOME)
def test_errors_are_measured_from_the_tolerance_region(task, case):
    q, T_d = case
    built, e, *_, (position, angle) = observed(task, T_d, q)
    away, turn = beyond(task, T_d, WAM.fk(q))
    assert position == pytest.approx(np.linalg.norm(away), abs=1e-12)
    assert angle == pytest.approx(np.linalg.norm(turn), abs=1e-9)
    errors = np.concatenate(components(task, T_d, WAM.fk(q)))
    outside = np.concatenate([away, turn])
    inner = np.concatenate(
        [
            dead_zone(
                errors[:3], INNER_SHARE * np.array(task.position_tolerance), "xyz", task.round
            ),
            dead_zone(errors[3:], INNER_SHARE * np.array(task.rotation_tolerance), "xyz"),
        ]
    )
    expected = np.where(outside == 0.0, 0.0, inner)[built.component]
    np.testing.assert_allclose(e, expected, atol=1e-9)


@quick
@given(st.sampled_from(TASKS), SOME)
def test_jacobian_with_tolerances_matches_finite_differences(task, case):
    """Check rows with a tolerance, and rows whose Jacobian is exact without one."""
    q, T_d = case
    built, e, J, *_ = observed(task, T_d, q)
    numeric, inside = np.empty_like(J), e == 0.0
    for j, h in enumerate(1e-6 * np.eye(7)):
        before, after = (observed(task, T_d, q + s)[1] for s in (-h, h))
        numeric[:, j] = (before - after) / 2e-6
        inside |= (before == 0.0) != (after == 0.0)  # no derivative at the border
    exact = ~inside & ((built.component < 3) | built.exact_derivative[0])
    if far_from_jumps(task, T_d, q):
        np.testing.assert_allclose(J[exact], numeric[exact], atol=2e-6, rtol=1e-5)


@quick
@given(st.sampled_from(TASKS), SOME)
def test_rows_within_tolerance_are_released(task, case):
    q, T_d = case
    built, e, J, whole_J, *_ = observed(task, T_d, q)
    inside = (built.tolerance > 0.0) & (e == 0.0)
    plain = inside & ~built.round
    assert not J[plain].any()
    np.testing.assert_array_equal(J[built.tolerance == 0.0], whole_J[built.tolerance == 0.0])


@quick
@given(st.sampled_from(TASKS), st.integers(0, 10**6), st.floats(0.0, 0.5))
def test_rows_that_would_leave_their_tolerance_are_held_at_the_border(task, seed, length):
    rng = np.random.default_rng(seed)
    q = WAM.random(rng=rng)
    built, e, _, J, whole, _ = observed(task, WAM.fk(q), q)
    held, dq = np.zeros(len(e), bool), length * rng.normal(size=7)
    more = hold(built, J, whole, dq, e, held)
    after = whole - J @ dq
    size = np.abs(after)
    if built.round.any():
        size[built.round] = np.linalg.norm(after[built.round])
    out = (built.tolerance > 0.0) & (size > built.tolerance)
    np.testing.assert_array_equal(held, out)
    assert more == out.any()
    left = whole - e
    np.testing.assert_allclose(
        left[out], (after * built.inner_tolerance / np.maximum(size, 1e-300))[out], atol=1e-12
    )
    assert not hold(built, J, whole, dq, e, held)
