"""Bounds on what a robot reaches: nothing reachable is refused, and what is refused is not."""

import numpy as np
import pytest
from arms import random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import rigid, rotation
from oracle_reach import moved, random_pose
from structs import random_chain

from dls_ik import IkSolver
from dls_ik.core.reach_bounds import DISTANCE, is_beyond_reach
from dls_ik.model import DhRow, RobotModel
from dls_ik.model.chain import tip_poses
from dls_ik.model.reach.bounds import build_reach

quick = settings(deadline=None, max_examples=30, suppress_health_check=list(HealthCheck))
SHIPPED = {name: RobotModel.from_name(name) for name in ("wam", "puma560", "planar_2r")}
KINDS = ("revolute", "continuous", "prismatic", "mimic")
TOLERANCE = 1e-6
WRIST = np.array([0.0, 0.0, -0.06])  # of the WAM, in the frame of its tip [m]


def refused(reach, Ts, position=TOLERANCE, rotation=TOLERANCE):
    return np.array([is_beyond_reach(reach, T, position, rotation) for T in Ts])


def configurations(robot, rng, count=200):
    """Anywhere within the limits, at them, and with joints straight."""
    lower, upper = robot.finite_limits()
    q = robot.random(rng, count)
    ends = np.where(rng.random(q.shape) < 0.5, lower, upper)
    q = np.where(rng.random(q.shape) < rng.choice([0.0, 0.3, 1.0], (count, 1)), ends, q)
    straight = np.clip(np.zeros(robot.n), lower, upper)
    q = np.where(rng.random(q.shape) < rng.choice([0.0, 0.0, 0.5], (count, 1)), straight, q)
    return np.vstack([q, straight, lower, upper, 50.0 * robot.continuous * q[:3] + q[:3]])


@pytest.mark.parametrize("position_only", [False, True])
@pytest.mark.parametrize("robot", SHIPPED.values(), ids=SHIPPED)
def test_nothing_reachable_is_refused(robot, position_only):
    reach = build_reach(robot.chain, position_only=position_only)
    Ts = robot.fk(configurations(robot, np.random.default_rng(0), 5000))
    assert not refused(reach, Ts, 0.0, 0.0).any()


@quick
@given(st.integers(0, 10**6), st.lists(st.sampled_from(KINDS), max_size=7), st.booleans())
def test_nothing_a_drawn_arm_reaches_is_refused(seed, kinds, position_only):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, "revolute", *kinds)
    reach = build_reach(robot.chain, position_only=position_only)
    assert not refused(reach, robot.fk(configurations(robot, rng)), 0.0, 0.0).any()


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
@given(st.lists(DH, min_size=1, max_size=8), st.integers(0, 10**6), st.sampled_from([1e-3, 1, 1e3]))
def test_nothing_that_dh_rows_reach_is_refused(rows, seed, unit):
    rows = [row._replace(a=unit * row.a, d=unit * row.d) for row in rows]
    robot = RobotModel.from_dh(rows)
    Ts = robot.fk(configurations(robot, np.random.default_rng(seed)))
    assert not refused(build_reach(robot.chain), Ts, 0.0, 0.0).any()


