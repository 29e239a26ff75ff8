"""The check of every answer, the same for all: forward kinematics in NumPy, and the limits."""

from typing import NamedTuple

import numpy as np

from benchmarks.peers.arm import Arm
from benchmarks.peers.solver import TOLERANCE

ROUNDING = 1e-12  # [m], [rad] by which two kinematics differ
BEYOND = 1e-9  # [rad or m] by which a joint may pass a limit
TURN = 2.0 * np.pi


class Verdict(NamedTuple):
    """What became of each pose of a block."""

    solved: np.ndarray  # (k,) bool
    inside: np.ndarray  # (k,) bool: solved, with every joint within its limits


def judged(arm: Arm, Ts: np.ndarray, q: np.ndarray) -> Verdict:
    """Judge answers (k, n) to poses (k, 4, 4); joints are granted whole turns."""
    finite = np.isfinite(q).all(axis=1)
    q = np.where(finite[:, None], q, 0.0)
    position, rotation = errors(arm.fk(q), Ts)
    solved = finite & (np.maximum(position, rotation) <= TOLERANCE + ROUNDING)
    q = _unwound(arm, q)
    within = (q >= arm.lower - BEYOND) & (q <= arm.upper + BEYOND) | arm.endless
    return Verdict(solved, solved & within.all(axis=1))


def errors(found: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(k,) distances [m] and angles [rad] between poses (k, 4, 4)."""
    position = np.linalg.norm(found[:, :3, 3] - wanted[:, :3, 3], axis=1)
    R = np.swapaxes(found[:, :3, :3], 1, 2) @ wanted[:, :3, :3]
    sine = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]])
    cosine = np.trace(R, axis1=1, axis2=2) - 1.0  # both are doubled
    return position, np.arctan2(np.linalg.norm(sine, axis=0), cosine)


def _unwound(arm: Arm, q: np.ndarray) -> np.ndarray:
    """Turn joints beyond a limit by whole turns to just below the upper one."""
    outside = (q < arm.lower - BEYOND) | (q > arm.upper + BEYOND)
    turned = arm.upper - (arm.upper - q) % TURN
    return np.where(outside & ~arm.prismatic, turned, q)
