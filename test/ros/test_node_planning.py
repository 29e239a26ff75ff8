# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planning services and execution of a node: answers to bad requests, thresholds, speeds, load."""

import math
import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from geometry_msgs.msg import Pose
from moveit_msgs.action import ExecuteTrajectory, MoveGroup
from moveit_msgs.msg import Constraints, MotionPlanRequest
from moveit_msgs.srv import GetCartesianPath, GetMotionPlan
from prefork import python_path
from ros_actor import ABORTED, CANCELED, SUCCEEDED, Actor, trajectory
from ros_client import Client, NodeProcess
from ros_goals import at, joint_goal, no_goal, pose_goal
from ros_scene import apply, box, world
from ros_streamer import HOME, Streamer, positions, stamped
from ros_wam import WAM

from dls_ik import IkSolver
from dls_ik.errors import Code
from dls_ik.ros.frames import pose_from_matrix

pytestmark = pytest.mark.ros

HERE, TESTS = Path(__file__).parent, Path(__file__).parents[1]
MAX_POOL_THREADS = 10  # threads that pools create for four goals and requests
NAMESPACE = "/planned"
ARGUMENTS = {
    "robot": "wam",
    "acceleration": [6.0],
    "initial_positions": HOME.tolist(),
    "move_group_interface": True,
}


def environment():
    """Return the environment of another process that imports the modules of the tests."""
    path = os.pathsep.join([python_path(), str(HERE), str(TESTS)])
    return {**os.environ, "PYTHONPATH": path}


class Node:
    def __init__(self):
        words = [word for name, value in ARGUMENTS.items() for word in ("-p", f"{name}:={value}")]
        self.client = Client(NAMESPACE)
        self.process = NodeProcess("-r", f"__ns:={NAMESPACE}", *words)
        self.process.wait_for_line("the stream keeps")

    def plan(self, **fields):
        """Return the response of plan_kinematic_path."""
        wanted = MotionPlanRequest(allowed_planning_time=5.0, **fields)
        request = GetMotionPlan.Request(motion_plan_request=wanted)
        return self.client.call(GetMotionPlan, "plan_kinematic_path", request).motion_plan_response

    def cartesian(self, waypoints, **fields):
        """Return the response of compute_cartesian_path, from HOME."""
        given = {"max_step": 0.01, "avoid_collisions": True, "start_state": at(HOME), **fields}
        request = GetCartesianPath.Request(waypoints=waypoints, **given)
        return self.client.call(GetCartesianPath, "compute_cartesian_path", request)


@pytest.fixture(scope="module")
def node():
    node = Node()
    with node.process, node.client:
        yield node


@pytest.fixture(autouse=True)
def empty_scene(node):
    yield
    assert apply(node.client, world(is_diff=False))


def times_and_positions(robot_trajectory):
    points = robot_trajectory.joint_trajectory.points
    times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
    return np.array(times), np.array([p.positions for p in points])


def shifted(y=0.0, z=0.0, q=HOME):
    T = WAM.fk(q)
    T[1, 3] += y
    T[2, 3] += z
    return T


def waypoint(T):
    return pose_from_matrix(T)


def refusal(response, code, *words):
    """Check that a response has a code, and a message with words."""
    message = response.error_code.message
    assert response.error_code.val == code, message
    assert all(word in message for word in words), message
    return message


def test_plans_to_joint_and_pose_goals_are_timed_within_the_limits(node):
    goal = HOME + 0.3
    for constraints in (joint_goal(goal), pose_goal(WAM.fk(goal))):
        response = node.plan(start_state=at(HOME), goal_constraints=[constraints])
        refusal(response, Code.SUCCESS, "planned in")
        times, q = times_and_positions(response.trajectory)
        np.testing.assert_allclose(q[0], HOME, atol=1e-9)
        np.testing.assert_allclose(WAM.fk(q[-1])[:3, 3], WAM.fk(goal)[:3, 3], atol=2e-3)
        assert (np.diff(times) > 0.0).all()
        speed = np.abs(np.diff(q, axis=0)) / np.diff(times)[:, None]
        assert (speed <= WAM.velocity * 1.01).all()
        assert list(response.trajectory_start.joint_state.name) == list(WAM.joint_names)
    fast = node.plan(start_state=at(HOME), goal_constraints=[joint_goal(goal)])
    slow = node.plan(
        start_state=at(HOME), goal_constraints=[joint_goal(goal)], max_velocity_scaling_factor=0.1
    )
    ends = [times_and_positions(each.trajectory)[0][-1] for each in (fast, slow)]
    assert ends[1] > 1.5 * ends[0]


