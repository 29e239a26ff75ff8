# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Every cell of the freshness table, and a supervised arm in motion across a stall of the loop."""

import math
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
from ros_world import DT, controlled

from dls_ik.errors import StaleTargetError
from dls_ik.ros.servo.freshness import (
    DRAIN_TIME,
    MAX_CLOCK_DRIFT,
    MIN_STALL_PERIODS,
    READING_TIMEOUT,
    SETTLE_TIME,
    DelayEstimator,
    Freshness,
    accepted_readings,
    min_stall,
    positions_freshness,
    start_freshness,
    target_age,
    target_freshness,
    transit_time,
)
from dls_ik.servo import ServoState

ACCEPT, IGNORE, WAIT = Freshness
TIMEOUT = 0.25  # [s]
NO_STALL, SETTLED = math.inf, 1.01 * SETTLE_TIME
SETTLING = (DRAIN_TIME, 0.5 * SETTLE_TIME, SETTLE_TIME)
DRAINING = (0.0, 0.99 * DRAIN_TIME)


class Reading(NamedTuple):
    """Times of a reading."""

    time: float  # [s] arrival
    sent: float  # [s]


def each(rows, *cell):
    """Return the parameters of a cell for each time since the stall [s] of its row."""
    return [(since, *cell) for since in rows]


@pytest.mark.parametrize(
    ("since_stall", "waited", "transit", "expected"),
    [
        *each((NO_STALL, SETTLED), 9.0, 9.0, ACCEPT),
        *each((NO_STALL, SETTLED), 9.0, None, ACCEPT),
        *each((*SETTLING, *DRAINING), 0.1, 0.1, ACCEPT),
        *each((*SETTLING, *DRAINING), 0.2, 0.1, IGNORE),
        *each((*SETTLING, *DRAINING), 0.0, math.inf, IGNORE),
        *each((*SETTLING, *DRAINING), 0.2, 0.0, ACCEPT),
        *each((*SETTLING, *DRAINING), 0.3, 0.0, IGNORE),
        *each(SETTLING, 0.2, None, ACCEPT),
        *each((*SETTLING, *DRAINING), 0.3, None, IGNORE),
        *each(DRAINING, 0.0, None, IGNORE),
    ],
)
def test_target_freshness_depends_on_delay_and_stall(since_stall, waited, transit, expected):
    assert target_freshness(since_stall, waited, transit, TIMEOUT) is expected


@pytest.mark.parametrize(
    ("since_stall", "received_age", "transit", "expected"),
    [
        *each((NO_STALL, SETTLED), 0.24, 9.0, ACCEPT),
        *each((NO_STALL, SETTLED), 0.25, 0.0, IGNORE),
        *each((0.5, SETTLE_TIME), 0.24, 0.1, ACCEPT),
        *each((0.5, SETTLE_TIME), 0.25, 0.0, IGNORE),
        *each((DRAIN_TIME + 0.1,), 0.05, 0.04, ACCEPT),
        *each((DRAIN_TIME + 0.1,), 0.05, 0.06, IGNORE),
        *each((DRAIN_TIME + 0.1,), 0.11, 0.0, IGNORE),
        *each((DRAIN_TIME, *DRAINING), 0.0, 0.0, IGNORE),
    ],
)
def test_reading_acceptance_depends_on_age_and_stall(since_stall, received_age, transit, expected):
    reading = Reading(-received_age, -received_age - transit)
    accepted = accepted_readings([reading], 0.0, since_stall, TIMEOUT)
    assert accepted == ([reading] if expected is ACCEPT else [])


def test_a_long_timeout_accepts_no_reading_from_before_a_stall():
    reading = Reading(-SETTLED, -SETTLED)
    assert accepted_readings([reading], 0.0, SETTLED, 10.0) == []
    assert accepted_readings([reading], 0.0, NO_STALL, 10.0) == [reading]


