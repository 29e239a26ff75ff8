# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Freshness of messages: decides whether a target or a measurement is recent enough to be used.

All times are arguments; this module reads no clock and imports no ROS.

The loop stalls if the process is stopped or gets no processor. After a stall the message queues
may hold messages that are as old as the stall was long. Therefore the treatment of a message
depends on the time since the last stall ended:

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

- Target of known delay: the target has a stamp, or its time in transit is known.
- Delayed: the sum of the times that the target spent in transit and in the buffer of the node is
  above `target_timeout`. For a target with a stamp only the time in the buffer counts here, because
  the controller always rejects a target whose age by its stamp (:func:`target_age`) is above
  `target_timeout`.
- Drained: the queue is drained `DRAIN_TIME` after the end of the last stall.
- Recent: the reading was received after the queue was drained, and less than a timeout ago. The
  timeout is `measurement_timeout` if joint states are required, otherwise `READING_TIMEOUT`.
- Complete: every joint of the arm has an accepted reading.
- (1) The driver times out if the joint positions are not complete within the timeout of readings
  after the queue was drained; for an arm at rest, within `READING_TIMEOUT` if that is longer. If no
  joint positions were accepted before the stall, the result is IGNORE at once.
- (2) If joint positions were accepted before, the driver has timed out, and the arm stops. If joint
  states are required, this is a fault.

WAIT means that an arm at rest gets no command. An arm that still moves along the stop trajectory
that was sent before the stall continues to move. Its missing measurement is not a fault: if joint
states are required, its controller gets the last accepted measurement. For an arm that has not
started, see :func:`start_freshness`.
"""

import math
from collections.abc import Iterable
from enum import Enum, auto
from typing import Protocol, TypeVar

from dls_ik.errors import StaleTargetError

READING_TIMEOUT = 1.0  # [s] maximum age of joint states, unless joint states are required
DRAIN_TIME = 0.1  # [s] time after a stall until the queued messages are handled
SETTLE_TIME = DRAIN_TIME + READING_TIMEOUT  # [s] time after a stall in which delays are checked
MIN_STALL_PERIODS = 4.0  # a shorter gap between cycles is no stall, whatever target_timeout is
MAX_CLOCK_DRIFT = 1e-3  # [s/s] relative drift of two clocks
MAX_CLOCK_LEAD = 0.1  # [s] a clock that is farther ahead is not synchronised with this machine
OTHER_CLOCK_AGE = 1e8  # [s], three years: an older stamp is from a clock with another origin
RECORDING_AGE = 60.0  # [s] an older stamp is from a recording, as no network delay is so long


class Freshness(Enum):
    """How to treat a message, or the joint positions of an arm."""

    ACCEPT = auto()  # use the message
    IGNORE = auto()  # continue without the message
    WAIT = auto()  # send no command until a recent message arrives


class TimedReading(Protocol):
    """Measured position of a joint, with the times of its message on the steady clock."""

    @property
    def time(self) -> float:
        """Time of arrival [s]."""

    @property
    def sent(self) -> float:
        """Estimated time of sending [s]."""


Reading = TypeVar("Reading", bound=TimedReading)


def min_stall(target_timeout: float, period: float) -> float:
    """Return the time between two cycles [s] above which the loop counts as stalled.

    Args:
        target_timeout: Parameter `target_timeout` of the node [s].
        period: Period of the loop [s].
    """
    return max(target_timeout, MIN_STALL_PERIODS * period)


def target_freshness(
    since_stall: float, waited: float, transit: float | None, target_timeout: float
) -> Freshness:
    """Return ACCEPT or IGNORE for a target, as in columns 2 and 3 of the module's table.

    Args:
        since_stall: Time since the last stall ended [s]; infinite if there was none.
        waited: Time since the node received the target [s].
        transit: Time between sending and receiving [s]; None if unknown; 0 for a target with a
            stamp, whose age the controller checks.
        target_timeout: Parameter `target_timeout` of the node [s].
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
    """Return the accepted readings of one joint, as in column 4 of the module's table.

    Args:
        readings: All stored readings of the joint.
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
    """Return the treatment of the joint positions of an arm, as in column 5 of the module's table.

    Args:
        since_stall: Time since the last stall ended [s]; infinite if there was none.
        is_complete: Whether every joint has an accepted reading.
        was_accepted: Whether joint positions were accepted in an earlier cycle, and the driver has
            not timed out since then.
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
    """Return whether an arm that has not started yet may start, and with which joint positions.

    Args:
        is_complete: Whether every joint has an accepted reading.
        is_required: Whether the arm must start at measured joint positions.
        is_unpublished: Whether the commands are for display only, and no driver publishes joint
            states.

    Returns:
        ACCEPT if the arm may start, at its measured positions if they are known; IGNORE if the arm
        may start without measured positions; WAIT if the arm must not start yet.
    """
    if is_complete or not is_required:
        return Freshness.ACCEPT
    return Freshness.IGNORE if is_unpublished else Freshness.WAIT


