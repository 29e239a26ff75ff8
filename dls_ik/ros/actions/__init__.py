# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Actions of ``ik_node``: motions along joint trajectories, with feedback and a result."""
