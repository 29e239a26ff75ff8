# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Controllers with several tips: targets per tip, relative poses, priorities, timeouts."""

import numpy as np
import pytest

from dls_ik import FrameTask, PlanningScene, PostureTask, RobotModel, Task, TaskStack
from dls_ik.errors import MethodError, OptionError, PoseError
from dls_ik.model.files import share_file
from dls_ik.servo import Controller, ServoState

LEFT, RIGHT = "left_wam_tip", "right_wam_tip"
BOTH = RobotModel.from_urdf(share_file("urdf", "two_wams.urdf"), tip=(LEFT, RIGHT))
HOME = np.tile([0.0, 0.6, 0.0, 1.8, 0.0, 0.6, 0.0], 2)
T_LEFT, T_RIGHT = BOTH.fk(HOME)
GRIP = np.linalg.inv(T_LEFT) @ T_RIGHT
CARRY = TaskStack(FrameTask(RIGHT, GRIP, reference=LEFT), [Task(), Task.free()])
DT, ACCELERATION = 0.004, 5.0


def controller(task=None, **options):
    """A controller of both arms, at rest at HOME."""
    made = Controller(BOTH, task=task, **{"acceleration": ACCELERATION, **options})
    made.seed(HOME)
    return made


def run(made, cycles, start=0, each=None):
    """Outputs of cycles; `each` is called with the number of each cycle before it."""
    outputs = []
    for k in range(start, start + cycles):
        if each is not None:
            each(k, (k + 1) * DT)
        outputs.append(made.cycle((k + 1) * DT, DT))
    return outputs


def moved(T, *by):
    """A pose, translated in the base frame."""
    T = T.copy()
    T[:3, 3] += by
    return T


def errors(T, target):
    """Distance [m] and angle [rad] between poses (..., 4, 4)."""
    chord = np.linalg.norm(T[..., :3, :3] - target[..., :3, :3], axis=(-2, -1))
    return np.linalg.norm((T - target)[..., :3, 3], axis=-1), 2.0 * np.arcsin(chord / np.sqrt(8.0))


def hands(outputs):
    """Poses (c, 2, 4, 4) of both tips."""
    return BOTH.fk(np.array([out.q for out in outputs]))


def grip_errors(outputs, grip=GRIP):
    """Largest error of the pose of the right tip in the frame of the left one [m, rad]."""
    T = hands(outputs)
    return tuple(float(e.max()) for e in errors(np.linalg.inv(T[:, 0]) @ T[:, 1], grip))


def assert_limits(outputs):
    """Assert the limits of the commands, by finite differences."""
    q = np.vstack([HOME, [out.q for out in outputs]])
    v = np.diff(q, axis=0) / DT
    assert (q >= BOTH.lower - 1e-9).all()
    assert (q <= BOTH.upper + 1e-9).all()
    assert (np.abs(v) <= BOTH.velocity * (1.0 + 1e-9)).all()
    a = np.abs(np.diff(v, axis=0, prepend=np.zeros((1, BOTH.n)))) / DT
    assert a.max() <= ACCELERATION * (1.0 + 1e-6)


@pytest.mark.parametrize("task", [None, TaskStack([Task(), Task()], PostureTask(HOME))])
def test_each_tip_follows_its_own_pose(task):
    made = controller(task)
    left, right = moved(T_LEFT, 0.1, 0.0, 0.1), moved(T_RIGHT, -0.1, 0.05, 0.0)
    made.follow_pose(left, 0.0, tip=LEFT)
    outputs = run(made, 10)
    made.follow_pose(right, 0.04, tip=RIGHT)
    outputs += run(made, 1000, 10)
    T = hands(outputs)[-1]
    assert np.allclose(T, [left, right], atol=1e-6)
    assert outputs[-1].state is ServoState.REACHED
    assert [tip.state for tip in outputs[-1].tips] == [ServoState.REACHED] * 2
    assert [tip.name for tip in outputs[-1].tips] == [LEFT, RIGHT]
    assert_limits(outputs)


@pytest.mark.parametrize("task", [None, CARRY])
def test_all_poses_at_once(task):
    made = controller(task)
    made.follow_pose([moved(T_LEFT, 0.0, 0.0, 0.1), moved(T_RIGHT, 0.0, 0.0, 0.1)], 0.0)
    assert np.allclose(hands(run(made, 800))[-1, :, 2, 3], T_LEFT[2, 3] + 0.1, atol=1e-6)


