"""Results of solves: non-convergence is data, with the best configuration that was found."""

from __future__ import annotations

import enum
import math
import os
from dataclasses import dataclass, field
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
    """The end of a solve."""

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
        """The status in a sentence."""
        return _EXPLANATIONS[self]

    def __str__(self) -> str:
        """Return the name."""
        return self.name

    def __repr__(self) -> str:
        """Return ``Status.SUCCESS``."""
        return f"Status.{self.name}"


MISSED = (Status.MAX_RESTARTS, Status.TIMED_OUT, Status.UNREACHABLE)  # after attempts

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
    Status.IN_COLLISION: "the pose is reached, but only in collision",
}


class Obstruction(NamedTuple):
    """A pose of a path, or the way to it, that no solutions tried are free at."""

    pose: int  # its number
    names: Pair  # the two that collide
    time: float | None  # of the contact, 0 at the pose before to 1; None: at the pose itself


class IkResult(NamedTuple):
    """The answer for one pose; true as a condition if it is a success."""

    success: bool  # inside the limits, and reached within both tolerances or with `approximate`
    status: Status
    q: Array  # (n,) [rad or m]; without success the best that was found
    position_error: float  # [m] at q
    rotation_error: float  # [rad] at q
    iterations: int  # steps over all attempts
    restarts: int  # attempts after the first
    duration: float  # [s]
    robot: RobotModel
    scene: SceneSnapshot | None = None  # as it stood; `success` is free of collisions in it
    pair_in_the_way: Pair | None = None  # the two that collided most often in its solutions

    def __bool__(self) -> bool:
        """Return `success`."""
        return bool(self.success)

    @property
    def clearance(self) -> float:
        """Least distance of all pairs that are checked, at q [m]; computed anew, exactly.

        Negative in collision, NaN without a scene.
        """
        return _clearance(self.scene, self.q)

    def _repr_html_(self) -> str:
        """Return a table of the joints, for notebooks."""
        return result_html(self, self.status.explanation)

    def __repr__(self) -> str:
        """Return the fields in short."""
        q = np.array2string(self.q, precision=4, separator=", ", threshold=12)
        kind = "" if self.success == (self.status is Status.SUCCESS) else "approximate, "
        return (
            f"IkResult({kind}{self.status}, q={q}, {self.position_error:.2g} m, "
            f"{self.rotation_error:.2g} rad, {self.iterations} iterations, "
            f"{self.restarts} restarts, {1e3 * self.duration:.3g} ms)"
        )


@dataclass(frozen=True, repr=False)
class IkBatchResult:
    """The answers for b poses, field by field; ``result[i]`` is the i-th as :class:`IkResult`.

    As arrays it has no truth value: ``result.success.all()`` tells whether all are solved.
    """

    success: NDArray[np.bool_]  # (b,)
    status: NDArray[np.int64]  # (b,) values of Status
    q: Array  # (b, n) [rad or m]; NaN for refused rows
    position_error: Array  # (b,) [m]
    rotation_error: Array  # (b,) [rad]
    iterations: NDArray[np.int64]  # (b,)
    restarts: NDArray[np.int64]  # (b,)
    duration: float  # [s] for all of them
    robot: RobotModel
    scene: SceneSnapshot | None = None  # as it stood
    pairs_in_the_way: tuple[Pair | None, ...] = ()  # (b,) with a scene, as of an IkResult

    @property
    def clearance(self) -> Array:
        """(b,) least distance of all pairs that are checked [m], as :attr:`IkResult.clearance`."""
        return np.array([_clearance(self.scene, q) for q in self.q])

    def __len__(self) -> int:
        """Return the number of poses."""
        return len(self.success)

    def __bool__(self) -> bool:
        """Raise: a batch has no truth value.

        Raises:
            ValueError: If it is called: like an array, a batch has no single truth value.
        """
        raise ValueError(
            f"the truth value of the answers for {len(self)} poses is ambiguous: use "
            ".success.all() or .success.any()"
        )

    def __repr__(self) -> str:
        """Return how many are solved, and the time."""
        return f"{type(self).__name__}({self._about()}, {1e3 * self.duration:.3g} ms)"

    def _repr_html_(self) -> str:
        """Return a table of the first poses, for notebooks."""
        return batch_html(self, self._about())

    @property
    def statuses(self) -> tuple[Status, ...]:
        """The status of each solve."""
        return tuple(map(Status, self.status.tolist()))

    def __getitem__(self, i: int) -> IkResult:
        """Return the answer for pose `i`; its duration is the batch's share of it."""
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
        )

    def _about(self) -> str:
        return f"{np.count_nonzero(self.success)} of {len(self)} solved"


@dataclass(frozen=True, repr=False)
class IkPathResult(IkBatchResult):
    """The answers along a path of b poses."""

    # (b,) some joint moves by more than max_joint_step from the pose before
    jumps: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    # (b,) with a scene: the first contact on the straight joint path from the pose before
    contacts: tuple[PathContact | None, ...] = ()

    @property
    def obstructions(self) -> tuple[Obstruction, ...]:
        """Poses that are reached only in collision, and ways to poses that collide."""
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
        """Return the path as CSV, a line for each pose: t [s], joint values [rad or m].

        Args:
            file: Where to write it too.
            times: (b,) [s] of the poses; rate: poses a second; default: as fast as the velocity
                limits allow. Faster paths are logged.

        Raises:
            OptionError: If a pose is not reached, or the times are not valid.
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
        """Return the path as ``trajectory_msgs/msg/JointTrajectory``, which starts at once.

        Args:
            times, rate: as :meth:`to_csv`.
            frame_id: of the header.

        Raises:
            OptionError: If a pose is not reached, or the times are not valid.
            DlsIkError: If the ROS message packages are not installed.
        """
        return trajectory_message(self.robot, *self._timed(times, rate), frame_id)

    def _timed(self, times: ArrayLike | None, rate: float | None) -> tuple[Array, Array]:
        """Return times (b,) and joint values (b, n) of a path that reaches all poses."""
        missed = np.flatnonzero(~self.success)
        if len(missed):
            raise OptionError(
                f"poses {listing(map(str, missed))} of {len(self)} are not reached: a path without "
                "them would go elsewhere; approximate=True of the solver takes the nearest"
            )
        t = path_times(self.robot, self.q, times, rate)
        warn_of_speed(self.robot, t, self.q)
        return t, self.q

    def _repr_html_(self) -> str:
        """Return a table of what each joint does, for notebooks."""
        return path_html(self, self._about())

    def _about(self) -> str:
        touching = sum(each is not None for each in self.contacts)
        collisions = f", {touching} in collision" if touching else ""
        return f"{super()._about()}, {np.count_nonzero(self.jumps)} jumps{collisions}"


def _clearance(scene: SceneSnapshot | None, q: Array) -> float:
    if scene is None or not np.isfinite(q).all():
        return math.nan
    closest = scene.distance(q)
    return math.inf if closest is None else closest.distance
