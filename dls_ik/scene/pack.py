# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Packing of links, objects and pairs into the arrays of the collision kernels."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.scene_arrays import (
    BOX,
    CAPSULE,
    CYLINDER,
    PLANE,
    SPHERE,
    TREE,
    SceneArrays,
)
from dls_ik.core.types import Array
from dls_ik.model.rotations import inverse, rotation_from_z, transform
from dls_ik.model.tree import Tree
from dls_ik.scene.shapes import Box, Capsule, Cylinder, Mesh, Plane, Shape, Sphere
from dls_ik.scene.sphere_fit import SphereTree, leaves_each
from dls_ik.scene.spheres import sphere_tree


class LinkFrames(NamedTuple):
    """The root frame, one frame for each moving joint (f frames in all), and the links in them.

    The position of the joint of a frame is ``scale * q[variable] + offset``.
    """

    parent: list[int]  # index of the parent frame
    variable: list[int]  # index of the variable in q that moves the joint
    prismatic: list[bool]  # whether the joint is prismatic
    fixed: list[Array]  # (4, 4) transform from the parent frame at joint position 0
    scale: list[float]  # factor of the variable, as of a mimic joint
    offset: list[float]  # offset of the joint position [rad or m]
    links: dict[str, tuple[int, Array]]  # frame index and T_frame_link (4, 4) by link


def link_frames(tree: Tree, joint_names: Sequence[str], values: Mapping[str, float]) -> LinkFrames:
    """Return the frames of all links of a robot.

    Args:
        tree: Robot.
        joint_names: (n,) joints whose positions are the variables; joints that mimic one of these
            joints move, too.
        values: Positions by name of all other joints, which are fixed [rad or m].
    """
    number = {name: i for i, name in enumerate(joint_names)}
    frames = LinkFrames([0], [0], [False], [np.eye(4)], [0.0], [0.0], {tree.root: (0, np.eye(4))})
    waiting = [tree.root]
    while waiting:
        link = waiting.pop()
        frame, T = frames.links[link]
        for joint in tree.child_joints[link]:
            waiting.append(joint.child)
            mimic = tree.mimic_of.get(joint.name)
            T_joint = T @ joint.origin
            if mimic is None or mimic.master not in number or mimic.multiplier == 0.0:
                T_child = T_joint @ joint.motion(values.get(joint.name, 0.0))
                frames.links[joint.child] = frame, T_child
                continue
            T_from_z = transform(rotation_from_z(joint.axis))
            frames.links[joint.child] = len(frames.parent), inverse(T_from_z)
            frames.parent.append(frame)
            frames.variable.append(number[mimic.master])
            frames.prismatic.append(joint.kind == "prismatic")
            frames.fixed.append(T_joint @ T_from_z)
            frames.scale.append(mimic.multiplier)
            frames.offset.append(mimic.offset)
    return frames


class MovingShape(NamedTuple):
    """A shape of a link or of an attached object."""

    name: str  # name of the link or object
    shape: Shape  # shape after scaling
    spheres: SphereTree  # spheres of the shape, in the coordinates of the frame
    frame: int  # index of the frame that carries the shape
    T: Array  # (4, 4) T_frame_shape
    padding: float  # [m] distance by which the shape is enlarged


class StandingShape(NamedTuple):
    """A shape of an object of the world."""

    name: str
    shape: Shape
    T: Array  # (4, 4) T_root_shape


class PackedTrees(NamedTuple):
    """Several sphere trees in common arrays; the fields are those of :class:`SphereTree`."""

    root: NDArray[np.int64]  # (g,) index of the root node of each tree
    child: NDArray[np.int64]  # (N,)
    node: Array  # (N, 5)
    hull: NDArray[np.int64]  # (N, 2)
    ball: Array  # (M, 4)


