# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik teleop`` from the bytes and messages of devices to the commands of a running node."""

import os
import pty
import signal
import struct
import subprocess
import sys
import threading

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from prefork import ForkingPopen
from programs import COMMAND, environment
from ros_client import NodeProcess
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched
from sensor_msgs.msg import Joy
from std_msgs.msg import Float64MultiArray

from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.ros.frames import pose_from_matrix

pytestmark = [pytest.mark.ros, pytest.mark.slow]
NAMESPACE = "teleoperated"
PERIOD = 0.02  # [s] period of messages
EMULATED = """
    window.hand = {p: [0, 0, 0], q: [0, 0, 0, 1], squeeze: false};
    const buttons = () => [{pressed: false}, {pressed: window.hand.squeeze}];
    const source = {gripSpace: {}, handedness: "right", targetRayMode: "tracked-pointer",
        gamepad: {get buttons() { return buttons(); }}};
    const frame = {getPose: () => {
        const [x, y, z] = window.hand.p, [a, b, c, d] = window.hand.q;
        return {transform: {position: {x, y, z}, orientation: {x: a, y: b, z: c, w: d}}};
    }};
    const session = {inputSources: [source], updateRenderState: async () => {},
        requestReferenceSpace: async () => ({}), addEventListener: () => {},
        requestAnimationFrame: (draw) => setTimeout(() => draw(0, frame), 15)};
    window.XRWebGLLayer = class {};
    Object.defineProperty(navigator, "xr", {value: {
        isSessionSupported: async () => true, requestSession: async () => session}});
"""  # a headset with one controller
PATIENT = "timeout: 10.0"  # [s] this process may pause on a busy machine


class Operator(NodeProcess):
    """Process of ``dls-ik teleop``."""

    def __init__(self, *words, stdin=subprocess.DEVNULL):
        self.process = ForkingPopen(
            [sys.executable, *COMMAND[1:], "teleop", *words, "--namespace", NAMESPACE,
             "--patience", "60"],
            env=environment(), stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True,
        )  # fmt: skip
        self.lines = []
        self._news = threading.Condition()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def is_idle(self):
        """Return whether the device is ready and moves nothing."""
        return bool(self.lines) and self.lines[-1] == "idle (base, speed 100%)"


@pytest.fixture(scope="module")
def arm():
    with Watched(NAMESPACE, feedback_mode="none", stream_avoid_collisions="none") as arm:
        yield arm
        arm.assert_alive()


@pytest.fixture(autouse=True)
def _only_commands_of_the_test(arm):
    del arm.heard[:]


def tip(arm):
    return WAM.fk(arm.q)[:3, 3] if arm.heard else WAM.fk(HOME)[:3, 3]


def repeat(arm, send, condition, what):
    """Send the messages of a device until a condition holds."""

    def is_done():
        send()
        arm.client.spin_for(PERIOD)
        return condition()

    arm.client.spin_until(is_done, what=what)


def test_keys_of_a_terminal_move_the_arm(arm):
    leader, follower = pty.openpty()
    with Operator("keyboard", stdin=follower) as operator:
        operator.wait_for_line("keys: w/s x")
        grips = arm.client.listen(Float64MultiArray, "gripper_controller/commands")
        begin = tip(arm)
        repeat(arm, lambda: os.write(leader, b"s"), lambda: tip(arm)[0] < begin[0] - 0.03, "s")
        arm.stands()  # nothing more is typed
        repeat(arm, lambda: os.write(leader, b"g"), lambda: grips, "the gripper")
        assert list(grips[0].data) == [0.04]
        assert operator.end(signal.SIGINT) == 0
    os.close(leader)
    os.close(follower)
    arm.assert_calm()


def test_an_unplugged_gamepad_stops_the_arm(arm, tmp_path):
    path = tmp_path / "js0"
    os.mkfifo(path)
    pad = os.open(path, os.O_RDWR)
    with Operator("gamepad", "--source", str(path)) as operator:
        operator.wait_for_line("idle")
        os.write(pad, struct.pack("IhBB", 0, 1, 1, 4))
        operator.wait_for_line("moving")
        begin = tip(arm)
        os.write(pad, struct.pack("IhBB", 0, 32767, 2, 1))  # backward
        arm.client.spin_until(lambda: tip(arm)[0] < begin[0] - 0.03, what="motion")
        os.close(pad)
        operator.wait_for_line("unplugged")
        arm.stands()
    arm.assert_calm()


def test_a_spacemouse_moves_the_arm_until_its_cap_springs_back(arm):
    reader, writer = os.pipe2(os.O_DIRECT)  # keeps reports apart, as hidraw does
    path = f"/proc/{os.getpid()}/fd/{reader}"
    with Operator("spacemouse", "--source", path) as operator:
        os.write(writer, struct.pack("<B6h", 1, 0, 0, 0, 0, 0, 0))
        arm.client.spin_until(operator.is_idle, what="the device")
        begin = tip(arm)
        os.write(writer, struct.pack("<B6h", 1, 0, 350, 0, 0, 0, 0))  # it is pulled to the operator
        arm.client.spin_until(lambda: tip(arm)[0] < begin[0] - 0.03, what="motion")
        os.write(writer, struct.pack("<B6h", 1, 0, 0, 0, 0, 0, 0))
        arm.stands()
        assert operator.lines[-1] == "idle (base, speed 100%)"
    os.close(reader)
    os.close(writer)
    arm.assert_calm()


def joy(buttons=(), axes=()):
    message = Joy(axes=[0.0] * 8, buttons=[0] * 8)
    for k in buttons:
        message.buttons[k] = 1
    for k, value in dict(axes).items():
        message.axes[k] = value
    return message


