"""Whole streams: a path of poses until the last is reached, or a twist for a time."""

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.client.deaf import deaf
from dls_ik.ros.client.heard import UNKNOWN, Heard, Row
from dls_ik.ros.client.streamer import Streamer

NEW = 0.3  # [s] after which what the node says is about the targets of this stream
LASTING = 2.0  # [s] that a state without hope lasts until it is given up
SILENCE = 5.0  # [s] after which the node counts as gone
SMALL = 1e-4  # [m, rad] error that counts as reached where no state says so
REFUSALS = ("REFUSED", "FAULT", "PAUSED", "NO_ROBOT")
HOPELESS = ("UNREACHABLE", "STALLED")

Tell = Callable[[], None]


class Outcome(NamedTuple):
    """How a stream ended; times on the steady clock [s]."""

    reached: bool | None  # the last pose; None of a twist
    refused: str  # why the node does not follow; empty where it does
    lost: bool  # the node has gone
    interrupted: bool
    begin: float
    end: float
    sent: int
    rows: list[Row]  # that came meanwhile


def stream_poses(
    streamer: Streamer,
    times: Array,
    poses: Array,
    frame: str,
    rate: float,
    patience: float,
    tell: Tell,
) -> Outcome:
    """Send poses (k, 4, 4) at times [s], then the last one on until the arm is there.

    Args:
        rate: of sending the last one on [Hz].
        patience: for that [s].
        tell: called after each message.
    """
    last = float(times[-1])

    def messages() -> Iterator[float]:
        for t, T in zip(times.tolist(), poses, strict=True):
            yield t
            streamer.send_pose(T, frame)
        k = 0
        while True:
            k += 1
            yield last + k / rate
            streamer.send_pose(poses[-1], frame)

    return _stream(streamer, messages(), last, last + patience, tell, waits=True)


def stream_twist(
    streamer: Streamer, V: Sequence[float], frame: str, rate: float, duration: float, tell: Tell
) -> Outcome:
    """Send a twist (6,) [m/s, rad/s] for a time [s], then stop the arm."""

    def messages() -> Iterator[float]:
        for k in range(max(1, round(duration * rate))):
            yield k / rate
            streamer.send_twist(V, frame)
        yield duration

    return _stream(streamer, messages(), duration, np.inf, tell, waits=False)


def _stream(
    streamer: Streamer,
    messages: Iterator[float],
    last: float,
    latest: float,
    tell: Tell,
    waits: bool,
) -> Outcome:
    """Run through messages at their times; from `last` on the arm may be there, until `latest`."""
    heard = streamer.heard
    first, streamer.sent = len(heard.rows), 0
    begin = time.monotonic()
    reached, refused, lost, interrupted = False, "", False, False
    try:
        for t in messages:
            _sleep_until(begin + t)
            tell()
            refused = _refusal(heard, begin)
            lost = time.monotonic() > max(begin, heard.rows[-1].time) + SILENCE
            reached = waits and _is_reached(heard, begin + last)
            hopeless = waits and _is_hopeless(heard, begin + last)
            if refused or lost or reached or hopeless or t > latest:
                break
    except KeyboardInterrupt:
        interrupted = True
    end = time.monotonic()
    rows = heard.rows[first:]
    if not reached:
        _stop(streamer)
    end_of_path = reached if waits else None
    return Outcome(end_of_path, refused, lost, interrupted, begin, end, streamer.sent, rows)


def _stop(streamer: Streamer) -> None:
    """Stop the arm; another Ctrl-C meanwhile must not keep it from that."""
    with deaf():
        streamer.stop()


def _sleep_until(moment: float) -> None:
    left = moment - time.monotonic()
    if left > 0.0:
        time.sleep(left)


def _refusal(heard: Heard, begin: float) -> str:
    if heard.state not in REFUSALS or heard.state_time < begin + NEW:
        return ""
    return heard.words or heard.state


def _is_reached(heard: Heard, since: float) -> bool:
    row = heard.rows[-1]
    if row.time < since + NEW:
        return False
    if heard.state == UNKNOWN:
        return max(row.errors()) < SMALL
    return heard.state == "REACHED"


def _is_hopeless(heard: Heard, since: float) -> bool:
    """Whether the node has said for a while that it comes no nearer to the last pose."""
    now = time.monotonic()
    if now < since + LASTING:
        return False
    recent = list(takewhile(lambda row: row.time > now - LASTING, reversed(heard.rows)))
    return bool(recent) and all(row.state in HOPELESS for row in recent)
