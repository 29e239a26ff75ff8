# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison of measured joint positions with commands, to find faults, rest and lag of the arm."""

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.options import ControllerOptions

LONGEST_LAG = 1.0  # [s] largest lag that can be found
WINDOW = 4.0  # [s] duration of the recent motion in which a lag is measured
MOST = 4000  # maximum number of recorded commands, and of recorded measurements
SAMPLES = 1000  # commands and measurements used to find a lag; more would delay other threads
FEWEST = 20  # minimum number of measurements to find a lag
MOTION = 0.02  # [rad or m] a lag is found from joints that move more than this
UNEXPLAINED = 0.3  # root mean square residual, as a share of the motion, above which no lag fits
FACTOR, OFFSET = 1.5, 0.05  # suggested max_deviation = FACTOR * speed * lag + OFFSET [rad or m]
NOT_YET = math.inf  # [s] placeholder for the time of the start position, until the first command
INSTANT = 1e-6  # [s] recorded time between the start position and the first command
SLOW = 0.01  # [rad/s or m/s] joint speed below which a lag does not explain a deviation
AT_REST = 0.5  # [s] duration without a new target and without motion after which the arm rests
HELD_STILL = 0.01  # [rad or m] motion during a rest up to which the arm counts as held in place


class Rest(NamedTuple):
    """Record of the rest of the arm; decides whether a measurement replaces the command.

    To restart means to set the command to the measured joint positions. The command restarts until
    the first target arrives, and when a target ends a rest. The command does not restart shortly
    after a motion, because the arm may still be moving. Nor does it restart if the arm has not
    moved since it came to rest: the last command then holds the arm, up to the steady-state error
    of the drives.
    """

    starts_anew: bool = False  # whether the next measurement of a resting arm restarts the command
    last_event: float = -math.inf  # [s] time of the last target or motion
    last_motion: float = -math.inf  # [s] time of the last motion
    measured: Array | None = None  # (n,) measurement when the arm came to rest [rad or m]

    def with_target(self, now: float) -> "Rest":
        """Return the state after a target; if the target ends a rest, the command will restart."""
        starts_anew = self.starts_anew or now - self.last_event > AT_REST
        return self._replace(starts_anew=starts_anew, last_event=now)

    def with_motion(self, now: float, has_target: bool) -> "Rest":
        """Return the state after motion of the command.

        A motion toward a target cancels a pending restart.
        """
        return Rest(self.starts_anew and not has_target, now, now)

    def restarted(self) -> "Rest":
        """Return the state in which the next measurement restarts the command in any case.

        The command then restarts even if the arm has not moved since it came to rest.
        """
        return self._replace(starts_anew=True, measured=None)

    def with_measurement(
        self, measured: Array, now: float, moves: bool, waits: bool
    ) -> tuple["Rest", bool]:
        """Return the state after a measurement, and whether the command restarts at it.

        A restart for a target begins a new rest, in which the command holds the arm. If further
        targets end that rest, the command does not restart again; otherwise measurement noise and
        the error of the drives would move the command with each target.

        Args:
            measured: (n,) joint positions [rad or m].
            now: Current time [s].
            moves: Whether the command moves.
            waits: Whether the controller is still waiting for its first target.
        """
        rest = now - self.last_motion
        if moves:
            return self._replace(measured=None), False
        if rest <= 0.5 * AT_REST:
            return self, False
        if rest <= AT_REST:
            held = None if self.starts_anew else measured.copy()
            return self._replace(measured=held), False
        is_start = (waits or self.starts_anew) and not self._is_held(measured)
        if not is_start:
            return self._replace(starts_anew=False), False
        if waits:
            return self._replace(starts_anew=False, measured=None), True
        return Rest(False, now, now, measured.copy()), True

    def _is_held(self, measured: Array) -> bool:
        """Return whether the arm has not moved since it came to rest, by its measurement (n,)."""
        before = self.measured
        return before is not None and float(np.abs(measured - before).max()) <= HELD_STILL


class LastMeasurement(NamedTuple):
    """Last measurement received; its stamp may be older than the stamps of earlier measurements."""

    oldest: float = -math.inf  # [s] earliest measurement time among the joints
    is_new: bool = False  # whether a newer measurement has not yet been compared with its command


