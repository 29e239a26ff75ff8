"""Messages that the simulated arm follows, and those that it does not."""

import math

import numpy as np
import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from builtin_interfaces.msg import Duration
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik.errors import DlsIkError
from dls_ik.ros.sim_arm.application import (
    path_from_array,
    path_from_joint_state,
    path_from_trajectory,
)

NAMES = ("a", "b")
NOW, STAMP = 50.0, 1_700_000_000 * 10**9
BAD_VALUES = [math.nan, math.inf, -math.inf, 1e300]


def point(t, positions, velocities=()):
    sec = math.floor(t)
    time = Duration(sec=sec, nanosec=round((t - sec) * 1e9))
    return JointTrajectoryPoint(
        positions=list(positions), velocities=list(velocities), time_from_start=time
    )


def trajectory(*points, names=NAMES, begin=0):
    message = JointTrajectory(joint_names=list(names), points=list(points))
    message.header.stamp.sec, message.header.stamp.nanosec = divmod(begin, 10**9)
    return message


def read(message):
    """The path of any of the three."""
    if isinstance(message, JointTrajectory):
        return path_from_trajectory(message, NAMES, NOW, STAMP)
    if isinstance(message, JointState):
        return path_from_joint_state(message, NAMES, NOW)
    return path_from_array(message, NAMES, NOW)


def test_positions_count_from_now_on_in_the_order_of_the_joints():
    for message in (
        JointState(name=["b", "a"], position=[2.0, 1.0]),
        Float64MultiArray(data=[1.0, 2.0]),
    ):
        path = read(message)
        assert path.times.tolist() == [NOW]
        assert path.positions.tolist() == [[1.0, 2.0]]


def test_points_of_a_trajectory_begin_now_or_at_the_stamp():
    points = (point(0.5, [2.0, 1.0], [4.0, 3.0]), point(1.5, [6.0, 5.0]))
    for begin, first in ((0, 50.5), (STAMP - 10**9, 49.5), (STAMP + 2 * 10**9, 52.5)):
        path = read(trajectory(*points, names=("b", "a"), begin=begin))
        np.testing.assert_allclose(path.times, [first, first + 1.0], atol=1e-6)
        assert path.positions.tolist() == [[1.0, 2.0], [5.0, 6.0]]
        np.testing.assert_array_equal(path.velocities, [[3.0, 4.0], [math.nan] * 2])


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (JointState(name=["a"], position=[1.0]), "the joints are a, b, each once, not a"),
        (JointState(name=["a", "c"], position=[1.0, 1.0]), "not a, c"),
        (JointState(name=["a", "a"], position=[1.0, 1.0]), "not a, a"),
        (JointState(name=["a", "b"], position=[1.0]), "2 joint values"),
        (JointState(), "not none"),
        (Float64MultiArray(), "2 joint values"),
        (Float64MultiArray(data=[1.0, 2.0, 3.0]), "2 joint values"),
        (trajectory(), "no points"),
        (trajectory(*[point(1.0, [])] * 10_001), "at most 10000 points, this one 10001"),
        (trajectory(point(1.0, [0.0] * 3), names=("a", "b", "c")), "not a, b, c"),
        (trajectory(point(1.0, [0.0] * 3)), "2 joint values"),
        (trajectory(point(1.0, [])), "2 joint values"),
        (trajectory(point(1.0, [0.0] * 2, [0.0])), "2 joint values"),
        (trajectory(point(-1.0, [0.0] * 2)), "time_from_start is from 0"),
        (trajectory(point(1.0, [0.0] * 2), point(1.0, [1.0] * 2)), "increases"),
        (trajectory(point(1.0, [0.0] * 2, [0.0, 0.1])), "velocity that is not 0"),
        (trajectory(point(1.0, [0.0] * 2), begin=STAMP - 3 * 10**9), "ended 2 s ago"),
        (trajectory(point(1.0, [0.0] * 2), begin=1), "ago"),
        *((JointState(name=["a", "b"], position=[0.0, x]), "b|beyond") for x in BAD_VALUES),
        *((Float64MultiArray(data=[0.0, x]), "b|beyond") for x in BAD_VALUES),
        *((trajectory(point(1.0, [0.0, x])), "b|beyond") for x in BAD_VALUES),
        *(
            (trajectory(point(1.0, [0.0] * 2, [0.0, x]), point(2.0, [0.0] * 2)), "b|beyond")
            for x in BAD_VALUES
        ),
    ],
)
def test_bad_commands_are_refused(message, words):
    with pytest.raises(DlsIkError, match=words):
        read(message)


def test_a_stamp_without_a_clock_is_refused():
    message = trajectory(point(0.1, [1.0, 2.0]), begin=STAMP)
    with pytest.raises(DlsIkError, match="use_sim_time there is no clock"):
        path_from_trajectory(message, NAMES, NOW, 0)
