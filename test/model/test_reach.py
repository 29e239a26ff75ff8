# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bounds of the workspace, and the extremes of functionals: rigorous and tight."""

import numpy as np
import pytest
from arms import random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import dh_pose, rigid, rotation
from oracle_reach import moved, random_pose
from structs import random_chain

from dls_ik import IkSolver
from dls_ik.core.reach_bounds import DISTANCE, is_beyond_reach
from dls_ik.model import DhRow, RobotModel
from dls_ik.model import pose_functionals as functionals
from dls_ik.model.chain import tip_poses
from dls_ik.model.pose_functionals import chain_product, path_elements, poses
from dls_ik.model.reach import FREE_ROTATION, Budget, build_reach, farthest, nearest, upper_bound

quick = settings(max_examples=10, suppress_health_check=list(HealthCheck))
SHIPPED = {name: RobotModel.from_name(name) for name in ("wam", "puma560", "planar_2r")}
TOLERANCE = 1e-6
thorough = settings(max_examples=20, suppress_health_check=list(HealthCheck))
ORIGIN = np.zeros(3)


def are_refused(reach, Ts, position=TOLERANCE, rotation=TOLERANCE):
    return np.array([is_beyond_reach(reach, T, position, rotation) for T in Ts])


def configurations(robot, rng, count=200):
    """Return random configurations, configurations at the limits, and with joints at zero."""
    lower, upper = robot.finite_limits()
    q = robot.random(count, rng)
    ends = np.where(rng.random(q.shape) < 0.5, lower, upper)
    q = np.where(rng.random(q.shape) < rng.choice([0.0, 0.3, 1.0], (count, 1)), ends, q)
    straight = np.clip(np.zeros(robot.n), lower, upper)
    q = np.where(rng.random(q.shape) < rng.choice([0.0, 0.0, 0.5], (count, 1)), straight, q)
    return np.vstack([q, straight, lower, upper, 50.0 * robot.continuous * q[:3] + q[:3]])


@pytest.mark.parametrize("pointing", [None, 0, 2, FREE_ROTATION])
@pytest.mark.parametrize("robot", SHIPPED.values(), ids=SHIPPED)
def test_reachable_poses_are_not_refused(robot, pointing):
    reach = build_reach(robot.chain, pointing=pointing)
    Ts = robot.fk(configurations(robot, np.random.default_rng(0), 2000))
    assert not are_refused(reach, Ts, 0.0, 0.0).any()


ANGLES, LENGTHS = st.sampled_from([0.0, np.pi / 2, -np.pi / 2, np.pi, 0.7]), st.floats(-1.0, 1.0)
DH = st.builds(
    DhRow,
    a=st.one_of(st.just(0.0), LENGTHS),
    alpha=ANGLES,
    d=st.one_of(st.just(0.0), LENGTHS),
    theta=ANGLES,
    kind=st.sampled_from(["revolute", "revolute", "continuous", "prismatic"]),
    lower=st.floats(-4.0, 0.0),
    upper=st.floats(0.0, 4.0),
    velocity=st.just(1.0),
    name=st.just(""),
)


@quick
@given(
    st.lists(DH, min_size=1, max_size=8),
    st.integers(0, 10**6),
    st.sampled_from([1e-3, 1, 1e3]),
    st.sampled_from([None, 0, 1, 2, FREE_ROTATION]),
)
def test_reachable_poses_of_random_dh_rows_are_not_refused(rows, seed, unit, pointing):
    rows = [row._replace(a=unit * row.a, d=unit * row.d) for row in rows]
    robot = RobotModel.from_dh(rows)
    Ts = robot.fk(configurations(robot, np.random.default_rng(seed)))
    reach = build_reach(robot.chain, pointing=pointing)
    assert not are_refused(reach, Ts, 0.0, 0.0).any()


@quick
@given(st.integers(0, 10**6), st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_reachable_poses_of_every_tip_are_not_refused(seed, sizes):
    """Paths share variables with different mimic factors."""
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, sizes)
    Ts = tip_poses(chain, rng.uniform(chain.lower, chain.upper, (100, 4)))
    for tip in range(len(sizes)):
        assert not are_refused(build_reach(chain, tip), Ts[:, tip], 0.0, 0.0).any()


