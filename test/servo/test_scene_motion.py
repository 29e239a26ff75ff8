# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint motion in a scene: around obstacles, without a path, and while the scene changes."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from drive import Drive, assert_limits

from benchmarks.obstructed_targets import free_configuration, outcome, random_scene
from dls_ik import PlanningScene, RobotModel
from dls_ik.model.rotations import transform
from dls_ik.scene.shapes import Body, Box, Sphere
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.joint_motion import MotionLimits, TimedPath

START, GOAL = np.array([1.0, 3.0]), np.array([3.0, 3.0])
LIMITS = {"acceleration": 4.0, "min_distance": 0.02}


def slides(*walls):
    """Return a robot that moves a ball in a plane by two joints, and walls (x, y, wide, high)."""
    rows = [
        {"kind": "prismatic", "lower": 0.0, "upper": 4.0, "velocity": 1.0, "alpha": alpha}
        for alpha in (-np.pi / 2, 0.0)
    ]
    robot = RobotModel.from_dh(rows)
    tip = robot.tips[0]
    scene = PlanningScene(robot, bodies={tip: Body(tip, ((Sphere(0.05), np.eye(4)),))})
    for number, wall in enumerate(walls):
        add_wall(scene, f"wall {number}", *wall)
    return robot, scene


def add_wall(scene, name, x, y, wide, high):
    scene.add(name, Box([1.0, high, wide]), transform(translation=np.array([0.0, y, x])))


def started(walls, **options):
    robot, scene = slides(*walls)
    drive = Drive(START, robot, scene=scene, **{**LIMITS, **options})
    return drive.pose(robot.fk(GOAL)), scene


def smallest_distance(scene, q):
    return min(scene.distance(each).distance for each in q)


@pytest.mark.parametrize("jerk", [np.inf, 40.0])
def test_motion_around_a_wall_keeps_limits(jerk):
    drive, scene = started([(2.0, 3.0, 0.1, 1.5)], jerk=jerk)
    assert drive.run_until(ServoState.REACHED, 15.0)
    assert ServoState.JOINT_MOTION in drive.states
    assert smallest_distance(scene, drive.q) >= 0.02 - 1e-6
    drive.assert_limits(4.0, jerk)


def test_motion_around_a_wall_continues_to_a_target_that_moves():
    drive, scene = started([(2.0, 3.0, 0.1, 1.5)])
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(0.01)
    goal = GOAL.copy()

    def move_hand(drive):
        goal[0] += 0.0005
        drive.pose(drive.controller.robot.fk(goal))

    drive.run(1.0, move_hand)
    assert set(drive.states[-100:]) == {ServoState.JOINT_MOTION}
    T = drive.controller.robot.fk(goal)
    drive.run(8.0, lambda drive: drive.pose(T))
    assert drive.last.state is ServoState.REACHED
    np.testing.assert_allclose(drive.last.q, goal, atol=1e-5)
    assert smallest_distance(scene, drive.q) >= 0.02 - 1e-6
    drive.assert_limits(4.0)


def test_arm_holds_until_there_is_a_path():
    drive, scene = started([(2.0, 2.0, 0.1, 9.0)])
    drive.run(6.0)
    assert drive.last.state is ServoState.BLOCKED
    assert "'wall 0'" in drive.last.message
    assert not drive.last.velocity.any()
    scene.remove("wall 0")
    assert drive.run_until(ServoState.REACHED, 8.0)


@pytest.mark.parametrize("threads", [0, 1])
def test_wall_that_blocks_the_path_is_avoided(threads):
    """The gap on the planned path closes during the motion; the other gap stays open."""
    with ThreadPoolExecutor(1) as executor:
        given = executor if threads else None
        drive, scene = started([(2.0, 2.2, 0.1, 2.6)], executor=given)  # gaps: below 0.9, above 3.5
        while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
            drive.run(0.01)
        drive.run(0.3)
        below = drive.controller._tracker._motion.motion.remaining_path[:, 1].min() < 1.5
        add_wall(scene, "wall 1", 2.0, 0.4 if below else 3.7, 0.1, 1.2 if below else 0.6)
        assert drive.run_until(ServoState.REACHED, 30.0)
        assert smallest_distance(scene, drive.q) >= 0.02 - 1e-6
    drive.assert_limits(4.0)


