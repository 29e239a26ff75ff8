# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Mesh files are read completely or refused, and only from allowed folders."""

import numpy as np
import pytest
import trimesh

from dls_ik.errors import SceneError
from dls_ik.scene.collada import MAX_TRIANGLES
from dls_ik.scene.meshes import find_mesh, read_mesh_file, read_obj, read_stl

STL = (
    b"solid s\nfacet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\n"
)
STL += b"endfacet\nendsolid s\n"
OBJ = b"v 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\n"
DAE = """<?xml version="1.0"?>
<COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema" version="1.4.1">
  <asset><unit name="inch" meter="0.5"/><up_axis>Y_UP</up_axis></asset>
  <library_geometries><geometry id="g"><mesh>
    <source id="s"><float_array id="a" count="15">9 0 0 0 7 1 0 0 7 1 1 0 7 0 1 0 7</float_array>
      <technique_common><accessor source="#a" count="4" stride="4" offset="1">
        <param name="X" type="float"/><param name="Y" type="float"/><param name="Z" type="float"/>
      </accessor></technique_common></source>
    <source id="n"><float_array id="b" count="3">0 0 1</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#s"/></vertices>
    <polylist count="1"><input semantic="NORMAL" source="#n" offset="0"/>
      <input semantic="VERTEX" source="#v" offset="1"/>
      <vcount>4</vcount><p>0 0 0 1 0 2 0 3</p></polylist>
    <lines count="1"><input semantic="VERTEX" source="#v" offset="0"/><p>0 1</p></lines>
  </mesh></geometry></library_geometries>
  <library_nodes><node id="shared"><translate>0 0 1</translate><scale>1 1 -1</scale>
    <instance_geometry url="#g"/></node></library_nodes>
  <library_visual_scenes><visual_scene id="scene"><node id="top">
    <rotate>0 0 1 90</rotate><translate>2 0 0</translate>
    <node><matrix>1 0 0 0  0 1 0 0  0 0 1 4  0 0 0 1</matrix><instance_node url="#shared"/></node>
    <instance_geometry url="#g"/>
  </node></visual_scene></library_visual_scenes>
  <scene><instance_visual_scene url="#scene"/></scene>
</COLLADA>"""


def written(folder, name, content):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def corners(triangles):
    """Return the triangles (m, 3, 3) of a mesh in a canonical order."""
    vertices, indices = triangles
    points = np.round(vertices[indices], 4) + 0.0
    # Canonical first corner
    turned = [np.roll(each, -np.lexsort(each.T)[0], axis=0) for each in points]
    return np.array(sorted(each.tolist() for each in turned))


@pytest.mark.parametrize("kind", ["stl", "stl_ascii", "obj", "dae"])
def test_mesh_files_written_by_trimesh_are_read_equal(kind, tmp_path):
    shape = trimesh.creation.annulus(0.1, 0.2, 0.3, sections=9)
    content = shape.export(file_type=kind)
    path = written(tmp_path, f"a.{kind.partition('_')[0].upper()}", content)
    assert np.array_equal(corners(read_mesh_file(path)), corners((shape.vertices, shape.faces)))