CASES = [("wam", 1e-6, 1e-6), ("wam", 0.02, 0.1), ("puma560", 1e-3, 0.0), ("planar_2r", 0.0, 1e-2)]


@pytest.mark.parametrize(("name", "position", "rotation"), CASES)
def test_poses_within_tolerance_are_not_refused(name, position, rotation):
    robot, rng = SHIPPED[name], np.random.default_rng(1)
    reach = build_reach(robot.chain)
    Ts = [moved(T, rng, position, rotation) for T in robot.fk(configurations(robot, rng, 1000))]
    assert not are_refused(reach, Ts, position, rotation).any()


def test_reach_of_planar_arm_matches_closed_form():
    """Both links are 1 m long: points within 2 m in the plane are reachable."""
    robot = SHIPPED["planar_2r"]
    reach = build_reach(robot.chain, pointing=FREE_ROTATION)
    for radius, expected in ((0.0, False), (1.0, False), (2.0, False), (2.00001, True)):
        for angle in np.linspace(-3.0, 3.0, 9):
            T = np.eye(4)
            T[:2, 3] = radius * np.cos(angle), radius * np.sin(angle)
            assert is_beyond_reach(reach, T, TOLERANCE, TOLERANCE) == expected
            T[2, 3] = 1e-5
            assert is_beyond_reach(reach, T, TOLERANCE, TOLERANCE)
    reach, T = build_reach(robot.chain), robot.fk([0.3, 0.8])
    for tilt, expected in ((0.5e-6, False), (1e-5, True)):
        tilted = T @ rigid(rotation([1.0, 0.0, 0.0], tilt), np.zeros(3))
        assert is_beyond_reach(reach, tilted, TOLERANCE, TOLERANCE) == expected


@pytest.mark.parametrize("limits", [(0.5, 2.5), (-2.0, 1.0), (-4.0, -1.0)])
def test_distance_bounds_of_a_limited_elbow_match_closed_form(limits):
    rows = [DhRow(a=0.7, lower=-3.0, upper=3.0), DhRow(a=0.4, lower=limits[0], upper=limits[1])]
    reach = build_reach(RobotModel.from_dh(rows).chain, pointing=FREE_ROTATION)
    elbow = np.cos(np.linspace(*limits, 100_001))
    distances = np.sqrt(0.7**2 + 0.4**2 + 2.0 * 0.7 * 0.4 * elbow)
    bounded = reach.kind == DISTANCE
    assert reach.least[bounded].max() == pytest.approx(distances.min(), abs=1e-7)
    assert reach.largest[bounded].min() == pytest.approx(distances.max(), abs=1e-7)


@pytest.mark.parametrize("name", ["wam", "puma560"])
def test_poses_beyond_a_stretched_arm_are_accepted_up_to_the_tolerance(name):
    """The wrist is at its largest distance from the shoulder; the tip is moved further out."""
    robot = SHIPPED[name]
    reach = build_reach(robot.chain)
    Ts = robot.fk(configurations(robot, np.random.default_rng(2), 50_000))
    k = int(np.flatnonzero((reach.kind == DISTANCE) & np.isfinite(reach.largest))[0])
    points = Ts[:, :3, :3] @ reach.tip[k, 1] + Ts[:, :3, 3] - reach.base[k, 1]
    distances = np.linalg.norm(points, axis=1)
    T, out = Ts[distances.argmax()], points[distances.argmax()] / distances.max()
    T[:3, 3] += (reach.largest[k] - distances.max()) * out  # exactly at the bound
    for length, expected in ((0.9 * TOLERANCE, False), (10.0 * TOLERANCE, True)):
        at = T.copy()
        at[:3, 3] += length * out
        assert is_beyond_reach(reach, at, TOLERANCE, TOLERANCE) == expected


@pytest.mark.parametrize("robot", SHIPPED.values(), ids=SHIPPED)
def test_restarts_do_not_reach_refused_poses(robot):
    rng = np.random.default_rng(3)
    Ts = np.array([random_pose(rng) for _ in range(300)])
    found = IkSolver(robot, max_restarts=100).solve_batch(Ts).success
    out = are_refused(build_reach(robot.chain), Ts)
    assert not (found & out).any()
    assert out.sum() > 0.8 * (~found).sum()


