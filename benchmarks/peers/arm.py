"""An arm as every peer gets it: numbers and a URDF of its chain alone, with nothing of dls_ik."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:  # peers run where dls_ik is not installed
    from dls_ik import RobotModel

BASE, TIP = "base", "tip"
LINE = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>{}</joint>'


class Arm(NamedTuple):
    """A chain of n joints, each about or along the z axis of its frame."""

    name: str
    fixed: np.ndarray  # (n + 1, 4, 4) what lies before each joint, and behind the last
    prismatic: np.ndarray  # (n,) bool
    lower: np.ndarray  # (n,) [rad or m]; a range of one turn where there is no limit
    upper: np.ndarray
    endless: np.ndarray  # (n,) bool: revolute joints without limits

    @property
    def n(self) -> int:
        """The number of joints."""
        return len(self.lower)

    def fk(self, q: np.ndarray) -> np.ndarray:
        """Poses of the tip at (b, n), (b, 4, 4): products of matrices in NumPy, for all peers."""
        T = np.broadcast_to(self.fixed[0], (len(q), 4, 4))
        for i in range(self.n):
            T = T @ _motion(q[:, i], bool(self.prismatic[i])) @ self.fixed[i + 1]
        return T

    def random(self, rng: np.random.Generator, b: int) -> np.ndarray:
        """(b, n) joint values uniform within the limits."""
        return rng.uniform(self.lower, self.upper, (b, self.n))

    def urdf(self) -> str:
        """The chain without shapes and masses, ``base`` to ``tip``."""
        links = [BASE, *(f"link{i + 1}" for i in range(self.n)), TIP]
        lines = [f'<link name="{link}"/>' for link in links]
        for i in range(self.n):
            slides, endless = self.prismatic[i], self.endless[i]
            kind = "prismatic" if slides else "continuous" if endless else "revolute"
            limit = f'lower="{float(self.lower[i])!r}" upper="{float(self.upper[i])!r}"'
            limit = "" if kind == "continuous" else limit
            detail = f'<limit {limit} effort="1000" velocity="10"/><axis xyz="0 0 1"/>'
            parts = (f"joint{i + 1}", kind, links[i], links[i + 1], _origin(self.fixed[i]) + detail)
            lines.append(LINE.format(*parts))
        lines.append(LINE.format("tip_fixed", "fixed", links[-2], TIP, _origin(self.fixed[-1])))
        return "\n".join(['<?xml version="1.0"?>', '<robot name="arm">', *lines, "</robot>"])


def arm_of(robot: RobotModel) -> Arm:
    """The same chain in plain numbers.

    Raises:
        RobotModelError: the chain has several tips or mimic joints, which no peer takes.
    """
    from dls_ik.errors import RobotModelError

    chain = robot.chain
    free = len(chain.prismatic) == robot.n and (chain.scale == 1.0).all() and not chain.offset.any()
    if len(robot.tips) > 1 or not free:
        raise RobotModelError(f"{robot.name} has several tips or mimic joints; peers take neither")
    fixed = np.tile(np.eye(4), (robot.n + 1, 1, 1))
    fixed[:, :3] = chain.fixed[:, :3]
    prismatic = np.array(chain.prismatic)
    endless = np.isinf(robot.lower) & np.isinf(robot.upper) & ~prismatic
    return Arm(robot.name, fixed, prismatic, *robot.finite_limits(), endless)


def _motion(values: np.ndarray, prismatic: bool) -> np.ndarray:
    """(b, 4, 4) along or about z."""
    T = np.tile(np.eye(4), (len(values), 1, 1))
    if prismatic:
        T[:, 2, 3] = values
    else:
        c, s = np.cos(values), np.sin(values)
        T[:, 0, 0], T[:, 0, 1], T[:, 1, 0], T[:, 1, 1] = c, -s, s, c
    return T


def _origin(T: np.ndarray) -> str:
    """As URDF writes a pose: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R, p = T[:3, :3], T[:3, 3]
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) < 1e-9:  # only the difference of roll and yaw counts
        roll, yaw = math.atan2(-R[1, 2], R[1, 1]), 0.0
    else:
        roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
    words = [" ".join(repr(float(x)) for x in v) for v in (p, (roll, pitch, yaw))]
    return f'<origin xyz="{words[0]}" rpy="{words[1]}"/>'
