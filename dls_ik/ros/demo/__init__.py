# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Demonstration of the node ``ik_node``, run by ``python -m dls_ik.ros.demo``."""
