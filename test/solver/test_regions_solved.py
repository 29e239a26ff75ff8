# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks with slack: answers are found and lie in the region."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import rigid, rotation
from oracle_slack import beyond, euler_angles
from robots import TEST_URDF

from dls_ik import IkSolver, RobotModel, Status, Stepper, Task, method_names
from dls_ik.errors import DlsIkError, MethodError, OptionError
from dls_ik.model.kdl import kdl_chain, pykdl

ROBOTS = {
    "wam": RobotModel.wam(),
    "fr3": RobotModel.from_urdf(TEST_URDF / "fr3.urdf"),
    "ur5e": RobotModel.from_urdf(TEST_URDF / "ur5e.urdf"),
}
WAM = ROBOTS["wam"]
few = settings(max_examples=40)
SLACKS = st.sampled_from([0.0, 1e-3, 0.05, 0.3])
ANGLES = st.sampled_from([0.0, 1e-3, 0.05, 0.2, 1.0, 4.0])
TASKS = st.builds(
    lambda xyz, abc, frame, angles, is_round: Task(
        position_tolerance=max(xyz) if is_round else xyz,
        rotation_tolerance=abc,
        frame=frame,
        angles=angles,
        round="xyz" if is_round else "",
    ),
    st.tuples(SLACKS, SLACKS, SLACKS),
    st.tuples(ANGLES, ANGLES, ANGLES),
    st.sampled_from(["base", "target"]),
    st.sampled_from(["vector", "euler"]),
    st.booleans(),
)


def pose_in_region(task, rng):
    """Return the displacement and the rotation of a random pose inside a region."""
    displacement = rng.uniform(-1.0, 1.0, 3) * task.position_tolerance
    if task.round:
        displacement /= np.sqrt(3.0)
    largest = np.minimum(task.rotation_tolerance, (np.pi, np.pi / 2, np.pi))
    turn = rng.uniform(-1.0, 1.0, 3) * largest
    if task.angles == "euler":
        x, y, z = np.eye(3)
        return displacement, rotation(x, turn[0]) @ rotation(y, turn[1]) @ rotation(z, turn[2])
    turn *= min(1.0, 3.1 / max(np.linalg.norm(turn), 1e-9))
    return displacement, rotation(turn, np.linalg.norm(turn)) if turn.any() else np.eye(3)


def feasible_target(robot, task, rng):
    """Return a target whose region has a reachable pose."""
    T = robot.fk(robot.random(rng=rng))
    displacement, turn = pose_in_region(task, rng)
    if task.frame == "target":
        return T @ np.linalg.inv(rigid(turn, displacement))
    return rigid(turn.T @ T[:3, :3], T[:3, 3] - displacement)


def solver(robot, task, **options):
    return IkSolver(robot, task=task, **{"max_restarts": 1000, "random_seed": 1, **options})


def assert_inside(robot, task, T_d, q):
    away, turn = beyond(task, T_d, robot.fk(q))
    assert np.linalg.norm(away) <= 1.001e-6
    assert np.linalg.norm(turn) <= 1.001e-6
    for left, slack in ((away, task.position_tolerance), (turn, task.rotation_tolerance)):
        # Exact up to rounding
        assert np.abs(left[np.array(slack) > 1e-4]).max(initial=0.0) <= 1e-12


@few
@given(st.sampled_from(list(ROBOTS)), TASKS, st.integers(0, 10**6), st.floats(1.0, 4.0))
def test_feasible_regions_are_reached_and_stay_feasible_when_enlarged(name, task, seed, factor):
    robot, rng = ROBOTS[name], np.random.default_rng(seed)
    T_d, seeds = feasible_target(robot, task, rng), robot.random(rng=rng)
    found = solver(robot, task).solve_batch(T_d[None], seeds)
    assert found.success.all()
    assert robot.within_limits(found.q[0])
    assert_inside(robot, task, T_d, found.q[0])
    larger = Task(
        position_tolerance=tuple(factor * x for x in task.position_tolerance),
        rotation_tolerance=tuple(factor * x for x in task.rotation_tolerance),
        frame=task.frame,
        angles=task.angles,
        round=task.round,
    )
    assert solver(robot, larger).solve_batch(T_d[None], seeds).success.all()


@few
@given(st.integers(0, 10**6))
def test_zero_slack_equals_the_plain_task(seed):
    rng = np.random.default_rng(seed)
    T_d, seeds = WAM.fk(WAM.random(rng=rng)), WAM.random(rng=rng)
    for plain in (Task(), Task.pointing(), Task(rotation="")):
        fields = {"position": plain.position, "rotation": plain.rotation, "frame": plain.frame}
        none = Task(**fields, position_tolerance=0.0, rotation_tolerance=(0, 0, 0))
        assert none == plain
        a, b = (solver(WAM, task).solve_batch(T_d[None], seeds) for task in (plain, none))
        np.testing.assert_array_equal(a.q, b.q)
    tiny = solver(WAM, Task(position_tolerance=1e-300, rotation_tolerance=1e-300))
    assert_inside(WAM, Task(), T_d, tiny.solve_batch(T_d[None], seeds).q[0])