@pytest.mark.parametrize("moves", [False, True])
@pytest.mark.parametrize(
    ("since_stall", "is_complete", "was_accepted", "expected"),
    [
        *((since, True, was, ACCEPT) for since in (NO_STALL, SETTLED, *SETTLING) for was in (0, 1)),
        *((since, False, was, IGNORE) for since in (NO_STALL, SETTLED) for was in (0, 1)),
        *each(SETTLING, False, True, WAIT),
        *each(SETTLING, False, False, IGNORE),
        *((since, done, was, WAIT) for since in DRAINING for done in (0, 1) for was in (0, 1)),
    ],
)
def test_positions_freshness_follows_table(since_stall, is_complete, was_accepted, moves, expected):
    found = positions_freshness(since_stall, is_complete, was_accepted, READING_TIMEOUT, moves)
    assert found is expected


@pytest.mark.parametrize(
    ("timeout", "moves", "limit"),
    [(0.2, True, 0.2), (0.2, False, READING_TIMEOUT), (5.0, True, 5.0), (5.0, False, 5.0)],
)
def test_driver_timeout_starts_at_the_end_of_the_stall(timeout, moves, limit):
    for since_stall, expected in ((limit, WAIT), (DRAIN_TIME + limit + 1e-6, IGNORE)):
        assert positions_freshness(since_stall, False, True, timeout, moves) is expected


@pytest.mark.parametrize(
    ("is_complete", "is_required", "is_unpublished", "expected"),
    [
        (True, True, False, ACCEPT),
        (False, False, False, ACCEPT),
        (False, True, True, IGNORE),
        (False, True, False, WAIT),
    ],
)
def test_start_freshness_follows_the_table(is_complete, is_required, is_unpublished, expected):
    assert start_freshness(is_complete, is_required, is_unpublished) is expected


def test_a_stall_is_longer_than_target_timeout_and_several_periods():
    assert min_stall(0.25, 0.01) == 0.25
    assert min_stall(0.001, 0.01) == MIN_STALL_PERIODS * 0.01


def test_target_age_is_computed_from_the_stamp_or_the_delay():
    second = 10**9
    assert target_age(0, 0, 0.5, False) == 0.0
    assert target_age(0, 0, 0.5, True) == 0.5
    assert target_age(7 * second, 9 * second, 0.5, False) == pytest.approx(1.5)
    assert target_age(7 * second, 9 * second, 0.5, True) == pytest.approx(2.0)
    with pytest.raises(StaleTargetError, match="on /clock yet"):
        target_age(7 * second, 0, 0.5, True)


@pytest.mark.parametrize(
    ("sent", "relative", "transit"),
    [(0, 5.0, None), (8.0, 5.0, 2.0), (8.0, 1.0, 1.0), (10.05, 5.0, 0.0), (11.0, 5.0, 5.0)],
)
def test_transit_time_uses_the_clock_that_matches_the_stamp(sent, relative, transit):
    found = transit_time(round(1e9 * sent), 10 * 10**9, relative)
    assert found == (None if transit is None else pytest.approx(transit))


CLOCK = 1.7e9  # [s] time of the publisher at time 0 of this machine
PERIOD = 0.02  # [s]


def delays(sent, came):
    """Return the delays of messages from times of sending and arrival [s]."""
    estimator = DelayEstimator()
    pairs = zip(sent, came, strict=True)
    return [estimator.delay(round(1e9 * (CLOCK + a)), b) for a, b in pairs]


def test_the_delay_of_the_first_message_is_unknown():
    assert delays([5.0], [5.0]) == [math.inf]
    estimator = DelayEstimator()
    assert [estimator.delay(0, now) for now in (1.0, 2.0)] == [0.0, 0.0]


def test_messages_queued_while_the_process_was_stopped_are_delayed():
    sent = [k * PERIOD for k in range(200)]
    came = [t if t < 1.0 else max(t, 3.0) for t in sent]  # stopped for two seconds
    late = [b - a for a, b in zip(sent, came, strict=True)]
    assert delays(sent, came)[1:] == pytest.approx(late[1:], abs=3.0 * MAX_CLOCK_DRIFT)


