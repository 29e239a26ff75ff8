# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots for the concurrency benchmark, and checks of the node's answers and commands."""

import re
import xml.etree.ElementTree as ET
from collections import Counter, deque
from collections.abc import Collection
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dls_ik import RobotModel
from dls_ik.errors import Code
from dls_ik.model.files import shipped_urdf
from dls_ik.ros.frames import matrix_from_pose

MAX_VIOLATION_TEXTS = 20
MAX_TOLERANCE = 1e-4  # [m, rad] maximum solver tolerance that the tasks set
LIMIT_TOLERANCE = 1e-9  # [rad]
ACCELERATION = 8.0  # [rad/s^2] parameter of the node
ROUNDED = 1.0 + 1e-6
PAUSE = 1.8  # minimum number of periods without a command after which the arm starts from rest
SETTLED = 0.5  # [s] time after a change in motion until all limits are kept
KEPT = 5000  # number of recent commands kept
ONE_ROBOT, LIMITS, CALM = "a command is of one robot", "limits kept", "no jump"
READY = re.compile(r"ready after \S+ s: r(\d+),")


class Ledger:
    """Counts by kind, and texts of the first violations."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()  # number of inputs by kind
        self.checked: Counter[str] = Counter()  # number of checks by invariant
        self.violations: Counter[str] = Counter()  # number of violations by invariant
        self.words: list[str] = []

    def check(self, holds: bool, invariant: str, words: str) -> None:
        """Count a check, and keep its text if it fails."""
        self.checked[invariant] += 1
        if not holds:
            self.violations[invariant] += 1
            if len(self.words) < MAX_VIOLATION_TEXTS:
                self.words.append(f"{invariant}: {words}")


# Robots


class Described(NamedTuple):
    """Robot description."""

    text: str  # URDF with the placeholder NAME
    model: RobotModel | None  # None: the description is invalid


@cache
def good_robots() -> tuple[Described, ...]:
    """Return robots of 2 to 9 joints; the first two have equal names and different limits.

    The last robot has shapes, for collision-free answers.
    """
    trees = [_shipped("wam"), _narrow(), _shipped("puma560"), _shipped("planar_2r")]
    texts = [*(ET.tostring(tree, encoding="unicode") for tree in trees), _snake(9)]
    return tuple(Described(text, RobotModel.from_urdf(text)) for text in texts)


@cache
def broken_robots() -> tuple[Described, ...]:
    """Return descriptions that the node must refuse."""
    whole = good_robots()[0].text
    texts = [
        "",
        "a robot NAME",
        whole[: len(whole) // 2],
        '<robot name="NAME"><link name="alone"/></robot>',
        whole.replace('child link="wam_link3"', 'child link="wam_base"'),
        whole.replace('lower="-2.6"', 'lower="nan"'),
    ]
    return tuple(Described(text, None) for text in texts)


def _shipped(name: str) -> ET.Element:
    root = ET.parse(shipped_urdf(name)).getroot()
    root.set("name", "NAME")
    return root


def _narrow() -> ET.Element:
    """Return a WAM with other limits and a longer first link."""
    root = _shipped("wam")
    for limit in root.iter("limit"):
        for end in ("lower", "upper"):
            limit.set(end, str(0.8 * float(limit.attrib[end])))
        limit.set("velocity", "1.2")
    for origin in root.iterfind("joint/origin"):
        xyz = 1.1 * np.array(origin.get("xyz", "0 0 0").split(), float)
        origin.set("xyz", " ".join(map(str, xyz)))
    return root


def _snake(n: int) -> str:
    sphere = '<collision><geometry><sphere radius="0.03"/></geometry></collision>'  # all apart
    parts = [f'<link name="s{i}">{sphere}</link>' for i in range(n + 1)]
    parts += [
        f'<joint name="snake_{i}" type="revolute"><parent link="s{i}"/><child link="s{i + 1}"/>'
        f'<origin xyz="0 0 0.12"/><axis xyz="0 {i % 2} {1 - i % 2}"/>'
        '<limit lower="-1.7" upper="1.7" effort="1" velocity="1.5"/></joint>'
        for i in range(n)
    ]
    return f'<robot name="NAME">{"".join(parts)}</robot>'


class History:
    """History of the sent descriptions, in order, and of the robots that the node logged as ready.

    The log of the node is the only source. At any time the robot in use is the last one that was
    logged as ready, or one that was sent later.
    """

    def __init__(self) -> None:
        self.sent: list[RobotModel | None] = []  # None: broken
        self.last_ready = -1  # index in `sent`
        self.ready: list[int] = []  # all indices logged as ready
        self.refused = 0

    def send(self, robot: Described) -> str:
        """Record that a description will be sent, and return it with a unique name."""
        self.sent.append(robot.model)
        return robot.text.replace("NAME", f"r{len(self.sent) - 1}")

    def read(self, line: str) -> None:
        """Read a line of the node's log."""
        if found := READY.search(line):
            self.last_ready = int(found[1])
            self.ready.append(self.last_ready)
        self.refused += "robot refused" in line

    @property
    def model(self) -> RobotModel | None:
        """The last robot that was logged as ready."""
        return self.sent[self.last_ready] if self.last_ready >= 0 else None

    def was_other_between(self, first: int, last: int, names: tuple[str, ...]) -> bool:
        """Return whether a robot with other joints may have been in use between two robots."""
        between = (self.sent[i] for i in self.ready if first < i < last)
        return any(model is not None and model.joint_names != names for model in between)

    def since(self, first: int) -> dict[int, RobotModel]:
        """Return the robots that may have been in use since `first`, by index in `sent`."""
        first = max(first, 0)
        return {i: m for i, m in enumerate(self.sent[first:], first) if m is not None}


