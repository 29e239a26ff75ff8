# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Every shape of the table passes through every reader, writer, check and drawing.

A shape that is added to the table needs no line here.
"""

import mujoco
import numpy as np
import pytest
from scenes import bracket

from dls_ik import PlanningScene, RobotModel
from dls_ik.core.scene_arrays import KIND_TREE
from dls_ik.core.shape_distance import primitive_distances
from dls_ik.model.rotations import inverse, rotation_about, transform
from dls_ik.plot.scene import faces
from dls_ik.ros.sim_arm.physics_shapes import SolidLibrary
from dls_ik.scene.exact import PlacedShape, separation
from dls_ik.scene.formats import read_scene, scene_text
from dls_ik.scene.scene_message import object_fields
from dls_ik.scene.shape_table import (
    MESSAGE_KINDS,
    SHAPE_KINDS,
    drawn_triangles,
    kind_of,
    moveit_parts,
    scaled,
    sizes_of,
)
from dls_ik.scene.shapes import URDF_SHAPES, Body, Mesh, Plane, Sphere, link_bodies
from dls_ik.scene.sphere_fit import fit_spheres
from dls_ik.viewer.obstacles import shape_mesh

SIZED = [kind for kind in SHAPE_KINDS if kind.sizes]
PROBE = 0.05  # [m] radius of the sphere whose distances are compared
T = transform(rotation_about(np.array([0.0, 0.6, 0.8]), 1.0), np.array([0.5, -0.25, 1.0]))
BY_NAME = {"ids": lambda kind: kind.name}
every_kind = pytest.mark.parametrize("kind", SHAPE_KINDS, **BY_NAME)
every_sized_kind = pytest.mark.parametrize("kind", SIZED, **BY_NAME)
every_bounded_kind = pytest.mark.parametrize(
    "kind", [kind for kind in SHAPE_KINDS if kind.type is not Plane], **BY_NAME
)


def sample(kind, seed=0):
    """Return a shape of a kind."""
    rng = np.random.default_rng(seed)
    if kind.type is Plane:
        return Plane(rng.normal(size=3), 0.1)
    return bracket(0.5) if kind.type is Mesh else kind.make(*rng.uniform(0.2, 0.6, len(kind.sizes)))


def probes(count, seed=1):
    """Return centres (k, 3) around the shapes [m]."""
    return np.random.default_rng(seed).uniform(-1.2, 1.2, (count, 3))


def distance(shape, T_shape, centre):
    """Return the distance [m] of a probe from a shape by coal; negative if they overlap."""
    probe = PlacedShape(Sphere(PROBE), transform(translation=centre))
    return separation(PlacedShape(shape, T_shape), probe).distance


def same_sizes(a, b):
    assert type(a) is type(b)
    np.testing.assert_allclose(sizes_of(a), sizes_of(b), rtol=1e-12)


@every_sized_kind
def test_the_sizes_are_the_fields_and_scale_with_the_shape(kind):
    shape = sample(kind)
    assert len(kind.sizes) == len(sizes_of(shape))
    same_sizes(kind.make(*sizes_of(shape)), shape)
    np.testing.assert_allclose(sizes_of(scaled(shape, 2.0)), 2.0 * np.array(sizes_of(shape)))


@pytest.mark.parametrize("tag", URDF_SHAPES)
def test_a_urdf_gives_the_shape(tag):
    (kind,) = (each for each in SIZED if each.name == tag)
    shape, attributes = sample(kind), []
    values = iter(sizes_of(shape))
    for name, count in URDF_SHAPES[tag][1].items():
        attributes.append(f'{name}="{" ".join(repr(next(values)) for _ in range(count))}"')
    element = f"<geometry><{tag} {' '.join(attributes)}/></geometry>"
    text = f'<robot name="r"><link name="a"><collision>{element}</collision></link></robot>'
    ((found, _),) = link_bodies(text)["a"].parts
    same_sizes(found, shape)


@every_kind
def test_files_and_messages_give_a_shape_with_the_same_distances(kind):
    """A kind without a message of MoveIt is written as other shapes, which enclose it."""
    shape = sample(kind)
    body = Body("thing", ((shape, T),))
    change = read_scene(scene_text({"thing": (body, np.eye(4))}))
    message = read_scene(object_fields(body, np.eye(4), "world"))
    for added in (change.operations[-1], message.operations[-1]):
        if kind.primitive is not None:
            same_sizes(added.parts[0][0], shape)
        for centre in probes(20):
            parts = [distance(part, added.T @ T_part, centre) for part, T_part in added.parts]
            expected = distance(shape, T, centre)
            if expected > 0.0:
                assert -0.02 < min(parts) - expected < 1e-6


def test_the_numbers_of_primitives_and_the_names_are_unique():
    assert len({kind.name for kind in SHAPE_KINDS}) == len(SHAPE_KINDS)
    assert len(MESSAGE_KINDS) == sum(kind.primitive is not None for kind in SHAPE_KINDS)
    for kind in MESSAGE_KINDS.values():
        assert sorted(index for _, index in kind.dimensions) == [*range(len(kind.sizes))]


@every_kind
def test_the_kernel_and_coal_agree_about_distances(kind):
    shape = sample(kind)
    number, size, T_shape_kernel = kind.kernel(shape)
    if number == KIND_TREE:
        return  # checked by its sphere tree, below
    points = probes(200)
    local = np.ascontiguousarray((np.c_[points, np.ones(200)] @ inverse(T_shape_kernel).T)[:, :3])
    out = np.empty(200)
    primitive_distances(number, size, local, out)
    exact = np.array([distance(shape, np.eye(4), each) for each in points])
    outside = exact > 0.0
    assert outside.sum() > 20
    np.testing.assert_allclose(out[outside] - PROBE, exact[outside], atol=1e-6)


@every_bounded_kind
def test_the_spheres_enclose_the_shape_and_are_inside_it(kind):
    shape = sample(kind)
    tree = fit_spheres(shape)
    leaf = tree.node[tree.child < 0]
    surface = drawn_triangles(shape).reshape(-1, 3)
    apart = np.linalg.norm(surface[:, None] - leaf[None, :, :3], axis=2) - leaf[:, 3]
    assert apart.min(axis=1).max() <= 1e-9
    proven = leaf[leaf[:, 4] > PROBE]
    assert len(proven)
    for centre in proven[:10, :3]:
        assert distance(shape, np.eye(4), centre) < 0.0


@every_bounded_kind
def test_the_farthest_point_is_on_the_surface_and_beyond_the_drawing(kind):
    shape = sample(kind)
    corners = drawn_triangles(shape).reshape(-1, 3)
    for n in np.random.default_rng(2).normal(size=(50, 3)):
        n /= np.linalg.norm(n)
        point = kind.farthest(shape, n)
        assert n @ point >= (corners @ n).max() - 1e-9
        gap = distance(shape, np.eye(4), point + (PROBE + 1e-3) * n)
        assert gap == pytest.approx(1e-3, abs=1e-5)


@every_bounded_kind
def test_drawn_meshes_are_watertight_with_outward_faces(kind):
    shape = sample(kind)
    drawn = shape_mesh(shape, 1.0)
    assert drawn.is_watertight
    assert drawn.is_winding_consistent
    ways = np.concatenate([np.eye(3), -np.eye(3)])
    ends = [kind.farthest(shape, way) @ way for way in ways]
    np.testing.assert_allclose([*drawn.bounds[1], *-drawn.bounds[0]], ends, atol=1e-9)
    boxes = np.prod(np.ptp(drawn.bounds, axis=0))
    assert 0.2 * boxes < drawn.volume <= boxes * (1.0 + 1e-9)
    assert sum(len(face) - 2 for face in faces(shape)) >= len(drawn_triangles(shape))


def test_a_plane_is_drawn_below_its_surface():
    plane = sample(kind_of(Plane([0, 0, 1])))
    assert (shape_mesh(plane, 1.0).vertices @ plane.normal).max() == pytest.approx(plane.offset)
    assert faces(plane) == []


@every_bounded_kind
def test_mujoco_gets_a_shape_with_the_same_distances(kind):
    shape, spec = sample(kind), mujoco.MjSpec()
    for each in SolidLibrary().geoms(spec, shape, T, by_facets=False):
        spec.worldbody.add_geom(**each)
    probe = spec.worldbody.add_body(mocap=True)
    probe.add_geom(type=mujoco.mjtGeom.mjGEOM_SPHERE, size=[PROBE, 0, 0])
    model = spec.compile()
    data, ends = mujoco.MjData(model), np.zeros(6)
    for centre in probes(20):
        expected = distance(shape, T, centre)
        if expected > 0.0 and kind.type is not Mesh:  # a concave mesh is replaced by its hull
            data.mocap_pos[0] = centre
            mujoco.mj_kinematics(model, data)
            others = range(model.ngeom - 1)
            found = min(
                mujoco.mj_geomDistance(model, data, i, model.ngeom - 1, 10.0, ends) for i in others
            )
            assert found == pytest.approx(expected, abs=2e-3)


@every_kind
def test_a_scene_takes_the_shape_and_measures_its_distance(kind):
    robot = RobotModel.wam()
    scene, shape = PlanningScene(robot), sample(kind)
    at = transform(translation=[0.0, 0.0, -3.0])
    scene.add("thing", shape, at)
    q = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
    bodies = [(name, each) for name, each in scene.snapshot.links.items()]
    own = [
        separation(
            PlacedShape(part, robot.tree.pose(name, robot.named(q)) @ T_part),
            PlacedShape(shape, at),
        ).distance
        for name, body in bodies
        for part, T_part in body.parts
    ]
    found = {contact.names: contact.distance for contact in [scene.distance(q)]}
    (least,) = found.values()
    assert least <= min(own) + 1e-6
    assert scene.in_collision(q) == (least <= 0.0)


@every_kind
def test_parts_for_moveit_have_messages(kind):
    for part, _ in moveit_parts(sample(kind), T):
        assert isinstance(part, (Plane, Mesh)) or kind_of(part).primitive is not None
