# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""ROS nodes and clients of these nodes; the only subpackage of ``dls_ik`` that imports ROS."""

import time

PROCESS_START = time.monotonic()  # [s] steady time at which the process started, approximately
