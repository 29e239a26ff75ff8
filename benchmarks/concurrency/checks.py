"""Checks of the node: answers and commands compared with the robots that may be in force."""

import re
import time
from collections import Counter, deque
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.concurrency.robots import Described
from dls_ik import RobotModel
from dls_ik.model.analysis import ready_configuration
from dls_ik.ros.frames import matrix_from_pose

# Ledger

MOST = 20  # violations that are kept with their words


class Ledger:
    """Counts by kind; the words of the first violations."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()  # what was sent to the node
        self.checked: Counter[str] = Counter()  # by invariant
        self.violations: Counter[str] = Counter()  # by invariant
        self.words: list[str] = []

    def check(self, holds: bool, invariant: str, words: str) -> None:
        """Count a check; keep the words if it does not hold."""
        self.checked[invariant] += 1
        if not holds:
            self.violations[invariant] += 1
            if len(self.words) < MOST:
                self.words.append(f"{invariant}: {words}")


# Answers

Heard = tuple[tuple[str, ...], np.ndarray]  # names of joints, and their values [rad]

SUCCESS = 1
LOOSEST = 1e-4  # [m, rad] tolerance that the parameters are ever given
TIGHT = 1e-9  # [rad]
NEAR = 0.1  # [m, or difference of a matrix] of a cycle or two of motion


def explains(robot: RobotModel, response: Any, link: str, T: np.ndarray) -> bool:
    """Test if an answer of compute_ik is right for a robot: names, limits, and the pose (4, 4).

    Joints that do not move the link keep their values, which may be those of the robot before.
    """
    state = response.solution.joint_state
    if tuple(state.name) != robot.joint_names or state.header.frame_id != robot.base:
        return False
    if link and link not in robot.tree.child_joints:
        return False
    q = np.array(state.position)
    moving = {joint.name for joint in robot.tree.path(robot.base, link or robot.tip)}
    stays = np.array([name not in moving for name in robot.joint_names])
    if not robot.within_limits(np.where(stays, robot.clip(q), q), TIGHT):
        return False
    at, tip = robot.link_pose(link or robot.tip, q), robot.fk(q)
    arm = np.linalg.norm(at[:3, 3] - tip[:3, 3])  # a link of the tip is off by what the tip turns
    close = np.linalg.norm(at[:3, 3] - T[:3, 3]) <= (1.01 + arm) * LOOSEST
    return bool(close and np.linalg.norm(at[:3, :3] - T[:3, :3]) <= 1.5 * LOOSEST)


def explains_fk(robot: RobotModel, response: Any, links: list[str], q: dict[str, float]) -> bool:
    """Test if poses of links are those of a robot at joint values by name."""
    asked = links or [robot.tip]
    if response.fk_link_names != asked or len(response.pose_stamped) != len(asked):
        return False
    if any(link not in robot.tree.child_joints for link in asked):
        return False
    frames = {stamped.header.frame_id for stamped in response.pose_stamped}
    known = {name: value for name, value in q.items() if name in robot.tree.mimic_of}
    at = [robot.tree.pose(link, known) for link in asked]
    poses = [matrix_from_pose(stamped.pose) for stamped in response.pose_stamped]
    return frames == {robot.tree.root} and bool(np.abs(np.array(at) - poses).max() < TIGHT)


def distance(robot: RobotModel, response: Any, states: Iterable[np.ndarray]) -> float:
    """Return the difference of the tip's pose in an answer from that at the nearest state (n,)."""
    if response.fk_link_names != [robot.tip]:
        return np.inf
    values = np.array(list(states)).reshape(-1, robot.n)
    T = matrix_from_pose(response.pose_stamped[0].pose)
    return float(np.abs(robot.fk(values) - T).max(axis=(1, 2)).min(initial=np.inf))


def states_of(robot: RobotModel, heard: Iterable[Heard], is_new: bool) -> list[np.ndarray]:
    """States (n,) that a robot was in by what was commanded or measured, names and values.

    Args:
        is_new: it may have taken the place of another robot just now: joints that were not there
            before begin where the node begins.
    """
    start, found = ready_configuration(robot), []
    for names, q in heard:
        known = dict(zip(names, q, strict=True))
        if is_new or all(name in known for name in robot.joint_names):
            pairs = zip(robot.joint_names, start, strict=True)
            found.append(np.array([known.get(name, first) for name, first in pairs]))
    return found


