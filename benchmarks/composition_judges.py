# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Judges of the record of a stream, which share no code with the package.

Each judge records findings (violations) and the maximum ratios of a run.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from benchmarks.composition_motion import judge_points, motion_excess, tip_speeds
from benchmarks.composition_wire import Chapter, Fault, Message, Row, Wire, stop_positions
from benchmarks.exact_distances import World, link_poses
from dls_ik.core.types import Array, Flags
from dls_ik.servo.motion import StopPath

LIMITS = ("position", "velocity", "acceleration", "jerk")
RELATIVE = 1e-6  # allowed relative excess over a joint limit
TIP_RELATIVE = 1e-3  # allowed relative excess over a tip speed between cycle points
POINT_RELATIVE = 1e-2  # allowed relative excess over a limit between points of a trajectory
DISTANCE = 1e-6  # [m] allowed error of the required distance of a pair
SPHERES = 2e-3  # [m] allowed error after a pair was too close, as the package bounds use spheres
DEEP_SHARE = 0.1  # share by which a penetration may deepen, as spheres measure it differently
STOP_PERIOD = 6  # commands between checked stops
STOP_SHARES = np.array([0.12, 0.25, 0.4, 0.6, 0.8, 1.0])  # checked instants of a stop
FINE = 24  # samples of a stop in flight when the scene changes
RATCHET = 100  # commands after which pairs that are too close must keep their present distance
TOUCHING = 2e-3  # [m] maximum difference of exact distances and the bounds of the package
DEEPER = 1e-7  # [m]
SUBSTEPS = 4  # parts of a cycle for the check of the tip
ON_STOP = 1e-9  # [rad or m] maximum difference of a command and the stop that it follows
TIP_PERIOD = 10  # commands between stops that are checked for the tip speed
FAULTS = {
    "contact": "a contact cannot be avoided",
    "deviation": "more than max_deviation",
    "measurement": "no joint states",
    "plug-in": "plug-in",
    "slow plug-in": "takes more than",  # duration on a loaded machine
}


class Finding(NamedTuple):
    """Violation of an invariant."""

    judge: str
    cycle: int
    value: float
    allowed: float
    text: str


@dataclass
class Figures:
    """Maximum ratios of a run, and its findings."""

    findings: list[Finding] = field(default_factory=list)
    ratios: dict[str, float] = field(default_factory=dict)  # value / allowed value, by judge
    least: float = np.inf  # minimum of distance / required distance
    exact: int = 0  # distances by the library
    faults: dict[str, int] = field(default_factory=dict)

    def note(self, judge: str, ratio: float) -> None:
        """Record a ratio of a judge if it is the maximum so far."""
        self.ratios[judge] = max(ratio, self.ratios.get(judge, 0.0))

    def found(self, judge: str, cycle: int, value: float, allowed: float, text: str) -> None:
        """Record the first finding of a judge."""
        if all(finding.judge != judge for finding in self.findings):
            self.findings.append(Finding(judge, cycle, value, allowed, text))


def judge(wire: Wire, truths: dict[str, bool], figures: Figures) -> None:
    """Judge a record, and store the results in `figures`.

    Args:
        wire: Record of a stream.
        truths: Whether faults of each kind in FAULTS have a reason; contacts are checked here.
        figures: Results of the run.
    """
    for cycle, text in wire.problems:
        figures.found("state", cycle, 1.0, 0.0, text)
    for chapter in wire.chapters:
        for fault in chapter.faults:
            _judge_fault(fault, chapter, truths, figures)
        if chapter.rows:
            _judge_motion(chapter, wire, figures)
            _judge_tip(chapter, wire, figures)
            _judge_points(chapter, wire, figures)
            DistanceJudge(chapter, wire.settings.min_distance, figures).run()
    figures.findings.sort(key=lambda finding: finding.cycle)


# Joints and tip


