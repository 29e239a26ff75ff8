# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Planning of motions for clients of move_group: joint and pose goals, and Cartesian paths."""
