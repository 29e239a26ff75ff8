# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Certificates: proofs that no pair of shapes comes closer than its minimum distance on a path.

A path is divided into intervals. During an interval, the centre c of a sphere-tree node moves along
a curve in the frame of the other shape of the pair. The distance of this curve from its chord (the
segment between its ends) has a known bound. The distance f from a convex shape is a convex function
of the point, so that f(c) >= f(c_i) + g_i . (c - c_i), with c_i an end of the chord and g_i the
gradient at c_i. The minimum of this expression over the chord, minus the bound on the distance of
the curve from the chord and minus the radii, is a lower bound on the distance of the spheres during
the whole interval. The lower bound is exact to first order: it does not decrease with the length
of a motion along a surface. If the lower bound does not decide an interval, but the distances at
the ends are large enough, the interval is halved.

If the spheres of two leaves do not decide, the convex hulls of the leaves are compared. Along a
unit vector that is fixed in the frame of one shape, the distance of the hulls is the minimum over
the corners of the other shape, and each corner moves along a curve with the same bound.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.collision import push_children
from dls_ik.core.distance_bounds import HULL_VISITS
from dls_ik.core.hulls import HullScratch, hull_distance, keeps_along
from dls_ik.core.jit import allocating, kernel
from dls_ik.core.proximity import (
    DISTANCE_ROUNDING,
    MOST_NODES,
    parts_of_pair,
    place_pair,
    refresh_bounds,
)
from dls_ik.core.scene_arrays import (
    KIND_CAVITY,
    OUTER,
    STACK,
    CollisionScratch,
    PackedScene,
    SceneArrays,
    collision_scratch,
    place_frames,
    unpack_scene,
)
from dls_ik.core.shape_distance import apply, distance_and_normal, from_node
from dls_ik.core.types import Array, Indices

# States of a pair in an interval of a path. APART: proven to be at least the minimum distance apart
# throughout; CLOSER: closer than the minimum distance at one end of the interval.
APART, UNDECIDED, CLOSER = range(3)
MAX_INTERVAL_HALVINGS = 14  # maximum number of halvings of an interval


# One pair -----------------------------------------------------------------------------------------


class PairMotion(NamedTuple):
    """Motion of the second shape of a pair relative to the first one in an interval of a path."""

    T0: Array  # (3, 4) transform of :func:`place_pair` at the start of the interval
    T1: Array  # (3, 4) transform at the end of the interval
    bend: float  # maximum distance of the curve on which a point moves from its chord [m]


@kernel
def interval_state(
    scene: SceneArrays,
    k: int,
    motion: PairMotion,
    least: float,
    work: CollisionScratch,
    visits: Indices,
) -> int:
    """Check whether pair k stays at least a minimum distance apart in an interval of a path.

    Args:
        scene: The shapes and pairs.
        k: Index of the pair.
        motion: Motion of the pair in the interval.
        least: Minimum distance [m].
        work: Scratch arrays.
        visits: (1,) number of node pairs visited so far, read and written.

    Returns:
        APART, UNDECIDED, or CLOSER if the distance is too small at an end of the interval.
    """
    node, child, stack, hulls = scene.node, scene.child, work.stack, work.hulls
    T0, T1, bend = motion.T0, motion.T1, motion.bend
    item, one, two, padding = parts_of_pair(scene, k)
    is_tree = one >= 0
    kind = -1 if is_tree else scene.kind[item]
    stack[0, 0], stack[0, 1] = one, two
    pending = 1
    while pending > 0:
        pending -= 1
        one, two = stack[pending, 0], stack[pending, 1]
        visits[0] += 1
        x0, y0, z0 = apply(T0, node[two])
        x1, y1, z1 = apply(T1, node[two])
        kept = node[two, OUTER] + padding + least
        if is_tree:
            d0, u0, v0, w0 = from_node(node[one], x0, y0, z0)
            d1, u1, v1, w1 = from_node(node[one], x1, y1, z1)
            kept += node[one, OUTER]
        else:
            size = scene.size[item]
            d0, u0, v0, w0 = distance_and_normal(kind, size, x0, y0, z0)
            d1, u1, v1, w1 = distance_and_normal(kind, size, x1, y1, z1)
        x, y, z = x1 - x0, y1 - y0, z1 - z0
        if (
            kind == KIND_CAVITY
        ):  # the distance is concave, and therefore smallest at an end of the chord
            lower = min(d0, d1)
        else:
            lower = max(
                min(d0, d0 + u0 * x + v0 * y + w0 * z), min(d1, d1 - u1 * x - v1 * y - w1 * z)
            )
        if lower - bend >= kept:
            continue
        has_hulls = is_tree and scene.hull[one, 1] > 0 and scene.hull[two, 1] > 0
        if has_hulls and _keep_along(scene, one, two, motion, padding + least + bend, hulls):
            continue
        is_leaf = child[two] < 0 and (not is_tree or child[one] < 0)
        if is_leaf and has_hulls:
            visits[0] += HULL_VISITS
            state = leaf_state(
                scene, one, two, motion, padding + least, (d0 < kept, d1 < kept), hulls
            )
            if state == APART:
                continue
            return state
        if is_leaf:
            return CLOSER if min(d0, d1) < kept else UNDECIDED
        if visits[0] > MOST_NODES or pending + 2 > STACK:
            return UNDECIDED
        if is_tree:
            pending = push_children(node, child, stack, one, two, pending)
        else:
            stack[pending, 1], stack[pending + 1, 1] = child[two], child[two] + 1
            pending += 2
    return APART


