# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The servo loop: receives targets, computes a command in each cycle, and publishes it."""
