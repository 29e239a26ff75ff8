"""Steps one after another for those who look at each: teaching, comparing, reproducing."""

from dls_ik.core import limits
from dls_ik.core.general_step import general_step
from dls_ik.core.jit import kernel
from dls_ik.core.loop import clip
from dls_ik.core.observe import jacobian_there, observe
from dls_ik.core.types import Array, Chain, Details, Goal, Memory, Method
from dls_ik.core.workspace import workspace


@kernel
def run(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    memory: Memory,
    Ts: Array,
    qs: Array,
    errors: Array,
    damping: Array,
) -> None:
    """Make s steps; the last of fewer targets stays.

    Args:
        memory: in and out, of the method.
        Ts: (t, k, 4, 4) target of each step.
        qs: (s + 1, n) in: the start first, out: where each step led.
        errors: (s + 1, r) out: scaled errors at qs, of the step from there.
        damping: (s, 2) out: lambda^2 and the iterations it took.
    """
    work = workspace(chain, details, memory)
    steps = damping.shape[0]
    for i in range(steps + 1):
        T_d = Ts[min(i, Ts.shape[0] - 1)]
        observe(chain, details, T_d, qs[i], work)
        errors[i] = work.e
        if i == steps:
            break
        jacobian_there(chain, details, T_d, work)
        general_step(chain, method, details, T_d, qs[i], work)
        for j in range(qs.shape[1]):
            qs[i + 1, j] = qs[i, j] + work.dq[j]
        if limits.clips(method):
            clip(chain.lower, chain.upper, qs[i + 1])
        damping[i, 0], damping[i, 1] = memory.lambda2[0], memory.steps[1]
        observe(chain, details, T_d, qs[i + 1], work)
        memory.left[:] = work.e


@kernel
def look(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    memory: Memory,
    T_d: Array,
    q: Array,
    e: Array,
    J: Array,
) -> None:
    """Write the scaled error e (r,) and Jacobian J (r, n) of the task at q (n,)."""
    work = workspace(chain, details, memory)
    observe(chain, details, T_d, q, work)
    jacobian_there(chain, details, T_d, work)
    e[:] = work.e
    J[:] = work.J


@kernel
def step_for(
    chain: Chain,
    method: Method,
    goal: Goal,
    details: Details,
    memory: Memory,
    T_d: Array,
    q: Array,
    e: Array,
    J: Array,
    dq: Array,
) -> None:
    """Write the step dq (n,) of a method for a scaled error e (r,) and Jacobian J (r, n) given."""
    work = workspace(chain, details, memory)
    observe(chain, details, T_d, q, work)
    work.e[:] = e
    work.J[:] = J
    general_step(chain, method, details, T_d, q, work)
    dq[:] = work.dq