def test_collada_places_geometry_by_its_nodes_in_metres(tmp_path):
    square = np.array([[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], float)
    turn = np.array([[0, 1, 0], [-1, 0, 0], [0, 0, 1]]) * 0.5  # acts on rows
    low, high = ((square + np.array([2, 0, z])) @ turn for z in (0, 5))
    expected = [*low[[[0, 1, 2], [0, 2, 3]]], *high[[[2, 1, 0], [3, 2, 0]]]]
    found = corners(read_mesh_file(written(tmp_path, "m.dae", DAE)))
    flat = (np.reshape(expected, (-1, 3)), np.arange(12).reshape(4, 3))
    assert np.array_equal(found, corners(flat))


@pytest.mark.parametrize(
    ("primitive", "expected"),
    [
        ("<polygons><p>0 1 2 3</p><p>0 1 2</p></polygons>", [[0, 1, 2], [0, 2, 3], [0, 1, 2]]),
        ("<tristrips><p>0 1 3 2</p></tristrips>", [[0, 1, 3], [3, 1, 2]]),
        ("<trifans><p>0 1 2 3</p></trifans>", [[0, 1, 2], [0, 2, 3]]),
        ("<triangles><p>0 1 2 0 2 3</p></triangles>", [[0, 1, 2], [0, 2, 3]]),
    ],
)
def test_every_collada_primitive_is_read_as_triangles(primitive, expected, tmp_path):
    kind = primitive[1 : primitive.index(">")]
    given = primitive.replace(
        f"<{kind}>", f'<{kind}><input semantic="VERTEX" source="#v" offset="0"/>'
    )
    begin, end = DAE.index("<polylist"), DAE.index("</polylist>") + len("</polylist>")
    text = DAE.replace(DAE[begin:end], given).replace('<instance_node url="#shared"/>', "")
    vertices, triangles = read_mesh_file(written(tmp_path, "m.dae", text))
    flat = DAE.replace('<instance_node url="#shared"/>', "")
    square, _ = read_mesh_file(written(tmp_path, "n.dae", flat))
    assert np.array_equal(corners((vertices, triangles)), corners((square, np.array(expected))))


def test_relative_indices_of_obj_count_from_the_line_they_are_on():
    vertices, triangles = read_obj(OBJ + b"f -4 -3 -2 -1\nv 5 5 5\nf 1/9/9 2//7 3\\\n 4\n")
    assert triangles.tolist() == [[0, 1, 2], [0, 2, 3]] * 2
    assert len(vertices) == 5


def test_binary_stl_that_starts_with_solid_is_read():
    content = b"solid".ljust(80) + (1).to_bytes(4, "little") + np.arange(12, dtype="<f4").tobytes()
    vertices, triangles = read_stl(content + b"\0\0")
    assert vertices.tolist() == [[3, 4, 5], [6, 7, 8], [9, 10, 11]]
    assert triangles.tolist() == [[0, 1, 2]]


def instances(depth):
    """Return nodes that contain the next one twice: 2 ** depth geometries."""
    nodes = "".join(
        f'<node id="n{i}"><instance_node url="#n{i + 1}"/><instance_node url="#n{i + 1}"/></node>'
        for i in range(depth)
    )
    last = f'<node id="n{depth}"><instance_geometry url="#g"/></node>'
    text = DAE.replace("<library_nodes>", f"<library_nodes>{nodes}{last}")
    return text.replace('<instance_node url="#shared"/>', '<instance_node url="#n0"/>')


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.stl", b"", "neither a text nor a binary STL"),
        ("a.stl", b"x" * 80 + b"\xff\xff\xff\x7f" + b"\0" * 500, "the file has 10"),
        ("a.stl", b"x" * 80 + (MAX_TRIANGLES + 1).to_bytes(4, "little")
         + b"\0" * (50 * MAX_TRIANGLES + 50), f"at most {MAX_TRIANGLES}"),
        ("a.stl", STL.replace(b"vertex 1 0 0\n", b""), "1 facets need 3 vertices; got 2"),
        ("a.stl", STL.replace(b"1 0 0", b"1 0 x"), "must be three numbers"),
        ("a.obj", OBJ, "no faces"),
        ("a.obj", OBJ + b"f 1 2 3\nf 1 2 x\n", "line 6: 'f 1 2 x'"),
        ("a.obj", OBJ + b"f 1 2 -5\n", "line 5"),
        ("a.obj", OBJ + b"f 1 2\n", "line 5"),
        ("a.obj", OBJ + b"v 1 2\nf 1 2 3", "line 5"),
        ("a.dae", "<!DOCTYPE x [<!ENTITY e 'x'>]><COLLADA/>", "document type"),
        ("a.dae", "PK\3\4", "not XML"),
        ("a.dae", "<robot/>", "must be <COLLADA>"),
        ("a.dae", "<COLLADA/>", "one scene to draw; got 0"),
        ("a.dae", instances(40), "nodes are drawn"),
        ("a.dae", DAE.replace('url="#shared"', 'url="#top"'), "nested deeper than"),
        ("a.dae", DAE.replace('url="#shared"', 'url="#no"'), "'no', which is unknown"),
        ("a.dae", DAE.replace('url="#g"', 'url="file:///etc/passwd"'), "refer to the same file"),
        ("a.dae", DAE.replace("<vcount>4", "<vcount>2000000000"), "vcount"),
        ("a.dae", DAE.replace("<vcount>4", "<vcount>-4 8"), "vcount"),
        ("a.dae", DAE.replace('count="4"', 'count="9"'), "positions"),
        ("a.dae", DAE.replace('stride="4"', 'stride="9999999999999"'), "must be an integer from 0"),
        ("a.dae", DAE.replace('#v" offset="1"', '#v" offset="100000000"'), "offsets below"),
        ("a.dae", DAE.replace("0 3</p>", "0 4</p>"), "a vertex index is not below"),
        ("a.dae", DAE.replace("9 0 0 0", "9 0 x 0"), "numbers only"),
        ("a.dae", DAE.replace('meter="0.5"', 'meter="-1"'), "must be a positive number"),
        ("a.dae", DAE.replace("<translate>2 0 0", "<translate>nan 0 0"), "be 3 finite numbers"),
        ("a.dae", DAE.replace("mesh>", "spline>"), "a geometry must be a mesh"),
        ("a.dae", DAE.replace('<instance_geometry url="#g"/></node></lib',
                              '<instance_controller url="#g"/></node></lib'), "not supported"),
        ("a.png", b"", "valid endings: .stl, .obj, .dae"),
    ],
)  # fmt: skip
def test_incomplete_and_invalid_mesh_files_are_refused(name, content, message, tmp_path):
    path = written(tmp_path, name, content)
    with pytest.raises(SceneError, match="mesh") as caught:
        read_mesh_file(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


# Paths


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Create two packages, an installed one, and a secret next to them."""
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "install"))
    monkeypatch.delenv("ROS_PACKAGE_PATH", raising=False)
    for name in ("ws/arm/urdf/a.stl", "ws/arm/meshes/b.stl", "ws/hand/c.stl", "ws/plain/d.stl",
                 "install/share/base/e.stl", "secret/f.stl"):  # fmt: skip
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(STL)
    for package in ("ws/arm", "ws/hand"):
        (tmp_path / package / "package.xml").write_text("<package/>")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("a.stl", "ws/arm/urdf/a.stl"),
        ("../meshes/b.stl", "ws/arm/meshes/b.stl"),
        ("file://{root}/ws/arm/meshes/b.stl", "ws/arm/meshes/b.stl"),
        ("package://arm/meshes/b.stl", "ws/arm/meshes/b.stl"),
        ("package://hand/c.stl", "ws/hand/c.stl"),
        ("package://base/e.stl", "install/share/base/e.stl"),
        ("{root}/install/share/base/e.stl", "install/share/base/e.stl"),
    ],
)
def test_relative_names_file_and_package_urls_resolve_to_mesh_files(name, file, places):
    found = find_mesh(name.format(root=places), places / "ws/arm/urdf")
    assert found == places / file
    if not file.startswith("install"):  # a description without a folder must not find it
        with pytest.raises(SceneError):
            find_mesh(name.format(root=places), None)


@pytest.mark.parametrize(
    "name",
    [
        "{root}/secret/f.stl",
        "file://{root}/secret/f.stl",
        "../../../secret/f.stl",
        "package://arm/../../secret/f.stl",
        "package://../secret/f.stl",
        "package://plain/d.stl",  # not a package
        "package://secret/f.stl",
    ],
)
def test_meshes_outside_allowed_folders_are_refused(name, places):
    given = name.format(root=places)
    with pytest.raises(SceneError, match=r"may be read|no file"):
        find_mesh(given, places / "ws/arm/urdf")
    assert find_mesh(given, places / "ws/arm/urdf", [places]).is_file()


def test_invalid_mesh_names_are_refused(places):
    for name in ("a\0b.stl", "x" * 5000, "package://", "", "none.stl", "package://none/z.stl"):
        with pytest.raises(SceneError):
            find_mesh(name, places / "ws/arm/urdf")
