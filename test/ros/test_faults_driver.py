# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A driver that is silent, late, noisy, wrong, or comes back with the arm somewhere else."""

import math

import numpy as np
import pytest
from ros_faulted import OTHER, Rig
from ros_streamer import HOME
from ros_wam import WAM
from sensor_msgs.msg import JointState

pytestmark = [pytest.mark.ros, pytest.mark.slow]

ELSEWHERE = HOME + np.array([0.7, -0.3, 0.2, 0.4, -0.5, 0.3, 0.6])
NAMES = list(WAM.joint_names)


@pytest.fixture(scope="module")
def rig(request, private_domain):
    limits = {"measurement_timeout": 6.0, "max_deviation": 2.0}
    with Rig(f"driver_{request.param}", feedback_mode=request.param, **limits) as rig:
        rig.is_required = request.param == "required"
        yield rig
        rig.assert_alive()
        assert rig.node.end() == 0


@pytest.fixture(autouse=True)
def _follows(rig):
    rig.quiet()
    rig.set_arm(noise=0.0, delay=0.0, dropout_rate=0.0)
    rig.silence(False)
    rig.rests()
    rig.trigger("dls_ik/reset")
    rig.stream()
    rig.follows()


def modes(*names):
    return pytest.mark.parametrize("rig", names, indirect=True, scope="module")


def comes_back_elsewhere(rig):
    """After a silence the arm is somewhere else; until it is asked to, it does not move."""
    rig.arm_restarts_at(ELSEWHERE)
    if rig.is_required:
        rig.says("fault", "no joint states")
        np.testing.assert_array_equal(rig.rests(), ELSEWHERE)
        rig.trigger("dls_ik/reset")


def falls_silent(rig, tries=5):
    """The arm tells nothing any more, and the node has noticed, and stands."""
    rig.silence()
    rig.client.spin_for(2.0)  # earlier messages may still arrive
    said = rig.says_lastingly("fault", "waiting for joint states")
    if rig.is_required and said != "fault" and tries > 1:
        # The stream had a gap on a busy machine: a target after a rest waits for the arm.
        rig.silence(False)
        rig.follows()
        return falls_silent(rig, tries - 1)
    assert (said == "fault") is rig.is_required
    rig.falls_silent()
    rig.assert_calm()
    assert not np.any(rig.commands[-1].velocity), "the last command stands still"
    del rig.commands[:]
    return None


@modes("auto", "required")
def test_moving_arm_restarts_at_a_new_measurement_after_a_driver_outage(rig):
    falls_silent(rig)
    comes_back_elsewhere(rig)
    rig.assert_begins_at(ELSEWHERE)
    rig.follows()
    rig.assert_calm()


@modes("auto")
def test_resting_arm_restarts_at_a_new_measurement_after_a_driver_outage(rig):
    rig.quiet()
    rig.goes(WAM.fk(rig.rests() - 0.05))
    falls_silent(rig)
    comes_back_elsewhere(rig)
    np.testing.assert_array_equal(rig.rests(), ELSEWHERE)
    assert not rig.commands, "the target of before is forgotten"
    T = WAM.fk(ELSEWHERE - 0.1)
    rig.goes(T)
    rig.assert_begins_at(ELSEWHERE)


def odd(names, values):
    message = JointState(name=list(names), position=[float(v) for v in values])
    message.header.frame_id = OTHER
    return message


@modes("required")
def test_noise_delays_gaps_and_isolated_invalid_states_do_not_stop_the_arm(rig):
    """Between two wrong ones come good ones, so that each is one in three at most."""
    rig.set_arm(noise=0.01, delay=0.03, dropout_rate=1.0, dropout_duration=0.1)
    other = rig.client.publisher(JointState, "joint_states", 10)
    q = HOME.tolist()
    messages = [
        odd(NAMES, HOME + 4.0),  # an outlier
        odd(NAMES, [*q[:6], math.nan]),
        odd(NAMES, [math.inf, *q[1:]]),
        odd(NAMES[:3], q[:3]),  # joints are missing
        odd(NAMES, q[:6]),
        odd(NAMES[::-1], HOME[::-1] - 4.0),  # another order, and an outlier
        odd([], []),
    ]
    del rig.statuses[:], rig.commands[:]
    for message in 3 * messages:
        heard = len(rig.states)
        other.publish(message)
        rig.until(lambda n=heard: len(rig.states) > n + 10, "joint states")
    rig.client.node.destroy_publisher(other)
    assert not [s.message for s in rig.statuses if "fault" in s.message]
    rig.assert_calm()
    rig.follows()
    rig.assert_calm()
