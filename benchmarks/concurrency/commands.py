"""The commands of the node: each of one robot, inside its limits, without a jump."""

from collections import deque
from typing import Any, NamedTuple

import numpy as np

from benchmarks.concurrency.answers import Heard, told_in_parts
from benchmarks.concurrency.history import History
from benchmarks.concurrency.ledger import Ledger
from dls_ik import RobotModel

ACCELERATION = 8.0  # [rad/s^2] that the node is given
TIGHT = 1e-9  # [rad]
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

    A robot that was left does not come back but by another description. How far a command is from
    the one before follows from its velocity, as a cycle counts two periods at most, however late it
    is; where messages are lost the stamps allow for more.

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
        """Whether a command follows from the one before, or from where a driver says the arm is."""
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
        """Whether another robot may have been in force a moment ago."""
        return new.time - self._replaced <= SETTLED

    def _is_stopped(self, new: Command, old: Command, i: int) -> np.ndarray:
        """(n,) which joints a limit stopped that a robot brought in motion, whatever that asks."""
        at_limit = _beyond(self._model(i), new.q) >= -TIGHT
        slower = (np.abs(new.v) <= np.abs(old.v)) & (new.v * old.v >= 0.0)
        return at_limit & slower

    def _is_measured(self, new: Command, i: int) -> bool:
        """Whether it goes on from what drivers said last of each joint."""
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
