"""One or two arms that follow one target, without a page, and presets that move the target.

Any thread may call everything here except :meth:`Session.step`, which belongs to one loop. Presets
are computed for the robot at hand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.core.se3 import difference, moved
from dls_ik.core.types import Array
from dls_ik.model.analysis import singular_values
from dls_ik.model.robot import RobotModel
from dls_ik.solver.solver import IkSolver
from dls_ik.viewer.plots import CsvRecorder, CurveHistory, Measures, measure
from dls_ik.viewer.source import LocalSource, Sample, Source

DRAG_HOLD = 1.0  # [s] that a dragged target stays, also if others send targets

MakeSource = Callable[[str, Array | None], Source]  # from a method and a start (n,)


class ArmView(NamedTuple):
    """State of one arm to show."""

    name: str
    sample: Sample
    measures: Measures


class Session:
    """The arms, their target, a preset that moves it, and a recording.

    Args:
        source: the first arm.
        make_second: makes the second one; None: there cannot be one.
    """

    def __init__(self, source: Source, make_second: MakeSource | None = None) -> None:
        self.robot = source.robot
        self.history = CurveHistory()
        self.target: Array | None = None  # (4, 4) the last one set here
        self.preset: Preset | None = None  # the one that moves the target
        self._make_second = make_second
        self._lock = threading.RLock()
        self._sources = [source]
        self._preset_begin: float | None = None
        self._dragged = 0.0  # [s] when a person last moved the target
        self._recorder: CsvRecorder | None = None
        self._views: list[ArmView] = []

    @property
    def sources(self) -> tuple[Source, ...]:
        """The first, and the second if there is one."""
        return tuple(self._sources)

    @property
    def can_compare(self) -> bool:
        """True if there can be a second arm."""
        return self._make_second is not None

    @property
    def is_recording(self) -> bool:
        """True while rows are recorded."""
        return self._recorder is not None

    def step(self, now: float) -> Sequence[ArmView]:
        """Advance all arms to a time [s]; return their states, the second one last."""
        with self._lock:
            self._move_target(now)
            self._views = [view for each in self._sources if (view := _view(each, now))]
            if len(self._views) == len(self._sources):
                self.history.add(now, [(view.sample, view.measures) for view in self._views])
            if self._recorder is not None:
                self._recorder.add(self._views)
            return self._views

    def displayed_target(self) -> Array | None:
        """Return the target (4, 4) that a preset or others move; None: leave the page's alone."""
        if self.preset is not None:
            return self.target
        is_remote = self._sources[0].is_remote
        if time.monotonic() < self._dragged + DRAG_HOLD or not (is_remote or self.target is None):
            return None
        if not self._views:
            return None
        sample = self._views[0].sample
        return sample.T_tip if sample.T_target is None else sample.T_target

    def pause(self, paused: bool) -> None:
        """Pause all arms, or resume.

        Raises:
            DlsIkError: a source refuses, with the reason; as all methods here.
        """
        for source in self.sources:
            source.pause(paused)

    def drag_target(self, T: Array) -> None:
        """Let all arms follow a pose (4, 4) that a person drags; ends a preset."""
        with self._lock:
            self._dragged = time.monotonic()
            self.preset = None
            self._set_target(T)

    def compare(self, method: str | None) -> None:
        """Put a second arm where the first is, or change its method; None: remove it."""
        with self._lock:
            has_second = len(self._sources) > 1
            if method is None and has_second:
                self._sources.pop().close()
            elif method is not None and has_second:
                self._sources[1].set_method(method)
            elif method is not None and self._make_second is not None:
                q = self._views[0].sample.q.copy() if self._views else None
                self._sources.append(self._make_second(method, q))
                if self.target is not None:
                    self._sources[1].set_target(self.target)

    def play(self, preset: Preset) -> None:
        """Start a preset: its methods, its start, and its moving target."""
        with self._lock:
            if self._sources[0].methods:
                self._sources[0].set_method(preset.methods[0])
            if self.can_compare:
                self.compare(preset.methods[1])
            self._place(preset.start)
            self.history.clear()
            self.preset, self._preset_begin = preset, None

    def stop_preset(self) -> None:
        """Leave the target where it is."""
        self.preset = None

    def reset(self) -> None:
        """Return to the start of the first arm, without a target."""
        with self._lock:
            self.preset = self.target = None
            for source in self._sources:
                source.reset()
            self.history.clear()

    def start_recording(self) -> None:
        """Record rows from now on."""
        with self._lock:
            self._recorder = CsvRecorder(self.robot)

    def stop_recording(self) -> bytes | None:
        """End the recording; return the CSV, or None if there was no recording."""
        with self._lock:
            recorder, self._recorder = self._recorder, None
        return None if recorder is None else recorder.content()

    def close(self) -> None:
        """Close all sources."""
        with self._lock:
            for source in self._sources:
                source.close()

    def _move_target(self, now: float) -> None:
        if self.preset is None:
            return
        if self._preset_begin is None:
            self._preset_begin = now
        if now - self._preset_begin >= self.preset.period:
            self._preset_begin += self.preset.period
            self._place(self.preset.start)  # redundant arms come back in another posture
        self._set_target(self.preset.pose(now - self._preset_begin))

    def _place(self, q: Array) -> None:
        for source in self._sources:
            if source.can_place:
                source.place(q)

    def _set_target(self, T: Array) -> None:
        self.target = T
        for source in self._sources:
            source.set_target(T)


