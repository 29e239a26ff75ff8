"""The description of two WAMs: each of them is the WAM, beside the other."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
from robots import URDF

from dls_ik import RobotModel

WAM = RobotModel.wam()
SIDES = pytest.mark.parametrize("side", ["left", "right"])


def arm(side, base):
    return RobotModel.from_urdf(URDF / "two_wams.urdf", base, f"{side}_wam_tip")


@SIDES
def test_each_arm_moves_as_the_wam_in_its_own_base(side):
    robot = arm(side, f"{side}_wam_base")
    assert robot.joint_names == tuple(f"{side}_{name}" for name in WAM.joint_names)
    for name in ("lower", "upper", "velocity"):
        assert (getattr(robot, name) == getattr(WAM, name)).all()
    q = WAM.random(np.random.default_rng(0), 100)
    np.testing.assert_allclose(robot.fk(q), WAM.fk(q), atol=1e-12)


def test_they_stand_beside_each_other_on_the_floor():
    q = WAM.random(np.random.default_rng(1))
    left, right = (arm(side, "base").fk(q) for side in ("left", "right"))
    expected = np.zeros((4, 4))
    expected[1, 3] = 0.8
    np.testing.assert_allclose(left - right, expected, atol=1e-12)
    assert arm("left", "base").fk(q)[2, 3] - WAM.fk(q)[2, 3] == pytest.approx(0.346)  # its pedestal


@SIDES
def test_links_and_joints_are_those_of_the_wam_in_all_else(side):
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
