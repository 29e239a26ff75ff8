"""Lines through singularities and back: slower, but no dead stop and no chatter."""

import numpy as np
import pytest
from arms import published
from drive import BENT, WAM, Drive, reversals, tip_speeds

from dls_ik.servo import ServoState

pytestmark = pytest.mark.slow

METHODS = ["ctp+sd+svf", "odls", "svf", "auto"]
UR = published("ur5e")
UR_BENT = np.array([0.0, -1.2, 1.6, -1.0, 0.9, 0.3])
ELBOW = 0.2313  # with its offset of 45 mm the WAM is longest here
NAMED = (ServoState.NEAR_SINGULARITY, ServoState.LEAVING_SINGULARITY)


def follow(drive, Ts):
    for T in Ts:
        drive.run(drive.dt, lambda drive, T=T: drive.pose(T))
    return drive


def stay(drive, T, seconds):
    drive.run(seconds, lambda drive: drive.pose(T))


def put(q, joint, value):
    out = q.copy()
    out[joint] = value
    return out


STRETCHED = (WAM, BENT, put(BENT, 3, ELBOW))
WRIST = (UR, UR_BENT, put(UR_BENT, 4, 0.0))


def longest_stop(speeds, slow=1e-3):
    """Most consecutive cycles in which the tip was slower than this [m/s]."""
    longest = now = 0
    for speed in speeds:
        now = now + 1 if speed < slow else 0
        longest = max(longest, now)
    return longest


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("case", [STRETCHED, WRIST], ids=["elbow", "wrist"])
def test_there_and_back(method, case):
    robot, q_a, q_b = case
    q = np.linspace(q_a, q_b, 300)
    drive = Drive(q_a, robot, method, acceleration=20.0)
    follow(drive, robot.fk(np.concatenate([q, q[::-1]])))
    assert set(NAMED) <= set(drive.states)
    assert reversals(drive.q) <= 3
    assert drive.last.position_error < 0.02
    stay(drive, robot.fk(q_a), 5.0)
    assert drive.last.state is ServoState.REACHED
    drive.assert_limits(20.0)


@pytest.mark.parametrize("method", METHODS)
def test_across_the_wrist_the_tip_goes_on(method):
    """A straight line of the tip near the configuration with its wrist in line."""
    Ts = np.repeat(UR.fk(put(UR_BENT, 4, 0.02))[None], 400, axis=0)
    Ts[:, :3, 3] += np.linspace(-0.15, 0.15, 400)[:, None] * [0.0, 1.0, 0.0]
    drive = Drive(put(UR_BENT, 4, 0.4), UR, method, acceleration=20.0)
    stay(drive, Ts[0], 6.0)
    first = len(drive.outputs)
    follow(drive, Ts)
    speeds = tip_speeds(UR, drive.q[first:])
    assert longest_stop(speeds[10:]) <= 10
    assert reversals(drive.q[first:]) <= 4
    assert NAMED[0] in drive.states[first:]
    drive.assert_limits(20.0)


@pytest.mark.parametrize("method", METHODS)
def test_out_past_the_reach_and_back_in_it_slows_down_and_goes_on(method):
    T = WAM.fk(BENT)
    out = T[:3, 3] / np.linalg.norm(T[:3, 3])
    Ts = np.repeat(T[None], 800, axis=0)
    share = np.concatenate([np.linspace(0, 1.0, 400), np.linspace(1.0, 0, 400)])
    Ts[:, :3, 3] += share[:, None] * out
    drive = follow(Drive(BENT, method=method, acceleration=20.0), Ts)
    assert reversals(drive.q) <= 8
    stay(drive, T, 6.0)
    assert drive.last.state is ServoState.REACHED
    drive.assert_limits(20.0)