def _view(source: Source, now: float) -> ArmView | None:
    sample = source.step(now)
    if sample is None:
        return None
    margins = [p.value for p in source.parameters if p.name == "margin"]
    return ArmView(source.name, sample, measure(source.robot, sample, *margins))


def local_session(
    robot: RobotModel, methods: Sequence[str] = ()
) -> tuple[Session, Sequence[Preset]]:
    """Make a session of one arm, or of two for two methods, and the presets for the robot.

    Raises:
        MethodError: an unknown method, or one that follows no target.
    """
    start = start_configuration(robot)

    def make_source(method: str | None, q: Array | None) -> LocalSource:
        source = LocalSource(robot, method, start=start)
        if q is not None:
            source.place(q)
        return source

    session = Session(make_source(next(iter(methods), None), None), make_source)
    for method in methods[1:2]:
        session.compare(method)
    session.drag_target(robot.fk(start))
    return session, make_presets(robot)


# Presets

REST = 1.0  # [s] at each end


class Preset(NamedTuple):
    """A path that the target goes along and back again, and two methods to compare on it."""

    title: str
    watch: str  # one sentence: what to look at
    methods: tuple[str, str]
    start: Array  # (n,) of the arms [rad or m]
    Ts: Array  # (m, 4, 4) poses T_base_tip at equal times
    duration: float  # [s] one way

    @property
    def period(self) -> float:
        """Time of one round [s]."""
        return 2.0 * (self.duration + REST)

    def pose(self, time: float) -> Array:
        """Return the target (4, 4) at a time since the beginning [s]."""
        phase, duration = time % self.period, self.duration
        if phase > duration + REST:  # on the way back
            phase = self.period - phase + REST
        share = float(np.clip((phase - REST) / duration, 0.0, 1.0)) * (len(self.Ts) - 1)
        i = min(int(share), len(self.Ts) - 2)
        T: Array = moved(self.Ts[i], difference(self.Ts[i], self.Ts[i + 1]) * (share - i))
        return T


def make_presets(robot: RobotModel) -> tuple[Preset, ...]:
    """Make the presets that suit a robot; takes some tenths of a second."""
    made = (through_singularity(robot), out_of_reach(robot), into_limit(robot))
    return tuple(filter(None, made))


# Start: away from singularities and limits, the tip in front, where an arm is seen best