def told_in_parts(robot: RobotModel, told: Iterable[Heard]) -> list[np.ndarray]:
    """States (n,) of what drivers told last of each joint, which may be of one robot and the next.

    Args:
        told: in the order in which it was.
    """
    latest: dict[str, float] = {}
    found = []
    for names, q in told:
        latest.update(zip(names, q, strict=True))
        if all(name in latest for name in robot.joint_names):
            found.append(np.array([latest[name] for name in robot.joint_names]))
    return found


# History of the robots

READY = re.compile(r"ready after \S+ s: (r\d+),")
REFUSED = "robot refused"


class Sent(NamedTuple):
    """A description that was sent."""

    name: str
    model: RobotModel | None  # None: broken
    time: float  # just before, on the clock of stamps [s]


class History:
    """All descriptions in the order in which they were sent, and those known to have been in force.

    The log of the node is the only source. At any time the robot in force is the last one that the
    node called ready, or one that was sent after it.
    """

    def __init__(self) -> None:
        self.sent: list[Sent] = []
        self.last_ready = -1  # index in `sent`
        self.refused = 0

    def send(self, robot: Described) -> str:
        """Note that a description is about to be sent; return it, with a name of its own."""
        name = f"r{len(self.sent)}"
        self.sent.append(Sent(name, robot.model, time.time()))
        return robot.named(name)

    def hear(self, line: str) -> None:
        """Take a line of the node's log."""
        if found := READY.search(line):
            self.last_ready = int(found[1][1:])
        self.refused += REFUSED in line

    @property
    def model(self) -> RobotModel | None:
        """The robot last called ready."""
        return self.sent[self.last_ready].model if self.last_ready >= 0 else None

    def models(self, first: int) -> list[RobotModel]:
        """All that may have been in force since then, from the index of what was ready then."""
        found = self.sent[max(first, 0) :]
        return [each.model for each in found if each.model is not None]

    def indices(self, first: int) -> Iterable[int]:
        """The indices in `sent` of the same."""
        start = max(first, 0)
        return (i for i in range(start, len(self.sent)) if self.sent[i].model is not None)


# Commands

ACCELERATION = 8.0  # [rad/s^2] that the node is given
ROUNDED = 1.0 + 1e-6
SETTLED = 0.5  # [s] after which an arm keeps limits that came in motion like all others
KEPT, MEASURED = 5000, 500  # commands, and messages of the driver
ONE_ROBOT, LIMITS, CALM = "a command is of one robot", "limits kept", "no jump"


class Command(NamedTuple):
    """A command that was heard."""

    names: tuple[str, ...]
    q: np.ndarray  # (n,) [rad]
    v: np.ndarray  # (n,) [rad/s]
    time: float  # by its stamp [s]


