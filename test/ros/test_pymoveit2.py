# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The package pymoveit2 against ``ik_node`` and ``ik_sim_arm``, without move_group.

The examples of pymoveit2 are only in its source archive. If the environment variable
DLS_IK_PYMOVEIT2_EXAMPLES names the folder ``examples`` of this archive, they run unmodified.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from ros_client import SOON
from ros_planning import Planning, Spun
from ros_scene import apply, box, world
from ros_streamer import HOME
from ros_wam import WAM
from std_srvs.srv import SetBool

from dls_ik.model.rotations import quaternion_from_rotation

pymoveit2 = pytest.importorskip("pymoveit2", reason="needs pymoveit2")
pytestmark = pytest.mark.ros

EXAMPLES = Path(os.environ.get("DLS_IK_PYMOVEIT2_EXAMPLES", "missing"))
OTHER = HOME + np.array([0.3, 0.2, 0.1, -0.2, 0.0, 0.1, 0.2])


@pytest.fixture(scope="module")
def planning(tmp_path_factory):
    with Planning("/moved", tmp_path_factory.mktemp("planning")) as planning:
        yield planning


@pytest.fixture(scope="module")
def moveit2(planning):
    with Spun(planning.client) as node:
        description = pymoveit2.RobotDescription.from_node(node, "move_group", timeout_sec=SOON)
        moveit2 = pymoveit2.MoveIt2(node=node, **description.moveit2_kwargs())
        moveit2.max_velocity = moveit2.max_acceleration = 1.0
        assert move(moveit2, HOME)
        yield moveit2
        moveit2.destroy()


@pytest.fixture(autouse=True)
def empty_scene(planning):
    yield
    assert apply(planning.client, world(is_diff=False))


def move(moveit2, q):
    """Move to joint positions, and return whether the arm arrived."""
    submitted = moveit2.move_to_configuration([float(x) for x in q], timeout_sec=SOON)
    return submitted and moveit2.wait_until_executed(timeout_sec=SOON)


def command(example, planning):
    """Return the command line of an example in the namespace of the node."""
    namespace = planning.client.node.get_namespace()
    return [sys.executable, EXAMPLES / example, "--ros-args", "-r", f"__ns:={namespace}"]


def pose_of(q):
    """Return position and quaternion of the tip as lists."""
    T = WAM.fk(q)
    return T[:3, 3].tolist(), list(quaternion_from_rotation(T[:3, :3]))


def test_description_names_the_group_and_its_states(moveit2):
    assert moveit2.group_name == "arm"
    assert moveit2.end_effector_name == "wam_tip"
    assert list(moveit2.joint_names) == list(WAM.joint_names)


def test_joint_pose_and_cartesian_goals_are_planned_and_executed(moveit2):
    assert move(moveit2, OTHER)
    position, quaternion = pose_of(HOME)
    for cartesian in (False, True):
        assert move(moveit2, OTHER)
        submitted = moveit2.move_to_pose(
            position=position, quat_xyzw=quaternion, cartesian=cartesian, timeout_sec=SOON
        )
        assert submitted, moveit2.last_failure()
        assert moveit2.wait_until_executed(timeout_sec=SOON), moveit2.last_failure()
        found = moveit2.compute_fk(timeout_sec=SOON).pose.position
        assert np.abs(np.array([found.x, found.y, found.z]) - position).max() < 0.01


def test_motions_go_around_added_objects(planning, moveit2):
    assert move(moveit2, HOME + np.array([-0.6, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0]))
    middle = WAM.fk(HOME + np.array([0.0, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0]))[:3, 3]
    assert apply(planning.client, world(box("post", middle, (0.1, 0.1, 0.3))))
    goal = HOME + np.array([0.6, 0.3, 0.0, 0.0, 0.0, 0.0, 0.0])
    planned = moveit2.plan(joint_positions=goal.tolist(), timeout_sec=SOON)
    assert planned is not None, moveit2.last_failure()
    q = np.array([point.positions for point in planned.points])
    assert np.abs(q[:, 1:] - q[0, 1:]).max() > 0.02, "the straight motion would hit the post"


def test_path_constraint_holds_along_the_motion_or_is_the_reason_of_the_failure(moveit2):
    assert move(moveit2, HOME)
    _, quaternion = pose_of(HOME)
    for tolerance, works in ((0.6, True), (0.1, False)):
        moveit2.set_path_orientation_constraint(
            quat_xyzw=quaternion, tolerance=(3.14159, tolerance, tolerance), parameterization=1
        )
        goal = (HOME + np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])).tolist()
        planned = moveit2.plan(joint_positions=goal, timeout_sec=SOON)
        assert (planned is not None) is works
        moveit2.clear_path_constraints()


def test_cancel_stops_the_motion(moveit2):
    assert move(moveit2, HOME)
    moveit2.max_velocity = 0.05
    assert moveit2.move_to_configuration(OTHER.tolist(), timeout_sec=SOON)
    assert not moveit2.wait_until_executed(timeout_sec=0.3)
    assert moveit2.cancel_execution()
    assert not moveit2.wait_until_executed(timeout_sec=SOON)
    assert not moveit2.motion_succeeded
    moveit2.max_velocity = 1.0
    assert move(moveit2, HOME)


def test_move_group_action_plans_and_executes(planning, moveit2):
    given = {name: getattr(moveit2, name) for name in ("base_link_name", "end_effector_name")}
    with Spun(planning.client) as node:
        other = pymoveit2.MoveIt2(
            node=node,
            joint_names=list(WAM.joint_names),
            group_name="arm",
            use_move_group_action=True,
            **given,
        )
        assert other.move_to_configuration(OTHER.tolist(), timeout_sec=SOON)
        assert other.wait_until_executed(timeout_sec=SOON)
        other.destroy()


def test_unreachable_pose_fails_with_the_reason(moveit2):
    assert not moveit2.move_to_pose(
        position=[3.0, 0.0, 0.5], quat_xyzw=[0.0, 0.0, 0.0, 1.0], timeout_sec=SOON
    )
    assert "reach" in str(moveit2.last_failure()) or "IK" in str(moveit2.last_failure())


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs DLS_IK_PYMOVEIT2_EXAMPLES")
@pytest.mark.parametrize(
    "name",
    [
        path.name
        for path in sorted(EXAMPLES.glob("ex_*.py"))
        if path.name not in ("ex_gripper.py", "ex_servo.py")
    ],
)
def test_examples_run_unmodified(name, planning, tmp_path):
    done = subprocess.run(
        [*command(name, planning), "-p", f"timeout_sec:={SOON}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=SOON,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(not EXAMPLES.is_dir(), reason="needs DLS_IK_PYMOVEIT2_EXAMPLES")
def test_servo_example_moves_the_arm(planning, moveit2):
    """It runs until Ctrl-C, and then always fails to stop, because the signal ends its context."""
    before = np.array(moveit2.joint_state.position)
    options = ["-p", "linear_speed:=0.1", "-p", f"startup_timeout_sec:={SOON}"]
    with subprocess.Popen([*command("ex_servo.py", planning), *options]) as servo:
        moved = lambda: np.abs(np.array(moveit2.joint_state.position) - before).max() > 0.02  # noqa: E731
        planning.client.spin_until(moved, what="a motion")
        servo.send_signal(signal.SIGINT)
    planning.client.call(SetBool, "servo_node/pause_servo", SetBool.Request(data=False))
