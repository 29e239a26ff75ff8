# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Servo cycles: for display, and for a controller whose driver stops publishing."""

import math
import re

import numpy as np
import pytest
from geometry_msgs.msg import Point, Pose, PoseArray, PoseStamped, Twist, TwistStamped, Vector3
from robots import URDF
from ros_world import DT, World, controlled, near
from sensor_msgs.msg import JointState
from std_msgs.msg import Header

from dls_ik import RobotModel
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, pose_from_matrix
from dls_ik.ros.params import Parameters
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.ros.servo.freshness import READING_TIMEOUT
from dls_ik.ros.servo.target_buffer import Arrival
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.supervision import AT_REST


@pytest.fixture
def world(monkeypatch):
    return World(monkeypatch)


def other_arm():
    return Arm(RobotModel.from_urdf(URDF / "puma560.urdf"), Parameters())


def test_target_without_a_robot_is_logged_and_ignored(world):
    world.stream = ServoCycle(world.states, Frames(), Throttle(world.node), True)
    outcome = world.run(target=world.target([0.5, 0.5]))
    assert (outcome.output, outcome.state) == (None, ServoState.NO_ROBOT)
    assert world.node.lines == ["a target arrived, but there is no robot yet"]


def test_shows_the_initial_positions_before_the_first_target(monkeypatch):
    world = World(monkeypatch, initial_positions=[0.3, 0.4])
    outcome = world.run(10)
    assert outcome.output.q == near([0.3, 0.4])
    assert not outcome.output.velocity.any()
    assert outcome.message == "no target yet"


def test_a_normalised_quaternion_is_logged_once_and_shown_in_the_status(world):
    target = world.target([0.5, 0.5])
    assert "quaternion" not in world.run(60, target=target).message
    target.pose.orientation.z += 1.0
    words = world.run(20, target=target).message
    assert "quaternion" in words
    assert "an omitted w means w = 1" in words
    assert sum("quaternion" in line for line in world.node.lines) == 1
    assert "quaternion" not in world.run(60, target=world.target([0.5, 0.5])).message


def test_sends_no_command_to_a_controller_before_the_first_target(monkeypatch):
    world = controlled(monkeypatch, feedback_mode="none")
    assert not world.run(10).is_command
    assert world.run(target=world.target([0.5, 0.5])).is_command


def test_sends_no_command_to_a_controller_before_joint_states(monkeypatch):
    world = controlled(monkeypatch)
    outcome = world.run(1000, target=world.target([0.5, 0.5]))
    assert not outcome.is_command
    assert outcome.message.startswith("waiting for joint states")
    world.add_driver([0.4, 0.5])
    first = world.run(driver=True)
    assert first.is_command
    assert first.output.q == near([0.42, 0.5], 0.05)


def test_follows_a_target_and_holds_there(world):
    world.run(target=world.target([0.5, 0.7]))
    outcome = world.run(200)
    assert outcome.output.q == near([0.5, 0.7])
    assert outcome.state is ServoState.REACHED
    assert not outcome.output.velocity.any()


def test_a_stamped_target_is_ignored_without_a_clock_or_if_too_old(world):
    target = world.target([0.5, 0.7])
    target.header.stamp.sec = 100
    for clock, words in ((0, "on /clock yet"), (10**9 * 200, "100 s"), (10**9 * 100, "")):
        world.now += DT
        outcome = world.cycle(Arrival(target, world.now, 1), clock)
        assert words in outcome.message
        assert (outcome.state is ServoState.FOLLOWING) == (not words)


@pytest.mark.parametrize(
    ("sent", "state"), [(0.2, ServoState.WAITING), (0.8, ServoState.FOLLOWING)]
)
def test_a_reset_drops_a_target_that_arrived_before_it_in_the_same_cycle(world, sent, state):
    world.run()
    begin = world.now
    world.now = begin + 0.5 * DT
    world.stream.submit(Controller.reset)
    world.now = begin + DT
    arrival = Arrival(world.target([0.5, 0.7]), begin + sent * DT, 1)
    assert world.cycle(arrival, 0).state is state


