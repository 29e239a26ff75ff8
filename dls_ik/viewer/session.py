# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Session of the viewer: up to four arms that follow one target, presets, replays, recordings.

A session does not depend on the page. Any thread may use the members of a session; only one thread
may call :meth:`Session.step`. Arms that this process simulates advance by the clock of the session
in steps of equal length, so that a preset causes the same motion at any speed of the clock.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.hard_paths import BARE_STEP_DURATION
from dls_ik.solver.task import Task, Tasks, too_few_joints
from dls_ik.solver.task_stack import TaskStack
from dls_ik.viewer.gains import ArmGains, CurrentGains
from dls_ik.viewer.plots import CsvRecorder, CurveHistory, Measures, measure
from dls_ik.viewer.presets import Preset, make_presets, pair_in_the_way, start_configuration
from dls_ik.viewer.redundancy import Redundancy
from dls_ik.viewer.replay import ReplayPath
from dls_ik.viewer.source import LocalSource, Sample, Source

if TYPE_CHECKING:
    from dls_ik.scene.planning_scene import PlanningScene
    from dls_ik.scene.srdf import Pair

DRAG_HOLD_TIME = 1.0  # [s] time after a drag in which targets from other senders are not shown
MAX_ARMS = 4
MIN_GAIN_ERROR = 1e-3  # [m] minimum norm of the error with which Session.gains computes gains
# [s] maximum time that is made up for after a gap between calls of Session.step
MAX_CATCH_UP_TIME = 0.1
STEP_ROUNDING = 1e-6  # tolerance for rounding of times, relative to the length of a step

MakeSource = Callable[[str, Array | None], Source]  # arguments: method, start (n,)


class SharedScene(Protocol):
    """Local copy of a scene that belongs to another process."""

    scene: PlanningScene
    note: str  # reason why the copy is missing or incomplete; empty if it is complete

    def publish(self, name: str) -> None:
        """Report to the other process that the object `name` was moved, added or removed here."""


class ArmView(NamedTuple):
    """State of one arm, as shown on the page."""

    name: str
    sample: Sample
    measures: Measures
    peak: float = 0.0  # speed of the fastest joint since the start or the last reset


