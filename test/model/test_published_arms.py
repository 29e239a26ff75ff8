# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The arms of ``test/urdf`` and two WAMs: URDFs compared with the published tables."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from arms import PUBLISHED, published
from oracle import urdf_pose
from published_arms import ARMS
from robots import TEST_URDF, URDF

from dls_ik import RobotModel

KINDS = {
    "gen3": "crcrcrc",
    "fetch": "prrcrcrc",
    "stanford": "rrprrr",
    "cobra600": "rrpr",
    "column_lwr": "prrrrrrrr",
}
STANDARD = [  # tables that `from_dh` takes: rows of joints alone
    name for name, arm in ARMS.items() if not arm.modified and len(arm.joints) == len(arm.rows)
]

WAM = RobotModel.wam()
SIDES = pytest.mark.parametrize("side", ["left", "right"])


def draws(robot, count):
    return robot.random(count, np.random.default_rng(1))


def test_every_table_has_a_urdf_file():
    assert sorted(PUBLISHED) == sorted(path.stem for path in TEST_URDF.glob("*.urdf"))


@pytest.mark.parametrize("name", PUBLISHED)
def test_urdf_files_match_the_tables(name):
    """Compare poses, limits and types of the DH rows with an independent URDF reader."""
    robot, joints = published(name), ARMS[name].joints
    text = (TEST_URDF / f"{name}.urdf").read_text()
    for i, q in enumerate(draws(robot, 50)):
        np.testing.assert_allclose(robot.fk(q), ARMS[name].pose(q), atol=1e-13)
        if i < 10:
            values = dict(zip(robot.joint_names, q, strict=True))
            expected = urdf_pose(text, robot.base, robot.tip, values)
            np.testing.assert_allclose(robot.fk(q), expected, atol=1e-13)
    np.testing.assert_allclose(robot.lower, [row.lower for row in joints], atol=1e-15)
    np.testing.assert_allclose(robot.upper, [row.upper for row in joints], atol=1e-15)
    assert "".join(row.kind[0] for row in joints) == KINDS.get(name, "r" * robot.n)
    assert robot.continuous.tolist() == [row.kind == "continuous" for row in joints]
    assert robot.chain.prismatic.tolist() == [row.kind == "prismatic" for row in joints]
    if name in STANDARD:
        rows = RobotModel.from_dh([row._asdict() for row in ARMS[name].rows])
        q = draws(rows, 20)
        np.testing.assert_allclose(rows.fk(q), robot.fk(q), atol=1e-13)


@pytest.mark.parametrize(
    ("name", "q", "position"),
    [
        ("ur5e", [0.0] * 6, [-0.8172, -0.2329, 0.0628]),
        ("gen3", [0.0] * 7, [0.0, -0.0246, 1.1873]),
        ("iiwa14", [0.0] * 7, [0.0, 0.0, 1.306]),
        ("fr3", [0.0] * 7, [0.088, 0.0, 0.926]),
        ("tx60", [0.0] * 6, [0.0, 0.02, 1.045]),
        ("irb140", [0.0] * 6, [0.515, 0.0, 0.712]),
    ],
)
def test_tip_positions_match_the_manufacturers_drawings(name, q, position):
    """The tip position agrees with the manufacturers' drawings."""
    np.testing.assert_allclose(published(name).fk(q)[:3, 3], position, atol=1e-9)


def arm(side, base):
    return RobotModel.from_urdf(URDF / "two_wams.urdf", base, f"{side}_wam_tip")


@SIDES
def test_each_arm_moves_as_a_wam_in_its_base_frame(side):
    robot = arm(side, f"{side}_wam_base")
    assert robot.joint_names == tuple(f"{side}_{name}" for name in WAM.joint_names)
    for name in ("lower", "upper", "velocity"):
        assert (getattr(robot, name) == getattr(WAM, name)).all()
    q = WAM.random(100, np.random.default_rng(0))
    np.testing.assert_allclose(robot.fk(q), WAM.fk(q), atol=1e-12)


def test_two_wams_stand_next_to_each_other():
    q = WAM.random(rng=np.random.default_rng(1))
    left, right = (arm(side, "base").fk(q) for side in ("left", "right"))
    expected = np.zeros((4, 4))
    expected[1, 3] = 0.8
    np.testing.assert_allclose(left - right, expected, atol=1e-12)
    assert arm("left", "base").fk(q)[2, 3] - WAM.fk(q)[2, 3] == pytest.approx(0.346)  # its pedestal


@SIDES
def test_links_and_joints_equal_those_of_the_wam(side):
    one, two = (ET.parse(URDF / f"{name}.urdf").getroot() for name in ("wam7", "two_wams"))
    texts = {element.get("name"): canonical(element) for element in two}
    for element in one:
        if element.tag != "material":
            expected = canonical(element).replace('"wam_', f'"{side}_wam_')
            assert texts[f"{side}_{element.get('name')}"] == expected
        else:
            assert texts[element.get("name")] == canonical(element)


def canonical(element):
    return ET.canonicalize(ET.tostring(element, "unicode"), strip_text=True)
