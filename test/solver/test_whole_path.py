# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``solve_path`` with whole=True: continuity, minimum number of reconfigurations, and reasons."""

import math
from itertools import pairwise

import numpy as np
import pytest
from solve_cases import PUMA, TOLERANCE, WAM, errors

from dls_ik import IkSolver, PlanningScene, RobotModel, Status, Task
from dls_ik.errors import BatchInterrupted, OptionError
from dls_ik.model.dh import DhRow
from dls_ik.solver import whole_path
from dls_ik.solver.path_candidates import CandidateGraph

STEP = 0.2  # [rad] maximum joint step of the tests
PLANAR = RobotModel.from_dh(
    [DhRow(a=1.0, lower=-2.0, upper=2.0), DhRow(a=1.0, lower=-3.0, upper=3.0)]
)


def line(robot, rng, count=60, length=0.15):
    """Return a configuration and a line of reachable poses that starts at its pose."""
    lower, upper = robot.finite_limits()
    while True:
        q = 0.5 * (lower + upper) + 0.3 * (upper - lower) * rng.uniform(-1.0, 1.0, robot.n)
        direction = rng.normal(size=3)
        Ts = np.tile(robot.fk(q), (count, 1, 1))
        step = length / np.linalg.norm(direction) * direction
        Ts[:, :3, 3] += np.linspace(0.0, 1.0, count)[:, None] * step
        if IkSolver(robot).solve_batch(Ts[:: count - 1]).success.all():
            return q, Ts


def arc(first, last, radius=1.2, count=80):
    """Return poses on an arc around the base of the planar arm, from an angle to another [rad]."""
    angle = np.linspace(first, last, count)
    Ts = np.tile(np.eye(4), (count, 1, 1))
    Ts[:, 0, 3], Ts[:, 1, 3] = radius * np.cos(angle), radius * np.sin(angle)
    return Ts


def motion(q):
    return float(np.linalg.norm(np.diff(q, axis=0), axis=1).sum())


def check(robot, Ts, result, step=STEP):
    """Check the poses, limits and steps of a path; reconfigurations are the only larger steps."""
    assert result.success.all()
    assert robot.within_limits(result.q).all()
    for T, q in zip(Ts, result.q, strict=True):
        assert np.max(errors(robot, T, q)) <= TOLERANCE
    change = np.abs(np.diff(result.q, axis=0))
    assert (change <= step + 1e-12)[~result.jumps[1:]].all()
    assert [each.pose for each in result.reconfigurations] == np.flatnonzero(result.jumps).tolist()


@pytest.mark.parametrize("robot", [WAM, PUMA], ids=["wam", "puma"])
def test_lines_are_followed_with_less_motion_than_from_pose_to_pose(robot):
    rng, solver, shorter = np.random.default_rng(5), IkSolver(robot), []
    for _ in range(6):
        q, Ts = line(robot, rng)
        greedy = solver.solve_path(Ts, q, max_joint_step=STEP)
        result = solver.solve_path(Ts, max_joint_step=STEP, whole=True)
        if greedy.fraction == 1.0:
            assert result.fraction == 1.0
            shorter.append(motion(result.q) <= motion(greedy.q) + 1e-6)
        if result.success.all():
            check(robot, Ts, result)
    assert len(shorter) >= 3
    assert all(shorter)


def test_configurations_between_the_poses_stay_near_the_line():
    """The second derivative of the joint path is bounded, by finite differences."""
    _, Ts = line(WAM, np.random.default_rng(5), count=200)
    result = IkSolver(WAM).solve_path(Ts, max_joint_step=STEP, whole=True)
    assert result.fraction == 1.0
    assert abs(np.diff(result.q, n=2, axis=0)).max() < 0.1 * abs(np.diff(result.q, axis=0)).max()
    middle = WAM.fk(0.5 * (result.q[1:] + result.q[:-1]))
    assert abs(middle[:, :3, 3] - 0.5 * (Ts[1:, :3, 3] + Ts[:-1, :3, 3])).max() < 1e-4


