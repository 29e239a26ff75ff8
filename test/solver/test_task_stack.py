# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Task stacks: rows and Jacobians, priorities of the answers, and invalid stacks."""

import math
from pathlib import Path

import numpy as np
import pytest

from dls_ik import (
    CenterOfMassTask,
    CouplingTask,
    FrameTask,
    IkSolver,
    ObjectiveTask,
    PlanningScene,
    PostureTask,
    RobotModel,
    Status,
    SwivelTask,
    Task,
    TaskStack,
)
from dls_ik.core.stack import stack_rows
from dls_ik.errors import ChainError, OptionError, PoseError, RobotModelError
from dls_ik.model.rotations import rotation_about, transform
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.stack_problem import build_stack, elbow_points, moved_masses

WAM = RobotModel.wam()
TORSO = Path(__file__).parents[2] / "urdf" / "two_wams.urdf"
HOME = np.array([0.3, 0.5, -0.2, 1.2, 0.3, 0.4, 0.1])


def rows_at(problem, T, q):
    """Errors, Jacobian and costs of a stack at q, for poses T of the tips."""
    params = problem.params
    e, A = np.empty(len(params.kind)), np.empty((len(params.kind), len(q)))
    cost = np.empty(len(params.ends))
    stack_rows(params, problem.poses(T), q, e, A, cost)
    return e, A, cost


def elbow_angle(q, up=(0.0, 0.0, 1.0)):
    """Swivel angle of the WAM from the places of its joint axes, not as the kernels compute it."""
    shoulder, elbow, wrist = (
        (WAM.link_pose(link, q) @ [*point, 1.0])[:3] for link, point in elbow_points(WAM)
    )
    a = (wrist - shoulder) / np.linalg.norm(wrist - shoulder)
    zero = np.array(up) - a * (a @ up)
    out = elbow - shoulder - a * (a @ (elbow - shoulder))
    return math.atan2(a @ np.cross(zero, out), zero @ out)


# Errors and Jacobians

ROWS = {
    "link": FrameTask("wam_link4", (0.1, 0.2, 0.6), Task.position_only()),
    "point of a link": FrameTask("wam_link4", (0.1, 0.2, 0.6), Task("xz", ""), None, (0.1, 0, 0.2)),
    "relative position": FrameTask(
        "wam_link6", (0.1, 0.2, 0.3), Task.position_only(), "wam_link2", (0.1, 0.0, 0.0)
    ),
    "posture": PostureTask({"wam_j2": 0.5, "wam_j4": 1.0}, {"wam_j4": 3.0}),
    "coupling": CouplingTask({"wam_j1": 1.0, "wam_j3": -2.0}, 0.4, 0.5),
    "swivel": SwivelTask(0.7, (1.0, 0.0, 1.0), 0.3),
}


@pytest.mark.parametrize("kind", ROWS)
def test_jacobians_of_all_kinds_equal_finite_differences(kind):
    problem = build_stack(WAM, TaskStack(Task(), ROWS[kind]), SolverOptions())
    rng, T = np.random.default_rng(1), WAM.fk(HOME)[None]
    for q in WAM.random(5, rng):
        A = rows_at(problem, T, q)[1][6:]
        columns = [
            (rows_at(problem, T, q - h)[0] - rows_at(problem, T, q + h)[0]) / 2e-6
            for h in 1e-6 * np.eye(7)
        ]
        np.testing.assert_allclose(A, np.array(columns).T[6:], atol=1e-7)


def test_jacobian_of_a_relative_pose_equals_finite_differences_at_the_target():
    q = HOME
    relative = np.linalg.inv(WAM.link_pose("wam_link2", q)) @ WAM.link_pose("wam_link6", q)
    stack = TaskStack(Task(), FrameTask("wam_link6", relative, reference="wam_link2"))
    problem, T = build_stack(WAM, stack, SolverOptions()), WAM.fk(q)[None]
    e, A, _ = rows_at(problem, T, q)
    np.testing.assert_allclose(e, 0.0, atol=1e-12)
    columns = [
        (rows_at(problem, T, q - h)[0] - rows_at(problem, T, q + h)[0]) / 2e-6
        for h in 1e-6 * np.eye(7)
    ]
    np.testing.assert_allclose(A, np.array(columns).T, atol=1e-7)


