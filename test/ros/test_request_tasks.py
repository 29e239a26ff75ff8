# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tasks, joint bounds and frozen joints in requests of IkClient, answered as compute_ik does."""

import numpy as np
import pytest
from oracle import rotation
from ros_requests import CURRENT, answer_ik, make_arm, values

from dls_ik import CouplingTask, FrameTask, PostureTask, SwivelTask, Task, TaskStack
from dls_ik.errors import OptionError
from dls_ik.ros.client.ik_client import ik_request
from dls_ik.ros.frames import Frames

SEED = {**CURRENT, "a3": 0.8}
NEAR = 1e-5


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def solved(arm, T, task=None, **options):
    """Return the positions of all joints by name that compute_ik answers for a pose of `tool`."""
    request = ik_request(T, SEED, link="tool", timeout=2.0, task=task, **options)
    return values(answer_ik(request.ik_request, arm, CURRENT, Frames()))


def target(arm, **moved):
    return arm.tree.pose("tool", {**CURRENT, **moved})


def turned(T, axis, angle):
    return T @ np.block([[rotation(axis, angle), np.zeros((3, 1))], [np.zeros((1, 3)), 1.0]])


TASKS = {
    "pointing z": (Task.pointing("z"), [0.0, 0.0, 1.0]),
    "pointing x": (Task.pointing("x"), [1.0, 0.0, 0.0]),
    "tolerance about x": (Task(frame="target", rotation_tolerance=(0.3, 0.0, 0.0)), [1.0, 0, 0]),
}


@pytest.mark.parametrize("name", TASKS)
def test_free_rotation_about_an_axis_is_used_with_other_bounds(arm, name):
    task, axis = TASKS[name]
    T = target(arm, a6=0.0)
    plain = solved(arm, T)
    # Bounds that the plain answer violates, so that the tool has to turn about its free axis
    bounds = {"a6": (plain["a6"] + 0.1, plain["a6"] + 0.4)}
    found = solved(arm, turned(T, axis, 0.1), task, joint_bounds=bounds)
    reached = arm.tree.pose("tool", found)
    np.testing.assert_allclose(reached[:3, 3], T[:3, 3], atol=NEAR)
    np.testing.assert_allclose(reached[:3, :3] @ axis, T[:3, :3] @ axis, atol=NEAR)
    assert bounds["a6"][0] - 1e-9 <= found["a6"] <= bounds["a6"][1] + 1e-9


def test_position_alone_is_reached_with_any_rotation(arm):
    T = target(arm)
    unreachable = turned(T, [1.0, 2.0, 0.5], 2.0)
    found = solved(arm, unreachable, Task.position_only())
    np.testing.assert_allclose(arm.tree.pose("tool", found)[:3, 3], T[:3, 3], atol=NEAR)


def test_tolerances_in_the_base_frame_are_rotation_vectors(arm):
    T = target(arm)
    task = Task(rotation_tolerance=(0.0, 0.0, 0.5))
    constraint = ik_request(T, SEED, link="tool", task=task).ik_request.constraints
    (given,) = constraint.orientation_constraints
    assert given.parameterization == 1
    assert given.absolute_z_axis_tolerance == 0.5
    found = solved(arm, T, task)
    np.testing.assert_allclose(arm.tree.pose("tool", found)[:3, 3], T[:3, 3], atol=NEAR)


def test_frozen_joints_stay_at_the_seed_or_at_their_position(arm):
    T = target(arm)
    assert solved(arm, T, frozen_joints=["a3"], task=Task.position_only())["a3"] == SEED["a3"]
    found = solved(arm, T, frozen_joints={"a1": CURRENT["a1"]})
    assert found["a1"] == CURRENT["a1"]
    np.testing.assert_allclose(arm.tree.pose("tool", found), T, atol=NEAR)


