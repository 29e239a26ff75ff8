# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fast path: kernels for the full pose (six rows) of one tip by the common damped methods.

``method="auto"`` uses the fast path whenever possible. The search loop and the formula of the step
are those of the general path, but link frames that need few operations, and unrolled loops, reduce
the time of an iteration to a fifth. A table provides start configurations.
"""
