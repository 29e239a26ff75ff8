# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Recordings of the topics of a node: files, recorder and replay."""
