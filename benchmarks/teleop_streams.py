# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Streams of targets as teleoperation produces them, for one arm.

A stream is made from a joint-space motion within the limits, so that its targets can be followed
exactly unless the kind of the stream prevents it.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.core.se3 import moved

PERIOD = 0.01  # [s] time between two cycles
CYCLES = 1000
SPEED_SHARE = 0.4  # speed and acceleration of the hand, as shares of the limits of the arm
RANGE_SHARE = 0.8  # part of the joint ranges in which the hand moves
WAYPOINT_DISTANCE = 0.8  # [rad or m] largest motion of a joint between two waypoints
TREMOR_FREQUENCY, TREMOR_POSITION, TREMOR_ANGLE = 10.0, 3e-4, 2e-3  # [Hz], [m], [rad]
OUTSIDE = np.radians(5.0)  # [rad or m] start outside a joint limit
REACH_FACTOR = 1.3  # distance of the farthest target from the base, as a multiple of the reach
LONGEST_DROPOUT_MOTION = 7.0  # [s] maximum duration of the motion with a dropout
RELEASED_AFTER, RELEASED_CYCLES = (
    270,
    60,
)  # [cycles] lengths of a motion, and of the release after it
DROPOUT, DROPOUT_SPEED = 0.15, 0.3  # [s]; [m/s] mean speed, lower if a joint would be too fast


class Stream(NamedTuple):
    """Targets of one stream, over m cycles."""

    kind: str
    start: np.ndarray  # (n,) joint positions before the first cycle [rad or m]
    targets: np.ndarray  # (m, 4, 4) newest target of each cycle
    has_arrived: np.ndarray  # (m,) bool: whether the target is new in this cycle
    is_judged: np.ndarray  # (m,) bool: whether the target can be reached, and is no glitch


