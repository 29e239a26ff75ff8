# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A node that simulates an arm: receives commands, and publishes joint states."""
