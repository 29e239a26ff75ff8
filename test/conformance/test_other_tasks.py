# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of other tasks against the oracle: fewer rows, frames, weights, several tips."""

from types import SimpleNamespace

import numpy as np
import pytest
from arms import random_arm
from cases import ARMS, WAM, is_regular, label, slack
from oracle_ik import Oracle, parts_of
from oracle_task import Rows
from ours import options_of, our_moves, stepper
from robots import joint, urdf

from dls_ik import RobotModel, Task

TASKS = {
    "pose": {},
    "position": {"rotation": ""},
    "rotation": {"position": ""},
    "x and z": {"position": "xz", "rotation": ""},
    "in a plane": {"position": "xy", "rotation": "z"},
    "pointing": {"rotation": "xy", "frame": "target"},
    "pointing y": {"rotation": "xz", "frame": "target"},
    "upright": {"position": "xyz", "rotation": "xy"},
    "turned": {"position": "z", "rotation": "x", "frame": "target"},
    "pose seen by the target": {"frame": "target"},
    "weighted": {"weights": (1.0, 2.0, 0.5, 3.0, 1.0, 0.1)},
    "weighted rows of the target": {
        "position": "yz", "rotation": "z", "frame": "target", "weights": (2.0, 0.5, 0.1),
    },
}  # fmt: skip
METHODS = [
    ("jp", {}),
    ("jt", {}),
    ("dls", {}),
    ("ed", {}),
    ("nf", {}),
    ("jd", {"policy": "condition", "condition_bound": 20.0}),
    ("jd", {"policy": "accuracy", "epsilon": 1.0}),
    ("jd", {"policy": "mayorga-condition", "condition_bound": 3.0}),
    ("odls", {"Delta": 0.1}),
    ("svf", {}),
    ("sd", {}),
    ("sdls", {}),
    ("sdls+clamp", {"D_max": 0.1}),
    ("dls+halve", {}),
    ("dls+clamp", {"adaptive": True, "D_max": 0.05}),
    ("jw", {}),
    ("jc+dls", {}),
    ("tp+ed", {"margin": 0.3}),
    ("ctp+dls", {"margin": 0.3}),
    ("ctp+sd+svf", {"margin": 0.3}),
    ("gp+dls", {"objective": "centring"}),
    ("gp", {"objective": "manipulability", "mu": 2.0}),
    ("ta+dls", {"objective": "centring"}),
]


def as_oracle(task):
    """Return the same task for the oracle, independent of the package."""
    full = {"position": "xyz", "rotation": "xyz", "frame": "base", "weights": None, "tip": None}
    return SimpleNamespace(**{**full, **task})


def start(robot, seed=1, reach=0.3):
    rng = np.random.default_rng(seed)
    lower, upper = robot.finite_limits()
    while True:
        q = rng.uniform(lower + 0.2 * (upper - lower), upper - 0.2 * (upper - lower))
        T_d = robot.fk(q + reach * (robot.random(rng=rng) - q))
        if is_regular(np.reshape(robot.jacobian(q), (-1, robot.n)), []):
            return q, T_d


def assert_same_steps(name, options, robot, given, known, q, T_d):
    oracle = Oracle(name, robot, options_of(name, **options), known)
    for move in our_moves(name, robot, q, [T_d] * 3, given, **options):
        e, J = oracle.error_and_jacobian(move.before, T_d)
        dq = oracle.step(move.before, J, e, T_d=T_d)
        expected = move.before + dq
        expected = robot.clip(expected) if parts_of(name).strategy == "jc" else expected
        atol = slack(name, options, oracle, dq)
        np.testing.assert_allclose(move.after, expected, rtol=1e-15, atol=atol)


@pytest.mark.parametrize("what", TASKS)
@pytest.mark.parametrize("arm", ["wam", "6 and a follower", "8 with slides"])
def test_task_error_and_jacobian_match_the_oracle(what, arm):
    robot = ARMS[arm]
    for seed, reach in enumerate((0.01, 0.3, 1.0)):
        q, T_d = start(robot, seed, reach)
        ours = stepper("jp", robot, q, Task(**TASKS[what]))
        rows = Rows(robot, as_oracle(TASKS[what]))
        np.testing.assert_allclose(ours.error(T_d), rows.error(q, T_d), atol=1e-12)
        np.testing.assert_allclose(ours.jacobian(T_d), rows.jacobian(q, T_d), atol=1e-12)


FEW_JOINTS = random_arm(np.random.default_rng(5), *["revolute"] * 3)


@pytest.mark.parametrize("method", METHODS, ids=label)
def test_steps_for_other_tasks_match_the_oracle(method):
    """Check every method with a third of the WAM tasks and half of the three-joint tasks."""
    k = METHODS.index(method)
    each = [(WAM, what, 3) for what in list(TASKS)[k % 3 :: 3]]
    few = ["position", "pointing", "in a plane", "turned"]
    each += [(FEW_JOINTS, what, 4) for what in few[k % 2 :: 2]]
    for robot, what, seed in each:
        q, T_d = start(robot, seed)
        known = as_oracle(TASKS[what])
        if parts_of(method[0]).strategy != "ta" or robot.n > Rows(robot, known).groups.size:
            assert_same_steps(*method, robot, Task(**TASKS[what]), known, q, T_d)


def branched(rng):
    """Return a trunk of three joints with a left and a right arm of four joints each."""
    names = {"t": 3, "l": 4, "r": 4}
    joints, links = [], ["base"]
    for arm, count in names.items():
        parent = "base" if arm == "t" else "t2"
        for i in range(count):
            xyz, rpy = rng.uniform(-0.4, 0.4, 3), rng.uniform(-3.0, 3.0, 3)
            kind = "prismatic" if (arm, i) == ("l", 1) else "revolute"
            detail = (
                f'<origin xyz="{_words(xyz)}" rpy="{_words(rpy)}"/>'
                '<limit lower="-1.5" upper="2" effort="1" velocity="1"/>'
            )
            axis = _words(rng.normal(size=3))
            joints.append(joint(f"j{arm}{i}", kind, parent, f"{arm}{i}", detail, axis))
            parent = f"{arm}{i}"
            links.append(parent)
    return urdf(" ".join(links), *joints)


def _words(values):
    return " ".join(repr(float(value)) for value in values)


TEXT = branched(np.random.default_rng(6))


def two_tips():
    return RobotModel.from_urdf(TEXT, "base", tip=("l3", "r3"))


@pytest.mark.parametrize("method", METHODS, ids=label)
def test_steps_of_several_tips_match_the_oracle(method):
    robot = two_tips()
    q, T_d = start(robot, 8)
    others = ["position", "pose", "pointing", "weighted"]
    what = others[METHODS.index(method) % len(others)]
    for both in (("position", "turned"), (what, what)):
        tasks = [TASKS[each] for each in both]
        known = [as_oracle(task) for task in tasks]
        if parts_of(method[0]).strategy == "ta" and robot.n <= len(Rows(robot, known).groups):
            continue
        given = [Task(**task) for task in tasks] if both[0] != both[1] else Task(**tasks[0])
        assert_same_steps(*method, robot, given, known, q, T_d)