class Commands:
    """Checks each command against the one before and against the robots it may be of.

    A robot that was replaced returns by another description only. The step between two commands is
    bounded by the velocity, as a cycle counts two periods at most; the stamps allow for more where
    messages are lost.

    Args:
        period: of the node's cycles [s].
    """

    def __init__(self, history: History, ledger: Ledger, period: float) -> None:
        self._history, self._ledger, self._longest = history, ledger, 2.0 * period
        self.heard: deque[Command] = deque(maxlen=KEPT)
        self.measured: deque[Heard] = deque(maxlen=MEASURED)
        self._possible: set[int] = set()  # indices of the robots that the last one may be of
        self._replaced = -np.inf  # when one of several may have been in force last [s]

    @property
    def last(self) -> Command | None:
        """The newest."""
        return self.heard[-1] if self.heard else None

    def take(self, message: Any) -> None:
        """Check a ``sensor_msgs/JointState`` of the node."""
        stamp = message.header.stamp
        q, v = np.array(message.position), np.array(message.velocity)
        new = Command(tuple(message.name), q, v, stamp.sec + 1e-9 * stamp.nanosec)
        old, first = self.last, min(self._possible, default=0)
        alike = [i for i in self._history.indices(first) if self._model(i).joint_names == new.names]
        words = f"{listed(new)} after {listed(old)}"
        whole = len(q) == len(v) == len(new.names) and np.isfinite([*q, *v]).all()
        self._ledger.check(bool(alike and whole), ONE_ROBOT, words)
        if not (alike and whole):
            return
        inside = [i for i in alike if self._is_inside(new, old, i)]
        self._ledger.check(bool(inside), LIMITS, words)
        calm = [i for i in inside if i not in self._possible or self._is_calm(new, old, i)]
        if inside:
            self._ledger.check(bool(calm), CALM, words)
        possible = set(calm or inside or alike)
        if len(possible) > 1 or possible != (self._possible or possible):
            self._replaced = new.time
        self._possible = possible
        self.heard.append(new)

    def _model(self, i: int) -> RobotModel:
        model = self._history.sent[i].model
        assert model is not None  # noqa: S101  as `History.indices` has it
        return model

    def _is_inside(self, new: Command, old: Command | None, i: int) -> bool:
        """Within the limits of a robot; or no farther beyond than before, or than a driver said."""
        robot = self._model(i)
        beyond = _beyond(robot, new.q)
        before = np.zeros(robot.n)
        if old is not None:
            known = dict(zip(old.names, old.q, strict=True))
            shared = np.array([known.get(name, 0.0) for name in robot.joint_names])
            before = _beyond(robot, shared)
        slow = np.abs(new.v) <= robot.velocity * ROUNDED
        if old is not None and old.names == new.names and self._is_replaced(new):
            slow |= np.abs(new.v) < np.abs(old.v)  # within the acceleration, as `_is_calm` has it
        back = (beyond <= np.maximum(before, 0.0) + TIGHT).all() or self._is_measured(new, i)
        return bool((slow.all() or i not in self._possible) and back)

    def _is_calm(self, new: Command, old: Command | None, i: int) -> bool:
        """Test if a command follows from the one before, or from the state of a driver."""
        if old is None or old.names != new.names:
            return True
        longest = max(new.time - old.time, 0.0) + self._longest
        speed = np.maximum(np.abs(new.v), np.abs(old.v))
        if new.time - old.time > self._longest:  # some were lost between
            speed = self._model(i).velocity
        near = (np.abs(new.q - old.q) <= speed * longest * ROUNDED + TIGHT).all()
        smooth = np.abs(new.v - old.v) <= ACCELERATION * longest * ROUNDED
        if self._is_replaced(new):
            smooth |= self._is_stopped(new, old, i)
        return bool(near and smooth.all()) or self._is_measured(new, i)

    def _is_replaced(self, new: Command) -> bool:
        """Test if another robot may have been in force a moment ago."""
        return new.time - self._replaced <= SETTLED

    def _is_stopped(self, new: Command, old: Command, i: int) -> np.ndarray:
        """(n,) which joints a limit stopped that a robot brought in motion, whatever that asks."""
        at_limit = _beyond(self._model(i), new.q) >= -TIGHT
        slower = (np.abs(new.v) <= np.abs(old.v)) & (new.v * old.v >= 0.0)
        return at_limit & slower

    def _is_measured(self, new: Command, i: int) -> bool:
        """Test if it continues from the last states of the drivers."""
        near = np.abs(new.v) * self._longest + TIGHT
        states = told_in_parts(self._model(i), self.measured)
        return any((np.abs(new.q - q) <= near).all() for q in states)


def _beyond(robot: RobotModel, q: np.ndarray) -> np.ndarray:
    """(n,) how far each joint is beyond its limits [rad], below zero within."""
    return np.maximum(robot.lower - q, q - robot.upper)


def listed(command: Command | None) -> str:
    """A command in a line."""
    if command is None:
        return "none"
    pairs = zip(command.names, command.q, command.v, strict=False)
    values = ", ".join(f"{name} {q:.6f} ({v:.4f})" for name, q, v in pairs)
    return f"[{values}] at {command.time:.4f}"