def test_tip_without_target_holds_its_pose():
    made = controller()
    made.follow_pose(moved(T_LEFT, 0.1, 0.0, 0.1), 0.0, tip=LEFT)
    outputs = run(made, 500)
    distance, angle = errors(hands(outputs)[:, 1], T_RIGHT)
    assert distance.max() < 1e-6
    assert angle.max() < 1e-6
    assert outputs[0].tips[1].state is ServoState.WAITING
    assert outputs[0].tips[0].state is ServoState.FOLLOWING


def test_relative_pose_is_kept_while_one_arm_meets_its_limits():
    """The object moves out of the reach of the right arm, whose joints meet their limits."""
    made = controller(CARRY)

    def stream(k, now):
        T = moved(T_LEFT, *np.array([0.25, 0.7, 0.3]) * np.sin(np.array([0.6, 0.4, 0.8]) * now))
        made.follow_pose(T, now, tip=LEFT)

    outputs = run(made, 1500, each=stream)
    margins = np.minimum(
        *np.abs([np.array([o.q for o in outputs]) - b for b in (BOTH.lower, BOTH.upper)])
    )
    assert margins.min() < 1e-3  # a joint is at its limit
    assert max(out.position_error for out in outputs) > 0.05  # the place is given up
    position, rotation = grip_errors(outputs)
    assert position < 1e-4
    assert rotation < 1e-4
    assert_limits(outputs)


def test_relative_pose_is_kept_for_a_single_far_pose_and_a_pause():
    made = controller(CARRY)
    made.follow_pose(moved(T_LEFT, 0.0, 0.1, 0.3), 0.0, tip=LEFT)
    outputs = run(made, 60)
    made.pause()
    outputs += run(made, 100, 60)
    assert not made.moves
    assert grip_errors(outputs)[0] < 1e-4
    assert_limits(outputs)


def test_relative_pose_has_its_own_target():
    made = controller(CARRY)
    other = moved(GRIP, 0.0, 0.1, 0.0)
    made.follow_pose(moved(T_LEFT, 0.0, 0.0, 0.1), 0.0, tip=LEFT)
    made.follow_pose(other, 0.0, tip=RIGHT, reference=LEFT)
    outputs = run(made, 1000)
    assert max(grip_errors(outputs[-1:], other)) < 1e-6
    assert outputs[-1].state is ServoState.REACHED
    assert [tip.name for tip in outputs[-1].tips] == [LEFT, f"{RIGHT} in {LEFT}"]
    assert outputs[-1].T_d.shape == (3, 4, 4)


def test_lower_levels_never_change_the_levels_above():
    """The right tip and a posture pull in vain at a stack whose first level is the left tip."""
    alone = TaskStack([Task(), Task.free()], PostureTask(HOME))
    lower = TaskStack(
        [Task(), Task.free()], FrameTask(RIGHT, T_RIGHT), PostureTask(np.zeros(BOTH.n))
    )
    target, found = moved(T_LEFT, 0.1, 0.1, 0.1), []
    for task in (alone, lower):
        made = controller(task)
        made.follow_pose(target, 0.0, tip=LEFT)
        if task is lower:
            made.follow_pose(moved(T_RIGHT, 2.0, 0.0, 0.0), 0.0, tip=RIGHT)
        found.append(run(made, 1500))
        assert max(x[-1] for x in errors(hands(found[-1])[:, 0], target)) < 1e-9
        assert_limits(found[-1])
    assert np.linalg.norm(hands(found[1])[-1, 1, :3, 3] - T_RIGHT[:3, 3]) > 0.1


def test_second_tip_yields_where_both_share_joints():
    """A trunk carries both tips of the Y; the tip of the upper level gets its position."""
    tips = ("E0", "E1")
    robot = RobotModel.from_urdf(share_file("urdf", "y_shape.urdf"), tip=tips)
    q = np.full(robot.n, 0.1)
    T = robot.fk(q)
    point = Task.position_only()
    stack = TaskStack([point, Task.free()], FrameTask("E1", T[1, :3, 3], point))
    made = Controller(robot, task=stack, acceleration=5.0)
    made.seed(q)
    made.follow_pose(T[0, :3, 3] + (0.1, 0.1, 0.0), 0.0, tip="E0")
    made.follow_pose(T[1, :3, 3] + (9.0, 0.0, 0.0), 0.0, tip="E1")
    for k in range(2000):
        out = made.cycle((k + 1) * DT, DT)
    assert np.linalg.norm(robot.fk(out.q)[0, :3, 3] - T[0, :3, 3] - (0.1, 0.1, 0.0)) < 1e-6
    assert not np.abs(out.velocity).max() > 0.05