class Supervision:
    """Record of recent commands and measurements, with their times on the controller's clock.

    Args:
        robot: Robot that is supervised.
        options: Options of the controller: `max_deviation` and `measurement_timeout`.
    """

    def __init__(self, robot: RobotModel, options: ControllerOptions) -> None:
        self._robot, self._options = robot, options
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MOST)  # time [s], command (n,)
        self._measured: deque[tuple[Array, Array]] = deque(maxlen=MOST)  # times (n,) [s], q (n,)
        self._last = LastMeasurement()
        self._expected_since = -math.inf  # [s] no fault until a timeout after this time
        self._awaits = False  # whether no measurement has arrived since a gap in the cycles
        self._lag = math.nan  # [s] last lag found

    def restart(self, start: Array) -> None:
        """Clear the recorded commands; the next command starts at rest at `start` (n,)."""
        self._commands.clear()
        self._commands.append((NOT_YET, start))

    def take_over(self, other: "Supervision") -> None:
        """Copy the record of another supervision of the same joints."""
        self._commands, self._measured = other._commands.copy(), other._measured.copy()
        self._last, self._lag = other._last._replace(is_new=self._last.is_new), other._lag
        self._expected_since, self._awaits = other._expected_since, other._awaits

    def expect_measurements(self, since: float) -> None:
        """Excuse missing measurements until `measurement_timeout` after the time `since` [s]."""
        self._expected_since, self._awaits = since, True

    def forget_gap(self) -> None:
        """Wait for measurements without a time limit, as after the start."""
        self._awaits = False

    def is_overdue(self, now: float) -> bool:
        """Return whether measurements have been missing for too long after a gap in the cycles."""
        return self._awaits and not self.is_silence_excused(now)

    def is_silence_excused(self, now: float) -> bool:
        """Return whether missing measurements are excused at time `now` [s].

        Missing measurements are excused until `measurement_timeout` after the time given to
        :meth:`expect_measurements`.
        """
        return now - self._expected_since <= self._options.measurement_timeout

    def record_command(self, now: float, q: Array) -> None:
        """Record a command (n,) and its time [s]; the array must not change afterwards."""
        if self._commands and self._commands[0][0] == NOT_YET:
            self._commands[0] = now - INSTANT, self._commands[0][1]
        self._commands.append((now, q))

    def record_measurement(self, now: float, q: Array, age: float | Array) -> None:
        """Record a measurement.

        Args:
            now: Current time [s].
            q: (n,) measured joint positions [rad or m].
            age: Age of the measurement [s], or one age for each joint (n,).
        """
        self._awaits = False
        times = now - np.broadcast_to(np.asarray(age, float), q.shape)
        is_newer = not self._measured or bool((times > self._measured[-1][0]).any())
        if is_newer:
            self._measured.append((times, q))
        self._last = LastMeasurement(float(times.min()), is_newer or self._last.is_new)

    def fault(self, now: float, is_measured: bool, command: Array) -> str:
        """Return the message of a fault, or an empty string without a fault.

        Each measurement is compared with the command at the time of the measurement. An old
        measurement from a driver that stopped publishing is therefore no deviation.

        Args:
            now: Current time [s].
            is_measured: Whether there is a measurement within `measurement_timeout`.
            command: (n,) current command [rad or m]; differs from the last recorded command if the
                arm has continued on its stop path.
        """
        if not is_measured and self.is_silence_excused(now):
            return ""
        if not is_measured:
            words = f"no joint states received for {self._options.measurement_timeout:g} s"
            last = f", the last {now - self._last.oldest:.3g} s ago"
            return words if math.isinf(self._last.oldest) else words + last
        if not self._last.is_new:
            return ""
        self._last = self._last._replace(is_new=False)
        times, q = self._measured[-1]
        then = self._commands_at(times, q, command)
        if then is None:
            return ""
        deviation = np.abs(_difference(q, then, self._robot.continuous))
        worst = int(np.argmax(deviation))
        if deviation[worst] <= self._options.max_deviation:
            return ""
        return (
            f"joint {self._robot.joint_names[worst]!r} deviates from its command by "
            f"{deviation[worst]:.3g} {self._robot.units[worst]}, more than max_deviation = "
            f"{self._options.max_deviation:g}: measured {now - times[worst]:.3f} s ago at "
            f"{q[worst]:.4g}, commanded {then[worst]:.4g}"
            f"{self._advice(worst, times[worst], q[worst], deviation[worst])}"
        )

    def lag(self) -> float:
        """Return the lag of the arm behind its commands [s]; NaN if not known yet.

        The lag is the time shift for which recent measurements best match the commands. If no time
        shift fits, the last lag found is returned. This call takes a few milliseconds in short
        steps and is thread-safe.
        """
        commands, measured = list(self._commands), list(self._measured)
        is_whole = len(commands) < MOST
        commands = commands[:: 1 + len(commands) // SAMPLES]
        measured = measured[:: 1 + len(measured) // SAMPLES]
        found = _best_lag(commands, measured, self._robot.continuous, is_whole)
        if not math.isnan(found):
            self._lag = found
        return self._lag

    def _commands_at(self, times: Array, q: Array, command: Array) -> Array | None:
        """Return the command (n,) of each joint at its measurement time; None if not known.

        At a time between two commands, the command is taken as the value between both commands that
        is closest to the measurement.

        Args:
            times: (n,) measurement times of the joints [s].
            q: (n,) measured joint positions [rad or m].
            command: (n,) current command [rad or m].
        """
        if not self._commands or self._commands[0][0] > times.min():
            return None
        found = np.empty(len(times))
        for time in set(times.tolist()):
            at = times == time
            before, after = self._around(time, command)
            near = before + _difference(q, before, self._robot.continuous)
            found[at] = np.clip(near, np.minimum(before, after), np.maximum(before, after))[at]
        return found

    def _around(self, time: float, command: Array) -> tuple[Array, Array]:
        """Return the last command (n,) at or before a time [s], and the next command (n,).

        If no recorded command follows, the current command `command` (n,) is the next command.
        """
        after = command
        for t, q in reversed(self._commands):
            if t <= time:
                return q, after
            after = q
        return after, after

    def _advice(self, joint: int, time: float, q: float, deviation: float) -> str:
        """Return advice for a message if a joint deviates because it lags, else an empty string.

        Args:
            joint: Index of the joint.
            time: Measurement time [s].
            q: Measured position [rad or m].
            deviation: Deviation of the measurement from the command [rad or m].
        """
        path = [(t, float(command[joint])) for t, command in self._commands if t <= time]
        if len(path) < 2:
            return ""
        (t0, c0), (t1, c1) = path[-2:]
        speed = abs(c1 - c0) / (t1 - t0) if t1 > t0 else 0.0
        if speed < SLOW:
            return ""
        passed = [t for t, command in path if (command - q) * (c1 - q) <= 0.0]
        lag = time - (passed[-1] if passed else path[0][0])
        limit = float(self._robot.velocity[joint])
        fastest = limit if math.isfinite(limit) else speed
        enough = max(suggested_deviation(fastest, lag), FACTOR * deviation)
        return (
            f"; the joint moves at {speed:.2g} {self._robot.units[joint]}/s and lags by at least "
            f"{lag:.2g} s: if the arm always lags this much, set max_deviation to {enough:.2g} or "
            f"more ({FACTOR:g} * speed limit * lag + {OFFSET:g}; /diagnostics shows the lag)"
        )


def suggested_deviation(speed: float, lag: float) -> float:
    """Return a suggested `max_deviation` [rad or m] for a speed [rad/s or m/s] and a lag [s]."""
    return FACTOR * speed * lag + OFFSET


def _difference(a: Array, b: Array, continuous: NDArray[np.bool_]) -> Array:
    """Return a - b (..., n); modulo 2 pi for continuous joints, as drivers may count turns."""
    difference = a - b
    turned = np.remainder(difference + math.pi, 2 * math.pi) - math.pi
    return np.where(continuous, turned, difference)


def _best_lag(
    commands: list[tuple[float, Array]],
    measured: list[tuple[Array, Array]],
    continuous: NDArray[np.bool_],
    is_whole: bool,
) -> float:
    """Return the lag [s] of measurements behind commands; NaN if no lag can be found.

    Args:
        commands: Times [s] and commands (n,).
        measured: Measurement times (n,) [s] and measurements (n,).
        continuous: (n,) whether each joint turns without limits.
        is_whole: Whether no command was dropped from the record, so that the arm rested before the
            first command.
    """
    if len(commands) < 2 or not measured:
        return math.nan
    t, c = np.array([time for time, _ in commands]), np.array([q for _, q in commands])  # (k, n)
    longest = LONGEST_LAG if is_whole else min(LONGEST_LAG, 0.5 * float(t[-1] - t[0]))
    begin = max(t[0] if is_whole else t[0] + longest, t[-1] - WINDOW)
    kept = [(times, q) for times, q in measured if times.min() >= begin]
    kept = kept[:: 1 + len(kept) // 200]
    if len(kept) < FEWEST:
        return math.nan
    tm, m = np.array([times for times, _ in kept]), np.array([q for _, q in kept])  # (s, n)
    recent = t >= begin
    joints = np.flatnonzero(np.ptp(c[recent], axis=0) > MOTION)
    if len(joints) == 0:
        return math.nan
    motion = math.sqrt(float(np.var(c[recent][:, joints], axis=0).sum()))

    def error(lag: float) -> float:
        then = np.stack([np.interp(tm[:, j] - lag, t, c[:, j]) for j in joints], axis=1)
        left = _difference(m[:, joints], then, continuous[joints])
        return math.sqrt(float((left**2).sum(axis=1).mean()))

    found = _minimum(error, longest)
    is_edge = found > 0.98 * longest
    return math.nan if is_edge or error(found) > UNEXPLAINED * motion else found


def _minimum(error: Callable[[float], float], longest: float) -> float:
    """Return the lag [s], at most `longest`, that minimises an error: grid, then ternary search."""
    grid = np.linspace(0.0, longest, 51)
    best = int(np.argmin([error(lag) for lag in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(12):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, b) if error(a) <= error(b) else (a, high)
    return 0.5 * float(low + high)