@pytest.mark.parametrize("objective", ["limits", "centring", "manipulability"])
def test_errors_of_an_objective_are_its_negative_gradient(objective):
    problem = build_stack(WAM, TaskStack(Task(), ObjectiveTask(objective, 2.0)), SolverOptions())
    T = WAM.fk(HOME)[None]
    slopes = [
        (rows_at(problem, T, HOME + h)[2][1] - rows_at(problem, T, HOME - h)[2][1]) / 2e-5
        for h in 1e-5 * np.eye(7)
    ]
    e = rows_at(problem, T, HOME)[0][6:]
    np.testing.assert_allclose(2.0 * e, -np.array(slopes), rtol=1e-3, atol=1e-5)


def test_swivel_error_is_the_angle_of_the_elbow_circle():
    problem = build_stack(WAM, TaskStack(Task(), SwivelTask(0.4)), SolverOptions())
    for q in WAM.random(20, np.random.default_rng(2)):
        error = rows_at(problem, WAM.fk(q)[None], q)[0][6]
        expected = math.remainder(0.4 - elbow_angle(q), 2.0 * math.pi)
        assert error == pytest.approx(expected, abs=1e-9)


def test_center_of_mass_is_the_weighted_mean_of_the_links():
    masses = moved_masses(WAM)
    assert len(masses) > 3
    total = sum(mass for _, mass, _ in masses)
    q = HOME
    center = sum(
        mass / total * (at if link is None else (WAM.link_pose(link, q) @ [*at, 1.0])[:3])
        for link, mass, at in masses
    )
    problem = build_stack(
        WAM, TaskStack(Task(), CenterOfMassTask((0, 0, 0), "xyz")), SolverOptions()
    )
    e, A, _ = rows_at(problem, WAM.fk(q)[None], q)
    np.testing.assert_allclose(e[6:], -center, atol=1e-12)
    columns = [
        (rows_at(problem, WAM.fk(q)[None], q - h)[0] - rows_at(problem, WAM.fk(q)[None], q + h)[0])
        / 2e-6
        for h in 1e-6 * np.eye(7)
    ]
    np.testing.assert_allclose(A[6:], np.array(columns).T[6:], atol=1e-7)


# Answers


def test_a_stack_of_one_level_answers_like_its_task():
    T = WAM.fk(HOME)
    result = IkSolver(WAM, task=TaskStack(Task())).solve(T)
    assert result.success
    assert result.level_errors[0] < 1e-6
    assert IkSolver(WAM).solve(T, task=TaskStack(Task.position_only())).success


def test_lower_levels_leave_the_pose_exact():
    solver = IkSolver(WAM)
    for q in 0.9 * WAM.random(30, np.random.default_rng(3)):
        T = WAM.fk(q)
        result = solver.solve(T, task=TaskStack(Task(), SwivelTask(0.5), PostureTask(HOME)))
        assert result.success
        np.testing.assert_allclose(WAM.fk(result.q), T, atol=1e-8)
        assert WAM.within_limits(result.q)


def test_reachable_swivel_angle_is_reached():
    solver, angle = IkSolver(WAM), elbow_angle(HOME)
    result = solver.solve(WAM.fk(HOME), task=TaskStack(Task(), SwivelTask(angle)), timeout=60.0)
    assert result.success
    assert elbow_angle(result.q) == pytest.approx(angle, abs=1e-6)


def test_no_self_motion_from_the_answer_reduces_the_posture_error():
    solver, stack = IkSolver(WAM), TaskStack(Task(), PostureTask(np.zeros(7)))
    result = solver.solve(WAM.fk(HOME), HOME, task=stack)
    spare = np.linalg.svd(WAM.jacobian(result.q))[2][-1]
    free = (result.q > WAM.lower + 1e-6) & (result.q < WAM.upper - 1e-6)
    assert free.all()
    assert spare @ result.q == pytest.approx(0.0, abs=1e-4)
    assert np.linalg.norm(result.q) <= np.linalg.norm(HOME)


def test_order_of_levels_decides_which_task_yields():
    elbow = FrameTask("wam_link4", WAM.link_pose("wam_link4", HOME)[:3, 3], Task.position_only())
    T = WAM.fk(HOME + np.array([0.3, 0.4, 0.0, 0.8, 0.0, 0.0, 0.0]))
    result = IkSolver(WAM).solve(T, HOME, task=TaskStack(elbow, Task()))
    assert result.level_errors[0] < 1e-8 < result.level_errors[1]
    assert not result.success
    assert result.status is Status.MAX_RESTARTS
    swapped = IkSolver(WAM).solve(T, HOME, task=TaskStack(Task(), elbow))
    assert swapped.success
    assert swapped.level_errors[1] > 1e-3


