# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""dls_ik and its peers side by side: ``python -m benchmarks.peers``."""
