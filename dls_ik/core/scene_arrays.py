# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Geometry of collision checks, packed for kernels, and its forward kinematics.

Each tree node represents a piece of a solid. The outer sphere, with radius `outer`, contains the
piece; the inner sphere, with radius `inner` and the same centre, is inside the solid. A centre
outside the solid has the inner radius -inf. The pieces of the two children of a node make up the
piece of the node. The convex hull of the balls of a node, if the node has balls, also contains its
piece.
"""

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
STACK = 512  # maximum number of pending nodes; larger than the depth of two trees together


class SceneArrays(NamedTuple):
    """Moving geometry on f frames, objects of the world, and the pairs to check.

    Frame 0 is that of the root link. A joint connects each other frame to an earlier parent frame,
    and moves it about or along its own z axis, like the elements of
    :class:`dls_ik.core.types.Chain`.
    """

    parent: Indices  # (f,) parent of each frame
    variable: Indices  # (f,) joint variable that drives the frame
    prismatic: Indices  # (f,) 1 for sliding along z, 0 for turning about z
    fixed: Array  # (f, 3, 4) transform from the parent to the frame at value 0
    scale: Array  # (f,) factor of the joint variable
    offset: Array  # (f,) added to the scaled joint variable [rad or m]
    frame: Indices  # (g,) frame of each moving shape
    root: Indices  # (g,) root node of each moving shape, in coordinates of the frame
    padding: Array  # (g,) added to the radii of each moving shape [m]
    kind: Indices  # (w,) kind of each object: KIND_SPHERE to KIND_CAVITY
    tree: Indices  # (w,) root node of a KIND_TREE, in coordinates of the object
    size: Array  # (w, 3) radius, half edges, or radius and half length [m]
    place: Array  # (w, 3, 4) transform from the root link to the object
    child: Indices  # (N,) first of two consecutive children; -1 for a leaf
    node: Array  # (N, 5) centre, outer and inner radius [m]
    hull: Indices  # (N, 2) first ball and number of balls of a node
    ball: Array  # (M, 4) centre and radius [m], equal radii in each node
    pairs: Indices  # (p, 2) pairs of moving shapes
    outside: Indices  # (s, 2) pairs of a moving shape and an object; numbered after `pairs`


class CollisionScratch(NamedTuple):
    """Scratch arrays of one thread."""

    pose: Array  # (f, 3, 4) poses of the frames, in the frame of the root link
    centre: Array  # (g, 3) centres of the root spheres, in the frame of the root link [m]
    T: Array  # (3, 4) transform between two frames
    stack: Indices  # (STACK, 2) nodes
    bound: Array  # (STACK,) lower bounds on the distances of the nodes on the stack [m]
    found: Indices  # (1,) pair that decided the last check
    hulls: HullScratch


# Packing ------------------------------------------------------------------------------------------

SCENE_FIELD_IS_WHOLE = tuple(hint == Indices for hint in get_type_hints(SceneArrays).values())
NUM_SCENE_SIZES = 7  # number of sizes at the start of the integers: f, g, w, N, M, p, s


def pack_scene(scene: SceneArrays) -> tuple[Array, Indices]:
    """Pack a scene into two arrays, numbers and integers, for :func:`unpack_scene`."""
    lengths = (scene.parent, scene.frame, scene.kind, scene.child, scene.ball, scene.pairs,
               scene.outside)  # fmt: skip
    parts: tuple[list[NDArray[np.generic]], ...] = ([], [np.array([len(e) for e in lengths])])
    for array, is_whole in zip(scene, SCENE_FIELD_IS_WHOLE, strict=True):
        parts[is_whole].append(np.asarray(array).ravel())
    numbers = np.concatenate([np.zeros(0), *parts[0]]).astype(np.float64)
    return numbers, np.concatenate(parts[1]).astype(np.int64)


@allocating
def unpack_scene(numbers: Array, integers: Indices) -> SceneArrays:
    """Return the arrays of a scene as views of the two arrays of :func:`pack_scene`."""
    f, g, w, count, balls = integers[0], integers[1], integers[2], integers[3], integers[4]
    p, s = integers[5], integers[6]
    whole, others = integers[NUM_SCENE_SIZES:], numbers
    geometry, objects = whole[3 * f :], whole[3 * f + 2 * g :]
    hulls = objects[2 * w + count :]
    rest = hulls[2 * count :]
    shapes = others[14 * f :]
    places = shapes[g:]
    nodes = places[15 * w :]
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
        child=objects[2 * w : 2 * w + count],
        node=nodes[: 5 * count].reshape(count, 5),
        hull=hulls[: 2 * count].reshape(count, 2),
        ball=nodes[5 * count : 5 * count + 4 * balls].reshape(balls, 4),
        pairs=rest[: 2 * p].reshape(p, 2),
        outside=rest[2 * p : 2 * p + 2 * s].reshape(s, 2),
    )


@allocating
def collision_scratch(scene: SceneArrays) -> CollisionScratch:
    """Allocate the scratch arrays of one thread."""
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
    """Write the poses of all frames and the centres of all moving shapes at q (n,) to `work`."""
    place_frames(scene, q, work.pose)
    for k in range(scene.frame.shape[0]):
        T, node = work.pose[scene.frame[k]], scene.node[scene.root[k]]
        for i in range(3):
            work.centre[k, i] = T[i, 0] * node[0] + T[i, 1] * node[1] + T[i, 2] * node[2] + T[i, 3]


@kernel
def place_frames(scene: SceneArrays, q: Array, pose: Array) -> None:
    """Write the poses (f, 3, 4) of all frames at q (n,)."""
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
    """Write the pose of frame B (3, 4) in frame A (3, 4), both given in a third frame."""
    x, y, z = B[0, 3] - A[0, 3], B[1, 3] - A[1, 3], B[2, 3] - A[2, 3]
    for i in range(3):
        a, b, c = A[0, i], A[1, i], A[2, i]
        for j in range(3):
            out[i, j] = a * B[0, j] + b * B[1, j] + c * B[2, j]
        out[i, 3] = a * x + b * y + c * z
