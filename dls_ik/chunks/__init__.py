# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Long computations in chunks, on local threads or a Dask cluster; finished chunks are stored."""
