# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The ROS nodes and their clients: the only part of ``dls_ik`` that imports ROS."""

import time

PROCESS_START = time.monotonic()  # [s] steady clock; approximate start of the process
