"""One or two arms that follow one target, with what is noted of them; the page shows it.

Everything here may be called by any thread, but :meth:`Session.step`, which one loop calls.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.local import LocalSource
from dls_ik.viewer.measures import Measures, Recording, measured
from dls_ik.viewer.plots import History
from dls_ik.viewer.presets import Preset, comfortable, presets_for
from dls_ik.viewer.source import Sample, Source

HELD = 1.0  # [s] that the target stays where a person has put it, whoever else moves it


class Seen(NamedTuple):
    """An arm at a time."""

    name: str
    sample: Sample
    measures: Measures


class Session:
    """The arms, their target, a preset that moves it, and a recording.

    Args:
        source: the first arm.
        rival: makes the second one, for a method and a place to begin (n,); None: there is none.
    """

    def __init__(
        self, source: Source, rival: Callable[[str, Array | None], Source] | None = None
    ) -> None:
        self.robot = source.robot
        self._rival = rival
        self._lock = threading.RLock()
        self._sources = [source]
        self._preset: Preset | None = None
        self._begun: float | None = None
        self._touched = 0.0  # [s] when a person last moved the target
        self._recording: Recording | None = None
        self._seen: list[Seen] = []
        self.history = History()
        self.target: Array | None = None  # (4, 4) last aimed at

    @property
    def sources(self) -> tuple[Source, ...]:
        """The first, and the second if there is one."""
        return tuple(self._sources)

    @property
    def can_compare(self) -> bool:
        """Whether a second arm can be had."""
        return self._rival is not None

    @property
    def preset(self) -> Preset | None:
        """The one that moves the target now."""
        return self._preset

    @property
    def is_recording(self) -> bool:
        """Whether rows are noted."""
        return self._recording is not None

    def step(self, now: float) -> Sequence[Seen]:
        """Go on to a time [s]; what is seen of all arms, the second one last."""
        with self._lock:
            self._lead(now)
            self._seen = [seen for source in self._sources if (seen := _look(source, now))]
            if len(self._seen) == len(self._sources):
                self.history.add(now, [(seen.sample, seen.measures) for seen in self._seen])
            if self._recording is not None and not self._recording.is_full:
                self._recording.add(self._seen)
            return self._seen

    def led_target(self) -> Array | None:
        """(4, 4) where the target goes by itself, or by others; None: it stays where it is."""
        if self._preset is not None:
            return self.target
        is_remote = self._sources[0].is_remote
        if time.monotonic() < self._touched + HELD or not (is_remote or self.target is None):
            return None
        sample = next((seen.sample for seen in self._seen), None)
        if sample is None or sample.T_target is not None:
            return None if sample is None else sample.T_target
        return sample.T_tip

    def pause(self, paused: bool) -> None:
        """Let all arms stop, or go on.

        Raises:
            DlsIkError: the reason why not.
        """
        for source in self.sources:
            source.pause(paused)

    def aim(self, T: Array) -> None:
        """Let all arms follow a pose (4, 4) from a person's hand; a preset ends."""
        with self._lock:
            self._touched = time.monotonic()
            self._preset = None
            self._aim(T)

    def compare(self, method: str | None) -> None:
        """Put a second arm beside the first, where it is; None: take it away.

        Raises:
            DlsIkError: the reason why not; all stays as it was.
        """
        with self._lock:
            if method is not None and len(self._sources) > 1:
                self._sources[1].use(method)
            elif method is not None and self._rival is not None:
                self._sources.append(self._rival(method, self._first_q()))
                if self.target is not None:
                    self._sources[1].aim(self.target)
            elif method is None and len(self._sources) > 1:
                self._sources.pop().close()

    def play(self, preset: Preset) -> None:
        """Put the arms where a preset begins, with its methods, and let it move the target."""
        with self._lock:
            if self._sources[0].methods:
                self._sources[0].use(preset.methods[0])
            if self.can_compare:
                self.compare(preset.methods[1])
            self._place(preset.start)
            self.history.clear()
            self._preset, self._begun = preset, None

    def stop(self) -> None:
        """Let the target stand where it is."""
        self._preset = None

    def reset(self) -> None:
        """Back to where the first arm begins, without a target.

        Raises:
            DlsIkError: the reason why not.
        """
        with self._lock:
            self._preset = self.target = None
            self._sources[0].reset()
            for other in self._sources[1:]:
                other.reset()
            self.history.clear()

    def start_recording(self) -> None:
        """Note rows from now on."""
        with self._lock:
            self._recording = Recording(self.robot)

    def stop_recording(self) -> bytes | None:
        """The CSV, if there was a recording."""
        with self._lock:
            recording, self._recording = self._recording, None
        return None if recording is None else recording.content()

    def close(self) -> None:
        """End all arms."""
        with self._lock:
            for source in self._sources:
                source.close()

    def _first_q(self) -> Array | None:
        return self._seen[0].sample.q.copy() if self._seen else None

    def _lead(self, now: float) -> None:
        if self._preset is None:
            return
        if self._begun is None:
            self._begun = now
        if now - self._begun >= self._preset.period:  # arms with joints to spare come back changed
            self._begun += self._preset.period
            self._place(self._preset.start)
        self._aim(self._preset.pose(now - self._begun))

    def _place(self, q: Array) -> None:
        for source in self._sources:
            if source.can_place:
                source.place(q)

    def _aim(self, T: Array) -> None:
        self.target = T
        for source in self._sources:
            source.aim(T)


def _look(source: Source, now: float) -> Seen | None:
    sample = source.step(now)
    if sample is None:
        return None
    margins = [p.value for p in source.parameters if p.name == "margin"]
    return Seen(source.name, sample, measured(source.robot, sample, *margins))


def local_session(
    robot: RobotModel, methods: Sequence[str] = ()
) -> tuple[Session, Sequence[Preset]]:
    """One arm, or two for two methods, with the presets that suit the robot.

    Raises:
        MethodError: an unknown method, or one that follows no target.
    """
    start = comfortable(robot)
    method = methods[0] if methods else None
    session = Session(LocalSource(robot, method, start), rivals(robot, start))
    for method in methods[1:2]:
        session.compare(method)
    session.aim(robot.fk(start))
    return session, presets_for(robot)


def rivals(robot: RobotModel, start: Array) -> Callable[[str, Array | None], LocalSource]:
    """What makes a second arm for a robot, at (n,) given or else at `start`."""

    def rival(method: str, q: Array | None) -> LocalSource:
        source = LocalSource(robot, method, start=start)
        if q is not None:
            source.place(q)
        return source

    return rival
