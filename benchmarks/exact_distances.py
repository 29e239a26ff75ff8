# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Exact distances of configurations for the judges, independent of the package.

A cheap lower bound rules out most pairs of a batch of configurations: spheres cover one shape, and
the signed distance of their centres to the other shape is computed. The library coal computes the
distances of the remaining pairs.
"""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import coal
import numpy as np
from numba import njit

from dls_ik.core.types import Array, Indices
from dls_ik.scene.shapes import Box, Capsule, Cylinder, Shape, Sphere

TOLERANCE, ITERATIONS = 1e-9, 1000  # options of coal: tolerance [m], maximum iterations
SPHERE, BOX, CYLINDER, CAPSULE = range(4)
MAX_CELLS = 8  # spheres along one axis of a shape
FIXED, REVOLUTE, PRISMATIC = range(3)
JOINT_KINDS = {"fixed": FIXED, "prismatic": PRISMATIC}  # other joints turn


class Kinematics(NamedTuple):
    """Joints of a URDF from the root outward; joint j moves link j + 1."""

    parent: Indices  # (m,) link that carries the joint
    origin: Array  # (m, 3, 4) T_parent_joint
    axis: Array  # (m, 3)
    kind: Indices  # (m,) FIXED, REVOLUTE or PRISMATIC
    column: Indices  # (m,) column of the configurations; -1: the joint is fixed at `offset`
    factor: Array  # (m,) factor of a mimic joint, else 1
    offset: Array  # (m,) [rad or m]


class ShapeSet(NamedTuple):
    """Shapes on links, and the spheres that cover each of them."""

    frame: Indices  # (s,) link
    place: Array  # (s, 3, 4) T_link_shape
    kind: Indices  # (s,) SPHERE, BOX, CYLINDER or CAPSULE
    size: Array  # (s, 3) [m]: radius; half edges; radius and half the length
    radius: Array  # (s,) radius of the ball around the shape [m]
    first: Indices  # (s + 1,) first sphere of each shape
    spheres: Array  # (k, 4) centre in the frame of the shape, radius [m]


# Kernels


@njit(cache=True)
def place_links(model: Kinematics, q: Array, out: Array) -> None:
    """Write the poses (m + 1, 3, 4) of all links at joint values q (n,)."""
    out[0] = 0.0
    for i in range(3):
        out[0, i, i] = 1.0
    R = np.empty((3, 3))
    for j in range(len(model.parent)):
        above, origin, here = out[model.parent[j]], model.origin[j], out[j + 1]
        for r in range(3):
            for c in range(4):
                total = above[r, 3] if c == 3 else 0.0
                for k in range(3):
                    total += above[r, k] * origin[k, c]
                here[r, c] = total
        value = model.offset[j]
        if model.column[j] >= 0:
            value += model.factor[j] * q[model.column[j]]
        x, y, z = model.axis[j]
        if model.kind[j] == PRISMATIC:
            for r in range(3):
                here[r, 3] += value * (here[r, 0] * x + here[r, 1] * y + here[r, 2] * z)
        elif model.kind[j] == REVOLUTE:
            c, s = np.cos(value), np.sin(value)
            t = 1.0 - c
            R[0, 0], R[0, 1], R[0, 2] = t * x * x + c, t * x * y - s * z, t * x * z + s * y
            R[1, 0], R[1, 1], R[1, 2] = t * x * y + s * z, t * y * y + c, t * y * z - s * x
            R[2, 0], R[2, 1], R[2, 2] = t * x * z - s * y, t * y * z + s * x, t * z * z + c
            for r in range(3):
                a, b, d = here[r, 0], here[r, 1], here[r, 2]
                for k in range(3):
                    here[r, k] = a * R[0, k] + b * R[1, k] + d * R[2, k]


@njit(cache=True)
def link_poses(model: Kinematics, q: Array, link: int, out: Array) -> None:
    """Write the poses (k, 3, 4) of one link at joint values q (k, n)."""
    frames = np.empty((len(model.parent) + 1, 3, 4))
    for row in range(len(q)):
        place_links(model, q[row], frames)
        out[row] = frames[link]


@njit(cache=True)
def signed_distance(kind: int, size: Array, x: float, y: float, z: float) -> float:
    """Return the distance of a point to a shape in its frame [m]; negative inside."""
    if kind == SPHERE:
        return np.sqrt(x * x + y * y + z * z) - size[0]
    if kind == CAPSULE:
        z = max(abs(z) - size[1], 0.0)
        return np.sqrt(x * x + y * y + z * z) - size[0]
    if kind == CYLINDER:
        u, v, w = np.sqrt(x * x + y * y) - size[0], abs(z) - size[1], -1.0
    else:
        u, v, w = abs(x) - size[0], abs(y) - size[1], abs(z) - size[2]
    inside = min(max(u, v) if kind == CYLINDER else max(u, max(v, w)), 0.0)
    u, v, w = max(u, 0.0), max(v, 0.0), max(w, 0.0)
    return inside + np.sqrt(u * u + v * v + w * w)


@njit(cache=True)
def open_pairs(
    model: Kinematics, shapes: ShapeSet, pairs: Indices, limits: Array, q: Array, out: Indices
) -> int:
    """List the pairs whose bound is below a limit: rows and pairs (k, 2); return their number.

    Args:
        limits: (p,) distances [m].
        q: (b, n) configurations.
    """
    count, n = 0, len(shapes.frame)
    frames = np.empty((len(model.parent) + 1, 3, 4))
    placed = np.empty((n, 3, 4))
    for row in range(len(q)):
        place_links(model, q[row], frames)
        for i in range(n):
            T, local = frames[shapes.frame[i]], shapes.place[i]
            for r in range(3):
                for c in range(4):
                    total = T[r, 3] if c == 3 else 0.0
                    for k in range(3):
                        total += T[r, k] * local[k, c]
                    placed[i, r, c] = total
        for p in range(len(pairs)):
            a, b = placed[pairs[p, 0]], placed[pairs[p, 1]]
            one, other, limit = pairs[p, 0], pairs[p, 1], limits[p]
            dx, dy, dz = a[0, 3] - b[0, 3], a[1, 3] - b[1, 3], a[2, 3] - b[2, 3]
            reach = limit + shapes.radius[one] + shapes.radius[other]
            if dx * dx + dy * dy + dz * dz > reach * reach:
                continue
            for k in range(shapes.first[one], shapes.first[one + 1]):
                u, v, w, r = shapes.spheres[k]
                x = dx + a[0, 0] * u + a[0, 1] * v + a[0, 2] * w
                y = dy + a[1, 0] * u + a[1, 1] * v + a[1, 2] * w
                z = dz + a[2, 0] * u + a[2, 1] * v + a[2, 2] * w
                d = signed_distance(
                    shapes.kind[other],
                    shapes.size[other],
                    b[0, 0] * x + b[1, 0] * y + b[2, 0] * z,
                    b[0, 1] * x + b[1, 1] * y + b[2, 1] * z,
                    b[0, 2] * x + b[1, 2] * y + b[2, 2] * z,
                )
                if d - r < limit:
                    if count < len(out):
                        out[count, 0], out[count, 1] = row, p
                    count += 1
                    break
    return count


# Models


def rotation(roll: float, pitch: float, yaw: float) -> Array:
    """Return the rotation (3, 3) of a URDF's rpy."""
    (cr, cp, cy), (sr, sp, sy) = np.cos([roll, pitch, yaw]), np.sin([roll, pitch, yaw])
    Rx = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    Ry = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    Rz = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return Rz @ Ry @ Rx


