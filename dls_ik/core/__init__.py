# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Numba kernels: free functions of arrays and NamedTuples. No ROS, no logging, no strings."""


class NumbaStartError(RuntimeError):
    """Numba does not start in this environment; the message says with what, and why."""
