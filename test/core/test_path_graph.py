# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels of paths solved as a whole: best sequences, duplicates, and the smoothing step."""

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dls_ik.core.path_graph import KEY_BITS, PathGraph, find_sequences, mark_new
from dls_ik.core.path_refinement import smoothing_step


def graph_of(layers, step, weights, turn, blocked=()):
    first = np.cumsum([0, *map(len, layers)])
    q, key = np.concatenate(layers), -1 if turn[0] else 0
    order = np.arange(len(q))
    if key == 0:
        order = np.lexsort((q[:, 0], np.repeat(np.arange(len(layers)), np.diff(first))))
    keys = sorted(i << (2 * KEY_BITS) | a << KEY_BITS | b for i, a, b in blocked)
    return PathGraph(q, first, order, key, step, weights, turn, np.array(keys, np.int64))


def brute_force(layers, step, weights, turn, blocked, initial):
    """Return the number of reconfigurations and the length of the best of all sequences."""
    filled = [i for i, each in enumerate(layers) if len(each)]
    best = (np.inf, np.inf)
    for choice in product(*(range(len(layers[i])) for i in filled)):
        jumps, length = 0, initial[choice[0]] if filled else 0.0
        for (a, i), (b, j) in pairwise(zip(choice, filled, strict=True)):
            change = layers[j][b] - layers[i][a]
            turns = np.divide(change, turn, out=np.zeros_like(change), where=turn > 0)
            change = change - turn * np.floor(turns + 0.5)
            jumps += bool((abs(change) > step).any() or (j, a, b) in blocked)
            length += np.sqrt(weights @ change**2)
        best = min(best, (jumps, length))
    return best


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_best_sequence_equals_that_of_brute_force(seed, turns):
    rng = np.random.default_rng(seed)
    layers = [rng.uniform(-3.0, 3.0, (rng.integers(0, 4), 2)) for _ in range(6)]
    step, weights = rng.uniform(0.5, 3.0, 2), rng.uniform(0.5, 2.0, 2)
    turn = np.array([2.0 * np.pi, 0.0]) if turns else np.zeros(2)
    filled = [i for i, each in enumerate(layers) if len(each)]
    blocked = {(j, 0, 0) for j in filled[1:] if rng.random() < 0.3}
    initial = rng.uniform(0.0, 1.0, len(layers[filled[0]])) if filled else np.zeros(0)
    found = find_sequences(graph_of(layers, step, weights, turn, blocked), initial)
    if not filled:
        assert len(found.parent) == 0
        return
    last = slice(len(found.jumps) - len(layers[filled[-1]]), None)
    at = np.lexsort((found.length[last], found.jumps[last]))[0]
    jumps, length = brute_force(layers, step, weights, turn, blocked, initial)
    assert found.jumps[last][at] == jumps
    assert found.length[last][at] == pytest.approx(length)


def test_one_candidate_of_a_cell_is_kept_unless_the_source_cannot_reach_it():
    spacing, step, nowhere = np.full(2, 0.1), np.full(2, 0.2), np.full((1, 2), np.nan)
    near, far = np.array([[0.01, 0.01]]), np.array([[0.5, 0.5]])
    known = np.array([[0.05, 0.05]])
    assert mark_new(near, near, np.empty((0, 2)), spacing, step).tolist() == [True]
    assert mark_new(near, near, known, spacing, step).tolist() == [False]
    assert mark_new(near, nowhere, known, spacing, step).tolist() == [False]
    assert mark_new(near, far, known, spacing, step).tolist() == [True]
    both = np.vstack([near, near + 1e-3, far])
    assert mark_new(both, both, known[:0], spacing, step).tolist() == [True, False, True]


@pytest.mark.parametrize("size", [(1, 3, 1), (2, 5, 2), (7, 7, 3), (4, 3, 0)])
def test_smoothing_step_equals_a_dense_least_squares_solution(size):
    (m, n, d), rng = size, np.random.default_rng(0)
    x = rng.normal(size=(m, n))
    bases = np.ascontiguousarray(np.linalg.qr(rng.normal(size=(m, n, n)))[0][:, :, :d])
    pull, stay = rng.uniform(0.0, 2.0, m - 1), rng.uniform(0.1, 1.0, m)
    motion = np.kron(np.sqrt(pull)[:, None] * (np.eye(m)[1:] - np.eye(m)[:-1]), np.eye(n))
    basis = np.zeros((m * n, m * d))
    for i in range(m):
        basis[i * n : (i + 1) * n, i * d : (i + 1) * d] = bases[i]
    A = np.vstack([motion @ basis, np.repeat(np.sqrt(stay), n)[:, None] * basis])
    b = np.concatenate([-motion @ x.ravel(), np.zeros(m * n)])
    expected = basis @ np.linalg.lstsq(A, b, rcond=None)[0]
    np.testing.assert_allclose(smoothing_step(x, bases, pull, stay).ravel(), expected, atol=1e-10)