class Session:
    """Arms that follow one target, possibly with a preset or replay, and a recording.

    Args:
        source: First arm.
        make_source: Makes an additional arm; None if there can be only one arm.
        shared: Copy of the scene if the arm is in another process, otherwise None.
    """

    def __init__(
        self,
        source: Source,
        make_source: MakeSource | None = None,
        shared: SharedScene | None = None,
    ) -> None:
        self.robot = source.robot
        self.history = CurveHistory()
        self.target: Array | None = None  # last target of this session, (4, 4) or (k, 4, 4)
        self.preset: Preset | None = None  # the preset that moves the target
        self.replay: ReplayPath | None = None  # the path shown instead of the arms
        self.speed = 1.0  # speed of the clock relative to real time
        self.is_paused = False  # whether arms of this process are paused
        self.shared = shared
        # Scene whose collisions the arms avoid
        self.scene = None if shared is None else shared.scene
        self.task: Tasks = None  # task of arms of this process
        self._make_source = make_source
        self._lock = threading.RLock()
        self._sources = [source]
        self._ticks = 0  # time of the clock in steps of length BARE_STEP_DURATION
        self._begin = 0  # [ticks] start of the preset or replay
        self._lag = 0.0  # [s] time for which steps are still to be made
        self._last: float | None = None  # [s] time of the last call of step
        self._is_due = True  # whether a step must be made even if no time has passed
        self._dragged = 0.0  # [s] time when a person last moved the target
        self._recorder: CsvRecorder | None = None
        self._views: list[ArmView] = []
        self._peaks: list[float] = []

    @property
    def sources(self) -> tuple[Source, ...]:
        """Current arms, at least one and at most MAX_ARMS."""
        return tuple(self._sources)

    @property
    def can_compare(self) -> bool:
        """Whether arms can be added to compare methods."""
        return self._make_source is not None

    @property
    def is_remote(self) -> bool:
        """Whether the arm is in another process, such as a node."""
        return self._sources[0].is_remote

    @property
    def is_recording(self) -> bool:
        """Whether the motion of the arms is being recorded."""
        return self._recorder is not None

    @property
    def redundancy(self) -> Redundancy | None:
        """Levels and frozen joints of the arms; None if the page cannot change them."""
        return self._sources[0].redundancy

    @property
    def bare(self) -> bool | None:
        """Whether the arms make bare steps, without limits; None if there is no choice.

        See :meth:`set_bare`.
        """
        return self._sources[0].bare

    @property
    def replay_time(self) -> float:
        """Time since the start of the replay [s]."""
        path = self.replay  # another thread may stop the replay between two reads
        return 0.0 if path is None else self._since_begin() % path.duration

    @property
    def joint_values(self) -> Array:
        """Copy of the latest joint positions (n,) of the first arm [rad or m]."""
        with self._lock:
            if self._is_due or not self._views:  # the states are older than the last change
                for each in self._due(self._last or 0.0):
                    self._advance(each)
            return self._views[0].sample.q.copy()

    def step(self, now: float) -> Sequence[ArmView]:
        """Advance the arms to the time `now` [s] of a steady clock, and return their states."""
        with self._lock:
            for each in self._due(now):
                self._advance(each)
            return self._views

    def _due(self, now: float) -> Iterator[float]:
        """Yield the session time [s] of each step that has to be made by the time `now` [s]."""
        if self.is_remote and self.replay is None:
            yield now
            return
        passed = 0.0 if self._last is None or self.is_paused else now - self._last
        self._last = now
        self._lag = min(self._lag + self.speed * passed, MAX_CATCH_UP_TIME)
        steps = int(self._lag / BARE_STEP_DURATION + STEP_ROUNDING)
        self._lag -= steps * BARE_STEP_DURATION
        steps, self._is_due = max(steps, int(self._is_due)), False
        for _ in range(steps):
            yield self._ticks * BARE_STEP_DURATION
            self._ticks += 1

    def _since_begin(self) -> float:
        return (self._ticks - self._begin) * BARE_STEP_DURATION

    def _advance(self, now: float) -> None:
        if self.replay is not None:
            views = [self._replay_view(self.replay, now)]
        else:
            self._move_target()
            views = [view for each in self._sources if (view := _view(each, now))]
        speeds = [view.measures.speed for view in views]
        if len(self._peaks) != len(views):
            self._peaks = [0.0] * len(views)
        self._peaks = [max(pair) for pair in zip(self._peaks, speeds, strict=True)]
        peaks = zip(views, self._peaks, strict=True)
        self._views = [view._replace(peak=peak) for view, peak in peaks]
        if self.replay is not None or len(views) == len(self._sources):
            self.history.add(now, [(view.sample, view.measures) for view in views])
        if self._recorder is not None:
            self._recorder.add(view[:3] for view in views)

    def gains(self, view: ArmView) -> CurrentGains:
        """Return the singular values at an arm's configuration, and each arm's gains there.

        The gains of an arm are those of its method, see
        :func:`dls_ik.viewer.gains.directional_gains`. They are computed for an error with the norm
        of the position error in `view`, but at least MIN_GAIN_ERROR.

        Args:
            view: State of the arm whose configuration is used.
        """
        q = view.sample.q
        size = max(float(np.nan_to_num(view.sample.position_error)), MIN_GAIN_ERROR)
        s = view.measures.singular_values
        found = ((each.name, each.gains(q, size)) for each in self.sources)
        # A replay has the singular directions of the full pose; a method has those of its task.
        arms = (ArmGains(name, None if g is None or len(g) != len(s) else g) for name, g in found)
        return CurrentGains(s, size, tuple(arms))

    def displayed_target(self) -> Array | None:
        """Return the target that the page shows: (4, 4), or (k, 4, 4) for k tips.

        None tells the page to leave the displayed target unchanged, because a person has just moved
        it, or because no state of an arm is known yet.
        """
        if self.preset is not None:
            return self.target
        if time.monotonic() < self._dragged + DRAG_HOLD_TIME or not self._views:
            return None
        if not self.is_remote and self.replay is None and self.target is not None:
            return self.target
        sample = self._views[0].sample
        return sample.T_tip if sample.T_target is None else sample.T_target

    def pause(self, paused: bool) -> None:
        """Pause or resume all arms; for simulated arms, the clock of the session is stopped.

        Raises:
            DlsIkError: If an arm refuses the request. All methods of this class that change an arm
                may raise this error; the message contains the reason.
        """
        for source in self.sources:
            source.pause(paused)
        self.is_paused = paused and not self.is_remote

    def drag_target(self, T: Array, tip: int = 0) -> None:
        """Set the target of all arms as if a person dragged it there; stop a preset or replay.

        Args:
            T: Target pose T_base_tip (4, 4) of one tip, or poses (k, 4, 4) of all k tips.
            tip: Index of the tip if `T` is one pose; targets of other tips do not change.
        """
        with self._lock:
            self._dragged = time.monotonic()
            self.preset = self.replay = None
            whole = T
            if len(self.robot.tips) > 1 and T.ndim == 2:
                before = self.target
                if before is None:
                    ready = [view.sample.T_tip for view in self._views[:1]]
                    before = ready[0] if ready else np.stack([T] * len(self.robot.tips))
                whole = before.copy()
                whole[tip] = T
            self._set_target(whole)

    def set_method(self, arm: int, method: str | None) -> None:
        """Set the method of an arm, add an arm, or remove an arm.

        Args:
            arm: Index of the arm; an index beyond the last arm adds an arm at the configuration of
                the first arm.
            method: Name of the method; None removes the arm.
        """
        with self._lock:
            if method is None:
                if 0 < arm < len(self._sources):
                    self._sources.pop(arm).close()
            elif arm < len(self._sources):
                self._sources[arm].set_method(method)
            elif self._make_source is not None and len(self._sources) < MAX_ARMS:
                q = self._views[0].sample.q.copy() if self._views else None
                source = self._make_source(method, q)
                source.set_bare(bool(self.bare))
                if self.redundancy is not None:
                    source.set_redundancy(self.redundancy)
                self._sources.append(source)
                if self.target is not None:
                    source.set_target(self.target)
            self._peaks = []

    def set_methods(self, methods: Sequence[str]) -> None:
        """Use one arm for each method, up to MAX_ARMS arms; other arms are removed."""
        with self._lock:
            for arm, method in enumerate(methods[: MAX_ARMS if self.can_compare else 1]):
                self.set_method(arm, method)
            while len(self._sources) > max(len(methods), 1):
                self.set_method(len(self._sources) - 1, None)

    def set_bare(self, bare: bool) -> None:
        """Choose whether the arms make bare steps of their methods, or are moved by a controller.

        A bare step is one step of the method itself, without the limits of the controller.
        """
        with self._lock:
            for source in self._sources:
                source.set_bare(bare)

    def set_redundancy(self, wanted: Redundancy) -> None:
        """Change the levels and the frozen joints of all arms, or of none if one refuses them."""
        with self._lock:
            changed: list[tuple[Source, Redundancy]] = []
            try:
                for source in self._sources:
                    before = source.redundancy
                    source.set_redundancy(wanted)
                    if before is not None:
                        changed.append((source, before))
            except DlsIkError:
                for source, before in changed:
                    source.set_redundancy(before)
                raise

    def play(self, preset: Preset) -> None:
        """Start a preset: use its methods, kind of steps, start configuration and moving target."""
        with self._lock:
            self.set_methods(preset.methods)
            self.set_bare(preset.bare)
            self.replay, self.preset = None, preset
            self._restart()

    def in_the_way(self, preset: Preset) -> Pair | None:
        """Return the first pair that collides on the path of a preset, or None if there is none."""
        if self.scene is None:
            return None
        return pair_in_the_way(self.robot, preset, self.scene.snapshot, self.task)

    def stop_preset(self) -> None:
        """Stop the running preset; the target remains at its current pose."""
        self.preset = None

    def show_path(self, path: ReplayPath | None) -> None:
        """Show a recorded path in a loop instead of the arms; None shows the arms again."""
        with self._lock:
            self.preset, self.replay = None, path
            self._restart()

    def seek(self, seconds: float) -> None:
        """Continue the replay at a time since the start of the path [s]."""
        with self._lock:
            self._begin = self._ticks - round(seconds / BARE_STEP_DURATION)
            self._is_due = True

    def place(self, q: Array) -> None:
        """Set all arms and the target to joint positions q (n,) [rad or m] without motion."""
        values = self.robot.validated_one(q)
        with self._lock:
            self.preset = self.replay = None
            self._dragged = 0.0
            self._place(values)
            self._set_target(self.robot.fk(values))
            self._is_due = True

    def reset(self) -> None:
        """Restart the preset or replay; without one, return the arms to their initial state."""
        with self._lock:
            if self.preset is None and self.replay is None:
                self.target = None
                for source in self._sources:
                    source.reset()
            self._restart()

    def start_recording(self) -> None:
        """Start a recording with one row for each arm and step."""
        with self._lock:
            self._recorder = CsvRecorder(self.robot)

    def stop_recording(self) -> bytes | None:
        """Stop the recording and return its CSV content, or None if nothing was being recorded."""
        with self._lock:
            recorder, self._recorder = self._recorder, None
        return None if recorder is None else recorder.content()

    def close(self) -> None:
        """Release the threads and connections of all arms."""
        with self._lock:
            for source in self._sources:
                source.close()

    def _restart(self) -> None:
        self._begin, self._is_due = self._ticks, True
        self._peaks = []
        self.history.clear()
        if self.preset is not None:
            self._place(self.preset.start)

    def _move_target(self) -> None:
        if self.preset is None:
            return
        if self._since_begin() >= self.preset.period - STEP_ROUNDING * BARE_STEP_DURATION:
            self._begin = self._ticks
            self._place(self.preset.start)  # a redundant arm may have ended in another posture
        self._set_target(self.preset.pose(self._since_begin()))

    def _place(self, q: Array) -> None:
        for source in self._sources:
            if source.can_place:
                source.place(q)

    def _set_target(self, T: Array) -> None:
        self.target = T
        for source in self._sources:
            source.set_target(T)

    def _replay_view(self, path: ReplayPath, now: float) -> ArmView:
        q, velocity = path.at(self.replay_time)
        nan = float("nan")
        T_tip = self.robot.fk(q)
        sample = Sample(now, q, velocity, T_tip, None, nan, nan, "REPLAY", path.message)
        return ArmView(path.name, sample, measure(self.robot, sample))


