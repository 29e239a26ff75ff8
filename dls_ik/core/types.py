"""The structs that kernels take and give. Arrays and numbers only, so that they cache on disk."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Chain(NamedTuple):
    """A serial chain of m moving elements driven by n joint variables, base to tip.

    Every element moves about or along the z axis of its own frame: the model turns other axes into
    z by a fixed rotation before and after. A mimic joint is an element of its own that shares the
    variable of the joint it follows: element value = scale * q[variable] + offset.
    """

    fixed: Array  # (m + 1, 3, 4) transform from element i - 1 to element i; the last one to the tip
    prismatic: NDArray[np.bool_]  # (m,) along z instead of about z
    variable: NDArray[np.int64]  # (m,) which joint variable drives the element
    scale: Array  # (m,)
    offset: Array  # (m,) [rad or m]
    lower: Array  # (n,) [rad or m], -inf where there is none
    upper: Array  # (n,) [rad or m], +inf where there is none
    velocity: Array  # (n,) [rad/s or m/s], +inf where there is none


class Method(NamedTuple):
    """Which law, strategy and bound, and their parameters. Symbols as in the papers."""

    damping: int  # id of a file in damping/
    limits: int  # id of a file in limits/
    step: int  # id of a file in step/
    alpha: float  # gain of every step
    lambda_: float  # damping factor of JD
    error_gain: float  # E = error_gain * norm(e)^2 of ED
    nu: float  # shape factor of SVF
    sigma0: float  # least singular value that SVF lets through
    gamma_max: float  # largest joint change of SD [rad or m]
    margin: float  # CTP: where activation begins, as a fraction of the joint's range
    mu: float  # CTP: gain of the push toward mid-range
    following: bool  # a target: CTP one way (limits/ctp.py), and the error damps too


class Goal(NamedTuple):
    """When a pose counts as reached, and when an attempt ends."""

    position_tolerance: float  # [m]
    rotation_tolerance: float  # [rad]
    rotation_weight: float  # w [m/rad]: the error is (dp, w * rotation vector)
    max_iterations: int  # of one attempt
    stall_ratio: float  # an iteration is slow if it leaves more than this share of the error
    stall_count: int  # so many slow iterations in a row end an attempt; 0: never


class Starts(NamedTuple):
    """Where attempts after the first one start, and how answers are brought back to the seed."""

    lower: Array  # (n,) finite bounds of a uniform start [rad or m]
    upper: Array  # (n,)
    turning: NDArray[np.bool_]  # (n,) revolute without limits: whole turns make no difference


class Rows(NamedTuple):
    """The state of the searches for b poses, so that each can be stopped and taken up again."""

    state: NDArray[np.uint64]  # (b,) of the random generators
    counts: NDArray[np.int64]  # (b, 2) attempts begun, steps made; zero for a row passed over
    reached: NDArray[np.bool_]  # (b,)
    best: Array  # (b, n) joint values with the least error at the end of an attempt
    error: Array  # (b, 2) position [m] and rotation error [rad] there


class Workspace(NamedTuple):
    """Scratch of one thread for a chain of m elements and n variables; 6 task rows."""

    axes: Array  # (m, 2, 3)
    T: Array  # (3, 4)
    relative: Array  # (3, 3)
    e: Array  # (6,) scaled error
    J: Array  # (6, n) scaled Jacobian
    dq: Array  # (n,) the step
    h: Array  # (n,) activation of each joint's limit, 0 free to 1 held
    z: Array  # (n,) motion that the limit strategy asks for
    free: NDArray[np.int64]  # (n,) indices of the columns in use
    r: Array  # (6, 6) right-hand sides, one a row
    A: Array  # (6, 6) normal matrix
    Ut: Array  # (6, 6)
    y: Array  # (6,)
    s: Array  # (6,)
    gain: Array  # (6,)
    part: Array  # (n,)
