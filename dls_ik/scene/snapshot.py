# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Immutable snapshots of a planning scene, with collision and distance queries.

A pair consists of two shapes. There are p pairs of two moving shapes (of links or attached
objects), followed by s pairs of a moving shape and a standing shape (of an object of the world).
Pairs of links or objects that may touch are not checked and not counted. A configuration q (n,) has
the positions of n joints [rad or m].
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.collision import (
    CHECK_COLLIDING,
    CHECK_FREE,
    CHECK_OPEN,
    check_pairs,
    check_rows,
    count_pairs,
    link_poses,
)
from dls_ik.core.distance_bounds import advance_pairs, block_of_path, bound_pairs
from dls_ik.core.scene_arrays import PackedScene, SceneArrays, pack_nodes, pack_scene
from dls_ik.core.types import Array
from dls_ik.lazy_property import cached_property
from dls_ik.model.rotations import transform
from dls_ik.model.tree import Tree
from dls_ik.scene.exact import PlacedShape, Separation, collide, separation
from dls_ik.scene.pack import (
    LinkFrames,
    MovingShape,
    StandingShape,
    distinct_meshes,
    link_frames,
    pack_shapes,
    pack_trees,
    reach_of_pairs,
    turns_of_pairs,
)
from dls_ik.scene.shape_table import scaled
from dls_ik.scene.shapes import Body, Mesh
from dls_ik.scene.sphere_fit import MAX_LEAVES, WorkBudget, leaves_each
from dls_ik.scene.spheres import WantedTree, fit_trees, sphere_tree
from dls_ik.scene.srdf import Pair, pair_of

Computed = TypeVar("Computed")

MAX_TOUCHING_DISTANCE = 1e-5  # [m] distance up to which shapes on a path count as touching
MAX_SLIDE = 100.0  # [m] maximum absolute position assumed for a prismatic joint without limits
BATCH = 256  # minimum number of configurations for each thread


class ClosestPair(NamedTuple):
    """The two links or objects that are closest to each other, or that overlap most."""

    # [m] distance minus the paddings; negative in a collision, when its magnitude is a lower bound
    # of the penetration depth
    distance: float
    names: Pair  # names of the links or objects
    points: Array  # (2, 3) closest points of both shapes in the root link's frame [m]
    normal: Array  # (3,) unit vector from the first to the second shape


class Contact(NamedTuple):
    """A contact of two shapes at a configuration."""

    names: Pair  # names of the links or objects
    point: Array  # (3,) middle of the closest points, in the root link's frame [m]
    normal: Array  # (3,) unit vector from the first to the second shape
    depth: float  # [m] lower bound on the penetration depth, including padding


class PathContact(NamedTuple):
    """The first contact of two shapes on a straight joint path."""

    time: float  # position of the contact on the path, 0 at the start and 1 at the end
    names: Pair  # names of the links or objects


class PlacedBody(NamedTuple):
    """An object of the world with its pose."""

    body: Body
    T: Array  # (4, 4) T_root_object
    subframes: Mapping[str, Array] = {}  # T_object_subframe (4, 4) by name; never modified


class AttachedBody(NamedTuple):
    """An object attached to a link, with its pose relative to the link."""

    body: Body
    link: str
    T: Array  # (4, 4) T_link_object
    touch_links: frozenset[str] = frozenset()  # links, other than `link`, that it may touch


class _CachedResult(NamedTuple):
    """A result in the cache that snapshots share, and the data from which it was computed."""

    values: tuple[object, ...]  # data that a snapshot compares by value with its own data
    parts: tuple[object, ...]  # data that a snapshot compares by identity with its own data
    result: Any


