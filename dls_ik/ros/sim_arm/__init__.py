# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Node ``ik_sim_arm``, which simulates an arm: it receives commands and publishes joint states."""
