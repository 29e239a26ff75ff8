# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Geometry of collision checks in arrays for kernels, and forward kinematics of its frames.

Shapes are sphere trees. Each node of a tree represents a piece of a solid and has two spheres with
the same centre: the outer sphere contains the piece, and the inner sphere is inside the solid. If
the centre is outside the solid, the inner radius is -inf. The pieces of the two children of a node
together are the piece of the node. A node may also have balls, whose convex hull contains the
piece.
"""

from collections.abc import Sequence
from typing import NamedTuple, get_type_hints

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.hulls import HullScratch, hull_scratch
from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.kinematics import compose, move_joint
from dls_ik.core.types import Array, Indices

# Kinds of objects; KIND_CAVITY is the outside of a ball.
KIND_SPHERE, KIND_BOX, KIND_CYLINDER, KIND_CAPSULE, KIND_PLANE, KIND_TREE, KIND_CAVITY = range(7)
OUTER, INNER = 3, 4  # columns of the radii in a row of nodes
STACK = 512  # maximum number of pending nodes; larger than the sum of the depths of two trees


class SceneArrays(NamedTuple):
    """Geometry for collision checks: f frames, g moving shapes, w objects, and pairs to check.

    Frame 0 is the frame of the root link. Every other frame is connected by a joint to a parent
    frame with a smaller index. The joint rotates the frame about its own z axis or moves the frame
    along this axis, like the elements of :class:`dls_ik.core.types.Chain`. Moving shapes are fixed
    to frames; objects do not move. The p pairs of moving shapes are numbered first, then the s
    pairs of a moving shape and an object.
    """

    parent: Indices  # (f,) parent of each frame
    variable: Indices  # (f,) index of the joint variable that drives the frame
    prismatic: Indices  # (f,) 1 if the frame slides along z, 0 if it rotates about z
    fixed: Array  # (f, 3, 4) pose of the frame in its parent frame at joint value 0
    scale: Array  # (f,) joint value = scale * joint variable + offset
    offset: Array  # (f,) [rad or m]
    frame: Indices  # (g,) frame of each moving shape
    root: Indices  # (g,) root node of each moving shape; its nodes are given in its frame
    padding: Array  # (g,) length added to the radii of each moving shape [m]
    kind: Indices  # (w,) kind of each object: KIND_SPHERE to KIND_CAVITY
    tree: Indices  # (w,) root node of an object of KIND_TREE; its nodes are given in its frame
    size: Array  # (w, 3) radius, half edges, or radius and half length of a primitive [m]
    place: Array  # (w, 3, 4) transform from the frame of the root link to that of the object
    child: Indices  # (N,) index of the first of the two consecutive children; -1 for a leaf
    node: Array  # (N, 5) centre, outer and inner radius [m]
    hull: Indices  # (N, 2) index of the first ball, and number of balls, of each node
    ball: Array  # (M, 4) centre and radius [m]; the balls of one node have equal radii
    pairs: Indices  # (p, 2) pairs of moving shapes
    outside: Indices  # (s, 2) pairs of a moving shape and an object


class CollisionScratch(NamedTuple):
    """Scratch arrays of one thread for collision checks of a scene."""

    pose: Array  # (f, 3, 4) poses of the frames, in the frame of the root link
    centre: Array  # (g, 3) centres of the root spheres, in the frame of the root link [m]
    T: Array  # (3, 4) transform between two frames
    stack: Indices  # (STACK, 2) pending pairs of nodes
    bound: Array  # (STACK,) lower bounds on the distances of the nodes on the stack [m]
    found: Indices  # (1,) index of the pair that decided the last check, -1 for none
    hulls: HullScratch


# Packing ------------------------------------------------------------------------------------------

# A scene as four arrays: floats and integers of frames, objects and pairs; floats and integers of
# the nodes of all sphere trees. Kernels with few arguments are called faster, and a change of the
# objects of a scene leaves the many nodes of the robot's trees as they are.
PackedScene = tuple[Array, Indices, Array, Indices]
NODE_FIELDS = ("child", "node", "hull", "ball")
SCENE_FIELD_IS_WHOLE = {name: hint == Indices for name, hint in get_type_hints(SceneArrays).items()}
NUM_SCENE_SIZES = 5  # number of sizes at the start of the integers: f, g, w, p, s


def pack_scene(scene: SceneArrays, nodes: tuple[Array, Indices] | None = None) -> PackedScene:
    """Pack a scene into four arrays for :func:`unpack_scene`.

    Args:
        scene: Scene.
        nodes: Result of :func:`pack_nodes` for the scene; None to compute it.
    """
    lengths = scene.parent, scene.frame, scene.kind, scene.pairs, scene.outside
    names = [name for name in SceneArrays._fields if name not in NODE_FIELDS]
    numbers, integers = _joined(scene, names)
    integers = np.concatenate([np.array([len(each) for each in lengths]), integers])
    return numbers, integers, *(pack_nodes(scene) if nodes is None else nodes)


def pack_nodes(scene: SceneArrays) -> tuple[Array, Indices]:
    """Pack the nodes of all sphere trees of a scene into an array of floats and one of integers."""
    return _joined(scene, NODE_FIELDS)


def _joined(scene: SceneArrays, names: Sequence[str]) -> tuple[Array, Indices]:
    """Return the named fields of floats as one array, and the named fields of integers as one."""
    parts: tuple[list[NDArray[np.generic]], ...] = ([np.zeros(0)], [np.zeros(0, np.int64)])
    for name in names:
        parts[SCENE_FIELD_IS_WHOLE[name]].append(np.asarray(getattr(scene, name)).ravel())
    numbers, integers = map(np.concatenate, parts)
    return numbers.astype(np.float64, copy=False), integers.astype(np.int64, copy=False)


@allocating
def unpack_scene(
    numbers: Array, integers: Indices, node_numbers: Array, node_integers: Indices
) -> SceneArrays:
    """Return a scene whose arrays are views of the four arrays of :func:`pack_scene`."""
    f, g, w, p, s = integers[0], integers[1], integers[2], integers[3], integers[4]
    whole, others = integers[NUM_SCENE_SIZES:], numbers
    geometry, objects = whole[3 * f :], whole[3 * f + 2 * g :]
    pairs, shapes = objects[2 * w :], others[14 * f :]
    places = shapes[g:]
    count = node_integers.shape[0] // 3
    balls = (node_numbers.shape[0] - 5 * count) // 4
    return SceneArrays(
        parent=whole[:f],
        variable=whole[f : 2 * f],
        prismatic=whole[2 * f : 3 * f],
        fixed=others[: 12 * f].reshape(f, 3, 4),
        scale=others[12 * f : 13 * f],
        offset=others[13 * f : 14 * f],
        frame=geometry[:g],
        root=geometry[g : 2 * g],
        padding=shapes[:g],
        kind=objects[:w],
        tree=objects[w : 2 * w],
        size=places[: 3 * w].reshape(w, 3),
        place=places[3 * w : 15 * w].reshape(w, 3, 4),
        child=node_integers[:count],
        node=node_numbers[: 5 * count].reshape(count, 5),
        hull=node_integers[count : 3 * count].reshape(count, 2),
        ball=node_numbers[5 * count : 5 * count + 4 * balls].reshape(balls, 4),
        pairs=pairs[: 2 * p].reshape(p, 2),
        outside=pairs[2 * p : 2 * p + 2 * s].reshape(s, 2),
    )


@allocating
def collision_scratch(scene: SceneArrays) -> CollisionScratch:
    """Allocate the scratch arrays of one thread for a scene."""
    return CollisionScratch(
        pose=np.zeros((scene.parent.shape[0], 3, 4)),
        centre=np.zeros((scene.frame.shape[0], 3)),
        T=np.zeros((3, 4)),
        stack=np.zeros((STACK, 2), np.int64),
        bound=np.zeros(STACK),
        found=np.zeros(1, np.int64),
        hulls=hull_scratch(),
    )


# Kinematics ---------------------------------------------------------------------------------------


@kernel
def place_links(scene: SceneArrays, q: Array, work: CollisionScratch) -> None:
    """Compute the poses of all frames, and the centres of all shapes fixed to links.

    Both are in the frame of the root link. The centre of a shape is the centre of the sphere that
    encloses the shape.

    Args:
        scene: The frames and shapes.
        q: (n,) joint positions [rad or m].
        work: The poses are written to `pose`, the centres [m] to `centre`.
    """
    place_frames(scene, q, work.pose)
    for k in range(scene.frame.shape[0]):
        T, node = work.pose[scene.frame[k]], scene.node[scene.root[k]]
        for i in range(3):
            work.centre[k, i] = T[i, 0] * node[0] + T[i, 1] * node[1] + T[i, 2] * node[2] + T[i, 3]


@kernel
def place_frames(scene: SceneArrays, q: Array, pose: Array) -> None:
    """Compute the poses of all frames in the frame of the root link.

    Args:
        scene: The f frames, of which the first is that of the root link.
        q: (n,) joint positions [rad or m].
        pose: (f, 3, 4) poses without their last rows, written.
    """
    for i in range(3):
        for j in range(4):
            pose[0, i, j] = 1.0 if i == j else 0.0
    for k in range(1, scene.parent.shape[0]):
        T, before, fixed = pose[k], pose[scene.parent[k]], scene.fixed[k]
        value = scene.scale[k] * q[scene.variable[k]] + scene.offset[k]
        compose(before, fixed, T)
        move_joint(scene.prismatic[k], value, T)


@force_inline
def relate(A: Array, B: Array, out: Array) -> None:
    """Write the pose of frame B relative to frame A to `out` (3, 4).

    A (3, 4) and B (3, 4) are the poses of the two frames in a third frame.
    """
    x, y, z = B[0, 3] - A[0, 3], B[1, 3] - A[1, 3], B[2, 3] - A[2, 3]
    for i in range(3):
        a, b, c = A[0, i], A[1, i], A[2, i]
        for j in range(3):
            out[i, j] = a * B[0, j] + b * B[1, j] + c * B[2, j]
        out[i, 3] = a * x + b * y + c * z