def test_the_velocity_is_the_rate_of_the_command(world):
    before = world.run().output.q
    motion = world.run(target=world.target([1.5, 1.0])).output
    assert motion.velocity == near((motion.q - before) / DT)
    assert 0.0 < np.abs(motion.velocity).max() <= 2.0 + 1e-9


def bad_targets():
    infinite, zero = Pose(), Pose()
    infinite.orientation.x = math.inf
    zero.orientation.w = 0.0
    twists = {"linear": Vector3(y=math.nan)}, {"angular": Vector3(z=-math.inf)}
    linear, angular = (TwistStamped(twist=Twist(**fields)) for fields in twists)
    lost = [kind(header=Header(frame_id="nowhere")) for kind in (PoseStamped, TwistStamped)]
    array = PoseArray(header=Header(frame_id="nowhere"), poses=[Pose()])
    return [
        ("position.*nan", PoseStamped(pose=Pose(position=Point(x=math.nan)))),
        ("quaternion", PoseStamped(pose=infinite)),
        ("must not be zero", PoseStamped(pose=zero)),
        ("finite", linear),
        ("finite", angular),
        *(("unknown frame 'nowhere'.*link1", message) for message in (*lost, array)),
        ("no poses", PoseArray()),
    ]


@pytest.mark.parametrize(("words", "message"), bad_targets())
def test_an_invalid_target_holds_the_arm_and_is_logged_at_intervals(world, words, message):
    world.run(5, target=world.target([1.5, 1.5]))
    outcome = world.run(300, target=message)
    assert outcome.state is ServoState.REFUSED
    assert not outcome.output.velocity.any()
    assert outcome.output.q == near([0.1, 0.1], 0.1)
    assert len(world.node.lines) == 2
    assert all("the arm holds" in line for line in world.node.lines)
    assert re.search(words, world.node.lines[0])
    world.run(target=world.target([1.5, 1.5]))
    assert world.run(200).output.q == near([1.5, 1.5])


@pytest.mark.parametrize("frame", ["base", "/base", "link2"])
def test_follows_a_target_in_a_frame_of_the_robot(world, frame):
    world.run(target=world.target([0.5, 0.7]))
    world.run(200)
    T_root_frame = world.robot.link_pose(frame.strip("/"), [0.5, 0.7])
    goal = np.linalg.inv(T_root_frame) @ world.robot.fk([0.8, 0.3])
    stamped = PoseStamped(pose=pose_from_matrix(goal))
    stamped.header.frame_id = frame
    world.run(target=stamped)
    assert world.run(200).output.q == near([0.8, 0.3])


@pytest.mark.parametrize("frame", ["", "base", "link2"])
def test_a_twist_is_along_the_axes_of_its_frame(world, frame):
    world.run(target=world.target([0.5, 0.7]))
    before = world.run(200).output.q
    twist = TwistStamped(header=Header(frame_id=frame), twist=Twist(linear=Vector3(x=0.1)))
    after = world.run(50, target=twist).output.q
    axis = world.robot.link_pose(frame or "base", before)[:3, 0]
    moved = (world.robot.fk(after) - world.robot.fk(before))[:3, 3]
    assert moved @ axis > 0.95 * np.linalg.norm(moved)  # two joints cannot move straight


def with_another_method(arm):
    return arm.changed(arm.parameters.changed({"stream_method": "jd"}))


def described_again(arm):
    text = (URDF / "planar_2r.urdf").read_text() + "<!-- again -->"
    return Arm(RobotModel.from_urdf(text), arm.parameters)


@pytest.mark.parametrize("change", [with_another_method, described_again])
def test_a_new_arm_with_the_same_joints_continues_from_the_last_command(world, change):
    world.run(target=world.target([1.5, 1.5]))
    before = world.run(20).output.q
    world.arm = change(world.arm)
    world.stream.use(world.arm)
    motion = world.run().output
    assert np.abs(motion.velocity).max() <= 2.0 + 1e-9
    assert motion.q == near(before, 2.0 * DT + 1e-9)
    assert world.run(200).output.q == near([1.5, 1.5])


