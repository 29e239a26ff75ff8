# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One map of the WAM for all tests that compare with it."""

import pytest
from reach_maps import wam_map


@pytest.fixture(scope="session")
def wam():
    return wam_map()