@dataclass(frozen=True, eq=False)
class SceneSnapshot:
    """Immutable state of a scene: a robot, objects, and which links and objects may touch."""

    tree: Tree
    joint_names: tuple[str, ...]  # (n,) joints whose positions form a configuration q
    links: Mapping[str, Body]  # collision geometry by link
    allowed: Mapping[Pair, bool]  # whether a pair may touch; takes precedence over `passes`
    passes: Mapping[str, bool] = field(default_factory=dict)  # whether a body may touch any other
    values: Mapping[str, float] = field(default_factory=dict)  # joint positions [rad or m] by name
    objects: Mapping[str, PlacedBody] = field(default_factory=dict)
    attached: Mapping[str, AttachedBody] = field(default_factory=dict)
    padding: Mapping[str, float] = field(default_factory=dict)  # padding by link [m]
    scale: Mapping[str, float] = field(default_factory=dict)  # scale factor by link
    frames: Mapping[str, Array] = field(default_factory=dict)  # (4, 4) T_root_frame by name
    exact: bool = True  # if False, pairs that bounding spheres leave undecided count as colliding
    kept: dict[str, _CachedResult] = field(default_factory=dict, repr=False)  # shared cache

    def with_state(
        self, joint_names: tuple[str, ...], values: Mapping[str, float]
    ) -> SceneSnapshot:
        """Return a copy of the snapshot with other joint names and joint positions.

        Args:
            joint_names: (n,) joints whose positions form a configuration q of the copy.
            values: Positions by joint name that replace those of the snapshot [rad or m].
        """
        return replace(self, joint_names=joint_names, values={**self.values, **values})

    def __getstate__(self) -> dict[str, Any]:
        """Return the fields for pickling, with an empty cache."""
        content = {each.name: getattr(self, each.name) for each in fields(self)}
        return {**content, "kept": {}}

    def _cached(
        self,
        name: str,
        values: tuple[object, ...],
        parts: tuple[object, ...],
        make: Callable[[], Computed],
    ) -> Computed:
        """Return a result from the cache that snapshots share; compute it if it is not there.

        The cache has one result of each name. It is used if it was computed from equal data;
        otherwise the new result replaces it.

        Args:
            name: Name of the result.
            values: Data from which the result is computed, compared by value.
            parts: Further data from which the result is computed, compared by identity.
            make: Function that computes the result.
        """
        known = self.kept.get(name)
        if (
            known is None
            or known.values != values
            or len(known.parts) != len(parts)
            or any(a is not b for a, b in zip(known.parts, parts, strict=True))
        ):
            known = self.kept[name] = _CachedResult(
                values, parts, make()
            )  # a single assignment, which is atomic, because threads share the cache
        result: Computed = known.result
        return result

    @cached_property
    def digest(self) -> str:
        """Hexadecimal SHA-256 digest of all data on which the results of queries depend."""
        known = hashlib.sha256(repr((self.joint_names, self.names)).encode())
        for array in self.packed:
            known.update(array.tobytes())
        return known.hexdigest()

    # Pairs

    def may_touch(self, a: str, b: str) -> bool:
        """Return whether the links or objects with the names `a` and `b` may touch.

        The rules are those of MoveIt's AllowedCollisionMatrix. In addition, an attached object may
        touch the link that carries it, its touch links, and other objects attached to this link.
        """
        allowed = self.allowed.get(pair_of(a, b))
        if allowed is None:
            known = [self.passes[name] for name in (a, b) if name in self.passes]
            allowed = bool(known) and all(known)
        for one, other in ((a, b), (b, a)):
            held = self.attached.get(one)
            if held is None:
                continue
            other_held = self.attached.get(other)
            same_link = other_held is not None and other_held.link == held.link
            allowed = allowed or same_link or other == held.link or other in held.touch_links
        return allowed

    @cached_property
    def names(self) -> tuple[Pair, ...]:
        """Names of the links or objects of each of the p + s pairs of shapes that are checked.

        A pair of names occurs several times if a link or object has several shapes.
        """
        moving, standing = self._shapes
        own, outside = self._numbers
        return (
            *(pair_of(moving[a].name, moving[b].name) for a, b in own),
            *(pair_of(moving[a].name, standing[b].name) for a, b in outside),
        )

    def moved_by_tip(self, base: str, tip: str) -> NDArray[np.int64]:
        """Return for each pair (p + s,) whether the pose of a tip determines its distance.

        The flag is 1 if one shape moves with the tip link and the other shape does not move, and
        otherwise 0. All flags are 0 if the base link moves relative to the root link.

        Args:
            base: Link relative to which the pose of the tip is given.
            tip: Tip link.
        """
        links, moving, (own, outside) = self._frames.links, self._shapes[0], self._numbers
        fixed = np.zeros(len(self.names), np.int64)
        if base in links and tip in links and links[base][0] == 0:
            frames = [{moving[a].frame, moving[b].frame} for a, b in own]
            frames += [{moving[a].frame, 0} for a, _ in outside]
            fixed[:] = [each == {0, links[tip][0]} for each in frames]
        return fixed

    @cached_property
    def _frames(self) -> LinkFrames:
        """Moving frames of the robot, with all joints not in `joint_names` at their positions."""
        others = {k: v for k, v in self.values.items() if k not in self.joint_names}
        return self._cached(
            "frames",
            (self.joint_names, others),
            (self.tree,),
            lambda: link_frames(self.tree, self.joint_names, self.tree.values(self.values)),
        )

    def fit_shapes(self, budget: WorkBudget) -> None:
        """Fit spheres to the shapes of all objects that have none yet, within a budget of work.

        Args:
            budget: Budget; names of objects that get coarser spheres are added to `budget.coarse`.
        """
        standing = [
            (name, shape) for name, each in self.objects.items() for shape, _ in each.body.parts
        ]
        carried = [
            (name, shape) for name, each in self.attached.items() for shape, _ in each.body.parts
        ]
        world_leaves = leaves_each(len(distinct_meshes(shape for _, shape in standing)))
        wanted = [
            *(WantedTree(*each, True, world_leaves)
              for each in standing if isinstance(each[1], Mesh)),
            *(WantedTree(*each, isinstance(each[1], Mesh), leaves_each(len(carried)))
              for each in carried),
        ]  # fmt: skip
        fit_trees(wanted, budget)

    @cached_property
    def _shapes(self) -> tuple[list[MovingShape], list[StandingShape]]:
        """Moving shapes of links and attached objects, and standing shapes of world objects."""
        standing = [
            StandingShape(name, shape, each.T @ T)
            for name, each in self.objects.items()
            for shape, T in each.body.parts
        ]
        self.fit_shapes(WorkBudget())  # no effect if all shapes already have spheres
        sizes = dict(self.scale), dict(self.padding)
        parts = self._frames, self.links, *self.attached.values()
        return self._cached("moving", sizes, parts, self._moving_shapes), standing

    def _moving_shapes(self) -> list[MovingShape]:
        """Return the shapes of links and attached objects, with sphere trees and moving frames."""
        moving = []
        carried = [(each.body, each.link, each.T) for each in self.attached.values()]
        links = [(body, name, np.eye(4)) for name, body in self.links.items()]
        max_leaves = leaves_each(sum(len(body.parts) for body, _, _ in carried))
        for body, link, T_link in (*links, *carried):
            frame, T_frame = self._frames.links[link]
            scale, padding = self.scale.get(body.name, 1.0), self.padding.get(body.name, 0.0)
            for shape, T in body.parts:
                is_link = body.name in self.links
                # An attached box or cylinder is fitted fast, and its spheres are rarely used again.
                keep = is_link or isinstance(shape, Mesh)
                T_shape = T_frame @ T_link @ T
                leaves = MAX_LEAVES if is_link else max_leaves
                tree = sphere_tree(shape, keep, leaves)
                spheres = tree.placed(T_shape, scale)
                each = scaled(shape, scale)
                moving.append(MovingShape(body.name, each, spheres, frame, T_shape, padding))
        return moving

    @cached_property
    def _numbers(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Indices of the two shapes of each checked pair.

        The first list has the p pairs of moving shapes, as two indices of moving shapes. The second
        list has the s pairs of a moving and a standing shape, as one index of each kind.
        """
        moving, standing = self._shapes
        touch = cache(self.may_touch)
        own = self._cached(
            "own pairs",
            (dict(self.allowed), dict(self.passes)),
            (moving, *self.attached.values()),
            lambda: [
                (i, j)
                for i, a in enumerate(moving)
                for j, b in enumerate(moving[:i])
                if a.name != b.name and not touch(a.name, b.name)
            ],
        )
        outside = [
            (i, j)
            for i, a in enumerate(moving)
            for j, b in enumerate(standing)
            if not touch(a.name, b.name)
        ]
        return own, outside

    @cached_property
    def arrays(self) -> SceneArrays:
        """Arrays that describe all shapes and checked pairs for the collision kernels."""
        moving, _ = self._shapes
        trees = self._cached(
            "trees", (), (moving,), lambda: pack_trees([each.spheres for each in moving])
        )
        return pack_shapes(self._frames, *self._shapes, *self._numbers, trees)

    @cached_property
    def pair_keys(self) -> tuple[Hashable, ...]:
        """Keys (p + s,) that identify equal pairs in different snapshots.

        Two pairs have equal keys only if their shapes are equal, and move equally with the joints.
        """
        (moving, standing), (own, outside) = self._shapes, self._numbers
        one = self._cached("keys", (), (moving,), lambda: self._moving_keys(moving))
        rows = zip(self.arrays.kind, self.arrays.size, self.arrays.place, strict=True)
        two: list[Hashable] = []
        for each, parts in zip(standing, rows, strict=True):
            key = b"".join([each.name.encode(), *(part.tobytes() for part in parts)])
            two.append((key, each.shape) if isinstance(each.shape, Mesh) else key)
        return (
            *((one[a], one[b]) for a, b in own),
            *((one[a], two[b]) for a, b in outside),
        )

    @property
    def frames_key(self) -> bytes:
        """SHA-256 digest of the joint names and of the kinematics of all moving frames."""
        frames = self._frames
        lists = frames.parent, frames.variable, frames.prismatic, frames.scale, frames.offset
        content = repr((self.joint_names, lists)).encode() + np.array(frames.fixed).tobytes()
        return hashlib.sha256(content).digest()

    def _moving_keys(self, moving: list[MovingShape]) -> list[bytes]:
        """Return for each moving shape a digest of its name, spheres, padding and kinematics."""
        frames_key, keys = self.frames_key, []
        for each in moving:
            key = hashlib.sha256(frames_key + repr((each.name, each.frame, each.padding)).encode())
            key.update(each.spheres.child.tobytes())
            key.update(each.spheres.node.tobytes())
            keys.append(key.digest())
        return keys

    @cached_property
    def packed(self) -> PackedScene:
        """All arrays of shapes and pairs, packed for kernels by :func:`pack_scene`."""
        arrays = self.arrays
        trees = arrays.child, arrays.node, arrays.hull, arrays.ball
        nodes = self._cached("nodes", (), trees, lambda: pack_nodes(arrays))
        return pack_scene(arrays, nodes)

    @cached_property
    def leverage(self) -> tuple[Array, Array]:
        """Upper bounds on the effect of each joint on each pair, two arrays (p + s, n).

        An entry of the first array is the maximum change of the distance of a pair per motion of a
        joint [m/rad or m/m]. An entry of the second array is the maximum relative rotation of the
        shapes of a pair per motion of a joint; see :func:`turns_of_pairs`. Prismatic joints are
        assumed to be within their limits, or within +-100 m if they have no limits.
        """
        return reach_of_pairs(self.arrays, self._extent), turns_of_pairs(
            self.arrays, len(self._extent)
        )

    @cached_property
    def _extent(self) -> Array:
        """Maximum absolute position (n,) of each joint within its limits [rad or m].

        The maximum is 100 for a joint without limits.
        """
        limits = [self.tree.joint[name] for name in self.joint_names]
        extent = np.array([max(abs(each.lower), abs(each.upper)) for each in limits])
        return np.where(np.isfinite(extent), extent, MAX_SLIDE)

    @cached_property
    def second_first(self) -> NDArray[np.bool_]:
        """Flags (p + s,) that are true if kernels use the shapes in the reverse order of `names`.

        Kernels use a standing shape as the first shape of a pair.
        """
        moving, standing = self._shapes
        own, outside = self._numbers
        first = [moving[a].name for a, _ in own] + [standing[b].name for _, b in outside]
        return np.array([a != b for a, (b, _) in zip(first, self.names, strict=True)], bool)

    # Queries, whose configurations the callers must validate

    def states(self, q: Array) -> NDArray[np.int64]:
        """Check configurations by bounding spheres only.

        Args:
            q: (b, n) configurations.

        Returns:
            (b, 2): For each configuration its state, `CHECK_FREE`, `CHECK_COLLIDING` or
            `CHECK_OPEN` (undecided), and the index of a pair with this state.
        """
        out = np.empty((len(q), 2), np.int64)
        threads = 1 if len(q) < 2 * BATCH else min(os.cpu_count() or 1, len(q) // BATCH)
        if threads == 1:
            check_rows(self.packed, q, out)
            return out
        parts = np.array_split(np.arange(len(q)), 4 * threads)
        with ThreadPoolExecutor(threads) as pool:
            for _ in pool.map(
                lambda i: check_rows(self.packed, q[i], out[i[0] : i[-1] + 1]), parts
            ):
                pass
        return out

    def in_collision(self, q: Array) -> NDArray[np.bool_]:
        """Return (b,) whether each of the configurations q (b, n) is in collision."""
        states = self.states(q)[:, 0]
        colliding: NDArray[np.bool_] = states == CHECK_COLLIDING
        for i in np.flatnonzero(states == CHECK_OPEN):
            colliding[i] = next(self._touching(q[i]), None) is not None
        return colliding

    def in_collision_by_library(self, q: Array) -> bool:
        """Return whether configuration q (n,) is in collision, by exact checks of all pairs.

        Bounding spheres are not used; the result is for comparison with :meth:`in_collision`.
        """
        placed = _Placement(self, q)
        return any(collide(*placed.pair(k), margin) for k, margin in enumerate(self._margins))

    def colliding_pair(self, q: Array) -> Pair | None:
        """Return the names of a pair that collides at configuration q (n,), or None."""
        out = np.empty((1, 2), np.int64)
        check_rows(self.packed, q[None], out)
        state, pair = out[0].tolist()
        if state == CHECK_OPEN:
            pair = next(self._touching(q), -1)
        return None if pair < 0 else self.names[pair]

    def first_touching(self, q: Array) -> int | None:
        """Return the smallest index of a pair that collides at configuration q (n,), or None."""
        return next(self._touching(q), None)

    def touching_pairs(self, q: Array) -> set[Pair]:
        """Return the names of all pairs that collide at configuration q (n,)."""
        return {self.names[k] for k in self._touching(q)}

    def _touching(self, q: Array) -> Iterator[int]:
        """Yield the indices of the pairs that collide at configuration q (n,), in ascending order.

        If `exact` is False, pairs that bounding spheres leave undecided are included.
        """
        states = np.empty(len(self.names), np.int64)
        check_pairs(self.packed, q, states)
        placed = _Placement(self, q)
        for k in np.flatnonzero(states != CHECK_FREE).tolist():
            is_certain = states[k] == CHECK_COLLIDING or not self.exact
            if is_certain or collide(*placed.pair(k), self._margins[k]):
                yield k

    @cached_property
    def _margins(self) -> list[float]:
        """For each pair (p + s,) the sum of the paddings of both shapes [m]."""
        moving, (own, outside) = self._shapes[0], self._numbers
        return [
            *(moving[a].padding + moving[b].padding for a, b in own),
            *(moving[a].padding for a, _ in outside),
        ]

    def contacts(self, q: Array) -> tuple[Contact, ...]:
        """Return the contacts of all pairs that collide at configuration q (n,), deepest first."""
        placed = _Placement(self, q)
        found = []
        for k in self._touching(q):
            contact = placed.separation(k)
            depth = max(-contact.distance, 0.0)
            found.append(Contact(self.names[k], contact.points.mean(0), contact.normal, depth))
        return tuple(sorted(found, key=lambda contact: -contact.depth))

    def clearance(self, q: Array, within: float = np.inf) -> dict[Pair, float]:
        """Return the distances [m] of pairs of links or objects at configuration q (n,).

        The result is a mapping from the names of a pair to its distance, in ascending order of the
        distances. It contains only the pairs that are closer than `within` [m].
        """
        placed, found = _Placement(self, q), dict[Pair, float]()
        for k, bound in self._by_bound(q, within if np.isfinite(within) else -np.inf):
            name = self.names[k]
            if bound < min(within, found.get(name, np.inf)):
                d = placed.separation(k).distance
                if d < within:
                    found[name] = min(d, found.get(name, np.inf))
        return dict(sorted(found.items(), key=lambda item: item[1]))

    def distance(self, q: Array) -> ClosestPair | None:
        """Return the closest pair at configuration q (n,); None if there is no checked pair."""
        placed, best = _Placement(self, q), None
        for k, bound in self._by_bound(q, closest=True):
            if best is not None and bound >= best.distance:
                break
            exact = placed.separation(k)
            if best is None or exact.distance < best.distance:
                best = ClosestPair(exact.distance, self.names[k], exact.points, exact.normal)
        return best

    def _by_bound(
        self, q: Array, within: float = np.inf, closest: bool = False
    ) -> list[tuple[int, float]]:
        """Return all pairs in ascending order of a lower bound on their distances.

        Args:
            q: (n,) configuration.
            within: Distance up to which the bounds are tight [m].
            closest: Whether only the bound of the closest pair needs to be tight.

        Returns:
            Index and lower bound [m] of each pair.
        """
        bounds = np.empty((len(self.names), 2))
        bound_pairs(self.packed, q, within, closest, bounds)
        order = np.argsort(bounds[:, 0], kind="stable")
        return [(int(k), float(bounds[k, 0])) for k in order]

    def _pair_speeds(self, q0: Array, q1: Array) -> Array:
        """Return for each pair an upper bound on the change of its distance along a path.

        The path is the straight joint path from q0 (n,) to q1 (n,).

        Returns:
            Bounds (p + s,) [m]; equal to bounds on the speed if the path takes one unit of time.
        """
        extent = np.maximum(abs(q0), abs(q1))
        inside = (extent <= self._extent).all() or not self.arrays.prismatic.any()
        reach = self.leverage[0] if inside else reach_of_pairs(self.arrays, extent)
        speed: Array = reach @ abs(q1 - q0)
        return speed

    def path_in_collision(self, q0: Array, q1: Array) -> PathContact | None:
        """Return the first contact on the straight joint path from q0 (n,) to q1 (n,).

        The result is None if there is no contact. The method is conservative advancement: the
        distance of a pair, divided by the maximum speed at which its shapes approach each other, is
        a time during which they cannot touch; the pair is checked again after this time. Shapes
        closer than 1e-5 m count as touching. If `exact` is False, a pair counts as touching as soon
        as the lower bound on its distance does not exclude a contact.
        """
        speed, count, ends = self._pair_speeds(q0, q1), len(self.names), (q0, q1)
        if (
            block_of_path(
                self.packed, ends, speed, np.full(count, MAX_TOUCHING_DISTANCE), np.empty(1)
            )
            < 0
        ):
            return None
        time = np.zeros(count)
        while True:
            k = advance_pairs(self.packed, ends, speed, MAX_TOUCHING_DISTANCE, time)
            if k < 0:
                return None
            now = float(time[k])
            if not self.exact:
                return PathContact(now, self.names[k])
            d = _Placement(self, q0 + now * (q1 - q0)).separation(k).distance
            if d <= MAX_TOUCHING_DISTANCE:
                return PathContact(now, self.names[k])
            time[k] = now + d / speed[k] if speed[k] > 0.0 else 1.0


def use_scene_kernels(snapshot: SceneSnapshot) -> None:
    """Run each kernel of the queries once, so that all these kernels are compiled or loaded."""
    q, count = np.zeros((1, len(snapshot.joint_names))), len(snapshot.names)
    packed, numbers = snapshot.packed, np.zeros(count, np.int64)
    snapshot.states(q)
    check_pairs(packed, q[0], numbers)
    count_pairs(packed, q, np.zeros(count, np.int64), np.zeros((1, 2), np.int64))
    link_poses(packed, q[0], np.empty((len(snapshot.arrays.parent), 3, 4)))
    bound_pairs(packed, q[0], np.inf, True, np.empty((count, 2)))
    ends, rates = (q[0], q[0] + 1.0), np.ones(count)
    advance_pairs(packed, ends, rates, 1e-5, np.zeros(count))
    block_of_path(packed, ends, rates, np.zeros(count), np.zeros(1))


class _Placement:
    """Shapes of a snapshot with their poses at a configuration q (n,), for exact queries."""

    def __init__(self, snapshot: SceneSnapshot, q: Array) -> None:
        self._snapshot = snapshot
        self._poses = np.empty((len(snapshot.arrays.parent), 3, 4))
        link_poses(snapshot.packed, q, self._poses)

    def _moving(self, number: int) -> PlacedShape:
        """Return the moving shape with index `number`, and its pose in the root link's frame."""
        each = self._snapshot._shapes[0][number]
        pose = self._poses[each.frame]
        return PlacedShape(each.shape, transform(pose[:, :3], pose[:, 3]) @ each.T)

    def _standing(self, number: int) -> PlacedShape:
        """Return the standing shape with index `number`, and its pose in the root link's frame."""
        each = self._snapshot._shapes[1][number]
        return PlacedShape(each.shape, each.T)

    def pair(self, k: int) -> tuple[PlacedShape, PlacedShape]:
        """Return the two shapes of the pair with index k, in the order of the names of the pair."""
        own, outside = self._snapshot._numbers
        if k < len(own):
            numbers = own[k]
            shapes = self._moving(numbers[0]), self._moving(numbers[1])
            first = self._snapshot._shapes[0][numbers[0]].name
        else:
            numbers = outside[k - len(own)]
            shapes = self._moving(numbers[0]), self._standing(numbers[1])
            first = self._snapshot._shapes[0][numbers[0]].name
        return shapes if first == self._snapshot.names[k][0] else (shapes[1], shapes[0])

    def separation(self, k: int) -> Separation:
        """Return the exact separation of the pair with index k.

        The paddings of both shapes are subtracted from the distance.
        """
        found = separation(*self.pair(k))
        return found._replace(distance=found.distance - self._snapshot._margins[k])
