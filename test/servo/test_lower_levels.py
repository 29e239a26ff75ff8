# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks, weighted and frozen joints of a controller."""

import numpy as np
import pytest

from dls_ik import (
    CouplingTask,
    ObjectiveTask,
    PlanningScene,
    PostureTask,
    RobotModel,
    SwivelTask,
    Task,
    TaskStack,
)
from dls_ik.errors import JointValueError, OptionError
from dls_ik.scene.shapes import Sphere
from dls_ik.servo import Controller
from dls_ik.servo.local_ik import LocalIk

WAM = RobotModel.wam()
HOME = np.array([0.3, 0.5, -0.2, 1.2, 0.3, 0.4, 0.1])
T = WAM.fk(HOME)
DT = 0.002


def controller(task, **options):
    """A controller with a target at its tip, at rest at HOME."""
    made = Controller(WAM, task=task, **{"acceleration": 5.0, **options})
    made.seed(HOME)
    made.follow_pose(T, 0.0)
    return made


def run(made, cycles, start=0, each=None):
    """Commands of cycles (cycles, n); `each` is called before every cycle."""
    commands = np.empty((cycles, WAM.n))
    for k in range(cycles):
        if each is not None:
            each(start + k)
        made.cycle((start + k + 1) * DT, DT)
        commands[k] = made.command
    return commands


def tip_errors(commands, target=T):
    """Largest distance [m] and angle [rad] of the tip from its target."""
    poses = WAM.fk(commands)
    distance = np.linalg.norm(poses[:, :3, 3] - target[:3, 3], axis=1).max()
    chord = np.linalg.norm(poses[:, :3, :3] - target[:3, :3], axis=(1, 2)).max()
    return distance, chord / np.sqrt(2.0)


def swivel(q):
    """Swivel angle of a configuration: the one whose error is zero."""
    made = LocalIk(WAM, task=TaskStack(Task(), SwivelTask(0.0)))
    made.reset(q)
    made.step(WAM.fk(q), 1e-9)
    low = made.lower_levels.residuals[1]
    made = LocalIk(WAM, task=TaskStack(Task(), SwivelTask(low)))
    made.reset(q)
    made.step(WAM.fk(q), 1e-9)
    return low if made.lower_levels.residuals[1] < 1e-6 else -low


def test_elbow_moves_to_swivel_angles_while_the_tip_stands_still():
    start = swivel(HOME)
    made = controller(TaskStack(Task(), SwivelTask(start)))
    goals = {100: start + 0.8, 2600: start - 0.4, 5100: start}

    def each(k):
        if k in goals:
            made.set_swivel(goals[k])

    commands = run(made, 7600, each=each)
    for end, goal in ((2599, start + 0.8), (5099, start - 0.4), (7599, start)):
        assert swivel(commands[end]) == pytest.approx(goal, abs=5e-3)
    distance, angle = tip_errors(commands)
    assert distance < 1e-6
    assert angle < 2e-6
    speed = np.diff(commands, axis=0) / DT
    assert (np.abs(speed) <= WAM.velocity * (1 + 1e-9)).all()
    assert np.abs(np.diff(speed, axis=0)).max() / DT <= 5.0 * (1 + 1e-6)


def test_elbow_stops_at_a_joint_limit_without_moving_the_tip():
    made = controller(TaskStack(Task(), SwivelTask(swivel(HOME) + 3.0)))
    commands = run(made, 3000)
    assert (commands >= WAM.lower).all()
    assert (commands <= WAM.upper).all()
    gaps = np.minimum(commands[-1] - WAM.lower, WAM.upper - commands[-1])
    assert gaps.min() < 1e-3  # a joint is at its limit
    distance, angle = tip_errors(commands)
    assert distance < 5e-6
    assert angle < 2e-5


def test_posture_uses_what_the_tip_leaves_free():
    made = controller(TaskStack(Task(), PostureTask(np.zeros(7))))
    commands = run(made, 3000)
    assert tip_errors(commands)[0] < 1e-6
    assert np.linalg.norm(commands[-1]) < np.linalg.norm(HOME)
    spare = np.linalg.svd(WAM.jacobian(commands[-1]))[2][-1]
    assert spare @ commands[-1] == pytest.approx(0.0, abs=1e-4)


def test_posture_is_changed_by_name_without_a_new_start():
    made = controller(TaskStack(Task(), PostureTask({"wam_j1": HOME[0], "wam_j5": 0.0})))
    run(made, 500)
    made.set_posture({"wam_j1": HOME[0] + 0.2})
    commands = run(made, 2000, 500)
    assert commands[-1, 0] > commands[0, 0] + 0.01
    assert tip_errors(commands)[0] < 1e-6


