# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""What is counted while pages are followed."""

from collections import Counter

import pytest

KEY = "docs"


@pytest.fixture
def count(record_property):
    """Counts what was done in a test, for the summary."""

    def add(what, number=1):
        record_property(KEY, (what, number))

    return add


def pytest_terminal_summary(terminalreporter):
    """One line for each thing that was counted."""
    total = Counter()
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for key, value in report.user_properties if report.when == "call" else ():
            if key == KEY:
                total[value[0]] += value[1]
    if total:
        terminalreporter.section("documentation")
        for what, number in sorted(total.items()):
            terminalreporter.write_line(f"{number:5} {what}")
