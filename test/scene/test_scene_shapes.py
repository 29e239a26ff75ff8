# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Shapes are checked, and a URDF's collision geometry is read completely."""

import numpy as np
import pytest
import trimesh

from dls_ik import RobotModel
from dls_ik.errors import SceneError
from dls_ik.model import share_file
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.scene.shapes import Body, Box, Capsule, Cylinder, Mesh, Plane, Sphere, link_bodies

CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]])


def collision(geometry, origin=""):
    return f"<collision>{origin}<geometry>{geometry}</geometry></collision>"


def robot(*collisions):
    return f'<robot name="r"><link name="a"/>\n<link name="b">{"".join(collisions)}</link></robot>'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box([1, 2]), "a box must be x, y, z; got 2 numbers"),
        (lambda: Box([1, 2, 0]), "from 1e-06 to 1e+06 m; got 1 2 0"),
        (lambda: Box([1, "a", 2]), "a box must be x, y, z"),
        (lambda: Sphere(float("nan")), "got nan"),
        (lambda: Cylinder(-1.0, 1.0), "got -1 1"),
        (lambda: Capsule(1.0, float("inf")), "got inf"),
        (lambda: Plane([0, 0, 0]), "normal of a plane is too short"),
        (lambda: Plane([0, 0, 1], np.nan), "the offset of a plane"),
        (lambda: Mesh(CORNERS, []), "no triangles"),
        (lambda: Mesh(CORNERS, [[0, 1, 4]]), "from 0 to 3; got 4"),
        (lambda: Mesh(CORNERS, [[0, 1, -1]]), "from 0 to 3; got -1"),
        (lambda: Mesh(CORNERS, [[0.0, 1.0, 2.0]]), "the type float64"),
        (lambda: Mesh(CORNERS, [[0, 1]]), "of shape (1, 2)"),
        (lambda: Mesh(CORNERS, [[0, 1, 1]]), "have no area"),
        (lambda: Mesh(CORNERS * [1, 1, np.inf], FACES), "within 1e+06 m"),
        (lambda: Mesh(CORNERS, np.zeros((1_000_000, 3), int)), "got 1000000"),
        (lambda: Body("b", ((Sphere(1.0), 2 * np.eye(4)),)), "the pose of a shape of 'b'"),
        (lambda: Body("b", ((Sphere(1.0), transform(translation=[1e7, 0, 0])),)), "within 1e+06 m"),
    ],
)
def test_invalid_shapes_are_refused_with_a_reason(make, message):
    with pytest.raises(SceneError) as caught:
        make()
    assert message in str(caught.value)


def test_mesh_merges_equal_vertices_and_detects_closed_surfaces():
    loose = Mesh(CORNERS[FACES].reshape(-1, 3) * -1.0, np.arange(12).reshape(4, 3))
    assert len(loose.vertices) == 4
    assert loose.is_watertight
    assert loose.triangles.dtype == np.int32
    assert not Mesh(CORNERS, FACES[:3]).is_watertight
    # One triangle is inside out
    assert not Mesh(CORNERS, [*FACES[:3], FACES[3][::-1]]).is_watertight
    # A triangle without area is left out
    flat = Mesh([*CORNERS, [0.5, 0.5, 0]], [*FACES, [1, 4, 2]])
    assert flat.is_watertight
    assert not flat.vertices.flags.writeable


def test_every_urdf_collision_shape_is_read(tmp_path):
    part = trimesh.creation.cone(0.1, 0.3)
    (tmp_path / "meshes").mkdir()
    (tmp_path / "urdf").mkdir()
    (tmp_path / "meshes/part.stl").write_bytes(part.export(file_type="stl"))
    mesh = '<mesh filename="../meshes/part.stl" scale="{}"/>'
    text = robot(
        collision('<box size="1 2 3"/>', '<origin xyz="1 2 3" rpy="0.1 0.2 0.3"/>'),
        collision('<sphere radius="0.5"/>', '<origin rpy="0 0 1"/>'),
        collision('<cylinder radius="0.5" length="2"/>'),
        collision('<drake:capsule radius="0.5" length="2"/>'),
        collision(mesh.format("1 1 2")),
        collision(mesh.format("-1 1 1")),
        collision(mesh.format("0.5")),
    ).replace('<link name="a"/>', '<link name="a"><visual><geometry/></visual></link>')
    path = tmp_path / "urdf" / "r.urdf"
    path.write_text(text)
    bodies = link_bodies(path)
    assert [*bodies] == ["b"]
    shapes, poses = zip(*bodies["b"].parts, strict=True)
    assert list(map(type, shapes)) == [Box, Sphere, Cylinder, Capsule, Mesh, Mesh, Mesh]
    box, sphere, cylinder, capsule, tall, mirrored, small = shapes
    assert box.size.tolist() == [1, 2, 3]
    assert (sphere.radius, cylinder.radius, cylinder.length) == (0.5, 0.5, 2.0)
    assert (capsule.radius, capsule.length) == (0.5, 2.0)
    assert np.allclose(poses[0], transform(rotation_from_rpy(0.1, 0.2, 0.3), [1, 2, 3]))
    volumes = [trimesh.Trimesh(m.vertices, m.triangles).volume for m in (tall, mirrored, small)]
    assert np.allclose(volumes, part.volume * np.array([2.0, 1.0, 0.125]))  # no part is inside out
    assert all(mesh.is_watertight for mesh in (tall, mirrored, small))


@pytest.mark.parametrize(
    ("collisions", "message"),
    [
        (collision('<box size="1 2"/>'), "size of <box> must be 3 numbers; got '1 2'"),
        (collision('<box size="1 2 -3"/>'), "a box must be x, y, z, each from"),
        (collision("<sphere/>"), "<sphere> has no attribute 'radius'"),
        (collision('<sphere radius="nan"/>'), "a sphere must be a radius"),
        (collision('<cone radius="1"/>'), "unknown shape <cone>; known shapes: box, sphere"),
        (collision(""), "got nothing"),
        (collision('<sphere radius="1"/><box size="1 1 1"/>'), "got <sphere> and <box>"),
        ("<collision/>", "got nothing"),
        (collision("<mesh/>"), "<mesh> has no attribute 'filename'"),
        (collision('<mesh filename="package://none/a.stl"/>'), "'package://none/a.stl'"),
        (collision('<mesh filename="file:///etc/hostname"/>'), "file:///etc/hostname"),
        (collision('<sphere radius="1"/>', '<origin xyz="1 2"/>'), "xyz of <origin>"),
        (collision('<sphere radius="1"/>', '<origin rpy="inf 0 0"/>'), "rpy must be finite"),
        (collision('<sphere radius="1"/>', '<origin xyz="1e308 0 0"/>'), "rigid transform"),
        (collision('<sphere radius="1"/>', '<origin quat_xyzw="0 0 0 1"/>'), "quat_xyzw"),
        (collision('<sphere radius="1"/>') * 10_001, "10000 shapes; got 10001"),
    ],
)
def test_collision_geometry_that_cannot_be_used_is_named(collisions, message):
    with pytest.raises(SceneError, match="collision geometry of link 'b': ") as caught:
        link_bodies(robot(collisions))
    assert message in str(caught.value)


def test_robots_keep_their_description_and_its_folder():
    wam = RobotModel.wam()
    assert wam.tree.description.folder == share_file("urdf", "wam7.urdf").parent
    assert len(link_bodies(wam.tree.description)) == 8
    text = robot(collision('<mesh filename="wam7.urdf"/>'))
    with pytest.raises(SceneError, match="valid endings"):
        link_bodies(text, [share_file("urdf", "wam7.urdf").parent])