def test_frame_tasks_constrain_other_links(arm):
    T = target(arm)
    link = "j4"
    elbow = arm.tree.pose(link, CURRENT)
    shape = {
        "box": Task.box(0.05, 0.06, 0.07),
        "ball": Task.ball(0.05),
        "cylinder": Task.cylinder(0.05, 0.06),
        "plane": Task("z", "", position_tolerance=0.02),
    }
    for name, task in shape.items():
        stack = TaskStack([Task(), FrameTask(link, elbow, task)])
        found = solved(arm, T, stack)
        np.testing.assert_allclose(arm.tree.pose("tool", found), T, atol=NEAR)
        away = elbow[:3, :3].T @ (arm.tree.pose(link, found)[:3, 3] - elbow[:3, 3])
        if name == "plane":
            assert abs(arm.tree.pose(link, found)[2, 3] - elbow[2, 3]) <= 0.02 + NEAR
        else:
            assert (np.abs(away) <= np.array([0.05, 0.06, 0.07]) + NEAR).all()


def test_frame_of_the_pose_is_the_frame_of_the_constraints(arm):
    T = target(arm)
    stack = TaskStack(
        [Task.pointing("z"), FrameTask("tool", T, Task.box(1, 1, 1), point=(0, 0, 1))]
    )
    constraints = ik_request(
        T, SEED, link="tool", frame="rail", task=stack, joint_bounds={"a1": (0.0, 0.2)}
    ).ik_request.constraints
    (position,), (orientation,) = (
        constraints.position_constraints,
        constraints.orientation_constraints,
    )
    assert position.header.frame_id == orientation.header.frame_id == "rail"
    assert position.target_point_offset.z == 1.0
    (joint,) = constraints.joint_constraints
    assert (joint.position, joint.tolerance_below, joint.tolerance_above) == (0.1, 0.1, 0.1)


REFUSED = {
    "levels": (TaskStack(Task(), SwivelTask(0.1), PostureTask({"a1": 0.0})), "a request has no "
               "levels of priority; got 3 levels, below the first: swivel angle; posture"),
    "kind": (TaskStack([Task(), CouplingTask({"a1": 1.0})]), "a request can have one Task and any "
             "number of FrameTask; got Task, CouplingTask"),
    "relative": (TaskStack([Task(), FrameTask("a", np.eye(4), reference="b")]),
                 "cannot have the pose of 'a' relative to 'b'"),
    "weight": (TaskStack([Task(), FrameTask("a", np.eye(4), weight=2.0)]), "have no weights; got "
               "weight 2"),
    "row weights": (Task(weights=(1, 1, 1, 2, 1, 1)), "constraints have no weights"),
    "position": (Task("xy"), "the position of the requested link is always exact"),
    "free y": (Task.pointing("y"), "can leave the rotation about x or z of the target free"),
    "several axes": (Task(frame="target", rotation_tolerance=0.1), "or give Task(angles='euler')"),
    "round": (TaskStack([Task(), FrameTask("a", np.eye(4), Task("yz", "", round="yz"))]),
              "regions can be round in xy or xyz"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_constraints_cannot_express_is_refused_with_the_way_out(case):
    task, words = REFUSED[case]
    with pytest.raises(OptionError) as error:
        ik_request(np.eye(4), SEED, link="tool", task=task)
    assert words in str(error.value)
    if case in ("levels", "kind", "relative", "weight"):
        assert "ik_node has the parameters swivel, posture" in str(error.value)


def test_joints_and_links_that_are_not_given_are_refused():
    for options, words in (
        ({"frozen_joints": ["a1"], "seed": None}, "frozen joint 'a1' needs a position"),
        ({"frozen_joints": "a1"}, "frozen_joints must be a list of names; got 'a1'"),
        ({"frozen_joints": ["a1"], "joint_bounds": {"a1": (0, 1)}}, "is frozen and has joint_b"),
        ({"joint_bounds": {"a1": (1, 0)}}, "must be a lower and an upper bound; got (1, 0)"),
        ({"joint_bounds": {"a1": 1}}, "must be a lower and an upper bound; got 1"),
        ({"task": Task.pointing("z"), "link": ""}, "needs its name: link='wam_tip'"),
    ):
        with pytest.raises(OptionError) as error:
            ik_request(np.eye(4), **{"seed": SEED, "link": "tool", **options})
        assert words in str(error.value)
