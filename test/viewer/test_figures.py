"""What is drawn of a robot: its shapes, a skeleton, and where they are."""

import numpy as np
import pytest
import trimesh
from hypothesis import given, settings
from robots import URDF, joint, random_robots, urdf

from dls_ik.model.robot import RobotModel
from dls_ik.viewer.scene import Figure, node_names
from dls_ik.viewer.shapes import (
    GREY,
    LinkPoses,
    find_file,
    load_shapes,
    moving_links,
    pose_from_wxyz,
    skeleton,
    wxyz_from_pose,
)

MESH = '<visual><geometry><mesh filename="{}" {}/></geometry></visual>'
BOX = '<visual><geometry><box size="1 2 3"/></geometry>{}</visual>'
LONG = '<origin xyz="0.05 0 0.1"/><limit lower="-2" upper="2" effort="1" velocity="1"/>'


def long_arm(joints):
    links = " ".join(f"l{i}" for i in range(joints + 1))
    axes = ("0 0 1", "0 1 0", "1 0 0")
    rows = [
        joint(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", LONG, axes[i % 3]) for i in range(joints)
    ]
    return urdf(links, *rows)


def robot_file(folder, *visuals):
    """A URDF with one link for each visual, in a row."""
    links = "".join(f'<link name="l{i}">{v}</link>' for i, v in enumerate(visuals))
    rows = "".join(
        joint(f"j{i}", "revolute", f"l{i}", f"l{i + 1}", LONG) for i in range(len(visuals) - 1)
    )
    file = folder / "robot.urdf"
    file.write_text(f'<robot name="r">{links}{rows}</robot>')
    return file


@settings(deadline=None, max_examples=30)
@given(random_robots())
def test_links_are_where_the_robot_says(drawn):
    if not any(drawn.moves(i) for i in range(len(drawn.links))):
        return
    tip = next(link for i, link in enumerate(drawn.links) if drawn.moves(i))
    robot = RobotModel.from_urdf(drawn.text, tip=tip)
    q = robot.clip(np.full(robot.n, 0.3))
    for link, T in LinkPoses(robot)(q).items():
        np.testing.assert_allclose(T, robot.link_pose(link, q), atol=1e-12)


def test_links_that_move_are_told_from_those_that_do_not():
    wam = RobotModel.wam()
    still, moving = LinkPoses(wam)(np.zeros(7)), LinkPoses(wam)(np.full(7, 0.1))
    expected = {link for link in still if np.abs(still[link] - moving[link]).max() > 1e-9}
    assert moving_links(wam) == expected
    assert "wam_base" not in expected


def test_a_pose_comes_back_from_its_quaternion():
    robot = RobotModel.wam()
    for q in robot.random(np.random.default_rng(0), 20):
        T = robot.fk(q)
        np.testing.assert_allclose(pose_from_wxyz(wxyz_from_pose(T), T[:3, 3]), T, atol=1e-12)


@pytest.mark.parametrize("name", ["wam7", "puma560", "planar_2r"])
def test_shipped_robots_are_drawn_whole(name):
    shapes = load_shapes(URDF / f"{name}.urdf")
    assert not shapes.missing
    robot = RobotModel.from_urdf(URDF / f"{name}.urdf")
    assert {piece.link for piece in shapes.pieces} >= moving_links(robot) - {robot.tip}
    assert all(piece.colour is not None for piece in shapes.pieces)


def test_a_primitive_has_its_size_place_and_colour(tmp_path):
    red = '<origin xyz="1 0 0"/><material name="m"><color rgba="1 0 0.5 1"/></material>'
    box, plain = load_shapes(robot_file(tmp_path, BOX.format(red), BOX.format(""))).pieces
    np.testing.assert_allclose(box.mesh.bounds, [[0.5, -1, -1.5], [1.5, 1, 1.5]])
    assert box.colour == (255, 0, 128)
    assert plain.colour == GREY


def test_meshes_that_are_missing_or_broken_are_told_in_a_line_and_the_rest_is_drawn(tmp_path):
    trimesh.creation.box().export(tmp_path / "good.stl")
    (tmp_path / "broken.stl").write_text("no mesh")
    names = ["good.stl", "gone.stl", "broken.stl", "package://nobody/x.dae", "gone.stl", "also.obj"]
    shapes = load_shapes(robot_file(tmp_path, *(MESH.format(name, "") for name in names)))
    assert [piece.link for piece in shapes.pieces] == ["l0"]
    assert shapes.complaint == (
        "4 meshes missing or not readable: gone.stl, broken.stl, package://nobody/x.dae and 1 more"
    )


def test_a_mesh_is_scaled(tmp_path):
    trimesh.creation.box().export(tmp_path / "a.stl")
    file = robot_file(tmp_path, MESH.format("a.stl", 'scale="1 2 3"'), "")
    np.testing.assert_allclose(load_shapes(file).pieces[0].mesh.extents, [1, 2, 3])


@pytest.mark.parametrize("where", ["ament", "ros", "ros itself", "above", "beside"])
def test_packages_are_found(tmp_path, monkeypatch, where):
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


def test_a_robot_without_shapes_has_bones_from_joint_to_joint():
    robot = RobotModel.from_urdf(long_arm(3))
    bones = [p for p in skeleton(robot).pieces if p.link == "l1"]
    ends = np.array([[0, 0, 0], [0.05, 0, 0.1]])
    reach = max(piece.mesh.bounds[1, 2] for piece in bones)
    assert reach == pytest.approx(ends[1, 2], abs=0.02)
    assert {piece.link for piece in skeleton(robot).pieces} == {"l0", "l1", "l2", "l3"}


def test_a_skeleton_of_dh_rows_needs_no_file():
    rows = [{"a": 0.3, "lower": -1, "upper": 1}] * 3
    assert skeleton(RobotModel.from_dh(rows)).pieces


class Scene:
    """Keeps the names of what is added."""

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


def test_sixty_joints_are_drawn_where_they_are():
    robot = RobotModel.from_urdf(long_arm(60))
    scene, shapes = Scene(), skeleton(robot)
    figure = Figure(scene, "/arm", robot, shapes, tint=(1, 2, 3))
    q = robot.random(np.random.default_rng(1))
    figure.show(q)
    links = list(dict.fromkeys(piece.link for piece in shapes.pieces))
    tip = scene.nodes[node_names("/arm", tuple(links))[robot.tip]]
    np.testing.assert_allclose(tip.position, robot.fk(q)[:3, 3], atol=1e-9)
    assert all(
        node.look["opacity"] < 1 for name, node in scene.nodes.items() if name.count("/") == 3
    )


def test_names_of_nodes_do_not_depend_on_what_links_are_called():
    names = node_names("/arm", ("a/b", "a", "a/../c", ""))
    assert len(set(names.values())) == 4
    assert all(name.count("/") == 2 for name in names.values())
