# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the settings of a node's process before rclpy starts."""

import os
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from robots import ROOT

from dls_ik.ros.process import PROFILE_FILES, PROFILE_VARIABLES, fastdds_profile

SHIPPED = ROOT / "config" / "fastdds_profile.xml"
VARIABLE = PROFILE_VARIABLES[0]
NAMESPACE = "{http://www.eprosima.com}"


@pytest.fixture(autouse=True)
def without_profile(monkeypatch, tmp_path):
    """No profile is given, by variables or in the working directory."""
    for name in PROFILE_VARIABLES:
        monkeypatch.setenv(name, "")  # monkeypatch restores it in any case
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)


def profile_in_use():
    before = os.environ.get(VARIABLE)
    with fastdds_profile():
        found = os.environ.get(VARIABLE)
    assert os.environ.get(VARIABLE) == before
    return found


def test_the_shipped_profile_is_used_and_disables_type_objects():
    file = profile_in_use()
    assert file is not None
    assert Path(file).read_bytes() == SHIPPED.read_bytes()
    (participant,) = ET.parse(file).iter(f"{NAMESPACE}participant")
    assert participant.get("is_default_profile") == "true"
    (given,) = participant.iter(f"{NAMESPACE}property")
    assert [each.text for each in given] == ["fastdds.type_propagation", "disabled"]


@pytest.mark.parametrize("value", ["", "/home/user/own.xml"])
@pytest.mark.parametrize("name", PROFILE_VARIABLES)
def test_profile_variables_of_the_user_are_not_replaced(name, value, monkeypatch):
    monkeypatch.setenv(name, value)
    expected = value if name == VARIABLE else None
    assert profile_in_use() == expected


@pytest.mark.parametrize("name", PROFILE_FILES)
def test_a_file_in_the_working_directory_stays_in_use(name, tmp_path):
    (tmp_path / name).write_text("<dds/>")
    assert profile_in_use() is None
