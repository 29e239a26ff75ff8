# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Experiments that reproduce tables and figures of papers; :mod:`.experiment` lists them."""
