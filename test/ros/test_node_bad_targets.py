"""Targets that are not valid, in every field, to the running node: it holds, says why, goes on."""

import math
import time

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")
moveit = pytest.importorskip("moveit_msgs.msg", reason="needs moveit_msgs")
if not hasattr(moveit, "ServoStatus"):
    pytest.skip("this moveit_msgs has no ServoStatus", allow_module_level=True)

from hypothesis import given, settings
from hypothesis import strategies as st
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched, headed, pose, shifted, trajectory, twist

pytestmark = [pytest.mark.ros, pytest.mark.slow]

YEAR = 31_556_952  # [s]
NOT_FINITE = [math.nan, math.inf, -math.inf]
ODD = [5e-324, -5e-324, -0.0, 1e-300, 1e9, 1e15, 1e155, 1.7e308, -1.7e308, *NOT_FINITE]
few = settings(max_examples=12, deadline=None, derandomize=True, database=None)


@pytest.fixture(scope="module")
def arm():
    with Watched("bad", feedback_mode="none", trajectory_period=0.05) as arm:
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


@pytest.fixture(autouse=True)
def _good_before_and_after(arm):
    arm.assert_alive()
    yield
    arm.assert_alive()


def refused(arm, message, *words):
    """A message stops the arm on its way, with the reason in the status and one line of the log."""
    arm.send_alone(pose(shifted(0.0, 0.3, 0.0)))
    arm.says("following")
    arm.client.spin_for(0.1)
    arm.send(message)
    arm.says("not valid", *words)
    arm.node.wait_for_line("WARN", "refused")
    arm.stands()
    arm.assert_calm()


def unmoved(arm, message, *words):
    """A message changes nothing, and the status says why."""
    arm.goes(WAM.fk(HOME), 1e-6)
    before = arm.q
    arm.client.spin_for(0.6)
    del arm.statuses[:]
    arm.send(message() if callable(message) else message)
    arm.says(*words)
    arm.client.spin_for(0.2)
    np.testing.assert_allclose(arm.q, before, atol=1e-5)


FIELDS = [f"position.{axis}" for axis in "xyz"] + [f"orientation.{axis}" for axis in "xyzw"]


def with_pose_field(T, field, value):
    message = pose(T)
    part, axis = field.split(".")
    setattr(getattr(message.pose, part), axis, value)
    return message


@pytest.mark.parametrize("field", ["position.z", "orientation.x"])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_pose_that_is_not_finite(arm, field, value):
    refused(
        arm,
        with_pose_field(shifted(), field, value),
        field.split(".")[0].replace("orientation", "quaternion"),
    )


def test_zero_quaternion(arm):
    message = pose(shifted())
    message.pose.orientation.x = message.pose.orientation.y = 0.0
    message.pose.orientation.z = message.pose.orientation.w = 0.0
    refused(arm, message, "no direction")


@given(st.sampled_from(FIELDS), st.sampled_from(ODD) | st.floats())
@few
def test_any_number_in_a_pose(arm, field, value):
    del arm.statuses[:]
    arm.send(with_pose_field(shifted(), field, value))
    arm.client.spin_for(0.05)
    arm.assert_calm()
    if not math.isfinite(value):
        arm.says("not valid")


@given(st.integers(0, 5), st.sampled_from(ODD) | st.floats())
@few
def test_any_number_in_a_twist(arm, field, value):
    V = [0.0] * 6
    V[field] = value
    arm.send(twist(V[:3], V[3:]))
    arm.client.spin_for(0.05)
    arm.assert_calm()
    if not math.isfinite(value):
        arm.says("not valid")


@given(st.integers(0, 4), st.sampled_from(FIELDS), st.sampled_from(ODD) | st.floats())
@few
def test_any_number_in_a_trajectory(arm, k, field, value):
    message = trajectory([shifted(0.0, 0.02 * i, 0.0) for i in range(5)])
    message.poses[k] = with_pose_field(shifted(), field, value).pose
    arm.send(message)
    arm.client.spin_for(0.05)
    arm.assert_calm()
    if not math.isfinite(value):
        arm.says("not valid")


@pytest.mark.parametrize("value", NOT_FINITE)
def test_twist_that_is_not_finite(arm, value):
    refused(arm, twist((0.0, value, 0.0)), "finite")
    refused(arm, twist(angular=(0.0, 0.0, value)), "finite")


def test_twist_of_any_size_leads_the_arm_no_farther_than_its_limits(arm):
    arm.stream(lambda _: twist((1e6, 0.0, 0.0), (0.0, 1e6, 0.0)), 0.5)
    arm.says("ceased")
    arm.assert_calm()