@dataclass(frozen=True)
class LinkTree:
    """Links and joints of a URDF, read from its text."""

    links: tuple[str, ...]  # ordered from the root outward
    joints: tuple[str, ...]  # joint j moves link j + 1
    model: Kinematics  # no columns: every joint is at 0
    mimic: tuple[tuple[str, float, float], ...]  # (m,) master, factor and offset; itself, 1, 0

    def for_joints(self, names: Iterable[str], values: Mapping[str, float]) -> Kinematics:
        """Return the kinematics for configurations (n,) of some joints.

        Args:
            values: Positions of all other joints [rad or m].
        """
        columns = {name: k for k, name in enumerate(names)}
        column, offset = np.full(len(self.joints), -1), np.zeros(len(self.joints))
        factor = np.ones(len(self.joints))
        for j, (master, scale, shift) in enumerate(self.mimic):
            factor[j], offset[j] = scale, shift
            column[j] = columns.get(master, -1)
            if column[j] < 0:
                offset[j] += scale * values.get(master, 0.0)
        return self.model._replace(column=column, factor=factor, offset=offset)


@lru_cache(maxsize=64)
def link_tree(urdf: str) -> LinkTree:
    """Return the links and joints in the text of a URDF."""
    root = ET.fromstring(urdf)
    below: dict[str, list[Any]] = {}
    for joint in root.findall("joint"):
        below.setdefault(joint.find("parent").get("link"), []).append(joint)  # type: ignore[union-attr, arg-type]
    children = {j.find("child").get("link") for each in below.values() for j in each}
    links = [name for each in root.findall("link") if (name := each.get("name")) not in children]
    joints: list[Any] = []
    for link in links:  # grows meanwhile
        for joint in below.get(str(link), ()):
            joints.append(joint)
            links.append(joint.find("child").get("link"))
    parent = np.array([links.index(j.find("parent").get("link")) for j in joints])
    origin, axis = np.zeros((len(joints), 3, 4)), np.zeros((len(joints), 3))
    kind, mimic = np.full(len(joints), REVOLUTE), []
    for j, joint in enumerate(joints):
        given = joint.find("origin")
        xyz, rpy = (_numbers(given, name, "0 0 0") for name in ("xyz", "rpy"))
        origin[j] = np.column_stack([rotation(*rpy), xyz])
        axis[j] = _numbers(joint.find("axis"), "xyz", "1 0 0")
        axis[j] /= np.linalg.norm(axis[j])
        kind[j] = JOINT_KINDS.get(joint.get("type"), REVOLUTE)
        of = joint.find("mimic")
        same = (joint.get("name"), 1.0, 0.0)
        mimic.append(
            same
            if of is None
            else (of.get("joint"), float(of.get("multiplier", 1)), float(of.get("offset", 0)))
        )
    nothing, zero = np.full(len(joints), -1), np.zeros(len(joints))
    model = Kinematics(parent, origin, axis, kind, nothing, zero + 1.0, zero)
    names = tuple(joint.get("name") for joint in joints)
    return LinkTree(tuple(map(str, links)), names, model, tuple(mimic))