def test_lower_levels_never_change_where_the_tip_goes():
    target = T.copy()
    target[:3, 3] += (0.05, -0.05, -0.05)
    ends = []
    for task in (Task(), TaskStack(Task(), ObjectiveTask("manipulability")),
                 TaskStack(Task(), SwivelTask(0.5), PostureTask(HOME))):  # fmt: skip
        made = controller(task)
        made.follow_pose(target, 0.0)
        ends.append(run(made, 3000)[-1])
    for q in ends:
        np.testing.assert_allclose(WAM.fk(q), target, atol=3e-6)
    assert np.abs(ends[1] - ends[0]).max() > 1e-3


def test_lower_levels_do_not_push_links_into_objects():
    scene = PlanningScene(WAM)
    goal = swivel(HOME) + 0.9
    free = run(controller(TaskStack(Task(), SwivelTask(goal))), 3000)
    elbow = WAM.link_pose("wam_link4", free[-1])
    scene.add("ball", Sphere(0.05), elbow)
    made = controller(TaskStack(Task(), SwivelTask(goal)), scene=scene, min_distance=0.01)
    commands = run(made, 3000)
    distances = [scene.distance(q).distance for q in commands[::100]]
    assert min(distances) >= 0.01 - 1e-6
    assert np.abs(commands[-1] - HOME).max() > 0.05  # the elbow has moved toward the ball
    assert tip_errors(commands)[0] < 1e-4


def test_frozen_joints_never_move_and_the_others_reach_the_target():
    target = T.copy()
    target[:3, 3] += (0.03, 0.03, -0.05)
    for options in ({}, {"scene": PlanningScene(WAM)}):
        made = controller(None, frozen_joints=["wam_j3"], **options)
        made.follow_pose(target, 0.0)
        commands = run(made, 3000)
        assert (commands[:, 2] == HOME[2]).all()
        np.testing.assert_allclose(WAM.fk(commands[-1]), target, atol=3e-6)


def test_heavy_joints_move_less():
    target = T.copy()
    target[:3, 3] += (0.05, 0.05, -0.05)
    moved = []
    for weight in (1.0, 100.0):
        made = controller(None, joint_weights={"wam_j1": weight})
        made.follow_pose(target, 0.0)
        commands = run(made, 3000)
        np.testing.assert_allclose(WAM.fk(commands[-1]), target, atol=3e-6)
        moved.append(abs(commands[-1, 0] - HOME[0]))
    assert moved[1] < 0.3 * moved[0]


def test_free_axis_of_the_tool_may_turn():
    made = controller(Task.pointing("z"))
    turned = T.copy()
    turned[:3, :3] = T[:3, :3] @ [[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    made.follow_pose(turned, 0.0)
    commands = run(made, 500)
    np.testing.assert_allclose(commands[-1], HOME, atol=1e-6)  # reached already


def test_changed_values_survive_the_change_of_another_option():
    first = controller(TaskStack(Task(), SwivelTask(0.0), PostureTask(HOME)))
    first.set_swivel(0.3)
    second = controller(TaskStack(Task(), SwivelTask(0.0), PostureTask(HOME)), scale=0.5)
    second.take_over(first)
    third = controller(TaskStack(Task(), SwivelTask(0.1), PostureTask(HOME)))
    third.take_over(second)
    run(second, 4000)
    run(third, 4000)
    assert swivel(second.command) == pytest.approx(0.3, abs=1e-3)
    assert swivel(third.command) == pytest.approx(0.1, abs=1e-3)


REFUSED = {
    "unknown frozen joint": (
        lambda: controller(None, frozen_joints=["wam_j9"]), OptionError,
        "unknown joint 'wam_j9' in frozen_joints; joints are wam_j1",
    ),
    "all frozen": (
        lambda: controller(None, frozen_joints=WAM.joint_names), OptionError,
        "all 7 joints are frozen",
    ),
    "no stack": (lambda: controller(None).set_swivel(0.1), OptionError, "has no task stack"),
    "no swivel": (
        lambda: controller(TaskStack(Task(), PostureTask(HOME))).set_swivel(0.1), OptionError,
        "the stack has no SwivelTask",
    ),
    "no posture": (
        lambda: controller(TaskStack(Task(), SwivelTask(0.0))).set_posture(HOME), OptionError,
        "the stack has no PostureTask",
    ),
    "joint without posture": (
        lambda: controller(TaskStack(Task(), PostureTask({"wam_j1": 0.0}))).set_posture(
            {"wam_j2": 0.0}
        ), OptionError, "joint 'wam_j2' is not part of the posture; its joints are wam_j1",
    ),
    "infinite posture": (
        lambda: controller(TaskStack(Task(), PostureTask(HOME))).set_posture(HOME * np.inf),
        JointValueError, "",
    ),
    "unknown joint": (
        lambda: controller(TaskStack(Task(), CouplingTask({"a": 1.0}))), OptionError, "'a'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_stacks_that_cannot_be_followed_are_refused(case):
    make, kind, words = REFUSED[case]
    with pytest.raises(kind) as error:
        make()
    assert words in str(error.value)
