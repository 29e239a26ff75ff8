# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Invalid input to every method: a typed error, and motion as without the input."""

import copy
import pickle
from itertools import cycle

import numpy as np
import pytest
from drive import BENT, DT, WAM, Drive

from dls_ik.errors import JointValueError, MethodError, OptionError, PoseError
from dls_ik.servo import Controller

GOOD = WAM.fk(BENT + 0.3)
TIMES = [np.nan, np.inf, -np.inf, 10**400, "1", b"1", None, 1j, [0.0], {}, object()]


def changed(value, *index):
    T = GOOD.copy()
    T[index] = value
    return T


POSES = [
    None, "pose", 1.0, [], {}, object(), np.zeros((4, 4)), np.eye(3), np.zeros((2, 4, 4)),
    GOOD * 1j, GOOD.tolist()[:3], [[1, 2], [3]], -np.eye(4),
    np.diag([1.0, 1.0, -1.0, 1.0]), 2 * np.eye(4),
    *(changed(value, 0, 3) for value in (np.nan, np.inf, 1e300)),
    *(changed(value, 1, 1) for value in (np.nan, -np.inf, 1e300)), changed(0.5, 3, 3),
    np.full((4, 4), None),
]  # fmt: skip
TWISTS = [
    None, "twist", 1.0, [], {}, object(), np.zeros(5), np.zeros((6, 1)), np.zeros(7), [1j] * 6,
    [[1], [2, 3]], np.full(6, np.nan), np.full(6, np.inf), np.full(6, 1e300), [10**400] * 6,
    np.zeros(6, "M8[s]"),
]  # fmt: skip
AXES = [
    "axes", 1.0, [], {}, object(), np.zeros((3, 3)), np.eye(4), -np.eye(3), np.full((3, 3), np.nan),
    2 * np.eye(3), np.eye(3) * 1j, np.diag([1.0, 1.0, -1.0]),
]  # fmt: skip
TRAJECTORIES = [
    None, "path", [], np.zeros((0, 4, 4)), GOOD, [GOOD, None], [GOOD, np.eye(3)], GOOD[None] * 1j,
    *([GOOD, T] for T in (changed(np.nan, 0, 3), np.zeros((4, 4)))),
]  # fmt: skip
STARTS = [None, "start", 1.0, [], [0.0] * 6, [np.nan] * 7, [np.inf] * 7, np.zeros((1, 7)), object()]


CASES = {
    "pose": (PoseError, POSES, lambda c, x, now: c.follow_pose(x, now)),
    "pose now": (OptionError, TIMES, lambda c, x, now: c.follow_pose(GOOD, x)),
    "pose age": (OptionError, TIMES, lambda c, x, now: c.follow_pose(GOOD, now, x)),
    "twist": (PoseError, TWISTS, lambda c, x, now: c.follow_twist(x, now)),
    "twist R": (PoseError, AXES, lambda c, x, now: c.follow_twist(np.ones(6), now, x)),
    "twist now": (OptionError, TIMES, lambda c, x, now: c.follow_twist(np.ones(6), x)),
    "twist age": (OptionError, TIMES, lambda c, x, now: c.follow_twist(np.ones(6), now, age=x)),
    "trajectory": (PoseError, TRAJECTORIES, lambda c, x, now: c.follow_trajectory(x, 1.0, now)),
    "period": (OptionError, TIMES, lambda c, x, now: c.follow_trajectory([GOOD], x, now)),
    "path now": (OptionError, TIMES, lambda c, x, now: c.follow_trajectory([GOOD], 1.0, x)),
    "path age": (OptionError, TIMES, lambda c, x, now: c.follow_trajectory([GOOD], 1.0, now, x)),
    "seed": (JointValueError, STARTS, lambda c, x, now: c.seed(x)),
    "cycle now": (OptionError, TIMES, lambda c, x, now: c.cycle(x, DT)),
    "cycle dt": (OptionError, [0, -1.0, True, *TIMES], lambda c, x, now: c.cycle(now, x)),
}


GIVE = {
    "pose": lambda drive: drive.pose(GOOD),
    "twist": lambda drive: drive.twist(np.full(6, 0.1)),
    "none": lambda drive: drive,
}


