# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Denavit-Hartenberg rows: comparison with the oracle, both conventions, and invalid input."""

import math

import numpy as np
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import dh_pose, difference_jacobian
from robots import CONFIG, URDF

from dls_ik.errors import RobotModelError
from dls_ik.model import DhRow, RobotModel, load_dh

WAM = CONFIG / "wam7_dh.yaml"
HALF = math.pi / 2
TABLE_IV = [  # a [m], alpha [rad], d [m], lower, upper [rad]
    (0.0, -HALF, 0.0, -2.6, 2.6),
    (0.0, HALF, 0.0, -2.0, 2.0),
    (0.045, -HALF, 0.55, -2.8, 2.8),
    (-0.045, HALF, 0.0, -0.9, 3.1),
    (0.0, -HALF, 0.3, -4.8, 1.3),
    (0.0, HALF, 0.0, -1.6, 1.6),
    (0.0, 0.0, 0.06, -2.2, 2.2),
]
lengths, angles = st.floats(-1.0, 1.0), st.floats(-math.pi, math.pi)


@st.composite
def dh_robots(draw):
    rows = draw(st.lists(st.tuples(lengths, angles, lengths, angles, st.booleans()), min_size=1))
    q = [draw(st.floats(-2.0, 2.0)) for _ in rows]
    return rows, np.array(q)


@settings(max_examples=60)
@given(dh_robots())
def test_fk_and_jacobian_of_random_rows_match_the_oracle(drawn):
    rows, q = drawn
    robot = RobotModel.from_dh(
        [
            DhRow(a, alpha, d, theta, "prismatic" if slides else "revolute", lower=-2, upper=2)
            for a, alpha, d, theta, slides in rows
        ]
    )
    np.testing.assert_allclose(robot.fk(q), dh_pose(rows, q), atol=1e-11)
    np.testing.assert_allclose(robot.jacobian(q), difference_jacobian(robot.fk, q), atol=1e-6)


@pytest.mark.parametrize(
    "robot", [RobotModel.from_dh(WAM), RobotModel.from_urdf(URDF / "wam7.urdf")]
)
def test_wam_matches_table_iv(robot):
    rows = [(a, alpha, d, 0.0, False) for a, alpha, d, _, _ in TABLE_IV]
    for q in robot.random(200, np.random.default_rng(1)):
        np.testing.assert_allclose(robot.fk(q), dh_pose(rows, q), atol=1e-12)
    np.testing.assert_array_equal(robot.lower, [row[3] for row in TABLE_IV])
    np.testing.assert_array_equal(robot.upper, [row[4] for row in TABLE_IV])
    np.testing.assert_array_equal(robot.velocity, 2.0)
    assert robot.joint_names == tuple(f"wam_j{i}" for i in range(1, 8))
    assert (robot.base, robot.tip, robot.name) == ("wam_base", "wam_tip", "wam7")


def test_puma_and_planar_2r_match_the_textbooks():
    rows = [
        (0.0, HALF, 0.672, 0.0, False),
        (0.4318, 0.0, 0.0, 0.0, False),
        (0.0203, -HALF, 0.15005, 0.0, False),
        (0.0, HALF, 0.4318, 0.0, False),
        (0.0, -HALF, 0.0, 0.0, False),
        (0.0, 0.0, 0.0, 0.0, False),
    ]
    puma = RobotModel.from_urdf(URDF / "puma560.urdf")
    for q in puma.random(100, np.random.default_rng(3)):
        np.testing.assert_allclose(puma.fk(q), dh_pose(rows, q), atol=1e-12)
    degrees = [[-160, -45, -225, -110, -100, -266], [160, 225, 45, 170, 100, 266]]
    np.testing.assert_allclose(np.degrees([puma.lower, puma.upper]), degrees, atol=1e-9)
    planar = RobotModel.from_urdf(URDF / "planar_2r.urdf")
    for a, b in planar.random(50, np.random.default_rng(4)):
        expected = [math.cos(a) + math.cos(a + b), math.sin(a) + math.sin(a + b), 0.0]
        np.testing.assert_allclose(planar.fk([a, b])[:3, 3], expected, atol=1e-12)


