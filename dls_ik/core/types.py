# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Structs passed to and returned by kernels: arrays and numbers only, so that kernels are cached.

In the structs that :mod:`dls_ik.core.fast.packed` packs, integers come before other numbers.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
MAX_POSE_COORDINATE = 1e9  # [m] largest coordinate of a pose; squares lose digits beyond
WIDEST = 1e7  # [rad or m] maximum range of a joint that counts as limited


class Chain(NamedTuple):
    """The paths from the base to each of k tips, driven by the same n joint variables.

    A path is a sequence of moving elements; the m elements of all paths are stored one path after
    the other, so a trunk shared by several tips occurs in each of their paths. A serial arm is one
    path.

    Every element rotates about or slides along the z axis of its own frame: the model includes
    fixed rotations before and after joints with another axis. A mimic joint is a separate element
    with the variable of the joint it mimics: element position = scale * q[variable] + offset.
    """

    fixed: Array  # (m + k, 3, 4) transforms between elements; the last of each path is to its tip
    first: Indices  # (k + 1,) index of the first element of each path; the last entry is m
    prismatic: Flags  # (m,) whether the element slides along z instead of turning about z
    variable: Indices  # (m,) index of the joint variable that drives the element
    scale: Array  # (m,)
    offset: Array  # (m,) [rad or m]
    lower: Array  # (n,) [rad or m], -inf without a limit
    upper: Array  # (n,) [rad or m], +inf without a limit
    velocity: Array  # (n,) [rad/s or m/s], +inf without a limit


class SerialChain(NamedTuple):
    """A chain of one path, in frames that make an iteration cheap: core/fast/kinematics.py.

    Element k rotates by turn[k, 0] * q + turn[k, 1] about its z axis and slides by slide[k] * q
    along it, with q the value of its variable; a translation and a rotation about x follow.
    """

    turn: Array  # (m, 2) rate (0 for prismatic elements) and offset [rad]
    slide: Array  # (m,) rate, 0 for revolute elements
    link: Array  # (m, 5) to the next frame: translation [m], cosine and sine of the rotation
    variable: Indices  # (m,) index of the joint variable that drives the element
    lower: Array  # (n,) [rad or m], -inf without a limit
    upper: Array  # (n,) [rad or m], +inf without a limit
    base: Array  # (3, 4) transform from the base to the first frame
    tip: Array  # (3, 3) rotation from the axes of the tip to those of the last frame


class ChainTable(NamedTuple):
    """Start configurations indexed by their poses: core/fast/table.py.

    A binary tree splits the rows by one feature per node; its leaves have `LEAF` rows.
    """

    levels: int
    first_turns: bool  # whether the first joint can compensate any rotation about its axis
    last_turns: bool  # whether the last joint can compensate any rotation about its axis
    by: Indices  # (nodes,) feature that a node compares; node 1 is the root
    cut: Array  # (nodes,) smallest value of that feature in the second half
    features: Array  # (leaves, 9, LEAF) features of the middle of the arm
    middle: Array  # (rows, 3, 4) last frame with the first and last joint at zero angle
    q: Array  # (rows, n)


class Method(NamedTuple):
    """Damping law, limit strategy, step bound and their parameters; symbols as in the papers."""

    damping: int  # id in damping.py
    limits: int  # id in limits.py
    step: int  # id in step_bounds.py
    following: bool  # whether the target moves: CTP then holds in one direction, the error damps
    alpha: float  # gain of every step
    lambda_: float  # damping factor of JD
    error_gain: float  # E = error_gain * norm(e)^2 of ED
    nu: float  # shape factor of SVF
    sigma0: float  # minimum singular value of the SVF
    gamma_max: float  # maximum joint change of SD and SDLS [rad or m]
    margin: float  # CTP, TP: width of the activation zone, as a fraction of the joint's range
    mu: float  # CTP, TP: gain of the push toward mid-range; GP, TA: gain of the objective


class TaskParams(NamedTuple):
    """The task: the r rows of the error and of the Jacobian, for k tips."""

    tip: Indices  # (r,) index of the tip that a row belongs to
    component: Indices  # (r,) 0 to 2: position, 3 to 5: rotation, along x, y or z
    weight: Array  # (r,) weight of a row; rotation rows include w [m/rad]
    group: Indices  # (r + 1,) rows of a group form a vector (position or rotation of a tip); TA's
    in_target: Flags  # (k,) whether components are along the axes of the target, not of the base
    rotation_kind: Indices  # (k,) comparison of rotations: ROTATION_... in task.py
    axis: Indices  # (k,) 0 to 2: pointing axis (ROTATION_SWING) or rotation axis (ROTATION_TWIST)
    exact_derivative: Flags  # (k,) whether rotation rows are exact derivatives far from the target
    has_tolerance: bool  # whether any row has a tolerance
    tolerance: Array  # (r,) error that counts as zero [m or rad]
    inner_tolerance: Array  # (r,) error left in a row that is moved into its tolerance [m or rad]
    round: Flags  # (r,) position rows of a tip whose common length is compared


