# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Boxes share the arrays of a struct with kernels, and keep them as long as necessary."""

import gc
import sys

import numpy as np

from dls_ik import RobotModel
from dls_ik.core.boxes import boxed
from dls_ik.core.limiter import CommandLimits, stopping_point
from dls_ik.core.pursuit import PursuitState, pursue
from dls_ik.servo.local_ik import LocalIk

N = 3


def limits(acceleration):
    wide = np.full(N, 10.0)
    return CommandLimits(-wide, wide, wide, np.full(N, acceleration), wide)


def stop(box, v=2.0):
    q_s = np.empty(N)
    stopping_point(box, np.zeros(N), np.full(N, v), q_s)
    return q_s


def test_arrays_are_shared_with_kernels():
    record = limits(1.0)
    box = boxed(record)
    assert stop(box).tolist() == [2.0] * N
    record.acceleration[:] = 2.0
    assert stop(box).tolist() == [1.0] * N


def test_kernels_write_to_arrays_of_a_box():
    state = PursuitState(np.full(N, 4.0), 0.1, np.zeros((2, N)), np.zeros(1))
    q = np.zeros(N)
    pursue(boxed(limits(4.0)), boxed(state), q, np.ones(N), 0.01, q, q, np.empty((3, N)))
    assert state.means.all()
    assert state.demand[0] > 0.0


def test_box_keeps_its_arrays_and_releases_them():
    record = limits(1.0)
    box = boxed(record)
    acceleration = record.acceleration
    del record
    gc.collect()
    assert stop(box).tolist() == [2.0] * N
    kept = sys.getrefcount(acceleration)
    more = [boxed(CommandLimits(*[acceleration] * 5)) for _ in range(20)]
    added = sys.getrefcount(acceleration) - kept
    del box, more
    gc.collect()
    left = kept - sys.getrefcount(acceleration)
    assert (added, left) == (100, 1)


def test_restart_forgets_the_motion_before():
    robot = RobotModel.wam()
    q, T = np.full(robot.n, 0.3), robot.fk(np.full(robot.n, 0.35))
    used, fresh = LocalIk(robot), LocalIk(robot)
    used.restart(robot.clip(np.full(robot.n, -0.4)))
    for _ in range(5):
        used.advance(T[None], 0.01)
    for local_ik in (used, fresh):
        local_ik.restart(q)
    steps = [[local_ik.advance(T[None], 0.01) for _ in range(5)] for local_ik in (used, fresh)]
    for a, b in zip(*steps, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_errors_and_pose_at_joint_positions_are_those_of_the_robot():
    robot = RobotModel.wam()
    q, T_d = robot.random(rng=np.random.default_rng(0)), robot.fk(np.full(robot.n, 0.2))
    local_ik, T = LocalIk(robot), robot.fk(q)
    np.testing.assert_allclose(local_ik.pose_at(q), T, rtol=0.0, atol=1e-15)
    position, rotation = local_ik.errors_at(q, T_d)
    assert np.isclose(position, np.linalg.norm(T_d[:3, 3] - T[:3, 3]), rtol=1e-12)
    assert np.isclose(rotation, np.arccos(0.5 * (np.trace(T_d[:3, :3] @ T[:3, :3].T) - 1.0)))