def test_path_blocked_by_a_new_scene_resets_the_search_count():
    drive, scene = started([(2.0, 2.2, 0.1, 2.6)])
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(0.01)
    drive.controller._tracker._motion.attempt = 3  # earlier searches among other walls
    drive.run(0.3)
    below = drive.controller._tracker._motion.motion.remaining_path[:, 1].min() < 1.5
    add_wall(scene, "wall 1", 2.0, 0.4 if below else 3.7, 0.1, 1.2 if below else 0.6)
    before = drive.controller._tracker._motion
    while drive.controller._tracker._motion is before:
        drive.run(0.01)
    assert drive.controller._tracker._motion.attempt == 0


def test_taken_over_path_to_an_unreachable_target_is_not_replanned():
    drive, scene = started([(2.0, 3.0, 0.1, 1.5)])
    robot = drive.controller.robot
    beyond = robot.fk(GOAL)
    beyond[0, 3] += 1.5  # a point out of the plane of the joints
    drive.pose(beyond)
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(0.01)
    drive.run(1.0)
    slow = Controller(robot, scene=scene, scale=0.5, **LIMITS)
    planner, searches = slow._tracker._planner, []
    plan = planner.request_path

    def counted(*args):
        searches.append(plan(*args))
        return searches[-1]

    planner.request_path = counted
    slow.take_over(drive.controller)
    outputs = [slow.cycle(drive.now + 0.01 * (k + 1), 0.01) for k in range(2000)]
    assert outputs[-1].state is ServoState.UNREACHABLE
    assert [each.result().plan for each in searches] == [None], "the rest of the path only"


def test_take_over_continues_along_the_path():
    drive, scene = started([(2.0, 3.0, 0.1, 1.5)])
    while not drive.outputs or drive.last.state is not ServoState.JOINT_MOTION:
        drive.run(0.01)
    drive.run(0.5)
    slow = Controller(drive.controller.robot, scene=scene, scale=0.5, **LIMITS)
    slow.take_over(drive.controller)
    q, states = [*drive.q], []
    for k in range(3000):
        out = slow.cycle(drive.now + 0.01 * (k + 1), 0.01)
        q.append(out.q)
        states.append(out.state)
        if out.state is ServoState.REACHED:
            break
    assert states[-1] is ServoState.REACHED
    assert ServoState.FOLLOWING not in states[:50], "no new local motion"
    assert smallest_distance(scene, q) >= 0.02 - 1e-6
    assert_limits(drive.controller.robot, np.array(q), 0.01, 4.0)


def test_targets_among_obstacles_are_reached():
    """Check the criterion of benchmarks.obstructed_targets on a few obstructed cases."""
    robot, rng, times = RobotModel.wam(), np.random.default_rng(5), []
    while len(times) < 4:
        scene = random_scene(robot, rng, 12)
        controller = Controller(robot, scene=scene, acceleration=5.0)
        ends = [free_configuration(scene, rng, 0.012) for _ in range(2)]
        if scene.path_in_collision(*ends) is None:
            continue
        if scene.plan(*ends, min_distance=0.012, max_nodes=500).success:
            times.append(outcome(controller, scene, tuple(ends), 0.01, 10.0).time)
    assert max(times) <= 10.0


@pytest.mark.parametrize("jerk", [np.inf, 20.0])
def test_timed_paths_keep_limits_from_rest_to_rest(jerk):
    rng, dt = np.random.default_rng(0), 1e-3
    for count in (2, 3, 6):
        path = rng.uniform(-1, 1, (count, 4))
        velocity, acceleration = np.array([1.0, 2.0, 1.0, 3.0]), np.array([1.0, 2.0, 5.0, 10.0])
        trajectory = TimedPath(path, MotionLimits(velocity, acceleration, np.full(4, jerk)))
        q = np.array([trajectory.at(t) for t in np.arange(0.0, trajectory.duration + 3 * dt, dt)])
        np.testing.assert_allclose(q[[0, -1]], path[[0, -1]], atol=1e-12)
        v = np.diff(q, axis=0, prepend=path[:1]) / dt
        a = np.diff(v, axis=0) / dt
        assert (np.abs(v) <= velocity * (1 + 1e-6)).all()
        assert (np.abs(a) <= acceleration * (1 + 1e-6)).all()
        if np.isfinite(jerk):
            assert (np.abs(np.diff(a, axis=0)) / dt <= jerk * (1 + 1e-3)).all()
        inside = slice(int(0.4 / dt), -int(0.4 / dt))
        assert np.abs(v[inside] / velocity).max(axis=1).min() > 0.05, "no stop in a corner"
        shortest = (np.abs(np.diff(path, axis=0)) / velocity).max(axis=1).sum()
        assert trajectory.duration <= 1.8 * shortest + 1.5