START_SAMPLES, START_SEED = 400, 7


def start_configuration(robot: RobotModel) -> Array:
    """Return joint values (n,) [rad or m] where the arm moves well; the same ones each time."""
    lower, upper = robot.finite_limits()
    middle = np.where(robot.limited, 0.5 * (lower + upper), 0.0)
    spread = 0.3 * np.minimum(upper - lower, np.pi)
    rng = np.random.default_rng(START_SEED)
    q = robot.clip(middle + spread * rng.uniform(-1.0, 1.0, (START_SAMPLES, robot.n)))
    x = robot.fk(q)[:, 0, 3]
    front: Array = (x - x.min()) / max(float(np.ptp(x)), 1e-9)
    best: Array = q[np.argmax(singular_values(robot, q)[:, -1] * (0.2 + front))]
    return best


# Through a singularity: poses of a straight joint motion across one. All of them can be reached
# with slow joints, but a method that inverts the Jacobian without damping does not.

SINGULARITY_SAMPLES, SINGULARITY_KEPT, DIRECTIONS, SINGULARITY_SEED = 2000, 8, 24, 5
SINGULAR = 0.1  # of the median: a smaller least singular value counts as a singularity
MAX_CHANGE, MIN_CHANGE = 0.75, 0.1  # [rad or m] of the joints
SINGULARITY_POSES = 121
SINGULARITY_WATCH = (
    "where the least singular value (under Conditioning) falls to zero, the joints of A, the plain "
    "pseudoinverse, twitch (see the fastest joint); B, damped least squares, passes quietly and "
    "pays for it with a little more error."
)


def through_singularity(robot: RobotModel) -> Preset | None:
    """Choose a wide motion of the tip across a singularity, in front of the arm.

    None if there is no room for one, or no configuration is much more singular than the median,
    as for few joints whose task has six rows.
    """
    rng = np.random.default_rng(SINGULARITY_SEED)
    paths = [
        _straight_path(robot, middle, direction)
        for middle in _singular_configurations(robot, rng)
        for direction in rng.normal(size=(DIRECTIONS, robot.n))
    ]
    if not paths:
        return None
    ends = [robot.fk(q[[0, -1]])[:, :3, 3] for q in paths]
    widths = [float(np.linalg.norm(b - a)) + float(a[0] + b[0]) for a, b in ends]
    q = paths[int(np.argmax(widths))]
    if np.abs(q[-1] - q[0]).max() < MIN_CHANGE:
        return None
    title, methods = "Through a singularity", ("jp", "dls")
    return Preset(title, SINGULARITY_WATCH, methods, q[0], robot.fk(q), 5.0)


def _singular_configurations(robot: RobotModel, rng: np.random.Generator) -> Array:
    """Return the most singular (k, n) of many configurations away from the limits."""
    lower, upper = robot.finite_limits()
    middle = 0.5 * (lower + upper)
    q = middle + 0.55 * (robot.random(rng, SINGULARITY_SAMPLES) - middle)
    least = singular_values(robot, q)[:, min(6, robot.n) - 1]
    if least.min() >= SINGULAR * np.median(least):
        return np.empty((0, robot.n))
    kept: Array = robot.clip(q)[np.argsort(least)[:SINGULARITY_KEPT]]
    return kept


def _straight_path(robot: RobotModel, middle: Array, direction: Array) -> Array:
    """Return joint values (m, n) as far either way as the limits allow."""
    direction = direction / np.abs(direction).max()
    room = np.minimum(middle - robot.lower, robot.upper - middle)
    with np.errstate(divide="ignore"):
        change = min(MAX_CHANGE, 0.8 * float((room / np.abs(direction)).min()))
    path: Array = middle + np.linspace(-change, change, SINGULARITY_POSES)[:, None] * direction
    return path


# Out of reach: straight away from the first joint that turns, farther than the arm is long

