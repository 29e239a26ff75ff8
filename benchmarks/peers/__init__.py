# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Comparison of dls_ik with its peers: ``python -m benchmarks.peers``."""
