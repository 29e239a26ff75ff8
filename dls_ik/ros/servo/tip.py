# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tip of the arm in the root frame: its poses, its twists, and the trail of its past positions."""

from collections import deque
from collections.abc import Callable, Mapping

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.servo import ServoOutput

MIN_LENGTH = 0.1  # [m] minimum displayed length of an arm
MAX_TRAIL_POINTS = 250  # the conversion of more points to a message would delay the loop
MIN_TRAIL_INTERVAL = 0.02  # [s] minimum time between two points of a trail


class Tip:
    """Computes poses and twists of the tip of a chain, whose base may move in the root frame.

    Joints outside the chain, between the root link and the base, may move the base.

    Args:
        robot: Model of the chain.
        joint_values: Function that returns measured joint positions by name [rad or m].
        index: Index of the tip, if the robot has several.
    """

    def __init__(
        self,
        robot: RobotModel,
        joint_values: Callable[[], Mapping[str, float]],
        index: int = 0,
    ) -> None:
        self.robot, self.index = robot, index
        self.frame = robot.tree.root
        self._joint_values = joint_values
        self._T_root_base = robot.tree.fixed_offset(self.frame, robot.base)

    def in_root(self, T_base: Array) -> Array:
        """Transform poses T_base (..., 4, 4) from the base frame to the root frame."""
        return self._root_from_base() @ T_base

    def poses(self, q: Array) -> Array:
        """Return the poses T_root_tip (..., 4, 4) at joint positions q (..., n) of the chain."""
        T = self.robot.fk(q)
        return self.in_root(T if len(self.robot.tips) == 1 else T[..., self.index, :, :])

    def target(self, output: ServoOutput) -> Array | None:
        """Return the target (4, 4) of the tip in the root frame; None without a target."""
        T_d = output.T_d
        if T_d is None:
            return None
        return self.in_root(T_d if T_d.ndim == 2 else T_d[self.index])

    def twist(self, q: Array, v: Array) -> Array:
        """Return the twist (6,) of the tip relative to the base, along root axes [m/s, rad/s].

        Args:
            q: (n,) joint positions of the chain [rad or m].
            v: (n,) joint velocities of the chain [rad/s or m/s].
        """
        R = self._root_from_base()[:3, :3]
        V = (self.robot.jacobian(q) @ v).reshape(-1, 2, 3)[self.index]
        twist: Array = (V @ R.T).reshape(6)
        return twist

    def length(self) -> float:
        """Return the approximate reach of the arm [m]: the sum of the distances between joints.

        The result is at least 0.1 m.
        """
        joints = self.robot.tree.path(self.robot.base, self.robot.tips[self.index])
        length = sum(float(np.linalg.norm(joint.origin[:3, 3])) for joint in joints)
        return max(length, MIN_LENGTH)

    def _root_from_base(self) -> Array:
        """Return T_root_base (4, 4) at the measured positions of the joints that move the base."""
        if self._T_root_base is not None:
            return self._T_root_base
        tree = self.robot.tree
        values = {name: q for name, q in self._joint_values().items() if name in tree.mimic_of}
        return tree.pose(self.robot.base, values)


class Trail:
    """Trail of past positions of the tip, computed from a sample of the commands.

    One thread stores commands. Another thread reads the trail, and then computes the positions of
    the tip at these commands.

    Args:
        tip: Tip of the arm in use.
        duration: Age of the oldest positions in the trail [s]; 0: no trail.
    """

    def __init__(self, tip: Tip, duration: float) -> None:
        self.tip = tip
        self._duration = duration
        self._interval = max(MIN_TRAIL_INTERVAL, duration / MAX_TRAIL_POINTS)
        self._commands: deque[tuple[float, Array]] = deque(maxlen=MAX_TRAIL_POINTS)
        self._points: deque[tuple[float, Array]] = deque(maxlen=MAX_TRAIL_POINTS)
        self._next_sample = -np.inf  # [s] time of the next sample

    def sample(self, now: float, q: Array) -> None:
        """Store a command if enough time has passed since the last stored command.

        Args:
            now: Current time [s].
            q: (n,) commanded joint positions [rad or m]; the array is not copied.
        """
        if now >= self._next_sample and self._duration > 0.0:
            self._next_sample = now + self._interval
            self._commands.append((now, q))

    def points(self, now: float) -> Array:
        """Return the trail at the time `now` [s]: positions (m, 3) of the tip, oldest first.

        The positions are in the root frame [m].
        """
        new = [self._commands.popleft() for _ in range(len(self._commands))]
        if new:
            times, commands = zip(*new, strict=True)
            positions = self.tip.poses(np.array(commands))[:, :3, 3]
            self._points.extend(zip(times, positions, strict=True))
        while self._points and now - self._points[0][0] > self._duration:
            self._points.popleft()
        return np.array([point for _, point in self._points]).reshape(-1, 3)
