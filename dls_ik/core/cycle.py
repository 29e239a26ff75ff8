# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""One control cycle in one call: a step toward the target, and a command that follows the step.

A call from Python to a kernel, or an operation on arrays in Python, takes approximately a tenth of
the time of a step. A cycle without obstacles is therefore computed by a single call.
"""

from typing import NamedTuple

import numpy as np

from dls_ik.core.boxes import Boxed
from dls_ik.core.follow import follow_records
from dls_ik.core.jit import allocating
from dls_ik.core.kinematics import forward
from dls_ik.core.limiter import CommandLimits
from dls_ik.core.linalg import copy
from dls_ik.core.pursuit import PursuitState, pursue_reference
from dls_ik.core.se3 import norm3, pose_error
from dls_ik.core.types import Array, Chain, FollowMethods, FollowState

CYCLE_ROWS, CYCLE_FIGURES = 5, 9  # sizes of the results of :func:`run_cycle`


class CycleParts(NamedTuple):
    """Structs that :func:`run_cycle` reads and writes, for an arm with one tip."""

    chain: Chain
    methods: FollowMethods
    followed: FollowState  # state of following the target, read and written
    limits: CommandLimits  # limits of the command
    pursuit: PursuitState  # recent motion of the reference, read and written


@allocating
def run_cycle(
    parts: Boxed[CycleParts],
    T_d: Array,
    dt: float,
    q: Array,
    v: Array,
    rows: Array,
    figures: Array,
) -> None:
    """Make a step of :func:`.follow`, and move the command toward its result by :func:`.pursue`.

    Args:
        parts: Arm, methods, limits and states.
        T_d: (4, 4) desired pose T_base_tip.
        dt: Duration of the cycle [s].
        q: (n,) commanded positions at the start of the cycle [rad or m].
        v: (n,) commanded velocities at the start of the cycle [rad/s or m/s].
        rows: (5, n) written: joint positions after the step, activations of the joint limits,
            commanded positions, mean velocities of the command in the cycle, and its velocities at
            the end of the cycle.
        figures: (9,) written: position error [m] and rotation error [rad] after the step, smallest
            and largest singular value before the step, position error and rotation error of the
            command, largest distance of a joint of the command from the step [rad or m], largest
            motion of a joint in the step, and largest mean velocity of the command.
    """
    chain, methods, state, limits, pursuit = parts.record
    n = q.shape[0]
    before, v_r = np.empty(n), np.empty(n)
    copy(state.q, before)
    follow_records(chain, methods, state, T_d.reshape((1, 4, 4)), dt)
    copy(state.q, rows[0])
    copy(state.limit_activation, rows[1])
    copy(state.observed, figures[:4])
    motion = 0.0
    for j in range(n):
        v_r[j] = (rows[0, j] - before[j]) / dt
        motion = max(motion, abs(rows[0, j] - before[j]))
    pursue_reference(limits, pursuit, rows[0], v_r, dt, q, v, rows[2:])
    gap, speed = 0.0, 0.0
    for j in range(n):
        gap = max(gap, abs(rows[0, j] - rows[2, j]))
        speed = max(speed, abs(rows[3, j]))
    figures[4], figures[5] = figures[0], figures[1]
    if gap > 0.0:
        work, e = state.work, np.empty(6)
        forward(chain, rows[2], work.axes, work.T)
        pose_error(T_d, work.T[0], work.relative, e)
        figures[4], figures[5] = norm3(e[:3]), norm3(e[3:])
    figures[6], figures[7], figures[8] = gap, motion, speed