@kernel
def leaf_state(
    scene: SceneArrays,
    one: int,
    two: int,
    motion: PairMotion,
    kept: float,
    is_open: tuple[bool, bool],
    hulls: HullScratch,
) -> int:
    """Check whether the convex hulls of two leaves stay a minimum distance apart in an interval.

    Args:
        scene: The shapes and pairs.
        one, two: Indices of the leaves, `two` on the moving shape.
        motion: Motion of the pair in the interval.
        kept: Minimum distance of the hulls [m].
        is_open: For each end of the interval, whether the spheres are closer than `kept`.
        hulls: Scratch arrays.

    Returns:
        APART, UNDECIDED or CLOSER, as in :func:`interval_state`.
    """
    hull, ball, T0, T1 = scene.hull, scene.ball, motion.T0, motion.T1
    for end in range(2):
        d, _ = hull_distance(hull, ball, one, two, T0 if end == 0 else T1, np.inf, hulls)
        if d < kept and is_open[end]:
            return CLOSER
        if _keep_along(scene, one, two, motion, kept + motion.bend, hulls):
            return APART
    return UNDECIDED


@kernel
def _keep_along(
    scene: SceneArrays, one: int, two: int, motion: PairMotion, kept: float, hulls: HullScratch
) -> bool:
    """Return whether the hulls of two leaves are at least `kept` [m] apart along one vector.

    The condition is checked at both ends of an interval, along the unit vector ``hulls.normal``.

    Args:
        scene: The shapes and pairs.
        one, two: Indices of the leaves.
        motion: Motion of the pair in the interval.
        kept: Minimum distance [m].
        hulls: Holds the unit vector.
    """
    hull, ball = scene.hull, scene.ball
    if not keeps_along(hull, ball, one, two, motion.T0, kept, hulls):
        return False
    return keeps_along(hull, ball, one, two, motion.T1, kept, hulls)


# A path -------------------------------------------------------------------------------------------


class StopPhases(NamedTuple):
    """Motion of all joints until they stop: m phases of constant jerk for each of n joints.

    The fields are those of `dls_ik.servo.motion.StopPath`.
    """

    q: Array  # (n,) joint positions at the start [rad or m]
    v: Array  # (n,) joint velocities at the start [rad/s or m/s]
    durations: Array  # (m, n) durations of the phases [s]
    accelerations: Array  # (m, n) accelerations at the starts of the phases [rad/s^2 or m/s^2]
    jerks: Array  # (m, n) jerks during the phases [rad/s^3 or m/s^3]
    lower: Array  # (n,) positions are clipped to `lower` and `upper` against rounding [rad or m]
    upper: Array  # (n,) [rad or m]


class StopBounds(NamedTuple):
    """Bounds on the motion of a stop."""

    duration: float  # duration of the stop [s]
    is_straight: bool  # whether the path of the stop is straight in joint space
    acceleration: Array  # (n,) bounds on the absolute accelerations [rad/s^2 or m/s^2]


