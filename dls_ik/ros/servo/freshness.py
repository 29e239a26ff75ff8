# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Freshness of messages: whether a target or a measurement may still be used.

All times are arguments; this module reads no clock and imports no ROS.

After a stall of the loop (the process was stopped, or got no processor) the queues hold messages
that are as old as the stall. The treatment of a message depends on the time since the stall ended:

===================  ===============  ===============  =================  ======================
time since           target of known  target of        reading of one     joint positions of the
the last stall       delay            unknown delay    joint              arm
===================  ===============  ===============  =================  ======================
no stall, or above   ACCEPT           ACCEPT           ACCEPT if recent,  ACCEPT if complete,
SETTLE_TIME                                            else IGNORE        else IGNORE (2)
DRAIN_TIME to        ACCEPT if not    ACCEPT if not    ACCEPT if recent   ACCEPT if complete,
SETTLE_TIME          delayed, else    delayed, else    and sent after     else WAIT until the
                     IGNORE           IGNORE           the queue was      driver times out (1),
                                                       drained, else      then IGNORE (2)
                                                       IGNORE
below DRAIN_TIME     ACCEPT if not    IGNORE           IGNORE             WAIT
                     delayed, else
                     IGNORE
===================  ===============  ===============  =================  ======================

- Delayed: the target spent more than `target_timeout` in transit and in the buffer of the node. If
  it has a stamp, only the time in the buffer counts here. At all times the controller rejects a
  target whose age by its stamp (:func:`target_age`) is above `target_timeout`.
- Recent: received after the queue was drained, `DRAIN_TIME` after the last stall, and less than a
  timeout ago: `measurement_timeout` if joint states are required, else `READING_TIMEOUT`.
- Complete: every joint of the arm has an accepted reading.
- (1) The driver has its timeout to publish a fresh measurement, counted from the moment the queue
  is drained. An arm at rest waits for `READING_TIMEOUT` if that is longer. IGNORE at once if no
  joint positions were accepted before the stall.
- (2) If joint positions were accepted before, the driver has timed out: the arm stops, with a fault
  if joint states are required.

