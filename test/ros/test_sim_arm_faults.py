"""What can befall the simulated arm: gaps in what is heard, stuck drives, silence, a reset."""

import re

import numpy as np
import pytest
from robots import ROOT

from dls_ik import RobotModel
from dls_ik.errors import JointValueError, OptionError
from dls_ik.model.analysis import ready_configuration
from dls_ik.ros.params.declare import declared
from dls_ik.ros.sim_arm.arm import standstill
from dls_ik.ros.sim_arm.simulation import (
    Dropouts,
    SimArmParameters,
    Simulation,
    joints_of,
    named_joints,
)

WAM = RobotModel.wam()
GOAL = np.full(WAM.n, 0.3)


def simulation(**parameters):
    return Simulation(joints_of(WAM), SimArmParameters().changed(parameters), 0.0)


def test_gaps_are_as_long_and_as_many_as_asked_for():
    rate, duration, tick, count = 2.0, 0.25, 0.001, 2_000_000
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
    assert abs(heard.std() * rate - 1.0) < 2.0 * scatter  # as of an exponential distribution


def test_gaps_are_those_of_the_seed():
    def begins(seed):
        dropouts = Dropouts(1.0, 0.1, seed, 0.0)
        return [dropouts.is_out(0.01 * k) for k in range(2000)]

    assert begins(1) == begins(1) != begins(2)


@pytest.mark.parametrize("never", [(0.0, 1.0), (1.0, 0.0)])
def test_without_rate_or_duration_there_are_no_gaps(never):
    dropouts = Dropouts(*never, 0, 0.0)
    assert not any(dropouts.is_out(0.1 * k) for k in range(1000))


def test_stuck_drives_still_tell_where_they_are():
    arm = simulation(limit_velocity=False)
    arm.freeze(True)
    arm.command(standstill(GOAL, 0.0), 0.0)
    stuck = arm.cycle(1.0)
    assert (stuck.q == ready_configuration(WAM)).all()
    assert not stuck.velocity.any()
    arm.freeze(False)
    assert (arm.cycle(1.1).q == GOAL).all()


def test_silence_and_gaps_do_not_stop_the_arm():
    arm = simulation(dropout_rate=1000.0, dropout_duration=2.0)
    arm.command(standstill(GOAL, 0.0), 0.0)
    assert arm.cycle(1.0) is None
    arm.change(SimArmParameters(), 1.0)
    assert (arm.cycle(1.001).q == GOAL).all()
    arm.silence(True)
    assert arm.cycle(1.002) is None


def test_a_reset_is_a_new_start():
    start = [0.1] * WAM.n
    arm = simulation(initial_positions=start, delay=0.1)
    arm.command(standstill(GOAL, 0.0), 0.0)
    arm.cycle(0.05)
    arm.silence(True)
    arm.freeze(True)
    arm.reset()
    for t in (0.2, 0.4):
        assert arm.cycle(t).q.tolist() == start
    arm.command(standstill(GOAL, 0.5), 0.5)
    assert (arm.cycle(2.0).q == GOAL).all()


def test_velocity_limits_are_those_of_the_description_or_none():
    def first(**parameters):
        arm = simulation(**parameters)
        arm.command(standstill(GOAL, 0.0), 0.0)
        return arm.cycle(0.01)

    np.testing.assert_allclose(np.abs(first().velocity), WAM.velocity)
    assert (first(limit_velocity=False).q == GOAL).all()
    assert np.isinf(named_joints(("a", "b")).velocity).all()


def test_wrong_initial_positions_are_refused_and_nothing_changes():
    with pytest.raises(JointValueError, match="7 joint values"):
        simulation(initial_positions=[0.0])
    arm = simulation()
    with pytest.raises(JointValueError, match="7 joint values"):
        arm.change(SimArmParameters().changed({"initial_positions": [1.0], "noise": 1.0}), 0.0)
    assert (arm.cycle(0.1).q == ready_configuration(WAM)).all()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"joint_names": "a, b", "robot": "wam"}, "'joint_names' and 'robot' are both given"),
        ({"joint_names": "a", "robot_description": "<robot/>"}, "'robot_description'"),
        ({"robot": "wam", "robot_description": "<robot/>"}, "both given"),
        ({"joint_names": "a, b, a"}, "a name twice"),
        ({"delay": -0.1}, "delay is from 0 to 60 \\[s\\]"),
        ({"noise": float("nan")}, "finite number"),
        ({"limit_velocity": 1}, "true or false"),
        ({"rate": 0.0}, "rate is from 1"),
        ({"lag": 1.0}, "unknown parameter 'lag'; known: robot, "),
    ],
)
def test_bad_parameters_are_refused(given, words):
    with pytest.raises(OptionError, match=words):
        SimArmParameters().changed(given)


def test_the_page_has_every_parameter_and_an_example_that_runs(capsys):
    page = (ROOT / "docs" / "sim_arm.md").read_text()
    rows = re.findall(r"^\| (`.*?`) \| [^`]", page.partition("## Parameters")[2], re.MULTILINE)
    assert {name.strip("`") for row in rows for name in row.split(", ")} == set(
        declared(SimArmParameters)
    )
    [example] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    exec(example, {})
    assert capsys.readouterr().out.count("0.16") == 2 * WAM.n  # 2 rad/s from 0.02 s to 0.1 s