def test_bad_planning_requests_have_a_code_and_a_reason(node):
    goal = [joint_goal(HOME + 0.1)]
    refusal(node.plan(), Code.INVALID_GOAL_CONSTRAINTS, "goal_constraints must contain")
    refusal(node.plan(goal_constraints=[Constraints()]), Code.INVALID_GOAL_CONSTRAINTS)
    unknown = [joint_goal([0.1], ["elbow"])]
    refusal(node.plan(goal_constraints=unknown), Code.INVALID_GOAL_CONSTRAINTS, "'elbow'")
    nan = [joint_goal([math.nan], [WAM.joint_names[0]])]
    refusal(node.plan(goal_constraints=nan), Code.INVALID_GOAL_CONSTRAINTS, "nan")
    far = [joint_goal([9.0], [WAM.joint_names[0]])]
    refusal(node.plan(goal_constraints=far), Code.GOAL_STATE_INVALID, "outside its limits")
    outside = node.plan(start_state=at(HOME + 5.0), goal_constraints=goal)
    refusal(outside, Code.START_STATE_INVALID, "outside its limits")
    link = [pose_goal(WAM.fk(HOME), "gripper")]
    refusal(node.plan(goal_constraints=link), Code.INVALID_LINK_NAME, "'gripper'")
    beyond = shifted(y=5.0)
    refusal(node.plan(goal_constraints=[pose_goal(beyond)]), Code.NO_IK_SOLUTION)
    never = node.plan(
        goal_constraints=goal, cartesian_speed_limited_link="x", max_cartesian_speed=1.0
    )
    refusal(never, Code.INVALID_LINK_NAME, "'x'")
    assert apply(node.client, world(box("block", WAM.fk(HOME)[:3, 3])))
    start = node.plan(start_state=at(HOME), goal_constraints=goal)
    refusal(start, Code.START_STATE_IN_COLLISION, "'block'")
    moved = node.plan(start_state=at(HOME - 0.5), goal_constraints=[joint_goal(HOME)])
    refusal(moved, Code.GOAL_IN_COLLISION, "'block'")


def test_cartesian_path_stays_on_its_line_and_says_its_fraction(node):
    response = node.cartesian([waypoint(shifted(y=0.1)), waypoint(shifted(y=0.1, z=0.1))])
    refusal(response, Code.SUCCESS, "fraction 1")
    assert response.fraction == 1.0
    _, q = times_and_positions(response.solution)
    poses = WAM.fk(q)
    away = poses[:, :3, 3] - WAM.fk(HOME)[:3, 3]
    assert np.minimum(np.abs(away[:, 2]), np.abs(away[:, 1] - 0.1)).max() < 1e-3
    np.testing.assert_allclose(away[-1], [0.0, 0.1, 0.1], atol=1e-5)
    slow = node.cartesian([waypoint(shifted(y=0.1))], max_cartesian_speed=0.02)
    times, q = times_and_positions(slow.solution)
    assert times[-1] > 5.0


def test_cartesian_path_that_ends_early_says_where_and_why(node):
    assert apply(node.client, world(box("wall", shifted(y=0.3)[:3, 3])))
    blocked = node.cartesian([waypoint(shifted(y=0.3))])
    message = refusal(blocked, Code.SUCCESS, "'wall'", "would collide")
    assert 0.0 < blocked.fraction < 1.0, message
    through = node.cartesian([waypoint(shifted(y=0.3))], avoid_collisions=False)
    assert through.fraction == 1.0
    away = node.cartesian([waypoint(shifted(y=3.0))], max_step=0.05)
    refusal(away, Code.SUCCESS, "pose")
    assert 0.0 < away.fraction < 0.9
    jump = node.cartesian([waypoint(shifted(y=0.1))], revolute_jump_threshold=1e-4)
    refusal(jump, Code.SUCCESS, "would jump")
    assert jump.fraction == 0.0
    relative = node.cartesian([waypoint(shifted(y=0.1))], jump_threshold=1e-3)
    refusal(relative, Code.SUCCESS, "jump_threshold")


