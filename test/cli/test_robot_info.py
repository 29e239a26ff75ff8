# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik info``: facts compared with the library, as a document and in a narrow terminal."""

import numpy as np
import pytest
from cli_runner import document, refusal, run
from robots import ROOT, TEST_URDF

from dls_ik import RobotModel
from dls_ik.model.files import share_file

MIMIC = """<robot name="pair">
  <link name="a"/><link name="b"/><link name="c"/>
  <joint name="j1" type="revolute"><parent link="a"/><child link="b"/>
    <limit lower="-1" upper="1" velocity="2" effort="0"/></joint>
  <joint name="j2" type="prismatic"><parent link="b"/><child link="c"/><axis xyz="0 0 1"/>
    <limit lower="0" upper="0.5" effort="0" velocity="0"/><mimic joint="j1" multiplier="0.5"
    offset="0.25"/></joint>
</robot>"""


def test_joints_and_limits_are_those_of_the_robot():
    facts, robot = document("info", "wam"), RobotModel.wam()
    assert [joint["name"] for joint in facts["joints"]] == list(robot.joint_names)
    for key in ("lower", "upper", "velocity"):
        assert [joint[key] for joint in facts["joints"]] == getattr(robot, key).tolist()
    (found,) = facts["chains"]
    assert (found["base"], found["tip"]) == (robot.base, robot.tip)
    assert (found["rank"], found["redundancy"]) == (6, 1)


def test_singular_configurations_are_singular():
    (found,) = document("info", "puma560")["chains"]
    robot = RobotModel.from_name("puma560")
    assert len(found["singularities"]["families"]) >= 3
    for family in found["singularities"]["families"]:
        q = [family["example"][name] for name in robot.joint_names]
        assert np.linalg.matrix_rank(robot.jacobian(q), tol=1e-6) == family["rank"] == 5


@pytest.mark.parametrize("columns", [60, None])
def test_info_text_shows_the_facts_and_fits_the_width(columns):
    shown = run("info", "wam", columns=columns).stdout
    assert all(len(line) <= (columns or 110) for line in shown.splitlines())
    assert all(word in shown for word in ("wam_j7", "-2.6000", "wam_tip", "redundant"))
    assert "wam_j4 = 0.231" in shown
    assert "[rad, rad/s; prismatic: m, m/s]" in shown
    assert not any(line.endswith(" ") for line in shown.splitlines())


def test_an_arm_in_a_plane_is_singular_where_it_is_stretched():
    (found,) = document("info", "planar_2r")["chains"]
    assert found["conditioning"]["task"] == found["singularities"]["task"] == "position"
    shown = " ".join(run("info", "planar_2r").stdout.split())
    assert "joint2 = 0.000" in shown.replace("-3.142 or ", "").replace("3.142 or ", "")
    assert "none found" not in shown


def test_singular_positions_are_abbreviated_in_the_text():
    path = TEST_URDF / "xarm7.urdf"
    shown = run("info", path).stdout
    assert max(map(len, shown.splitlines())) <= 110
    assert shown.count("; or") <= 6


def test_several_tips_are_described_one_by_one():
    facts = document("info", share_file("urdf", "y_shape.urdf"))
    assert [found["tip"] for found in facts["chains"]] == facts["tips"] == ["E0", "E1"]
    one = document("info", share_file("urdf", "y_shape.urdf"), "--tip", "E1", "--quick")
    assert [found["tip"] for found in one["chains"]] == ["E1"]
    gripped = document("info", ROOT / "examples/robots/desktop_arm.urdf", "--quick")
    assert gripped["tips"] == ["gripper_frame_link", "moving_jaw_link"]  # the default comes first


def test_mimic_joints_are_shown_with_their_master(tmp_path):
    path = tmp_path / "pair.urdf"
    path.write_text(MIMIC)
    facts = document("info", path)
    assert facts["joints"][1]["mimic"] == {"joint": "j1", "multiplier": 0.5, "offset": 0.25}
    assert facts["joints"][1]["velocity"] is None  # infinite, which JSON cannot express
    assert "j2 mimics: 0.5 x j1 +0.25" in run("info", path, "--quick").stdout


def test_mimic_joint_values_are_computed_and_cannot_be_given(tmp_path):
    path = tmp_path / "pair.urdf"
    path.write_text(MIMIC)
    assert "j2 mimics j1" in refusal("fk", path, "--q", "j2=0.1")
    (pose,) = document("fk", path, "--q", "j1=0.5")["poses"].values()
    along = 0.5 * 0.5 + 0.25  # distance along the rotated z axis
    expected = [0.0, -along * np.sin(0.5), along * np.cos(0.5)]
    np.testing.assert_allclose(pose["xyz"], expected, atol=1e-12)


def test_srdf_option_adds_collision_facts():
    pytest.importorskip("coal")
    facts = document("info", "wam", "--quick", "--srdf", "auto")["chains"][0]["collisions"]
    asked = document("collisions", "wam")
    assert facts == {key: asked[key] for key in facts}
    shown = run("info", "wam", "--quick", "--srdf", "auto").stdout
    assert f"{len(facts['checked'])} pairs of {len(facts['links'])} links" in shown
    assert "collisions" not in document("info", "wam", "--quick")["chains"][0]
