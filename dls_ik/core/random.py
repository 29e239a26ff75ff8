"""A small generator with its state in the open, so that a search can be stopped and taken up.

SplitMix64 (Steele, Lea & Flood 2014): one 64-bit word of state, any value is a good seed.
"""

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.jit import inlined


@inlined
def uniform(state: NDArray[np.uint64]) -> float:
    """Return the next number in [0, 1); `state` (1,) is stepped."""
    state[0] += np.uint64(0x9E3779B97F4A7C15)
    z = state[0]
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = z ^ (z >> np.uint64(31))
    return np.float64(z >> np.uint64(11)) * 1.1102230246251565e-16
