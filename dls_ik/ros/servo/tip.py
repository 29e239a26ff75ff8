# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tip of the arm in the root frame: poses, twists, and the trail of its positions."""

from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel

MIN_LENGTH = 0.1  # [m] minimum displayed length of an arm
MAX_TRAIL_POINTS = 250  # conversion of more points to a message would delay the loop
MIN_TRAIL_INTERVAL = 0.02  # [s] minimum time between two points of a trail


class Tip:
    """Tip of a chain, whose base may be moved by joints outside the chain.

    Args:
        robot: Model of the chain.
        joint_values: Returns measured joint positions by name [rad or m].
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
        """Return the poses T_root_tip (..., 4, 4) at joint positions q (..., n) [rad or m]."""
        return self.in_root(self.robot.fk(q))

    def twist(self, q: Array, v: Array) -> Array:
        """Return the twist (6,) of the tip relative to the base, in root axes [m/s, rad/s].

        Args:
            q: (n,) joint positions of the chain [rad or m].
            v: (n,) joint velocities of the chain [rad/s or m/s].
        """
        R = self._root_from_base()[:3, :3]
        twist: Array = ((self.robot.jacobian(q) @ v).reshape(2, 3) @ R.T).reshape(6)
        return twist

    def length(self) -> float:
        """Return the approximate reach of the arm [m]: the sum of the distances between joints."""
        joints = self.robot.tree.path(self.robot.base, self.robot.tip)
        length = sum(float(np.linalg.norm(joint.origin[:3, 3])) for joint in joints)
        return max(length, MIN_LENGTH)

    def _root_from_base(self) -> Array:
        """Return T_root_base (4, 4), at the measured positions of joints outside the chain."""
        if self._T_root_base is not None:
            return self._T_root_base
        tree = self.robot.tree
        values = {name: q for name, q in self._joint_values().items() if name in tree.mimic_of}
        return tree.pose(self.robot.base, values)


class Trail:
    """Past positions of the tip, sampled from the commands.

    One thread stores sampled commands. Another thread reads the trail, and computes positions of
    the tip from the commands.

    Args:
        tip: Tip of the arm in use.
        duration: Duration of the trail [s].
    """

    def __init__(self, tip: Tip, duration: float) -> None:
        self.tip = tip
        self._duration = duration
        self._interval = max(MIN_TRAIL_INTERVAL, duration / MAX_TRAIL_POINTS)
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MAX_TRAIL_POINTS)
        self._points: deque[tuple[float, Array]] = deque(maxlen=MAX_TRAIL_POINTS)
        self._next_sample = -np.inf  # [s] time of the next sample

    def sample(self, now: float, q: Array) -> None:
        """Store a command q (n,) at a time [s] if a sample is due; the array is not copied."""
        if now >= self._next_sample and self._duration > 0.0:
            self._next_sample = now + self._interval
            self._commands.append((now, q))

    def points(self, now: float) -> Array:
        """Return the trail: positions of the tip (m, 3) in the root frame [m], oldest first."""
        new = [self._commands.popleft() for _ in range(len(self._commands))]
        if new:
            times, commands = zip(*new, strict=True)
            positions = self.tip.poses(np.array(commands))[:, :3, 3]
            self._points.extend(zip(times, positions, strict=True))
        while self._points and now - self._points[0][0] > self._duration:
            self._points.popleft()
        return np.array([point for _, point in self._points]).reshape(-1, 3)