# Answers


def explains_ik(
    robot: RobotModel, response: Any, link: str, T: np.ndarray, tolerance: float = MAX_TOLERANCE
) -> bool:
    """Return whether an answer of compute_ik is correct for a robot: names, limits, pose (4, 4).

    Joints that do not move the link keep their positions, possibly those of the previous robot.
    The tolerance is that of the solver [m, rad].
    """
    state = response.solution.joint_state
    if tuple(state.name) != robot.joint_names or state.header.frame_id != robot.base:
        return False
    if link and link not in robot.tree.child_joints:
        return False
    q = np.array(state.position)
    moving = {joint.name for joint in robot.tree.path(robot.base, link or robot.tip)}
    stays = np.array([name not in moving for name in robot.joint_names])
    if not robot.within_limits(np.where(stays, robot.clip(q), q), LIMIT_TOLERANCE):
        return False
    at, tip = robot.link_pose(link or robot.tip, q), robot.fk(q)
    arm = np.linalg.norm(at[:3, 3] - tip[:3, 3])  # a link of the tip is off by what the tip turns
    close = np.linalg.norm(at[:3, 3] - T[:3, 3]) <= (1.01 + arm) * tolerance
    return bool(close and np.linalg.norm(at[:3, :3] - T[:3, :3]) <= 1.5 * tolerance)


def explains_fk(robot: RobotModel, response: Any, links: list[str], q: dict[str, float]) -> bool:
    """Return whether poses of links are those of a robot at joint positions by name."""
    if response.fk_link_names != links or len(response.pose_stamped) != len(links):
        return False
    if any(link not in robot.tree.child_joints for link in links):
        return False
    frames = {stamped.header.frame_id for stamped in response.pose_stamped}
    known = {name: value for name, value in q.items() if name in robot.tree.mimic_of}
    at = [robot.tree.pose(link, known) for link in links]
    poses = [matrix_from_pose(stamped.pose) for stamped in response.pose_stamped]
    return frames == {robot.tree.root} and bool(
        np.abs(np.array(at) - poses).max() < LIMIT_TOLERANCE
    )


def is_ik_refusal(response: Any, links: list[str], robots: Collection[RobotModel]) -> bool:
    """Return whether a refusal of compute_ik has a code, a message, no positions, and a cause."""
    message = getattr(response.error_code, "message", "on Humble")
    if not message or "internal error" in message or response.solution.joint_state.name:
        return False
    if response.error_code.val == Code.INVALID_LINK_NAME:
        return is_fk_refusal(response, links, robots)
    return response.error_code.val in {int(each) for each in Code}


def is_fk_refusal(response: Any, links: list[str], robots: Collection[RobotModel]) -> bool:
    """Return whether a refusal is for a link that a robot lacks."""
    unknown = any(link not in robot.tree.child_joints for robot in robots for link in links)
    return unknown and response.error_code.val == Code.INVALID_LINK_NAME


# Commands


