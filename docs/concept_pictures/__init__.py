# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of concepts.md: planar arms, singular values and restarts, joint limits."""