@pytest.mark.parametrize(
    "make",
    [
        lambda frame: pose(shifted(), frame),
        lambda frame: twist((0.1, 0.0, 0.0), frame=frame),
        lambda frame: trajectory([shifted()], frame),
    ],
    ids=["pose", "twist", "trajectory"],
)
def test_unknown_frame(arm, make):
    refused(arm, make("nowhere"), "'nowhere'", "wam_base")


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300))
@few
def test_any_frame(arm, frame):
    arm.send(pose(shifted(), frame))
    arm.send(twist(frame=frame))
    arm.client.spin_for(0.03)
    arm.assert_calm()


STAMPS = {
    "1970": ((1, 0), "old"),
    "before 1970": ((-(2**31), 0), "old"),
    "2100": ((2**31 - 1, 999_999_999), "future"),
    "too many nanoseconds": ((2**31 - 1, 2**32 - 1), "future"),
}
MAKERS = {
    "pose": lambda stamp: pose(shifted(0.0, 0.2, 0.0), stamp=stamp),
    "twist": lambda stamp: twist((0.0, 0.3, 0.0), stamp=stamp),
    "trajectory": lambda stamp: trajectory([shifted(), shifted(0.0, 0.2, 0.0)], stamp=stamp),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
@pytest.mark.parametrize("when", STAMPS)
def test_stamp_that_is_not_now(arm, when, make):
    stamp, words = STAMPS[when]
    unmoved(arm, make(stamp), "passed over", words)
    arm.node.wait_for_line("WARN", "passed over")


@pytest.mark.parametrize(
    ("ahead", "taken"), [(-10.0, False), (-0.1, True), (0.05, True), (10.0, False)]
)
def test_stamp_a_little_off(arm, ahead, taken):
    T = shifted(0.0, 0.05, 0.0)
    if taken:
        arm.client.spin_for(0.3)
        arm.send(pose(T, stamp=arm.stamp(ahead)))
        arm.arrives(T)
    else:
        unmoved(arm, lambda: pose(T, stamp=arm.stamp(ahead)), "passed over")


@given(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1))
@few
def test_any_stamp(arm, sec, nanosec):
    for message in (pose(shifted()), twist(), trajectory([shifted()])):
        arm.send(headed(message, "", (sec, nanosec)))
    arm.client.spin_for(0.03)
    arm.assert_calm()


def test_trajectory_without_poses(arm):
    refused(arm, trajectory([]), "no poses")


def test_trajectory_of_one_pose(arm):
    T = shifted(0.0, 0.05, 0.0)
    arm.send(trajectory([T]))
    arm.arrives(T)


def test_trajectory_of_10000_poses_and_of_as_many_with_one_that_is_bad(arm):
    goal = shifted(0.0, 0.1, 0.0)
    message = trajectory([shifted(0.0, 0.1 * s, 0.0) for s in np.linspace(0.0, 1.0, 10_000)])
    arm.send(message)
    arm.says("at the target")
    arm.client.spin_for(1.0)
    assert arm.error(goal) > 0.05, "500 s long"
    message.poses[9_999].orientation.w = math.nan
    arm.send(message)
    arm.says("not valid")
    arm.assert_calm()


def test_flood_at_5_khz_of_good_and_bad_and_no_more_lines_of_the_log(arm):
    good, bad = pose(shifted(0.0, 0.05, 0.0)), pose(shifted())
    bad.pose.position.x = math.nan
    lines = len(arm.node.lines)
    begin = time.monotonic()
    for k in range(5000):
        arm.send(bad if k % 2 else good)
        arm.client.executor.spin_once(timeout_sec=0.0)
        while time.monotonic() < begin + k / 5000.0:
            pass
    elapsed = time.monotonic() - begin
    arm.assert_calm()
    assert len(arm.node.lines) - lines <= 8 * (1 + elapsed / 2.0)


def test_two_who_send_poses_and_two_who_send_poses_and_twists(arm):
    ends = [shifted(0.0, 0.1, 0.0), shifted(0.0, -0.1, 0.0)]
    arm.stream(lambda t: pose(ends[round(t / 0.02) % 2]), 0.6)
    arm.assert_calm()
    arm.says("ceased")
    arm.stream(lambda t: twist((0.0, -0.3, 0.0)) if round(t / 0.02) % 2 else pose(ends[0]), 0.6)
    arm.assert_calm()
    arm.says("ceased")
