# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Joint positions for the end-effector poses of an episode, such as a recorded demonstration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import OptionError, PoseError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.result import IkPathResult
from dls_ik.solver.solver import IkSolver

NUM_POLISHING_STEPS = 4  # number of Newton steps after the solver; each squares a small error
POLISHING_CUTOFF = 1e-6  # default of the argument `cutoff` of polished
DEFAULT_TOLERANCE = 1e-6  # [m, rad]
DEFAULT_MAX_STEP = 0.5  # [rad or m]


class EpisodeGap(NamedTuple):
    """Successive frames that are not reached by a continuous motion, and the reason."""

    first: int  # index of the first frame
    last: int  # index of the last frame
    reason: str


class EpisodeJoints(NamedTuple):
    """Joint positions of an episode of b frames."""

    q: Array  # (b, n) [rad or m]; closest configuration in a gap, previous row for invalid poses
    position_error: Array  # (b,) [m]; NaN for an invalid pose
    rotation_error: Array  # (b,) [rad]; NaN for an invalid pose
    gaps: tuple[EpisodeGap, ...]

    @property
    def success(self) -> bool:
        """Whether there are no gaps."""
        return not self.gaps


def episode_joints(
    robot: RobotModel,
    poses: Array,
    seed: Any = None,
    *,
    tolerance: float = DEFAULT_TOLERANCE,
    max_joint_step: float = DEFAULT_MAX_STEP,
    whole: bool = False,
    **options: Any,
) -> EpisodeJoints:
    """Find joint positions for all frames of an episode of end-effector poses.

    The joint positions of successive frames are continuous, see
    :meth:`dls_ik.IkSolver.solve_path`; Newton steps then reduce their errors to rounding errors. If
    the poses were computed from joint positions of an arm with at most six joints, the result
    equals these joint positions, provided that `seed` has those of the first frame and the episode
    has no gap and does not pass a singularity.

    Args:
        robot: Robot with one tip.
        poses: (b, 4, 4) poses ``T_base_tip`` [m]; rows with NaN are gaps.
        seed: (n,) joint positions close to those of the first frame, or a mapping by joint name
            [rad or m]; default: any solution of the first frame.
        tolerance: Maximum error of a frame that is reached [m, rad].
        max_joint_step: Maximum change of a joint between two frames [rad or m].
        whole: Whether the episode is solved as a whole, with the minimum number of jumps.
        **options: Options of :class:`dls_ik.IkSolver`, such as `scene`.

    Raises:
        OptionError: If the tolerance is not positive, or the robot has several tips.
        PoseError: If the poses are not an array (b, 4, 4) with at least one frame.
        JointValueError: If the seed is not valid.
    """
    if not 0.0 < tolerance < np.inf:
        raise OptionError(f"tolerance must be a number above 0 [m, rad]; got {tolerance!r}")
    if len(robot.tips) != 1:
        raise OptionError(f"an episode needs a robot with one tip; got {len(robot.tips)} tips")
    given = np.asarray(poses, np.float64)
    if given.ndim != 3 or given.shape[1:] != (4, 4) or not len(given):
        raise PoseError(f"poses must have the shape (b, 4, 4) with b > 0; got {given.shape}")
    solver = IkSolver(robot, position_tolerance=tolerance, rotation_tolerance=tolerance, **options)
    result = solver.solve_path(given, seed, max_joint_step=max_joint_step, whole=whole)
    valid = np.isfinite(result.q).all(axis=1)
    q, errors = result.q.copy(), np.full((len(given), 2), np.nan)
    if valid.any():
        q[valid], errors[valid] = polished(robot, q[valid], given[valid])
    known = np.maximum.accumulate(np.where(valid, np.arange(len(q)), -1))
    q[~valid] = np.where(known[~valid, None] >= 0, q[known[~valid]], robot.clip(np.zeros(robot.n)))
    return EpisodeJoints(q, errors[:, 0], errors[:, 1], find_gaps(result, errors, tolerance))


def polished(
    robot: RobotModel, q: Array, poses: Array, cutoff: float = POLISHING_CUTOFF
) -> tuple[Array, Array]:
    """Return joint positions (b, n) after Newton steps, and position and rotation errors (b, 2).

    A step is taken only if it lowers the error, and stays within the joint limits.

    Args:
        robot: Robot with one tip.
        q: (b, n) joint positions close to solutions [rad or m].
        poses: (b, 4, 4) poses ``T_base_tip``.
        cutoff: Singular values below this share of the largest are not inverted.
    """
    errors = _errors(robot, q, poses)
    for _ in range(NUM_POLISHING_STEPS):
        J = np.linalg.pinv(robot.jacobian(q), rcond=cutoff)  # (b, n, 6)
        moved = robot.clip(q + (J @ errors[:, :, None])[:, :, 0])
        new = _errors(robot, moved, poses)
        better = np.linalg.norm(new, axis=1) < np.linalg.norm(errors, axis=1)
        if not better.any():
            break
        q = np.where(better[:, None], moved, q)
        errors = np.where(better[:, None], new, errors)
    norms = [np.linalg.norm(part, axis=1) for part in (errors[:, :3], errors[:, 3:])]
    return q, np.stack(norms, axis=1)


def _errors(robot: RobotModel, q: Array, poses: Array) -> Array:
    """Return the twists (b, 6) from the tip at q (b, n) to poses (b, 4, 4), in the base frame."""
    pairs = zip(robot.fk(q), poses, strict=True)
    return np.array([difference(T, goal) for T, goal in pairs]).reshape(-1, 6)


def find_gaps(result: IkPathResult, errors: Array, tolerance: float) -> tuple[EpisodeGap, ...]:
    """Return the gaps of an episode: frames that are missed, and jumps before a frame.

    Args:
        result: Solved path of b frames.
        errors: (b, 2) position and rotation errors [m, rad]; NaN for invalid poses.
        tolerance: Maximum error of a frame that is reached [m, rad].
    """
    reasons = [_reason(result, i, errors[i], tolerance) for i in range(len(errors))]
    gaps: list[EpisodeGap] = []
    for i, (kind, text) in enumerate(reasons):
        before = reasons[i - 1][0] if i else ""
        if kind and kind == before and kind != "jump":
            gaps[-1] = gaps[-1]._replace(last=i)
        elif kind:
            gaps.append(EpisodeGap(i, i, text))
    return tuple(gaps)


def _reason(
    result: IkPathResult, i: int, errors: NDArray[np.float64], tolerance: float
) -> tuple[str, str]:
    """Return the kind of a gap at a frame and its reason; empty texts without a gap."""
    if np.isnan(errors).any():
        return "invalid", "the pose is not a finite rigid transform"
    if errors.max() > tolerance:
        off = f"the closest configuration is off by {errors[0]:.3g} m and {errors[1]:.3g} rad"
        return "missed", f"not reached: {off}"
    if pair := result[i].pair_in_the_way:
        return "collision", f"collision: {' - '.join(pair)}"
    if i and result.jumps[i]:
        steps = np.abs(result.q[i] - result.q[i - 1])
        j = int(np.nanargmax(steps)) if np.isfinite(steps).any() else 0
        name, unit = result.robot.joint_names[j], result.robot.units[j]
        return "jump", f"joint {name} jumps by {steps[j]:.3g} {unit} before this frame"
    return "", ""
