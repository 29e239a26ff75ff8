"""Tests that start nodes run one after the other, whatever runs beside them (pytest-xdist)."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("ros"):
            item.add_marker(pytest.mark.xdist_group("ros"))
