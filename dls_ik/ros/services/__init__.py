# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Services of ``ik_node``, and the planning scene of the robot."""