class Command(NamedTuple):
    """Received command."""

    names: tuple[str, ...]
    q: np.ndarray  # (n,) [rad]
    v: np.ndarray  # (n,) [rad/s]
    time: float  # stamp [s]

    def of(self, names: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Return positions and velocities of joints; zeros where they are not in the command."""
        known = dict(zip(self.names, zip(self.q, self.v, strict=True), strict=True))
        q, v = np.array([known.get(name, (0.0, 0.0)) for name in names]).T
        return q, v

    def __str__(self) -> str:
        values = zip(self.names, self.q, self.v, strict=False)
        joints = ", ".join(f"{name} {q:.6f} ({v:.4f})" for name, q, v in values)
        return f"[{joints}] at {self.time:.4f}"


class Commands:
    """Check of each command against the previous command and the robots that may be in use.

    The step between two commands is bounded by the velocity limits and two periods, as a cycle is
    at most two periods long; if messages were lost, the stamps allow a longer step. For the time
    `SETTLED` after a change of the robot in motion, a joint must keep its new velocity limit only
    once it is within the limit, and a position limit may stop the joint at any deceleration.

    Args:
        period: Period of the node's cycles [s].
    """

    def __init__(self, history: History, ledger: Ledger, period: float) -> None:
        self._history, self._ledger = history, ledger
        self._period, self._longest = period, 2.0 * period  # [s]
        self.received: deque[Command] = deque(maxlen=KEPT)
        self._possible: set[int] = set()  # indices of the robots of the last command
        self._replaced = -np.inf  # [s] last time at which several robots were possible

    def take(self, message: Any) -> None:
        """Check a ``sensor_msgs/JointState`` of the node."""
        stamp = message.header.stamp
        q, v = np.array(message.position), np.array(message.velocity)
        new = Command(tuple(message.name), q, v, stamp.sec + 1e-9 * stamp.nanosec)
        old = self.received[-1] if self.received else new
        robots = self._history.since(min(self._possible, default=0))
        alike = {i: robot for i, robot in robots.items() if robot.joint_names == new.names}
        whole = len(q) == len(v) == len(new.names) and np.isfinite([*q, *v]).all()
        words = f"{new} after {old}"
        self._ledger.check(bool(alike and whole), ONE_ROBOT, words)
        if not (alike and whole):
            return
        settled = self._possible if new.time - self._replaced > SETTLED else set()
        inside = [i for i, each in alike.items() if _is_inside(each, new, old, i in settled)]
        self._ledger.check(bool(inside), LIMITS, words)
        last = min(self._possible, default=0)  # later robots may not be in use yet
        calm = [
            i
            for i in inside
            if self._is_calm(alike[i], new, old, i in settled)
            or self._history.was_other_between(last, i, new.names)
        ]
        if inside:
            self._ledger.check(bool(calm), CALM, words)
        possible = set(calm or inside or alike)
        if len(possible) > 1 or possible != (self._possible or possible):
            self._replaced = new.time
        self._possible = possible
        self.received.append(new)

    def _is_calm(self, robot: RobotModel, new: Command, old: Command, settled: bool) -> bool:
        """Return whether a command is consistent with the previous command."""
        if old.names != new.names:
            return True
        elapsed = max(new.time - old.time, 0.0)
        longest = elapsed + self._longest
        speed = np.maximum(np.abs(new.v), np.abs(old.v))
        if elapsed > self._longest:  # messages were lost
            speed = np.maximum(speed, robot.velocity)
        near = np.abs(new.q - old.q) <= speed * longest * ROUNDED + LIMIT_TOLERANCE
        change = np.abs(new.v - old.v)
        if elapsed > PAUSE * self._period:  # the arm stopped at the last command meanwhile
            change = np.minimum(change, np.abs(new.v))
        smooth = change <= ACCELERATION * longest * ROUNDED
        if not settled:
            slower = (np.abs(new.v) <= np.abs(old.v)) & (new.v * old.v >= 0.0)
            smooth |= slower & (_beyond(robot, new.q) >= -LIMIT_TOLERANCE)
        return bool((near & smooth).all())


def _is_inside(robot: RobotModel, new: Command, old: Command, settled: bool) -> bool:
    """Return whether a command keeps a robot's limits, or exceeds them no more than before."""
    q, v = old.of(robot.joint_names) if old is not new else (robot.clip(new.q), 0.0 * new.v)
    fastest = robot.velocity * ROUNDED
    slow = np.abs(new.v) <= (fastest if settled else np.maximum(fastest, np.abs(v)))
    back = _beyond(robot, new.q) <= np.maximum(_beyond(robot, q), 0.0) + LIMIT_TOLERANCE
    return bool((slow & back).all())


def _beyond(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """Return the excess of each joint over its limits (n,) [rad]; negative within the limits."""
    return np.maximum(robot.lower - q, q - robot.upper)
