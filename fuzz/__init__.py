# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Campaigns of hostile input against every door of the package: ``python -m fuzz --help``."""
