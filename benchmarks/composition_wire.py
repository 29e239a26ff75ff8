# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Record of all published data of a stream, for the judges."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from benchmarks.exact_distances import World
from dls_ik import RobotModel
from dls_ik.core.types import Array
from dls_ik.ros.params import JOINT_STATE, Parameters
from dls_ik.servo import ServoState
from dls_ik.servo.motion import StopPath

if TYPE_CHECKING:
    from benchmarks.composition_stream import ArmModel, Settings

NO_STATE = "a status without text"
SAME_PLACE = 1e-9  # [rad or m] maximum gap of the last command and the next start
MIN_PUSH = 5e-3  # [rad or m] a start this far from the held command is at the measurement


class Limits(NamedTuple):
    """Limits that are valid from a row on."""

    lower: Array  # (n,) [rad or m]
    upper: Array  # (n,)
    velocity: Array  # (n,) [rad/s or m/s]
    linear: float  # speed of the tip [m/s]
    angular: float  # [rad/s]


class Row(NamedTuple):
    """Command, or the point of the stop at which a late command continues."""

    cycle: int
    q: Array  # (n,) [rad or m]
    dt: float  # [s] time since the previous row
    start: Array | None  # (n,) start at rest; None: continues the previous row
    is_measured: bool  # the start is the measured position
    stop: StopPath | None  # stop that follows the command
    limits: int  # index of the valid limits
    is_still: bool = False  # the published velocity is zero


class Fault(NamedTuple):
    """Start of a fault."""

    cycle: int
    row: int  # number of the first row after it
    message: str
    worlds: tuple[World, World | None]  # the scene then, and in the cycle before if it has changed
    stop: StopPath | None  # stop in flight


class Message(NamedTuple):
    """Joint trajectory with k points."""

    cycle: int
    row: int  # row of its command
    time: float  # time since the start [s]
    offsets: Array  # (k,) time from start [s]
    q: Array  # (k, n)
    v: Array  # (k, n)
    a: Array  # (k, n); (0, n) where accelerations are not published


class Chapter:
    """Record of one set of joints."""

    def __init__(self, model: ArmModel, world: World, q: Array) -> None:
        self.model, self.start = model, q.copy()
        self.rows: list[Row] = []
        self.limits: list[Limits] = []
        self.scenes: list[tuple[int, World]] = [(0, world)]  # scenes with their first rows
        self.messages: list[Message] = []
        self.faults: list[Fault] = []