def _view(source: Source, now: float) -> ArmView | None:
    sample = source.step(now)
    if sample is None:
        return None
    margins = [p.value for p in source.parameters if p.name == "margin"]
    return ArmView(source.name, sample, measure(source.robot, sample, *margins))


def _collision_clearance(
    scene: PlanningScene, clearance: Callable[[Array], Array] | None
) -> Callable[[Array], Array]:
    """Return a function like `clearance` that also takes collisions with the scene into account.

    To the heights [m] returned by `clearance`, the function appends -1 m for a configuration in
    collision, and 0 m otherwise.
    """

    def least(q: Array) -> Array:
        heights = np.zeros(0) if clearance is None else clearance(q)
        return np.append(heights, -float(scene.in_collision(q)))

    return least


def local_session(
    robot: RobotModel,
    methods: Sequence[str] = (),
    task: Tasks | TaskStack = None,
    clearance: Callable[[Array], Array] | None = None,
    has_presets: bool = True,
    scene: PlanningScene | None = None,
    frozen: Mapping[str, float] | None = None,
    **options: Any,
) -> tuple[Session, Sequence[Preset]]:
    """Return a session of arms that this process simulates, and presets for the robot.

    Args:
        robot: Robot of the arms.
        methods: Names of methods, one for each arm; empty for one arm with the default method.
        task: See :class:`dls_ik.IkSolver`.
        clearance: See :func:`dls_ik.viewer.presets.start_configuration`.
        has_presets: Whether to compute presets.
        scene: Scene of the robot. The arms avoid collisions; the page shows and changes the scene.
        frozen: Positions of joints that do not move, by name [rad or m].
        options: Options of the controllers and their methods, such as `joint_weights`.

    Raises:
        MethodError: If a method is unknown or cannot follow a target.
        SceneError: If the scene belongs to another robot.
        OptionError: If the first level of a stack is not the task of the tips alone.
        LimitsError: If the position of a frozen joint is outside its limits.
    """
    tips, redundancy = Redundancy.of(task, robot)
    redundancy = redundancy._replace(frozen=tuple(frozen or ()))
    start = start_configuration(
        robot.narrowed(frozen, frozen, near={**dict.fromkeys(robot.joint_names, 0.0), **frozen})
        if frozen
        else robot,
        clearance if scene is None else _collision_clearance(scene, clearance),
    )

    def make_source(method: str | None, q: Array | None) -> LocalSource:
        if scene is None:
            source = LocalSource(robot, method, start, tips, redundancy, **options)
        else:
            from dls_ik.viewer.avoidance import AvoidingSource

            source = AvoidingSource(robot, scene, method, start, tips, redundancy, **options)
        if q is not None:
            source.place(q)
        return source

    session = Session(make_source(next(iter(methods), None), None), make_source)
    session.scene, session.task = scene, tips
    for arm, method in enumerate(methods[:MAX_ARMS]):
        session.set_method(arm, method)
    session.drag_target(robot.fk(start))
    return session, make_presets(robot, start, tips) if has_presets else ()


def default_task(robot: RobotModel) -> Tasks:
    """Return the default task: positions if the robot has too few joints for poses, else poses.

    None stands for poses.
    """
    return Task.position_only() if too_few_joints(robot, None) else None