def test_relative_pose_of_two_arms_is_reached_while_one_tip_stays():
    both = RobotModel.from_urdf(TORSO, tip=("left_wam_tip", "right_wam_tip"))
    q = 0.3 * both.random(1, np.random.default_rng(0))[0] + 0.2
    q = both.clip(q)
    left, right = both.fk(q)
    grip = np.linalg.inv(left) @ right
    T = np.stack([left, right])
    T[1, :3, 3] += 5.0  # the task of the right tip is the relative pose, not this one
    stack = TaskStack(
        [Task(), Task.free()],
        FrameTask("right_wam_tip", grip, reference="left_wam_tip"),
    )
    result = IkSolver(both).solve(T, q, task=stack)
    left_now, right_now = both.fk(result.q)
    np.testing.assert_allclose(left_now, left, atol=1e-6)
    np.testing.assert_allclose(np.linalg.inv(left_now) @ right_now, grip, atol=1e-6)


def test_coupled_joints_keep_their_relation():
    stack = TaskStack(Task.position_only(), CouplingTask({"wam_j5": 1.0, "wam_j7": -1.0}))
    result = IkSolver(WAM).solve(WAM.fk(HOME)[:3, 3], task=stack)
    assert result.success
    assert result.q[4] == pytest.approx(result.q[6], abs=1e-8)


def test_answers_with_a_stack_are_collision_free():
    scene = PlanningScene(WAM)
    stack = TaskStack(Task(), PostureTask(np.zeros(7)))
    solver = IkSolver(WAM, task=stack, scene=scene)
    for q in WAM.random(10, np.random.default_rng(4)):
        result = solver.solve(WAM.fk(q), timeout=60.0)
        assert not result.success or scene.distance(result.q).distance > 0.0


def test_equal_stacks_are_searched_with_the_same_structs():
    solver, T = IkSolver(WAM), WAM.fk(HOME)
    for _ in range(3):
        solver.solve(T, task=TaskStack(Task(), PostureTask({"wam_j1": 0.1})))
    assert len(solver._stacks) == 1


def test_order_below_the_first_level_is_not_taken_for_free_of_collisions():
    scene = PlanningScene(WAM)
    folded = np.array([0.0, 0.0, 0.0, 3.1, 0.0, 1.5, 0.0])
    assert scene.distance(folded).distance < 0.0
    stack = TaskStack(PostureTask(folded), Task())
    result = IkSolver(WAM, task=stack, scene=scene).solve(WAM.fk(folded), folded)
    assert not result.success
    assert result.status is Status.IN_COLLISION


def test_slices_that_would_ignore_lower_levels_are_refused():
    solver = IkSolver(WAM, task=TaskStack(Task(), SwivelTask(0.3)))
    with pytest.raises(OptionError, match="slices does not use the levels of a task stack"):
        solver.slices(WAM.fk(HOME))


def test_joint_change_limits_are_refused_with_a_stack():
    solver, stack = IkSolver(WAM), TaskStack(Task(), SwivelTask(0.3))
    with pytest.raises(OptionError, match="max_joint_change cannot be combined"):
        solver.solve(WAM.fk(HOME), HOME, task=stack, max_joint_change=0.1)


# Invalid stacks