class MethodParams(NamedTuple):
    """Choices and parameters of methods outside the fast path: numbers only, cheap to pass."""

    policy: int  # id in damping_policies.py: choice of the damping factor
    reach: int  # id in error_clamping.py: part of the error that one step corrects
    objective: int  # id in objectives.py
    search: int  # 17 or 18: iteration for the optimal damping factor, Deo & Walker 1993
    form: int  # 22, 23 or 24: GP with damping, Deo & Walker 1993
    adaptive: bool  # ClampMag: whether D_max grows by the effect of the last step
    by_approach: bool  # ClampMag: growth by the decrease of the error (text), not its increase
    soft: bool  # SDLS: scaled as in the published code, not clamped as in the text
    bug_compatible: bool  # SD, CLAMP, GP, TP, CTP: with the errors of the published code
    lambda0: float  # damping at the singularity (manipulability), and its scale (rate, Mayorga)
    w_t: float  # manipulability below which steps are damped
    rate_t: float  # ratio of the manipulabilities of two steps below which steps are damped
    velocity_bound: float  # maximum joint velocity for a unit velocity of the tip
    tracking_bound: float  # maximum tracking error relative to the velocity of the tip
    condition_bound: float  # maximum condition number
    lambda_max: float  # JF, accuracy: damping factor at the singularity
    epsilon: float  # JF, accuracy: smallest singular value below which steps are damped
    w_min: float  # accuracy: minimum weight of the direction that may be less exact
    omega: float  # IED: omega^2 is added to E
    truncation: float  # TPINV: singular values below this share of the largest count as zero
    alpha1: float  # GP (22), (23): weight of the distance from the objective's motion
    alpha2: float  # GP (22): weight of the joint motion
    Delta: float  # bound on the 2-norm of the step [rad or m]
    Delta_tolerance: float  # policy optimal: tolerance of the step's norm, relative to Delta
    D_max: float  # ClampMag: maximum error of a group [m]
    halving: float  # unreachable part of the error above which the error is halved [m]
    largest_change: float  # maximum joint change per step [rad or m]
    w_c: float  # TA: weight of the added row
    influence: float  # obstacle: maximum distance at which an obstacle repels [m]


class GeneralProblem(NamedTuple):
    """Inputs of a step on the general path; None instead of this struct selects the fast path."""

    task: TaskParams
    params: MethodParams
    direction: Array  # (r,) accuracy: unit vector of the task that may be less exact
    reference: Array  # (n,) posture: reference joint positions [rad or m]
    obstacle: Array  # (3,) in the base frame [m]
    joint_weights: Array  # (n,) diagonal of A in GP (22)
    translational: Flags  # (n,) joints that only slide


class Grouping(NamedTuple):
    """Groups of rows and kinds of joints that step bounds distinguish."""

    group: Indices  # (r,) group of each row, as in TaskParams
    translational: Flags  # (n,) joints that only slide


class StopCriteria(NamedTuple):
    """Criteria for a reached pose, and for the end of an attempt."""

    max_iterations: int  # maximum number of iterations of one attempt
    stall_count: int  # number of slow iterations in a row that end an attempt; 0: never
    long_attempt_every: int  # period of attempts that continue while the error decreases; 0: none
    position_tolerance: float  # tolerance of every tip [m]
    rotation_tolerance: float  # tolerance of every tip [rad]
    error_tolerance: float  # tolerance of the norm of the scaled error [m]
    rotation_weight: float  # w [m/rad]: the scaled error is (dp, w * rotation vector)
    stall_ratio: float  # an iteration is slow if more than this share of the error remains


class Starts(NamedTuple):
    """Bounds of random start configurations, and the joint metric."""

    lower: Array  # (n,) finite lower bounds of a uniform start [rad or m]
    upper: Array  # (n,) finite upper bounds [rad or m]
    periodic: Indices  # (n,) 1 for joints whose whole turns do not change the pose, else 0
    joint_weights: Array  # (n,) weights of the squared joint differences in the joint metric


