"""How far a configuration is from a singularity."""

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.linalg import svd
from dls_ik.core.policy import measures
from dls_ik.core.types import Array


@kernel
def dexterity(J: Array) -> float:
    """Return the product of the singular values of a matrix, or of its transpose.

    That is Yoshikawa's measure of manipulability sqrt(det(J J^T)); with fewer columns than rows
    sqrt(det(J^T J)).
    """
    r, n = J.shape
    s = np.empty(r)
    svd(J, np.empty((r, r)), s, np.empty((r, n)))
    return measures.manipulability(s, n)