def test_clock_drift_is_no_delay():
    sent = [k * PERIOD for k in range(50_000)]
    came = [t * (1.0 + 0.5 * MAX_CLOCK_DRIFT) for t in sent]
    assert max(delays(sent, came)[1:]) < 1e-3


def test_freshness_module_does_not_import_rclpy():
    code = "import sys, dls_ik.ros.servo.freshness; sys.exit('rclpy' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


MEASUREMENT_TIMEOUT, STALL = 0.2, 0.3  # [s]


def after_stall(monkeypatch, **given):
    """Return a world after a stall in motion, with a required driver."""
    world = controlled(
        monkeypatch,
        feedback_mode="required",
        measurement_timeout=MEASUREMENT_TIMEOUT,
        acceleration=[1.0],
        **given,
    )
    world.add_driver([0.0, 0.0])
    for _ in range(120):
        outcome = follow(world, driver=True)
    assert np.abs(outcome.output.velocity).max() > 0.8
    world.now += STALL
    return world


@pytest.fixture
def supervised(monkeypatch):
    """Return a world after a stall during a long stop trajectory."""
    return after_stall(monkeypatch, has_stop_trajectory=True)


def follow(world, **given):
    """Run a cycle with a target, of an arm that is at its command."""
    outcome = world.run(target=world.target([2.5, 1.5]), **given)
    if outcome.output is not None:
        world.driver.position = outcome.output.q.tolist()
    return outcome


def test_measurements_queued_during_a_stall_cause_no_fault(supervised):
    """The driver is waited for, and supervised again from its first fresh measurement on."""
    for k in range(int(2.0 * DRAIN_TIME / DT)):
        outcome = follow(supervised, driver=True, lag=max(0.0, STALL - k * DT))
        assert outcome.state is not ServoState.FAULT, outcome.message
        assert outcome.is_command
    for _ in range(20):
        outcome = follow(supervised, driver=True)
        assert outcome.state is ServoState.FOLLOWING, outcome.message
    supervised.driver.position = [-2.0, -2.0]
    assert supervised.run(3, driver=True).state is ServoState.FAULT


def test_a_driver_that_stays_silent_after_a_stall_is_a_fault_after_its_timeout(supervised):
    for _ in range(int(MEASUREMENT_TIMEOUT / DT)):
        outcome = follow(supervised)
        assert outcome.state is not ServoState.FAULT, outcome.message
    for _ in range(int(DRAIN_TIME / DT) + 2):
        outcome = follow(supervised)
    assert outcome.state is ServoState.FAULT
    assert "no joint states received" in outcome.message


@pytest.fixture
def standing(monkeypatch):
    """Return a world after a stall in which the arm stopped at its last command."""
    return after_stall(monkeypatch, has_stop_trajectory=False)


def test_an_arm_at_rest_waits_after_a_stall_for_a_fresh_measurement(standing):
    for _ in range(int(3.0 * DRAIN_TIME / DT)):
        outcome = follow(standing, driver=True, lag=STALL)
        assert (outcome.state, outcome.is_command) == (ServoState.STALE, False)
    for _ in range(20):
        outcome = follow(standing, driver=True)
    assert outcome.state is ServoState.FOLLOWING, outcome.message


def test_resting_arm_holds_and_faults_after_the_timeout_of_a_silent_driver(standing):
    """The driver has its timeout after the stall; a target is in force."""
    states = []
    for _ in range(int(2.0 * SETTLE_TIME / DT)):
        outcome = follow(standing)
        states.append(outcome.state)
        assert outcome.output is None or not outcome.output.velocity.any()
    held = states[: int(MEASUREMENT_TIMEOUT / DT)]
    assert set(held) <= {ServoState.STALE, ServoState.WAITING}
    assert states[-1] is ServoState.FAULT
    assert "no joint states received" in outcome.message