WAIT: an arm at rest gets no command. An arm that still moves, on the stop trajectory that was sent
before the stall, continues; its controller gets the last accepted measurement if joint states are
required, as the missing one is no fault. An arm that has not started: see :func:`start_freshness`.
"""

import math
from collections.abc import Iterable
from enum import Enum, auto
from typing import Protocol, TypeVar

from dls_ik.errors import StaleTargetError

READING_TIMEOUT = 1.0  # [s] maximum age of joint states, unless they are required
DRAIN_TIME = 0.1  # [s] time after a stall until the queued messages are handled
SETTLE_TIME = DRAIN_TIME + READING_TIMEOUT  # [s] time after a stall in which send times count
MIN_STALL_PERIODS = 4.0  # a shorter gap between cycles is no stall, however short target_timeout is
MAX_CLOCK_DRIFT = 1e-3  # [s/s] relative drift of two clocks
MAX_CLOCK_LEAD = 0.1  # [s] a clock further ahead is not synchronised with this machine
OTHER_CLOCK_AGE = 1e8  # [s], three years: an older stamp is of a clock with another origin
RECORDING_AGE = 60.0  # [s] an older stamp is of a recording, as no network delays that long


class Freshness(Enum):
    """Treatment of a message, or of the joint positions of an arm."""

    ACCEPT = auto()  # use it
    IGNORE = auto()  # continue without it
    WAIT = auto()  # send no command until a fresh one arrives


class TimedReading(Protocol):
    """Reading of a joint with its times on the steady clock."""

    @property
    def time(self) -> float:
        """Time of arrival [s]."""

    @property
    def sent(self) -> float:
        """Estimated time of sending [s]."""


Reading = TypeVar("Reading", bound=TimedReading)


def min_stall(target_timeout: float, period: float) -> float:
    """Return the gap between two cycles [s] above which the loop counts as stalled.

    Args:
        target_timeout: Parameter of the node [s].
        period: Period of the loop [s].
    """
    return max(target_timeout, MIN_STALL_PERIODS * period)


def target_freshness(
    since_stall: float, waited: float, transit: float | None, target_timeout: float
) -> Freshness:
    """Return ACCEPT or IGNORE for a target, by the second and third column of the table.

    Args:
        since_stall: Time since the last stall ended [s]; infinite if there was none.
        waited: Time since the node received the target [s].
        transit: Time between sending and receiving [s]; None if unknown; 0 for a target with a
            stamp, whose age the controller checks.
        target_timeout: Parameter of the node [s].
    """
    if since_stall > SETTLE_TIME:
        return Freshness.ACCEPT
    if waited + (transit or 0.0) > target_timeout:
        return Freshness.IGNORE
    is_fresh = transit is not None or since_stall >= DRAIN_TIME
    return Freshness.ACCEPT if is_fresh else Freshness.IGNORE


def accepted_readings(
    readings: Iterable[Reading], now: float, since_stall: float, timeout: float
) -> list[Reading]:
    """Return the readings of one joint that are accepted by the fourth column of the table.

    Args:
        readings: Readings; the others are ignored.
        now: Time on the steady clock [s].
        since_stall: Time since the last stall ended [s]; infinite if there was none.
        timeout: Maximum time since a reading was received [s].
    """
    since_drained = since_stall - DRAIN_TIME
    max_age = min(timeout, since_drained)
    max_sent_age = math.inf if since_stall > SETTLE_TIME else since_drained
    return [r for r in readings if now - r.time < max_age and now - r.sent <= max_sent_age]


def positions_freshness(
    since_stall: float,
    is_complete: bool,
    was_accepted: bool,
    timeout: float,
    moves: bool,
) -> Freshness:
    """Return the treatment of the joint positions of an arm, by the last column of the table.

    Args:
        since_stall: Time since the last stall ended [s]; infinite if there was none.
        is_complete: Whether every joint has an accepted reading.
        was_accepted: Whether joint positions were accepted, and the driver has not timed out since.
        timeout: Time without joint states after which the driver has timed out [s].
        moves: Whether the arm is in motion.
    """
    if since_stall < DRAIN_TIME:
        return Freshness.WAIT
    if is_complete:
        return Freshness.ACCEPT
    patience = timeout if moves else max(timeout, READING_TIMEOUT)
    has_time = was_accepted and since_stall <= DRAIN_TIME + patience
    return Freshness.WAIT if has_time else Freshness.IGNORE


def start_freshness(is_complete: bool, is_required: bool, is_unpublished: bool) -> Freshness:
    """Return the treatment of the joint positions of an arm that has not started yet.

    Args:
        is_complete: Whether every joint has an accepted reading.
        is_required: Whether the arm starts at measured joint positions.
        is_unpublished: Whether the commands are for display only, and no driver was found.

    Returns:
        ACCEPT to start at the measurement if there is one; IGNORE to start without one; WAIT.
    """
    if is_complete or not is_required:
        return Freshness.ACCEPT
    return Freshness.IGNORE if is_unpublished else Freshness.WAIT


def target_age(stamp: int, clock: int, waited: float, ages_in_buffer: bool) -> float:
    """Return the age of a target [s], which the controller compares with `target_timeout`.

    Args:
        stamp: Stamp of the target [ns]; 0 if it has none.
        clock: Time now by the clock of the stamps [ns]; 0 if it is simulated and not yet known.
        waited: Time since the node received the target [s].
        ages_in_buffer: Whether `waited` is part of the age. It is for a twist; a pose may wait for
            the arm.

    Raises:
        StaleTargetError: If the target has a stamp, but there is no clock to compare it with.
    """
    if stamp and not clock:
        raise StaleTargetError(
            "it has a stamp, and with use_sim_time there is no clock yet to tell how old it is: "
            "publish /clock, or send targets without stamps"
        )
    age_on_arrival = 1e-9 * (clock - stamp) - waited if stamp else 0.0
    return age_on_arrival + waited if ages_in_buffer else age_on_arrival


def stamp_advice(age: float) -> str:
    """Return the probable cause of a stamp that is too old or in the future, and the remedy.

    Args:
        age: Age of the target by its stamp [s]; below 0 if the stamp is in the future.
    """
    if age > OTHER_CLOCK_AGE:
        return (
            "its stamp is of a clock that starts at 0, such as simulated time, a recording or the "
            "time since boot; send a stamp of 0, which means now, or start this node with "
            "use_sim_time:=true and publish /clock"
        )
    if age < -OTHER_CLOCK_AGE:
        return (
            "its stamp is of the system clock, and this node follows simulated time (use_sim_time);"
            " stamp targets by /clock, or send a stamp of 0, which means now"
        )
    if age > RECORDING_AGE:
        return (
            "a recording that is replayed keeps its stamps; replay it with --clock and start this "
            "node with use_sim_time:=true, or send a stamp of 0, which means now"
        )
    return (
        "the message was delayed, or the clocks of the two machines differ; synchronise them, or "
        "send a stamp of 0, which means now"
    )


class DelayEstimator:
    """Delays of messages relative to the fastest one, whatever the clock of their publisher.

    The fastest message so far shows the difference of the two clocks. If publishers with different
    clocks share a topic, the messages of all but the one with the leading clock appear delayed.
    """

    def __init__(self) -> None:
        self._min_transit, self._last_received = math.inf, -math.inf  # [s], both clocks mixed

    def delay(self, sent: int, received: float) -> float:
        """Return how much longer a message took than the fastest one [s]; infinite for the first.

        Args:
            sent: Send time by the clock of the publisher [ns]; 0 if unknown, then returns 0.
            received: Time of arrival by a steady clock [s].
        """
        if not sent:
            return 0.0
        transit = received - 1e-9 * sent
        usual = self._min_transit + MAX_CLOCK_DRIFT * (received - self._last_received)
        self._min_transit, self._last_received = min(transit, usual), received
        return max(0.0, transit - usual) if math.isfinite(usual) else math.inf


def transit_time(sent: int, clock: int, relative: float) -> float | None:
    """Return the time that a message was in transit [s]; None if unknown.

    Args:
        sent: Send time by the system clock of the publisher [ns]; 0 if unknown.
        clock: System time of this machine at the arrival [ns].
        relative: Delay relative to other messages [s], see :class:`DelayEstimator`.
    """
    if not sent:
        return None
    absolute = 1e-9 * (clock - sent)
    return min(relative, max(absolute, 0.0)) if absolute >= -MAX_CLOCK_LEAD else relative
