"""One step of closed-loop inverse kinematics: the choices of a method put together.

dq = z + C P (e - J z) for every combination: the limit strategy gives z, the scale C of the columns
and how far each joint is held, the damping law gives P, the bounds shorten what comes of the error.
"""

from dls_ik.core.general_step import general_step
from dls_ik.core.jit import spliced
from dls_ik.core.quick_step import quick_step
from dls_ik.core.types import Array, Chain, Details, Method, Workspace


@spliced
def joint_step(
    chain: Chain,
    method: Method,
    quick: bool | None,
    details: Details | None,
    T_d: Array,
    q: Array,
    work: Workspace,
) -> None:
    """Write the step for the error ``work.e`` and Jacobian ``work.J``, both scaled, to ``work.dq``.

    ``work.e`` and ``work.J`` are spoilt. Equation (1) of Colome & Torras 2012.

    Args:
        quick: None where there are details, else anything: Numba leaves out the branch of what is
            None, and with it half of the compilation.
        T_d: (k, 4, 4) desired poses, q: (n,) joint values [rad or m].
    """
    if quick is not None:
        quick_step(chain, method, q, work)
    if details is not None:
        general_step(chain, method, details, T_d, q, work)
