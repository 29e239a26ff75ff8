# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses in all forms, compared with SciPy's rotations; ambiguous forms are refused."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from dls_ik import IkSolver, Pose, RobotModel, Stepper, Task
from dls_ik.errors import JointValueError, OptionError, PoseError
from dls_ik.model.pose import validated_pose
from dls_ik.servo import Controller, LocalIk
from dls_ik.solver.poses import batch_poses, checked_poses

WAM = RobotModel.wam()
RNG = np.random.default_rng(4)
PLACES, TURNS = RNG.uniform(-1.0, 1.0, (5, 3)), RNG.normal(size=(5, 4))  # not normalised
EXPECTED = np.tile(np.eye(4), (5, 1, 1))
EXPECTED[:, :3, :3] = Rotation.from_quat(TURNS).as_matrix()
EXPECTED[:, :3, 3] = PLACES
FREE = Task.position_only()


def message(place, turn, names=("position", "orientation")):
    """Return an object with the fields of geometry_msgs/msg/Pose, or of Transform."""
    parts = (
        SimpleNamespace(**dict(zip("xyz", place, strict=True))),
        SimpleNamespace(**dict(zip("xyzw", turn, strict=True))),
    )
    return SimpleNamespace(**dict(zip(names, parts, strict=True)))


FORMS = {
    "Pose": Pose,
    "tuple": lambda p, q: (p, q),
    "lists": lambda p, q: [p.tolist(), q.tolist()],
    "message": message,
    "transform": lambda p, q: message(p, q, ("translation", "rotation")),
    "matrix": lambda p, q: Pose(p, q).matrix,
    "as_matrix": lambda p, q: SimpleNamespace(as_matrix=lambda: Pose(p, q).matrix),
    "homogeneous": lambda p, q: SimpleNamespace(homogeneous=Pose(p, q).matrix),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_of_a_pose_give_the_same_matrix(form):
    given = [FORMS[form](p, q) for p, q in zip(PLACES, TURNS, strict=True)]
    for one, T in zip(given, EXPECTED, strict=True):
        np.testing.assert_allclose(validated_pose(one), T, atol=1e-14)
    np.testing.assert_allclose(batch_poses(given, 1)[:, 0], EXPECTED, atol=1e-14)
    np.testing.assert_allclose(checked_poses(given, 5), EXPECTED, atol=1e-14)
    rows = batch_poses([given[:2], given[2:4]], 2)
    np.testing.assert_allclose(rows, EXPECTED[:4].reshape(2, 2, 4, 4), atol=1e-14)


def test_arrays_of_positions_and_quaternions_give_pose_batches():
    np.testing.assert_allclose(batch_poses((PLACES, TURNS), 1)[:, 0], EXPECTED, atol=1e-14)
    two = batch_poses((PLACES[:4].reshape(2, 2, 3), TURNS[:4].reshape(2, 2, 4)), 2)
    np.testing.assert_allclose(two, EXPECTED[:4].reshape(2, 2, 4, 4), atol=1e-14)
    four = batch_poses((PLACES[:4], TURNS[:4]), 1)  # almost the shape of matrices
    np.testing.assert_allclose(four[:, 0], EXPECTED[:4], atol=1e-14)


def test_poses_are_immutable_values():
    pose = Pose([0.1, 0.2, 0.3], [0, 0, 0, 2])
    assert pose == Pose((0.1, 0.2, 0.3))
    assert len({pose, Pose((0.1, 0.2, 0.3)), Pose()}) == 2
    assert repr(pose) == "Pose(position=(0.1, 0.2, 0.3), quaternion=(0.0, 0.0, 0.0, 1.0))"
    back = Pose.from_matrix(EXPECTED[0])
    np.testing.assert_allclose(back.matrix, EXPECTED[0], atol=1e-14)
    angles = [0.3, -0.4, 0.5]
    R = Rotation.from_euler("xyz", angles).as_matrix()
    np.testing.assert_allclose(Pose.from_rpy([1, 2, 3], angles).matrix[:3, :3], R, atol=1e-14)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Pose([0, 0]), ["position", "[0, 0]"]),
        (lambda: Pose([0, 0, np.nan]), ["position", "nan"]),
        (lambda: Pose(quaternion=[0, 0, 1]), ["x y z w", "[0, 0, 1]"]),
        (lambda: Pose(quaternion=[0, 0, 0, 0]), ["cannot be normalised"]),
        (lambda: Pose.from_rpy([0, 0, 0], [0, 0]), ["roll", "[0, 0]"]),
        (lambda: Pose.from_matrix(2.0 * np.eye(4)), ["last row"]),
    ],
)
def test_invalid_values_are_refused(make, words):
    with pytest.raises(PoseError) as caught:
        make()
    assert [word for word in words if word not in str(caught.value)] == []