class Hand:
    """Source of random streams for one arm.

    Args:
        robot: Arm with finite velocity limits.
        acceleration: (n,) acceleration limits [rad/s^2 or m/s^2].
        rng: Random generator.
    """

    def __init__(
        self, robot: RobotModel, acceleration: np.ndarray, rng: np.random.Generator
    ) -> None:
        self.robot, self.acceleration, self.rng = robot, acceleration, rng
        lower, upper = robot.finite_limits()
        middle, half = 0.5 * (lower + upper), 0.5 * RANGE_SHARE * (upper - lower)
        self.lower, self.upper = middle - half, middle + half

    def draw(self) -> np.ndarray:
        """Return random joint positions (n,) away from the limits."""
        return self.rng.uniform(self.lower, self.upper)

    def move(self, waypoints: list[np.ndarray], cycles: int = CYCLES) -> np.ndarray:
        """Return a minimum-jerk motion (m, n) through waypoints (n,), and a rest at the end."""
        parts = []
        for a, b in pairwise(waypoints):
            way = np.abs(b - a)
            fastest = np.max(1.875 * way / (SPEED_SHARE * self.robot.velocity))
            hardest = np.max(np.sqrt(5.7735 * way / (SPEED_SHARE * self.acceleration)))
            count = int(np.ceil(max(fastest, hardest) / PERIOD)) + 1
            s = np.linspace(0.0, 1.0, count + 1)[1:, None]
            parts.append(a + (b - a) * s**3 * (10.0 - 15.0 * s + 6.0 * s**2))
        q = np.concatenate(parts)[:cycles]
        return np.concatenate([q, np.repeat(q[-1:], cycles - len(q), axis=0)])

    def wander(self, start: np.ndarray, cycles: int = CYCLES) -> np.ndarray:
        """Return a motion (m, n) through random waypoints."""
        waypoints = [start]
        for _ in range(cycles // 20):
            step = self.rng.uniform(-WAYPOINT_DISTANCE, WAYPOINT_DISTANCE, self.robot.n)
            waypoints.append(np.clip(waypoints[-1] + step, self.lower, self.upper))
        return self.move(waypoints, cycles)

    def shake(self, T: np.ndarray) -> np.ndarray:
        """Return targets (m, 4, 4) with the tremor of a hand."""
        t = PERIOD * np.arange(len(T))
        phase = self.rng.uniform(0.0, 2.0 * np.pi, 6)
        wave = np.sin(2.0 * np.pi * TREMOR_FREQUENCY * t[:, None] + phase)
        twist = wave * ([TREMOR_POSITION] * 3 + [TREMOR_ANGLE] * 3)
        return np.stack([moved(T[i], twist[i]) for i in range(len(T))])


def judged(kind: str, start: np.ndarray, T: np.ndarray) -> Stream:
    """Return a stream whose targets all arrive and can be reached."""
    return Stream(kind, start, T, np.ones(len(T), bool), np.ones(len(T), bool))


def reaching(hand: Hand) -> Stream:
    """Return reaching motions of a hand that trembles."""
    start = hand.draw()
    return judged("reaching", start, hand.shake(hand.robot.fk(hand.wander(start))))


def headset(hand: Hand) -> Stream:
    """Return reaching with one glitch of 0.1 to 1 m and one dropout of 50 to 500 ms per second."""
    stream = reaching(hand)
    T, has_arrived, is_judged = stream.targets, stream.has_arrived, stream.is_judged
    for second in range(1, int(len(T) * PERIOD)):
        at = round(second / PERIOD) + int(hand.rng.integers(0, 20))
        direction = hand.rng.normal(size=3)
        T[at, :3, 3] += hand.rng.uniform(0.1, 1.0) * direction / np.linalg.norm(direction)
        is_judged[at] = False
        first = round((second + 0.3) / PERIOD)
        last = first + int(hand.rng.uniform(0.05, 0.5) / PERIOD)
        has_arrived[first:last] = is_judged[first:last] = False
        T[first:last] = T[first - 1]
    return stream._replace(kind="headset")


def clutch(hand: Hand) -> Stream:
    """Return three motions between which the hand moves on while the clutch is released.

    The targets are absolute, as most teleoperation programs send them, so they jump at re-clutch.
    """
    start = hand.draw()
    T = hand.robot.fk(hand.wander(start, 2 * CYCLES))
    cycles = np.arange(2 * CYCLES)
    is_held = (cycles % 600) < 300
    T, count = T[is_held][:CYCLES], CYCLES
    return judged("clutch", start, T[:count])


def relative_clutch(hand: Hand) -> Stream:
    """Return three motions from rest to rest, between which the clutch is released.

    The motion of the hand is relative: at re-clutch the target is where it was at the release.
    """
    q, start = [], hand.draw()
    for _ in range(3):
        step = hand.rng.uniform(-WAYPOINT_DISTANCE, WAYPOINT_DISTANCE, hand.robot.n)
        goal = np.clip((q[-1][-1] if q else start) + step, hand.lower, hand.upper)
        q.append(hand.move([q[-1][-1] if q else start, goal], RELEASED_AFTER))
        q.append(np.repeat(q[-1][-1:], RELEASED_CYCLES + 1, axis=0))
    path = np.concatenate(q)
    T = hand.robot.fk(path[np.minimum(np.arange(CYCLES), len(path) - 1)])
    stream = judged("re-clutch", start, T)
    period = RELEASED_AFTER + RELEASED_CYCLES + 1
    stream.has_arrived[:] = np.arange(len(T)) % period < RELEASED_AFTER
    for first in range(RELEASED_AFTER, len(T), period):
        resumed = first + RELEASED_CYCLES
        if resumed < len(T):
            stream.has_arrived[resumed] = True  # repeats the pose before the release
    return stream


def beyond(hand: Hand) -> Stream:
    """Return a line away from the base to a point out of reach, a rest there, and the return."""
    start = hand.draw()
    T0 = hand.robot.fk(start)
    far = T0[:3, 3] * (REACH_FACTOR * reach_of(hand.robot) / np.linalg.norm(T0[:3, 3]))
    s = np.interp(np.arange(CYCLES), [0, 400, 600, CYCLES - 100], [0.0, 1.0, 1.0, 0.0])
    T = np.tile(T0, (CYCLES, 1, 1))
    T[:, :3, 3] += s[:, None] * (far - T0[:3, 3])
    stream = judged("beyond reach", start, T)
    stream.is_judged[1 : CYCLES - 100] = False
    return stream


def reach_of(robot: RobotModel) -> float:
    """Return the largest distance of the tip from the base in random configurations [m]."""
    q = robot.random(2000, rng=np.random.default_rng(0))
    return float(np.linalg.norm(robot.fk(q)[:, :3, 3], axis=1).max())


def singular(hand: Hand) -> Stream:
    """Return a straight line that passes close to a singular configuration, there and back.

    Of the random lines that can be followed, the one with the smallest singular value is taken.
    """
    solver = IkSolver(hand.robot)
    best: tuple[float, np.ndarray, np.ndarray] | None = None
    for _ in range(60):
        q = hand.draw()
        T0, T1 = hand.robot.fk(q), hand.robot.fk(q)
        T1[:3, 3] += hand.rng.uniform(-0.3, 0.3, 3)
        T = line(T0, T1, 40)
        smallest = np.inf
        at = q
        for each in T:
            found = solver.solve(each, at)
            if not found.success or np.abs(found.q - at).max() > 0.5:
                break
            at = found.q
            smallest = min(smallest, np.linalg.svd(hand.robot.jacobian(at))[1][-1])
        else:
            if best is None or smallest < best[0]:
                best = smallest, q, T1
    if best is None:
        return reaching(hand)._replace(kind="singular")
    _, q, T1 = best
    T = line(hand.robot.fk(q), T1, CYCLES // 2)
    return judged("singular", q, np.concatenate([T, T[::-1]]))


def line(T0: np.ndarray, T1: np.ndarray, count: int) -> np.ndarray:
    """Return poses (count, 4, 4) on a line from T0 to T1, with the orientation of T0."""
    T = np.tile(T0, (count, 1, 1))
    s = np.linspace(0.0, 1.0, count)[:, None]
    T[:, :3, 3] += s**3 * (10.0 - 15.0 * s + 6.0 * s**2) * (T1[:3, 3] - T0[:3, 3])
    return T


def at_limits(hand: Hand) -> Stream:
    """Return a motion in which each joint in turn moves to one of its limits and rests there."""
    start = hand.draw()
    waypoints = [start]
    lower, upper = hand.robot.finite_limits()
    for joint in hand.rng.permutation(hand.robot.n):
        q = hand.draw() * 0.3 + waypoints[-1] * 0.7
        q[joint] = (lower, upper)[hand.rng.integers(2)][joint]
        waypoints += [q, q]
    return judged("at limits", start, hand.robot.fk(hand.move(waypoints)))


def outside(hand: Hand) -> Stream:
    """Return a stream with a start outside a joint limit, and targets inside, first at rest."""
    start = hand.draw()
    q = hand.move([start, start])[:100]
    q = np.concatenate([q, hand.wander(start, CYCLES - 100)])
    begin = start.copy()
    limited = np.flatnonzero(np.isfinite(hand.robot.upper))
    joint = hand.rng.choice(limited)
    begin[joint] = hand.robot.upper[joint] + OUTSIDE
    return judged("outside limits", begin, hand.robot.fk(q))


def dropout(hand: Hand) -> Stream:
    """Return a motion of constant speed between two rests, with one dropout of 150 ms."""
    start, end = hand.draw(), hand.draw()
    q = start + np.linspace(0.0, 1.0, 101)[:, None] * (end - start)
    path = hand.robot.fk(q)[:, :3, 3]
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1).cumsum()
    fastest = np.max(np.abs(end - start) / (SPEED_SHARE * hand.robot.velocity))
    duration = max(lengths[-1] / DROPOUT_SPEED, fastest)
    share = min(1.0, LONGEST_DROPOUT_MOTION / duration)
    end, duration = start + share * (end - start), share * duration
    s = np.clip((np.arange(CYCLES) * PERIOD - 1.0) / duration, 0.0, 1.0)
    T = hand.robot.fk(start + s[:, None] * (end - start))
    stream = judged("dropout", start, T)
    first, count = round((1.0 + 0.4 * duration) / PERIOD), round(DROPOUT / PERIOD)
    stream.has_arrived[first : first + count] = False
    T[first : first + count] = T[first - 1]
    return stream


KINDS: dict[str, Callable[[Hand], Stream]] = {
    "reaching": reaching,
    "headset": headset,
    "clutch": clutch,
    "beyond reach": beyond,
    "singular": singular,
    "at limits": at_limits,
    "outside limits": outside,
    "dropout": dropout,
    "re-clutch": relative_clutch,
}
