# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arm in the form given to every peer, numbers and a URDF, and the check of all answers.

This module also runs without dls_ik.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from benchmarks.peers.solver import TOLERANCE

if TYPE_CHECKING:
    from dls_ik import RobotModel

BASE, TIP = "base", "tip"
SPACING = 1.0  # [m] distance between two equal arms
ROUNDING = 1e-12  # [m], [rad] by which two kinematics differ
BEYOND = 1e-9  # [rad or m] allowed excess over a limit
TURN = 2.0 * np.pi
LINE = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/>{}</joint>'


class Arm(NamedTuple):
    """Chain of n joints, each about or along the z axis of its frame."""

    name: str
    fixed: np.ndarray  # (n + 1, 4, 4) transforms before each joint and behind the last joint
    prismatic: np.ndarray  # (n,) bool
    lower: np.ndarray  # (n,) [rad or m]; a range of one turn where there is no limit
    upper: np.ndarray
    endless: np.ndarray  # (n,) bool: revolute joints without limits

    @property
    def n(self) -> int:
        """Number of joints."""
        return len(self.lower)

    def fk(self, q: np.ndarray) -> np.ndarray:
        """Return the tip poses (b, 4, 4) at joint positions (b, n), by products of matrices."""
        T = np.broadcast_to(self.fixed[0], (len(q), 4, 4))
        for i in range(self.n):
            T = T @ _motion(q[:, i], bool(self.prismatic[i])) @ self.fixed[i + 1]
        return T

    def random(self, rng: np.random.Generator, b: int) -> np.ndarray:
        """Return joint positions (b, n) uniform within the limits."""
        return rng.uniform(self.lower, self.upper, (b, self.n))

    def urdf(self, velocity: np.ndarray | None = None, count: int = 1) -> str:
        """Return the URDF of equal arms, each from ``base`` to a tip, without shapes and masses.

        Args:
            velocity: (n,) velocity limits [rad/s or m/s]; by default 10 for each joint.
            count: Number of arms. The joints of all arms are numbered in order; :func:`tips` gives
                the names of the tips, and :func:`stand` the pose of each arm in the base frame.
        """
        velocity = np.full(self.n, 10.0) if velocity is None else velocity
        lines = [f'<link name="{BASE}"/>']
        for k in range(count):
            first, tip = k * self.n, tips(count)[k]
            links = [BASE, *(f"link{first + i + 1}" for i in range(self.n)), tip]
            lines += [f'<link name="{link}"/>' for link in links[1:]]
            for i in range(self.n):
                slides, endless = self.prismatic[i], self.endless[i]
                kind = "prismatic" if slides else "continuous" if endless else "revolute"
                limit = f'lower="{float(self.lower[i])!r}" upper="{float(self.upper[i])!r}"'
                limit = "" if kind == "continuous" else limit
                limit += f' effort="1000" velocity="{float(velocity[i])!r}"'
                detail = f'<limit {limit}/><axis xyz="0 0 1"/>'
                before = self.fixed[i] if i else stand(k) @ self.fixed[0]
                name = f"joint{first + i + 1}"
                lines.append(
                    LINE.format(name, kind, links[i], links[i + 1], _origin(before) + detail)
                )
            end = _origin(self.fixed[-1])
            lines.append(LINE.format(f"{tip}_fixed", "fixed", links[-2], tip, end))
        return "\n".join(['<?xml version="1.0"?>', '<robot name="arm">', *lines, "</robot>"])


def tips(count: int) -> list[str]:
    """Return the names of the tips of equal arms."""
    return [TIP] if count == 1 else [f"{TIP}{k + 1}" for k in range(count)]


def stand(k: int) -> np.ndarray:
    """Return the pose (4, 4) of the k-th of several arms in the base frame."""
    T = np.eye(4)
    T[1, 3] = k * SPACING
    return T


def arm_of(robot: RobotModel) -> Arm:
    """Return the chain of a robot in plain numbers.

    Raises:
        RobotModelError: If the chain has several tips or mimic joints, which no peer supports.
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
    """Return motions (b, 4, 4) along or about z."""
    T = np.tile(np.eye(4), (len(values), 1, 1))
    if prismatic:
        T[:, 2, 3] = values
    else:
        c, s = np.cos(values), np.sin(values)
        T[:, 0, 0], T[:, 0, 1], T[:, 1, 0], T[:, 1, 1] = c, -s, s, c
    return T


def _origin(T: np.ndarray) -> str:
    """Return a pose in URDF: R = Rz(yaw) Ry(pitch) Rx(roll)."""
    R, p = T[:3, :3], T[:3, 3]
    pitch = math.atan2(-R[2, 0], math.hypot(R[0, 0], R[1, 0]))
    if math.hypot(R[0, 0], R[1, 0]) < 1e-9:  # only the difference of roll and yaw counts
        roll, yaw = math.atan2(-R[1, 2], R[1, 1]), 0.0
    else:
        roll, yaw = math.atan2(R[2, 1], R[2, 2]), math.atan2(R[1, 0], R[0, 0])
    words = [" ".join(repr(float(x)) for x in v) for v in (p, (roll, pitch, yaw))]
    return f'<origin xyz="{words[0]}" rpy="{words[1]}"/>'


class Verdict(NamedTuple):
    """Results of the poses of a block."""

    solved: np.ndarray  # (k,) bool
    inside: np.ndarray  # (k,) bool: solved, with every joint within its limits


def judged(arm: Arm, Ts: np.ndarray, q: np.ndarray) -> Verdict:
    """Check answers (k, n) to poses (k, 4, 4); joints may be off by whole turns."""
    finite = np.isfinite(q).all(axis=1)
    q = np.where(finite[:, None], q, 0.0)
    position, rotation = errors(arm.fk(q), Ts)
    solved = finite & (np.maximum(position, rotation) <= TOLERANCE + ROUNDING)
    q = _unwound(arm, q)
    within = (q >= arm.lower - BEYOND) & (q <= arm.upper + BEYOND) | arm.endless
    return Verdict(solved, solved & within.all(axis=1))


def errors(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return distances (k,) [m] and angles (k,) [rad] between poses (k, 4, 4)."""
    position = np.linalg.norm(found[:, :3, 3] - wanted[:, :3, 3], axis=1)
    R = np.swapaxes(found[:, :3, :3], 1, 2) @ wanted[:, :3, :3]
    sine = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]])
    cosine = np.trace(R, axis1=1, axis2=2) - 1.0  # both are doubled
    return position, np.arctan2(np.linalg.norm(sine, axis=0), cosine)


def _unwound(arm: Arm, q: np.ndarray) -> np.ndarray:
    """Return joint positions with whole turns removed from joints outside their limits."""
    outside = (q < arm.lower - BEYOND) | (q > arm.upper + BEYOND)
    turned = arm.upper - (arm.upper - q) % TURN
    return np.where(outside & ~arm.prismatic, turned, q)