class SelectionRule(NamedTuple):
    """Rule for the selection of one solution: numbers only."""

    kind: int  # FIRST, NEAREST, DEXTROUS or CLEAREST in selection.py
    num_candidates: int  # number of attempts that are compared; FIRST takes the first solution
    seeded: bool  # whether the first attempt starts from the seed


class SearchParams(NamedTuple):
    """Parameters of a search, common to all poses of a call."""

    method: Method
    stop: StopCriteria
    starts: Starts
    rule: SelectionRule


class PoseTargets(NamedTuple):
    """The b poses of a call."""

    T: Array  # (b, k, 4, 4) T_base_tip of each tip
    seed: Array  # (b, n), or (1, n) for all poses [rad or m]
    max_change: Array  # (n,) maximum difference of a solution from its seed [rad or m]


class Rows(NamedTuple):
    """State of the searches for b poses, which can be interrupted and continued."""

    counts: Indices  # (b, 4 or more) columns ATTEMPTS to PAIRS in selection.py
    best: Array  # (b, n) best solution, or the configuration with the smallest error [rad or m]
    figures: Array  # (b, 3) its position error [m], rotation error [rad] and the rule's measure


class SearchScratch(NamedTuple):
    """Scratch arrays of a search on the fast or the general path."""

    random_state: NDArray[np.uint64]  # (1,)
    q: Array  # (n,) joint positions of the attempt [rad or m]
    error: Array  # (2,) position error [m] and rotation error [rad] at q
    kept: Array  # (n,) a solution, while one closer to the seed is tried


class Memory(NamedTuple):
    """State of a method between the steps of an attempt; `steps[0]` is 0 before the first step."""

    steps: Indices  # (3,) number of steps; search iterations for lambda: last step, all steps
    lambda2: Array  # (1,) squared damping factor of the last step
    manipulability: Array  # (1,) manipulability at the last step
    gradient: Array  # (n,) gradient of the limit criterion at the last step
    J: Array  # (rows, n) Jacobian of the last step
    e: Array  # (r,) error of the last step before it was clamped
    remaining: Array  # (r,) error after the step, if the target has moved since then; else nan


class LimitState(NamedTuple):
    """Output of the limit strategy for dq = z + C P (e - J z); joints with h = 1 move by z only."""

    activation: Array  # h (n,) activation of each joint's limit, 0 (free) to 1 (held)
    motion: Array  # z (n,)
    scale: Array  # c (n,) diagonal of C, the scale of every column
    axis: Array  # a (n,) WLN: C = I - a a^T


class Workspace(NamedTuple):
    """Scratch arrays of one thread for m elements, k tips, n variables and r task rows."""

    axes: Array  # (m, 2, 3)
    T: Array  # (k, 3, 4)
    relative: Array  # (3, 3)
    full_error: Array  # (r,) scaled error without tolerances
    e: Array  # (r,) scaled error
    J: Array  # (r, n) scaled Jacobian
    dq: Array  # (n,) the step
    limit: LimitState
    memory: Memory


class FastWorkspace(NamedTuple):
    """Scratch arrays of one thread on the fast path, for m elements and n variables."""

    s: Array  # (m,) sine of each element's angle
    c: Array  # (m,) cosine
    axes: Array  # (m, 6) z axis and origin of each element's frame
    T: Array  # (3, 4) last frame, moved to the tip
    target: Array  # (3, 4) desired value of T
    relative: Array  # (3, 3)
    e: Array  # (6,) scaled error
    J: Array  # (n, 6) columns of the scaled Jacobian
    dq: Array  # (n,) the step
    h: Array  # (n,) activation of each joint's limit: 1 for a held joint, else 0
    y: Array  # (6,)
    z: Array  # (n,) motion toward the seed
    distance: Array  # (LEAF,) distances of the rows of a leaf from the target; inf for used rows
    features: Array  # (9,) features of the target
    memory: Array  # (13 n + 48,) scratch of solve_few in core/fast/step.py


class FollowState(NamedTuple):
    """State of following a target, updated in place by core/follow.py."""

    q: Array  # (n,) joint positions [rad or m]
    motion: Array  # (2 n,) last step, and the share that each joint takes of a full step
    memory: Memory  # state of the method
    observed: Array  # (4,) position error [m], rotation error [rad]; min, max singular value
    limit_activation: Array  # (n,) 0 (free) to 1 (held by its limit)


# Loops pass these on without reading their fields: structs of the general or of the fast path.
AnyChain: TypeAlias = Any  # Chain, or SerialChain
AnyWorkspace: TypeAlias = Any  # Workspace, or FastWorkspace
