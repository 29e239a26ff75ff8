# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Following targets: messages in, cycles at a rate, commands out."""