def target_age(stamp: int, clock: int, waited: float, ages_in_buffer: bool) -> float:
    """Return the age of a target [s], which the controller compares with `target_timeout`.

    Args:
        stamp: Stamp of the target [ns]; 0 if the target has no stamp.
        clock: Current ROS time [ns]; 0 if simulated time is used and not known yet.
        waited: Time since the node received the target [s].
        ages_in_buffer: Whether `waited` counts as age: True for a twist; False for a pose, which
            may wait in the buffer until the arm may start.

    Raises:
        StaleTargetError: If the target has a stamp, but ROS time is not known yet.
    """
    if stamp and not clock:
        raise StaleTargetError(
            "its age is unknown: it has a stamp, but use_sim_time is true and nothing was received "
            "on /clock yet; publish /clock, or send targets without stamps"
        )
    age_on_arrival = 1e-9 * (clock - stamp) - waited if stamp else 0.0
    return age_on_arrival + waited if ages_in_buffer else age_on_arrival


def stamp_advice(age: float) -> str:
    """Return a text for messages: why a stamp probably is too old or in the future, and a remedy.

    Args:
        age: Age of the target by its stamp [s]; below 0 if the stamp is in the future.
    """
    if age > OTHER_CLOCK_AGE:
        return (
            "its stamp is from a clock that starts at 0, such as simulated time, a recording or "
            "the time since boot; send a stamp of 0, which means now, or start this node with "
            "use_sim_time:=true and publish /clock"
        )
    if age < -OTHER_CLOCK_AGE:
        return (
            "its stamp is from the system clock, but this node uses simulated time (use_sim_time);"
            " stamp targets with the time of /clock, or send a stamp of 0, which means now"
        )
    if age > RECORDING_AGE:
        return (
            "it may be from a recording, because replayed messages keep their stamps; replay the "
            "recording with --clock and start this node with use_sim_time:=true, or send a stamp "
            "of 0, which means now"
        )
    return (
        "the message was delayed, or the clocks of the two machines differ; synchronise them, or "
        "send a stamp of 0, which means now"
    )


class DelayEstimator:
    """Estimates the delay of each message relative to the fastest message so far.

    The clocks of publisher and receiver may differ, because only differences between the apparent
    transit times of messages are used. If publishers with different clocks share a topic, only the
    messages of the publisher whose clock is farthest ahead appear without delay.
    """

    def __init__(self) -> None:
        # Smallest difference of receive time and send time, which are from different clocks [s].
        self._min_transit, self._last_received = math.inf, -math.inf

    def delay(self, sent: int, received: float) -> float:
        """Return how much longer a message was in transit than the fastest message [s].

        Args:
            sent: Send time on the clock of the publisher [ns]; 0 if unknown.
            received: Time of arrival on a steady clock [s].

        Returns:
            Infinite for the first message; 0 if the send time is unknown.
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
        sent: Send time on the system clock of the publisher [ns]; 0 if unknown.
        clock: System time of this machine when the message arrived [ns].
        relative: Delay relative to the fastest message [s], see :class:`DelayEstimator`. This is
            the result if the publisher's clock is more than 0.1 s ahead of this machine.
    """
    if not sent:
        return None
    absolute = 1e-9 * (clock - sent)
    return min(relative, max(absolute, 0.0)) if absolute >= -MAX_CLOCK_LEAD else relative
