# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Search for pairs of links that need no collision check, for robots without SRDF.

The search uses random configurations, as MoveIt's Setup Assistant does.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dls_ik.core.collision import CHECK_COLLIDING, CHECK_OPEN, check_pairs, count_pairs
from dls_ik.core.types import WIDEST, Array
from dls_ik.model.kept_files import read_kept, write_kept
from dls_ik.model.tree import Tree
from dls_ik.scene.shapes import Body
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.spheres import FIT_SOURCES, kept_folder, shape_digest
from dls_ik.scene.srdf import Pair, pair_of

# reasons in SRDF
REASON_ADJACENT, REASON_DEFAULT, REASON_ALWAYS, REASON_NEVER = (
    "Adjacent",
    "Default",
    "Always",
    "Never",
)
NUM_PAIR_SAMPLES = 10_000  # number of random configurations
# approximate maximum number of exact checks of a pair; others are extrapolated
MAX_EXACT_CHECKS = 500
# minimum fraction of colliding configurations for the reason REASON_ALWAYS
ALWAYS_COLLIDING_SHARE = 0.95
PAIR_SOURCES = (  # source files that determine the result; a change invalidates the disk cache
    *FIT_SOURCES,
    "core/collision.py",
    "core/scene_arrays.py",
    "model/tree.py",
    "scene/exact.py",
    "scene/pack.py",
    "scene/pairs.py",
    "scene/snapshot.py",
)


def default_pairs(tree: Tree, links: Mapping[str, Body], exact: bool = True) -> dict[Pair, str]:
    """Return the pairs of links that need no collision check, with the reason for each pair.

    The reason is ``Adjacent`` if a joint connects the links, ``Default`` if the links collide with
    all joints at 0, ``Always`` if they collide in almost all of 10 000 random configurations, and
    ``Never`` if they collide in none of these configurations. The result is cached on disk.

    Args:
        tree: Robot.
        links: Collision geometry by link.
        exact: Whether the library coal checks configurations in which bounding spheres do not show
            whether a pair collides. If False, a pair with such a configuration cannot have the
            reason ``Never``.
    """
    folder = kept_folder()
    path = (
        None
        if folder is None
        else os.path.join(folder, f"pairs.{_digest(tree, links, exact)[:24]}")
    )
    content = None if path is None else read_kept(path, PAIR_SOURCES)
    if content is not None:
        return {pair_of(a, b): reason for a, b, reason in json.loads(content)}
    found = dict(_find(tree, links, exact))
    if path is not None:
        rows = [(*pair, reason) for pair, reason in found.items()]
        write_kept(path, PAIR_SOURCES, json.dumps(rows).encode())
    return found


def _find(tree: Tree, links: Mapping[str, Body], exact: bool) -> Iterator[tuple[Pair, str]]:
    """Yield the pairs of links that need no collision check, with the reason for each pair.

    The arguments are those of :func:`default_pairs`.
    """
    adjacent = set(_adjacent(tree, links))
    yield from ((pair, REASON_ADJACENT) for pair in sorted(adjacent))
    masters = {mimic.master for mimic in tree.mimic_of.values()}
    joint_names = tuple(joint.name for joint in tree.joints if joint.name in masters)
    q = _samples(tree, joint_names)
    allowed = dict.fromkeys(adjacent, True)
    shares = _shares(SceneSnapshot(tree, joint_names, links, allowed, exact=exact), q)
    for pair, (at_start, share) in shares.items():
        if at_start:
            yield pair, REASON_DEFAULT
        elif share == 0.0:
            yield pair, REASON_NEVER
        elif share >= ALWAYS_COLLIDING_SHARE:
            yield pair, REASON_ALWAYS


