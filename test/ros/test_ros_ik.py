# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""compute_ik and compute_fk as functions: what each field changes, and what is refused."""

import gc
import math
import weakref
from copy import deepcopy

import numpy as np
import pytest
from arms import published
from builtin_interfaces.msg import Duration
from few_inputs import assert_no_defect
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import AttachedCollisionObject, PositionIKRequest, RobotState
from moveit_msgs.srv import GetPositionFK
from oracle import rigid, rotation
from rclpy.serialization import serialize_message
from robots import joint, urdf
from ros_constraints import joint as joint_constraint
from ros_requests import CURRENT, NAMES, answer_ik, ask, make_arm, pose, refusal, values
from ros_wam import WAM, Q, state
from sensor_msgs.msg import JointState

from dls_ik import PlanningScene, RobotModel
from dls_ik.errors import Code, SceneError, ScenePendingError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, matrix_from_pose, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.services.answers import FastPathCache, answer_fk, ik_slices
from dls_ik.ros.services.request import MAX_REQUEST_BYTES, read_ik_request
from dls_ik.solver.calls import finished

TURN_ABOUT_Z = rigid(rotation([0, 0, 1], 0.5), [0.1, -0.2, 0.3])


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def assert_reached(arm, link, found, **moved):
    expected = arm.tree.pose(link, {**CURRENT, **moved})
    np.testing.assert_allclose(arm.tree.pose(link, found), expected, atol=2e-6)


def test_answer_has_all_joints_in_the_order_of_the_model(arm):
    answer = ask(arm, pose(arm, "tool", a3=0.9), current={**CURRENT, "grip": 0.3, "pan": 9.0})
    state = answer.response.solution.joint_state
    assert list(state.name) == NAMES
    assert state.header.frame_id == "world"
    found = values(answer)
    assert_reached(arm, "tool", found, a3=0.9)
    assert (found["rail_joint"], found["grip"], found["pan"]) == (0.4, 0.3, 9.0)
    assert found["follow"] == -0.3
    assert "solved to" in answer.message


@pytest.mark.parametrize("frame", ["", "/world", "rail", "camera", "tool"])
def test_pose_in_any_link_frame_is_reached(arm, frame):
    stamped = pose(arm, "tool", frame.strip("/"), a2=0.8, a6=-0.4)
    stamped.header.frame_id = frame
    found = values(ask(arm, stamped))
    assert_reached(arm, "tool", found, a2=0.8, a6=-0.4)


def test_normalised_quaternion_is_reported_in_the_answer(arm):
    stamped = pose(arm, "tool", a3=0.9)
    assert "quaternion" not in ask(arm, stamped).message
    o = stamped.pose.orientation
    o.x, o.y, o.z, o.w = 1.5 * o.x, 1.5 * o.y, 1.5 * o.z, 1.5 * o.w
    message = ask(arm, stamped).message
    assert "has length 1.5 and was normalised to" in message
    assert message.endswith("an omitted w means w = 1")


def test_ik_frames_unknown_to_the_robot_are_looked_up(arm):
    asked = []

    def lookup(target, source, stamp):
        asked.append((target, source, stamp.nanosec))
        return TURN_ABOUT_Z

    wanted = arm.tree.pose("tool", {**CURRENT, "a2": 0.8})
    stamped = PoseStamped(pose=pose_from_matrix(np.linalg.inv(TURN_ABOUT_Z) @ wanted))
    stamped.header.frame_id, stamped.header.stamp.nanosec = "table", 5
    found = values(ask(arm, stamped, Frames(lookup)))
    assert asked == [("world", "table", 5)]
    assert_reached(arm, "tool", found, a2=0.8)


@pytest.mark.parametrize("link", ["flange", "palm", "j6", "finger"])
def test_links_fixed_to_the_tip_or_beyond_it_are_reached(arm, link):
    found = values(ask(arm, pose(arm, link, a3=0.9), ik_link_name=link))
    assert_reached(arm, link, found, a3=0.9)
    assert found["follow"] == -found["grip"]
    assert found["rail_joint"] == 0.4


def test_link_outside_the_chain_is_reached_without_moving_the_arm(arm):
    found = values(ask(arm, pose(arm, "rail", rail_joint=-0.7), ik_link_name="rail"))
    assert found["rail_joint"] == pytest.approx(-0.7, abs=1e-5)
    found = values(ask(arm, pose(arm, "camera", pan=1.0, tilt=0.5), ik_link_name="camera"))
    assert (found["pan"], found["tilt"]) == pytest.approx((1.0, 0.5), abs=1e-5)
    assert {name: found[name] for name in CURRENT} == CURRENT


