# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The fast path: the full pose of one tip by damped least squares, as ``auto`` solves it.

The same loop and steps as on the general path, in frames and with loops written out so that an
iteration takes a fifth of the time; and a table of configurations to start from.
"""
