# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Demonstration of the node: ``python -m dls_ik.ros.demo``."""