def test_seed_overlays_the_current_state(arm):
    seed = state(["grip", "a3", "unknown"], [0.2, 1.0, math.nan])
    found = values(ask(arm, pose(arm, "tool", a3=1.1), **seed))
    assert found["grip"] == 0.2
    assert found["rail_joint"] == 0.4
    assert found["a3"] == pytest.approx(1.1, abs=1e-4)


def test_link_frame_of_a_pose_is_placed_by_the_seed(arm):
    stamped = pose(arm, "tool", a2=0.8)  # relative to the root, at the current rail position
    rail_frame = pose(arm, "tool", "rail", a2=0.8)
    found = values(ask(arm, rail_frame, **state(["rail_joint"], [1.0])))
    moved = arm.tree.pose("tool", found)
    np.testing.assert_allclose(moved[1, 3] - stamped.pose.position.y, 0.6, atol=1e-5)
    assert found["rail_joint"] == 1.0


@pytest.mark.parametrize("is_diff", [True, False])
def test_robot_state_overlays_the_current_state_regardless_of_is_diff(arm, is_diff):
    for names, given, grip in ((["grip"], [0.2], 0.2), ([], [], 0.0)):
        fields = state(names, given)
        fields["robot_state"].is_diff = is_diff
        found = values(ask(arm, pose(arm, "tool"), **fields))
        assert (found["grip"], found["rail_joint"]) == (grip, 0.4)


def test_seed_outside_the_limits_gives_an_answer_within_limits(arm):
    answer = ask(arm, pose(arm, "tool"), **state(["a1", "a2", "a3"], [50.0, -7.0, 3.0]))
    found = values(answer)
    assert arm.robot.within_limits([found[name] for name in arm.robot.joint_names])


def test_controller_is_rebuilt_only_for_stream_parameters(arm):
    assert arm.changed(arm.parameters.changed({"method": "jd"})).controller is arm.controller
    assert arm.changed(arm.parameters.changed({"group_name": "x"})).controller is arm.controller
    other_shape = arm.parameters.changed({"method_options.nu": 5.0})
    assert arm.changed(other_shape).controller is not arm.controller
    assert arm.changed(arm.parameters.changed({"stream_method": "jd"})).controller.method == "jd"


def ask_fk(arm, links=(), frame="", **fields):
    request = GetPositionFK.Request(fk_link_names=list(links), **fields)
    request.header.frame_id = frame
    return answer_fk(request, arm, CURRENT, Frames())


def test_more_than_1000_fk_links_are_refused(arm):
    words = "at most 1000 links; got 1001"
    refusal(Code.INVALID_LINK_NAME, words, ask_fk, arm, ["tool"] * 1001)
    assert len(ask_fk(arm, ["tool"] * 1000).response.pose_stamped) == 1000


def test_too_long_frame_name_is_refused_without_a_lookup(arm):
    asked = []
    request = GetPositionFK.Request()
    request.header.frame_id = "x" * 257
    words = "unknown frame 'xx.*at most 256 characters"
    frames = Frames(lambda *given: asked.append(given))
    refusal(Code.FRAME_TRANSFORM_FAILURE, words, answer_fk, request, arm, CURRENT, frames)
    assert asked == []


def test_fk_links_are_returned_in_requested_order_with_repetitions(arm):
    links = ["tool", "camera", "/tool", "tool"]
    answer = ask_fk(arm, links)
    assert list(answer.response.fk_link_names) == links
    tool, camera, again, last = (stamped.pose for stamped in answer.response.pose_stamped)
    assert tool == again == last != camera


def test_fk_frames_unknown_to_the_robot_are_looked_up_at_the_stamp(arm):
    asked = []

    def lookup(target, source, stamp):
        asked.append((target, source, stamp.sec))
        return rigid(np.eye(3), [1, 2, 3])

    request = GetPositionFK.Request(fk_link_names=["tool"])
    request.header.frame_id, request.header.stamp.sec = "table", 7
    answer = answer_fk(request, arm, CURRENT, Frames(lookup))
    (stamped,) = answer.response.pose_stamped
    assert asked == [("world", "table", 7)]
    assert stamped.header.frame_id == "table"
    found = matrix_from_pose(stamped.pose)[:3, 3]
    np.testing.assert_allclose(found, arm.tree.pose("tool", CURRENT)[:3, 3] - [1, 2, 3], atol=1e-12)


@pytest.mark.parametrize("frame", ["", "world", "j4", "/camera"])
def test_fk_poses_are_relative_to_the_requested_frame(arm, frame):
    links = ["world", "thumb", "camera", "j2"]
    answer = ask_fk(arm, links, frame, **state(["grip", "a1"], [0.5, 1.0]))
    at = {**CURRENT, "grip": 0.5, "a1": 1.0}
    T_root_frame = arm.tree.pose(frame.strip("/") or "world", at)
    assert list(answer.response.fk_link_names) == links
    for link, stamped in zip(links, answer.response.pose_stamped, strict=True):
        assert stamped.header.frame_id == (frame.strip("/") or "world")
        T = T_root_frame @ matrix_from_pose(stamped.pose)
        np.testing.assert_allclose(T, arm.tree.pose(link, at), atol=1e-12)


