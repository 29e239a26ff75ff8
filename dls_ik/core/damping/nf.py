"""NF, numerical filtering: all directions are damped a little, the least singular one for itself.

J^T (J J^T + alpha^2 u_m u_m^T + lambda I)^-1 (Deo & Walker 1993, remarks of section 3; Maciejewski
& Klein 1988). alpha^2 is what keeps the joint velocity for a unit velocity of the tip within its
bound in the least singular direction, lambda what keeps it there in the others, both by (6). Here
u_m is that direction itself, from the decomposition, where the paper follows an estimate of it.
"""

from dls_ik.core.jit import kernel
from dls_ik.core.policy import velocity
from dls_ik.core.types import Array

NAME = "nf"


@kernel
def gain(velocity_bound: float, s: Array, i: int, count: int, lambda2: float) -> float:
    """The gain of direction i; `lambda2` is not 0 only while a target is followed."""
    if count > 1:
        lambda2 += velocity.least_damping(s[count - 2], velocity_bound)
    if i == count - 1:
        lambda2 += velocity.least_damping(s[i], velocity_bound)
    return s[i] / (s[i] * s[i] + lambda2)