REACH_SAMPLES, REACH_SEED, POSES = 4000, 3, 61
STRETCH = 1.2  # times the reach
REACH_WATCH = (
    "both arms stretch after a target that leaves their reach: the condition number shoots up and "
    "an error remains; the joints of A, without damping, are the faster and more restless ones, "
    "and both follow again when the target is back."
)


def out_of_reach(robot: RobotModel) -> Preset:
    """Move the target from the start outwards along the line from the shoulder, and back."""
    q = start_configuration(robot)
    T = robot.fk(q)
    tips = robot.fk(robot.random(np.random.default_rng(REACH_SEED), REACH_SAMPLES))[:, :3, 3]
    shoulder = 0.5 * (tips.min(axis=0) + tips.max(axis=0))
    reach = float(np.linalg.norm(tips - shoulder, axis=1).max())
    away = T[:3, 3] - shoulder
    length = float(np.linalg.norm(away))
    direction = away / length if length > 1e-6 else np.array([1.0, 0.0, 0.0])
    way = np.linspace(0.0, max(STRETCH * reach - length, 0.2 * reach), POSES)
    Ts = np.repeat(T[None], POSES, axis=0)
    Ts[:, :3, 3] += way[:, None] * direction
    return Preset("Out of reach", REACH_WATCH, ("jp", "dls"), q, Ts, 4.0)


# Into a joint limit: poses for which one joint alone would have to pass its limit

BEYOND = (0.35, 0.22, 0.12)  # of its range past the limit, the farthest that others make up for
RESTARTS = 10
SAME_POSTURE = 2.0  # [rad or m] a solution farther off is another posture
LIMIT_WATCH = (
    "joint {joint} comes to its limit (red in the bars) and stops there; {rest}: A does not know "
    "of limits and is just cut off, B (CTP) holds the joint and moves the others instead."
)
REDUNDANT = "the other joints could make up for it"
NOT_REDUNDANT = "the others cannot quite make up for it"


class _LimitCase(NamedTuple):
    is_reached: bool  # by the other joints
    travel: float  # [m] of the tip
    joint: int
    Ts: Array  # (POSES, 4, 4)


def into_limit(robot: RobotModel) -> Preset | None:
    """Choose the joint that moves the tip most, if possible one that others make up for.

    None for a robot without limits.
    """
    q = start_configuration(robot)
    limited = [int(j) for j in np.flatnonzero(robot.limited) if robot.upper[j] > robot.lower[j]]
    if not limited:
        return None
    solver = IkSolver(robot, max_restarts=RESTARTS, timeout=0.1)
    cases = [_limit_case(robot, solver, q, j, beyond) for j in limited for beyond in BEYOND]
    best = max(cases, key=lambda case: (case.is_reached, case.travel))
    rest = REDUNDANT if best.is_reached else NOT_REDUNDANT
    watch = LIMIT_WATCH.format(joint=robot.joint_names[best.joint], rest=rest)
    return Preset("Into a joint limit", watch, ("jp", "ctp+sd+svf"), q, best.Ts, 4.0)


def _limit_case(robot: RobotModel, solver: IkSolver, q: Array, j: int, beyond: float) -> _LimitCase:
    """Move joint j past its nearest limit, and ask if the others reach the last pose."""
    lower, upper = float(robot.lower[j]), float(robot.upper[j])
    past = beyond * (upper - lower)
    end = lower - past if q[j] - lower < upper - q[j] else upper + past
    qs = np.repeat(q[None], POSES, axis=0)
    qs[:, j] = np.linspace(q[j], end, POSES)
    Ts = robot.fk(qs)
    result = solver.solve(Ts[-1], seed=q)
    is_reached = result.success and float(np.abs(result.q - q).max()) < SAME_POSTURE
    return _LimitCase(is_reached, float(np.linalg.norm(Ts[-1, :3, 3] - Ts[0, :3, 3])), j, Ts)