def test_failure_of_a_five_joint_arm_suggests_tolerances():
    youbot = Arm(published("youbot"), Parameters())
    T = youbot.robot.fk(0.5 * (youbot.robot.lower + youbot.robot.upper))
    roll = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, -0.6], [0.0, 0.6, 0.8]])
    turned = PoseStamped(pose=pose_from_matrix(rigid(roll @ T[:3, :3], T[:3, 3])))
    words = "with 5 joints youbot reaches few poses.*tolerances of pi"
    refusal(Code.NO_IK_SOLUTION, words, ask, youbot, turned, current={})


def test_long_lists_of_names_are_shortened():
    links = " ".join(f"l{i}" for i in range(100))
    text = urdf(links, *(joint(f"j{i}", parent=f"l{i}", child=f"l{i + 1}") for i in range(99)))
    arm = Arm(RobotModel.from_urdf(text), Parameters())
    words = "l24 and 75 more"
    refusal(Code.INVALID_LINK_NAME, words, arm.ik_chain, arm.group(""), ["nope"])


def test_pose_link_and_group_are_selected_from_the_request_fields(arm):
    far = PoseStamped(pose=pose_from_matrix(rigid(np.eye(3), [9, 9, 9])))
    flange, tool = pose(arm, "flange", a3=0.9), pose(arm, "tool", a3=0.9)
    one = {"pose_stamped_vector": [flange], "ik_link_names": ["flange"]}
    assert ask(arm, far, ik_link_name="nope", **one)
    assert ask(arm, far, pose_stamped_vector=[tool])
    assert ask(arm, flange, ik_link_name="flange", ik_link_names=["nope"])
    both = {"pose_stamped_vector": [flange, tool], "ik_link_names": ["nope", "neither"]}
    refusal(Code.INVALID_LINK_NAME, "'nope', 'neither'; links", ask, arm, **both)
    strict = make_arm(group_name=["arm", "other"])
    for name in ("", "arm", "other"):
        assert ask(strict, tool, group_name=name)
    words = "'hand'; known: arm, other"
    refusal(Code.INVALID_GROUP_NAME, words, ask, strict, tool, group_name="hand")


def test_single_tip_method_has_no_solution_for_several_links():
    pytest.importorskip("PyKDL", reason="needs PyKDL")
    arm = make_arm(method="kdl_lma")
    poses = [pose(arm, "tool"), pose(arm, "camera")]
    fields = {"pose_stamped_vector": poses, "ik_link_names": ["tool", "camera"]}
    refusal(Code.NO_IK_SOLUTION, "tool, camera: .*kdl_lma", ask, arm, **fields)


@pytest.mark.parametrize(
    ("name", "value"), [("a3", math.nan), ("grip", 1e12), ("follow", math.inf)]
)
def test_seed_that_is_not_finite_is_refused(arm, name, value):
    seed = state([name], [value])
    refusal(Code.INVALID_ROBOT_STATE, f"'{name}'.*{value}", ask, arm, pose(arm, "tool"), **seed)


def test_published_method_answer_outside_the_limits_is_refused():
    arm = make_arm(method="jd")
    refusal(
        Code.NO_IK_SOLUTION,
        "outside the joint limits",
        ask,
        arm,
        pose(arm, "tool", a1=2.5),
        current={**CURRENT, "a1": 2.5},
    )


def test_pose_farther_than_1e9_m_is_refused(arm):
    stamped = pose(arm, "tool")
    stamped.pose.position.x = 1e300
    refusal(Code.GOAL_STATE_INVALID, "within 1e\\+09 m", ask, arm, stamped)
    far = rigid(np.eye(3), [9e8, 0.0, 0.0])  # twice: valid in its frame, but not from the base
    stamped = PoseStamped(pose=pose_from_matrix(far))
    stamped.header.frame_id = "table"
    words = "a pose must be finite, and within 1e\\+09 m"
    refusal(Code.GOAL_STATE_INVALID, words, ask, arm, stamped, Frames(lambda *_: far))


def read(arm, **fields):
    return read_ik_request(PositionIKRequest(**fields), arm)


