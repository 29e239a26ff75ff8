# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reproduced tables and figures of papers; :mod:`dls_ik.reproduce.experiment` lists them."""