@pytest.mark.parametrize(("case", "kind"), [*zip(CASES, cycle(GIVE), strict=False)])
def test_invalid_input_raises_and_leaves_motion_unchanged(case, kind):
    error, values, give = CASES[case]
    drive, twin = Drive(BENT, acceleration=8.0), Drive(BENT, acceleration=8.0)
    for value in values:
        for each in (drive, twin):
            GIVE[kind](each).run(2 * DT)
        with pytest.raises(error):
            give(drive.controller, value, drive.now)
        for each in (drive, twin):
            each.run(2 * DT)
        assert drive.states == twin.states
        np.testing.assert_array_equal(drive.q, twin.q)


def test_unusual_valid_poses_are_accepted():
    rough = GOOD.copy()
    rough[:3, :3] += 1e-5
    for T in (GOOD.tolist(), GOOD.astype(np.float32), np.asfortranarray(GOOD), rough, [GOOD][0]):
        drive = Drive(BENT).pose(T)
        drive.run(3.0)
        assert drive.last.position_error < 1e-5


@pytest.mark.parametrize("dt", [1e-6, 10.0, 1e6])
def test_any_cycle_duration_keeps_limits(dt):
    drive = Drive(BENT, dt=dt, acceleration=8.0, target_timeout=3600.0).pose(GOOD)
    drive.run(20 * dt)
    drive.assert_limits(8.0)
    drive.twist(np.ones(6)).run(20 * dt)
    drive.controller.pause()
    drive.run(5 * dt)
    drive.assert_limits(8.0)


def test_only_last_target_before_a_cycle_counts():
    drive, twin = Drive(BENT), Drive(BENT)
    for k in range(50):
        for _ in range(20):
            drive.pose(WAM.fk(BENT - 0.5))
        for each in (drive, twin):
            each.pose(WAM.fk(BENT + 0.001 * k)).run(DT)
    np.testing.assert_array_equal(drive.q, twin.q)


BAD_OPTIONS = [
    *(("acceleration", {"acceleration": each})
      for each in (0.0, -1.0, np.nan, [1.0] * 6, "fast", [1.0] * 6 + [np.nan])),
    ("acceleration", {"jerk": 10.0}),
    ("jerk", {"jerk": 0.0, "acceleration": 1.0}),
    ("joint_motion", {"when_stuck": "cry"}),
    *((name, {name: value})
      for name, value in [("when_stuck", None), ("feed_forward", "yes"), ("feed_forward", 1),
                          ("target_timeout", 0.0), ("target_timeout", np.nan),
                          ("stamp_tolerance", -1.0), ("twist_lookahead", np.inf),
                          ("max_deviation", None), ("measurement_timeout", "1"), ("speed", 1.0)]),
]  # fmt: skip


def test_invalid_options_and_methods_raise_with_their_name():
    for name, options in BAD_OPTIONS:
        with pytest.raises(OptionError, match=name):
            Controller(WAM, **options)
    with pytest.raises(MethodError):
        Controller(WAM, "magic")


def test_command_and_output_are_copies():
    drive, twin = Drive(BENT).pose(GOOD), Drive(BENT).pose(GOOD)
    T = GOOD.copy()
    drive.pose(T)
    twin.pose(T.copy())
    T[:] = 0.0
    for _ in range(20):
        out = drive.controller.cycle(drive.now + DT, DT)
        twin.controller.cycle(drive.now + DT, DT)
        np.testing.assert_array_equal(drive.controller.command, twin.controller.command)
        for array in (out.q, out.velocity, out.limit_activation, drive.controller.command):
            array[:] = 9.0
        if out.T_d is not None:
            out.T_d[:] = 0.0
        drive.now = twin.now = drive.now + DT


@pytest.mark.parametrize(
    ("name", "meant"),
    [("velocity", "scale"), ("velocity_limits", "scale"), ("max_speed", "max_linear_speed")],
)
def test_speed_options_of_other_packages_lead_to_the_limits_of_motion(name, meant):
    with pytest.raises(OptionError, match=f"unknown option {name}; did you mean {meant}\\?"):
        Controller(WAM, **{name: 1.0})


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_copy_is_refused_with_a_way_out(copied):
    """Formerly Numba raised an error about its internal types."""
    with pytest.raises(TypeError, match=r"create another Controller .* by seed\(\)"):
        copied(Controller(WAM))
