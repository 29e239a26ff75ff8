"""Supervision: measurements compared with commands, for faults and for the lag of the arm."""

import math
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo.options import ControllerOptions

LONGEST_LAG = 1.0  # [s] that is looked for
WINDOW = 4.0  # [s] of commands and measurements that are kept
MOST = 4000  # of each
SAMPLES = 1000  # of each, to find a lag: more would keep other threads waiting
FEWEST = 20  # measurements that a lag is found from, of each joint
MOTION = 0.02  # [rad or m] by which a joint has to move for it
UNEXPLAINED = 0.3  # of the motion, root mean square, from which no lag explains it
FACTOR, OFFSET = 1.5, 0.05  # max_deviation = FACTOR * speed * lag + OFFSET [rad or m]
NOT_YET = math.inf  # [s] time of the start, until there is a command
INSTANT = 1e-6  # [s] before the first command, when the arm still rests
SLOW = 0.01  # [rad/s or m/s] below which a deviation is no lag
AT_REST = 0.5  # [s] without a new target and without motion
HELD_STILL = 0.01  # [rad or m] an arm that moved less since it came to rest is held by its command


class Rest(NamedTuple):
    """Rest of the arm: whether the command starts at the measurement, or at the command before.

    It does before the first target, and where a target ended a rest. An arm that was told to move
    just now may still be on its way. One that has not moved since it came to rest is held there by
    its command, at whatever distance its drives leave: then the command stays.
    """

    starts_anew: bool = False  # at the next measurement of an arm at rest
    last_event: float = -math.inf  # [s] of a target, or of motion
    last_motion: float = -math.inf  # [s]
    measured: Array | None = None  # (n,) when the arm came to rest

    def with_target(self, now: float) -> "Rest":
        """Return the rest after a target, which may end it."""
        starts_anew = self.starts_anew or now - self.last_event > AT_REST
        return self._replace(starts_anew=starts_anew, last_event=now)

    def with_motion(self, now: float, has_target: bool) -> "Rest":
        """Return the rest after motion; toward a target the measurement lags behind it."""
        return Rest(self.starts_anew and not has_target, now, now)

    def restarted(self) -> "Rest":
        """Return a rest that starts at the next measurement, wherever the arm was held."""
        return self._replace(starts_anew=True, measured=None)

    def with_measurement(
        self, measured: Array, now: float, moves: bool, waits: bool
    ) -> tuple["Rest", bool]:
        """Return the rest after a measurement (n,), and whether the command is to start there.

        A start for a target is the start of another rest: from then on commands hold the arm, so
        that further targets find it held, and do not move the command by the noise of the
        measurements or by the distance that the drives leave.

        Args:
            moves: the command moves.
            waits: there was no target yet.
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
        """Return whether the arm is still where it came to rest on its last command."""
        before = self.measured
        return before is not None and float(np.abs(measured - before).max()) <= HELD_STILL


class LastMeasurement(NamedTuple):
    """The measurement that came last, which may not be newer than those before."""

    oldest: float = -math.inf  # [s] when its oldest joint was measured
    is_new: bool = False  # there is one that was not compared yet


class Supervision:
    """Commands and measurements of the last seconds, each with its time. Time is an argument."""

    def __init__(self, robot: RobotModel, options: ControllerOptions) -> None:
        self._robot, self._options = robot, options
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MOST)  # time [s], (n,)
        self._measured: deque[tuple[Array, Array]] = deque(maxlen=MOST)  # times (n,) [s], (n,)
        self._last = LastMeasurement()
        self._expected_since = -math.inf  # [s] earlier silence of the driver is ignored
        self._lag = math.nan  # [s] found last

    def restart(self, start: Array) -> None:
        """Forget the commands: the next one starts at rest at joint values (n,)."""
        self._commands.clear()
        self._commands.append((NOT_YET, start))

    def take_over(self, other: "Supervision") -> None:
        """Continue with the record of another one of the same joints."""
        self._commands, self._measured = other._commands.copy(), other._measured.copy()
        self._last, self._lag = other._last._replace(is_new=self._last.is_new), other._lag
        self._expected_since = other._expected_since

    def expect_measurements(self, since: float) -> None:
        """Count the silence of the driver from a time [s] on, the end of a stall of the loop."""
        self._expected_since = since

    def is_silence_excused(self, now: float) -> bool:
        """Return whether a stall ended so recently that missing measurements are no fault yet."""
        return now - self._expected_since <= self._options.measurement_timeout

    def record_command(self, now: float, q: Array) -> None:
        """Record a command (n,), which is not changed any more."""
        if self._commands and self._commands[0][0] == NOT_YET:
            self._commands[0] = now - INSTANT, self._commands[0][1]
        self._commands.append((now, q))

    def record_measurement(self, now: float, q: Array, age: float | Array) -> None:
        """Record a measurement (n,), `age` [s] old, one number or one for each joint (n,)."""
        times = now - np.broadcast_to(np.asarray(age, float), q.shape)
        is_newer = not self._measured or bool((times > self._measured[-1][0]).any())
        if is_newer:
            self._measured.append((times, q))
        self._last = LastMeasurement(float(times.min()), is_newer or self._last.is_new)

    def fault(self, now: float, is_measured: bool, command: Array) -> str:
        """Return the fault, or an empty text.

        Each measurement is compared with the command of its own time, so that a driver that falls
        silent is not mistaken for an arm that stays behind.

        Args:
            command: (n,) of now, which is not that of the last cycle where the arm has continued
                on its stop path since.
        """
        if not is_measured and self.is_silence_excused(now):
            return ""
        if not is_measured:
            words = f"no joint states came for {self._options.measurement_timeout:g} s"
            last = f", the last ones {now - self._last.oldest:.3g} s ago"
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
            f"joint {self._robot.joint_names[worst]!r} is at {q[worst]:.4g}, measured "
            f"{now - times[worst]:.3f} s ago, and was commanded to {then[worst]:.4g}: "
            f"{deviation[worst]:.3g} apart, more than max_deviation = "
            f"{self._options.max_deviation:g}"
            f"{self._advice(worst, times[worst], q[worst], deviation[worst])}"
        )

    def lag(self) -> float:
        """Return how late the arm follows its commands [s], as found last; NaN: not known yet.

        The lag is the shift in time that brings the measurements of the last seconds nearest to the
        commands. Takes some milliseconds, in short pieces; any thread may ask.
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
        """Return the command of each joint (n,) at a time of its own (n,) [s]; None: not known.

        Between two commands the one that is nearest to the joint, `q`.
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
        """Return the commands (n,) before and after a time [s]."""
        after = command
        for t, q in reversed(self._commands):
            if t <= time:
                return q, after
            after = q
        return after, after

    def _advice(self, joint: int, time: float, q: float, deviation: float) -> str:
        """Return a remedy for a joint that only lags, else an empty text."""
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
            f"; it moves at {speed:.2g}, and is behind by {lag:.2g} s at least: if it follows as "
            f"late as that in general, set max_deviation to {enough:.2g} or more ({FACTOR:g} * "
            f"speed limit * lag + {OFFSET:g}; /diagnostics shows the lag)"
        )


def suggested_deviation(speed: float, lag: float) -> float:
    """Return a `max_deviation` [rad or m] for a top speed [rad/s or m/s] and a lag [s]."""
    return FACTOR * speed * lag + OFFSET


def _difference(a: Array, b: Array, continuous: NDArray[np.bool_]) -> Array:
    """Return a - b (..., n), for continuous joints (n,) modulo 2 pi: drivers may count turns."""
    difference = a - b
    turned = np.remainder(difference + math.pi, 2 * math.pi) - math.pi
    return np.where(continuous, turned, difference)


def _best_lag(
    commands: list[tuple[float, Array]],
    measured: list[tuple[Array, Array]],
    continuous: NDArray[np.bool_],
    is_whole: bool,
) -> float:
    """Return the lag [s] of measurements behind commands; NaN where they do not show one.

    Args:
        is_whole: the arm stood at the first command before that.
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
    """Return the lag [s] of the least error: on a grid first, then by ternary search."""
    grid = np.linspace(0.0, longest, 51)
    best = int(np.argmin([error(lag) for lag in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    for _ in range(12):
        a, b = low + (high - low) / 3.0, high - (high - low) / 3.0
        low, high = (low, b) if error(a) <= error(b) else (a, high)
    return 0.5 * float(low + high)
