# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""States and events, and the measures and messages of a cycle."""

import numpy as np
import pytest

from dls_ik import RobotModel
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.local_ik import ServoStep
from dls_ik.servo.state import AWAITS_STATES, ConditionMonitor, Event, StreamState, transition
from dls_ik.servo.state import ServoState as S
from dls_ik.servo.targets import PoseTarget


def test_state_codes_match_servo_status_and_messages_are_distinct():
    numbers = {state.name: state.code for state in ServoState if state.code > 0}
    assert numbers == {
        "NEAR_SINGULARITY": 1,  # DECELERATE_FOR_APPROACHING_SINGULARITY
        "STALLED": 2,  # HALT_FOR_SINGULARITY
        "UNREACHABLE": 2,
        "LEAVING_SINGULARITY": 3,  # DECELERATE_FOR_LEAVING_SINGULARITY
        "NEAR_COLLISION": 4,  # DECELERATE_FOR_COLLISION
        "BLOCKED": 5,  # HALT_FOR_COLLISION
        "JOINT_BOUND": 6,  # JOINT_BOUND
    }
    invalid = {state.name for state in ServoState if state.code == -1}
    assert invalid == {"NO_ROBOT", "STALE", "REFUSED", "FAULT"}
    assert {S.WAITING.code, S.PAUSED.code, S.TIMED_OUT.code} == {0}, "a pause is not an error"
    assert {state.code for state in ServoState} == {-1, 0, 1, 2, 3, 4, 5, 6}
    assert all(state.explanation for state in ServoState)
    assert len({state.explanation for state in ServoState}) == len(ServoState)


WAM = RobotModel.wam()
Q = np.array([0.3, -0.5, 0.2, 1.4, -0.3, 0.4, 0.1])


MODES = [S.WAITING, S.FOLLOWING, S.REFUSED, S.TIMED_OUT, S.PAUSED, S.FAULT]


@pytest.mark.parametrize("state", MODES)
def test_events_lead_to_documented_states(state):
    is_latched = state in (S.PAUSED, S.FAULT)
    expected = {
        Event.TARGET: state if is_latched else S.FOLLOWING,
        Event.REFUSAL: state if is_latched else S.REFUSED,
        Event.TIMEOUT: S.TIMED_OUT if state is S.FOLLOWING else state,
        Event.FINISH: state,
        Event.PAUSE: S.FAULT if state is S.FAULT else S.PAUSED,
        Event.RESUME: S.WAITING if state is S.PAUSED else state,
        Event.STOP: state if is_latched else S.WAITING,
        Event.RESET: S.WAITING,
        Event.FAILURE: S.FAULT,
    }
    before = StreamState(state, "before")
    found = {event: transition(before, event, "why") for event in Event}
    assert {event: after.state for event, after in found.items()} == expected
    assert all(after is before or after.reason == "why" for after in found.values())


def test_stream_has_started_until_reset_or_resume():
    stream, found = StreamState(), []
    for event in (Event.REFUSAL, Event.TARGET, Event.TIMEOUT, Event.PAUSE, Event.RESUME,
                  Event.TARGET, Event.FAILURE, Event.TARGET, Event.RESET):  # fmt: skip
        stream = transition(stream, event, target=PoseTarget(0.25, False))
        found.append(stream.has_started)
    assert found == [False, True, True, True, False, True, True, True, False]


def test_singular_values_of_the_scaled_jacobian():
    controller = Controller(WAM)
    controller.seed(Q)
    controller.follow_pose(WAM.fk(Q), 0.0)
    out = controller.cycle(0.0, 0.01)
    J = np.diag([1.0, 1.0, 1.0, 0.5, 0.5, 0.5]) @ WAM.jacobian(Q)
    s = np.linalg.svd(J, compute_uv=False)
    assert out.least_singular_value == pytest.approx(s[-1], rel=1e-6)
    assert out.condition == pytest.approx(s[0] / s[-1], rel=1e-6)


def reported_states(values, held=(), sigma0=0.01, dt=0.01):
    """Return the states for smallest singular values, with joint 1 held in some cycles."""
    monitor, q = ConditionMonitor(), np.zeros(2)
    return [
        monitor.update(k * dt, ServoStep(q, 1.0, 0.0, s, 1.0, np.array([0.0, k in held])), sigma0)
        for k, s in enumerate(values)
    ]


F, N, L, B = S.FOLLOWING, S.NEAR_SINGULARITY, S.LEAVING_SINGULARITY, S.JOINT_BOUND


def test_singularity_is_entered_and_left_once():
    down = np.linspace(0.05, 0.0, 51)
    states = reported_states([*down, *down[::-1]])
    turns = [a for a, b in zip(states, [None, *states], strict=False) if a is not b]
    assert turns == [F, N, L, F]


def test_noise_of_singular_values_causes_no_state_change():
    noise = 4e-4 * np.where(np.arange(100) % 2, 1.0, -1.0)
    assert set(reported_states(0.01 + noise)) == {N}
    assert len(set(reported_states(0.02 + noise)[1:])) == 1


def test_repeatedly_held_joint_is_reported_as_held():
    assert reported_states([0.1] * 40, held=range(0, 20, 3)) == [B] * 28 + [F] * 12


UNDAMPED = (
    "near a singularity: {} does not damp motion along the lost direction; joints may move fast"
)
WORDS = {"svf": "is damped", "odls": "is damped", "tpinv": "is suppressed", "sd": "is bounded"}


@pytest.mark.parametrize("method", [*WORDS, "jp", "ed", "ctp"])
def test_singularity_message_describes_the_method(method):
    message = near_singularity(method)
    if method in WORDS:
        assert message.endswith(WORDS[method])
    else:
        assert message == UNDAMPED.format(method)


def near_singularity(method):
    straight = WAM.clip(np.array([0.0, 0.5, 0.0, 0.2313, 0.0, 0.5, 0.0]))
    controller = Controller(WAM, method)
    controller.seed(straight)
    T = WAM.fk(straight)
    T[2, 3] -= 1e-3
    controller.follow_pose(T, 0.0)
    out = controller.cycle(0.0, 0.01)
    assert out.state is ServoState.NEAR_SINGULARITY
    return out.message


@pytest.mark.parametrize("state", ServoState)
def test_a_state_is_recognized_by_code_and_message(state):
    """moveit_msgs/ServoStatus has no field for the state."""
    for message in (state.explanation, state.message("a reason"), f"{state.explanation}; a note"):
        assert ServoState.from_message(state.code, message) is state


def test_an_arm_that_waits_for_joint_states_is_recognized():
    message = f"{AWAITS_STATES} on /joint_states"
    assert ServoState.from_message(0, message) is ServoState.WAITING


def test_messages_of_other_nodes_name_a_state_by_a_code_of_one_state_only():
    assert ServoState.from_message(1, "Moving closer to a singularity, decelerating") is (
        ServoState.NEAR_SINGULARITY
    )
    assert ServoState.from_message(0, "No warnings") is None
    assert ServoState.from_message(2, "stalled halfway") is None