@kernel
def stop_at(stop: StopPhases, t: float, out: Array) -> None:
    """Write the joint positions (n,) [rad or m] at the time t [s] after the start of a stop."""
    q, v, lower, upper = stop.q, stop.v, stop.lower, stop.upper
    for j in range(q.shape[0]):
        left, x, rate = t, q[j], v[j]
        for i in range(stop.durations.shape[0]):
            s = min(max(left, 0.0), stop.durations[i, j])
            a, jerk = stop.accelerations[i, j], stop.jerks[i, j]
            x += s * (rate + s * (0.5 * a + s * jerk / 6.0))
            rate += s * (a + 0.5 * s * jerk)
            left -= stop.durations[i, j]
        out[j] = min(max(x, lower[j]), upper[j])


@kernel
def _measure_stop(stop: StopPhases, path: Array, acceleration: Array) -> tuple[float, bool]:
    """Write bounds on the path length and on the acceleration of each joint during a stop.

    Args:
        stop: Phases of the stop.
        path: (n,) bounds on the path lengths, written [rad or m].
        acceleration: (n,) bounds on the absolute accelerations, written [rad/s^2 or m/s^2].

    Returns:
        The duration of the stop [s], and whether its path is straight in joint space, which is the
        case if all joints brake in one phase of equal duration.
    """
    m, longest, shortest = stop.durations.shape[0], 0.0, np.inf
    for j in range(path.shape[0]):
        rate, total = stop.v[j], 0.0
        path[j], acceleration[j] = 0.0, 0.0
        for i in range(m):
            s, a, jerk = stop.durations[i, j], stop.accelerations[i, j], stop.jerks[i, j]
            if s > 0.0:
                path[j] += s * (abs(rate) + s * (0.5 * abs(a) + s * abs(jerk) / 6.0))
                acceleration[j] = max(acceleration[j], max(abs(a), abs(a + s * jerk)))
                rate += s * (a + 0.5 * s * jerk)
                total += s
        longest = max(longest, total)
        if path[j] > 0.0:
            shortest = min(shortest, total)
    return longest, m == 1 and longest - shortest <= 1e-9 * longest


@allocating
def certify(
    scene: PackedScene,
    reach: tuple[Array, Array],
    least: Array,
    known: tuple[Array, Array],
    q0: Array,
    stop_path: tuple[Array, Array, Array, Array, Array, Array, Array],
) -> int:
    """Find a pair that may come closer than its minimum distance during a step and a stop.

    The step is straight in joint space; the stop follows the step. The p pairs of two moving shapes
    are numbered first, then the s pairs of a moving shape and an object.

    Args:
        scene: Scene, from :func:`dls_ik.core.scene_arrays.pack_scene`.
        reach: Two arrays (p + s, n): bounds on the displacement [m/rad or m/m] and the rotation
            [rad/rad] of one shape of a pair relative to the other, per unit motion of a joint.
        least: (p + s,) minimum distance of each pair [m].
        known: (p + s,) lower bounds on the distances of the pairs [m] and the joint positions (n,)
            at which they hold; read and written.
        q0: (n,) joint positions at the start of the step [rad or m].
        stop_path: Fields of the :class:`StopPhases` of the stop, which starts at the end of the
            step.

    Returns:
        The index of the pair; -1 if all pairs are proven to stay at least `least` apart.
    """
    arrays = unpack_scene(*scene)
    stop = StopPhases(*stop_path)
    q1 = stop.q
    n, pairs = q0.shape[0], least.shape[0]
    refresh_bounds(reach[0], q0, known[0], known[1])
    # List the pairs that the lower bounds on their distances leave undecided.
    path, acceleration = np.empty(n), np.empty(n)
    duration, is_straight = _measure_stop(stop, path, acceleration)
    for j in range(n):
        path[j] += abs(q1[j] - q0[j])
    count = 0
    some = np.empty(pairs, np.int64)
    for k in range(pairs):
        farthest = 0.0
        for j in range(n):
            farthest += reach[0][k, j] * path[j]
        if known[0][k] - farthest < least[k] - DISTANCE_ROUNDING and farthest > 0.0:
            some[count] = k
            count += 1
    if count == 0:
        return -1
    bounds = StopBounds(duration, is_straight, acceleration)
    return _certify_pairs(arrays, reach, least, q0, stop, bounds, some[:count])


