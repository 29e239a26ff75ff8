# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kinematics with the interface of LeRobot's class ``RobotKinematics``, with angles in degrees.

An arm with five joints reaches few full poses. Therefore the inverse kinematics minimise a weighted
sum of squared position and rotation errors; the minimum is usually above zero.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.selection import FOUND_ALL, FOUND_COLUMN
from dls_ik.core.types import Array, Rows
from dls_ik.errors import JointValueError, OptionError
from dls_ik.model.joint import real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.solver.method import AUTO_METHOD
from dls_ik.solver.poses import checked_pose
from dls_ik.solver.search import Search
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import WEIGHT_RANGE, Task
from dls_ik.text import listing, quoted, suggest_names

# Values of the solver options error_gain (strength of the damping) and max_iterations for each of
# three attempts. If the target is out of reach, the arm is stretched where the error is smallest,
# and weakly damped steps may oscillate about this configuration. Therefore the second and third
# attempts, which start at the best configuration so far, have stronger damping.
STAGES = ((1.0, 16), (30.0, 12), (3.0, 12))
STALL_RATIO, STALL_COUNT = 0.9995, 2  # ends an attempt, see the solver options of these names
MIN_IMPROVEMENT = 2e-3  # relative decrease of the squared error below which no attempt follows
MAX_CACHED_WEIGHTS = 64  # maximum number of weight pairs whose searches are cached


class RobotKinematics:
    """Forward and inverse kinematics with the methods of LeRobot's class ``RobotKinematics``.

    Joint positions are in degrees, or in [m] for prismatic joints, in the order of `joint_names`.

    Args:
        urdf_path: URDF or xacro file, or the text of a URDF.
        target_frame_name: Link whose pose is computed, in the frame of the root link.
        joint_names: Joints in the order of the values; default: all driven joints, from the root
            outward. The inverse kinematics do not change the values of joints that do not move the
            frame, such as gripper joints.

    Attributes:
        robot: Chain to the frame, a :class:`dls_ik.RobotModel`.
        joint_names: Joints in the order of the values.
        target_frame_name: Link whose pose is computed.

    Raises:
        RobotModelError: If the description is not that of a usable robot.
        ChainError: If the frame is unknown, or no joint moves the frame.
        JointValueError: If a joint is unknown, or a joint that moves the frame has no value.
    """

    def __init__(
        self,
        urdf_path: str | os.PathLike[str],
        target_frame_name: str = "gripper_frame_link",
        joint_names: Sequence[str] | None = None,
    ) -> None:
        self.robot = RobotModel.from_urdf(urdf_path, tip=target_frame_name)
        self.target_frame_name = target_frame_name
        names = driven_joints(self.robot.tree) if joint_names is None else list(joint_names)
        self.joint_names = _checked_names(self.robot, names)
        self._at = np.array([names.index(name) for name in self.robot.joint_names])
        self._unit = np.where([unit == "rad" for unit in self.robot.units], np.pi / 180.0, 1.0)
        self._stages: dict[tuple[float, float], tuple[Search, ...]] = {}

    def __repr__(self) -> str:
        """Return the robot, the frame and the number of joints."""
        joints = f"{len(self.joint_names)} joints"
        return f"RobotKinematics({self.robot.name}, {self.target_frame_name}, {joints})"

    def forward_kinematics(self, joint_pos_deg: ArrayLike) -> Array:
        """Return the pose (4, 4) of the frame [m].

        Args:
            joint_pos_deg: Values of `joint_names` [deg or m]; further values are ignored.

        Raises:
            JointValueError: If there are too few values, or values are not finite numbers.
        """
        return self.robot.fk(self._configuration(self._values(joint_pos_deg)))

    def inverse_kinematics(
        self,
        current_joint_pos: ArrayLike,
        desired_ee_pose: PoseLike,
        position_weight: float = 1.0,
        orientation_weight: float = 0.01,
    ) -> Array:
        """Find joint positions that bring the frame as close as possible to a pose.

        The search minimises ``position_weight |dp|^2 + orientation_weight |rotation vector|^2``
        inside the joint limits, starting at the current joint positions; dp is in [m], the rotation
        vector in [rad]. It returns a local minimum.

        Args:
            current_joint_pos: Values of `joint_names` [deg or m]; further values may follow.
            desired_ee_pose: (4, 4) [m], or a pose in another form.
            position_weight: Weight of at least 0.
            orientation_weight: Weight of at least 0; the two weights must not both be 0.

        Returns:
            The given values [deg or m], in which the values of the joints that move the frame are
            replaced.

        Raises:
            JointValueError: If the seed is not valid.
            PoseError: If the pose is not valid.
            OptionError: If another argument is not valid.
        """
        values = self._values(current_joint_pos)
        stages = self._stages.get((position_weight, orientation_weight))
        if stages is None:
            stages = self._new_stages(position_weight, orientation_weight)
        T = checked_pose(desired_ee_pose, orientation_weight == 0.0).reshape(1, 1, 4, 4)
        weights = position_weight, orientation_weight
        q = _minimize_error(stages, T, self._configuration(values)[None], weights)
        values[self._at] = q / self._unit
        return values

    def _values(self, given: Any) -> Array:
        """Validate joint values in the order of `joint_names`, and return a copy [deg or m].

        Raises:
            JointValueError: If there are too few values, or values are not numbers.
        """
        try:
            values = real_array(given)
        except (TypeError, ValueError, OverflowError) as error:
            raise JointValueError(f"joint values must be numbers: {error}") from error
        if values.ndim != 1 or len(values) < len(self.joint_names):
            raise JointValueError(
                f"expected at least {len(self.joint_names)} joint values "
                f"({listing(self.joint_names)}); got an array of shape {values.shape}"
            )
        return values.copy()

    def _configuration(self, values: Array) -> Array:
        """Convert values of `joint_names` [deg or m] to joint positions (n,) of the chain.

        The joint positions are in [rad or m].

        Raises:
            JointValueError: If a value is not finite.
        """
        q = values[self._at] * self._unit
        return q if np.isfinite(q).all() else self.robot.validated_one(q)  # raises

    def _new_stages(self, position_weight: Any, orientation_weight: Any) -> tuple[Search, ...]:
        """Build the searches of `STAGES` for the two weights, and cache them.

        Raises:
            OptionError: If a weight is not valid.
        """
        weights = position_weight, orientation_weight
        for name, weight in zip(("position", "orientation"), weights, strict=True):
            if not isinstance(weight, Real) or not 0.0 <= float(weight) < math.inf:
                raise OptionError(
                    f"{name}_weight must be a number of at least 0; got {quoted(weight)}"
                )
        largest = max(weights)
        if largest == 0.0:
            raise OptionError("position_weight and orientation_weight must not both be 0")
        # Task rows are scaled by the roots of the weights, because the weights multiply squares.
        rows = [math.sqrt(weight / largest) for weight in weights]
        position, rotation = ("xyz" if row >= WEIGHT_RANGE[0] else "" for row in rows)
        each = tuple(row for row in rows for _ in "xyz" if row >= WEIGHT_RANGE[0])
        task = Task(position, rotation, weights=each)
        stages = tuple(
            IkSolver(
                self.robot,
                AUTO_METHOD,
                task=task,
                rotation_weight=1.0,
                error_gain=gain,
                max_iterations=steps,
                stall_ratio=STALL_RATIO,
                stall_count=STALL_COUNT,
                long_attempt_every=0,
                max_restarts=0,
            ).search
            for gain, steps in STAGES
        )
        for oldest in list(self._stages)[: 1 - MAX_CACHED_WEIGHTS]:
            self._stages.pop(oldest, None)
        self._stages[weights] = stages
        return stages


