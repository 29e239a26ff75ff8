# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Results of solver calls.

A call that finds no solution does not raise an error: the result has the status and the best
configuration found.
"""

from __future__ import annotations

import enum
import math
import os
from collections import Counter
from dataclasses import dataclass, field
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.solver.notebook import batch_html, path_html, result_html
from dls_ik.solver.trajectory import csv_text, path_times, trajectory_message, warn_of_speed
from dls_ik.text import listing

if TYPE_CHECKING:
    from dls_ik.model.robot import RobotModel
    from dls_ik.scene.snapshot import PathContact, SceneSnapshot
    from dls_ik.scene.srdf import Pair


class Status(enum.IntEnum):
    """Outcome of a solver call for one pose."""

    SUCCESS = 0
    OUTSIDE_LIMITS = 1
    MAX_RESTARTS = 2
    TIMED_OUT = 3
    REFUSED = 4
    UNREACHABLE = 5
    INTERRUPTED = 6
    FAR_FROM_SEED = 7
    IN_COLLISION = 8

    @property
    def explanation(self) -> str:
        """Clause that explains the status, such as "no attempt reached the pose"."""
        return _EXPLANATIONS[self]

    def __str__(self) -> str:
        """Return the name of the status."""
        return self.name

    def __repr__(self) -> str:
        """Return the name with its class, as ``Status.SUCCESS``."""
        return f"Status.{self.name}"


# the pose is not reached
NOT_REACHED_STATUSES = (Status.MAX_RESTARTS, Status.TIMED_OUT, Status.UNREACHABLE)

_EXPLANATIONS = {
    Status.SUCCESS: "the pose is reached inside the joint limits",
    Status.OUTSIDE_LIMITS: "the pose is reached, but outside the joint limits",
    Status.MAX_RESTARTS: "no attempt reached the pose",
    Status.TIMED_OUT: "no attempt reached the pose within the timeout",
    Status.REFUSED: "the pose or the seed is not valid",
    Status.UNREACHABLE: "no configuration inside the joint limits reaches the pose",
    Status.INTERRUPTED: "the batch was interrupted before this pose was solved",
    Status.FAR_FROM_SEED: (
        "no answer inside the joint limits is within max_joint_change of the seed"
    ),
    Status.IN_COLLISION: "the pose is reached only in collision",
}


class Obstruction(NamedTuple):
    """Collision at a pose of a path, or during the straight joint motion from the previous pose."""

    pose: int  # index of the pose
    names: Pair  # colliding pair
    time: float | None  # share of the motion before the contact, 0 to 1; None if at the pose


class Reconfiguration(NamedTuple):
    """Motion along a path of poses that is not continuous, and the reason for it."""

    pose: int  # index of the pose to which the motion leads
    last: int  # index of the last pose to which the section before the motion can be continued
    reason: str  # why this section ends: one of RECONFIGURATION_REASONS
    names: tuple[str, ...]  # joints at their limits, or the colliding pair; () for other reasons

    @property
    def explanation(self) -> str:
        """Clause that explains the reason, such as "joint_7 would leave the joint limits"."""
        return RECONFIGURATION_REASONS[self.reason].format(" and ".join(self.names))

    def __str__(self) -> str:
        """Return a sentence with the pose and the reason."""
        return f"reconfiguration to pose {self.pose}: after pose {self.last}, {self.explanation}"


RECONFIGURATION_REASONS = {
    "limit": "{} would leave the joint limits",
    "collision": "{} would collide",
    "singularity": "the arm reaches a singularity, where this branch of solutions ends",
    "unreachable": "the pose is not reached by any configuration found",
    "step": "a joint would have to move farther than max_joint_step",
    "timeout": "the search ended before a longer section was found",
}


class IkResult(NamedTuple):
    """Result of a solver call for one pose; ``bool(result)`` is `success`."""

    success: bool  # whether q, within the limits, reaches the pose or is accepted by `approximate`
    status: Status
    q: Array  # (n,) joint positions [rad or m]; without success the best ones found
    position_error: float  # [m] position error at q
    rotation_error: float  # [rad] rotation error at q
    iterations: int  # number of steps of all attempts
    restarts: int  # number of attempts after the first
    duration: float  # [s] duration of the call; the preparation of a first call does not count
    robot: RobotModel
    scene: SceneSnapshot | None = None  # scene at the call; a successful q is collision-free
    pair_in_the_way: Pair | None = None  # pair that collided most often, if IN_COLLISION
    # For a TaskStack: norm of the scaled error of each level; NaN for a level of objectives only
    level_errors: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        """Return `success`."""
        return bool(self.success)

    @property
    def clearance(self) -> float:
        """Smallest distance [m] of all checked pairs of links and objects at q.

        The distance is computed exactly at each access. It is negative in collision, and NaN
        without a scene.
        """
        return _clearance(self.scene, self.q)

    def _repr_html_(self) -> str:
        """Return the result as HTML with a table of the joints, for notebooks."""
        return result_html(self, self.status.explanation)

    def __repr__(self) -> str:
        """Return the status, joint positions, errors, counts and duration as text."""
        q = np.array2string(self.q, precision=4, separator=", ", threshold=12)
        kind = "" if self.success == (self.status is Status.SUCCESS) else "approximate, "
        return (
            f"IkResult({kind}{self.status}, q={q}, {self.position_error:.2g} m, "
            f"{self.rotation_error:.2g} rad, {self.iterations} iterations, "
            f"{self.restarts} restarts, {1e3 * self.duration:.3g} ms)"
        )


@dataclass(frozen=True, repr=False)
class IkBatchResult:
    """Results for b poses as arrays; ``result[i]`` is an :class:`IkResult`.

    A batch has no truth value: use ``result.success.all()`` to test whether all poses are solved.
    """

    success: NDArray[np.bool_]  # (b,) whether each pose is solved, as in IkResult.success
    status: NDArray[np.int64]  # (b,) values of Status
    q: Array  # (b, n) [rad or m]; NaN for refused rows
    position_error: Array  # (b,) [m]
    rotation_error: Array  # (b,) [rad]
    iterations: NDArray[np.int64]  # (b,)
    restarts: NDArray[np.int64]  # (b,)
    duration: float  # [s] duration of the whole batch
    robot: RobotModel
    scene: SceneSnapshot | None = None  # scene at the call
    # (b,) pair of each pose, as in IkResult.pair_in_the_way; () without a scene
    pairs_in_the_way: tuple[Pair | None, ...] = ()
    # Array (b, l) of the level_errors of each pose, see IkResult; (0, 0) without a TaskStack
    level_errors: Array = field(default_factory=lambda: np.zeros((0, 0)))

    @property
    def clearance(self) -> Array:
        """Array (b,) of the smallest distances [m]; see :attr:`IkResult.clearance`."""
        return np.array([_clearance(self.scene, q) for q in self.q])

    def __len__(self) -> int:
        """Return the number of poses."""
        return len(self.success)

    def __bool__(self) -> bool:
        """Raise an error, as NumPy arrays with several elements do.

        Raises:
            ValueError: If the method is called; a batch has no single truth value.
        """
        raise ValueError(
            f"the truth value of a batch of {len(self)} poses is ambiguous: use "
            ".success.all() or .success.any()"
        )

    def __repr__(self) -> str:
        """Return a text with the number of solved poses, counts of failures, and the duration.

        The failures are counted by status.
        """
        missed = Counter(map(str, compress(self.statuses, ~self.success)))
        failures = "".join(f", {count} {status}" for status, count in missed.most_common())
        about = f"{self._about()}{failures}"
        return f"{type(self).__name__}({about}, {1e3 * self.duration:.3g} ms)"

    def _repr_html_(self) -> str:
        """Return the results as HTML with a table of the first poses, for notebooks."""
        return batch_html(self, self._about())

    @property
    def statuses(self) -> tuple[Status, ...]:
        """Statuses of all poses."""
        return tuple(map(Status, self.status.tolist()))

    def __getitem__(self, i: int) -> IkResult:
        """Return the result for pose i; its duration is the mean duration per pose of the batch."""
        return IkResult(
            bool(self.success[i]),
            Status(int(self.status[i])),
            self.q[i],
            float(self.position_error[i]),
            float(self.rotation_error[i]),
            int(self.iterations[i]),
            int(self.restarts[i]),
            self.duration / len(self),
            self.robot,
            self.scene,
            self.pairs_in_the_way[i] if self.pairs_in_the_way else None,
            tuple(self.level_errors[i].tolist()) if len(self.level_errors) else (),
        )

    def _about(self) -> str:
        """Return the text "S of B solved" with the number of solved poses and of all poses."""
        return f"{np.count_nonzero(self.success)} of {len(self)} solved"


@dataclass(frozen=True, repr=False)
class IkPathResult(IkBatchResult):
    """Results for b successive poses of a path."""

    # (b,) whether a joint moves by more than max_joint_step from the previous pose
    jumps: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # (b,) first contact on the straight joint segment from the previous pose; () without a scene
    contacts: tuple[PathContact | None, ...] = ()
    # motions of a path solved as a whole that are not continuous; () for other paths
    reconfigurations: tuple[Reconfiguration, ...] = ()
    # lower bound on the number of reconfigurations of all solutions of the path; None if unknown
    min_reconfigurations: int | None = None
    is_complete: bool = True  # False if the timeout or Ctrl-C stopped the search

    @property
    def fraction(self) -> float:
        """Share of the path before the first pose that is missed or reached by a broken motion.

        A motion is broken if it is a jump or a collision. The value is 1 for a path without such
        poses, as in the answer of the MoveIt service `compute_cartesian_path`.
        """
        broken = ~self.success | self.jumps
        for i, each in enumerate(self.contacts):
            broken[i] |= each is not None
        first = int(broken.argmax()) if broken.any() else len(self)
        return first / len(self) if len(self) else 1.0

    @property
    def obstructions(self) -> tuple[Obstruction, ...]:
        """Collisions at poses and on the segments between poses, sorted by pose."""
        found = [Obstruction(i, pair, None) for i, pair in enumerate(self.pairs_in_the_way) if pair]
        found += [
            Obstruction(i, each.names, each.time)
            for i, each in enumerate(self.contacts)
            if each is not None
        ]
        return tuple(sorted(found, key=lambda each: each.pose))

    def to_csv(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        times: ArrayLike | None = None,
        rate: float | None = None,
    ) -> str:
        """Return the path as CSV with one line per pose: t [s], joint positions [rad or m].

        A warning is logged if a joint would move faster than its velocity limit.

        Args:
            file: File to write in addition.
            times: (b,) increasing times [s]; default: the shortest times that the velocity limits
                allow.
            rate: Number of poses per second [Hz], instead of times.

        Raises:
            OptionError: If a pose is not reached, or the times or the rate are not valid.
            OSError: If the file cannot be written.
        """
        text = csv_text(self.robot, *self._timed(times, rate))
        if file is not None:
            Path(file).write_text(text, encoding="utf-8")
        return text

    def to_trajectory_msg(
        self,
        *,
        times: ArrayLike | None = None,
        rate: float | None = None,
        frame_id: str = "",
    ) -> Any:
        """Return the path as a ``trajectory_msgs/msg/JointTrajectory`` that starts immediately.

        A warning is logged if a joint would move faster than its velocity limit.

        Args:
            times: As for :meth:`to_csv`.
            rate: As for :meth:`to_csv`.
            frame_id: Frame in the header.

        Raises:
            OptionError: If a pose is not reached, or the times or the rate are not valid.
            DlsIkError: If the ROS message packages are not installed.
        """
        return trajectory_message(self.robot, *self._timed(times, rate), frame_id)

    def _timed(self, times: ArrayLike | None, rate: float | None) -> tuple[Array, Array]:
        """Return the times (b,) [s] and joint positions (b, n) [rad or m] of the path.

        A warning is logged if a joint would move faster than its velocity limit. The arguments are
        those of :meth:`to_csv`.

        Raises:
            OptionError: If a pose is not reached, or the times or the rate are not valid.
        """
        missed = np.flatnonzero(~self.success)
        if len(missed):
            raise OptionError(
                f"{len(missed)} of {len(self)} poses are not reached (indices "
                f"{listing(map(str, missed))}), so the path is incomplete; approximate=True makes "
                "the solver use the closest configurations"
            )
        t = path_times(self.robot, self.q, times, rate)
        warn_of_speed(self.robot, t, self.q)
        return t, self.q

    def _repr_html_(self) -> str:
        """Return the path as HTML with a table of the motion of each joint, for notebooks."""
        return path_html(self, self._about())

    def _about(self) -> str:
        """Return the numbers of solved poses, jumps and collisions as text."""
        touching = sum(each is not None for each in self.contacts)
        collisions = f", {touching} in collision" if touching else ""
        jumps = f"{np.count_nonzero(self.jumps)} jumps"
        end = "" if self.is_complete else ", not finished"
        return f"{super()._about()}, {jumps}{collisions}{end}"


def _clearance(scene: SceneSnapshot | None, q: Array) -> float:
    """Return the smallest distance [m] of all checked pairs at q (n,) [rad or m].

    The result is inf if the scene has no pair to check, and NaN without a scene or if q is not
    finite.
    """
    if scene is None or not np.isfinite(q).all():
        return math.nan
    closest = scene.distance(q)
    return math.inf if closest is None else closest.distance
