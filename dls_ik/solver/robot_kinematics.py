"""Kinematics in the shape of LeRobot's ``RobotKinematics``: degrees, lists of joints, weights.

An arm of five joints reaches few poses: the position is to be met, and the rotation only as well as
it can be then. Both are weighted in one least-squares problem, whose error stays above zero.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.selection import ALL, FOUND
from dls_ik.core.types import Array, Rows
from dls_ik.errors import JointValueError, OptionError
from dls_ik.model.joint import real_array
from dls_ik.model.pose import PoseLike
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.solver.method import AUTO
from dls_ik.solver.poses import checked_pose
from dls_ik.solver.search import Search
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import WEIGHTS, Task
from dls_ik.text import listing, quoted, suggest_names

# Damping and steps of the attempts. At a remaining error e undamped steps may turn about the least
# one, where the arm is stretched: strongly damped ones from the best point show whether they did.
STAGES = ((1.0, 16), (30.0, 12), (3.0, 12))  # (error_gain, max_iterations)
SLOW, SLOW_STEPS = 0.9995, 2  # a stage is over after steps that leave more of the error
IMPROVED = 2e-3  # share of the squared error by which a stage has to be better to go on
MAX_WEIGHTS = 64  # whose searches are kept


class RobotKinematics:
    """Forward and inverse kinematics with the methods of LeRobot's class of this name.

    Joint values are in degrees, of prismatic joints in [m], in the order of `joint_names`.

    Args:
        urdf_path: URDF or xacro file, or the text of a URDF.
        target_frame_name: link that poses are of, in the frame of the root link.
        joint_names: joints of the values; default: all that are driven, from the root on. Joints
            that do not move the frame, such as a gripper's, keep their values.

    Attributes:
        robot: the chain to the frame, a :class:`dls_ik.RobotModel`.
        joint_names, target_frame_name: as given, or found.

    Raises:
        RobotModelError: If the description is not a usable robot.
        ChainError: If the links do not span a chain.
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
        """Compute the pose (4, 4) [m] of the frame.

        Args:
            joint_pos_deg: values of `joint_names` [deg or m]; more are passed over.

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
        """Find joint values near the current ones that bring the frame as near to a pose as it can.

        They minimise ``position_weight |dp|^2 + orientation_weight |rotation vector|^2``, dp in
        [m] and the rotation in [rad], inside the joint limits, from the current values downhill.

        Args:
            current_joint_pos: values of `joint_names` [deg or m], and further ones.
            desired_ee_pose: (4, 4) [m], or in another form.
            position_weight, orientation_weight: from 0 on, not both 0.

        Returns:
            As many values [deg or m] as were given; those that do not move the frame are the same.

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
        q = _least_error(stages, T, self._configuration(values)[None], weights)
        values[self._at] = q / self._unit
        return values

    def _values(self, given: Any) -> Array:
        """Return a copy of values [deg or m], at least one for each joint."""
        try:
            values = real_array(given)
        except (TypeError, ValueError, OverflowError) as error:
            raise JointValueError(f"joint values must be numbers: {error}") from error
        if values.ndim != 1 or len(values) < len(self.joint_names):
            raise JointValueError(
                f"expected {len(self.joint_names)} joint values ({listing(self.joint_names)}), or "
                f"more, given the shape {values.shape}"
            )
        return values.copy()

    def _configuration(self, values: Array) -> Array:
        """Return (n,) [rad or m] of the chain."""
        q = values[self._at] * self._unit
        return q if np.isfinite(q).all() else self.robot.validated_one(q)  # which raises

    def _new_stages(self, position_weight: Any, orientation_weight: Any) -> tuple[Search, ...]:
        """Return the searches for two weights, and keep them."""
        weights = position_weight, orientation_weight
        for name, weight in zip(("position", "orientation"), weights, strict=True):
            if not isinstance(weight, Real) or not 0.0 <= float(weight) < math.inf:
                raise OptionError(f"{name}_weight is a number from 0, not {quoted(weight)}")
        largest = max(weights)
        if largest == 0.0:
            raise OptionError("position_weight and orientation_weight are both 0")
        # Rows of the task are multiplied by weights, whose squares are those of the squares.
        rows = [math.sqrt(weight / largest) for weight in weights]
        position, rotation = ("xyz" if row >= WEIGHTS[0] else "" for row in rows)
        each = tuple(row for row in rows for _ in "xyz" if row >= WEIGHTS[0])
        task = Task(position, rotation, weights=each)
        stages = tuple(
            IkSolver(
                self.robot,
                AUTO,
                task=task,
                rotation_weight=1.0,
                error_gain=gain,
                max_iterations=steps,
                stall_ratio=SLOW,
                stall_count=SLOW_STEPS,
                long_attempt_every=0,
                max_restarts=0,
            ).search
            for gain, steps in STAGES
        )
        for oldest in list(self._stages)[: 1 - MAX_WEIGHTS]:
            self._stages.pop(oldest, None)
        self._stages[weights] = stages
        return stages


def _least_error(
    stages: Sequence[Search], T: Array, q: Array, weights: tuple[float, float]
) -> Array:
    """Return joint values (n,) of the least weighted error, by attempts each from the best so far.

    Args:
        T: (1, 1, 4, 4); q: (1, n) where to start.
    """
    least, best = math.inf, q
    for number, search in enumerate(stages):
        row = Rows(np.zeros((1, 4), np.int64), np.empty(q.shape), np.empty((1, 3)))
        search.attempt(T, best, 1, row)
        position, rotation, _ = row.figures.tolist()[0]
        error = weights[0] * position**2 + weights[1] * rotation**2
        before = least
        if error < least:
            least, best = error, row.best
        is_last = number > 0 and error > (1.0 - IMPROVED) * before
        if is_last or row.counts[0, FOUND] == ALL:
            break
    found: Array = best[0]
    return found


def driven_joints(tree: Tree) -> list[str]:
    """List the joints with a value of their own, from the root down, siblings by name."""
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
    known = driven_joints(robot.tree)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise JointValueError(
            f"unknown joint {quoted(unknown[0])}; {suggest_names(unknown, known)}"
        )
    missing = [name for name in robot.joint_names if name not in names]
    if missing:
        raise JointValueError(
            f"joint_names lack {listing(map(repr, missing))}, which move {robot.tip!r}"
        )
    return names
