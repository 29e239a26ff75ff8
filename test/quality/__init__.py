# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Measures of the tests for ``scripts/coverage`` and ``scripts/mutate``."""
