# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The simulated arm with its faults and parameters, and the commands that it takes or refuses."""

import math

import numpy as np
import pytest
from builtin_interfaces.msg import Duration
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError, JointValueError, OptionError
from dls_ik.model.analysis import ready_configuration
from dls_ik.ros.sim_arm.application import (
    path_from_array,
    path_from_joint_state,
    path_from_trajectory,
)
from dls_ik.ros.sim_arm.arm import (
    Dropouts,
    SimArmParameters,
    Simulation,
    joints_of,
    named_joints,
    standstill,
)

WAM = RobotModel.wam()
GOAL = np.full(WAM.n, 0.3)


def simulation(**parameters):
    return Simulation(joints_of(WAM), SimArmParameters().changed(parameters), 0.0)


def test_dropouts_have_the_given_rate_and_duration():
    rate, duration, tick, count = 2.0, 0.25, 0.001, 400_000
    dropouts = Dropouts(rate, duration, 4, 0.0)
    out = np.array([dropouts.is_out(k * tick) for k in range(count)])
    turns = np.flatnonzero(np.diff(out.astype(int)))
    begins, ends = turns[0::2], turns[1::2]
    lengths = (ends - begins[: len(ends)]) * tick
    heard = (begins[1:] - ends[: len(begins) - 1]) * tick
    single = lengths < 1.5 * duration  # two may follow each other within one tick
    assert np.abs(lengths[single] - duration).max() <= 1.5 * tick
    assert single.mean() > 0.99
    scatter = 5.0 / np.sqrt(len(heard))
    assert abs(heard.mean() * rate - 1.0) < scatter
    assert abs(heard.std() * rate - 1.0) < 2.0 * scatter  # exponential distribution


def test_reset_restores_initial_positions_and_clears_faults():
    start = [0.1] * WAM.n
    arm = simulation(initial_positions=start, delay=0.1)
    arm.command(standstill(GOAL, 0.0), 0.0)
    arm.cycle(0.05)
    arm.silence(True)
    arm.freeze(True)
    arm.reset()
    for t in (0.2, 0.4):
        assert arm.cycle(t)[0].tolist() == start
    arm.command(standstill(GOAL, 0.5), 0.5)
    assert (arm.cycle(2.0)[0] == GOAL).all()


def test_velocity_limits_are_those_of_the_description_or_none():
    def first(**parameters):
        arm = simulation(**parameters)
        arm.command(standstill(GOAL, 0.0), 0.0)
        return arm.cycle(0.01)

    np.testing.assert_allclose(np.abs(first()[1]), WAM.velocity)
    assert (first(limit_velocity=False)[0] == GOAL).all()
    assert np.isinf(named_joints(("a", "b")).velocity).all()


def test_wrong_initial_positions_are_refused_and_nothing_changes():
    with pytest.raises(JointValueError, match="7 joint values"):
        simulation(initial_positions=[0.0])
    arm = simulation()
    with pytest.raises(JointValueError, match="7 joint values"):
        arm.change(SimArmParameters().changed({"initial_positions": [1.0], "noise": 1.0}), 0.0)
    assert (arm.cycle(0.1)[0] == ready_configuration(WAM)).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"joint_names": "a, b", "robot": "wam"}, "'joint_names' and 'robot' are both given"),
        ({"joint_names": "a", "robot_description": "<robot/>"}, "'robot_description'"),
        ({"robot": "wam", "robot_description": "<robot/>"}, "both given"),
        ({"joint_names": "a, b, a"}, "each name once"),
        ({"delay": -0.1}, "delay must be from 0 to 60 \\[s\\]"),
        ({"noise": float("nan")}, "finite number"),
        ({"limit_velocity": 1}, "true or false"),
        ({"rate": 0.0}, "rate must be from 1"),
        ({"lag": 1.0}, "unknown parameter 'lag'; known: robot, "),
    ],
)
def test_bad_parameters_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        SimArmParameters().changed(given)


# Commands

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


def test_position_commands_apply_now_in_the_joint_order():
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
        (JointState(name=["a"], position=[1.0]), "joints must be a, b in any order; got a"),
        (JointState(name=["a", "c"], position=[1.0, 1.0]), "got a, c"),
        (JointState(name=["a", "a"], position=[1.0, 1.0]), "got a, a"),
        (JointState(name=["a", "b"], position=[1.0]), "2 joint values"),
        (JointState(), "got none"),
        (Float64MultiArray(), "2 joint values"),
        (Float64MultiArray(data=[1.0, 2.0, 3.0]), "2 joint values"),
        (trajectory(), "no points"),
        (trajectory(*[point(1.0, [])] * 10_001), "at most 10000 points; got 10001"),
        (trajectory(point(1.0, [0.0] * 3), names=("a", "b", "c")), "got a, b, c"),
        (trajectory(point(1.0, [0.0] * 3)), "2 joint values"),
        (trajectory(point(1.0, [])), "2 joint values"),
        (trajectory(point(1.0, [0.0] * 2, [0.0])), "2 joint values"),
        (trajectory(point(-1.0, [0.0] * 2)), "time_from_start must be at least 0"),
        (trajectory(point(1.0, [0.0] * 2), point(1.0, [1.0] * 2)), "increase from point to point"),
        (trajectory(point(1.0, [0.0] * 2, [0.0, 0.1])), "velocity of the last point"),
        (trajectory(point(1.0, [0.0] * 2), begin=STAMP - 3 * 10**9), "ended 2 s ago"),
        (trajectory(point(1.0, [0.0] * 2), begin=1), "ago"),
        *((JointState(name=["a", "b"], position=[0.0, x]), "b|magnitudes") for x in BAD_VALUES),
        *((Float64MultiArray(data=[0.0, x]), "b|magnitudes") for x in BAD_VALUES),
        *((trajectory(point(1.0, [0.0, x])), "b|magnitudes") for x in BAD_VALUES),
        *(
            (trajectory(point(1.0, [0.0] * 2, [0.0, x]), point(2.0, [0.0] * 2)), "b|magnitudes")
            for x in BAD_VALUES
        ),
    ],
)
def test_bad_commands_are_refused(message, words):
    with pytest.raises(DlsIkError, match=words):
        read(message)


def test_a_stamp_without_a_clock_is_refused():
    message = trajectory(point(0.1, [1.0, 2.0]), begin=STAMP)
    with pytest.raises(DlsIkError, match="no message on /clock"):
        path_from_trajectory(message, NAMES, NOW, 0)