def test_missing_dh_names_get_defaults():
    rows = [DhRow(kind="continuous"), {"kind": "prismatic", "lower": 0, "upper": 1, "name": "lift"}]
    robot = RobotModel.from_dh(rows, name="r", base="floor", tip="hand")
    assert robot.joint_names == ("joint1", "lift")
    assert robot.link_names == ("floor", "joint1_link", "lift_link", "hand")
    assert (robot.name, robot.base, robot.tip) == ("r", "floor", "hand")
    assert list(robot.continuous) == [True, False]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"b": 1}], ["row 1", "'b'", "alpha", "velocity"]),
        ([{"kind": "fixed"}], ["row 1", "'fixed'", "revolute, continuous, prismatic"]),
        ([{"a": "long"}], ["row 1", "a must be a number", "'long'"]),
        ([{"a": None}], ["row 1", "a must be a number", "None"]),
        ([{"d": math.nan}], ["row 1", "d must be a number", "nan"]),
        ([{"alpha": math.inf}], ["row 1", "alpha must be a number", "inf"]),
        ([{"lower": math.nan}], ["row 1", "lower must be a number"]),
        ([{"a": 10**5000}], ["row 1", "a must be a number; got a very large int"]),
        ([{"a": 1, "name": 10**5000}], ["row 1", "name must be a name; got a very large int"]),
        ([{"a": 1, "kind": 10**5000}], ["row 1", "kind must be a name; got a very large int"]),
        ([{}], ["joint1", "finite limits", "continuous"]),
        ([{"kind": "prismatic"}], ["joint1", "finite limits"]),
        ([{"lower": 1, "upper": 0}], ["joint1", "below"]),
        ([{"lower": 0, "upper": 1, "velocity": -1}], ["joint1", "velocity"]),
        ([[0, 0, 0]], ["joint1", "finite limits"]),
        ([[]], ["row 1", "mapping", "list of 1 to 9 values"]),
        ([DhRow(a=math.nan)], ["row 1", "a must be a number"]),
        *((rows, ["sequence of mappings or lists; got"]) for rows in (np.array(2.0), 3, None)),
        ([], ["at least one row"]),
        ([DhRow(kind="continuous", name="x")] * 2, ["'x'"]),
        ("none.yaml", ["none.yaml"]),
    ],
)
def test_invalid_rows_are_refused(rows, words):
    with pytest.raises(RobotModelError) as caught:
        RobotModel.from_dh(rows)
    assert [word for word in words if word not in str(caught.value)] == []
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["mapping", "rows"]),
        ("rows: 3", ["mapping", "rows"]),
        ("- 1", ["mapping", "rows"]),
        ("rows: []\nlimits: 3", ["'limits'", "known: rows, name, base, tip"]),
        ("rows: [{a: 1, beta: 2}]", ["row 1", "'beta'"]),
        ("rows: [3]", ["row 1", "3"]),
        ("rows: [", ["cannot read"]),
        ("rows: !!python/object/apply:os.getcwd []", ["cannot read"]),
        ("[" * 20_000, ["nested deeper than 20"]),
        ("\0", ["cannot read"]),
        ("rows: [{a: 0x" + "f" * 5000 + "}]", ["a must be a number", "a very large int"]),
        ("rows: [{a: 1}]\nname: 0x" + "f" * 5000, ["name must be a name", "a very large int"]),
        ("rows: [{a: 1" + ":1" * 5000 + "}]", ["a must be a number", "a very large int"]),
        ("a: &a [x, x]\nrows:\n- *a", ["line 1", "anchors"]),
        ("rows: [" + "{}," * 501 + "]", ["more than 500 DH rows"]),
        ("x" * 2_000_000, ["larger"]),
    ],
)
def test_invalid_files_are_refused(text, words, tmp_path):
    path = tmp_path / "arm.yaml"
    path.write_text(text)
    with pytest.raises(RobotModelError) as caught:
        load_dh(path)
    assert [word for word in ("arm.yaml", *words) if word not in str(caught.value)] == []
    assert str(caught.value).isprintable()  # one line


def test_yaml_aliases_of_numbers_are_accepted_nested_ones_refused(tmp_path):
    path = tmp_path / "arm.yaml"
    lists = ["- &a0 [x, x, x, x, x, x, x, x, x]"]
    lists += [f"- &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    path.write_text("rows:\n" + "\n".join(lists) + "\n- {name: *a11}\n")
    with pytest.raises(RobotModelError, match="anchors") as refused:
        load_dh(path)
    assert len(str(refused.value)) < 400
    path.write_text("rows:\n- {lower: &l -1, upper: &u 1}\n- {lower: *l, upper: *u}\n")
    assert [joint.lower for joint in load_dh(path).joints[:2]] == [-1.0, -1.0]
    path.write_text(yaml.safe_dump({"rows": [{"a": 1.0, "kind": "continuous"}]}) + "# a: 1e-3")
    assert RobotModel.from_dh(str(path)).fk([0.0])[0, 3] == 1.0


@pytest.mark.parametrize("make", [list, tuple])
def test_rows_may_be_plain_lists(make):
    values = [[0.3, 0.7, 0.1, 0.2], [0.2, -0.5, 0.0, 0.1]]
    with pytest.raises(RobotModelError, match="finite limits"):
        RobotModel.from_dh(np.array(values))
    rows = [make([*row, "continuous"]) for row in values]
    known = [DhRow(*row, kind="continuous") for row in values]
    q = [0.4, -0.3]
    np.testing.assert_array_equal(RobotModel.from_dh(rows).fk(q), RobotModel.from_dh(known).fk(q))
    with pytest.raises(RobotModelError, match=r"row 1: .*mapping"):
        RobotModel.from_dh([make(range(10))])