def test_a_seed_that_reaches_the_first_pose_is_the_first_answer():
    q, Ts = line(WAM, np.random.default_rng(5))
    result = IkSolver(WAM).solve_path(Ts, q, max_joint_step=STEP, whole=True)
    check(WAM, Ts, result)
    np.testing.assert_allclose(result.q[0], q, atol=1e-9)


def test_tolerances_shorten_the_motion():
    _, Ts = line(WAM, np.random.default_rng(5))
    solver = IkSolver(WAM)
    whole = solver.solve_path(Ts, whole=True)
    free = Task(rotation_tolerance=(0.05, 0.05, math.pi), frame="target")
    assert motion(solver.solve_path(Ts, task=free, whole=True).q) < motion(whole.q)


def test_the_unavoidable_reconfiguration_of_a_planar_arm_is_the_only_one():
    """Each branch reaches a part of the arc; joint 1 meets its limit at the end of the part."""
    solver, Ts = IkSolver(PLANAR, task=Task("xy", "")), arc(-2.5, 2.5)
    result = solver.solve_path(Ts, max_joint_step=STEP, whole=True)
    assert result.success.all()
    assert result.jumps.sum() == result.min_reconfigurations == 1
    (each,) = result.reconfigurations
    assert each.reason == "limit"
    assert each.names == (PLANAR.joint_names[0],)
    assert f"{each.names[0]} would leave the joint limits" in str(each)
    # With the cosine rule, the branches overlap for angles from -1.07 to 1.07 rad.
    bound = 2.0 - math.acos(0.6)
    angles = np.linspace(-2.5, 2.5, len(Ts))
    assert abs(angles[each.pose]) <= bound + 0.1
    assert angles[each.last] == pytest.approx(bound, abs=0.1)
    assert result.fraction == each.pose / len(Ts)
    short = solver.solve_path(arc(-1.0, 2.5), max_joint_step=STEP, whole=True)
    assert short.fraction == 1.0
    assert short.min_reconfigurations == 0


def test_poses_at_a_singularity_have_a_bounded_number_of_candidates(monkeypatch):
    """The wrist is singular at the first pose, which therefore has a continuum of solutions."""
    monkeypatch.setattr(whole_path, "MAX_BRANCHES", 40)
    sizes, add = list[int](), CandidateGraph.add

    def counted(self, i, *arguments):
        added = add(self, i, *arguments)
        sizes.append(len(self.layers[i]))
        return added

    monkeypatch.setattr(CandidateGraph, "add", counted)
    q = 0.5 * (PUMA.lower + PUMA.upper) + [0.3, 0.2, 0.3, 0.4, 0.0, 0.5]
    Ts = PUMA.fk(np.add(q, [np.zeros(6), [0.6, 0.3, -0.4, 0.8, 0.9, 0.1]]))
    result = IkSolver(PUMA).solve_path(Ts, whole=True, max_joint_step=STEP)
    assert max(sizes) == 40
    assert len(result.reconfigurations) == 1
    assert result.min_reconfigurations is None, "branches beyond the limit are unknown"


def test_missed_and_invalid_poses_are_reported():
    _, Ts = line(WAM, np.random.default_rng(5))
    Ts[3, 0, 3] = np.nan
    Ts[40, :3, 3] = 9.0
    result = IkSolver(WAM).solve_path(Ts, whole=True)
    assert result.statuses[3] is Status.REFUSED
    assert result.statuses[40] is Status.UNREACHABLE
    assert result.success.sum() == len(Ts) - 2
    assert result.fraction == 3 / len(Ts)


