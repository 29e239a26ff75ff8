# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A browser for the tests of the viewer."""

import pytest
from viewer import browser as browsers


@pytest.fixture(scope="module")  # not longer: while it runs, this thread has a loop of asyncio
def browser():
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser, tmp_path, request):
    """``with open_page(url) as page:`` opens a page and fails on errors that it logged."""

    return lambda url: browsers.open_page(browser, url, tmp_path, request.node.name)
