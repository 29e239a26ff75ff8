# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Published tables and figures, run again: a module for each paper; ``experiment`` lists them."""
