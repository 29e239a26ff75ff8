# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Checker of commands: all limits, by divided differences over the due times."""

from typing import NamedTuple

import numpy as np

WORDS = ("velocity", "acceleration", "jerk")


class Limits(NamedTuple):
    """Limits of the commands of a robot: (n,) or numbers; infinite: no limit."""

    lower: np.ndarray
    upper: np.ndarray
    velocity: np.ndarray
    acceleration: np.ndarray = np.inf
    jerk: np.ndarray = np.inf

    @classmethod
    def of(cls, robot, acceleration=np.inf, jerk=np.inf):
        return cls(robot.lower, robot.upper, robot.velocity, acceleration, jerk)


def violations(times, q, limits, rounding=1e-9):
    """Return descriptions of all violations by commands (m, n) due at times (m,) [s].

    A derivative is the divided difference of as many commands as it takes: the mean of the true one
    over their span for any path through them, whatever the times between them are. A joint that
    was beyond a position limit may not go farther.
    """
    times, q = np.asarray(times, float), np.asarray(q, float)
    found = []
    if not np.isfinite(q).all():
        return ["a command is not finite"]
    low, high = np.minimum(q[:-1], limits.lower), np.maximum(q[:-1], limits.upper)
    over = np.maximum(low - q[1:], q[1:] - high)
    found += _worst("position", over, np.full(over.shape, rounding), times[1:])
    steps = np.diff(times)
    if (steps <= 0.0).any():
        k = int(np.argmin(steps))
        return [*found, f"command {k + 1} is due {steps[k]:.3g} s after the one before"]
    divided = q
    for order, (word, most) in enumerate(zip(WORDS, limits[2:], strict=True), 1):
        if len(q) <= order:
            break
        span = (times[order:] - times[:-order])[:, None]
        divided = order * np.diff(divided, axis=0) / span
        noise = (
            2.0**order
            * rounding
            / np.minimum.reduce([steps[i : len(steps) - order + 1 + i] for i in range(order)])[
                :, None
            ]
            ** order
        )
        most = np.broadcast_to(most, divided.shape)
        found += _worst(word, np.abs(divided), most * (1.0 + 1e-6) + noise, times[order:])
    return found


def _worst(word, seen, most, times):
    with np.errstate(invalid="ignore"):
        beyond = seen > most
    if not beyond.any():
        return []
    share = np.where(beyond, seen / np.maximum(most, 1e-300), 0.0)
    k, j = np.unravel_index(int(np.argmax(share)), share.shape)
    return [
        f"{word} of joint {j}: {seen[k, j]:.6g}, allowed {most[k, j]:.6g}, at {times[k]:.6f} s "
        f"({int(beyond.any(axis=1).sum())} of {len(seen)} commands)"
    ]


def assert_within(times, q, limits, rounding=1e-9):
    """Check that every command keeps every limit."""
    assert not (found := violations(times, q, limits, rounding)), "; ".join(found)


def tail_violations(before, points, limits, rounding=1e-9):
    """Return descriptions of all violations along the stop in a trajectory.

    Args:
        before: times (k,) and positions (k, n) of the commands that the trajectory goes on from.
        points: times (m,), positions (m, n) and velocities (m, n) of its points, the first of
            which is the command itself.
    """
    times, q, v = map(np.asarray, points)
    path = np.concatenate([before[0], times]), np.vstack([before[1], q])
    found = violations(*path, limits, rounding)
    if v[-1].any():
        found.append(f"the last point moves at {np.abs(v[-1]).max():.3g}")
    change = np.abs(np.diff(v, axis=0)) / np.diff(times)[:, None]
    limit = np.broadcast_to(limits.acceleration, change.shape)
    noise = 2.0 * rounding * (1.0 + limit) / np.diff(times)[:, None]  # times are whole nanoseconds
    most = limit * (1.0 + 1e-6) + noise
    found += _worst("change of the velocities told", change, most, times[1:])
    return found


PAUSE = 1.8  # periods between commands after which a pause is possible, with stamps that are off


def assert_told(times, q, v, limits, jitter):
    """Check published commands with velocities, whose stamps are off by at most `jitter` [s].

    They come in order and keep the limits of position and velocity. The velocities, means of
    cycles, change from one to the next within the limit of acceleration; with a limit of jerk they
    lie half a cycle back.
    """
    assert np.isfinite(q).all()
    assert (q >= limits.lower - 1e-9).all()
    assert (q <= limits.upper + 1e-9).all()
    assert (np.abs(v) <= limits.velocity * (1.0 + 1e-6)).all()
    assert (np.diff(times) > 0.0).all(), "no command is older than the one before"
    elapsed = np.diff(times)[:, None] + jitter
    between = np.maximum(elapsed[1:], 0.5 * (elapsed[1:] + elapsed[:-1]))
    most = np.broadcast_to(limits.acceleration, q.shape[1:]) * between
    changes = np.abs(np.diff(v[1:], axis=0))
    # Single commands do not continue during a longer pause: the next one starts from rest.
    is_pause = np.diff(times)[1:, None] > PAUSE * np.median(np.diff(times))
    changes = np.where(is_pause, np.minimum(changes, np.abs(v[2:])), changes)
    assert_steps(changes, most, between, "change of velocity")


def assert_steps(changes, most, elapsed, what):
    """Check that no change (m, n) exceeds its bound."""
    if not len(changes):
        return
    worst = np.abs(changes) / np.broadcast_to(most, changes.shape)
    k, j = np.unravel_index(np.argmax(worst), worst.shape)
    assert worst[k, j] <= 1.0 + 1e-6, (
        f"{what} of joint {j + 1}: {changes[k, j]:.4g} in {elapsed[k, 0]:.4f} s, "
        f"command {k} of {len(changes)}, {worst[k, j]:.2f} of what is allowed"
    )