def test_feasible_targets_of_each_region_kind_are_solved():
    for name, robot in ROBOTS.items():
        for task in (
            Task.box(0.05, 0.05, 0.05),
            Task.ball(0.05),
            Task.cylinder(0.05, 0.1),
            Task(rotation_tolerance=0.2, frame="target"),
            Task(rotation_tolerance=(0.1, 0.1, 4.0), frame="target", angles="euler"),
            Task(position_tolerance=0.05, rotation_tolerance=0.2, frame="target"),
        ):
            rng = np.random.default_rng(7)
            Ts = np.array([feasible_target(robot, task, rng) for _ in range(60)])
            found = solver(robot, task).solve_batch(Ts, robot.random(60, rng))
            assert found.success.all(), (name, task)
            assert not found.position_error[found.position_error > 1e-6].size


def test_reachable_region_around_an_unreachable_pose_is_reached():
    far = WAM.fk(np.zeros(7))  # stretched out upward
    far[2, 3] += 0.04
    assert IkSolver(WAM).solve(far).status is Status.UNREACHABLE
    for task in (Task(position_tolerance=0.05), Task.box(0.05, 0.05, 0.05), Task.ball(0.041)):
        found = solver(WAM, task).solve(far, np.full(7, 0.2), 20.0)
        assert found.status is Status.SUCCESS
        assert_inside(WAM, task, far, found.q)


def test_errors_are_measured_from_the_region():
    far = WAM.fk(np.full(7, 0.4))
    far[0, 3] += 3.0
    task = Task(position_tolerance=(0.5, 0.1, 0.1), rotation_tolerance=0.1)
    found = IkSolver(WAM, task=task, max_restarts=5).solve(far, np.zeros(7), 20.0)
    assert found.status is Status.UNREACHABLE
    away, turn = beyond(task, far, WAM.fk(found.q))
    assert found.position_error == pytest.approx(np.linalg.norm(away), abs=1e-12)
    assert found.rotation_error == pytest.approx(np.linalg.norm(turn), abs=1e-9)


def test_unbounded_components_do_not_constrain_the_arm():
    """A slack of pi allows any rotation; without constraints, the seed is an answer."""
    T_d, seed = WAM.fk(np.full(7, 0.5)), np.full(7, 0.1)
    free = Task(position="", rotation_tolerance=4.0)
    np.testing.assert_array_equal(IkSolver(WAM, task=free).solve(T_d, seed).q, seed)
    only = IkSolver(WAM, task=Task(rotation_tolerance=4.0)).solve(T_d, seed)
    np.testing.assert_array_equal(only.q, IkSolver(WAM, task=Task(rotation="")).solve(T_d, seed).q)


def test_regions_agree_with_the_kinematics_of_kdl():
    kdl = pytest.importorskip("PyKDL")
    chain = kdl_chain(WAM)
    fk = kdl.ChainFkSolverPos_recursive(chain)
    task = Task(
        position_tolerance=(0.02, 0.05, 0.1), rotation_tolerance=(0.1, 0.2, 4.0),
        frame="target", angles="euler",
    )  # fmt: skip
    rng = np.random.default_rng(3)
    Ts = np.array([feasible_target(WAM, task, rng) for _ in range(100)])
    found = solver(WAM, task).solve_batch(Ts, WAM.random(100, rng))
    assert found.success.all()
    for q, T_d in zip(found.q, Ts, strict=True):
        joints, frame = kdl.JntArray(7), kdl.Frame()
        for j in range(7):
            joints[j] = q[j]
        fk.JntToCart(joints, frame)
        T = rigid([[frame.M[i, j] for j in range(3)] for i in range(3)], list(frame.p))
        local = np.linalg.inv(T_d) @ T
        assert (np.abs(local[:3, 3]) <= np.array(task.position_tolerance) + 1e-12).all()
        assert (np.abs(euler_angles(local[:3, :3]))[:2] <= [0.1 + 1e-9, 0.2 + 1e-9]).all()


@pytest.mark.parametrize("name", [name for name in method_names() if not name.startswith("kdl")])
def test_every_method_supports_slack(name):
    task = Task(position_tolerance=0.01, rotation_tolerance=(0.1, 0.1, 4.0), frame="target")
    rng = np.random.default_rng(4)
    q = WAM.random(rng=rng)
    T_d = WAM.fk(q + 0.05)
    try:
        stepper = Stepper(WAM, name, q, task=task)
    except DlsIkError:
        stepper = None
    if stepper is not None:
        assert np.isfinite(stepper.run(T_d, 20).q).all()
    found = IkSolver(WAM, name, task=task, max_restarts=50).solve(T_d, q, 20.0)
    assert np.isfinite(found.q).all()


def test_kdl_methods_refuse_slack():
    try:
        pykdl()
    except DlsIkError:
        pytest.skip("PyKDL is not installed")
    with pytest.raises(MethodError, match="full pose"):
        IkSolver(WAM, "kdl_lma", task=Task(position_tolerance=0.1))


@pytest.mark.parametrize(
    "bad", [-0.1, np.nan, (1.0, 2.0), "wide", None, (0.1, 0.1, -0.1), [[1]] * 3]
)
@pytest.mark.parametrize("field", ["position_tolerance", "rotation_tolerance"])
def test_invalid_slack_is_refused(field, bad):
    with pytest.raises(OptionError, match=field):
        Task(**{field: bad})


def test_slack_of_the_wrong_shape_is_refused():
    for bad in (
        {"position_tolerance": (0.1, 0.2, 0.1), "round": "xy"},
        {"position_tolerance": 0.1, "round": "x"},
        {"position": "xy", "position_tolerance": 0.1, "round": "xyz"},
    ):
        with pytest.raises(OptionError, match="round"):
            Task(**bad)
    with pytest.raises(OptionError, match="angles"):
        Task(angles="quaternion")
