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
LAG_WINDOW = 4.0  # [s] duration of the recent motion in which a lag is measured
MAX_RECORDED_SAMPLES = 4000  # maximum number of recorded commands, and of recorded measurements
# commands and measurements used to find a lag; more would delay other threads
MAX_LAG_SAMPLES = 1000
MIN_LAG_SAMPLES = 20  # minimum number of measurements to find a lag
MIN_LAG_MOTION = 0.02  # [rad or m] a lag is found from joints that move more than this
# root mean square residual, as a share of the motion, above which no lag fits
MAX_UNEXPLAINED_SHARE = 0.3
FACTOR, OFFSET = 1.5, 0.05  # suggested max_deviation = FACTOR * speed * lag + OFFSET [rad or m]
NOT_YET = math.inf  # [s] placeholder for the time of the start position, until the first command
INSTANT = 1e-6  # [s] recorded time between the start position and the first command
MIN_LAG_SPEED = 0.01  # [rad/s or m/s] joint speed below which a lag does not explain a deviation
AT_REST = 0.5  # [s] duration without a new target and without motion after which the arm rests
HELD_STILL = 0.01  # [rad or m] motion during a rest up to which the arm counts as held in place
MAX_DEVIATION_AGE = 0.25  # [s] age above which a measurement gives no deviation
REST_TIME = 0.3  # [s] a command that has not changed for this time is at rest