def test_position_only_ignores_the_rotation():
    robot, rng = SHIPPED["wam"], np.random.default_rng(4)
    reach = build_reach(robot.chain, pointing=FREE_ROTATION)
    Ts = robot.fk(configurations(robot, rng, 500))
    for T in Ts:
        T[:3, :3] = random_pose(rng)[:3, :3]
    assert not are_refused(reach, Ts, 0.0, 0.0).any()
    Ts[:, :3, 3] *= 1.2 / np.linalg.norm(Ts[:, :3, 3], axis=1)[:, None]
    assert are_refused(reach, Ts).all()


def test_the_bound_for_many_joints_is_abandoned_with_a_warning(caplog):
    rng = np.random.default_rng(7)
    robot = random_arm(rng, *["revolute"] * 120)
    reach = build_reach(robot.chain)
    assert "120 joints" in caplog.text
    assert "UNREACHABLE" in caplog.text
    Ts = robot.fk(robot.random(50, rng))
    assert not are_refused(reach, Ts, 0.0, 0.0).any()
    Ts[:, :3, 3] += 1e3
    assert are_refused(reach, Ts).all()  # no farther than its length
    caplog.clear()
    build_reach(random_arm(rng, *["revolute"] * 12).chain)
    assert not caplog.text


def random_elements(seed, m, prismatic=0.3):
    """Return elements with random ranges in units of their length: narrow, wide or unlimited."""
    rng = np.random.default_rng(seed)
    elements = path_elements(random_chain(rng, (m,), m, prismatic), 0)
    centre, width = rng.uniform(-3, 3, m), rng.choice([0.0, 0.3, 2.0, 5.0, np.inf], m)
    width = np.where(elements.prismatic, rng.uniform(0, 0.4, m), width)
    elements = elements._replace(lower=centre - 0.5 * width, upper=centre + 0.5 * width)
    return elements.scaled(1.0 / elements.length), rng


def random_functional(kind, rng):
    base, tip = rng.normal(scale=0.5, size=(2, 2, 3))
    base[0], tip[0] = base[0] / np.linalg.norm(base[0]), tip[0] / np.linalg.norm(tip[0])
    return {
        "distance": lambda: functionals.squared_distance(base[1], tip[1]),
        "height": lambda: functionals.height(base, tip[1]),
        "lean": lambda: functionals.lean(base[0], tip[0]),
        "moment": lambda: functionals.moment(base, tip),
    }[kind]()


def sampled_values(elements, functional, rng, count=20_000):
    shares = rng.uniform(size=(count, len(elements.prismatic)))
    at_end = rng.uniform(size=shares.shape) < 0.3
    return functional(poses(elements, np.where(at_end, np.round(shares), shares))[1])


@thorough
@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.sampled_from(["distance", "height", "lean", "moment"]),
)
def test_no_configuration_exceeds_the_bounds(seed, m, kind):
    elements, rng = random_elements(seed, m)
    functional = random_functional(kind, rng)
    numbers = sampled_values(elements, functional, rng)
    assert -upper_bound(elements, -functional, Budget()) <= numbers.min()
    assert numbers.max() <= upper_bound(elements, functional, Budget())


@pytest.mark.parametrize("kind", ["distance", "height", "lean", "moment"])
@pytest.mark.parametrize(("m", "seed"), [(1, 0), (1, 1), (2, 2), (2, 3)])
def test_the_bounds_are_attained(kind, m, seed):
    elements, rng = random_elements(seed, m)
    functional = random_functional(kind, rng)
    numbers = sampled_values(elements, functional, rng, 200_000)
    gap = 2e-3 * (numbers.max() - numbers.min()) + 1e-8 * functional.scale
    assert numbers.max() == pytest.approx(upper_bound(elements, functional, Budget()), abs=gap)
    assert numbers.min() == pytest.approx(-upper_bound(elements, -functional, Budget()), abs=gap)


@thorough
@given(st.integers(0, 10**6), st.sampled_from(["distance", "height", "lean", "moment"]))
def test_functional_matrices_multiply_like_transforms(seed, kind):
    rng = np.random.default_rng(seed)
    functional = random_functional(kind, rng)
    (A, B), _ = poses(random_elements(seed, 3)[0], rng.uniform(size=(2, 3)))
    np.testing.assert_allclose(
        functional.matrix(A @ B), functional.matrix(A) @ functional.matrix(B), atol=1e-12
    )