def test_joy_messages_move_the_arm_and_a_second_device_stops_it(arm, tmp_path):
    config = tmp_path / "joy.yaml"
    config.write_text(PATIENT)
    joys = arm.client.node.create_publisher(Joy, "joy", 1)
    with Operator("joy", "--config", str(config)) as operator:
        repeat(arm, lambda: joys.publish(joy()), operator.is_idle, "joy")
        begin = tip(arm)
        for buttons, axes in (((4,), {}), ((4,), {2: 0.0, 4: -1.0})):
            repeat(
                arm,
                lambda b=buttons, a=axes: joys.publish(joy(b, a)),
                lambda a=axes: tip(arm)[2] < begin[2] - 0.03 if a else operator.count("moving"),
                "motion",
            )
        with Operator("joy") as rival:
            up, height = joy((4,), {4: -1.0}), tip(arm)[2]
            repeat(arm, lambda: joys.publish(up), lambda: rival.count("dls-ik: another"), "refusal")
            assert rival.wait_for_end() == 2
        repeat(arm, lambda: joys.publish(up), lambda: tip(arm)[2] < height - 0.02, "more motion")
        assert not operator.count("another dls_ik_teleop"), "the first one was not stopped"
        second = arm.client.node.create_publisher(Joy, "joy", 1)
        down = joy((4,), {4: -1.0})
        repeat(arm, lambda: joys.publish(down), lambda: operator.count("two devices"), "a rival")
        arm.stands()
        with Operator("keyboard", stdin=subprocess.DEVNULL) as keyboard:
            assert keyboard.wait_for_end() == 2
            assert keyboard.count("the keyboard needs a terminal")
    for publisher in (joys, second):
        arm.client.node.destroy_publisher(publisher)
    arm.assert_calm()


def test_a_tracker_moves_the_arm_and_its_clutch_moves_no_joint(arm, tmp_path):
    poses = arm.client.node.create_publisher(PoseStamped, "tracker_pose", 1)
    joys = arm.client.node.create_publisher(Joy, "tracker_buttons", 1)

    def publish(T, held):
        message = PoseStamped(pose=pose_from_matrix(T))
        message.header.stamp.sec = 7  # a clock of its own
        if held and publish.sign < 0.0:  # the same orientation
            o = message.pose.orientation
            o.x, o.y, o.z, o.w = -o.x, -o.y, -o.z, -o.w
        publish.sign = -publish.sign
        poses.publish(message)
        joys.publish(joy((0,) if held else ()))

    publish.sign = 1.0
    here, way = np.eye(4), 0.0

    def moved():
        nonlocal way
        way += 0.002
        publish(transform(rotation_from_rpy(0.0, 0.0, way), np.array([0.0, way, 0.0])), True)

    config = tmp_path / "tracker.yaml"
    config.write_text(f"buttons_topic: tracker_buttons\n{PATIENT}")
    with Operator("tracker", "--config", str(config)) as operator:
        repeat(arm, lambda: publish(here, False), operator.is_idle, "poses")
        begin = tip(arm)
        repeat(arm, moved, lambda: tip(arm)[1] > begin[1] + 0.04, "motion")
        elsewhere = transform(rotation_from_rpy(1.0, 0.2, 0.0), np.array([0.5, -0.3, 0.1]))
        repeat(
            arm,
            lambda: publish(elsewhere, False),
            lambda: not any(arm.commands[-1].velocity),
            "the arm at rest",
        )
        rest, count = arm.q, operator.count("moving")
        del arm.heard[:]
        repeat(
            arm,
            lambda: publish(elsewhere, True),
            lambda: operator.count("moving") > count and len(arm.commands) > 100,
            "the clutch",
        )
        assert np.abs(np.array([m.position for m in arm.commands]) - rest).max() < 1e-6
        moved_on = elsewhere.copy()

        def move_on():
            moved_on[2, 3] -= 0.002
            publish(moved_on, True)

        height = tip(arm)[2]
        repeat(arm, move_on, lambda: tip(arm)[2] < height - 0.03, "motion after the clutch")
    for publisher in (poses, joys):
        arm.client.node.destroy_publisher(publisher)
    arm.stands()
    arm.assert_calm()


def test_a_headset_moves_the_arm_by_the_page(arm, tmp_path):
    pytest.importorskip("viser", reason="needs viser")
    from viewer.browser import chromium

    config = tmp_path / "page.yaml"
    config.write_text(f'source: "0"\n{PATIENT}')
    with chromium() as browser, Operator("page", "--config", str(config)) as operator:
        line = operator.wait_for_line("device: http://localhost:")
        page = browser.new_page()
        page.add_init_script(EMULATED)
        page.goto(line.partition("device: ")[2].partition(";")[0])
        page.get_by_role("button", name="Start").click()
        arm.client.spin_until(operator.is_idle, what="poses")
        second = browser.new_page()
        second.goto(page.url)
        second.get_by_text("another device is connected").wait_for()
        second.close()
        page.evaluate("window.hand.squeeze = true")
        operator.wait_for_line("moving")
        begin = tip(arm)
        for k in range(25):
            page.evaluate(f"window.hand.p = [0, {-0.002 * k}, 0]")  # down
            arm.client.spin_for(PERIOD)
        arm.client.spin_until(lambda: tip(arm)[2] < begin[2] - 0.03, what="motion")
        page.close()
        operator.wait_for_line("waiting for a device", "http://localhost:")
        arm.stands()
        assert np.abs(tip(arm)[:2] - begin[:2]).max() < 0.01
    arm.assert_calm()
