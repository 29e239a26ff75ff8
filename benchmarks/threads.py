"""How many threads a batch is measured on."""

import os


def thread_counts() -> list[int]:
    """1, 2, 4, ... and as many as there are cores for this process."""
    cores = len(os.sched_getaffinity(0))
    return sorted({min(2**i, cores) for i in range(cores.bit_length() + 1)})
