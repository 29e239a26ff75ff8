# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Proofs of unreachability for positions, pointing, tolerances, several tips and mobile bases."""

import numpy as np
import pytest
from arms import PUBLISHED, published, random_arm
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from oracle import rigid, rotation
from out_of_grasp import out_of_grasp
from robots import joint, urdf

from dls_ik import IkSolver, RobotModel, Status, Task
from dls_ik.model.pose_functionals import path_elements
from dls_ik.model.reach import without_slides
from dls_ik.solver.search import DEFAULT_RESTARTS
from dls_ik.solver.unreachable import are_unreachable, regions

WAM = RobotModel.wam()
SHIPPED = {name: RobotModel.from_name(name) for name in ("wam", "puma560", "planar_2r")}
TASKS = {
    "position": Task.position_only(),
    "pointing": Task.pointing("z"),
    "pointing sideways": Task.pointing("x"),
    "box": Task.box(0.01, 0.03, 0.02),
    "ball": Task.ball(0.02),
    "cylinder": Task.cylinder(0.02, 0.05),
    "tolerances": Task(position_tolerance=0.01, rotation_tolerance=(0.1, 0.0, 0.05)),
    "euler": Task(rotation_tolerance=(0.1, 0.05, 0.02), angles="euler"),
    "height": Task(position="z", rotation=""),
    "direction": Task(position="", rotation="xy", frame="target"),
}
FREE_AXIS = {"pointing": 2, "pointing sideways": 0, "direction": 2}
quick = settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)


def proven(robot, task, Ts):
    solver = IkSolver(robot, task=task)
    return are_unreachable(robot, regions(solver.search.tasks, solver.options), Ts[:, None])


def fulfilled(name, T, rng):
    """Return a target whose task is fulfilled at the tip pose T: within all tolerances."""
    task, R, p = TASKS[name], T[:3, :3], T[:3, 3]
    if not task.rotation:
        R = rotation(rng.normal(size=3), rng.uniform(0.0, np.pi))
    elif name in FREE_AXIS:
        R = R @ rotation(np.eye(3)[FREE_AXIS[name]], rng.uniform(-np.pi, np.pi))
    elif name == "euler":
        angles = rng.uniform(-1.0, 1.0, 3) * task.rotation_tolerance
        for axis, angle in zip(np.eye(3)[::-1], angles[::-1], strict=True):
            R = R @ rotation(axis, -angle)
    elif name == "tolerances":
        R = R @ rotation([1.0, 0.0, 0.0], rng.uniform(-0.1, 0.1))
    shift = rng.uniform(-1.0, 1.0, 3) * np.minimum(task.position_tolerance, 1.0)
    if task.round:
        shift[:2] *= 0.7
        shift[2] *= 0.7 if task.round == "xyz" else 1.0
    frame = R if task.frame == "target" else np.eye(3)
    free = [k for k, axis in enumerate("xyz") if axis not in task.position]
    shift[free] = rng.normal(size=len(free))
    return rigid(R, p - frame @ shift)


KINDS = st.lists(
    st.sampled_from(["revolute", "continuous", "prismatic", "bent", "mimic"]),
    min_size=1,
    max_size=7,
).map(lambda kinds: ["revolute", *kinds] if kinds[0] == "mimic" else kinds)


@quick
@given(KINDS, st.integers(0, 2), st.integers(0, 10**6), st.sampled_from(list(TASKS)))
def test_targets_whose_task_is_fulfilled_are_never_proven_unreachable(kinds, slides, seed, name):
    rng = np.random.default_rng(seed)
    robot = random_arm(rng, *["prismatic"] * slides, *kinds)
    lower, upper = robot.finite_limits()
    q = robot.random(200, rng)
    q = np.where(rng.random(q.shape) < 0.3, np.where(rng.random(q.shape) < 0.5, lower, upper), q)
    Ts = np.array([fulfilled(name, T, rng) for T in robot.fk(q)])
    assert not proven(robot, TASKS[name], Ts).any()


@pytest.mark.parametrize("name", TASKS)
@pytest.mark.parametrize("robot", [*SHIPPED.values(), *map(published, PUBLISHED[:3])], ids=str)
def test_fulfilled_tasks_of_real_arms_are_never_proven_unreachable(robot, name):
    rng = np.random.default_rng(11)
    Ts = np.array([fulfilled(name, T, rng) for T in robot.fk(robot.random(500, rng))])
    assert not proven(robot, TASKS[name], Ts).any()


@pytest.mark.parametrize("name", [name for name, task in TASKS.items() if task.position == "xyz"])
@pytest.mark.parametrize("robot", SHIPPED.values(), ids=SHIPPED)
def test_positions_far_beyond_the_reach_are_unreachable(robot, name):
    T = robot.fk(robot.random(rng=np.random.default_rng(3)))
    T[:2, 3] = 3.0, -0.5
    for timeout in (0.05, 3600.0):
        result = IkSolver(robot, task=TASKS[name]).solve(T, timeout=timeout)
        assert result.status is Status.UNREACHABLE
        assert result.restarts < 100