def test_a_path_past_an_obstacle_is_collision_free():
    """A ball stands at the elbow of the path that is found without it."""
    scene = PlanningScene(WAM)
    _, Ts = line(WAM, np.random.default_rng(5))
    solver = IkSolver(WAM, scene=scene)
    before = solver.solve_path(Ts, max_joint_step=STEP, whole=True)
    assert before.fraction == 1.0
    elbow = RobotModel.from_name("wam", tip="wam_link4")
    scene.add_sphere("ball", 0.05, elbow.fk(before.q[30, : elbow.n]))
    result = solver.solve_path(Ts, max_joint_step=STEP, whole=True)
    check(WAM, Ts, result)
    assert result.fraction == 1.0
    assert result.contacts == (None,) * len(Ts)
    assert not scene.in_collision(result.q).any()
    for q0, q1 in pairwise(result.q):
        assert scene.path_in_collision(q0, q1) is None


def test_a_wall_across_the_path_is_named():
    """The tip is in the wall at some poses; the poses behind it are reached nevertheless."""
    scene = PlanningScene(WAM)
    _, Ts = line(WAM, np.random.default_rng(5))
    scene.add_sphere("ball", 0.03, Ts[30])
    result = IkSolver(WAM, scene=scene).solve_path(Ts, max_joint_step=STEP, whole=True)
    assert result.statuses[30] is Status.IN_COLLISION
    assert "ball" in result.pairs_in_the_way[30]
    assert result.success[[0, -1]].all()
    assert 0.0 < result.fraction < 0.5


def test_timeout_and_interruption_return_the_best_path_so_far():
    _, Ts = line(WAM, np.random.default_rng(5), count=2000)
    result = IkSolver(WAM).solve_path(Ts, whole=True, timeout=1e-3)
    assert not result.is_complete
    assert set(result.statuses[-3:]) == {Status.TIMED_OUT}
    assert "not finished" in repr(result)

    def interrupt(done, total):
        if done == 20:
            raise KeyboardInterrupt

    with pytest.raises(BatchInterrupted) as caught:
        IkSolver(WAM).solve_path(Ts, whole=True, progress=interrupt)
    assert caught.value.result.success[:20].all()
    assert set(caught.value.result.statuses[20:]) == {Status.INTERRUPTED}


def test_progress_ends_with_all_poses():
    _, Ts = line(WAM, np.random.default_rng(5))
    seen = []
    IkSolver(WAM).solve_path(Ts, whole=True, progress=lambda *each: seen.append(each))
    assert seen[-1] == (len(Ts), len(Ts))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_short_paths(count):
    _, Ts = line(WAM, np.random.default_rng(5))
    result = IkSolver(WAM).solve_path(Ts[:count], whole=True)
    assert len(result) == count
    assert result.success.all()
    assert result.fraction == 1.0


def test_many_poses_end_at_the_timeout():
    Ts = np.tile(WAM.fk(np.full(7, 0.5)), (100_000, 1, 1))
    result = IkSolver(WAM).solve_path(Ts, whole=True, timeout=0.05)
    assert len(result) == 100_000
    assert not result.is_complete


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (0, "above 0"),
        (-1.0, "above 0"),
        (math.nan, "above 0"),
        ("fast", "'fast'"),
        (None, "None"),
        ([0.1, 0.2], "7 numbers"),
        ({"elbow": 0.1}, "'elbow'"),
        ({"revolute": 0.0}, "above 0"),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
def test_invalid_joint_steps_are_refused(given, message, whole):
    with pytest.raises(OptionError, match=message):
        IkSolver(WAM).solve_path(np.eye(4)[None], max_joint_step=given, whole=whole)


def test_joint_steps_by_name_and_type():
    _, Ts = line(WAM, np.random.default_rng(5))
    solver, name = IkSolver(WAM), WAM.joint_names[3]
    for whole in (False, True):
        small = solver.solve_path(Ts, max_joint_step={name: 1e-6}, whole=whole)
        large = solver.solve_path(Ts, max_joint_step={name: 1.0, "revolute": 1.0}, whole=whole)
        assert small.jumps.sum() > 10 > large.jumps.sum()
    assert small.reconfigurations[0].reason == "step"


def test_a_timeout_needs_a_path_solved_as_a_whole():
    with pytest.raises(OptionError, match="whole=True"):
        IkSolver(WAM).solve_path(np.eye(4)[None], timeout=1.0)
