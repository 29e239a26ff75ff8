# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pairs of links that need no check, with the reasons of MoveIt's assistant."""

import numpy as np
import pytest

from dls_ik import PlanningScene, RobotModel
from dls_ik.model import share_file
from dls_ik.scene import pairs
from dls_ik.scene.pairs import default_pairs
from dls_ik.scene.shapes import Body, Box, Sphere, link_bodies


def body(name, *shapes):
    return Body(name, tuple((shape, np.eye(4)) for shape in shapes))


def arm(*origins):
    """Return links l0, l1, ... on joints about z, each at an offset from the previous one."""
    joints = "".join(
        f'<joint name="j{i}" type="revolute"><parent link="l{i}"/><child link="l{i + 1}"/>'
        f'<origin xyz="{xyz}"/><axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="1" '
        'velocity="1"/></joint>'
        for i, xyz in enumerate(origins)
    )
    links = "".join(f'<link name="l{i}"/>' for i in range(len(origins) + 1))
    return RobotModel.from_urdf(f'<robot name="r">{links}{joints}</robot>')


def test_adjacent_and_never_colliding_pairs_are_found():
    """Planar arm with links of 1 m; the last link is above the circle of the third."""
    robot, radii = arm("1 0 0", "1 0 0", "1 0 0", "0 0 0.5"), (0.1, 0.1, 0.3, 0.1, 0.6)
    shapes = {f"l{i}": body(f"l{i}", Sphere(radius)) for i, radius in enumerate(radii)}
    adjacent = {(f"l{i}", f"l{i + 1}"): "Adjacent" for i in range(4)}
    assert default_pairs(robot.tree, shapes) == {**adjacent, ("l2", "l4"): "Never"}


def test_always_colliding_and_default_colliding_pairs_are_found():
    robot = arm("0.1 0 0", "0.1 0 0", "0.9 0 0", "0.1 0 0")
    shapes = {f"l{i}": body(f"l{i}", Sphere(0.12)) for i in range(5)}
    found = default_pairs(robot.tree, shapes)
    assert found["l0", "l2"] == "Default"  # small overlap at 0
    # The second link is outside the box only if it points along x.
    shapes = {"l0": body("l0", Box([0.498, 1, 0.1])), "l1": body("l1", Sphere(0.01))}
    shapes["l2"] = body("l2", Sphere(0.02))
    assert default_pairs(arm("0 0 0", "0.27 0 0").tree, shapes)["l0", "l2"] == "Always"


def test_links_without_geometry_are_skipped():
    robot = arm("1 0 0", "1 0 0", "1 0 0")
    shapes = {name: body(name, Sphere(0.1)) for name in ("l0", "l3")}
    assert default_pairs(robot.tree, shapes) == {("l0", "l3"): "Adjacent"}


def test_exact_distances_decide_pairs_that_spheres_leave_open():
    """Two plates whose distance is too small for spheres: never in collision."""
    robot = arm("0 0 0.01", "0 0 0.0103", "0 0 1")
    plate = Box([0.5, 0.5, 0.02])
    shapes = {"l0": body("l0", plate), "l1": body("l1", Sphere(0.001)), "l2": body("l2", plate)}
    assert default_pairs(robot.tree, shapes)["l0", "l2"] == "Never"


def test_pairs_are_loaded_from_disk_and_recomputed_if_damaged(tmp_path, monkeypatch):
    folder = tmp_path / "kept"
    folder.mkdir()
    monkeypatch.setattr(pairs, "kept_folder", lambda: str(folder))
    tree = RobotModel.wam().tree
    bodies = link_bodies(tree.description)
    found = default_pairs(tree, bodies)
    (file,) = folder.iterdir()
    monkeypatch.setattr(pairs, "_find", lambda *_: pytest.fail("searched again"))
    assert default_pairs(tree, bodies) == found
    file.write_bytes(file.read_bytes()[:-3])
    with pytest.raises(pytest.fail.Exception):
        default_pairs(tree, bodies)


def test_pairs_between_two_arms_are_checked():
    robot = RobotModel.from_urdf(share_file("urdf", "two_wams.urdf"), tip="left_wam_link7")
    scene = PlanningScene(robot)
    between = {pair for pair in scene.snapshot.names if pair[0][0] != pair[1][0]}
    assert ("left_wam_link7", "right_wam_link7") in between


def test_without_coal_pairs_that_spheres_leave_open_are_checked(monkeypatch):
    monkeypatch.setattr("dls_ik.scene.exact.library", lambda: pytest.fail("the library is used"))
    robot = arm("0 0 0.01", "0 0 0.0103", "0 0 1")
    plate = Box([0.5, 0.5, 0.02])
    shapes = {"l0": body("l0", plate), "l1": body("l1", Sphere(0.001)), "l2": body("l2", plate)}
    found = default_pairs(robot.tree, shapes, exact=False)
    assert ("l0", "l2") not in found, "it is open"
    assert found == {("l0", "l1"): "Adjacent", ("l1", "l2"): "Adjacent"}