def _limits(chapter: Chapter, name: str) -> Array:
    values = np.array([getattr(limits, name) for limits in chapter.limits])
    found: Array = values[[row.limits for row in chapter.rows]]
    return found


def _rows(chapter: Chapter) -> tuple[Array, Array, Array, Array]:
    """Return commands (m, n), times (m,) [s], starts (m, n), and whether each starts at rest."""
    rows = chapter.rows
    q, dt = np.array([row.q for row in rows]), np.array([row.dt for row in rows])
    rests = np.array([row.start is not None for row in rows])
    start = np.array([row.q if row.start is None else row.start for row in rows])
    return q, dt, start, rests


def _judge_motion(chapter: Chapter, wire: Wire, figures: Figures) -> None:
    q, dt, start, rests = _rows(chapter)
    A, jerk, grace = _rates(wire)
    lower, upper, v = (_limits(chapter, name) for name in ("lower", "upper", "velocity"))
    ratio = motion_excess(q, dt, start, rests, (lower, upper, v), (A, jerk, grace))
    for k, name in enumerate(LIMITS):
        worst = int(np.argmax(ratio[:, k]))
        value = float(ratio[worst, k])
        if k == 0:
            value, name = 1.0 + value, "position"
        figures.note(name, value)
        if value > 1.0 + RELATIVE:
            text = f"{name} is {value:.6g} times its limit"
            figures.found(name, chapter.rows[worst].cycle, value, 1.0, text)


def _rates(wire: Wire) -> tuple[float, float, float]:
    """Return the acceleration and jerk limits, and the time [s] that a previous limit is valid."""
    settings = wire.settings
    jerk = settings.jerk or np.inf
    A = np.inf if settings.acceleration >= 1e8 else settings.acceleration
    return A, jerk, 3.0 / settings.rate + (A / jerk if np.isfinite(jerk) else 0.0)


def paths_between(rows: list[Row]) -> Array:
    """Return paths (m, SUBSTEPS + 1, n) between successive commands.

    A command that follows the stop in flight is reached along that stop, all others along a
    straight line. If the joints slow down at different rates, a straight line may turn the tip
    faster than the stop does.
    """
    shares = np.linspace(0.0, 1.0, SUBSTEPS + 1)
    paths = np.empty((len(rows), SUBSTEPS + 1, len(rows[0].q)))
    before, stop, elapsed = rows[0].q, None, 0.0  # stop in flight, and time along the stop [s]
    for path, row in zip(paths, rows, strict=True):
        if row.start is not None:
            before, stop = row.start, None
        path[:] = before + shares[:, None] * (row.q - before)
        if stop is not None:
            along = stop_positions(stop, elapsed + shares * row.dt)
            if np.abs(along[-1] - row.q).max() <= ON_STOP:
                path[:] = along
        elapsed += row.dt
        if row.stop is not None:
            stop, elapsed = row.stop, 0.0
        before = row.q
    return paths


def brakes_from(rows: list[Row], speeds: Array) -> Flags:
    """Return whether each command (m,) is on the stop in flight when a limit became stricter.

    Such a command was published, as a point of this stop, before the change. The first command
    elsewhere ends the stop: it was chosen after the change.

    Args:
        rows: The m commands.
        speeds: (m, k) limits that are valid for each command.
    """
    is_stricter = np.append(False, (speeds[1:] < speeds[:-1]).any(axis=1))
    found = np.zeros(len(rows), bool)
    flight: tuple[StopPath, float] | None = None  # the last stop, and the time along it [s]
    kept: tuple[StopPath, float] | None = None  # the stop in flight at the change, and the time
    for i, row in enumerate(rows):
        kept = flight if kept is None and is_stricter[i] else kept
        kept, flight = (each and (each[0], each[1] + row.dt) for each in (kept, flight))
        if kept is not None:
            on_stop = stop_positions(kept[0], np.array([kept[1]]))[0]
            found[i] = row.start is None and np.abs(on_stop - row.q).max() <= ON_STOP
            kept = kept if found[i] else None
        flight = flight if row.stop is None else (row.stop, 0.0)
    return found


