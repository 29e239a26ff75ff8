# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One attempt: repeated steps of a method from a start configuration toward the desired poses.

The functions serve the fast path and the general path, which :mod:`dls_ik.core.search` explains.
"""

from dls_ik.core import limits
from dls_ik.core.fast.kinematics import arm_jacobian_there, observe_arm
from dls_ik.core.fast.step import fast_step
from dls_ik.core.jit import force_inline
from dls_ik.core.linalg import norm
from dls_ik.core.step import general_step
from dls_ik.core.task import is_reached, jacobian_there, observe
from dls_ik.core.types import (
    AnyWorkspace,
    Array,
    ChainTable,
    GeneralProblem,
    PoseProblem,
)
from dls_ik.core.workspace import forget

ATTEMPT_REACHED, ATTEMPT_SLOW, ATTEMPT_OUT_OF_ITERATIONS = range(3)
LONG_ITERATIONS_FACTOR = 8  # maximum number of steps of a long attempt, relative to max_iterations
LONG_STALL_RATIO = 0.95  # stall ratio of a long attempt


@force_inline
def error_at(problem: PoseProblem, q: Array, work: AnyWorkspace) -> tuple[float, float]:
    """Write the scaled error at the joint positions `q` (n,) [rad or m] to `work.e`.

    In the scaled error, rotations are multiplied by ``problem.params.stop.rotation_weight``
    [m/rad].

    Args:
        problem: The pose; the fast path reads ``work.target`` instead of ``problem.T_d``.
        q: (n,) joint positions [rad or m].
        work: Scratch arrays of the path.

    Returns:
        The largest position error [m] and the largest rotation error [rad] of all tips.
    """
    return _error_on_path(problem, problem.table, problem.general, q, work)


@force_inline
def _error_on_path(
    problem: PoseProblem,
    table: ChainTable | None,
    general: GeneralProblem | None,
    q: Array,
    work: AnyWorkspace,
) -> tuple[float, float]:
    """Run :func:`error_at` on the path of the problem, whose `table` or `general` is not None."""
    position, rotation = 0.0, 0.0
    if general is not None:
        position, rotation = observe(problem.chain, general, problem.T_d, q, work)
    if table is not None:
        position, rotation = observe_arm(
            problem.chain, problem.params.stop.rotation_weight, q, work
        )
    return position, rotation


@force_inline
def write_jacobian(problem: PoseProblem, work: AnyWorkspace) -> None:
    """Write the Jacobian of the scaled error to `work.J`.

    The Jacobian belongs to the joint positions of the previous call of :func:`error_at`, whose
    kinematics are stored in `work`.
    """
    _jacobian_on_path(problem, problem.table, problem.general, work)


@force_inline
def _jacobian_on_path(
    problem: PoseProblem,
    table: ChainTable | None,
    general: GeneralProblem | None,
    work: AnyWorkspace,
) -> None:
    """Run :func:`write_jacobian` on the path of the problem."""
    if general is not None:
        jacobian_there(problem.chain, general, problem.T_d, work)
    if table is not None:
        arm_jacobian_there(problem.chain, problem.params.stop.rotation_weight, work)


@force_inline
def make_step(problem: PoseProblem, error: float, q: Array, work: AnyWorkspace) -> None:
    """Add one step of the method to the joint positions `q` (n,) [rad or m].

    Args:
        problem: The pose.
        error: Norm of the scaled error [m] that :func:`error_at` wrote to `work` for this `q`.
        q: (n,) joint positions, read and written [rad or m].
        work: Scratch arrays of the path.
    """
    write_jacobian(problem, work)
    _step_on_path(problem, problem.table, problem.general, error, q, work)
    for j in range(q.shape[0]):
        q[j] += work.dq[j]
    if limits.clips(problem.params.method):
        limits.clip_to_limits(problem.chain.lower, problem.chain.upper, q)


@force_inline
def _step_on_path(
    problem: PoseProblem,
    table: ChainTable | None,
    general: GeneralProblem | None,
    error: float,
    q: Array,
    work: AnyWorkspace,
) -> None:
    """Write the step of :func:`make_step` to `work.dq`, on the path of the problem."""
    if general is not None:
        general_step(problem.chain, problem.params.method, general, problem.T_d, q, work)
    if table is not None:
        fast_step(problem.chain, problem.params.method, error, q, work)


@force_inline
def _forget_on_path(general: GeneralProblem | None, work: AnyWorkspace) -> None:
    """Reset the memory of the method; the methods of the fast path have no memory."""
    if general is not None:
        forget(work.memory)


@force_inline
def number_attempt(general: GeneralProblem | None, index: int, work: AnyWorkspace) -> None:
    """Write the number of earlier attempts for a pose to the memory of the method.

    Only the method DUAL reads this number, to choose its solver for an attempt. The fast path has
    no memory; nothing is written there.

    Args:
        general: Task of the general path; None on the fast path.
        index: Number of earlier attempts for the pose.
        work: Scratch arrays of the path.
    """
    if general is not None:
        work.memory.steps[3] = index


@force_inline
def attempt(
    problem: PoseProblem, is_long: bool, q: Array, work: AnyWorkspace, out: Array
) -> tuple[int, int]:
    """Move `q` by steps of a method until the desired poses are reached or the attempt fails.

    An attempt fails if the error decreases too slowly or the maximum number of steps is reached.

    Args:
        problem: The pose, the method and the criteria by which an attempt ends.
        is_long: Whether to allow more steps and a slower decrease of the error. If an arm must be
            stretched to reach a pose, the error decreases slowly.
        q: (n,) start configuration; replaced by the last configuration [rad or m].
        work: Scratch arrays, with the state of the method.
        out: (2,) position error [m] and rotation error [rad] at the last configuration, written.

    Returns:
        ATTEMPT_REACHED, ATTEMPT_SLOW (slow decrease) or ATTEMPT_OUT_OF_ITERATIONS, and the number
        of steps.
    """
    stop = problem.params.stop
    if limits.clips(problem.params.method):
        limits.clip_to_limits(problem.chain.lower, problem.chain.upper, q)
    _forget_on_path(problem.general, work)
    max_iterations, ratio = stop.max_iterations, stop.stall_ratio
    if is_long:
        max_iterations, ratio = LONG_ITERATIONS_FACTOR * max_iterations, LONG_STALL_RATIO
    last, num_slow = 1e300, 0
    iteration = 0
    while True:
        out[0], out[1] = error_at(problem, q, work)
        error = norm(work.e)
        if is_reached(stop, out[0], out[1], error):
            return ATTEMPT_REACHED, iteration
        if iteration >= max_iterations:
            return ATTEMPT_OUT_OF_ITERATIONS, iteration
        num_slow = num_slow + 1 if error > ratio * last else 0
        if stop.stall_count > 0 and num_slow >= stop.stall_count:
            return ATTEMPT_SLOW, iteration
        last = error
        make_step(problem, error, q, work)
        iteration += 1