@allocating
def _certify_pairs(
    scene: SceneArrays,
    reach: tuple[Array, Array],
    least: Array,
    q0: Array,
    stop: StopPhases,
    bounds: StopBounds,
    some: Indices,
) -> int:
    """Find a pair among `some` that may come closer than its minimum distance, as in `certify`.

    The step and the stop are intervals, which are halved where pairs are undecided.

    Args:
        scene: The shapes and pairs.
        reach: As in :func:`certify`.
        least: (p + s,) minimum distance of each pair [m].
        q0: (n,) joint positions at the start of the step [rad or m].
        stop: Phases of the stop, which starts at the end of the step.
        bounds: Bounds on the motion of the stop.
        some: (count,) indices of the pairs to check.

    Returns:
        The index of the pair; -1 if all pairs of `some` are proven to stay apart.
    """
    n, f, q1, work = q0.shape[0], scene.parent.shape[0], stop.q, collision_scratch(scene)
    pose = work.pose  # poses of all frames at the start of the interval
    place_frames(scene, q0, pose)
    # The stack has an entry for each pending interval, with the next interval on top: the time at
    # the end of the interval, the number of halvings, the joint positions and the poses of the
    # frames at the end, and the undecided pairs. The step ends at time 0.
    time, depth = np.empty(MAX_INTERVAL_HALVINGS + 3), np.empty(MAX_INTERVAL_HALVINGS + 3, np.int64)
    values, poses = (
        np.empty((MAX_INTERVAL_HALVINGS + 3, n)),
        np.empty((MAX_INTERVAL_HALVINGS + 3, f, 3, 4)),
    )
    listed, counts = (
        np.empty((MAX_INTERVAL_HALVINGS + 3, some.shape[0]), np.int64),
        np.empty(MAX_INTERVAL_HALVINGS + 3, np.int64),
    )
    now, before, T0, T1 = -1.0, q0.copy(), np.empty((3, 4)), np.empty((3, 4))
    visits, dq, bent = np.zeros(1, np.int64), np.empty(n), np.zeros(n)
    top = -1
    if bounds.duration > 0.0:
        top += 1
        time[top] = bounds.duration
        stop_at(stop, bounds.duration, values[top])
    top += 1
    time[top] = 0.0
    for j in range(n):
        values[top, j] = q1[j]
    for i in range(top + 1):
        depth[i], counts[i] = 0, some.shape[0]
        place_frames(scene, values[i], poses[i])
        for p in range(some.shape[0]):
            listed[i, p] = some[p]
    while top >= 0:
        span = time[top] - now
        is_curved = now >= 0.0 and not bounds.is_straight
        for j in range(n):
            dq[j] = abs(values[top, j] - before[j])
            bent[j] = bounds.acceleration[j] * span * span / 8.0 if is_curved else 0.0
        failed = 0
        for p in range(counts[top]):
            k = listed[top, p]
            moved, turned, aside = 0.0, 0.0, 0.0
            for j in range(n):
                moved += reach[0][k, j] * dq[j]
                turned += reach[1][k, j] * dq[j]
                aside += reach[0][k, j] * bent[j]
            place_pair(scene, k, pose, T0)
            place_pair(scene, k, poses[top], T1)
            motion = PairMotion(T0, T1, 0.125 * moved * turned + aside)
            state = interval_state(scene, k, motion, least[k] - DISTANCE_ROUNDING, work, visits)
            if state == CLOSER:
                return k
            if state == UNDECIDED:
                if depth[top] >= MAX_INTERVAL_HALVINGS - 1 or visits[0] > MOST_NODES:
                    return k
                listed[top, failed] = k
                failed += 1
        if failed == 0:
            now = time[top]
            for j in range(n):
                before[j] = values[top, j]
            for i in range(f):
                for r in range(3):
                    for c in range(4):
                        pose[i, r, c] = poses[top, i, r, c]
            top -= 1
            continue
        # Halve the interval for the undecided pairs.
        depth[top] += 1
        counts[top] = failed
        middle = now + 0.5 * span
        if now < 0.0:
            for j in range(n):
                values[top + 1, j] = 0.5 * (before[j] + values[top, j])
        else:
            stop_at(stop, middle, values[top + 1])
        top += 1
        time[top], depth[top], counts[top] = middle, depth[top - 1], failed
        for p in range(failed):
            listed[top, p] = listed[top - 1, p]
        place_frames(scene, values[top], poses[top])
    return -1