class Wire:
    """Recorder of a stream, by chapters."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.chapters: list[Chapter] = []
        self.problems: list[tuple[int, str]] = []  # cycle and text
        self.states: dict[str, int] = {}
        self._moves_no_arm = set(settings.output_types) == {JOINT_STATE}  # commands for display
        self._rests = True  # the next command starts at rest
        self._was_fault = False
        self._seen: World | None = None  # scene of the last published state
        self._rest_at: Array | None = None  # (n,) positions without a command

    @property
    def now(self) -> Chapter:
        """Current chapter."""
        return self.chapters[-1]

    def chapter(self, model: ArmModel, world: World, q: Array) -> None:
        """Start a chapter for other joints, at rest at q (n,)."""
        self.chapters.append(Chapter(model, world, q))
        self._rests, self._rest_at, self._seen = True, q.copy(), world

    def limits(self, robot: RobotModel, parameters: Parameters) -> None:
        """Record the limits that are valid from the next command on."""
        scale = parameters.scale or 1.0
        speeds = parameters.max_linear_speed, parameters.max_angular_speed
        linear, angular = (scale * x if np.isfinite(x) else np.inf for x in speeds)
        limits = Limits(robot.lower, robot.upper, scale * robot.velocity, linear, angular)
        self.now.limits.append(limits)

    def scene(self, world: World) -> None:
        """Record another scene from the next command on."""
        self.now.scenes.append((len(self.now.rows), world))

    def silence(self, q: Array | None) -> None:
        """Record a cycle without a command: the arm rests, or is moved otherwise to q (n,)."""
        self._rests, self._rest_at = True, q

    def withdraw(self, has_stop: bool) -> None:
        """Record an unpublished command; without a stop the arm rests at the last command."""
        self._rests = self._rests or not has_stop

    def state(self, report: Any, cycle: int) -> None:
        """Record the state of a cycle, and check its message."""
        state, chapter = report.state, self.now
        scene = chapter.scenes[-1][1]
        self.states[state.name] = self.states.get(state.name, 0) + 1
        if not report.message.strip():
            self.problems.append((cycle, NO_STATE))
        if state is ServoState.FAULT and not self._was_fault:
            rows, before = chapter.rows, self._seen
            worlds = scene, None if before is scene else before
            stop = rows[-1].stop if rows and not self._rests else None
            chapter.faults.append(Fault(cycle, len(rows), report.message, worlds, stop))
        self._was_fault, self._seen = state is ServoState.FAULT, scene

    def trajectory(self, message: Any, time: float, cycle: int) -> None:
        """Record the points of a joint trajectory, whose command comes next.

        Args:
            time: Time since the start [s] at which it is sent. A time on a clock that shows 1e6 s
                has a resolution of 1e-10 s only. A point microseconds ahead, and a joint that has
                moved on for so long, would look like an acceleration beyond the limit.
        """
        points = message.points
        fields = [np.array([getattr(p, name) for p in points]) for name in FIELDS]
        times = [p.time_from_start.sec + 1e-9 * p.time_from_start.nanosec for p in points]
        offsets = np.array(times)
        if fields[1].size:
            row = len(self.now.rows)
            q, v = fields[0], fields[1]
            a = fields[2] if fields[2].size else np.zeros((0, q.shape[1]))
            self.now.messages.append(Message(cycle, row, time, offsets, q, v, a))

    def command(
        self,
        cycle: int,
        q: Array,
        velocity: Array,
        dt: float,
        elapsed: float,
        rests: bool,
        measured: Array | None,
        stop: StopPath,
    ) -> None:
        """Note a command (n,) that is due `dt` [s] after the one before, or after its place then.

        Args:
            velocity: (n,) as published with it, which tells where it starts.
            elapsed: [s] for which the arm was on the stop of the command before.
            rests: the command continues from rest at the one before.
        """
        chapter = self.now
        rows, limits = chapter.rows, len(chapter.limits) - 1
        rests = rests or self._rests or not rows
        before = chapter.start
        if rows:
            last = rows[-1]
            before = last.q
            if self.settings.has_stop and last.stop is not None and (rests or elapsed > 0.0):
                time = np.inf if rests else elapsed
                before = stop_positions(last.stop, np.array([time]))[0]
            if elapsed > 0.0 and not rests:
                still = last.is_still
                rows.append(Row(cycle, before, elapsed, None, False, None, limits, still))
        is_pushed = False
        if self._rest_at is not None:
            is_pushed = bool(rows) and bool(np.abs(self._rest_at - before).max() > SAME_PLACE)
            before = self._rest_at
        was_still = rests or rows[-1].is_still
        is_measured = False
        if measured is not None and was_still:
            given = q - velocity * dt
            is_measured = bool(np.abs(given - measured).max() < np.abs(given - before).max())
            is_moved = bool(np.abs(measured - before).max() > MIN_PUSH)
            is_measured = is_measured and (rests or is_moved or self._moves_no_arm)
        start = measured if is_measured else before if rests else None
        is_measured = is_measured or is_pushed
        is_still = not velocity.any()
        rows.append(Row(cycle, q.copy(), dt, start, is_measured, stop, limits, is_still))
        self._rests, self._rest_at = False, None


FIELDS = ("positions", "velocities", "accelerations")


def stop_positions(stop: StopPath, times: Array) -> Array:
    """Return the joint values (k, n) on a stop at times (k,) [s], by its polynomials."""
    left = np.repeat(times[:, None], len(stop.q), axis=1)
    q, v = np.repeat(stop.q[None], len(times), 0), np.repeat(stop.v[None], len(times), 0)
    for duration, a, jerk in zip(stop.durations, stop.accelerations, stop.jerks, strict=True):
        t = np.minimum(np.maximum(left, 0.0), duration)
        q = q + t * (v + t * (a / 2.0 + t * jerk / 6.0))
        v = v + t * (a + t * jerk / 2.0)
        left = left - duration
    clipped: Array = np.clip(q, stop.lower, stop.upper)
    return clipped
