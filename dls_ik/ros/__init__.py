# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The ROS nodes: the only part of the package that imports ROS."""

import time

STARTED = time.monotonic()  # [s] steady; the earliest time that this package can measure
