"""What compute_ik refuses as a function, and how it says so."""

import math
from copy import deepcopy

import numpy as np
import pytest
from arms import published
from builtin_interfaces.msg import Duration
from few_inputs import assert_no_defect
from geometry_msgs.msg import PoseStamped
from moveit_msgs.msg import AttachedCollisionObject, PositionIKRequest, RobotState
from oracle import rigid
from rclpy.serialization import serialize_message
from robots import joint, urdf
from ros_constraints import joint as joint_constraint
from ros_requests import CURRENT, answer_ik, ask, make_arm, pose, refusal
from ros_wam import state
from sensor_msgs.msg import JointState

from dls_ik import RobotModel
from dls_ik.errors import Code
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.services.request import MAX_BYTES, read_ik_request
from dls_ik.ros.services.server import FastPathCache


@pytest.fixture(scope="module")
def arm():
    return make_arm()


def test_an_arm_of_few_joints_is_told_what_to_ask_for_instead():
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


def test_which_pose_link_and_group(arm):
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


def test_several_links_by_a_method_of_one_tip_have_no_solution():
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


def test_seed_of_a_published_method_beside_its_limits_is_no_silent_answer():
    arm = make_arm(method="jd")
    refusal(
        Code.NO_IK_SOLUTION,
        "outside the joint limits",
        ask,
        arm,
        pose(arm, "tool", a1=2.5),
        current={**CURRENT, "a1": 2.5},
    )


def test_target_beyond_all_numbers_is_refused(arm):
    stamped = pose(arm, "tool")
    stamped.pose.position.x = 1e300
    refusal(Code.GOAL_STATE_INVALID, "beyond all reach", ask, arm, stamped)
    far = rigid(np.eye(3), [9e8, 0.0, 0.0])  # twice: valid in its frame, but not from the base
    stamped = PoseStamped(pose=pose_from_matrix(far))
    stamped.header.frame_id = "table"
    words = "a pose must be finite, and within 1e\\+09 m"
    refusal(Code.GOAL_STATE_INVALID, words, ask, arm, stamped, Frames(lambda *_: far))


def read(arm, **fields):
    return read_ik_request(PositionIKRequest(**fields), arm)


def test_only_what_is_used_of_a_request_is_kept_and_the_message_is_left_as_it_is(arm):
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
    assert "degrees of freedom are not used; attached objects are not used" in note
    assert message == before


@pytest.mark.parametrize("fields", ["group", "link", "constraint", "frames"])
def test_a_request_that_is_too_large_to_wait_is_refused(arm, fields):
    frame = PoseStamped()
    frame.header.frame_id = "x" * 100
    many = MAX_BYTES // 150
    given = {
        "group": {"group_name": "x" * MAX_BYTES},
        "link": {"ik_link_name": "x" * MAX_BYTES},
        "constraint": {"constraints": joint_constraint("x" * MAX_BYTES, 0.0)},
        "frames": {"ik_link_names": ["x"] * many, "pose_stamped_vector": [frame] * many},
    }
    words = f"the request has \\d+ bytes that count; at most {MAX_BYTES}"
    refusal(Code.FAILURE, words, read, arm, **given[fields])


def test_what_is_remembered_of_a_request_has_none_of_its_words(arm):
    names = {"group_name": "any", "ik_link_name": "any", "ik_link_names": ["/tool", "any"]}
    poses = [pose(arm, "tool")]
    known = FastPathCache()
    known.remember(read(arm, pose_stamped_vector=poses, **names))
    assert known.is_known(read(arm, ik_link_name="tool"))
    assert not known.is_known(read(arm, ik_link_name="flange"))


def test_a_timeout_is_cut_to_the_longest_there_is():
    arm = make_arm(max_timeout=0.02, timeout=60.0)
    for timeout in (Duration(), Duration(sec=2**31 - 1)):
        cut = read(arm, timeout=timeout)
        assert cut.timeout == 0.02
        assert "cut to the parameter max_timeout, 0.02 s" in cut.timeout_note
    assert read(arm, timeout=Duration(nanosec=1)).timeout_note == ""
    far = pose(arm, "tool")
    far.pose.position.x = 30.0
    refusal(Code.NO_IK_SOLUTION, "nearest", ask, arm, far)  # of 2 s


INPUTS = {"parameters": 200, "requests": 60, "stream": 40}


@pytest.mark.parametrize("name", INPUTS)
def test_nothing_but_answers_and_refusals(name):
    assert_no_defect(name, INPUTS[name])
