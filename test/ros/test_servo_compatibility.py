# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Clients of MoveIt Servo at a node with compatibility:=moveit_servo.

The messages are those of two demos of moveit2 2.15.0 and 2.5: ``servo_keyboard_input.cpp``, one
message per key, and ``joystick_servo_example.cpp``, one message per ``sensor_msgs/Joy``.
"""

import numpy as np
import pytest
import yaml
from control_msgs.msg import JointJog
from geometry_msgs.msg import PoseStamped, TwistStamped
from moveit_msgs.msg import CollisionObject, PlanningScene, ServoStatus
from moveit_msgs.srv import GetPlanningScene
from preset_arms import ARMS, urdf
from ros_client import Client, NodeProcess
from sensor_msgs.msg import JointState
from shape_msgs.msg import SolidPrimitive
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

from dls_ik import RobotModel
from dls_ik.ros.frames import pose_from_matrix

try:
    from moveit_msgs.srv import ServoCommandType
except ImportError:
    pytest.skip("needs ServoCommandType of moveit_msgs", allow_module_level=True)

pytestmark = pytest.mark.ros

JOINTS = ARMS["panda"][0]
START = np.array([0.0, -0.785, 0.0, -2.356, 0.0, 1.571, 0.785])  # start of the demos
LINEAR, ROTATIONAL, JOINT = 0.2, 0.8, 0.5
# Parameters as panda_simulated_config.yaml has them, with the prefix of Servo's launch files.
SERVO = {
    "publish_period": 0.01,
    "max_expected_latency": 0.1,
    "command_in_type": "unitless",
    "scale": {"linear": LINEAR, "rotational": ROTATIONAL, "joint": JOINT},
    "command_out_type": "trajectory_msgs/JointTrajectory",
    "publish_joint_accelerations": False,
    "use_smoothing": True,
    "move_group_name": "panda_arm",
    "lower_singularity_threshold": 10.0,
    "joint_limit_margins": [0.12],
    "incoming_command_timeout": 0.2,
    "cartesian_command_in_topic": "~/delta_twist_cmds",
    "status_topic": "~/status",
    "command_out_topic": "/panda_arm_controller/joint_trajectory",
    "check_collisions": True,
}
SWITCH = "servo_node/switch_command_type"


def panda():
    """Return the URDF of a Panda with the names of links that the demos use."""
    return urdf("panda").replace('"foot"', '"panda_link0"').replace('"part', '"panda_link')


ROBOT = RobotModel.from_urdf(panda())
assert ROBOT.joint_names == tuple(JOINTS)


class Servo:
    """Node, and a client that sends what the demos send."""

    def __init__(self, folder):
        file = folder / "servo.yaml"
        own = {
            "compatibility": "moveit_servo",
            "preset": "panda",
            "robot_description": panda(),
            "feedback_mode": "none",
            "initial_positions": START.tolist(),
            "moveit_servo": SERVO,
        }
        file.write_text(yaml.safe_dump({"/**": {"ros__parameters": own}}))
        self.node = NodeProcess("--params-file", str(file))
        self.client = client = Client()
        self.node.wait_for_line("ready", "/servo_node/delta_twist_cmds")
        self.node.wait_for_line("no <collision> geometry")  # targets wait for the scene
        self.sent = client.listen(JointTrajectory, "/panda_arm_controller/joint_trajectory", 100)
        self.told = client.listen(ServoStatus, "servo_node/status")
        # Publishers and queue sizes of the demos.
        self.twists = client.publisher(TwistStamped, "/servo_node/delta_twist_cmds", 10)
        self.joints = client.publisher(JointJog, "/servo_node/delta_joint_cmds", 10)
        self.poses = client.publisher(PoseStamped, "/servo_node/pose_target_cmds", 10)
        self.scenes = client.publisher(PlanningScene, "/planning_scene", 10)
        self.positions = client.publisher(JointState, "target_joint", 10)
        self.frame, self.velocity = "panda_link0", 1.0

    def stamp(self):
        return self.client.node.get_clock().now().to_msg()

    def switch(self, name):
        kind = getattr(ServoCommandType.Request, name)
        request = ServoCommandType.Request(command_type=kind)
        return self.client.call(ServoCommandType, SWITCH, request).success

    def press(self, key):
        """Publish or request what servo_keyboard_input.cpp does for a key."""
        moves = {"left": (1, -0.5), "right": (1, 0.5), "up": (0, 0.5), "down": (0, -0.5)}
        moves |= {".": (2, -0.5), ";": (2, 0.5)}
        if key in moves:
            axis, value = moves[key]
            message = TwistStamped()
            setattr(message.twist.linear, "xyz"[axis], value)
            message.header.stamp, message.header.frame_id = self.stamp(), self.frame
            self.twists.publish(message)
        elif key in "1234567":
            message = JointJog(joint_names=list(JOINTS), velocities=[0.0] * 7)
            message.velocities[int(key) - 1] = self.velocity
            message.header.stamp, message.header.frame_id = self.stamp(), "panda_link0"
            self.joints.publish(message)
        elif key == "r":
            self.velocity *= -1.0
        elif key in "we":
            self.frame = {"w": "panda_link0", "e": "panda_link8"}[key]
        else:
            assert self.switch({"j": "JOINT_JOG", "t": "TWIST"}[key])

    def joystick(self, axes, buttons):
        """Publish what joystick_servo_example.cpp does for the axes and buttons of an Xbox pad."""
        axes = {"lt": 1.0, "rt": 1.0, **axes}
        if any(buttons.values()) or "dx" in axes or "dy" in axes:
            message = JointJog()
            for name, value in [
                ("panda_joint1", axes.get("dx", 0.0)),
                ("panda_joint2", axes.get("dy", 0.0)),
                ("panda_joint7", float(buttons.get("B", 0) - buttons.get("X", 0))),
                ("panda_joint6", float(buttons.get("Y", 0) - buttons.get("A", 0))),
            ]:
                message.joint_names.append(name)
                message.velocities.append(value)
            message.header.stamp, message.header.frame_id = self.stamp(), "panda_link3"
            self.joints.publish(message)
            return
        message = TwistStamped()
        linear, angular = message.twist.linear, message.twist.angular
        linear.z, linear.y = axes.get("ry", 0.0), axes.get("rx", 0.0)
        linear.x = -0.5 * (axes["rt"] - 1.0) + 0.5 * (axes["lt"] - 1.0)
        angular.y, angular.x = axes.get("ly", 0.0), axes.get("lx", 0.0)
        message.header.stamp, message.header.frame_id = self.stamp(), self.frame
        self.twists.publish(message)

    @property
    def q(self):
        """Positions at the end of the last trajectory."""
        return np.array(self.sent[-1].points[-1].positions) if self.sent else START

    def until(self, send, condition, what):
        self.client.spin_until(lambda: send() or condition(), what=what)

    def peak_velocity(self):
        """Return the largest absolute velocities (n,) in the trajectories."""
        rows = [p.velocities for message in self.sent for p in message.points if p.velocities]
        return np.abs(rows).max(axis=0)

    def home(self):
        """Move to START by target_joint, which is accepted whatever the type."""
        self.client.call(Trigger, "servo_node/start_servo", Trigger.Request())
        goal = JointState(name=list(JOINTS), position=START.tolist())
        self.until(
            lambda: self.positions.publish(goal),
            lambda: np.abs(self.q - START).max() < 1e-3 and self.told[-1].message[:2] == "at",
            "the arm at its start",
        )


@pytest.fixture(scope="module")
def servo(tmp_path_factory, private_domain):
    servo = Servo(tmp_path_factory.mktemp("servo"))
    with servo.node, servo.client:
        yield servo


@pytest.fixture
def at_start(servo):
    servo.home()
    del servo.sent[:]
    servo.frame, servo.velocity = "panda_link0", 1.0
    return servo


def test_parameters_of_servo_are_used_or_explained(servo):
    used = servo.node.wait_for_line("parameters of MoveIt Servo in use")
    for name in ("publish_period", "scale.linear", "incoming_command_timeout", "command_out_topic"):
        assert name in used
    unused = servo.node.wait_for_line("parameters of MoveIt Servo without effect")
    assert "move_group_name: set base and tip, preset, or stream_group" in unused
    assert "joint_limit_margins" in unused
    assert not servo.node.count("unknown parameter")


def test_keys_of_the_keyboard_demo_jog_joints(at_start):
    servo = at_start
    servo.press("j")
    servo.until(lambda: servo.press("1"), lambda: servo.q[0] > 0.15, "joint 1")
    assert np.abs(servo.q[1:] - START[1:]).max() < 2e-3, "only joint 1 moves"
    assert servo.peak_velocity()[0] <= JOINT + 1e-6
    servo.press("r")
    servo.until(lambda: servo.press("6"), lambda: servo.q[5] < START[5] - 0.1, "joint 6")


def test_keys_of_the_keyboard_demo_move_the_tip(at_start):
    servo = at_start
    servo.press("t")
    before = ROBOT.fk(servo.q)
    servo.until(
        lambda: servo.press(";"), lambda: ROBOT.fk(servo.q)[2, 3] > before[2, 3] + 0.05, "up"
    )
    rise = ROBOT.fk(servo.q)[:3, 3] - before[:3, 3]
    assert np.abs(rise[:2]).max() < 0.01
    poses = ROBOT.fk(np.array([message.points[0].positions for message in servo.sent]))
    times = np.array([p.points[0].time_from_start.nanosec for p in servo.sent])
    assert len(times) > 1
    speeds = np.linalg.norm(np.diff(poses[:, :3, 3], axis=0), axis=1) / 0.01
    assert np.median(speeds) < 0.5 * LINEAR * 1.3, "0.5 of scale.linear"
    servo.press("e")  # along the axes of the tip, whose z points down
    low = ROBOT.fk(servo.q)[2, 3]
    servo.until(
        lambda: servo.press(";"), lambda: ROBOT.fk(servo.q)[2, 3] < low - 0.03, "along the tool"
    )


def test_only_the_selected_type_is_accepted(at_start):
    servo = at_start
    servo.press("t")
    servo.until(
        lambda: servo.press("1"),
        lambda: servo.node.count("ignored a target on /servo_node/delta_joint_cmds", "TWIST"),
        "the reason",
    )
    assert np.abs(servo.q - START).max() < 1e-3
    assert servo.switch("POSE")
    T = ROBOT.fk(START)
    T[2, 3] += 0.05
    message = PoseStamped(pose=pose_from_matrix(T))

    def send():
        message.header.stamp, message.header.frame_id = servo.stamp(), "panda_link0"
        servo.poses.publish(message)

    servo.until(send, lambda: np.abs(ROBOT.fk(servo.q) - T).max() < 1e-3, "the pose")
    request = ServoCommandType.Request(command_type=7)
    assert not servo.client.call(ServoCommandType, SWITCH, request).success


def test_joystick_demo_drives_joints_and_tip(at_start):
    servo = at_start
    answer = servo.client.call(Trigger, "servo_node/start_servo", Trigger.Request())
    assert answer.success
    servo.press("j")
    servo.until(
        lambda: servo.joystick({"dx": 1.0}, {"B": 1}),
        lambda: servo.q[0] > 0.1 and servo.q[6] > START[6] + 0.1,
        "joints 1 and 7",
    )
    assert np.abs(servo.q[1:6] - START[1:6]).max() < 2e-3
    servo.press("t")
    before = ROBOT.fk(servo.q)[:3, 3]
    servo.until(
        lambda: servo.joystick({"rx": 0.5, "rt": -1.0}, {}),
        lambda: np.linalg.norm(ROBOT.fk(servo.q)[:3, 3] - before) > 0.04,
        "the tip",
    )
    moved = ROBOT.fk(servo.q)[:3, 3] - before
    assert moved[0] > 0.5 * abs(moved[1]) > 0.0
    assert abs(moved[2]) < 0.01


def test_boxes_of_the_joystick_demo_enter_the_scene(servo):
    box = CollisionObject(id="box", operation=CollisionObject.ADD)
    box.header.frame_id = "panda_link0"
    for size, (x, y, z) in [
        ([0.4, 0.6, 0.03], (0.6, 0.0, 0.4)), ([0.6, 0.4, 0.03], (0.0, 0.5, 0.25)),
    ]:  # fmt: skip
        box.primitives.append(SolidPrimitive(type=SolidPrimitive.BOX, dimensions=size))
        pose = pose_from_matrix(np.eye(4))
        pose.position.x, pose.position.y, pose.position.z = x, y, z
        box.primitive_poses.append(pose)
    scene = PlanningScene(is_diff=True)
    scene.world.collision_objects.append(box)
    request = GetPlanningScene.Request()
    request.components.components = request.components.WORLD_OBJECT_NAMES

    def has_box():
        servo.scenes.publish(scene)
        answer = servo.client.call(GetPlanningScene, "get_planning_scene", request)
        return [each.id for each in answer.scene.world.collision_objects] == ["box"]

    servo.client.spin_until(has_box, what="the boxes")


def test_bad_joint_commands_are_refused_with_the_reason(at_start):
    servo = at_start
    servo.press("j")
    for names, velocities, words in [
        (["elbow"], [0.1], "unknown joint 'elbow'"),
        (JOINTS, [0.1], "7 names and 1 velocities"),
        (JOINTS[:1], [float("nan")], "velocities of joint 'panda_joint1' must be finite"),
        (JOINTS[:1] * 2, [0.1, 0.2], "more than once"),
        ([], [], "0 names and 0 velocities"),
    ]:
        message = JointJog(joint_names=names, velocities=velocities)
        servo.until(
            lambda m=message: servo.joints.publish(m),
            lambda w=words: w in servo.told[-1].message and servo.told[-1].code == -1,
            words,
        )
    both = JointJog(joint_names=JOINTS[:1], velocities=[0.1], displacements=[0.1])
    servo.until(
        lambda: servo.joints.publish(both),
        lambda: "velocities or displacements" in servo.told[-1].message,
        "both",
    )
    assert np.abs(servo.q - START).max() < 1e-3
    step = JointJog(joint_names=JOINTS[:1], displacements=[0.05])
    servo.joints.publish(step)
    servo.client.spin_until(lambda: servo.q[0] > 0.049, what="a displacement")
    servo.client.spin_until(lambda: "at the target" in servo.told[-1].message, what="its end")
    assert servo.q[0] == pytest.approx(0.05, abs=1e-3)


def test_pause_servo_holds_until_it_is_released(at_start):
    servo = at_start
    servo.press("j")
    name = "servo_node/pause_servo"
    assert servo.client.call(SetBool, name, SetBool.Request(data=True)).success
    servo.until(lambda: servo.press("1"), lambda: "paus" in servo.told[-1].message, "the pause")
    q = servo.q
    for _ in range(10):
        servo.press("1")
        servo.client.spin_for(0.02)
    np.testing.assert_allclose(servo.q, q, atol=0.01)  # a jog moves 0.1 rad in this time
    assert servo.client.call(SetBool, name, SetBool.Request(data=False)).success
    servo.until(lambda: servo.press("1"), lambda: servo.q[0] > q[0] + 0.05, "motion")
