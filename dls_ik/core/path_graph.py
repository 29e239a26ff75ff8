# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Graph of candidate configurations along a path of poses, and the best sequence through the graph.

Layer i of the graph contains the candidates of pose i. A motion leads from a candidate to a
candidate of the next non-empty layer. The motion is continuous if no joint moves farther than its
maximum step and the motion is not blocked. All other motions are reconfigurations.
"""

from math import floor, sqrt
from typing import NamedTuple

import numpy as np

from dls_ik.core.jit import allocating, force_inline, kernel
from dls_ik.core.types import Array, Flags, Indices

KEY_BITS = 21  # bits of a motion key that store the number of a candidate within its layer
HASH_FACTOR, HASH_SHIFT = 0x9E3779B97F4A7C1, 29  # constants of the hash function of grid cells


class PathGraph(NamedTuple):
    """Candidates of m poses for n joints, and the rule that defines continuous motions.

    The candidates of all layers are stored one layer after the other.
    """

    q: Array  # (N, n) candidates [rad or m]
    first: Indices  # (m + 1,) index of the first candidate of each layer; the last entry is N
    order: Indices  # (N,) candidates of each layer in ascending order of the joint `key`
    key: int  # index of the joint by which `order` is sorted, whose `turn` is 0; -1 for none
    step: Array  # (n,) maximum step of each joint [rad or m]
    weights: Array  # (n,) weights of the squared joint differences in the joint metric
    turn: Array  # (n,) 2 pi for joints whose position may be shifted by full turns, else 0 [rad]
    blocked: Indices  # sorted keys of motions that are not continuous, see :func:`motion_key`


class Sequences(NamedTuple):
    """For each candidate, the best sequence of candidates that leads to it from the first layer."""

    jumps: Indices  # (N,) number of reconfigurations
    length: Array  # (N,) sum of the lengths of all motions, in the joint metric
    parent: Indices  # (N,) index of the candidate before, -1 in the first layer that is not empty
    is_jump: Flags  # (N,) whether the motion from the parent is a reconfiguration


@force_inline
def motion_key(layer: int, parent: int, child: int) -> int:
    """Return the number that identifies a motion.

    Args:
        layer: Number of the layer of the child.
        parent: Number of the parent within its layer.
        child: Number of the child within its layer.
    """
    return (layer << (2 * KEY_BITS)) | (parent << KEY_BITS) | child


@force_inline
def joint_change(change: float, turn: float) -> float:
    """Return a joint change, shifted by multiples of `turn` to the smallest absolute value.

    If `turn` is 0, the change is not shifted.
    """
    return change if turn == 0.0 else change - turn * floor(change / turn + 0.5)


@kernel
def _is_blocked(blocked: Indices, key: int) -> bool:
    """Return whether the sorted array `blocked` has an entry `key`."""
    low, high = 0, blocked.shape[0]
    while low < high:
        middle = (low + high) // 2
        if blocked[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low < blocked.shape[0] and blocked[low] == key


@kernel
def _first_at_least(graph: PathGraph, start: int, stop: int, value: float) -> int:
    """Return the first position in ``order[start:stop]`` whose key joint is at least `value`."""
    low, high = start, stop
    while low < high:
        middle = (low + high) // 2
        if graph.q[graph.order[middle], graph.key] < value:
            low = middle + 1
        else:
            high = middle
    return low


@kernel
def motion_length(graph: PathGraph, a: int, b: int, limit: float) -> float:
    """Return the length of the motion from candidate a to candidate b in the joint metric.

    The result is inf if a joint moves farther than `limit` times its maximum step.
    """
    total = 0.0
    for j in range(graph.step.shape[0]):
        change = joint_change(graph.q[b, j] - graph.q[a, j], graph.turn[j])
        if abs(change) > limit * graph.step[j]:
            return np.inf
        total += graph.weights[j] * change * change
    return sqrt(total)


@allocating
def find_sequences(graph: PathGraph, initial: Array) -> Sequences:
    """Find the best sequence to each candidate by dynamic programming.

    The best sequence has the minimum number of reconfigurations and, among those with this number,
    the minimum length.

    Args:
        graph: Candidates.
        initial: (k,) lengths of the motions to the k candidates of the first layer that is not
            empty, which are added to the lengths of all sequences.
    """
    total, layers = graph.q.shape[0], graph.first.shape[0] - 1
    jumps, length = np.zeros(total, np.int64), np.zeros(total)
    parent, is_jump = np.full(total, -1), np.zeros(total, np.bool_)
    found = Sequences(jumps, length, parent, is_jump)
    before = -1  # last layer that is not empty
    for i in range(layers):
        start, stop = graph.first[i], graph.first[i + 1]
        if start == stop:
            continue
        if before < 0:
            for b in range(start, stop):
                length[b] = initial[b - start]
            before = i
            continue
        fewest = jumps[graph.first[before]]
        for a in range(graph.first[before], graph.first[before + 1]):
            fewest = min(fewest, jumps[a])
        for b in range(start, stop):
            _extend(graph, before, i, b, found)
            if parent[b] < 0 or jumps[b] > fewest:
                _reconfigure(graph, before, b, fewest, found)
        before = i
    return found


@kernel
def _extend(graph: PathGraph, before: int, layer: int, b: int, found: Sequences) -> None:
    """Write the best sequence to candidate b whose last motion is continuous, if one exists.

    Args:
        graph: Candidates.
        before: Number of the previous layer that is not empty.
        layer: Number of the layer of b.
        b: Index of the candidate.
        found: Sequences to the candidates of the previous layer, read; to b, written.
    """
    start, stop = graph.first[before], graph.first[before + 1]
    at, most = start, np.inf
    if graph.key >= 0:
        at = _first_at_least(graph, start, stop, graph.q[b, graph.key] - graph.step[graph.key])
        most = graph.q[b, graph.key] + graph.step[graph.key]
    while at < stop:
        a = graph.order[at]
        at += 1
        if graph.key >= 0 and graph.q[a, graph.key] > most:
            break
        known = found.parent[b] >= 0
        if known and found.jumps[a] > found.jumps[b]:
            continue
        length = found.length[a] + motion_length(graph, a, b, 1.0)
        if known and found.jumps[a] == found.jumps[b] and length >= found.length[b]:
            continue
        if length == np.inf:
            continue
        if graph.blocked.shape[0] > 0:
            key = motion_key(layer, a - start, b - graph.first[layer])
            if _is_blocked(graph.blocked, key):
                continue
        found.jumps[b], found.length[b], found.parent[b] = found.jumps[a], length, a


@kernel
def _reconfigure(graph: PathGraph, before: int, b: int, fewest: int, found: Sequences) -> None:
    """Replace the sequence to candidate b if a reconfiguration as its last motion is better.

    Args:
        graph: Candidates.
        before: Number of the previous layer that is not empty.
        b: Index of the candidate.
        fewest: Minimum number of reconfigurations to the candidates of the previous layer.
        found: Sequences, read and written.
    """
    for a in range(graph.first[before], graph.first[before + 1]):
        if found.jumps[a] != fewest:
            continue
        length = found.length[a] + motion_length(graph, a, b, np.inf)
        is_fewer = found.parent[b] < 0 or found.jumps[b] > fewest + 1
        if is_fewer or length < found.length[b]:
            found.jumps[b], found.length[b], found.parent[b] = fewest + 1, length, a
            found.is_jump[b] = True


@force_inline
def _cell(q: Array, spacing: Array) -> int:
    """Return a hash of the cell of a grid with a given spacing (n,) that contains q (n,)."""
    code = np.int64(1)  # wraps at 64 bits
    for j in range(q.shape[0]):
        code = (code ^ np.int64(floor(q[j] / spacing[j]))) * np.int64(HASH_FACTOR)
        code ^= code >> HASH_SHIFT
    return int(code)


@allocating
def mark_new(q: Array, source: Array, known: Array, spacing: Array, step: Array) -> Flags:
    """Mark the candidates that are not duplicates.

    The first candidate in each grid cell is new. A later candidate in the same cell is new only if
    its source is farther than the maximum step from the first candidate of the cell.

    Args:
        q: (c, n) candidates [rad or m].
        source: (c, n) configurations from which the candidates were found [rad or m]; NaN for
            random starts.
        known: (k, n) candidates found earlier [rad or m].
        spacing: (n,) spacing of the grid [rad or m].
        step: (n,) maximum step of each joint in a continuous motion [rad or m].

    Returns:
        (c,) whether each candidate is new.
    """
    c, k, n = q.shape[0], known.shape[0], q.shape[1]
    size = 4
    while size < 4 * (c + k):
        size *= 2
    slots, codes = np.full(size, -1), np.empty(size, np.int64)
    is_new = np.zeros(c, np.bool_)
    for i in range(k + c):
        here = known[i] if i < k else q[i - k]
        code = _cell(here, spacing)
        at = code & (size - 1)
        while slots[at] >= 0 and codes[at] != code:
            at = (at + 1) & (size - 1)
        if slots[at] < 0:
            slots[at], codes[at] = i, code
            if i >= k:
                is_new[i - k] = True
        elif i >= k:
            other = known[slots[at]] if slots[at] < k else q[slots[at] - k]
            for j in range(n):
                if abs(other[j] - source[i - k, j]) > step[j]:
                    is_new[i - k] = True
    return is_new