def test_functionals_match_closed_forms():
    rng = np.random.default_rng(0)
    T = poses(random_elements(0, 3)[0], rng.uniform(size=(1, 3)))[1, 0]
    (n, b), (a, p) = base, tip = rng.normal(size=(2, 2, 3))
    q, v = T[:3, :3] @ p + T[:3, 3], T[:3, :3] @ a
    assert functionals.squared_distance(b, p)(T) == pytest.approx((q - b) @ (q - b))
    assert functionals.height(base, p)(T) == pytest.approx(n @ (q - b))
    assert functionals.lean(n, a)(T) == pytest.approx(n @ v)
    assert functionals.moment(base, tip)(T) == pytest.approx(n @ np.cross(q - b, v))


def test_joints_with_axes_through_the_point_are_dropped():
    """With a spherical shoulder and wrist, only the elbow changes the distance."""
    half = np.pi / 2
    rows = [(0, -half, 0), (0, half, 0), (0.1, -half, 0.5), (-0.1, half, 0)]
    rows += [(0, -half, 0.4), (0, half, 0), (0, 0, 0.2)]
    arm = [DhRow(a, alpha, d, lower=-2.0, upper=2.0) for a, alpha, d in rows]
    elements = path_elements(RobotModel.from_dh(arm).chain, 0)
    wrist = np.array([0.0, 0.0, -0.2])
    scale = 1.0 / elements.length
    elements = elements.scaled(scale)
    assert (
        len(chain_product(elements, functionals.squared_distance(ORIGIN, scale * wrist)).lower) == 1
    )
    arms = [[*row, 0.0, False] for row in rows]
    near, far = np.inf, 0.0
    for q4 in np.linspace(-2.0, 2.0, 4001):
        T = dh_pose(arms, [0, 0, 0, q4, 0, 0, 0])
        d = np.linalg.norm(T[:3, :3] @ wrist + T[:3, 3]) * scale
        near, far = min(near, d), max(far, d)
    assert nearest(elements, ORIGIN, scale * wrist, Budget()) == pytest.approx(near, abs=1e-6)
    assert farthest(elements, ORIGIN, scale * wrist, Budget()) == pytest.approx(far, abs=1e-6)


def test_unlimited_prismatic_joint_has_infinite_reach():
    elements = path_elements(random_chain(np.random.default_rng(1), (3,), 3, 1.0), 0)
    elements = elements.scaled(1.0 / elements.length)
    endless = elements._replace(upper=np.full(3, np.inf))
    assert farthest(endless, ORIGIN, ORIGIN, Budget()) == np.inf
    assert nearest(endless, ORIGIN, ORIGIN, Budget()) == 0.0


WORK = [0, 1, 5_000, 50_000, 500_000, Budget().left]


@thorough
@given(st.integers(0, 10**6), st.integers(1, 16), st.sampled_from(WORK))
def test_small_budgets_give_looser_valid_bounds(seed, m, work):
    elements, rng = random_elements(seed, m)
    base, tip = rng.normal(scale=0.5, size=(2, 3))
    functional = functionals.squared_distance(base, tip)
    seen = np.sqrt(np.maximum(sampled_values(elements, functional, rng, 2000), 0.0))
    low, high = (bound(elements, base, tip, Budget(work)) for bound in (nearest, farthest))
    assert low <= seen.min() + 1e-9
    assert seen.max() - 1e-9 <= high
    assert high < np.inf
    height = random_functional("height", rng)
    assert height(mid_range_pose(elements)) <= upper_bound(elements, height, Budget(work))


def mid_range_pose(elements):
    return poses(elements, np.full((1, len(elements.prismatic)), 0.5))[1]


def test_the_budget_bounds_the_work_for_many_joints():
    rng = np.random.default_rng(3)
    elements = path_elements(random_chain(rng, (200,), 200, 0.0), 0)
    budget = Budget(2_000_000)
    length = farthest(elements, ORIGIN, ORIGIN, budget)
    assert length <= elements.length + 1e-9
    assert nearest(elements, ORIGIN, ORIGIN, budget) == 0.0
    assert budget.is_spent
    assert budget.left > -200_000  # the round of the detection may differ