def test_most_positions_a_tenth_beyond_the_boundary_are_proven_unreachable():
    """Brute force (1000 restarts) misses the position, and the position moved inward by a tenth."""
    rng, shoulder = np.random.default_rng(4), np.array([0.0, 0.0, 0.346])
    directions = rng.normal(size=(300, 3))
    directions /= np.linalg.norm(directions, axis=1)[:, None]
    positions = shoulder + rng.uniform(0.6, 1.5, (300, 1)) * directions
    solver = IkSolver(WAM, task=Task.position_only(), max_restarts=1000)
    results = solver.solve_batch(positions)
    inner = solver.solve_batch(shoulder + (positions - shoulder) / 1.1)
    clear = ~results.success & ~inner.success
    assert clear.sum() > 50
    share = np.mean(results.status[clear] == int(Status.UNREACHABLE))
    assert share >= 0.95


def two_arms():
    fixed = joint("right", "fixed", "base", "r0", '<origin xyz="0 -1 0"/>')
    limits = '<limit lower="-3" upper="3" effort="1" velocity="1"/>'
    out = f'<origin xyz="0.5 0 0"/>{limits}'
    joints = [fixed, joint("left", "fixed", "base", "l0", '<origin xyz="0 1 0"/>')]
    for side in "lr":
        joints += [joint(f"{side}j{i}", "revolute", f"{side}{i}", f"{side}{i + 1}", out, "0 0 1")
                   for i in range(2)]  # fmt: skip
        joints += [
            joint(f"{side}end", "fixed", f"{side}2", f"{side}_tip", '<origin xyz="0.4 0 0"/>')
        ]
    links = " ".join(["base", *(f"{s}{i}" for s in "lr" for i in range(3)), "l_tip", "r_tip"])
    return RobotModel.from_urdf(urdf(links, *joints), tip=["l_tip", "r_tip"])


@pytest.mark.parametrize("task", [None, Task.position_only()], ids=["pose", "position"])
@pytest.mark.parametrize("tip", [0, 1])
def test_one_tip_out_of_reach_makes_the_task_unreachable(task, tip):
    robot = two_arms()
    Ts = robot.fk(robot.random(rng=np.random.default_rng(5)))
    solver = IkSolver(robot, task=task)
    assert solver.solve(Ts, timeout=3600.0).success
    Ts[tip, 0, 3] += 3.0
    result = solver.solve(Ts, timeout=3600.0)
    assert result.status is Status.UNREACHABLE
    batch = solver.solve_batch(Ts[None])
    assert batch.status[0] == int(Status.UNREACHABLE)


def rover(lift, drive):
    """Return a planar arm with links of 0.5 m and 0.4 m on a lift and on two drives along x, y."""
    limits = '<limit lower="-2.5" upper="2.5" effort="1" velocity="1"/>'
    slide = '<limit lower="{}" upper="{}" effort="1" velocity="1"/>'
    drives = slide.format(*drive)
    joints = [
        joint("x", "prismatic", "world", "along", drives, "1 0 0"),
        joint("y", "prismatic", "along", "across", drives, "0 1 0"),
        joint("lift", "prismatic", "across", "l0", slide.format(*lift), "0 0 1"),
        joint("j1", "revolute", "l0", "l1", f'<origin xyz="0 0 1"/>{limits}', "0 0 1"),
        joint("j2", "revolute", "l1", "l2", f'<origin xyz="0.5 0 0"/>{limits}', "0 0 1"),
        joint("end", "fixed", "l2", "tip", '<origin xyz="0.4 0 0"/>'),
    ]
    return RobotModel.from_urdf(urdf("world along across l0 l1 l2 tip", *joints))


def test_a_mobile_base_reaches_every_position_within_its_drives_and_lift():
    robot = rover((0.0, 0.3), (-2.0, 2.0))
    slides, arm = without_slides(path_elements(robot.chain, 0))
    assert len(slides) == 3
    assert len(arm.prismatic) == 2
    Ts = np.tile(np.eye(4), (7, 1, 1))
    Ts[:, :3, 3] = [
        [2.9, 0.0, 1.0], [2.901, 0.0, 1.0], [2.0, -2.89, 1.2], [2.7, 2.7, 1.2],
        [0.0, 0.0, 1.3], [0.0, 0.0, 1.31], [0.0, 0.0, 0.99],
    ]  # fmt: skip
    expected = [False, True, False, True, False, True, True]
    assert proven(robot, Task.position_only(), Ts).tolist() == expected
    endless = rover((0.0, 0.3), (-1e9, 1e9))
    Ts[:, 0, 3] += 500.0
    expected = [False, False, False, False, False, True, True]
    assert proven(endless, Task.position_only(), Ts).tolist() == expected


def test_a_search_that_proves_nothing_stops_early_unless_asked_for_more():
    T = out_of_grasp(WAM, np.random.default_rng(6))
    result = IkSolver(WAM).solve(T, timeout=3600.0)
    assert (result.status, result.restarts) == (Status.MAX_RESTARTS, DEFAULT_RESTARTS)
    more = IkSolver(WAM, max_restarts=DEFAULT_RESTARTS + 500).solve(T, timeout=3600.0)
    assert (more.status, more.restarts) == (Status.MAX_RESTARTS, DEFAULT_RESTARTS + 500)
