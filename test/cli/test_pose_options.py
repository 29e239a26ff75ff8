# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses on the command line: equivalent forms, and invalid poses."""

import click
import numpy as np
import pytest
from cli_runner import document
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from robots import TEST_URDF

from dls_ik.cli.main import main
from dls_ik.cli.options import parse_numbers
from dls_ik.cli.pose import given_pose, pose_facts, pose_of
from dls_ik.model.rotations import rotation_from_rpy

NUMBERS = st.floats(-3.0, 3.0)
SOLVE = ("solve", "wam")


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS), st.tuples(NUMBERS, NUMBERS, NUMBERS))
def test_all_forms_of_a_pose_are_the_same_pose(xyz, rpy):
    T = given_pose(xyz, rpy, None, None)
    facts = pose_facts(T)
    numbers = [x for row in facts["matrix"] for x in row]
    words = " ".join(map(repr, numbers))
    for again in (
        given_pose(facts["xyz"], facts["rpy"], None, None),
        given_pose(facts["xyz"], None, facts["quat"], None),
        given_pose(None, None, None, parse_numbers(words, 12, 16)),
        given_pose(None, None, None, tuple(numbers[:12])),
    ):
        np.testing.assert_allclose(again, T, atol=1e-12)


def test_rpy_and_quaternion_give_the_expected_rotation():
    rpy = (0.3, -0.4, 2.5)
    T = pose_of((1.0, 2.0, 3.0), rpy, None)
    np.testing.assert_allclose(T[:3, 3], [1.0, 2.0, 3.0])
    np.testing.assert_allclose(T[:3, :3], rotation_from_rpy(*rpy))
    third = pose_of((0.0, 0.0, 0.0), None, (1.0, 1.0, 1.0, 1.0))  # rotation x to y to z to x
    np.testing.assert_allclose(third[:3, :3], np.eye(3)[[2, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(pose_of((0.0, 0.0, 0.0), None, (0.0, 0.0, 0.0, 2.0)), np.eye(4))


def test_no_option_is_no_pose():
    assert given_pose(None, None, None, None) is None


def test_deg_and_mm_convert_position_rpy_and_matrix():
    T = given_pose((0.4, 0.2, 0.5), (0.1, np.pi, -0.3), None, None)
    rpy = np.degrees([0.1, np.pi, -0.3])
    np.testing.assert_allclose(given_pose((400, 200, 500), rpy, None, None, True, True), T)
    matrix = T.copy()
    matrix[:3, 3] *= 1e3
    np.testing.assert_allclose(given_pose(None, None, None, matrix.ravel(), mm=True), T)


ASKED = ("--xyz", 0.4, 0.2, 0.5, "--rpy", 0, 3, 0)


def test_deg_converts_revolute_but_not_prismatic_joint_values():
    radians = document(*SOLVE, *ASKED, "--seed", "0,0.6,0,1.5,0,0,0")
    degrees = document(
        *SOLVE, *ASKED[:5], 0, np.degrees(3), 0, "--deg",
        "--seed", f"0,{np.degrees(0.6)},0,{np.degrees(1.5)},0,0,0",
    )  # fmt: skip
    np.testing.assert_allclose(degrees["target"]["matrix"], radians["target"]["matrix"], atol=1e-9)
    assert degrees["seed"] == pytest.approx(radians["seed"])
    found = document("fk", TEST_URDF / "stanford.urdf", "--q", "joint2=90,joint3=0.5", "--deg")[
        "joints"
    ]
    assert found["joint2"] == pytest.approx(np.pi / 2), "one that turns"
    assert found["joint3"] == 0.5, "one that slides"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--xyz", 0.4, 0.2, 0.5, "--rpy", 0, 180, 0], "--rpy has 180 rad, which is 28.6 turns"),
        (["--xyz", 400, 200, 500], "is 671 m away, 701 times the length of wam7"),
        (["--matrix", "1 0 0 400 0 1 0 200 0 0 1 500"], "use --mm for positions in millimetres"),
        ([*ASKED, "--seed", "wam_j2=90"], "--seed has 90 rad"),
    ],
)
def test_implausible_units_give_a_warning(arguments, said):
    result = CliRunner().invoke(main, [str(word) for word in (*SOLVE, *arguments)])
    assert said in result.stderr.splitlines()[0]


def test_plausible_units_give_no_warning():
    quiet = [*ASKED[:5], 0, 6.28, 0, "--seed", "0,0,0,6.28,0,0,0"]
    for arguments in (ASKED, quiet, ["--xyz", 5, 5, 5]):
        result = CliRunner().invoke(main, [str(word) for word in (*SOLVE, *arguments)])
        assert "with --" not in result.stderr


@pytest.mark.parametrize("words", ["1,2,3", "1 2 3", "[1, 2, 3]", "1;2;3", " 1 , 2 , 3 "])
def test_parse_numbers_accepts_all_separators_and_checks_the_count(words):
    assert parse_numbers(words, 3) == (1.0, 2.0, 3.0)
    with pytest.raises(click.BadParameter, match="expected 4 or 5 numbers; got 3"):
        parse_numbers(words, 4, 5)
