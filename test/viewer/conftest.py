# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Browser for the tests of the viewer."""

import pytest
from viewer import browser as browsers


# Module scope, as this thread has an asyncio loop while the fixture lives
@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as browser:
        yield browser


@pytest.fixture
def open_page(browser, tmp_path, request):
    """Return a function: ``with open_page(url) as page:`` opens a page and fails on its errors."""

    return lambda url: browsers.open_page(browser, url, tmp_path, request.node.name)