@quick
@given(st.integers(0, 10**6), st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_every_tip_of_a_chain(seed, sizes):
    """Elements that share variables, by any factor, in more than one path."""
    rng = np.random.default_rng(seed)
    chain = random_chain(rng, sizes)
    Ts = tip_poses(chain, rng.uniform(chain.lower, chain.upper, (100, 4)))
    for tip in range(len(sizes)):
        assert not refused(build_reach(chain, tip), Ts[:, tip], 0.0, 0.0).any()


@pytest.mark.parametrize("tolerances", [(1e-6, 1e-6), (1e-3, 0.0), (0.0, 1e-2), (0.02, 0.1)])
@pytest.mark.parametrize("robot", SHIPPED.values(), ids=SHIPPED)
def test_nothing_within_tolerance_is_refused(robot, tolerances):
    rng = np.random.default_rng(1)
    reach = build_reach(robot.chain)
    Ts = [moved(T, rng, *tolerances) for T in robot.fk(configurations(robot, rng, 2000))]
    assert not refused(reach, Ts, *tolerances).any()


def test_planar_arm_in_closed_form():
    """Both links are 1 m long: a point is reached within 2 m, in the plane alone."""
    robot = SHIPPED["planar_2r"]
    reach = build_reach(robot.chain, position_only=True)
    for radius, expected in ((0.0, False), (1.0, False), (2.0, False), (2.00001, True)):
        for angle in np.linspace(-3.0, 3.0, 9):
            T = np.eye(4)
            T[:2, 3] = radius * np.cos(angle), radius * np.sin(angle)
            assert is_beyond_reach(reach, T, TOLERANCE, TOLERANCE) == expected
            T[2, 3] = 1e-5
            assert is_beyond_reach(reach, T, TOLERANCE, TOLERANCE)


@pytest.mark.parametrize("limits", [(0.5, 2.5), (-2.0, 1.0), (-4.0, -1.0)])
def test_annulus_of_an_elbow_with_limits(limits):
    rows = [DhRow(a=0.7, lower=-3.0, upper=3.0), DhRow(a=0.4, lower=limits[0], upper=limits[1])]
    reach = build_reach(RobotModel.from_dh(rows).chain, position_only=True)
    elbow = np.cos(np.linspace(*limits, 100_001))
    distances = np.sqrt(0.7**2 + 0.4**2 + 2.0 * 0.7 * 0.4 * elbow)
    bounded = reach.kind == DISTANCE
    assert reach.least[bounded].max() == pytest.approx(distances.min(), abs=1e-7)
    assert reach.largest[bounded].min() == pytest.approx(distances.max(), abs=1e-7)


def test_out_of_the_plane_and_tilted():
    robot = SHIPPED["planar_2r"]
    reach, T = build_reach(robot.chain), robot.fk([0.3, 0.8])
    for tilt, expected in ((0.5e-6, False), (1e-5, True)):
        tilted = T @ rigid(rotation([1.0, 0.0, 0.0], tilt), np.zeros(3))
        assert is_beyond_reach(reach, tilted, TOLERANCE, TOLERANCE) == expected


def test_annulus_of_the_wrist_of_the_wam():
    """How far the wrist is from the shoulder depends on the elbow alone."""
    robot = SHIPPED["wam"]
    elbow = np.zeros((20_001, 7))
    elbow[:, 3] = np.linspace(robot.lower[3], robot.upper[3], len(elbow))
    distances = np.linalg.norm(robot.fk(elbow)[:, :3, :] @ [*WRIST, 1.0], axis=1)
    reach = build_reach(robot.chain)
    wrist = (reach.kind == DISTANCE) & np.isclose(reach.tip[:, 1], WRIST).all(1)
    wrist &= np.isclose(reach.base[:, 1], 0.0).all(1)
    assert reach.least[wrist] == pytest.approx(distances.min(), abs=1e-6)
    assert reach.largest[wrist] == pytest.approx(distances.max(), abs=1e-6)


@pytest.mark.parametrize("name", ["wam", "puma560"])
def test_a_stretched_arm_can_be_stretched_by_the_tolerance(name):
    """The wrist at its farthest from the shoulder, and the tip moved straight out."""
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
def test_what_is_refused_no_restart_finds(robot):
    rng = np.random.default_rng(3)
    Ts = np.array([random_pose(rng) for _ in range(300)])
    found = IkSolver(robot, max_restarts=100).solve_batch(Ts).success
    out = refused(build_reach(robot.chain), Ts)
    assert not (found & out).any()
    assert out.sum() > 0.8 * (~found).sum()


def test_positions_alone_ignore_the_rotation():
    robot, rng = SHIPPED["wam"], np.random.default_rng(4)
    reach = build_reach(robot.chain, position_only=True)
    Ts = robot.fk(configurations(robot, rng, 500))
    for T in Ts:
        T[:3, :3] = random_pose(rng)[:3, :3]
    assert not refused(reach, Ts, 0.0, 0.0).any()
    Ts[:, :3, 3] *= 1.2 / np.linalg.norm(Ts[:, :3, 3], axis=1)[:, None]
    assert refused(reach, Ts).all()


def test_the_same_robot_has_the_same_bounds():
    first, second = (build_reach(SHIPPED["wam"].chain) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)


def test_very_many_joints_are_given_up_with_a_word(caplog):
    rng = np.random.default_rng(7)
    robot = random_arm(rng, *["revolute"] * 120)
    reach = build_reach(robot.chain)
    assert "120 joints" in caplog.text
    assert "UNREACHABLE" in caplog.text
    Ts = robot.fk(robot.random(rng, 50))
    assert not refused(reach, Ts, 0.0, 0.0).any()
    Ts[:, :3, 3] += 1e3
    assert refused(reach, Ts).all()  # no farther than its length
    caplog.clear()
    build_reach(random_arm(rng, *["revolute"] * 12).chain)
    assert not caplog.text