def _numbers(element: Any, name: str, default: str) -> list[float]:
    text = default if element is None else element.get(name, default)
    return [float(word) for word in text.split()]


class PlacedPart(NamedTuple):
    """Shape on a link, with the name of its link or object."""

    name: str
    link: int
    shape: Shape
    T: Array  # (4, 4) T_link_shape


def pack_parts(parts: Iterable[PlacedPart]) -> ShapeSet:
    """Pack shapes for the kernels.

    Raises:
        TypeError: If a shape is not a box, sphere, cylinder or capsule.
    """
    listed = list(parts)
    covers = [_cover(each.shape) for each in listed]
    return ShapeSet(
        np.array([each.link for each in listed]),
        np.array([each.T[:3] for each in listed]).reshape(-1, 3, 4),
        np.array([cover[0] for cover in covers]),
        np.array([cover[1] for cover in covers]).reshape(-1, 3),
        np.array([cover[2] for cover in covers]),
        np.cumsum([0, *(len(cover[3]) for cover in covers)]),
        np.concatenate([np.zeros((0, 4)), *(cover[3] for cover in covers)]),
    )


@lru_cache(maxsize=4096)
def _cover(shape: Shape) -> tuple[int, Array, float, Array]:
    """Return kind, size (3,) and bounding radius of a shape, and spheres (k, 4) that cover it."""
    match shape:
        case Sphere(radius=r):
            return SPHERE, np.array([r, 0.0, 0.0]), r, np.array([[0.0, 0.0, 0.0, r]])
        case Box(size=size):
            cell = max(float(size.min()), float(size.max()) / MAX_CELLS)
            counts = np.ceil(size / cell).astype(int)
            steps = [(np.arange(n) + 0.5) / n - 0.5 for n in counts]
            centres = np.stack(np.meshgrid(*steps, indexing="ij"), -1).reshape(-1, 3) * size
            r = 0.5 * float(np.linalg.norm(size / counts))
            ball = 0.5 * float(np.linalg.norm(size))
            return BOX, 0.5 * size, ball, np.insert(centres, 3, r, axis=1)
        case Cylinder(radius=r, length=length) | Capsule(radius=r, length=length):
            count = int(np.clip(np.ceil(length / (0.5 * r)), 1, 2 * MAX_CELLS))
            z = ((np.arange(count) + 0.5) / count - 0.5) * length
            spheres = np.zeros((count, 4))
            spheres[:, 2], spheres[:, 3] = z, np.hypot(r, 0.5 * length / count)
            is_round = isinstance(shape, Capsule)
            ball = 0.5 * length + r if is_round else float(np.hypot(r, 0.5 * length))
            if is_round:
                ends = [[0.0, 0.0, side * 0.5 * length, r] for side in (-1.0, 1.0)]
                spheres = np.vstack([spheres, ends])
            return CAPSULE if is_round else CYLINDER, np.array([r, length / 2, 0]), ball, spheres
    raise TypeError(f"the judge knows boxes, spheres, cylinders and capsules, not {shape!r}")