def _tip_link(chapter: Chapter) -> int:
    return chapter.model.links[chapter.model.robot.tip]


def _judge_tip(chapter: Chapter, wire: Wire, figures: Figures) -> None:
    speeds = np.column_stack([_limits(chapter, "linear"), _limits(chapter, "angular")])
    if not np.isfinite(speeds).any():
        return
    kinematics, link = chapter.scenes[0][1].kinematics, _tip_link(chapter)
    dt, paths = np.array([row.dt for row in chapter.rows]), paths_between(chapter.rows)
    brakes = brakes_from(chapter.rows, speeds)
    ratio, allowed = tip_speeds(kinematics, link, paths, dt, speeds, brakes)
    worst = int(np.argmax(ratio))
    _note_tip(figures, "tip speed", chapter.rows[worst].cycle, float(ratio[worst]))
    for i in range(0, len(dt), TIP_PERIOD):
        stop = chapter.rows[i].stop
        if stop is None or stop.is_over or not np.isfinite(allowed[i]).any():
            continue
        duration = float(stop.durations.sum(axis=0).max())
        if duration == 0.0:  # the arm is at rest
            continue
        step = max(0.1 / wire.settings.rate, duration / 400)
        times = np.arange(0.0, duration + step, step)
        poses = np.empty((len(times), 3, 4))
        link_poses(kinematics, stop_positions(stop, times), link, poses)
        chord = np.linalg.norm(np.diff(poses[:, :, 3], axis=0), axis=1).max() / step
        turn = np.linalg.norm(np.diff(poses[:, :, :3], axis=0), axis=(1, 2)).max()
        turn = 2.0 * np.arcsin(min(turn / 8**0.5, 1.0)) / step
        worst_ratio = max(chord / allowed[i, 0], turn / allowed[i, 1])
        _note_tip(figures, "tip speed of a stop", chapter.rows[i].cycle, float(worst_ratio))


def _note_tip(figures: Figures, name: str, cycle: int, ratio: float) -> None:
    figures.note(name, ratio)
    if ratio > 1.0 + TIP_RELATIVE:
        figures.found(name, cycle, ratio, 1.0, f"{name} is {ratio:.4g} times its limit")


def _judge_points(chapter: Chapter, wire: Wire, figures: Figures) -> None:
    A = _rates(wire)[0]
    jumps = {row.cycle for row in chapter.rows if row.is_measured}
    for run in _windows(chapter.messages, jumps):
        velocity = max(float(limits.velocity.max()) for limits in chapter.limits)
        times = np.array([m.time for m in run])
        ratios = judge_points(times, *_padded(run), velocity, A)
        for name, values in zip(("velocity", "acceleration"), ratios.T, strict=True):
            worst = int(np.argmax(values))
            name, value = f"{name} between points", float(values[worst])
            figures.note(name, value)
            if value > 1.0 + POINT_RELATIVE:
                text = f"{name} of a trajectory is {value:.4g} times its limit"
                figures.found(name, run[worst].cycle, value, 1.0, text)


def _padded(run: list[Message]) -> list[Array]:
    """Return times, positions, velocities and accelerations with equal numbers of points.

    The last point, at rest, is repeated at intervals of a second as often as necessary.
    """
    most = max(len(m.offsets) for m in run)
    arrays: list[list[Array]] = [[], [], [], []]
    for m in run:
        missing = most - len(m.offsets)
        later = m.offsets[-1] + np.arange(1.0, missing + 1.0)
        arrays[0].append(np.concatenate([m.offsets, later]))
        for found, rows in zip(arrays[1:], (m.q, m.v, m.a), strict=True):
            found.append(np.concatenate([rows, np.repeat(rows[-1:], missing, axis=0)]))
    return [np.array(each) for each in arrays]