STAMPED = SimpleNamespace(header=None, pose=message(PLACES[0], TURNS[0]))
PAIR = (PLACES[0], TURNS[0])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([0.1, 0.2, 0.3], ["position alone", "Task.position_only()", "[0.1, 0.2, 0.3]"]),
        (np.zeros(7), ["(7,)", "(T[:3], T[3:])"]),
        ((PLACES[0], np.zeros(4)), ["cannot be normalised"]),
        ((TURNS[0], PLACES[0]), ["(position, quaternion x y z w)"]),  # the wrong way round
        ((PLACES[0], PLACES[1]), ["(position, quaternion x y z w)", "(2, 3)"]),
        (STAMPED, ["SimpleNamespace", "its .pose", "base frame"]),
        (SimpleNamespace(position=PLACES[0], orientation=TURNS[0]), ["(position, quaternion"]),
        (Rotation.identity(), ["(3, 3)"]),
    ],
)
def test_ambiguous_forms_are_refused(given, words):
    for check in (validated_pose, IkSolver(WAM).solve):
        with pytest.raises(PoseError) as caught:
            check(given)
        assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize(
    ("given", "k", "words"),
    [
        (PAIR, 1, ["single pose to solve", "(b, 4, 4)"]),
        (PLACES, 1, ["position alone", "(5, 3)"]),
        (np.zeros((5, 7)), 1, ["(b, 4, 4)", "quaternions x y z w (b, 4)", "(5, 7)"]),
        ((PLACES, TURNS[:4]), 1, ["(5, 3) and (4, 4)"]),
        ((PLACES, TURNS), 2, ["2 tips", "(b, 2, 3)"]),
        ([PAIR, "home"], 1, ["pose 2 of 2", "'home'"]),
        ([PAIR, PLACES[0]], 1, ["pose 2 of 2", "position alone"]),
        ([[PAIR, PAIR], [PAIR]], 2, ["pose 2 of 2", "2 tips", "got 1"]),
        ("home", 1, ["'home'"]),
        (None, 1, ["shape ()"]),
    ],
)
def test_invalid_batches_are_refused(given, k, words):
    with pytest.raises(PoseError) as caught:
        batch_poses(given, k)
    assert [word for word in words if word not in str(caught.value)] == []


def test_zero_quaternions_fail_only_their_row():
    turns = TURNS.copy()
    turns[1], turns[3] = 0.0, np.nan
    places = WAM.fk(WAM.random(5, rng=0))[:, :3, 3]
    for given in ((places, turns), list(zip(places, turns, strict=True))):
        found = IkSolver(WAM, max_restarts=50).solve_batch(given)
        assert [str(status) == "REFUSED" for status in found.statuses] == [0, 1, 0, 1, 0]


def test_tasks_without_rotation_accept_bare_positions():
    q = WAM.random(4, rng=1)
    T = WAM.fk(q)
    solver = IkSolver(WAM, task=FREE, max_restarts=100)
    for given in (T[0, :3, 3], T[0, :3, 3].tolist(), T[:1, :3, 3]):
        q_found = solver.solve(given, q[1]).q
        np.testing.assert_allclose(WAM.fk(q_found)[:3, 3], T[0, :3, 3], atol=2e-6)
    found = solver.solve_batch(T[:, :3, 3], q[1])
    np.testing.assert_array_equal(found.q, solver.solve_batch(T, q[1]).q)
    by_call = IkSolver(WAM, max_restarts=100).solve_batch(T[:, :3, 3], q[1], FREE)
    np.testing.assert_array_equal(found.q, by_call.q)
    path = solver.solve_path(T[:, :3, 3], q[1])
    assert path.success.all()
    stepper = Stepper(WAM, "dls", q[0], task=FREE)
    assert np.linalg.norm(stepper.error(T[1, :3, 3])) > 0.01
    assert len(stepper.run(T[:, :3, 3], 5).q) == 6


def test_positions_for_several_tips_depend_on_each_task():
    both = WAM.with_tip("wam_link4")
    T = both.fk(np.full(7, 0.4))
    solver = IkSolver(both, task=[Task(), FREE])
    found = solver.solve([Pose.from_matrix(T[0]), T[1, :3, 3]], np.full(7, 0.3))
    assert found
    with pytest.raises(PoseError, match=r"pose 1 of 2.*position alone"):
        solver.solve([T[0, :3, 3], T[1, :3, 3]])
    with pytest.raises(PoseError, match="position alone"):
        solver.solve_batch(T[None, :, :3, 3])
    free = IkSolver(both, task=FREE)
    np.testing.assert_array_equal(
        free.solve(T[:, :3, 3], np.zeros(7)).q,
        free.solve_batch(T[None, :, :3, 3], np.zeros(7)).q[0],
    )


