# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reproduced tables and figures of papers; the module ``experiment`` lists them."""