@lru_cache(maxsize=4096)
def _geometry(shape: Shape) -> Any:
    match shape:
        case Box(size=size):
            return coal.Box(*size.tolist())
        case Sphere(radius=r):
            return coal.Sphere(r)
        case Cylinder(radius=r, length=length):
            return coal.Cylinder(r, length)
        case Capsule(radius=r, length=length):
            return coal.Capsule(r, length)
    raise TypeError(f"the judge knows boxes, spheres, cylinders and capsules, not {shape!r}")


class World:
    """Shapes of a robot and the objects around it, between two changes of the scene.

    Args:
        kinematics: Kinematics of the joints of the configurations.
        parts: Shapes of links and objects; link 0 carries the objects of the world.
        pairs: (p, 2) indices of parts that must keep their distance.
    """

    def __init__(self, kinematics: Kinematics, parts: list[PlacedPart], pairs: Indices) -> None:
        self.kinematics, self.parts, self.pairs = kinematics, parts, pairs
        self._shapes = pack_parts(parts)
        self._frames = np.empty((len(kinematics.parent) + 1, 3, 4))
        self._request = coal.DistanceRequest()
        self._request.gjk_tolerance = TOLERANCE
        self._request.gjk_max_iterations = ITERATIONS

    def name(self, pair: int) -> tuple[str, str]:
        """Return the names of the links or objects of a pair."""
        a, b = self.pairs[pair].tolist()
        return self.parts[a].name, self.parts[b].name

    def near(self, q: Array, limits: Array) -> list[tuple[int, int]]:
        """Return rows of q (b, n) and pairs whose distances may be below their limits (p,) [m]."""
        if not len(self.pairs) or not len(q):
            return []
        found = np.empty((max(256, 4 * len(q)), 2), np.int64)
        while True:
            count = open_pairs(self.kinematics, self._shapes, self.pairs, limits, q, found)
            if count <= len(found):
                return [(row, pair) for row, pair in found[:count].tolist()]
            found = np.empty((count, 2), np.int64)

    def distance(self, q: Array, pair: int) -> float:
        """Return the exact distance of a pair at q (n,) [m]; negative in collision."""
        place_links(self.kinematics, q, self._frames)
        a, b = (self.parts[k] for k in self.pairs[pair].tolist())
        placed = []
        for part in (a, b):
            T = self._frames[part.link]
            placed.append(
                coal.Transform3s(T[:, :3] @ part.T[:3, :3], T[:, :3] @ part.T[:3, 3] + T[:, 3])
            )
        result = coal.DistanceResult()
        shapes = _geometry(a.shape), _geometry(b.shape)
        return float(
            coal.distance(shapes[0], placed[0], shapes[1], placed[1], self._request, result)
        )

    def least(self, q: Array, limits: Array) -> dict[int, float]:
        """Return the smallest exact distances over configurations (b, n), below limits (p,) [m]."""
        found: dict[int, float] = {}
        for row, pair in self.near(q, limits):
            d = self.distance(q[row], pair)
            if d < min(limits[pair], found.get(pair, np.inf)):
                found[pair] = d
        return found
