# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""URDF text of robots for tests, and the folders of the package."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
URDF = ROOT / "urdf"
TEST_URDF = ROOT / "test" / "urdf"
CONFIG = ROOT / "config"
LIMIT = '<limit lower="-2" upper="2" effort="1" velocity="1.5"/>'


def joint(name, kind="revolute", parent="a", child="b", detail=LIMIT, axis="0 0 1"):
    """Return the URDF of a joint; ``detail`` has its origin, limit or mimic."""
    return (
        f'<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
        f'<axis xyz="{axis}"/>{detail}</joint>'
    )


def urdf(links, *joints):
    """Return the URDF of a robot with links ``"a b c"`` and joints."""
    parts = [f'<link name="{link}"/>' for link in links.split()]
    return "\n".join(['<robot name="test">', *parts, *joints, "</robot>"])
