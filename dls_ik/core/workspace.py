"""Scratch memory, made where it is used: cheaper than handing twenty arrays in from Python."""

import numpy as np

from dls_ik.core.jit import kernel
from dls_ik.core.types import Chain, Workspace


@kernel
def workspace(chain: Chain) -> Workspace:
    """Allocate the scratch of one thread for a chain."""
    m, n = chain.prismatic.shape[0], chain.lower.shape[0]
    return Workspace(
        np.zeros((m, 2, 3)),
        np.zeros((3, 4)),
        np.zeros((3, 3)),
        np.zeros(6),
        np.zeros((6, n)),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n),
        np.zeros(n, np.int64),
        np.zeros((6, 6)),
        np.zeros((6, 6)),
        np.zeros((6, 6)),
        np.zeros(6),
        np.zeros(6),
        np.zeros(6),
        np.zeros(n),
    )
