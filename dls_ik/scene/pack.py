# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of links, objects and pairs to the arrays that the collision kernels use.

Moving shapes belong to links and attached objects; standing shapes belong to objects of the world.
A variable is an entry of the configuration q (n,).
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.scene_arrays import SceneArrays
from dls_ik.core.types import Array
from dls_ik.model.rotations import inverse, rotation_from_z, transform
from dls_ik.model.tree import Tree
from dls_ik.scene.shape_table import kind_of
from dls_ik.scene.shapes import Mesh, Shape
from dls_ik.scene.sphere_fit import SphereTree, leaves_each
from dls_ik.scene.spheres import sphere_tree


class LinkFrames(NamedTuple):
    """Frames that move with the robot, and the links that are fixed in each frame.

    There are f frames: the root frame with index 0, and one frame for each moving joint. The joint
    of a frame is at the position ``scale * q[variable] + offset``, and moves about or along the z
    axis of the frame.
    """

    parent: list[int]  # index of the parent frame
    variable: list[int]  # index of the entry of q that moves the joint
    prismatic: list[bool]  # whether the joint is prismatic
    fixed: list[Array]  # (4, 4) transform from the parent frame at joint position 0
    scale: list[float]  # factor of q; 1 unless the joint is a mimic joint
    offset: list[float]  # offset of the joint position [rad or m]
    links: dict[str, tuple[int, Array]]  # index of the frame and T_frame_link (4, 4), by link


def link_frames(tree: Tree, joint_names: Sequence[str], values: Mapping[str, float]) -> LinkFrames:
    """Return the moving frames of a robot and the links that are fixed in each frame.

    Args:
        tree: Robot.
        joint_names: (n,) joints whose positions form a configuration q. Joints that mimic one of
            these joints move, too.
        values: Positions by name of all other joints, which do not move [rad or m].
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
    shape: Shape  # shape after scaling by the factor of the link
    spheres: SphereTree  # sphere tree of the shape, in the coordinates of the frame
    frame: int  # index of the frame in which the shape is fixed
    T: Array  # (4, 4) T_frame_shape
    padding: float  # [m] distance by which the shape is enlarged on all sides


class StandingShape(NamedTuple):
    """A shape of an object of the world."""

    name: str
    shape: Shape
    T: Array  # (4, 4) T_root_shape


class PackedTrees(NamedTuple):
    """Several sphere trees in common arrays.

    The fields except `root` are those of :class:`SphereTree`, concatenated for all g trees.
    """

    root: NDArray[np.int64]  # (g,) index of the root node of each tree
    child: NDArray[np.int64]  # (N,)
    node: Array  # (N, 5)
    hull: NDArray[np.int64]  # (N, 2)
    ball: Array  # (M, 4)


def pack_trees(trees: Sequence[SphereTree], before: tuple[int, int] = (0, 0)) -> PackedTrees:
    """Concatenate the arrays of several sphere trees.

    Args:
        trees: Sphere trees.
        before: Number of nodes and number of balls that the caller places before those of the
            trees. These numbers are added to all indices of nodes and balls.
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
        pairs: (p,) pairs of moving shapes to check, each as two indices in `moving`.
        outside: (s,) pairs to check of a moving and a standing shape, each as an index in `moving`
            and an index in `standing`.
        own: Sphere trees of the moving shapes, in the order of `moving`.
    """
    rows = [kind_of(each.shape).kernel(each.shape) for each in standing]
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


def reach_of_pairs(arrays: SceneArrays, extent: Array) -> Array:
    """Return how much the distance of each pair can change per motion of each variable.

    A bound is 0 if the variable moves both shapes of the pair together, or neither of them.

    Args:
        arrays: Arrays of the scene.
        extent: (n,) maximum absolute position of each variable; used for prismatic joints [m].

    Returns:
        Upper bounds (p + s, n) [m/rad or m/m] for p + s pairs and n variables.
    """
    n = len(extent)
    reach = np.zeros((len(arrays.frame), len(arrays.parent)))  # row of a shape, column of a frame
    for shape, frame in enumerate(arrays.frame):
        node = arrays.node[arrays.root[shape]]
        # Maximum distance of a point of the shape from the origin of frame `at`
        length = float(np.linalg.norm(node[:3]) + node[3])
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
    """Return how much the shapes of each pair can rotate relative to each other per joint motion.

    The bounds are for estimates of accelerations. A revolute joint that carries a prismatic joint
    is counted twice, because the Coriolis acceleration of a sliding point is twice the product of
    the speeds of both joints.

    Args:
        arrays: Arrays of the scene.
        n: Number of variables.

    Returns:
        Upper bounds (p + s, n) [rad/rad] for p + s pairs and n variables; 0 for prismatic joints.
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
    """Convert bounds by moving shape and frame to bounds by pair and variable.

    A frame that moves both shapes of a pair does not contribute to the bounds of the pair.

    Args:
        arrays: Arrays of the scene.
        by_shape: (g, f) bounds for each moving shape and each frame.
        n: Number of variables.

    Returns:
        Bounds (p + s, n) for each pair and each variable.
    """
    a, b = arrays.pairs.T
    one, two = by_shape[a], by_shape[b]
    own = np.where((one > 0.0) != (two > 0.0), np.maximum(one, two), 0.0)
    by_frame = np.concatenate([own, by_shape[arrays.outside[:, 0]]]) * np.abs(arrays.scale)
    by_variable = np.zeros((len(by_frame), n))
    np.add.at(by_variable.T, arrays.variable, by_frame.T)
    return by_variable