def test_cartesian_path_that_is_lost_pose_by_pose_is_solved_as_a_whole(node):
    q = np.array([-1.663, -0.311, 1.178, 1.364, -2.505, 0.765, -0.978])
    T = WAM.fk(q)
    line = np.tile(T, (38, 1, 1))
    line[:, :3, 3] += np.linspace(0.0, 0.372, 38)[:, None] * [0.609, -0.773, -0.178]
    assert IkSolver(WAM).solve_path(line[1:], q).fraction < 1.0
    fields = {"start_state": at(q), "avoid_collisions": False}
    response = node.cartesian([waypoint(line[-1])], **fields)
    refusal(response, Code.SUCCESS, "fraction 1")
    assert response.fraction == 1.0
    _, path = times_and_positions(response.solution)
    np.testing.assert_allclose(path[0], q, atol=1e-9)
    np.testing.assert_allclose(WAM.fk(path[-1]), line[-1], atol=1e-5)
    assert np.abs(np.diff(path, axis=0)).max() < 0.5


def test_bad_cartesian_requests_have_a_code_and_a_reason(node):
    goal = [waypoint(shifted(y=0.1))]
    refusal(node.cartesian([]), Code.FAILURE, "got 0")
    refusal(node.cartesian([Pose()] * 100_000), Code.FAILURE, "got 100000")
    refusal(node.cartesian(goal, max_step=0.0), Code.FAILURE, "max_step")
    refusal(node.cartesian(goal, max_step=1e-7), Code.FAILURE, "larger max_step")
    refusal(node.cartesian(goal, jump_threshold=math.nan), Code.FAILURE, "jump_threshold")
    refusal(node.cartesian(goal, max_cartesian_speed=math.inf), Code.FAILURE)
    refusal(node.cartesian(goal, link_name="x"), Code.INVALID_LINK_NAME, "'x'")
    nan = Pose()
    nan.position.x = math.nan
    refusal(node.cartesian([nan]), Code.GOAL_STATE_INVALID, "waypoint 0")
    outside = node.cartesian(goal, start_state=at(HOME + 5.0))
    refusal(outside, Code.START_STATE_INVALID)
    zero = node.cartesian(goal, max_cartesian_speed=0.0)
    assert zero.fraction == 1.0, "0 means no limit"


def test_trajectories_are_executed_rejected_and_cancelled(node):
    actor = Actor(node.client, ExecuteTrajectory, "execute_trajectory")

    def goal(*given):
        wanted = ExecuteTrajectory.Goal()
        wanted.trajectory.joint_trajectory = trajectory(*given)
        return wanted

    status, result = actor.run(goal([1.0], [HOME + 0.1]))
    assert (status, result.error_code.val) == (SUCCEEDED, Code.SUCCESS), result.error_code.message
    status, result = actor.run(goal([0.05], [HOME + 1.0]))
    assert (status, result.error_code.val) == (ABORTED, Code.INVALID_MOTION_PLAN)
    assert "multiply all times" in result.error_code.message
    other = ExecuteTrajectory.Goal()
    other.trajectory.joint_trajectory = trajectory([1.0], [[0.1]], names=["finger"])
    status, result = actor.run(other)
    assert (status, result.error_code.val) == (ABORTED, Code.CONTROL_FAILED)
    sent = actor.send(goal([3.0], [HOME - 0.4]))
    sent.cancel()
    status, result = sent.wait()
    assert (status, result.error_code.val) == (CANCELED, Code.PREEMPTED)
    assert actor.run(goal([1.5], [HOME]))[0] == SUCCEEDED


def test_move_action_plans_only_or_moves(node):
    actor = Actor(node.client, MoveGroup, "move_action")
    goal = MoveGroup.Goal()
    goal.request = MotionPlanRequest(goal_constraints=[joint_goal(HOME + 0.1)])
    goal.planning_options.plan_only = True
    status, result = actor.run(goal)
    assert (status, result.error_code.val) == (SUCCEEDED, Code.SUCCESS)
    assert len(result.planned_trajectory.joint_trajectory.points) > 2
    goal.planning_options.plan_only = False
    assert actor.run(goal)[0] == SUCCEEDED
    goal.request.goal_constraints = [joint_goal(HOME)]
    assert actor.run(goal)[0] == SUCCEEDED
    goal.planning_options.planning_scene_diff = world(box("b", (1.0, 1.0, 1.0)))
    status, result = actor.run(goal)
    assert status == ABORTED
    assert "apply_planning_scene" in result.error_code.message