def test_the_current_state_without_a_driver_is_the_command(world):
    world.run(target=world.target([1.5, 1.0]))
    q = world.run(20).output.q
    expected = dict(zip(world.robot.joint_names, q.tolist(), strict=True))
    left = world.arm
    changed = left.changed(left.parameters.changed({"stream_method": "jd"}))
    again = Arm(RobotModel.from_urdf(URDF / "planar_2r.urdf"), Parameters())
    other = other_arm()
    for arm in (changed, again, other):
        world.stream.use(arm)
        for asked in (left, changed, again):
            assert world.stream.current(asked) == expected
        start = zip(other.robot.joint_names, other.start, strict=True)
        assert world.stream.current(other) == dict(start)


def test_a_moving_arm_stops_before_another_robot_replaces_it(monkeypatch):
    world = World(monkeypatch, acceleration=[4.0])
    world.run(30, target=world.target([1.5, 1.5]))
    velocity = world.run().output.velocity
    assert velocity.max() > 0.5
    world.stream.use(other_arm())
    while (outcome := world.run(target=world.target([1.5, 1.5]))).arm is world.arm:
        assert (np.abs(outcome.output.velocity - velocity) <= 4.0 * DT + 1e-9).all()
        velocity = outcome.output.velocity
    assert not velocity.any()
    assert outcome.arm.robot.joint_names == other_arm().robot.joint_names


def test_a_target_during_the_stop_for_another_robot_is_ignored_with_the_reason(
    monkeypatch,
):
    world = World(monkeypatch, acceleration=[4.0])
    world.run(30, target=world.target([1.5, 1.5]))
    world.stream.use(other_arm())
    assert "the arm stops first" in world.run(target=world.target([0.1, 0.1])).message
    assert any("target ignored" in line for line in world.node.lines)


def test_a_held_arm_stops_and_later_follows_the_newest_pending_target(monkeypatch):
    world, held = World(monkeypatch, acceleration=[4.0]), "changes were lost"
    world.stream.set_hold_check(lambda arm, now, measured: held)
    outcome = world.run(30, target=world.target([1.5, 1.5]))
    assert outcome.message == f"no target yet; targets wait: {held}"
    held = ""
    velocity = world.run(30).output.velocity
    assert np.abs(velocity).max() > 0.5
    held = "changes were lost"
    for _ in range(100):
        after = world.run().output.velocity
        assert (np.abs(after - velocity) <= 4.0 * DT + 1e-9).all()
        velocity = after
    assert not velocity.any()
    world.run(10, target=world.target([0.2, 0.9]))
    held = ""
    assert world.run(400).output.q == near([0.2, 0.9], 1e-4)


@pytest.mark.parametrize("cycles", [5, 500], ids=["moving", "at rest"])
def test_a_pause_persists_when_another_robot_replaces_the_arm(monkeypatch, cycles):
    world = World(monkeypatch, acceleration=[4.0])
    world.run(cycles, target=world.target([1.5, 1.5]))
    world.stream.submit(Controller.pause)
    world.stream.use(other_arm())
    assert world.run(300).arm is not world.arm
    assert world.run(target=world.target([0.1, 0.1])).state is ServoState.PAUSED
    world.stream.submit(Controller.resume)
    assert world.run().state is ServoState.WAITING


START, ELSEWHERE = [0.8, 0.9], [-0.5, 1.4]


def driven(monkeypatch, **parameters):
    """Return a world whose controlled arm is at its target."""
    world = controlled(monkeypatch, **parameters)
    world.add_driver(START)
    world.run(10, driver=True)
    world.run(target=world.target([0.9, 1.0]), driver=True)
    assert world.run(100, driver=True).is_command
    return world


def test_after_a_driver_timed_out_the_arm_starts_where_it_is_measured(monkeypatch):
    world = driven(monkeypatch)
    assert world.run(int(0.9 * READING_TIMEOUT / DT)).is_command, "no timeout yet"
    outcome = world.run(int(0.2 * READING_TIMEOUT / DT))
    assert not outcome.is_command
    assert outcome.message.startswith("waiting for joint states")
    assert any("joint states on /joint_states timed out" in line for line in world.node.lines)
    world.driver.position = ELSEWHERE
    assert not world.run(200, driver=True).is_command, "the earlier target is dropped"
    first = world.run(target=world.target([-0.4, 1.3]), driver=True)
    assert first.is_command
    assert first.output.q == near(ELSEWHERE, 2.0 * DT + 1e-9)


