# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fast path: the full pose of one tip by damped least squares, as solved by ``auto``.

The loop and the steps are those of the general path. Suitable frames and unrolled loops reduce the
time of an iteration to a fifth. A table provides start configurations.
"""
