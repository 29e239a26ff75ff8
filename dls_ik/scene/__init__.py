# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Collision geometry of a robot and of the objects around it, and distances between them."""