REFUSED = {
    "no level": (lambda: TaskStack(), "exactly one of its levels"),
    "no tip": (lambda: TaskStack(SwivelTask(0.0)), "found it in 0 of 1"),
    "two levels with tips": (lambda: TaskStack(Task(), Task()), "found it in 2 of 2"),
    "empty level": (lambda: TaskStack(Task(), []), "a task or a list of tasks"),
    "text": (lambda: TaskStack(Task(), "posture"), "got 'posture'"),
    "two swivel angles": (
        lambda: TaskStack(Task(), SwivelTask(0), SwivelTask(1)), "one SwivelTask"
    ),
    "itself as reference": (
        lambda: FrameTask("a", np.eye(4), reference="a"), "relative to itself is constant"
    ),
    "link without name": (lambda: FrameTask(3, np.eye(4)), "must be a name"),
    "negative weight": (lambda: SwivelTask(0.0, weight=-1.0), "from 1e-09 to 1e+09; got -1.0"),
    "zero weight": (lambda: PostureTask(HOME, 0.0), "got 0.0"),
    "angle without value": (lambda: SwivelTask(math.nan), "finite number; got nan"),
    "zero direction": (lambda: SwivelTask(0.0, (0, 0, 0)), "must not be a zero vector"),
    "empty posture": (lambda: PostureTask({}), "at least one joint"),
    "posture of text": (lambda: PostureTask("home"), "finite joint positions"),
    "zero coupling": (lambda: CouplingTask({"a": 0.0}), "not all zero"),
    "axes of the centre": (lambda: CenterOfMassTask((0, 0, 0), "w"), "such as 'xy'; got 'w'"),
    "objective": (lambda: ObjectiveTask("limit"), "got 'limit' (did you mean limits?)"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_invalid_stacks_are_refused_with_the_value_and_valid_values(case):
    make, words = REFUSED[case]
    with pytest.raises(OptionError) as error:
        make()
    assert words in str(error.value)


UNFIT = {
    "joint": (PostureTask({"wam_j9": 0.0}), OptionError, "unknown joint 'wam_j9' in a posture"),
    "posture": (PostureTask(np.zeros(6)), OptionError, "must have 7 positions"),
    "weight": (PostureTask({"wam_j1": 0}, {"wam_j2": 1}), OptionError, "no position of joint"),
    "link": (FrameTask("elbow", np.eye(4)), ChainError, "elbow"),
    "fixed link": (FrameTask("wam_base", np.eye(4)), ChainError, "wam_base"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_stacks_for_another_robot_are_refused(case):
    task, kind, words = UNFIT[case]
    with pytest.raises(kind) as error:
        IkSolver(WAM, task=TaskStack(Task(), task)).solve(WAM.fk(HOME))
    assert words in str(error.value)


def test_swivel_angles_need_seven_joints_and_centres_of_mass_need_masses():
    row = {"a": 0.5, "alpha": 0.0, "d": 0.0, "lower": -2.0, "upper": 2.0}
    arm = RobotModel.from_dh([row] * 3)
    position, T = Task.position_only(), arm.fk([0.0, 1.0, 1.0])
    for task, words in (
        (SwivelTask(0.0), "needs an arm with 7 joints and one tip"),
        (CenterOfMassTask((0, 0, 0)), "has a mass in the URDF"),
    ):
        with pytest.raises(OptionError) as error:
            IkSolver(arm, task=TaskStack(position, task)).solve(T)
        assert words in str(error.value)


def test_target_of_a_frame_must_be_a_pose():
    with pytest.raises(PoseError):
        FrameTask("wam_link4", np.ones((4, 4)))


def test_tasks_are_values_that_can_be_hashed():
    T = transform(rotation_about(np.array([0.0, 0.0, 1.0]), 0.3), np.array([0.1, 0.2, 0.3]))
    makers = [
        lambda: FrameTask("wam_link4", T, reference="wam_link2", point=[0, 0, 1]),
        lambda: PostureTask({"wam_j1": 1.0}),
        lambda: PostureTask(HOME, {"wam_j1": 2.0}),
        lambda: CouplingTask({"wam_j1": 1.0}),
        lambda: SwivelTask(1.0, [0, 1, 0]),
        lambda: CenterOfMassTask([0, 0, 0], "yx"),
    ]
    for make in makers:
        assert TaskStack(Task(), make()) == TaskStack(Task(), [make()])
        assert hash(TaskStack(Task(), make())) == hash(TaskStack(Task(), make()))
    assert TaskStack(Task(), makers[0]()) != TaskStack(Task(), makers[1]())
    assert "SwivelTask(angle=1.0" in repr(TaskStack(Task(), makers[4]()))


def test_masses_that_are_no_numbers_are_refused_with_the_link():
    text = WAM.tree.description.urdf.decode()
    for given, broken in (('<mass value="10.7677"/>', '<mass value="heavy"/>'),):
        assert given in text
        arm = RobotModel.from_urdf(text.replace(given, broken))
        with pytest.raises(RobotModelError, match="the mass and the centre of mass must be finite"):
            IkSolver(arm, task=TaskStack(Task(), CenterOfMassTask((0, 0, 0)))).solve(arm.fk(HOME))