def _adjacent(tree: Tree, links: Mapping[str, Body]) -> Iterator[Pair]:
    """Yield the pairs of links with geometry that a joint connects.

    Two links also count as connected if only links without geometry are between them.

    Args:
        tree: Robot.
        links: Collision geometry by link.
    """
    beside: dict[str, set[str]] = {link: set() for link in tree.links}
    for joint in tree.joints:
        beside[joint.parent].add(joint.child)
        beside[joint.child].add(joint.parent)
    for link in tree.links:
        if link not in links:
            near = beside.pop(link)
            for each in near:
                beside[each] |= near - {each}
                beside[each].discard(link)
    for link, near in beside.items():
        yield from (pair_of(link, each) for each in near)


def _samples(tree: Tree, joint_names: Sequence[str]) -> Array:
    """Return random configurations (b, n) within the joint limits [rad or m].

    In row 0, all joints are at 0, or at the limit closest to 0.

    Args:
        tree: Robot.
        joint_names: (n,) joints.
    """
    joints = [tree.joint[name] for name in joint_names]
    lower = np.array([each.lower if each.lower > -WIDEST else -np.pi for each in joints])
    upper = np.array([each.upper if each.upper < WIDEST else np.pi for each in joints])
    q = np.random.default_rng(0).uniform(
        lower, np.maximum(lower, upper), (NUM_PAIR_SAMPLES, len(joints))
    )
    q[0] = [tree.values()[name] for name in joint_names]
    return q


def _shares(snapshot: SceneSnapshot, q: Array) -> dict[Pair, tuple[bool, float]]:
    """Return for each pair of links whether it collides at q[0], and the share of collisions in q.

    The share is the number of configurations in which the pair collides, divided by b. Bounding
    spheres prove a collision, or that there is none, in most configurations; the others are
    undecided. If the snapshot is `exact`, the library coal checks a sample of the undecided
    configurations of each pair for which they decide whether the pair never or always collides. If
    the snapshot is not `exact`, only proven collisions are counted, except that a pair with
    undecided configurations counts as colliding in at least one configuration.

    Args:
        snapshot: Scene without objects.
        q: (b, n) configurations [rad or m].
    """
    pairs = sorted(set(snapshot.names))
    number = {pair: i for i, pair in enumerate(pairs)}
    group = np.array([number[name] for name in snapshot.names], np.int64)
    counts = np.zeros((len(pairs), 2), np.int64)
    count_pairs(snapshot.packed, q, group, counts)
    at_start = snapshot.touching_pairs(q[0]) if snapshot.exact else _certain_pairs(snapshot, q[0])
    shares = {}
    for pair, (certain, unsure) in zip(pairs, counts.tolist(), strict=True):
        if not snapshot.exact:
            certain = max(certain, min(unsure, 1))
        elif unsure and (
            not certain or certain < ALWAYS_COLLIDING_SHARE * len(q) <= certain + unsure
        ):
            only = {each: each != pair for each in pairs}
            alone = replace(snapshot, allowed={**snapshot.allowed, **only})
            rows = np.flatnonzero(alone.states(q)[:, 0] == CHECK_OPEN)
            some = rows[:: 1 + len(rows) // MAX_EXACT_CHECKS]
            certain += alone.in_collision(q[some]).sum() * len(rows) / len(some)
        shares[pair] = pair in at_start, certain / len(q)
    return shares


def _certain_pairs(snapshot: SceneSnapshot, q: Array) -> set[Pair]:
    """Return the pairs for which bounding spheres prove a collision at configuration q (n,)."""
    states = np.empty(len(snapshot.names), np.int64)
    check_pairs(snapshot.packed, q, states)
    return {snapshot.names[k] for k in np.flatnonzero(states == CHECK_COLLIDING)}


def _digest(tree: Tree, links: Mapping[str, Body], exact: bool) -> str:
    """Return a hexadecimal digest of all arguments of :func:`default_pairs`."""
    digest = hashlib.sha256(tree.digest + bytes([exact]))
    for name, body in links.items():
        digest.update(name.encode())
        for shape, T in body.parts:
            digest.update(shape_digest(shape).encode() + T.tobytes())
    return digest.hexdigest()