@pytest.mark.parametrize("action", ["move_action", "dls_ik/move_to_pose"])
def test_cancel_during_planning_ends_the_goal_at_once(node, action):
    """Without a cancel these goals are aborted, when there is no time left."""
    actor = Actor(node.client, MoveGroup, action)
    goal = MoveGroup.Goal()
    goal.request = MotionPlanRequest(
        goal_constraints=[pose_goal(no_goal())], allowed_planning_time=9.0
    )
    sent = actor.send(goal)
    node.client.spin_until(lambda: sent.feedback, what="the start of planning")
    sent.cancel()
    status, result = sent.wait()
    assert (status, result.error_code.val) == (CANCELED, Code.PREEMPTED)
    assert result.error_code.message == "cancelled by the client"
    goal.request = MotionPlanRequest(goal_constraints=[pose_goal(WAM.fk(HOME))])
    assert actor.run(goal)[0] == SUCCEEDED


NAMES = (
    ["dls_ik/follow_joint_trajectory"],
    ["dls_ik/move_to_pose", "plan_kinematic_path", "compute_cartesian_path"],
)


def test_clients_that_disappear_leave_nothing_behind(node):
    client, figures = node.client, node.process.figures
    streamer = Streamer(client)
    for names in NAMES:
        vanishing = [sys.executable, str(HERE / "ros_vanishing.py"), NAMESPACE, *names]
        with subprocess.Popen(vanishing, stdout=subprocess.PIPE, env=environment()) as process:
            assert process.stdout.readline() == b"sent\n"
            process.kill()
        if names is NAMES[0]:  # the motion continues to its end
            client.spin_until(
                lambda: (
                    streamer.states
                    and np.abs(positions(streamer.states[-1]) - HOME - 0.2).max() < 1e-4
                ),
                what="the end of the motion",
            )
        refusal(node.cartesian([waypoint(shifted(y=0.1))]), Code.SUCCESS, "fraction 1")
    actor = Actor(client, MoveGroup, "dls_ik/move_to_pose")
    goal = MoveGroup.Goal()
    goal.request = MotionPlanRequest(goal_constraints=[pose_goal(WAM.fk(HOME))])
    # The motion of the client that disappeared may still be in progress, and is then replaced.
    client.spin_until(lambda: actor.run(goal)[0] == SUCCEEDED, what="a motion for another client")
    # Threads of the pools are kept, and created once.
    client.spin_until(
        lambda: (
            node.process.figures.threads <= figures.threads + MAX_POOL_THREADS
            and node.process.figures.files <= figures.files + MAX_POOL_THREADS
        ),
        what="the end of threads and handles",
    )


def test_move_to_pose_follows_a_line_or_goes_around_an_obstacle(node):
    actor = Actor(node.client, MoveGroup, "dls_ik/move_to_pose")
    goal = MoveGroup.Goal()
    for y, obstacle, words in ((0.1, False, "on a straight line"), (0.0, True, "would collide")):
        T = shifted(y=y)
        if obstacle:
            assert apply(node.client, world(box("pin", shifted(y=0.05)[:3, 3], (0.02, 0.02, 0.02))))
        goal.request = MotionPlanRequest(goal_constraints=[pose_goal(T)], allowed_planning_time=9.0)
        sent = actor.send(goal)
        status, result = sent.wait()
        message = result.error_code.message
        if obstacle and status != SUCCEEDED:  # the pin touches the arm where it starts
            assert "'pin'" in message
            continue
        assert (status, words in message) == (SUCCEEDED, True), message
        assert any("MONITOR: " in each.state for each in sent.feedback)
    assert apply(node.client, world(is_diff=False))
    for bad, words in (
        ([joint_goal(HOME)], "position constraint"),
        ([pose_goal(T), pose_goal(T)], "alternatives"),
    ):
        goal.request = MotionPlanRequest(goal_constraints=bad)
        status, result = actor.run(goal)
        assert status == ABORTED
        assert words in result.error_code.message
    goal.request = MotionPlanRequest(goal_constraints=[pose_goal(WAM.fk(HOME))])
    assert actor.run(goal)[0] == SUCCEEDED


def test_stream_is_followed_while_paths_are_planned(node):
    streamer = Streamer(node.client)
    long = GetCartesianPath.Request(
        waypoints=[waypoint(shifted(y=y)) for y in (0.3, -0.3) * 10],
        max_step=0.002,
        start_state=at(HOME),
    )
    client = node.client.node.create_client(GetCartesianPath, "compute_cartesian_path")
    node.client.spin_until(client.service_is_ready, what="the service")
    calls = [client.call_async(long) for _ in range(3)]
    streamer.go(WAM.fk(HOME + 0.05))
    node.client.spin_until(lambda: all(c.done() for c in calls), what="the answers")
    assert all(call.result().error_code.val == Code.SUCCESS for call in calls)
    streamer.targets.publish(stamped(WAM.fk(HOME)))
    assert threading.active_count() < 20
