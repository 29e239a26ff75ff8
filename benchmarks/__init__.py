# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Figures on speed: each module is a tool of its own, ``python -m benchmarks.NAME``."""
