"""What a configuration leaves of a task: the error, and the Jacobian there."""

from dls_ik.core.jit import spliced
from dls_ik.core.kinematics import forward
from dls_ik.core.task import task_error, task_jacobian
from dls_ik.core.types import Array, Chain, Details, Goal, Workspace


@spliced
def observe(
    chain: Chain, details: Details, T_d: Array, q: Array, work: Workspace
) -> tuple[float, float]:
    """Write the scaled error at `q`; return the largest position [m] and rotation error [rad].

    Args:
        T_d: (k, 4, 4) desired poses, q: (n,).
    """
    forward(chain, q, work.axes, work.T)
    return task_error(details.task, T_d, work.T, work.relative, work.whole, work.e)


@spliced
def jacobian_there(chain: Chain, details: Details, T_d: Array, work: Workspace) -> None:
    """Write the Jacobian of the scaled error at the configuration last observed."""
    task_jacobian(chain, details.task, T_d, work.axes, work.T, work.relative, work.J)


@spliced
def scaled_error(goal: Goal, error: Array) -> float:
    """Squared norm of the scaled error [m^2] from (position [m], rotation error [rad])."""
    return error[0] ** 2 + (goal.rotation_weight * error[1]) ** 2