def test_read_request_keeps_only_used_fields_and_leaves_the_message(arm):
    state = RobotState()
    names = ["a1", "tilt", *(f"foreign_{i}" for i in range(20_000))]
    state.joint_state = JointState(name=names, position=[0.3] * len(names), effort=[1.0] * 9999)
    state.multi_dof_joint_state.joint_names = ["floating"] * 20_000
    state.attached_collision_objects = [AttachedCollisionObject(touch_links=["x" * 10**6])] * 2
    message = PositionIKRequest(pose_stamped=pose(arm, "tool"), robot_state=state)
    before = deepcopy(message)
    request = read_ik_request(message, arm)
    assert request.state.positions == {"a1": 0.3, "tilt": 0.3}
    assert len(serialize_message(request.poses[0])) + len(str(request.state)) < 2000
    note = answer_ik(message, arm, CURRENT, Frames()).message
    assert "degrees of freedom are ignored; attached objects are ignored" in note
    assert "unknown joints in robot_state are ignored: 'foreign_0', 'foreign_1'" in note
    assert "and 19997 more" in note
    assert message == before


@pytest.mark.parametrize("fields", ["group", "link", "constraint", "frames"])
def test_request_larger_than_max_request_bytes_is_refused(arm, fields):
    frame = PoseStamped()
    frame.header.frame_id = "x" * 100
    many = MAX_REQUEST_BYTES // 150
    given = {
        "group": {"group_name": "x" * MAX_REQUEST_BYTES},
        "link": {"ik_link_name": "x" * MAX_REQUEST_BYTES},
        "constraint": {"constraints": joint_constraint("x" * MAX_REQUEST_BYTES, 0.0)},
        "frames": {"ik_link_names": ["x"] * many, "pose_stamped_vector": [frame] * many},
    }
    words = f"at most {MAX_REQUEST_BYTES} bytes; got \\d+"
    refusal(Code.FAILURE, words, read, arm, **given[fields])


def test_fast_path_cache_ignores_group_and_unused_link_names(arm):
    names = {"group_name": "any", "ik_link_name": "any", "ik_link_names": ["/tool", "any"]}
    poses = [pose(arm, "tool")]
    known = FastPathCache()
    known.remember(read(arm, pose_stamped_vector=poses, **names))
    assert known.is_known(read(arm, ik_link_name="tool"))
    assert not known.is_known(read(arm, ik_link_name="flange"))


def test_timeout_is_shortened_to_max_timeout_with_a_note():
    arm = make_arm(max_timeout=0.02, timeout=60.0)
    for timeout in (Duration(), Duration(sec=2**31 - 1)):
        cut = read(arm, timeout=timeout)
        assert cut.timeout == 0.02
        assert "shortened to the parameter max_timeout, 0.02 s" in cut.timeout_note
    assert read(arm, timeout=Duration(nanosec=1)).timeout_note == ""
    far = pose(arm, "tool")
    far.pose.position.x = 30.0
    refusal(Code.NO_IK_SOLUTION, "closest", ask, arm, far)  # limit of 2 s


def test_outdated_scene_snapshots_and_arms_are_freed():
    """An object moves at each of 500 requests for collision-free solutions."""
    arm, known, kept = Arm(WAM, Parameters()), FastPathCache(), []
    scene = PlanningScene(WAM)
    scene.add_sphere("ball", 0.05, rigid(np.eye(3), [2.0, 0.0, 0.0]))
    message = PositionIKRequest(avoid_collisions=True, timeout=Duration(sec=2))
    message.pose_stamped.pose = pose_from_matrix(WAM.fk(Q))
    for k in range(500):
        scene.move("ball", rigid(np.eye(3), [2.0 + 1e-3 * k, 0.0, 0.0]))
        kept.append(weakref.ref(scene.snapshot))
        request = read_ik_request(message, arm, lambda tree: scene)
        assert finished(ik_slices(request, {}, Frames(), request.timeout))
        known.remember(request)
        assert known.is_known(request)
        del request
    gc.collect()
    assert sum(each() is not None for each in kept) < 20
    arm = weakref.ref(arm)
    gc.collect()
    assert arm() is None, "nor is the robot kept"


def test_pending_or_missing_scene_is_refused_unless_collisions_are_ignored(arm):
    def pending(tree):
        raise ScenePendingError("the planning scene is being prepared")

    def missing(tree):
        raise SceneError("a mesh cannot be read")

    message = PositionIKRequest(avoid_collisions=True, pose_stamped=pose(arm, "tool"))
    words = "cannot be checked yet: the planning scene is being prepared; send the request again"
    refusal(Code.TIMED_OUT, words, read_ik_request, message, arm, pending)
    words = "a mesh cannot be read; .*set the parameter avoid_collisions to ignore"
    refusal(Code.COLLISION_CHECKING_UNAVAILABLE, words, read_ik_request, message, arm, missing)
    ignoring = make_arm(avoid_collisions="ignore")
    assert read_ik_request(message, ignoring, missing).scene is None


INPUTS = {"parameters": 200, "requests": 60, "stream": 40}


@pytest.mark.parametrize("name", INPUTS)
def test_random_input_is_answered_or_refused_without_internal_errors(name):
    assert_no_defect(name, INPUTS[name])