def test_a_driver_that_times_out_in_motion_stops_the_arm_within_limits(monkeypatch):
    world = driven(monkeypatch, acceleration=[2.0])
    sent = []
    for k in range(300):
        world.driver.position = [0.9, 1.0] if not sent else sent[-1].output.q.tolist()
        target = world.target([0.9 + 0.01 * k, 1.0]) if k < 100 else None
        outcome = world.run(target=target, driver=k < 40)
        if outcome.is_command:
            sent.append(outcome)
    last = sent[-1].output
    assert not last.velocity.any()
    assert any(each.output.velocity.any() for each in sent[-10:])
    steps = np.diff([each.output.velocity for each in sent], axis=0)
    assert np.abs(steps).max() <= 2.0 * DT + 1e-9


def test_no_command_is_sent_in_a_fault_at_rest(monkeypatch):
    world = driven(monkeypatch, feedback_mode="required", measurement_timeout=0.2)
    outcome = world.run(30)
    assert outcome.state is ServoState.FAULT
    assert not outcome.is_command
    world.driver.position = ELSEWHERE
    assert not world.run(50, driver=True).is_command


def test_stream_that_ends_after_a_pause_sends_only_the_measured_position(monkeypatch):
    world = driven(monkeypatch, feedback_mode="required", acceleration=[4.0], target_timeout=0.1)
    world.run(target=world.target([1.2, 0.8]), driver=True)
    world.run(5, driver=True)
    world.stream.submit(Controller.pause)
    while world.run(driver=True).is_command:
        pass
    world.driver.position = ELSEWHERE
    world.stream.submit(Controller.resume)
    world.run(2, driver=True)
    outcomes = [world.run(target=TwistStamped(), driver=True)]
    outcomes += [world.run(driver=True) for _ in range(100)]
    assert ServoState.WAITING in {each.state for each in outcomes}
    assert outcomes[-1].state is ServoState.TIMED_OUT
    assert outcomes[-1].is_command
    for each in outcomes:
        assert not each.is_command or each.output.q == near(ELSEWHERE)


def test_no_command_is_sent_after_a_pause_until_the_arm_is_measured(monkeypatch):
    """The last command would take an arm back that others have moved during the pause."""
    world = driven(monkeypatch, feedback_mode="required", acceleration=[4.0])
    world.run(target=world.target([1.2, 0.8]), driver=True)
    world.run(5, driver=True)
    world.stream.submit(Controller.pause)
    while world.run(driver=True).is_command:
        pass
    world.driver.position = ELSEWHERE
    world.stream.submit(Controller.resume)
    world.run(10, driver=True)
    target, waits = world.target([0.5, 0.6]), 0
    while not (outcome := world.run(target=target, driver=True)).is_command:
        assert outcome.state is ServoState.WAITING
        waits += 1
    assert 0 < waits * DT <= AT_REST
    assert outcome.output.q == near(ELSEWHERE, 2.0 * DT)


def test_one_outlier_in_three_measurements_is_no_fault(monkeypatch):
    world = driven(monkeypatch, feedback_mode="required")
    for k in range(30):
        world.driver.position = [3.0, -3.0] if k % 3 == 0 else [0.9, 1.0]
        assert world.run(driver=True).state is ServoState.REACHED
    world.driver.position = [3.0, -3.0]
    assert world.run(2, driver=True).state is ServoState.FAULT


def test_old_readings_do_not_enter_the_median_after_a_gap(monkeypatch):
    world = driven(monkeypatch)
    world.now += 2 * READING_TIMEOUT
    names = world.robot.joint_names
    world.states.store(JointState(name=list(names), position=ELSEWHERE))
    assert world.states.latest(names, world.now).q == near(ELSEWHERE)
