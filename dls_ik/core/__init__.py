# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Numba kernels: free functions of arrays and NamedTuples. No ROS, no logging, no strings."""


class NumbaStartError(RuntimeError):
    """A failure to import Numba; the message names the environment variables and the cause."""
