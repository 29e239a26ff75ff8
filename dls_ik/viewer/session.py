"""One or two arms that follow one target, without a page.

Any thread may call everything here except :meth:`Session.step`, which belongs to one loop.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.plots import CsvRecorder, CurveHistory, Measures, measure
from dls_ik.viewer.presets import Preset, make_presets, start_configuration
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
