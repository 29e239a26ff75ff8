# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Shapes of a robot, poses of its links, and files that a foreign URDF may read."""

import base64
import os

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from random_robots import random_robots
from robots import URDF, joint

pytest.importorskip("yourdfpy")

from dls_ik.model.robot import RobotModel
from dls_ik.scene.meshes import read_mesh_file
from dls_ik.viewer.scene import Figure, node_names
from dls_ik.viewer.shapes import (
    LINK_GREY,
    find_file,
    link_poses,
    load_shapes,
    moving_links,
    pose_from_wxyz,
    robot_shapes,
    skeleton,
    wxyz_from_pose,
)

WAM = RobotModel.wam()
MESH = '<visual><geometry><mesh filename="{}" {}/></geometry></visual>'
BOX = '<visual><geometry><box size="1 2 3"/></geometry>{}</visual>'
SEGMENT = '<origin xyz="0.05 0 0.1"/><limit lower="-2" upper="2" effort="1" velocity="1"/>'
AXES = ("0 0 1", "0 1 0", "1 0 0")
MATERIAL = "mtllib {}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n"


def robot_text(*visuals):
    """Return a URDF with one link for each visual, in a chain."""
    links = "".join(f'<link name="l{i}">{v}</link>' for i, v in enumerate(visuals))
    rows = "".join(
        joint(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", SEGMENT, AXES[i % 3])
        for i in range(len(visuals) - 1)
    )
    return f'<robot name="r">{links}{rows}</robot>'


def mesh(address, look=""):
    return robot_text(MESH.format(address, look), "")


def robot_file(folder, text):
    file = folder / "robot.urdf"
    file.write_text(text)
    return file


# Poses of links


@settings(max_examples=30)
@given(random_robots())
def test_link_poses_equal_the_robot_kinematics(drawn):
    if not any(drawn.moves(i) for i in range(len(drawn.links))):
        return
    tip = next(link for i, link in enumerate(drawn.links) if drawn.moves(i))
    robot = RobotModel.from_urdf(drawn.text, tip=tip)
    q = robot.clip(np.full(robot.n, 0.3))
    for link, T in link_poses(robot, q).items():
        np.testing.assert_allclose(T, robot.link_pose(link, q), atol=1e-12)


def test_moving_links_are_those_displaced_by_joint_motion():
    still, moving = link_poses(WAM, np.zeros(7)), link_poses(WAM, np.full(7, 0.1))
    expected = {link for link in still if np.abs(still[link] - moving[link]).max() > 1e-9}
    assert moving_links(WAM) == expected
    assert "wam_base" not in expected
    # Includes the conversion back from quaternions
    for T in WAM.fk(WAM.random(20, np.random.default_rng(0))):
        np.testing.assert_allclose(pose_from_wxyz(wxyz_from_pose(T), T[:3, 3]), T, atol=1e-12)


# Visuals


@pytest.mark.parametrize("name", ["wam7", "puma560", "planar_2r"])
def test_all_moving_links_of_shipped_robots_have_shapes(name):
    shapes = load_shapes(URDF / f"{name}.urdf")
    assert not shapes.missing
    robot = RobotModel.from_urdf(URDF / f"{name}.urdf")
    assert {piece.link for piece in shapes.pieces} >= moving_links(robot) - {robot.tip}
    assert all(piece.colour is not None for piece in shapes.pieces)


def test_a_primitive_has_its_size_place_and_colour():
    red = '<origin xyz="1 0 0"/><material name="m"><color rgba="1 0 0.5 1"/></material>'
    box, plain = load_shapes(robot_text(BOX.format(red), BOX.format(""))).pieces
    np.testing.assert_allclose(box.mesh.bounds, [[0.5, -1, -1.5], [1.5, 1, 1.5]])
    assert box.colour == (255, 0, 128)
    assert plain.colour == LINK_GREY


def test_missing_and_invalid_meshes_are_reported_and_others_drawn(tmp_path):
    trimesh.creation.box().export(tmp_path / "good.stl")
    (tmp_path / "broken.stl").write_text("no mesh")
    (tmp_path / "bomb.zip").write_bytes(b"PK")
    names = ["good.stl", "gone.stl", "broken.stl", "bomb.zip", "package://nobody/x.dae", "gone.stl"]
    text = robot_text(*(MESH.format(name, 'scale="1 2 3"') for name in names))
    shapes = load_shapes(robot_file(tmp_path, text))
    assert [piece.link for piece in shapes.pieces] == ["l0"]
    np.testing.assert_allclose(shapes.pieces[0].mesh.extents, [1, 2, 3])
    assert shapes.complaint == (
        "4 meshes missing or not readable: gone.stl, broken.stl, bomb.zip and 1 more"
    )


def test_link_without_its_mesh_shows_collision_shapes_or_bones(tmp_path):
    red = MESH.format("gone.stl", "")
    box = '<collision><geometry><box size="1 1 1"/></geometry></collision>'
    broken = '<collision><geometry><mesh filename="gone.stl"/></geometry></collision>'
    text = robot_text(BOX.format(""), red + box, red + broken, red, "")
    file = robot_file(tmp_path, text)
    robot = RobotModel.from_urdf(file)
    shapes = robot_shapes(robot, file)
    drawn = {link: [p for p in shapes.pieces if p.link == link] for link in robot.link_names}
    np.testing.assert_allclose(drawn["l0"][0].mesh.extents, [1, 2, 3])
    np.testing.assert_allclose(drawn["l1"][0].mesh.extents, [1, 1, 1])
    for link in ("l2", "l3"):
        expected = [piece.mesh.extents for piece in skeleton(robot).of({link}).pieces]
        np.testing.assert_allclose([piece.mesh.extents for piece in drawn[link]], expected)
    assert drawn["l4"] == []  # has no shape in the URDF
    assert shapes.complaint == (
        "1 mesh missing or not readable: gone.stl; "
        "drawn instead: collision shapes and bones between joints"
    )
    assert robot_shapes(robot, None).pieces


def test_shape_without_a_finite_size_is_reported():
    for shape in (
        '<box size="nan 1 1"/>',
        '<box size="1e308 1e308 1e308"/>',
        '<box size="x"/>',
        '<sphere radius="inf"/>',
        '<cylinder radius="1" length="nan"/>',
    ):
        shapes = load_shapes(robot_text(f"<visual><geometry>{shape}</geometry></visual>"))
        assert (
            "missing or not readable" in shapes.complaint
            or np.isfinite(shapes.pieces[0].mesh.vertices).all()
        )


def test_the_number_of_shapes_is_limited(monkeypatch):
    monkeypatch.setattr("dls_ik.viewer.shapes.MAX_SHAPES", 50)
    box = '<visual><geometry><box size="1 1 1"/></geometry></visual>' * 51
    shapes = load_shapes(robot_text(box, ""))
    assert len(shapes.pieces) == 50
    assert "beyond the first 50" in shapes.complaint


@pytest.mark.parametrize("where", ["ament", "ros", "ros itself", "above", "beside"])
def test_package_urls_resolve_to_mesh_files(tmp_path, monkeypatch, where):
    folders = {
        "ament": tmp_path / "install" / "share" / "arm",
        "ros": tmp_path / "src" / "arm",
        "ros itself": tmp_path / "src" / "arm",
        "above": tmp_path / "arm",
        "beside": tmp_path / "arm" / "urdf",
    }
    file = folders[where] / "meshes" / "a.stl"
    file.parent.mkdir(parents=True)
    file.touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    ros = {"ros": "src", "ros itself": "src/arm"}.get(where, "nowhere")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / ros))
    assert find_file("package://arm/meshes/a.stl", tmp_path / "arm" / "urdf") == file
    assert find_file("package://arm/meshes/b.stl", tmp_path / "arm" / "urdf") is None


