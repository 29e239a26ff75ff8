# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Numba kernels: functions that take arrays, numbers and NamedTuples of arrays and numbers.

Kernels neither use ROS nor write logs, and they have no string arguments.
"""


class NumbaStartError(RuntimeError):
    """Importing Numba failed; the message names the cause and the NUMBA_* environment variables."""