def _windows(messages: list[Message], jumps: Container[int]) -> Iterator[list[Message]]:
    """Yield messages of consecutive cycles, split at cycles that start at the measurement."""
    run: list[Message] = []
    for message in messages:
        if run and (message.cycle != run[-1].cycle + 1 or message.cycle in jumps):
            yield run
            run = []
        run.append(message)
    if run:
        yield run


# Distances


def stop_samples(stop: StopPath | None, count: int) -> Array:
    """Return joint positions (k, n) along a stop from its start to its end; (0, n) without one."""
    if stop is None:
        return np.zeros((0, 0))
    duration = float(stop.durations.sum(axis=0).max(initial=0.0))
    return stop_positions(stop, np.linspace(0.0, duration, count if duration else 1))


def least_on_stop(world: World, pair: int, stop: StopPath) -> float:
    """Return the smallest exact distance of a pair along a stop [m]."""
    low, high = 0.0, float(stop.durations.sum(axis=0).max(initial=0.0))
    best = np.inf
    for count in (FINE, 12, 12):
        times = np.linspace(low, high, count)
        found = [world.distance(q, pair) for q in stop_positions(stop, times)]
        k = int(np.argmin(found))
        best = min(best, found[k])
        low, high = times[max(k - 1, 0)], times[min(k + 1, count - 1)]
    return best


def pair_keys(world: World) -> list[tuple[Any, ...]]:
    """Return a key of each pair; pairs with equal keys have equal distances everywhere."""
    parts = [(part.name, id(part.shape), part.link, part.T.tobytes()) for part in world.parts]
    standing = [_standing_joints(world, part.link) for part in world.parts]
    pairs = world.pairs.tolist()
    return [(parts[a], parts[b], frozenset(standing[a] ^ standing[b])) for a, b in pairs]


def _standing_joints(world: World, link: int) -> set[tuple[int, float]]:
    """Return the joints outside the chain that move a link, with their values [rad or m]."""
    kinematics, found = world.kinematics, set[tuple[int, float]]()
    while link:
        joint = link - 1  # the joint that moves the link
        if kinematics.column[joint] < 0:
            found.add((joint, float(kinematics.offset[joint])))
        link = int(kinematics.parent[joint])
    return found


