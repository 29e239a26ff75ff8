# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Serial arms for tests: real arms, and random arms with joints of every kind."""

from functools import cache

import numpy as np
from published_arms import ARMS
from robots import TEST_URDF, joint, urdf

from dls_ik.model import RobotModel

PUBLISHED = tuple(ARMS)


@cache
def published(name):
    """Return a real arm of ``test/urdf``."""
    return RobotModel.from_urdf(TEST_URDF / f"{name}.urdf")


def random_arm(rng, *kinds):
    """An arm with one joint of each kind in a row, base to tip.

    Args:
        kinds: ``revolute``, ``continuous``, ``prismatic``; ``bent``: a revolute joint whose range
            is without 0, as of many elbows; ``mimic``: a revolute joint that follows the joint
            before it.
    """
    joints = [_joint(rng, i, kind) for i, kind in enumerate(kinds)]
    tip = joint("last", "fixed", f"l{len(kinds)}", "tip", _origin(rng))
    links = " ".join([*(f"l{i}" for i in range(len(kinds) + 1)), "tip"])
    return RobotModel.from_urdf(urdf(links, *joints, tip))


def _joint(rng, i, kind):
    detail = _origin(rng)
    if kind == "mimic":
        detail += f'<mimic joint="j{i - 1}" multiplier="{rng.uniform(0.5, 1.5):.3f}" offset="0.1"/>'
        detail += '<limit lower="-9" upper="9" effort="1" velocity="9"/>'
    elif kind != "continuous":
        near, far = (0.1, 0.5) if kind == "prismatic" else (1.0, 3.0)
        lower, upper = -rng.uniform(near, far), rng.uniform(near, far)
        if kind == "bent":
            lower, upper = lower - 3.1, -0.1
        detail += f'<limit lower="{lower:.6f}" upper="{upper:.6f}" effort="1" velocity="1"/>'
    kind = "revolute" if kind in ("mimic", "bent") else kind
    return joint(f"j{i}", kind, f"l{i}", f"l{i + 1}", detail, _words(rng.normal(size=3)))


def _origin(rng):
    xyz, rpy = rng.uniform(-0.4, 0.4, 3), rng.uniform(-np.pi, np.pi, 3)
    return f'<origin xyz="{_words(xyz)}" rpy="{_words(rpy)}"/>'


def _words(values):
    return " ".join(repr(float(value)) for value in values)
