"""What the states are called, for people and for ServoStatus."""

import pytest

from dls_ik.servo import ServoState


@pytest.mark.parametrize("state", list(ServoState))
def test_every_state_has_a_number_of_servo_status_and_a_sentence(state):
    assert state.code in (-1, 0, 1, 2, 3, 6)
    assert state.explanation


def test_states_that_share_a_number_are_still_told_apart():
    assert len({state.explanation for state in ServoState}) == len(ServoState)
    assert len({state.name for state in ServoState}) == len(ServoState)


def test_numbers_are_those_that_servo_status_has_for_it():
    numbers = {state.name: state.code for state in ServoState if state.code > 0}
    assert numbers == {
        "NEAR_SINGULARITY": 1,  # DECELERATE_FOR_APPROACHING_SINGULARITY
        "STALLED": 2,  # HALT_FOR_SINGULARITY
        "UNREACHABLE": 2,
        "LEAVING_SINGULARITY": 3,  # DECELERATE_FOR_LEAVING_SINGULARITY
        "JOINT_BOUND": 6,  # JOINT_BOUND
    }
    invalid = {state.name for state in ServoState if state.code == -1}
    assert invalid == {"NO_ROBOT", "STALE", "REFUSED", "FAULT"}
