# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The targets of the campaigns on a few inputs each, the same ones every time.

A campaign tries millions of others: python -m fuzz. What it found has tests where the code is.
"""

import os

import pytest
from few_inputs import assert_no_defect

from fuzz.guard import defect_of
from fuzz.source import Source
from fuzz.targets import SHARES

# Inputs of each, by what they cost; targets that need rclpy are in test/ros/test_ros_ik.py.
INPUTS = {
    "xml": 200, "urdf": 30, "dh": 80, "options": 150, "poses": 30, "values": 200, "tasks": 150,
    "controller": 40, "commands": 12, "meshes": 100,
    "fits": 40, "geometry": 60, "srdf": 100, "scenes": 150,
}  # fmt: skip
ROS = {"parameters", "requests", "stream"}


@pytest.fixture
def _same_folder():
    """Where a target changes to a folder of its own, go back."""
    before = os.getcwd()
    yield
    os.chdir(before)


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.usefixtures("_same_folder")
def test_fuzz_target_finds_no_defect_in_a_few_inputs(name):
    assert_no_defect(name, INPUTS[name])


def test_every_target_is_here_or_in_the_ros_tests():
    assert {*INPUTS, *ROS} == set(SHARES)


def test_a_defect_is_named_by_its_place():
    def run(source):
        raise ZeroDivisionError(source.below(8))

    defect = defect_of(run, b"\x03")
    assert defect.name.startswith("ZeroDivisionError-test_targets-")
    assert defect.words.endswith("ZeroDivisionError: 3\n")
    assert defect_of(lambda source: None, b"\x03") is None


def test_exhausted_source_returns_zeros():
    source = Source(b"\x05")
    assert (source.below(8), source.has_more) == (5, False)
    assert (source.below(8), source.whole(), source.number(), source.word()) == (0, -8, 0.0, "")
