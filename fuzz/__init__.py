# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fuzzing campaigns against all interfaces of the package: ``python -m fuzz --help``."""
