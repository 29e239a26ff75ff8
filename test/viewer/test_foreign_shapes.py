"""What a URDF may make the viewer read and show, whoever wrote it."""

import base64
import os
from html.parser import HTMLParser

import numpy as np
import pytest
import trimesh
from robots import joint

pytest.importorskip("yourdfpy")

from dls_ik.model.robot import RobotModel
from dls_ik.viewer.panels import StatusLine
from dls_ik.viewer.plots import joint_bars
from dls_ik.viewer.session import ArmView
from dls_ik.viewer.shapes import MAX_SHAPES, find_installed_file, load_shapes
from dls_ik.viewer.source import Sample

MESH = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
SCRIPT = "&apos;&gt;&lt;img src=x onerror=alert(1)&gt;"  # as an attribute has it
DECLARED_AS = '<?xml version="1.0" encoding="{}"?>'


def robot(*visuals, name="r", arm="j"):
    links = "".join(f'<link name="l{i}">{v}</link>' for i, v in enumerate((*visuals, "")))
    rows = (joint(f"{arm}{i}", "revolute", f"l{i}", f"l{i + 1}") for i in range(len(visuals)))
    return f'<robot name="{name}">{links}{"".join(rows)}</robot>'


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A mesh in a package, and one beside it; the folder of packages."""
    share = tmp_path / "prefix" / "share"
    (share / "arm" / "meshes").mkdir(parents=True)
    for path in (share / "arm" / "meshes" / "a.stl", tmp_path / "private.stl"):
        trimesh.creation.box(extents=(1, 2, 3)).export(path)
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    return share


@pytest.mark.parametrize("address", ["package://arm/meshes/a.stl", "file://{}/arm/meshes/a.stl"])
def test_a_foreign_urdf_shows_meshes_of_packages(installed, address):
    shapes = load_shapes(robot(MESH.format(address.format(installed))), is_foreign=True)
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
def test_a_foreign_urdf_shows_no_other_file(installed, address, monkeypatch):
    monkeypatch.chdir(installed.parents[1])
    name = address.format(installed)
    assert find_installed_file(name) is None
    if name.isprintable():
        shapes = load_shapes(robot(MESH.format(name)), is_foreign=True)
        assert shapes.missing == (name,)
        assert not shapes.pieces


def test_archives_are_no_meshes(tmp_path):
    (tmp_path / "bomb.zip").write_bytes(b"PK")
    file = tmp_path / "robot.urdf"
    file.write_text(robot(MESH.format("bomb.zip")))
    assert load_shapes(file).missing == ("bomb.zip",)


def test_how_text_says_it_is_encoded_does_not_count():
    hidden = "--><!DOCTYPE robot [<!ENTITY e 'x'>]><!--".encode("utf-16-be")
    comment = f"<!-- +{base64.b64encode(hidden).decode().rstrip('=')}- -->"
    text = DECLARED_AS.format("UTF-7") + comment + robot(MESH.format("a.stl"))
    RobotModel.from_urdf(text)  # sees a comment
    assert load_shapes(text, is_foreign=True).missing == ("a.stl",)


def test_a_mesh_file_draws_in_no_other_file(tmp_path):
    pytest.importorskip("collada")
    (tmp_path / "secret").write_text("0 0 0 1 0 0 0 1 0")
    (tmp_path / "a.dae").write_text(
        f'<!DOCTYPE COLLADA [<!ENTITY e SYSTEM "file://{tmp_path}/secret">]>'
        '<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1"><asset/>'
        '<library_geometries><geometry id="g"><mesh><source id="s"><float_array id="f" count="9">'
        "&e;</float_array></source></mesh></geometry></library_geometries></COLLADA>"
    )
    file = tmp_path / "robot.urdf"
    file.write_text(robot(MESH.format("a.dae")))
    assert load_shapes(file).missing == ("a.dae",)


OBJ = "mtllib {}\nv 0 0 0\nv 1 0 0\nv 0 1 0\nusemtl a\nf 1 2 3\n"


@pytest.mark.parametrize("is_foreign", [True, False])
def test_a_pipe_beside_a_mesh_is_not_waited_for(installed, is_foreign):
    meshes = installed / "arm" / "meshes"
    os.mkfifo(meshes / "b.mtl")
    (meshes / "b.obj").write_text(OBJ.format("b.mtl"))
    shapes = load_shapes(robot(MESH.format("package://arm/meshes/b.obj")), is_foreign)
    assert len(shapes.pieces) == 1


@pytest.mark.parametrize("name", ["b.mtl", "sub/b.mtl", "/b.mtl", "../../../b.mtl", "{}/b.mtl"])
def test_a_mesh_takes_its_materials_from_its_folder(installed, name):
    meshes = installed / "arm" / "meshes"
    (meshes / "sub").mkdir()
    material = "newmtl a\nKd {} 0 0\n"
    for folder, red in ((meshes, 1), (meshes / "sub", 1), (installed.parents[1], 0.5)):
        (folder / "b.mtl").write_text(material.format(red))
    (meshes / "b.obj").write_text(OBJ.format(name.format(installed.parents[1])))
    (piece,) = load_shapes(robot(MESH.format("package://arm/meshes/b.obj"))).pieces
    assert tuple(piece.mesh.visual.material.diffuse[:3]) == (255, 0, 0)


@pytest.mark.parametrize(
    "shape",
    [
        '<box size="nan 1 1"/>',
        '<box size="1e308 1e308 1e308"/>',
        '<box size="x"/>',
        '<sphere radius="inf"/>',
        '<cylinder radius="1" length="nan"/>',
    ],
)
def test_a_shape_that_is_none_is_told(shape):
    shapes = load_shapes(robot(f"<visual><geometry>{shape}</geometry></visual>"))
    assert (
        "missing or not readable" in shapes.complaint
        or np.isfinite(shapes.pieces[0].mesh.vertices).all()
    )


def test_so_many_shapes_are_drawn_at_most():
    box = '<visual><geometry><box size="1 1 1"/></geometry></visual>' * (MAX_SHAPES + 1)
    shapes = load_shapes(robot(box))
    assert len(shapes.pieces) == MAX_SHAPES
    assert f"beyond the first {MAX_SHAPES}" in shapes.complaint


class Tags(HTMLParser):
    """The elements of a text, and the names of their attributes."""

    def __init__(self):
        super().__init__()
        self.seen, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.seen.add(tag)
        self.attributes.update(name for name, _ in attrs)


class Gui:
    """Where the page's text goes."""

    def add_html(self, content):
        self.content = content
        return self


def tags(content):
    parser = Tags()
    parser.feed(content)
    return parser.seen, parser.attributes


def test_names_and_words_of_others_are_no_html():
    arm = RobotModel.from_urdf(robot("", "", name=SCRIPT, arm=SCRIPT))
    words = arm.name
    assert words == "'><img src=x onerror=alert(1)>"
    page = Gui()
    sample = Sample(0.0, np.zeros(2), np.zeros(2), np.eye(4), None, 0.0, 0.0, "WAITING", words)
    StatusLine(page, note=words).show([ArmView(words, sample, None)])
    for content in (joint_bars(arm, [np.zeros(2)]), page.content):
        assert "alert(1)" in content
        assert tags(content)[0] <= {"div", "span", "b", "br"}
        assert tags(content)[1] <= {"style", "title"}