def test_ros_pose_and_joint_state_messages_are_accepted():
    messages = pytest.importorskip("geometry_msgs.msg", reason="needs ROS's messages")
    pose = messages.Pose(
        position=messages.Point(x=0.1, y=0.2, z=0.3),
        orientation=messages.Quaternion(x=0.0, y=1.0, z=0.0, w=0.0),
    )
    assert Pose.from_matrix(pose) == Pose((0.1, 0.2, 0.3), (0, 1, 0, 0))
    with pytest.raises(PoseError, match=r"PoseStamped.*\.pose"):
        validated_pose(messages.PoseStamped(pose=pose))
    state = pytest.importorskip("sensor_msgs.msg").JointState
    q = WAM.random(rng=0)
    names, values = [*WAM.joint_names[::-1]], q[::-1].tolist()
    np.testing.assert_array_equal(WAM.fk(state(name=names, position=values)), WAM.fk(q))


def test_batch_accepts_one_seed_as_seed_or_seeds():
    Ts, solver = WAM.fk(WAM.random(3, rng=2)), IkSolver(WAM, max_restarts=100)
    start = np.full(7, 0.2)
    by_name = dict(zip(WAM.joint_names[::-1], start, strict=True))
    expected = solver.solve_batch(Ts, start).q
    for given in ({"seed": start}, {"seeds": by_name}, {"seed": by_name}):
        np.testing.assert_array_equal(solver.solve_batch(Ts, **given).q, expected)
    columns = {name: np.full(3, 0.2) for name in WAM.joint_names}
    np.testing.assert_array_equal(solver.solve_batch(Ts, columns).q, expected)
    np.testing.assert_array_equal(solver.solve(Ts[0], by_name).q, expected[0])
    with pytest.raises(OptionError, match="only one of them"):
        solver.solve_batch(Ts, start, seed=start)


def test_options_accept_values_by_joint_name():
    T, q = WAM.fk(WAM.random(rng=3)), np.full(7, 0.2)
    heavy = IkSolver(WAM, joint_weights={"wam_j1": 100.0}, solve_type="distance")
    assert heavy.options.joint_weights == (100.0, *[1.0] * 6)
    bounded = IkSolver(WAM, max_restarts=20).solve(T, q, max_joint_change={"wam_j4": 1e-3})
    expected = IkSolver(WAM, max_restarts=20).solve(
        T, q, max_joint_change=[np.inf] * 3 + [1e-3] + [np.inf] * 3
    )
    np.testing.assert_array_equal(bounded.q, expected.q)
    posture = WAM.named(q)
    assert Stepper(WAM, "gp+dls", objective="posture", reference=posture).options.reference == (
        *q.tolist(),
    )
    limits = Controller(WAM, acceleration={"wam_j2": 3.0}).options.acceleration
    assert limits[1] == 3.0
    assert np.isinf([*limits[:1], *limits[2:]]).all()
    with pytest.raises(OptionError, match="obstacle"):
        IkSolver(WAM, "gp+dls", objective="obstacle", obstacle={"x": 1.0})
    with pytest.raises(JointValueError, match=r"'wam_j8'; did you mean wam_j1"):
        IkSolver(WAM, joint_weights={"wam_j8": 1.0})
    with pytest.raises(JointValueError, match="missing: wam_j2"):
        IkSolver(WAM, "gp+dls", reference={"wam_j1": 0.0})


def test_local_ik_and_controller_accept_all_pose_forms():
    q, T = np.full(7, 0.3), WAM.fk(np.full(7, 0.32))
    steps = [LocalIk(WAM, "dls", task=FREE) for _ in range(3)]
    moved = []
    for local, target in zip(steps, (T, Pose.from_matrix(T), T[:3, 3]), strict=True):
        local.reset(WAM.named(q))
        moved.append(local.step(target, 0.01).q)
    np.testing.assert_allclose(moved, [moved[0]] * 3, atol=1e-9)
    controllers = [Controller(WAM), Controller(WAM)]
    pair = T[:3, 3], Pose.from_matrix(T).quaternion
    for controller, target in zip(controllers, (T, pair), strict=True):
        controller.seed(WAM.named(q))
        controller.follow_pose(target, 0.0)
    ends = [controller.cycle(0.01, 0.01).q for controller in controllers]
    assert (ends[0] != q).any()
    np.testing.assert_allclose(*ends, atol=1e-9)
