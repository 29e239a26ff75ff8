"""Targets out of reach, or too fast to follow: the arm does what it can and stays calm."""

import numpy as np
import pytest
from drive import BENT, WAM, Drive

from dls_ik import IkSolver, RobotModel, method_names
from dls_ik.model import DhRow
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


def of_rows(velocity, *rows):
    """An arm of DH rows (a, alpha, d, lower, upper)."""
    keys = ("a", "alpha", "d", "lower", "upper")
    given = [dict(zip(keys, row, strict=True), velocity=velocity) for row in rows]
    return RobotModel.from_dh([DhRow(**row) for row in given])


TURN, WIDE = np.pi / 2, (-2.9, 2.9)
ARMS = {
    "wam": (WAM, BENT),
    "three": (of_rows(2.0, *[(1.0 / 3.0, 0.0, 0.0, *WIDE)] * 3), np.array([0.3, 0.9, 0.5])),
    "six": (
        of_rows(
            3.14,
            (0.0, TURN, 0.163, *WIDE),
            (-0.425, 0.0, 0.0, *WIDE),
            (-0.392, 0.0, 0.0, *WIDE),
            (0.0, TURN, 0.133, *WIDE),
            (0.0, -TURN, 0.1, *WIDE),
            (0.0, 0.0, 0.1, *WIDE),
        ),
        np.array([0.0, -1.2, 1.6, -1.0, 0.9, 0.3]),
    ),
    "seven": (
        of_rows(
            2.2,
            (0.0, -TURN, 0.333, *WIDE),
            (0.0, TURN, 0.0, -1.76, 1.76),
            (0.0825, TURN, 0.316, *WIDE),
            (-0.0825, -TURN, 0.0, -3.07, -0.07),
            (0.0, TURN, 0.384, *WIDE),
            (0.088, TURN, 0.0, -0.02, 3.75),
            (0.0, 0.0, 0.107, *WIDE),
        ),
        np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]),
    ),
}
ROUGH = {"clamp", "halve", "gp", "jt", "tpinv", "ta", "kdl_lma", "kdl_nr", "kdl_nr_jl"}
CALM = [name for name in method_names() if not ROUGH & set(name.split("+"))]


def beyond(robot, q, way):
    """A target that goes about out of reach, by time [s]."""
    T = robot.fk(q)
    size = np.linalg.norm(robot.fk(robot.random(np.random.default_rng(0), 2000))[:, :3, 3], axis=1)
    out = T[:3, 3] / np.linalg.norm(T[:3, 3])
    side = np.cross([0.0, 0.0, 1.0], out)

    def pose(now):
        place = {
            "stands": 1.5 * out,
            "line": 1.3 * out + (0.25 * now - 0.75) * side,
            "circle": 0.9 * out + 0.3 * (np.cos(0.7 * now) * out + np.sin(0.7 * now) * side),
        }[way]
        T_d = T.copy()
        T_d[:3, 3] = size.max() * place
        return T_d

    return pose


def jumps(drive, seconds):
    """Changes of the joints' velocities from cycle to cycle, as shares of their limits (cycles,).

    Those of the last seconds.
    """
    v = np.array([out.velocity for out in drive.outputs]) / drive.controller.robot.velocity
    return np.abs(np.diff(v, axis=0)).max(axis=1)[-round(seconds / drive.dt) :]


def named(drive):
    """How often another state was said."""
    return sum(a is not b for a, b in zip(drive.states, drive.states[1:], strict=False))


@pytest.mark.parametrize("way", ["stands", "line"])
@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("method", CALM)
def test_the_reference_itself_is_calm_beyond_reach(method, arm, way):
    robot, q = ARMS[arm]
    drive, pose = Drive(q, robot, method, when_stuck="hold"), beyond(robot, q, way)
    drive.run(4.0, lambda drive: drive.pose(pose(drive.now)))
    most = 0.5 if "odls" in method else 0.25
    assert jumps(drive, 2.5).max() < most, "a jump from one direction to the other is 1 to 2"
    assert named(drive) <= 16


@pytest.mark.parametrize("limits", [{}, {"acceleration": 10.0}])
@pytest.mark.parametrize("arm", ARMS)
def test_in_and_out_of_reach_it_starts_and_stops_and_does_not_chatter(arm, limits):
    robot, q = ARMS[arm]
    drive, pose = Drive(q, robot, **limits), beyond(robot, q, "circle")
    drive.run(8.0, lambda drive: drive.pose(pose(drive.now)))
    drive.assert_limits(**limits)
    assert (jumps(drive, 7.0) > 0.25).sum() <= 16
    assert named(drive) <= 24
