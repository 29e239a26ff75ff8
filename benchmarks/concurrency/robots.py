"""Robots to replace each other: other joints, other limits, the same names, and broken ones."""

import xml.etree.ElementTree as ET
from functools import cache
from typing import NamedTuple

import numpy as np

from dls_ik import RobotModel
from dls_ik.model.files import shipped_urdf

VELOCITY = 1.5  # [rad/s] of the snake
SNAKE = 9  # joints


class Described(NamedTuple):
    """A description of a robot, and what is known of it."""

    text: str  # with NAME for its name
    model: RobotModel | None  # None: no robot can be made of it

    def named(self, name: str) -> str:
        """The description of a robot of that name."""
        return self.text.replace("NAME", name)


@cache
def good_robots() -> tuple[Described, ...]:
    """Robots of 2 to 9 joints; the first two have the same names, two more share six of them."""
    trees = [_shipped("wam"), _narrow(), _shipped("puma560"), _with_tool(), _shipped("planar_2r")]
    texts = [*(ET.tostring(tree, encoding="unicode") for tree in trees), _snake()]
    return tuple(Described(text, RobotModel.from_urdf(text)) for text in texts)


@cache
def broken_robots() -> tuple[Described, ...]:
    """Descriptions that the node must refuse."""
    whole = good_robots()[0].text
    texts = [
        "",
        "a robot NAME",
        whole[: len(whole) // 2],
        '<robot name="NAME"><link name="alone"/></robot>',
        whole.replace('child link="wam_link3"', 'child link="wam_base"'),
        whole.replace('lower="-2.6"', 'lower="nan"'),
    ]
    return tuple(Described(text, None) for text in texts)


def _shipped(name: str) -> ET.Element:
    root = ET.parse(shipped_urdf(name)).getroot()
    root.set("name", "NAME")
    return root


def _narrow() -> ET.Element:
    """A WAM with other limits and longer links."""
    root = _shipped("wam")
    for limit in root.iter("limit"):
        for end in ("lower", "upper"):
            limit.set(end, str(0.8 * float(limit.attrib[end])))
        limit.set("velocity", "1.2")
    for joint in root.iter("joint"):
        origin = joint.find("origin")
        if origin is not None:
            xyz = 1.1 * np.array(origin.get("xyz", "0 0 0").split(), float)
            origin.set("xyz", " ".join(map(str, xyz)))
    return root


def _with_tool() -> ET.Element:
    """A Puma whose tool turns."""
    root = _shipped("puma560")
    more = (
        '<r><link name="puma_tool"/><joint name="tool_joint" type="revolute">'
        '<parent link="puma_tip"/><child link="puma_tool"/><origin xyz="0.05 0 0.1"/>'
        '<axis xyz="0 1 0"/><limit lower="-2" upper="2" effort="1" velocity="2"/></joint></r>'
    )
    root.extend(ET.fromstring(more))
    return root


def _snake() -> str:
    parts = [f'<link name="s{i}"/>' for i in range(SNAKE + 1)]
    for i in range(SNAKE):
        axis = "0 1 0" if i % 2 else "0 0 1"
        parts.append(
            f'<joint name="snake_{i}" type="revolute"><parent link="s{i}"/>'
            f'<child link="s{i + 1}"/><origin xyz="0 0 0.12"/><axis xyz="{axis}"/>'
            f'<limit lower="-1.7" upper="1.7" effort="1" velocity="{VELOCITY}"/></joint>'
        )
    return f'<robot name="NAME">{"".join(parts)}</robot>'