def pack_trees(trees: Sequence[SphereTree], before: tuple[int, int] = (0, 0)) -> PackedTrees:
    """Return several trees in common arrays.

    Args:
        trees: Trees.
        before: Numbers of nodes and of balls that precede these trees in the final arrays; they are
            added to all indices.
    """
    starts = np.cumsum([before[0], *(len(tree.node) for tree in trees)])
    balls = np.cumsum([before[1], *(len(tree.ball) for tree in trees)])
    hulls = [tree.hull + np.array([start, 0]) for tree, start in zip(trees, balls, strict=False)]
    children = [
        np.where(tree.child < 0, -1, tree.child + start)
        for tree, start in zip(trees, starts, strict=False)
    ]
    return PackedTrees(
        starts[:-1].astype(np.int64),
        np.concatenate([np.zeros(0, np.int64), *children]),
        np.concatenate([np.zeros((0, 5)), *(tree.node for tree in trees)]),
        np.concatenate([np.zeros((0, 2), np.int64), *hulls]),
        np.concatenate([np.zeros((0, 4)), *(tree.ball for tree in trees)]),
    )


def pack_shapes(
    frames: LinkFrames,
    moving: Sequence[MovingShape],
    standing: Sequence[StandingShape],
    pairs: Sequence[tuple[int, int]],
    outside: Sequence[tuple[int, int]],
    own: PackedTrees,
) -> SceneArrays:
    """Return the arrays of shapes and pairs that the collision kernels use.

    Args:
        frames: Frames of the links.
        moving: Shapes of links and attached objects.
        standing: Shapes of objects of the world.
        pairs: (p,) pairs of moving shapes, each as two indices.
        outside: (s,) pairs of an index of a moving shape and an index of a standing shape.
        own: Sphere trees of the moving shapes.
    """
    rows = [_object(each.shape) for each in standing]
    meshes = distinct_meshes(each.shape for each in standing)
    trees = [sphere_tree(shape, True, leaves_each(len(meshes))) for shape in meshes.values()]
    others = pack_trees(trees, (len(own.child), len(own.ball)))
    first = dict(zip(meshes, others.root.tolist(), strict=True))
    tree_of = [first.get(id(each.shape), 0) for each in standing]
    places = [
        inverse(each.T @ T_shape)[:3] for each, (_, _, T_shape) in zip(standing, rows, strict=True)
    ]
    return SceneArrays(
        parent=np.array(frames.parent, np.int64),
        variable=np.array(frames.variable, np.int64),
        prismatic=np.array(frames.prismatic, np.int64),
        fixed=np.array(frames.fixed)[:, :3],
        scale=np.array(frames.scale),
        offset=np.array(frames.offset),
        frame=np.array([each.frame for each in moving], np.int64),
        root=own.root,
        padding=np.array([each.padding for each in moving]),
        kind=np.array([kind for kind, _, _ in rows], np.int64),
        tree=np.array(tree_of, np.int64),
        size=np.array([size for _, size, _ in rows]).reshape(-1, 3),
        place=np.array(places).reshape(-1, 3, 4),
        child=np.concatenate([own.child, others.child]) if meshes else own.child,
        node=np.concatenate([own.node, others.node]) if meshes else own.node,
        hull=np.concatenate([own.hull, others.hull]) if meshes else own.hull,
        ball=np.concatenate([own.ball, others.ball]) if meshes else own.ball,
        pairs=np.array(pairs, np.int64).reshape(-1, 2),
        outside=np.array(outside, np.int64).reshape(-1, 2),
    )


def distinct_meshes(shapes: Iterable[Shape]) -> dict[int, Mesh]:
    """Return the meshes among some shapes, without repetitions; the keys are their ids."""
    return {id(shape): shape for shape in shapes if isinstance(shape, Mesh)}