@pytest.mark.parametrize("task", [None, TaskStack([Task(), Task()], PostureTask(HOME))])
def test_tip_that_times_out_holds_while_the_other_continues(task):
    made = controller(task, target_timeout=0.1, when_stream_ends="stop")

    def stream(k, now):
        up = 0.1 * np.sin(now)
        made.follow_pose(moved(T_LEFT, 0.0, 0.0, up), now, tip=LEFT)
        if k < 100:
            made.follow_pose(moved(T_RIGHT, 0.0, 0.0, up), now, tip=RIGHT)

    outputs = run(made, 300, each=stream)
    states = [[tip.state for tip in out.tips] for out in outputs]
    assert states[120][1] is ServoState.FOLLOWING  # 80 ms after the last pose
    assert states[-1][1] is ServoState.TIMED_OUT
    assert "when_stream_ends" in outputs[-1].tips[1].message
    assert outputs[-1].state in (ServoState.FOLLOWING, ServoState.REACHED)
    T = hands(outputs)
    assert np.ptp(T[200:, 1, 2, 3]) < 1e-4  # the right tip stands
    assert np.ptp(T[200:, 0, 2, 3]) > 0.01
    assert_limits(outputs)
    made.follow_pose(T_RIGHT, 1.2, tip=RIGHT)
    assert run(made, 1, 300)[0].tips[1].state is ServoState.FOLLOWING


def test_all_streams_that_time_out_stop_the_arm():
    made = controller(CARRY, target_timeout=0.1, when_stream_ends="stop")
    outputs = run(
        made,
        100,
        each=lambda k, now: made.follow_pose(moved(T_LEFT, 0, 0, 0.1 * now), now, tip=LEFT),
    )
    outputs += run(made, 100, 100)
    assert outputs[-1].state is ServoState.TIMED_OUT
    assert {tip.state for tip in outputs[-1].tips} == {ServoState.TIMED_OUT}
    assert grip_errors(outputs)[0] < 1e-4


@pytest.mark.parametrize("task", [None, CARRY])
def test_twist_of_one_tip(task):
    made = controller(task)
    outputs = run(
        made,
        250,
        each=lambda k, now: made.follow_twist([0, 0, 0.1, 0, 0, 0], now, np.eye(3), tip=LEFT),
    )
    T = hands(outputs)
    assert T[-1, 0, 2, 3] - T_LEFT[2, 3] == pytest.approx(0.1, abs=0.01)
    if task is None:
        assert np.abs(T[-1, 1] - T_RIGHT).max() < 1e-3
    else:
        assert grip_errors(outputs)[0] < 1e-4


def test_trajectory_of_one_tip():
    made = controller()
    path = np.array([T_LEFT, moved(T_LEFT, 0.1, 0.0, 0.0), moved(T_LEFT, 0.1, 0.1, 0.0)])
    made.follow_trajectory(path, 0.5, 0.0, tip=LEFT)
    T = hands(run(made, 600))
    assert np.allclose(T[-1, 0], path[-1], atol=1e-4)
    assert np.abs(T[:, 0, :3, 3] - path[1, :3, 3]).sum(axis=1).min() < 0.03


def test_jerk_limits():
    jerk = 100.0
    made = controller(CARRY, jerk=jerk)
    made.follow_pose(moved(T_LEFT, 0.0, 0.1, 0.2), 0.0, tip=LEFT)
    outputs = run(made, 800)
    v = np.diff(np.vstack([HOME, [out.q for out in outputs]]), axis=0) / DT
    second = np.diff(np.vstack([np.zeros((2, BOTH.n)), v]), n=2, axis=0) / DT**2
    assert np.abs(second).max() <= jerk * (1.0 + 1e-3)
    assert max(grip_errors(outputs[-1:])) < 1e-6


def test_speed_limit_of_every_tip():
    made = controller(max_linear_speed=0.1)
    made.follow_pose(moved(T_LEFT, 0.0, 0.0, 0.2), 0.0, tip=LEFT)
    made.follow_pose(moved(T_RIGHT, 0.1, 0.0, 0.2), 0.0, tip=RIGHT)
    T = hands(run(made, 700))
    speeds = np.linalg.norm(np.diff(T[:, :, :3, 3], axis=0), axis=2) / DT
    assert speeds.max() <= 0.1 * (1.0 + 1e-6)
    assert speeds.max(axis=0) == pytest.approx([0.1, 0.1], rel=0.1)
    assert np.allclose(T[-1, 0], moved(T_LEFT, 0.0, 0.0, 0.2), atol=1e-3)