class DistanceJudge:
    """Judge of the exact distances of commands, and of the stops that follow them.

    A pair must keep `min_distance`. After a change of the scene or a jump of the arm left a
    smaller distance, the pair must keep the minimum distance along the stop in flight, and any
    distance regained since, within the accuracy of the spheres by which the package bounds
    distances.
    """

    def __init__(self, chapter: Chapter, min_distance: float, figures: Figures) -> None:
        self._chapter, self._min, self._figures = chapter, min_distance, figures
        self._floors: dict[
            tuple[Any, ...], float
        ] = {}  # required distances of known pairs by key [m]

    def run(self) -> None:
        """Judge all commands of a chapter."""
        rows, scenes = self._chapter.rows, self._chapter.scenes
        latest = dict(scenes)  # the last scene of each row is valid
        marks = {*latest, *range(0, len(rows), RATCHET)}
        marks |= {i for i, row in enumerate(rows) if row.is_measured}
        cuts = sorted(mark for mark in marks if mark < len(rows))
        world = scenes[0][1]
        keys: list[tuple[Any, ...]] = []
        for first, last in zip(cuts, [*cuts[1:], len(rows)], strict=True):
            if first in latest:
                world = latest[first]
                keys = pair_keys(world)
            if rows[first].is_measured:
                self._floors = {}
            self._segment(world, keys, first, last)

    def _segment(self, world: World, keys: list[tuple[Any, ...]], first: int, last: int) -> None:
        if not keys:
            return
        rows, floors = self._chapter.rows, np.full(len(keys), self._min)
        known = self._floors
        fresh = np.array([key not in known for key in keys])
        for p, key in enumerate(keys):
            floors[p] = known.get(key, self._min)
        if fresh.any():
            self._admit(world, np.flatnonzero(fresh), floors, first)
        looked, cycles = [np.array([row.q for row in rows[first:last]])], []
        cycles = list(range(first, last))
        for i in range(first + (-first) % STOP_PERIOD, last, STOP_PERIOD):
            stop = rows[i].stop
            if stop is not None and not stop.is_over:
                duration = float(stop.durations.sum(axis=0).max())
                looked.append(stop_positions(stop, STOP_SHARES * duration))
                cycles += [i] * len(STOP_SHARES)
        self._compare(world, floors, np.vstack(looked), cycles)
        self._regain(world, floors, rows[last - 1].stop)
        self._floors = dict(zip(keys, floors.tolist(), strict=True))

    def _admit(self, world: World, fresh: Array, floors: Array, first: int) -> None:
        """Lower the floors of new pairs to the minimum distance along the stop in flight."""
        row = self._chapter.rows[first]
        before = self._chapter.rows[first - 1] if first else None
        stop = None if before is None or row.start is not None else before.stop
        if stop is None:
            place = self._chapter.start if row.start is None else row.start
            path = place[None]
        else:
            path = stop_samples(stop, FINE)
        limits = np.full(len(floors), -np.inf)
        limits[fresh] = self._min
        found = world.least(path, limits)
        for p, d in found.items():
            floors[p] = min(d, self._min if stop is None else least_on_stop(world, p, stop))

    def _compare(self, world: World, floors: Array, q: Array, rows: list[int]) -> None:
        figures, seen = self._figures, dict[tuple[int, bytes], float]()
        for k, p in world.near(q, floors):
            known = (p, q[k].tobytes())
            if known in seen:
                continue
            figures.exact += 1
            seen[known] = d = world.distance(q[k], p)
            floor = floors[p]
            if floor > 0.0 and floor == self._min:
                figures.least = min(figures.least, d / floor)
            slack = DISTANCE if floor == self._min else SPHERES - DEEP_SHARE * min(floor, 0.0)
            if d < floor - slack:
                where = "a command" if k < len(set(rows)) else "a stop"
                names = " and ".join(world.name(p))
                text = f"{where} brings {names} to {1e3 * d:.4f} mm of {1e3 * floor:.4f} mm"
                cycle = self._chapter.rows[rows[k]].cycle
                figures.found("distance", cycle, float(d), float(floor), text)

    def _regain(self, world: World, floors: Array, stop: StopPath | None) -> None:
        """Raise the floors of pairs whose distance has grown along the whole stop."""
        if stop is None:
            return
        for p in np.flatnonzero(floors < self._min).tolist():
            floors[p] = max(floors[p], min(self._min, least_on_stop(world, p, stop) - DISTANCE))


# Faults


def _judge_fault(fault: Fault, chapter: Chapter, truths: dict[str, bool], figures: Figures) -> None:
    kind = next((kind for kind, words in FAULTS.items() if words in fault.message), "other")
    figures.faults[kind] = figures.faults.get(kind, 0) + 1
    is_true = _is_contact(fault, chapter) if kind == "contact" else truths.get(kind, False)
    if not is_true:
        text = f"a fault without a reason: {fault.message}"
        figures.found("fault", fault.cycle, 1.0, 0.0, text)


def _is_contact(fault: Fault, chapter: Chapter) -> bool:
    """Return whether a pair is in contact along the stop in flight, or a new object is."""
    world, before = fault.worlds
    known = set(pair_keys(world if before is None else before))
    start = chapter.rows[fault.row - 1].q if fault.row else chapter.start
    path = start[None] if fault.stop is None else stop_samples(fault.stop, 2 * FINE)
    keys: Iterable[Any] = pair_keys(world)
    fresh = [key not in known for key in keys]
    for pair, d in world.least(path, np.full(len(world.pairs), TOUCHING)).items():
        if fresh[pair] or d < world.distance(path[0], pair) - DEEPER:
            return True
    return False