# Descriptions received over the network


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Install a mesh in a package, and one next to the package; return the folder of packages."""
    share = tmp_path / "prefix" / "share"
    (share / "arm" / "meshes").mkdir(parents=True)
    for path in (share / "arm" / "meshes" / "a.stl", tmp_path / "private.stl"):
        trimesh.creation.box(extents=(1, 2, 3)).export(path)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    return share


@pytest.mark.parametrize("address", ["package://arm/meshes/a.stl", "file://{}/arm/meshes/a.stl"])
def test_a_foreign_urdf_shows_meshes_of_packages(installed, address):
    shapes = load_shapes(mesh(address.format(installed)), is_foreign=True)
    assert not shapes.missing
    np.testing.assert_allclose(shapes.pieces[0].mesh.extents, [1, 2, 3])


@pytest.mark.parametrize(
    "address",
    [
        "file://{}/../../private.stl",
        "file://{}/arm/../../../private.stl",
        "package://arm/../../../private.stl",
        "package://../../private.stl",
        "package://arm//{}/../../private.stl",
        "{}/../../private.stl",
        "private.stl",
        "http://127.0.0.1:9/a.stl",
        "\x01" + "a" * 100_000,
    ],
)
def test_foreign_urdf_cannot_read_other_files(installed, address, monkeypatch):
    monkeypatch.chdir(installed.parents[1])
    name = address.format(installed)
    assert find_file(name, None) is None
    if name.isprintable():
        shapes = load_shapes(mesh(name), is_foreign=True)
        assert shapes.missing == (name,)
        assert not shapes.pieces


def test_declared_encoding_of_urdf_text_is_ignored():
    hidden = "--><!DOCTYPE robot [<!ENTITY e 'x'>]><!--".encode("utf-16-be")
    comment = f"<!-- +{base64.b64encode(hidden).decode().rstrip('=')}- -->"
    text = '<?xml version="1.0" encoding="UTF-7"?>' + comment + mesh("a.stl")
    RobotModel.from_urdf(text)  # the parser takes it as a comment
    assert load_shapes(text, is_foreign=True).missing == ("a.stl",)


def test_external_entities_of_collada_files_are_not_read(tmp_path):
    pytest.importorskip("collada")
    (tmp_path / "secret").write_text("0 0 0 1 0 0 0 1 0")
    (tmp_path / "a.dae").write_text(
        f'<!DOCTYPE COLLADA [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset/>'
        '<library_geometries><geometry id="g"><mesh><source id="s"><float_array id="f" count="9">'
        "&e;</float_array></source></mesh></geometry></library_geometries></COLLADA>"
    )
    assert load_shapes(robot_file(tmp_path, mesh("a.dae"))).missing == ("a.dae",)


def test_a_robot_without_a_name_is_drawn(tmp_path):
    for text in ("<robot>", "<robot version='1.0'>"):
        file = robot_file(tmp_path, robot_text(BOX.format("")).replace('<robot name="r">', text))
        assert len(load_shapes(file).pieces) == 1


def test_collada_is_drawn_at_the_size_of_its_collision_mesh(tmp_path):
    pytest.importorskip("collada")
    exported = trimesh.exchange.dae.export_collada(trimesh.creation.box((10.0, 20.0, 30.0)))
    in_centimetres = exported.replace(b"<asset>", b'<asset><unit meter="0.01"/>', 1)
    assert in_centimetres != exported
    (tmp_path / "a.dae").write_bytes(in_centimetres)
    (piece,) = load_shapes(robot_file(tmp_path, mesh("a.dae", 'scale="1 1 2"'))).pieces
    vertices, _ = read_mesh_file(tmp_path / "a.dae")
    drawn = np.ptp(piece.mesh.vertices, axis=0)
    np.testing.assert_allclose(drawn, np.ptp(vertices, axis=0) * [1.0, 1.0, 2.0])
    np.testing.assert_allclose(drawn, [0.1, 0.2, 0.6])


@pytest.mark.parametrize("is_foreign", [True, False])
def test_named_pipe_as_material_file_does_not_block(installed, is_foreign):
    meshes = installed / "arm" / "meshes"
    os.mkfifo(meshes / "b.mtl")
    (meshes / "b.obj").write_text(MATERIAL.format("b.mtl"))
    assert len(load_shapes(mesh("package://arm/meshes/b.obj"), is_foreign).pieces) == 1


@pytest.mark.parametrize("name", ["b.mtl", "sub/b.mtl", "/b.mtl", "../../../b.mtl", "{}/b.mtl"])
def test_mesh_materials_are_read_only_from_the_mesh_folder(installed, name):
    meshes = installed / "arm" / "meshes"
    (meshes / "sub").mkdir()
    for folder, red in ((meshes, 1), (meshes / "sub", 1), (installed.parents[1], 0.5)):
        (folder / "b.mtl").write_text(f"newmtl a\nKd {red} 0 0\n")
    (meshes / "b.obj").write_text(MATERIAL.format(name.format(installed.parents[1])))
    (piece,) = load_shapes(mesh("package://arm/meshes/b.obj")).pieces
    assert tuple(piece.mesh.visual.material.diffuse[:3]) == (255, 0, 0)


# Skeletons, and the figure in the scene


def test_a_robot_without_shapes_has_bones_from_joint_to_joint():
    pieces = skeleton(RobotModel.from_urdf(robot_text(*4 * [""]))).pieces
    top = max(piece.mesh.bounds[1, 2] for piece in pieces if piece.link == "l1")
    assert top == pytest.approx(0.1, abs=0.02)
    assert {piece.link for piece in pieces} == {"l0", "l1", "l2", "l3"}
    assert skeleton(RobotModel.from_dh([{"a": 0.3, "lower": -1, "upper": 1}] * 3)).pieces


class Scene:
    """Scene that keeps the added nodes by name."""

    def __init__(self):
        self.nodes = {}

    def add_frame(self, name, **look):
        return self.nodes.setdefault(name, Node(look))

    def add_mesh_simple(self, name, vertices, faces, **look):
        return self.nodes.setdefault(name, Node(look))


class Node:
    def __init__(self, look):
        self.look = look
        self.visible = True


def test_robot_with_sixty_joints_is_drawn_at_its_link_poses():
    robot = RobotModel.from_urdf(robot_text(*61 * [""]))
    scene, shapes = Scene(), skeleton(robot)
    figure = Figure(scene, "/arm", robot, shapes, tint=(1, 2, 3))
    q = robot.random(rng=np.random.default_rng(1))
    figure.show(link_poses(robot, q))
    figure.fade({robot.tip: 0.0})
    links = list(dict.fromkeys(piece.link for piece in shapes.pieces))
    tip = scene.nodes[node_names("/arm", tuple(links))[robot.tip]]
    np.testing.assert_allclose(tip.position, robot.fk(q)[:3, 3], atol=1e-9)
    assert not tip.visible
    meshes = [node for name, node in scene.nodes.items() if name.count("/") == 3]
    assert all(node.opacity < 1 for node in meshes)
    assert {node.look["color"] for node in meshes} == {(65, 66, 66), (1, 2, 2)}


def test_scene_node_names_are_unique_for_any_link_names():
    names = node_names("/arm", ("a/b", "a", "a/../c", ""))
    assert len(set(names.values())) == 4
    assert all(name.count("/") == 2 for name in names.values())
