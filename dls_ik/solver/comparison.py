"""Methods side by side, step by step: at one target, and along a path at a fixed time step.

A step is the method's own: no limits of a controller, no restarts, no other method behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.hard_paths import PosePath
from dls_ik.solver.method import parse_method
from dls_ik.solver.stepper import Stepper, paced_stepper
from dls_ik.solver.task import Task

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from dls_ik.solver.options import SolverKeywords

STEPS = 250  # toward one target
VANISHING = 1e-9  # bound on a singular value that always vanishes, as out of a planar arm's plane


class MethodRun(NamedTuple):
    """Steps of one method, s of them, from a configuration on."""

    q: Array  # (s + 1, n) [rad or m]
    error: Array  # (s + 1,) [m] scaled error of the task, before each step and after the last
    position_error: Array  # (s + 1,) [m] after each step, from the target stepped to
    step: Array  # (s,) largest change of a joint [rad or m]
    condition: Array  # (s + 1,) condition number of the scaled Jacobian of the task
    margin: Array  # (s + 1,) least distance of a joint from a limit [rad or m]; inf without limits


class Peaks(NamedTuple):
    """Figures of one method along a path, and at one target."""

    iterations: int | None  # to the target; None: not within the steps made
    largest_step: float  # of a joint, toward the target [rad or m]
    fastest_joint: float  # along the path [rad/s or m/s]
    largest_error: float  # of the position along the path [m]
    rms_error: float  # [m]
    condition: float  # greatest along the path
    margin: float  # least along the path [rad or m], below 0 beyond a limit


class PathComparison(NamedTuple):
    """Runs of methods toward the farthest pose of a path, and along it."""

    robot: RobotModel
    path: PosePath
    task: Task | None
    tolerance: float  # [m] scaled error at which a target counts as reached
    at_target: dict[str, MethodRun]  # by method, cut where the target is reached
    along: dict[str, MethodRun]

    def peaks(self) -> dict[str, Peaks]:
        """Return the figures of each method."""
        return {name: self._peaks(name) for name in self.along}

    def _peaks(self, name: str) -> Peaks:
        first, run = self.at_target[name], self.along[name]
        is_there = first.error[-1] <= self.tolerance
        errors = run.position_error[1 + self.path.first_counted :]
        return Peaks(
            len(first.step) if is_there else None,
            float(first.step.max()),
            float(run.step.max()) / self.path.dt,
            float(errors.max()),
            float(np.sqrt(np.mean(errors**2))),
            float(run.condition.max()),
            float(run.margin.min()),
        )


def compare_on_path(
    robot: RobotModel,
    methods: Sequence[str],
    path: PosePath,
    task: Task | None = None,
    steps: int = STEPS,
    **options: Unpack[SolverKeywords],
) -> PathComparison:
    """Run methods from the start of a path: to its farthest pose, and along it, a step a target.

    Args:
        methods: names from :func:`dls_ik.method_names` or combinations; those of KDL have no steps.
        path: targets, and where to begin; see :func:`dls_ik.solver.hard_paths.singular_path`.
        task: default: the full pose.
        steps: at most toward the farthest pose.
        options: of :class:`dls_ik.IkSolver`, for all methods. `Delta` of the optimal damping factor
            is that of the slowest joint in a time step unless it is given.

    Raises:
        MethodError: If a method is unknown or does not support the robot.
        OptionError: If no method is given, the path has fewer than two poses, or an option is not
            valid.
    """
    if not methods:
        raise OptionError("no method to compare is given")
    if len(path.Ts) < 2:
        raise OptionError(f"a path has two poses or more, not {len(path.Ts)}")
    away = np.linalg.norm(path.Ts[:, :3, 3] - path.Ts[0, :3, 3], axis=1)
    turned = 3.0 - np.einsum("tij,ij->t", path.Ts[:, :3, :3], path.Ts[0, :3, :3])
    far = path.Ts[int(np.argmax(away if away.max() > 1e-9 else turned))]
    at_target, along, tolerance = {}, {}, 0.0
    for name in dict.fromkeys(parse_method(method).name for method in methods):
        stepper = paced_stepper(robot, name, path.start, path.dt, task, options)
        tolerance = max(tolerance, stepper.options.position_tolerance)
        at_target[name] = _until(_run(stepper, np.repeat(far[None], steps, axis=0)), tolerance)
        stepper.reset(path.start)
        along[name] = _run(stepper, path.Ts)
    return PathComparison(robot, path, task, tolerance, at_target, along)


def _run(stepper: Stepper, Ts: Array) -> MethodRun:
    """Make a step toward each target (s, 4, 4), and measure where it led."""
    robot, trace = stepper.robot, stepper.run(Ts, len(Ts))
    q, goals = trace.q, np.concatenate([Ts[:1], Ts])  # what each configuration was stepped to
    position = np.linalg.norm(robot.fk(q)[:, :3, 3] - goals[:, :3, 3], axis=1)
    s = np.linalg.svd(_jacobians(stepper, q, goals), compute_uv=False)
    rank = max(1, int((s.max(axis=0) > VANISHING).sum()))
    condition = s[:, 0] / np.maximum(s[:, rank - 1], np.finfo(float).tiny)
    step = np.abs(np.diff(q, axis=0)).max(axis=1)
    margin = np.minimum(q - robot.lower, robot.upper - q).min(axis=1)
    error = np.linalg.norm(trace.error, axis=1)
    return MethodRun(q, error, position, step, condition, margin)


def _jacobians(stepper: Stepper, q: Array, Ts: Array) -> Array:
    """Compute scaled Jacobians (b, r, n) of the task at q (b, n), for targets Ts (b, 4, 4)."""
    rows, J = stepper.details.task, stepper.robot.jacobian(q)
    turns = np.count_nonzero(rows.component >= 3)
    if rows.exact_derivative[0] or turns == 1:  # not rows of the geometric Jacobian
        before, found = stepper.q, []
        for stepper.q, T in zip(q, Ts, strict=True):
            found.append(stepper.jacobian(T))
        stepper.q = before
        return np.array(found)
    if rows.in_target[0]:
        R = Ts[:, :3, :3].swapaxes(1, 2)
        J = np.concatenate([R @ J[:, :3], R @ J[:, 3:6]], axis=1)
    return np.asarray(rows.weight[:, None] * J[:, rows.component])


def _until(run: MethodRun, tolerance: float) -> MethodRun:
    """Cut a run toward one target after the step that reached it."""
    there = np.flatnonzero(run.error <= tolerance)
    last = max(1, int(there[0])) if len(there) else len(run.step)
    return MethodRun(
        *(each[: last + (name != "step")] for name, each in zip(run._fields, run, strict=True))
    )