def _object(shape: Shape) -> tuple[int, Array, Array]:
    """Return the kind, the size (3,) and the pose (4, 4) with which kernels represent a shape.

    The pose is that of the kernels' frame in the frame of the shape.
    """
    match shape:
        case Box(size=size):
            return BOX, 0.5 * size, np.eye(4)
        case Sphere(radius=radius):
            return SPHERE, np.array([radius, 0.0, 0.0]), np.eye(4)
        case Cylinder(radius=radius, length=length):
            return CYLINDER, np.array([radius, 0.5 * length, 0.0]), np.eye(4)
        case Capsule(radius=radius, length=length):
            return CAPSULE, np.array([radius, 0.5 * length, 0.0]), np.eye(4)
        case Plane(normal=normal, offset=offset):
            return PLANE, np.zeros(3), transform(rotation_from_z(normal), offset * normal)
        case Mesh():
            return TREE, np.zeros(3), np.eye(4)
    raise TypeError(f"not a shape: {shape!r}")


def scaled(shape: Shape, scale: float) -> Shape:
    """Return a shape scaled about its origin; planes are unchanged."""
    match shape:
        case _ if scale == 1.0:
            return shape
        case Box(size=size):
            return Box(size * scale)
        case Sphere(radius=radius):
            return Sphere(radius * scale)
        case Cylinder(radius=radius, length=length):
            return Cylinder(radius * scale, length * scale)
        case Capsule(radius=radius, length=length):
            return Capsule(radius * scale, length * scale)
        case Mesh(vertices=vertices, triangles=triangles):
            return Mesh(vertices * scale, triangles)
    return shape


def reach_of_pairs(arrays: SceneArrays, extent: Array) -> Array:
    """Return bounds on the approach of each pair per motion of each variable, (p + s, n).

    The unit is [m/rad] or [m/m]. Only joints between the two shapes of a pair contribute.

    Args:
        arrays: Arrays of the scene.
        extent: (n,) maximum absolute position of prismatic variables on the path [m].
    """
    n = len(extent)
    reach = np.zeros((len(arrays.frame), len(arrays.parent)))  # (g, f) by frame
    for shape, frame in enumerate(arrays.frame):
        node = arrays.node[arrays.root[shape]]
        length = float(np.linalg.norm(node[:3]) + node[3])  # maximum distance from the frame
        at = int(frame)
        while at > 0:
            if arrays.prismatic[at]:
                reach[shape, at] = 1.0
                slide = abs(arrays.scale[at]) * extent[arrays.variable[at]]
                length += slide + abs(arrays.offset[at])
            else:
                reach[shape, at] = length
            length += float(np.linalg.norm(arrays.fixed[at, :, 3]))
            at = int(arrays.parent[at])
    return _by_variable(arrays, reach, n)


def turns_of_pairs(arrays: SceneArrays, n: int) -> Array:
    """Return bounds on the relative rotation of each pair per motion of each variable, (p + s, n).

    A revolute joint that carries a prismatic joint is counted twice, because the Coriolis
    acceleration of a sliding point is twice the product of both joint speeds.
    """
    turns = np.zeros((len(arrays.frame), len(arrays.parent)))
    for shape, frame in enumerate(arrays.frame):
        at, turn = int(frame), 1.0
        while at > 0:
            if arrays.prismatic[at]:
                turn = 2.0
            else:
                turns[shape, at] = turn
            at = int(arrays.parent[at])
    return _by_variable(arrays, turns, n)


def _by_variable(arrays: SceneArrays, by_shape: Array, n: int) -> Array:
    """Convert bounds by shape and frame (g, f) to bounds by pair and variable (p + s, n).

    Frames that move both shapes of a pair are ignored.
    """
    a, b = arrays.pairs.T
    one, two = by_shape[a], by_shape[b]
    own = np.where((one > 0.0) != (two > 0.0), np.maximum(one, two), 0.0)
    by_frame = np.concatenate([own, by_shape[arrays.outside[:, 0]]]) * np.abs(arrays.scale)
    by_variable = np.zeros((len(by_frame), n))
    np.add.at(by_variable.T, arrays.variable, by_frame.T)
    return by_variable
