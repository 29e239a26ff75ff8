"""The tip of the arm in the root frame: poses, twists, and the trail of its positions."""

from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

SHORTEST = 0.1  # [m]
MOST_POINTS = 250  # of a trail: to convert more into a message would keep the loop waiting
SHORTEST_INTERVAL = 0.02  # [s] between points of a trail


class Tip:
    """The tip of a chain whose base may itself be carried by other joints.

    Args:
        joint_values: returns the values of joints by name, as drivers publish them.
    """

    def __init__(self, robot: RobotModel, joint_values: Callable[[], Mapping[str, float]]) -> None:
        self.robot = robot
        self.frame = robot.tree.root
        self._joint_values = joint_values
        self._T_root_base = robot.tree.fixed_offset(self.frame, robot.base)

    def in_root(self, T_base: Array) -> Array:
        """Transform poses (..., 4, 4) from the base frame to the root frame."""
        return self._root_from_base() @ T_base

    def poses(self, q: Array) -> Array:
        """Return the poses T_root_tip (..., 4, 4) at commands (..., n)."""
        return self.in_root(self.robot.fk(q))

    def twist(self, q: Array, v: Array) -> Array:
        """Return the twist (6,) of the tip [m/s, rad/s], relative to the base, along root axes.

        Args:
            q: (n,) joint positions of the chain [rad or m].
            v: (n,) joint velocities of the chain [rad/s or m/s].
        """
        R = self._root_from_base()[:3, :3]
        twist: Array = ((self.robot.jacobian(q) @ v).reshape(2, 3) @ R.T).reshape(6)
        return twist

    def length(self) -> float:
        """Return the length of the way along the links [m]: about the reach of the arm."""
        joints = self.robot.tree.path(self.robot.base, self.robot.tip)
        way = sum(float(np.linalg.norm(joint.origin[:3, 3])) for joint in joints)
        return max(way, SHORTEST)

    def _root_from_base(self) -> Array:
        if self._T_root_base is not None:
            return self._T_root_base
        tree = self.robot.tree
        values = {name: q for name, q in self._joint_values().items() if name in tree.mimic_of}
        return tree.pose(self.robot.base, values)


class Trail:
    """Keeps commands as they come, and converts them to points on request.

    One thread samples, another one asks.

    Args:
        duration: of the trail [s].
    """

    def __init__(self, tip: Tip, duration: float) -> None:
        self.tip = tip
        self._duration = duration
        self._interval = max(SHORTEST_INTERVAL, duration / MOST_POINTS)
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MOST_POINTS)
        self._points: deque[tuple[float, Array]] = deque(maxlen=MOST_POINTS)
        self._next = -np.inf  # [s] when to take a command again

    def sample(self, now: float, q: Array) -> None:
        """Keep a command (n,), which is not changed any more, at a time [s], if one is due."""
        if now >= self._next and self._duration > 0.0:
            self._next = now + self._interval
            self._commands.append((now, q))

    def points(self, now: float) -> Array:
        """Return positions of the tip (m, 3) in the root frame [m], oldest first."""
        new = [self._commands.popleft() for _ in range(len(self._commands))]
        if new:
            times, commands = zip(*new, strict=True)
            positions = self.tip.poses(np.array(commands))[:, :3, 3]
            self._points.extend(zip(times, positions, strict=True))
        while self._points and now - self._points[0][0] > self._duration:
            self._points.popleft()
        return np.array([point for _, point in self._points]).reshape(-1, 3)