class Rest(NamedTuple):
    """Record of when the arm came to rest; decides whether a measurement replaces the command.

    "The command restarts" means that the command is set to the measured joint positions. It
    restarts until the first target arrives, and when a target arrives after a rest. It does not
    restart shortly after a motion, because the arm may still be moving. Nor does it restart if the
    arm has not moved since it came to rest, or if the measurement is close to the command: the last
    command then still holds the arm in place, and the measurement differs only by noise and by the
    steady-state error of the drives.
    """

    starts_anew: bool = False  # whether the next measurement of a resting arm restarts the command
    last_event: float = -math.inf  # [s] time of the last target or motion
    last_motion: float = -math.inf  # [s] time of the last motion
    measured: Array | None = None  # (n,) measurement when the arm came to rest [rad or m]

    def with_target(self, now: float) -> "Rest":
        """Return the record after a target arrived at the time `now` [s].

        If the target ends a rest, the next measurement will restart the command.
        """
        starts_anew = self.starts_anew or now - self.last_event > AT_REST
        return Rest(starts_anew, now, self.last_motion, self.measured)

    def with_motion(self, now: float, has_target: bool) -> "Rest":
        """Return the record after a cycle in which the command moved.

        A motion toward a target cancels a pending restart of the command.

        Args:
            now: Current time [s].
            has_target: Whether the command moved toward a target.
        """
        return Rest(self.starts_anew and not has_target, now, now)

    def restarted(self) -> "Rest":
        """Return a record with which the next measurement of the resting arm restarts the command.

        The command restarts even if the arm has not moved since it came to rest, unless the
        measurement is close to the command.
        """
        return self._replace(starts_anew=True, measured=None)

    def with_measurement(
        self, measured: Array, command: Array, now: float, moves: bool, waits: bool
    ) -> tuple["Rest", bool]:
        """Return the record after a measurement, and whether the command restarts at it.

        After a restart for a target, the command holds the arm in place. If the arm then rests and
        further targets arrive, the command does not restart again; otherwise measurement noise and
        the steady-state error of the drives would move the command with each target. For the same
        reason, if no measurement of the resting arm is recorded, the command does not restart if it
        is close to the measurement.

        Args:
            measured: (n,) measured joint positions [rad or m].
            command: (n,) last command [rad or m].
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
        held_at = command if self.measured is None and not waits else self.measured
        is_held = held_at is not None and float(np.abs(measured - held_at).max()) <= HELD_STILL
        is_start = (waits or self.starts_anew) and not is_held
        if not is_start:
            return self._replace(starts_anew=False), False
        if waits:
            return self._replace(starts_anew=False, measured=None), True
        return Rest(False, now, now, measured.copy()), True


class LastMeasurement(NamedTuple):
    """Last received measurement, which is not necessarily the newest measurement."""

    oldest: float = -math.inf  # [s] earliest measurement time among the joints
    is_new: bool = False  # whether the newest measurement was not compared with its command yet


class Supervision:
    """Supervision of the arm by a record of recent commands and measurements with their times.

    Args:
        robot: Robot that is supervised.
        options: Options of the controller: `max_deviation` and `measurement_timeout`.
    """

    def __init__(self, robot: RobotModel, options: ControllerOptions) -> None:
        self._robot, self._options = robot, options
        # time [s], command (n,)
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MAX_RECORDED_SAMPLES)
        # times (n,) [s], q (n,)
        self._measured: deque[tuple[Array, Array]] = deque(maxlen=MAX_RECORDED_SAMPLES)
        self._last = LastMeasurement()
        # [s] Missing measurements are no fault until `measurement_timeout` after this time.
        self._expected_since = -math.inf
        self._awaits = False  # whether no measurement has arrived since a gap in the cycles
        self._lag = math.nan  # [s] last lag that was found
        # [s] Start and end of the time in which :meth:`_rests` found all commands to be equal
        self._still = math.inf, -math.inf

    def restart(self, start: Array) -> None:
        """Clear the recorded commands, and record joint positions (n,) at which the arm rests."""
        self._commands.clear()
        self._commands.append((NOT_YET, start))
        self._still = math.inf, -math.inf

    def take_over(self, other: "Supervision") -> None:
        """Copy the record of another instance, which supervises the same joints."""
        self._commands, self._measured = other._commands.copy(), other._measured.copy()
        self._last, self._lag = other._last._replace(is_new=self._last.is_new), other._lag
        self._expected_since, self._awaits = other._expected_since, other._awaits
        self._still = other._still

    def expect_measurements(self, since: float) -> None:
        """Tolerate missing measurements until `measurement_timeout` after the time `since` [s]."""
        self._expected_since, self._awaits = since, True

    def forget_gap(self) -> None:
        """Wait for measurements without a time limit, as after the start."""
        self._awaits = False

    def is_overdue(self, now: float) -> bool:
        """Return whether measurements have been missing for too long after a gap in the cycles."""
        return self._awaits and not self.is_silence_excused(now)

    def is_silence_excused(self, now: float) -> bool:
        """Return whether missing measurements are tolerated at time `now` [s].

        They are tolerated until `measurement_timeout` after the time given to
        :meth:`expect_measurements`.
        """
        return now - self._expected_since <= self._options.measurement_timeout

    def record_command(self, now: float, q: Array) -> None:
        """Record a command (n,) and its time [s]; the array must not change afterwards."""
        if self._commands and self._commands[0][0] == NOT_YET:
            self._commands[0] = now - INSTANT, self._commands[0][1]
        self._commands.append((now, q))

    def record_measurement(self, now: float, q: Array, age: float | Array) -> None:
        """Record a measurement that was received in this cycle.

        Args:
            now: Current time [s].
            q: (n,) measured joint positions [rad or m].
            age: Time since the measurement [s], for all joints or one for each joint (n,).
        """
        self._awaits = False
        times = now - np.broadcast_to(np.asarray(age, float), q.shape)
        is_newer = not self._measured or bool((times > self._measured[-1][0]).any())
        if is_newer:
            self._measured.append((times, q))
        self._last = LastMeasurement(float(times.min()), is_newer or self._last.is_new)

    def fault(self, now: float, is_measured: bool, command: Array) -> str:
        """Return a message if measurements are missing or deviate from commands, else "".

        Each measurement is compared with the command at the time of the measurement. An old
        measurement of a driver that has stopped publishing is therefore not a deviation.

        Args:
            now: Current time [s].
            is_measured: Whether a measurement was received within `measurement_timeout`.
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
        """Return the time by which the arm lags behind its commands [s]; NaN if not known yet.

        The lag is the time shift with which the commands match recent measurements best. If no time
        shift fits, the last lag that was found is returned. The call takes a few milliseconds and
        is thread-safe.
        """
        commands, measured = list(self._commands), list(self._measured)
        is_whole = len(commands) < MAX_RECORDED_SAMPLES
        commands = commands[:: 1 + len(commands) // MAX_LAG_SAMPLES]
        measured = measured[:: 1 + len(measured) // MAX_LAG_SAMPLES]
        found = _best_lag(commands, measured, self._robot.continuous, is_whole)
        if not math.isnan(found):
            self._lag = found
        return self._lag

    def deviation(self, now: float, command: Array) -> Array | None:
        """Return the command minus the last measurement (n,) [rad or m]; None if unknown.

        The measurement is compared with the command at the time of the measurement minus the lag of
        the arm. If the lag is not known yet, the result is None while the command moves.

        Args:
            now: Current time [s].
            command: (n,) current command [rad or m].
        """
        if not self._measured:
            return None
        times, q = self._measured[-1]
        is_lag_known = not math.isnan(self._lag)
        if now - times.min() > MAX_DEVIATION_AGE or not (is_lag_known or self._rests(now)):
            return None
        then = self._commands_at(times - (self._lag if is_lag_known else 0.0), q, command)
        return None if then is None else _difference(then, q, self._robot.continuous)

    def _rests(self, now: float) -> bool:
        """Return whether the command has not changed for REST_TIME.

        Commands that an earlier call has found to be equal are not compared again, because a call
        in each cycle would otherwise compare all commands of REST_TIME.
        """
        newest, command = self._commands[-1] if self._commands else (NOT_YET, None)
        if command is None or newest == NOT_YET:
            return False
        since, (start, end), last = newest, self._still, command.tolist()
        for t, q in reversed(self._commands):
            is_old = t < now - REST_TIME
            if not is_old and t <= end and q.tolist() == last:
                since = start
                break
            since = t
            if is_old or q.tolist() != last:
                break
        self._still = since, newest
        return since < now - REST_TIME

    def _commands_at(self, times: Array, q: Array, command: Array) -> Array | None:
        """Return the command (n,) of each joint at the time of its measurement; None if unknown.

        Between the times of two commands, the arm may be anywhere between these commands. The
        returned value is then the value between both commands that is closest to the measurement.

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
        """Return two commands: the last at or before a time, and the next after this time.

        Args:
            time: Time [s].
            command: (n,) current command; the result if no recorded command is after `time`.

        Returns:
            Joint positions (n,) and (n,) [rad or m].
        """
        after = command
        for t, q in reversed(self._commands):
            if t <= time:
                return q, after
            after = q
        return after, after

    def _advice(self, joint: int, time: float, q: float, deviation: float) -> str:
        """Return advice for a fault message if a joint deviates because it lags, else "".

        The advice is a value of `max_deviation` that allows for the lag.

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
        if speed < MIN_LAG_SPEED:
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
    """Return a value of `max_deviation` [rad or m] for an arm that lags behind its commands.

    Args:
        speed: Largest speed of a joint [rad/s or m/s].
        lag: Lag of the arm [s].
    """
    return FACTOR * speed * lag + OFFSET


def _difference(a: Array, b: Array, continuous: NDArray[np.bool_]) -> Array:
    """Return a - b (..., n) for joint positions a and b.

    If `continuous` (n,) is True for a joint, which then has no limits, its difference is taken
    modulo 2 pi, because a driver may or may not count full turns.
    """
    difference = a - b
    turned = np.remainder(difference + math.pi, 2 * math.pi) - math.pi
    return np.where(continuous, turned, difference)


def _best_lag(
    commands: list[tuple[float, Array]],
    measured: list[tuple[Array, Array]],
    continuous: NDArray[np.bool_],
    is_whole: bool,
) -> float:
    """Return the time by which measurements lag behind commands [s]; NaN if no lag fits.

    Args:
        commands: Recorded commands: time [s], and joint positions (n,) [rad or m].
        measured: Recorded measurements: time of each joint (n,) [s], and joint positions (n,).
        continuous: (n,) whether each joint turns without limits.
        is_whole: Whether the record contains all commands, so that the arm rested before the first
            of them.
    """
    if len(commands) < 2 or not measured:
        return math.nan
    t, c = np.array([time for time, _ in commands]), np.array([q for _, q in commands])  # (k, n)
    longest = LONGEST_LAG if is_whole else min(LONGEST_LAG, 0.5 * float(t[-1] - t[0]))
    begin = max(t[0] if is_whole else t[0] + longest, t[-1] - LAG_WINDOW)
    kept = [(times, q) for times, q in measured if times.min() >= begin]
    kept = kept[:: 1 + len(kept) // 200]
    if len(kept) < MIN_LAG_SAMPLES:
        return math.nan
    tm, m = np.array([times for times, _ in kept]), np.array([q for _, q in kept])  # (s, n)
    recent = t >= begin
    joints = np.flatnonzero(np.ptp(c[recent], axis=0) > MIN_LAG_MOTION)
    if len(joints) == 0:
        return math.nan
    motion = math.sqrt(float(np.var(c[recent][:, joints], axis=0).sum()))

    def error(lag: float) -> float:
        then = np.stack([np.interp(tm[:, j] - lag, t, c[:, j]) for j in joints], axis=1)
        left = _difference(m[:, joints], then, continuous[joints])
        return math.sqrt(float((left**2).sum(axis=1).mean()))

    found = _minimum(error, longest)
    is_edge = found > 0.98 * longest
    return math.nan if is_edge or error(found) > MAX_UNEXPLAINED_SHARE * motion else found


def _minimum(error: Callable[[float], float], longest: float) -> float:
    """Return the lag [s] from 0 to `longest` that minimises an error.

    A search on a grid is followed by a ternary search.

    Args:
        error: Function that returns the error for a lag [s].
        longest: Largest lag [s].
    """
    grid = np.linspace(0.0, longest, 51)
    best = int(np.argmin([error(lag) for lag in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(12):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, b) if error(a) <= error(b) else (a, high)
    return 0.5 * float(low + high)