def _minimize_error(
    stages: Sequence[Search], T: Array, q: Array, weights: tuple[float, float]
) -> Array:
    """Return the joint positions (n,) [rad or m] with the smallest weighted error found.

    Args:
        stages: Searches, each of which makes one attempt from the best configuration so far. Later
            searches are omitted if the pose is reached, or if the error has hardly decreased.
        T: (1, 1, 4, 4) desired pose.
        q: (1, n) start [rad or m].
        weights: Weights of the squared position error and the squared rotation error.
    """
    smallest, best = math.inf, q
    for number, search in enumerate(stages):
        row = Rows(np.zeros((1, 4), np.int64), np.empty(q.shape), np.empty((1, 3)))
        search.attempt(T, best, 1, row)
        position, rotation, _ = row.figures.tolist()[0]
        error = weights[0] * position**2 + weights[1] * rotation**2
        before = smallest
        if error < smallest:
            smallest, best = error, row.best
        is_last = number > 0 and error > (1.0 - MIN_IMPROVEMENT) * before
        if is_last or row.counts[0, FOUND_COLUMN] == FOUND_ALL:
            break
    found: Array = best[0]
    return found


def driven_joints(tree: Tree) -> list[str]:
    """Return the names of the joints that are neither fixed nor mimic joints.

    The names are in depth-first order from the root; joints of the same link are sorted by name.
    """
    names, waiting = [], [*tree.child_joints[tree.root]]
    waiting.sort(key=lambda joint: joint.name, reverse=True)
    while waiting:
        joint = waiting.pop()
        mimic = tree.mimic_of.get(joint.name)
        if mimic is not None and mimic.master == joint.name:
            names.append(joint.name)
        below = tree.child_joints[joint.child]
        waiting += sorted(below, key=lambda each: each.name, reverse=True)
    return names


def _checked_names(robot: RobotModel, names: list[str]) -> list[str]:
    """Validate joint names that a user gave, and return them.

    Raises:
        JointValueError: If a joint is unknown, or a joint that moves the tip is missing.
    """
    known = driven_joints(robot.tree)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise JointValueError(
            f"unknown joint {quoted(unknown[0])}; {suggest_names(unknown, known)}"
        )
    missing = [name for name in robot.joint_names if name not in names]
    if missing:
        raise JointValueError(
            f"joint_names must contain all joints that move {robot.tip!r}; missing: "
            f"{listing(map(repr, missing))}"
        )
    return names
