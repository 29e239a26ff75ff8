# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Servo-level peers: packages that follow a stream of targets, each in its own environment."""
