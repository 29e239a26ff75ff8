# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Structs of the kernels with defaults for all fields that a test does not need."""

from typing import get_type_hints

import numpy as np

from dls_ik.core.types import Chain, GeneralProblem, Memory, Method, MethodParams, TaskParams

PLAIN = {int: 0, float: 1.0, bool: False}


def task(r=6, weights=None):
    """Return the task of the first r rows of the pose of one tip."""
    rows = np.arange(r)
    return TaskParams(
        tip=np.zeros(r, np.int64),
        component=rows.astype(np.int64),
        weight=np.ones(r) if weights is None else np.asarray(weights, float),
        group=np.append(rows // 3, (r + 2) // 3).astype(np.int64),
        in_target=np.zeros(1, np.bool_),
        rotation_kind=np.ones(1, np.int64),
        axis=np.zeros(1, np.int64),
        exact_derivative=np.zeros(1, np.bool_),
        has_tolerance=False,
        tolerance=np.zeros(r),
        inner_tolerance=np.zeros(r),
        round=np.zeros(r, np.bool_),
    )


def general(r=6, n=7, **given):
    """Zero for a whole number, 1.0 for any other, unless given; choices and parameters too."""
    arrays = {
        "task": task(r),
        "direction": np.eye(r)[r - 1],
        "reference": np.zeros(n),
        "obstacle": np.zeros(3),
        "joint_weights": np.ones(n),
        "bias": np.ones(n),
        "largest_step": np.ones(n),
        "translational": np.zeros(n, np.bool_),
    }
    chosen = {name: given.pop(name) for name in MethodParams._fields if name in given}
    plain = {name: PLAIN[kind] for name, kind in get_type_hints(MethodParams).items()}
    plain["Delta_tolerance"] = 1e-3
    return GeneralProblem(params=MethodParams(**{**plain, **chosen}), **{**arrays, **given})


def parameters(r=6, n=7, **given):
    return general(r, n, **given).params


def method(**given):
    plain = {name: PLAIN[kind] for name, kind in get_type_hints(Method).items()}
    return Method(**{**plain, **given})


def memory(r, n, steps=0):
    """Of an attempt that has made so many steps; room for one row more than r."""
    sizes = {"lambda2": 1, "manipulability": 1, "gradient": n, "J": (r + 1, n), "sqp": (0, n + 2)}
    fields = {name: np.zeros(sizes.get(name, r)) for name in Memory._fields}
    fields["steps"] = np.array([steps, 0, 0, 0], np.int64)
    return Memory(**fields)


def random_chain(rng, sizes=(4,), n=4, prismatic=0.3):
    """A path of so many elements to each tip, with lengths of about 0.3 m.

    Elements are driven by any of the n variables, by more or less than the variable itself.
    """
    m, k = sum(sizes), len(sizes)
    fixed = np.empty((m + k, 3, 4))
    for T in fixed:
        T[:, :3] = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        T[:, 2] *= np.sign(np.linalg.det(T[:, :3]))
        T[:, 3] = rng.normal(scale=0.2, size=3)
    return Chain(
        fixed=fixed,
        first=np.cumsum([0, *sizes], dtype=np.int64),
        prismatic=rng.random(m) < prismatic,
        variable=rng.integers(n, size=m),
        scale=rng.choice([1.0, 1.0, -0.5, 2.0], m),
        offset=rng.choice([0.0, 0.0, 0.3], m),
        lower=np.full(n, -2.0),
        upper=np.full(n, 2.5),
        velocity=np.ones(n),
    )