def test_arms_keep_their_distance_from_each_other():
    made = controller(CARRY, scene=PlanningScene(BOTH), min_distance=0.05)
    made.follow_pose(moved(GRIP, 0.0, 0.75, 0.0), 0.0, tip=RIGHT, reference=LEFT)
    made.follow_pose(T_LEFT, 0.0, tip=LEFT)
    outputs = run(made, 600)
    distances = [out.nearest.distance for out in outputs if out.nearest is not None]
    assert 0.05 - 1e-6 < min(distances) < 0.06
    assert_limits(outputs)
    assert outputs[-1].state in (ServoState.NEAR_COLLISION, ServoState.BLOCKED)


def test_frozen_and_weighted_joints():
    joint = BOTH.joint_names[0]
    made = controller(CARRY, frozen_joints=[joint], joint_weights={BOTH.joint_names[1]: 9.0})
    made.follow_pose(moved(T_LEFT, 0.05, 0.05, 0.1), 0.0, tip=LEFT)
    outputs = run(made, 1000)
    assert outputs[-1].q[0] == HOME[0]
    assert outputs[-1].state is ServoState.REACHED
    assert grip_errors(outputs)[0] < 1e-4


def test_taking_over_keeps_targets_by_tip():
    old = controller(target_timeout=0.2)
    old.follow_pose(moved(T_LEFT, 0.0, 0.0, 0.1), 0.0, tip=LEFT)
    run(old, 50)
    new = controller(CARRY)
    new.take_over(old)
    outputs = run(new, 1000, 50)
    assert np.allclose(hands(outputs)[-1, 0], moved(T_LEFT, 0.0, 0.0, 0.1), atol=1e-6)
    assert max(grip_errors(outputs[-1:])) < 1e-6


def test_refused_target_of_one_tip_lets_the_other_continue():
    made = controller()
    made.follow_pose(moved(T_LEFT, 0.0, 0.0, 0.1), 0.0, tip=LEFT)
    made.refuse("a wrong frame", RIGHT)
    out = run(made, 1)[0]
    assert [tip.state for tip in out.tips] == [ServoState.FOLLOWING, ServoState.REFUSED]
    made.refuse("another one", LEFT)
    assert run(made, 1, 1)[0].state is ServoState.REFUSED


def test_wrong_tips_are_refused_with_the_valid_names():
    made = controller(CARRY)
    for call, words in {
        lambda: made.follow_pose(T_LEFT, 0.0, tip="left_wam_tp"): "tips are left_wam_tip",
        lambda: made.follow_pose(T_LEFT, 0.0, tip=RIGHT): "is free in its task",
        lambda: made.follow_pose(T_LEFT, 0.0, tip=LEFT, reference=LEFT): "relative to itself",
        lambda: made.follow_pose(T_LEFT, 0.0, tip=LEFT, reference=RIGHT): f"{RIGHT} in {LEFT}",
        lambda: made.follow_twist(np.zeros(6), 0.0): "there are several tips",
        lambda: controller().follow_pose(T_LEFT, 0.0, tip=LEFT, reference=RIGHT): "FrameTask",
    }.items():
        with pytest.raises(OptionError, match=words):
            call()
    with pytest.raises(PoseError):
        made.follow_pose(T_LEFT, 0.0)
    assert not made.started
    twice = TaskStack([Task(), Task()], FrameTask(RIGHT, T_RIGHT))
    with pytest.raises(OptionError, match="two tasks for its pose"):
        controller(twice)
    twice = TaskStack(*[FrameTask(RIGHT, GRIP, reference=LEFT)] * 2, [Task(), Task.free()])
    with pytest.raises(OptionError, match="two tasks for its pose relative to"):
        controller(twice)
    with pytest.raises(MethodError, match="least squares"):
        Controller(BOTH, "svf", task=CARRY)


def test_single_tip_may_be_named():
    wam = RobotModel.wam()
    made = Controller(wam)
    made.follow_pose(wam.fk(np.zeros(7)), 0.0, tip=wam.tip)
    with pytest.raises(OptionError, match="unknown tip"):
        made.follow_pose(wam.fk(np.zeros(7)), 0.0, tip="hand")


def test_level_above_the_tip_of_a_single_arm():
    """The elbow keeps its height, and the tip comes as close as it can."""
    wam, q = RobotModel.wam(), HOME[:7]
    elbow = wam.link_pose("wam_link4", q)[:3, 3]
    stack = TaskStack(FrameTask("wam_link4", elbow, Task("z", "")), Task())
    made = Controller(wam, task=stack, acceleration=5.0)
    made.seed(q)
    made.follow_pose(moved(wam.fk(q), 0.0, 0.1, 0.1), 0.0)
    for k in range(1000):
        out = made.cycle((k + 1) * DT, DT)
        assert wam.link_pose("wam_link4", out.q)[2, 3] == pytest.approx(elbow[2], abs=1e-5)
    assert not np.abs(out.velocity).max() > 1e-2
