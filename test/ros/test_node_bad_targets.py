# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets that are not valid, in every field, to the running node: it holds, says why, goes on."""

import math
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ros_streamer import HOME
from ros_wam import WAM
from ros_watched import Watched, headed, pose, shifted, trajectory, twist

pytestmark = [pytest.mark.ros, pytest.mark.slow]

NAN, INF = math.nan, math.inf
ODD = [5e-324, -5e-324, -0.0, 1e-300, 1e9, 1e15, 1e155, 1.7e308, -1.7e308, NAN, INF, -INF]
FIELDS = [f"position.{axis}" for axis in "xyz"] + [f"orientation.{axis}" for axis in "xyzw"]
numbers = st.sampled_from(ODD) | st.floats()


@pytest.fixture(scope="module")
def arm():
    with Watched("bad", feedback_mode="none", trajectory_period=0.05) as arm:
        yield arm
        arm.assert_alive()
        assert arm.node.end() == 0


@pytest.fixture(autouse=True)
def _only_commands_of_the_test(arm):
    del arm.heard[:]


def with_pose_field(T, field, value):
    message = pose(T)
    part, axis = field.split(".")
    setattr(getattr(message.pose, part), axis, value)
    return message


def without_direction():
    message = pose(shifted())
    o = message.pose.orientation
    o.x = o.y = o.z = o.w = 0.0
    return message


REFUSED = {
    "position": (with_pose_field(shifted(), "position.z", NAN), "position"),
    "orientation": (with_pose_field(shifted(), "orientation.x", INF), "quaternion"),
    "no direction": (without_direction(), "must not be zero"),
    "linear": (twist((0.0, NAN, 0.0)), "finite"),
    "angular": (twist(angular=(0.0, 0.0, -INF)), "finite"),
    "frame of a pose": (pose(shifted(), "nowhere"), "'nowhere'", "wam_base"),
    "frame of a twist": (twist((0.1, 0.0, 0.0), frame="nowhere"), "'nowhere'", "wam_base"),
    "frame of a trajectory": (trajectory([shifted()], "nowhere"), "'nowhere'", "wam_base"),
    "no poses": (trajectory([]), "no poses"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_message_that_is_not_valid_stops_the_arm_on_its_way(arm, name):
    message, *words = REFUSED[name]
    arm.goes(WAM.fk(HOME))
    arm.send_alone(pose(shifted(0.0, 0.3, 0.0)))
    arm.moves()
    arm.send(message)
    arm.says("invalid target", *words)
    arm.node.wait_for_line("WARN", "refused")
    arm.stands()
    assert arm.error(shifted(0.0, 0.3, 0.0)) > 0.05
    arm.assert_calm()


def odd_pose(field, value):
    return with_pose_field(shifted(), field, value)


def odd_twist(field, value):
    V = [0.0] * 6
    V[FIELDS.index(field) % 6] = value
    return twist(V[:3], V[3:])


def odd_trajectory(field, value):
    message = trajectory([shifted(0.0, 0.02 * i, 0.0) for i in range(5)])
    message.poses[3] = odd_pose(field, value).pose
    return message


@given(st.sampled_from([odd_pose, odd_twist, odd_trajectory]), st.sampled_from(FIELDS), numbers)
@settings(max_examples=30)
def test_any_number(arm, make, field, value):
    del arm.statuses[:]
    arm.send(make(field, value))
    if not math.isfinite(value):
        arm.says("invalid target")
    arm.client.spin_for(0.05)
    arm.assert_calm()


@given(
    st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=300),
    st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(0, 2**32 - 1)),
)
@settings(max_examples=15)
def test_any_frame_and_any_stamp(arm, frame, stamp):
    for message in (pose(shifted()), twist(), trajectory([shifted()])):
        arm.send(headed(message, "", stamp))
        arm.send(headed(message, frame, (0, 0)))
    arm.client.spin_for(0.03)
    arm.assert_calm()


def test_twist_of_any_size_leads_the_arm_no_farther_than_its_limits(arm):
    arm.stream(lambda _: twist((1e6, 0.0, 0.0), (0.0, 1e6, 0.0)), 0.5)
    arm.says_that_the_stream_ended()
    arm.assert_calm()


def test_a_stamp_that_is_not_about_now(arm):
    arm.goes(WAM.fk(HOME), 1e-6)
    held, T = arm.q, shifted(0.0, 0.2, 0.0)
    for message, words in (
        (pose(T, stamp=(1, 0)), "old"),
        (pose(T, stamp=arm.stamp(-600.0)), "old"),
        (pose(T, stamp=(2**31 - 1, 2**32 - 1)), "future"),
        (twist((0.0, 0.3, 0.0), stamp=(2**31 - 1, 999_999_999)), "future"),
        (trajectory([shifted(), T], stamp=(-(2**31), 0)), "old"),
        (trajectory([shifted(), T], stamp=arm.stamp(600.0)), "more than 60 s from now"),
    ):
        arm.client.spin_until(lambda: "target ignored" not in arm.statuses[-1].message)
        arm.send(message)
        arm.says("target ignored", words)
    arm.node.wait_for_line("WARN", "target ignored")
    arm.client.spin_for(0.2)
    np.testing.assert_allclose(arm.q, held, atol=1e-5)
    for ahead, goal in ((-0.1, T), (0.05, shifted())):
        arm.client.spin_for(0.6)
        arm.goes_by_stamp(goal, lambda ahead=ahead: arm.stamp(ahead))


def test_trajectory_of_one_pose_and_a_long_one(arm):
    T, goal = shifted(0.0, 0.05, 0.0), shifted(0.0, 0.1, 0.0)
    arm.send(trajectory([T]))
    arm.arrives(T)
    message = trajectory([shifted(0.0, 0.1 * s, 0.0) for s in np.linspace(0.0, 1.0, 10_000)])
    arm.send(message)
    arm.says("at the target")
    arm.client.spin_for(1.0)
    assert arm.error(goal) > 0.05, "500 s long"
    message.poses[9_999].orientation.w = math.nan
    arm.send(message)
    arm.says("invalid target")
    arm.assert_calm()


def test_flood_at_5_khz_of_good_and_bad_and_no_more_lines_of_the_log(arm):
    good, bad = pose(shifted(0.0, 0.05, 0.0)), odd_pose("position.x", NAN)
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
    mixed = lambda t: twist((0.0, -0.3, 0.0)) if round(t / 0.02) % 2 else pose(ends[0])  # noqa: E731
    for message_at in (lambda t: pose(ends[round(t / 0.02) % 2]), mixed):
        arm.ceases(lambda make=message_at: arm.stream(make, 0.6))
        arm.assert_calm()
