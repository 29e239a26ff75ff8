"""How late messages are, whatever the clocks of their publishers."""

import math

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from dls_ik.ros.servo.targets import DRIFT, DelayMonitor

CLOCK = 1.7e9  # [s] of the publisher when ours shows 0
PERIOD = 0.02  # [s]


def lags(sent, came):
    """Of messages, from times [s]."""
    transit = DelayMonitor()
    pairs = zip(sent, came, strict=True)
    return [transit.delay(round(1e9 * (CLOCK + a)), b) for a, b in pairs]


def test_the_first_one_is_not_known():
    assert lags([5.0], [5.0]) == [math.inf]


def test_messages_that_waited_while_the_process_was_stopped():
    sent = [k * PERIOD for k in range(200)]
    came = [t if t < 1.0 else max(t, 3.0) for t in sent]  # stopped for two seconds
    late = [b - a for a, b in zip(sent, came, strict=True)]
    assert lags(sent, came)[1:] == pytest.approx(late[1:], abs=3.0 * DRIFT)


def test_clocks_that_come_apart():
    sent = [k * PERIOD for k in range(50_000)]
    came = [t * (1.0 + 0.5 * DRIFT) for t in sent]
    assert max(lags(sent, came)[1:]) < 1e-3


def test_where_nobody_says_when_it_was_sent():
    transit = DelayMonitor()
    assert [transit.delay(0, now) for now in (1.0, 2.0)] == [0.0, 0.0]
