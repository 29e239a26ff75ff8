# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Benchmarks; each module is a program: ``python -m benchmarks.NAME``."""
