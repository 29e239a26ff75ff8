"""The default method where arms are awkward: straight elbows, limits, half turns, far seeds."""

import numpy as np
import pytest
from oracle import rigid, rotation
from oracle_ik import pose_error

from dls_ik import IkSolver, RobotModel

ROBOTS = {name: RobotModel.from_name(name) for name in ("wam", "puma560", "planar_2r")}
STRAIGHT = {"wam": (3, 0.0), "puma560": (2, -np.pi / 2), "planar_2r": (1, 0.0)}  # joint, value
COUNT = 150


def check(robot, q, seeds, **options):
    Ts = robot.fk(q)
    result = IkSolver(robot, **options).solve_batch(Ts, seeds)
    assert result.success.all(), np.flatnonzero(~result.success)
    assert robot.within_limits(result.q).all()
    errors = np.array([pose_error(T, robot.fk(x)) for T, x in zip(Ts, result.q, strict=True)])
    assert np.linalg.norm(errors[:, :3], axis=1).max() <= 1.000001e-6
    assert np.linalg.norm(errors[:, 3:], axis=1).max() <= 1.000001e-6
    return result


@pytest.mark.parametrize("name", ROBOTS)
class TestEveryRobot:
    """One property a test, for each robot."""

    def test_straight_elbow(self, name):
        robot, rng = ROBOTS[name], np.random.default_rng(1)
        q, seeds = robot.random(rng, COUNT), robot.random(rng, COUNT)
        joint, value = STRAIGHT[name]
        q[:, joint] = value
        check(robot, q, seeds)
        seeds[:, joint] = value
        check(robot, q, seeds)

    def test_from_a_straight_elbow(self, name):
        robot, rng = ROBOTS[name], np.random.default_rng(2)
        q, seeds = robot.random(rng, COUNT), robot.random(rng, COUNT)
        joint, value = STRAIGHT[name]
        seeds[:, joint] = value
        check(robot, q, seeds)

    def test_one_joint_exactly_at_its_limit(self, name):
        robot, rng = ROBOTS[name], np.random.default_rng(3)
        for joint in range(robot.n):
            for limit in (robot.lower, robot.upper):
                q = robot.random(rng, 20)
                q[:, joint] = limit[joint]
                check(robot, q, robot.random(rng, 20))

    def test_all_joints_exactly_at_a_limit(self, name):
        robot, rng = ROBOTS[name], np.random.default_rng(4)
        q = np.where(rng.random((COUNT, robot.n)) < 0.5, robot.lower, robot.upper)
        check(robot, q, robot.random(rng, COUNT), max_restarts=5000)

    def test_seeds_at_limits(self, name):
        robot, rng = ROBOTS[name], np.random.default_rng(5)
        seeds = np.where(rng.random((COUNT, robot.n)) < 0.5, robot.lower, robot.upper)
        check(robot, robot.random(rng, COUNT), seeds)

    def test_seeds_outside(self, name):
        robot, rng = ROBOTS[name], np.random.default_rng(6)
        check(robot, robot.random(rng, COUNT), 20.0 * rng.normal(size=(COUNT, robot.n)))

    def test_zero_pose_from_zero(self, name):
        robot = ROBOTS[name]
        result = check(robot, np.zeros((1, robot.n)), np.zeros((1, robot.n)))
        np.testing.assert_array_equal(result.q, 0.0)


@pytest.mark.parametrize(
    ("name", "joint", "folded"), [("wam", 4, {5: 0.0}), ("puma560", 5, {}), ("planar_2r", 0, {})]
)
def test_half_a_turn_of_rotation_error(name, joint, folded):
    """From a joint that turns half a turn: at the start the rotation error is pi."""
    robot, rng = ROBOTS[name], np.random.default_rng(7)
    seeds = robot.random(rng, COUNT)
    for other, value in folded.items():
        seeds[:, other] = value
    seeds[:, joint] = rng.uniform(robot.lower[joint], robot.upper[joint] - np.pi, COUNT)
    q = seeds.copy()
    q[:, joint] += np.pi
    for a, b in zip(robot.fk(q), robot.fk(seeds), strict=True):
        assert np.linalg.norm(pose_error(a, b)[3:]) == pytest.approx(np.pi)
    check(robot, q, seeds)


def test_half_turns_about_any_axis():
    """On a free-flying wrist, as it were: three slides and three turns reach every rotation."""
    rng = np.random.default_rng(8)
    robot = RobotModel.from_dh([*SLIDES, *TURNS])
    solver = IkSolver(robot)
    for axis in [*np.eye(3), *rng.normal(size=(30, 3))]:
        seed = rng.uniform(-0.5, 0.5, 6)
        T = robot.fk(seed)
        T_d = rigid(rotation(axis, np.pi) @ T[:3, :3], T[:3, 3])
        result = solver.solve(T_d, seed, timeout=3600.0)
        assert result.success
        np.testing.assert_allclose(robot.fk(result.q), T_d, atol=2e-6)


QUARTER = np.pi / 2
SLIDES = [
    {"kind": "prismatic", "alpha": alpha, "theta": theta, "lower": -2, "upper": 2}
    for alpha, theta in ((-QUARTER, 0.0), (-QUARTER, -QUARTER), (0.0, 0.0))
]
TURNS = [{"kind": "continuous", "alpha": alpha} for alpha in (-QUARTER, QUARTER, 0.0)]


@pytest.mark.parametrize("q", [[0.3, 1.2], [-2.0, -0.7], [3.0, 2.5]])
def test_planar_arm_has_two_answers_and_finds_the_one_of_its_seed(q):
    robot = ROBOTS["planar_2r"]
    (q1, q2), T = q, robot.fk(q)
    solver = IkSolver(robot)
    for elbow in (q2, q2 + np.copysign(0.3, q2) * 0.5):
        result = solver.solve(T, [q1, elbow], timeout=3600.0)
        np.testing.assert_allclose(result.q, q, atol=1e-5)
    c = (T[0, 3] ** 2 + T[1, 3] ** 2 - 2.0) / 2.0  # law of cosines, two links of 1 m
    assert np.cos(result.q[1]) == pytest.approx(c, abs=1e-5)
