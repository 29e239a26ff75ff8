# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Structs that are passed to and returned by kernels.

Structs contain only arrays, numbers and other structs, so that compiled kernels can be cached. In
the structs that :mod:`dls_ik.core.fast.packed` packs, integers come before other numbers.

The scaled error of a task has the unit m: its rotation rows are multiplied by a weight [m/rad]. The
Jacobian of the scaled error is scaled in the same manner.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
# Structs of the general path or of the fast path, in functions that serve both paths.
AnyChain: TypeAlias = Any  # Chain, or SerialChain
AnyWorkspace: TypeAlias = Any  # Workspace, or FastWorkspace
MAX_POSE_COORDINATE = 1e9  # [m] largest coordinate of a pose; squares lose digits beyond
WIDEST = 1e7  # [rad or m] joints with a larger range count as unlimited


class Chain(NamedTuple):
    """The paths from the base to each of k tips, driven by the same n joint variables.

    A path is a sequence of moving elements. The m elements of all paths are stored one path after
    the other, so that the elements of a trunk that leads to several tips are stored once for each
    tip. A serial arm has one path.

    Every element rotates about, or slides along, the z axis of its own frame; for a joint with
    another axis, the fixed transforms include rotations. An element has the position
    scale * q[variable] + offset. A mimic joint is a separate element with the variable of the joint
    that it mimics.
    """

    # (m + k, 3, 4) for each path, the fixed transform before each element, then that to the tip
    fixed: Array
    first: Indices  # (k + 1,) index of the first element of each path; the last entry is m
    prismatic: Flags  # (m,) whether the element slides along z instead of turning about z
    variable: Indices  # (m,) index of the joint variable that drives the element
    scale: Array  # (m,) factor of the joint variable in the element position
    offset: Array  # (m,) offset of the element position [rad or m]
    lower: Array  # (n,) lower position limits [rad or m], -inf without a limit
    upper: Array  # (n,) upper position limits [rad or m], +inf without a limit
    velocity: Array  # (n,) velocity limits [rad/s or m/s], +inf without a limit


class SerialChain(NamedTuple):
    """A chain of one path for the fast path, whose frames need few operations per iteration.

    Element k rotates by turn[k, 0] * q + turn[k, 1] about its z axis and slides by slide[k] * q
    along this axis, with q the value of its joint variable. A fixed translation and a fixed
    rotation about x lead to the frame of the next element. See core/fast/kinematics.py.
    """

    turn: Array  # (m, 2) rotation per joint variable (0 for prismatic elements), and offset [rad]
    slide: Array  # (m,) translation per joint variable, 0 for revolute elements
    # (m, 5) transform to the next frame: x, y, z [m]; cosine and sine of the rotation about x
    link: Array
    variable: Indices  # (m,) index of the joint variable that drives the element
    lower: Array  # (n,) lower position limits [rad or m], -inf without a limit
    upper: Array  # (n,) upper position limits [rad or m], +inf without a limit
    base: Array  # (3, 4) transform from the base to the first frame
    tip: Array  # (3, 3) rotation from the axes of the tip to those of the last frame


class ChainTable(NamedTuple):
    """Table of start configurations, in which those close to a pose are found by features.

    Each row is a configuration with nine features of its pose. A binary tree divides the rows by
    the value of one feature per node; a leaf has `LEAF` rows. See core/fast/table.py.
    """

    levels: int  # number of levels of the tree
    first_turns: bool  # whether the first joint can compensate any rotation about its axis
    last_turns: bool  # whether the last joint can compensate any rotation about its axis
    by: Indices  # (nodes,) index of the feature that a node compares; node 1 is the root
    cut: Array  # (nodes,) smallest value of this feature in the second half of the node's rows
    features: Array  # (leaves, 9, LEAF) features of the rows, independent of first and last joint
    middle: Array  # (rows, 3, 4) last frame if the first and the last joint have zero angle
    q: Array  # (rows, n) joint positions [rad or m]


class Method(NamedTuple):
    """Damping law, limit strategy, step bound, and the parameters of the methods of the fast path.

    Abbreviations (JD, ED, SVF, ...) are those of the sections in the modules of the ids.
    """

    damping: int  # id in damping.py
    limits: int  # id in limits.py
    step: int  # id in step_bounds.py
    following: bool  # whether a moving target is followed: changes CTP, adds damping by the error
    alpha: float  # gain of every step
    lambda_: float  # damping factor of JD
    error_gain: float  # E = error_gain * norm(e)^2 of ED
    nu: float  # shape factor of SVF
    sigma0: float  # minimum singular value of SVF
    gamma_max: float  # maximum joint change of SD and SDLS [rad or m]
    margin: (
        float  # CTP, TP, IDV, CNS: width of the activation zone, as a fraction of the joint's range
    )
    mu: float  # CTP, TP: gain of the push toward mid-range; GP, TA, SRTP, AVOID: gain of the task


class TaskParams(NamedTuple):
    """The task: definition of the r rows of the error and of its Jacobian, for k tips.

    See core/task.py. The rows of a group form a vector, the position or rotation error of a tip.
    """

    tip: Indices  # (r,) index of the tip that a row belongs to
    component: Indices  # (r,) 0 to 2: position, 3 to 5: rotation, along x, y or z
    weight: Array  # (r,) factor in the scaled error; [m/rad] for rotation rows
    group: Indices  # (r + 1,) group of each row; last, the group of the row that TA adds
    in_target: Flags  # (k,) whether components are along the axes of the target, not of the base
    rotation_kind: Indices  # (k,) kind of rotation error: ROTATION_... in task.py
    axis: Indices  # (k,) 0 to 2: pointing axis (ROTATION_SWING) or rotation axis (ROTATION_TWIST)
    exact_derivative: Flags  # (k,) whether rotation rows are exact derivatives far from the target
    has_tolerance: bool  # whether any row has a tolerance
    tolerance: Array  # (r,) maximum error that counts as zero [m or rad]
    inner_tolerance: Array  # (r,) error to which a step reduces a larger error [m or rad]
    round: Flags  # (r,) position rows of a tip whose tolerance applies to the length of the vector


class MethodParams(NamedTuple):
    """Choices and parameters of the methods that only the general path has.

    All fields are numbers, so that the struct is cheap to pass. Where a comment begins with a name,
    the parameter belongs to the damping law, policy, strategy or bound of this name.
    """

    policy: int  # id in damping_policies.py: choice of the damping factor
    reach: int  # id in error_clamping.py: limit on the error that one step corrects
    objective: int  # id in objectives.py
    search: int  # optimal: 17 or 18, equation of the iteration in Deo & Walker 1993
    form: int  # GP: 22, 23 or 24, equation of the form with damping in Deo & Walker 1993
    adaptive: bool  # CLAMP: whether D_max grows by the change of the error in the last step
    by_approach: bool  # CLAMP: whether D_max grows by the decrease of the error, not its increase
    soft: bool  # SDLS: whether to scale as in the published code, not clamp as in the text
    optimal_saturation: bool  # SNS: whether to use the largest scale that the bounds permit
    bug_compatible: bool  # SD, CLAMP, GP, TP, CTP: whether to reproduce errors of published code
    lambda0: float  # manipulability, rate, Mayorga: lambda^2 at, or its scale near, a singularity
    w_t: float  # manipulability below which steps are damped
    rate_t: float  # ratio of the manipulabilities of two steps below which steps are damped
    velocity_bound: float  # maximum joint velocity for a unit velocity of the tip
    tracking_bound: float  # maximum tracking error relative to the velocity of the tip
    condition_bound: float  # maximum condition number
    lambda_max: float  # JF, accuracy: damping factor at a singularity
    epsilon: float  # JF, accuracy: smallest singular value below which steps are damped
    w_min: float  # accuracy: minimum weight of the direction that may be less accurate
    omega: float  # IED: omega^2 is added to E
    least_bias: float  # LM: smallest bias of a joint
    gauss_width: float  # GDLS: singular value at which lambda^2 is 1/e of its maximum
    truncation: float  # TPINV: singular values below this share of the largest count as zero
    alpha1: float  # GP (22), (23): weight of the difference between the step and -mu grad H
    alpha2: float  # GP (22): weight of the length of the step
    Delta: float  # optimal, NORM: maximum 2-norm of the step [rad or m]
    Delta_tolerance: float  # optimal: tolerance of the 2-norm of the step, relative to Delta
    D_max: float  # CLAMP: maximum length of the error vector of a group [m]
    halving: float  # HALVE: unreachable part of the error above which the error is halved [m]
    largest_change: float  # maximum joint change per step [rad or m]
    w_c: float  # TA: weight of the row that is added to the task
    switch_distance: float  # SDLS_NEAR: norm of the error below which SDLS replaces the law [m]
    influence: float  # obstacle: maximum distance at which an obstacle repels [m]


class GeneralProblem(NamedTuple):
    """Inputs of a step on the general path; None instead of this struct selects the fast path.

    Where a comment begins with a name, the array belongs to the policy, objective or strategy.
    """

    task: TaskParams
    params: MethodParams
    direction: Array  # (r,) accuracy: unit vector of the task that may be less accurate
    reference: Array  # (n,) posture: reference joint positions [rad or m]
    obstacle: Array  # (3,) obstacle: position in the base frame [m]
    joint_weights: Array  # (n,) GP: diagonal of A in form (22)
    bias: Array  # (n,) LM: bias of each joint
    largest_step: Array  # (n,) SNS, HQP: maximum change of each joint in a step [rad or m]
    translational: Flags  # (n,) whether each joint is prismatic


class Grouping(NamedTuple):
    """Groups of the rows of the task, and kinds of joints, for step bounds."""

    group: Indices  # (r,) number of the group of each task row, see :class:`TaskParams`
    translational: Flags  # (n,) whether each joint is prismatic


class StepMethod(NamedTuple):
    """A method on the general path, with everything that its inverses and step bounds need."""

    method: Method
    params: MethodParams
    grouping: Grouping


class StopCriteria(NamedTuple):
    """Criteria by which a pose counts as reached, or an attempt ends without reaching it."""

    max_iterations: int  # maximum number of iterations of one attempt
    stall_count: int  # number of slow iterations in a row that end an attempt; 0: never
    long_attempt_every: int  # attempts whose number is a multiple of this are long; 0: none
    position_tolerance: float  # tolerance of every tip [m]
    rotation_tolerance: float  # tolerance of every tip [rad]
    error_tolerance: float  # tolerance of the norm of the scaled error [m]
    rotation_weight: float  # w [m/rad]: the scaled error is (dp, w * rotation vector)
    stall_ratio: float  # an iteration is slow if a larger share of the error remains


class Starts(NamedTuple):
    """Bounds of random start configurations, and weights of the joint metric."""

    lower: Array  # (n,) finite lower bounds of random starts [rad or m]
    upper: Array  # (n,) finite upper bounds of random starts [rad or m]
    periodic: Indices  # (n,) 1 for joints whose whole turns do not change the pose, else 0
    joint_weights: Array  # (n,) weights of the squared joint differences in the joint metric


class SelectionRule(NamedTuple):
    """Rule by which one solution of a pose is selected."""

    kind: int  # FIRST, NEAREST, DEXTROUS or CLEAREST in selection.py
    num_candidates: int  # number of attempts whose solutions are compared; unused for FIRST
    seeded: bool  # whether the first attempt starts from the seed


class SearchParams(NamedTuple):
    """Parameters of a search, common to all poses of a call."""

    method: Method
    stop: StopCriteria
    starts: Starts
    rule: SelectionRule


class PoseProblem(NamedTuple):
    """One pose to solve, on the fast path or on the general path; see :mod:`dls_ik.core.search`.

    The joint limits and the bounds of random starts are those near the seed.
    """

    chain: AnyChain  # the arm, with its joint limits; SerialChain on the fast path, else Chain
    params: SearchParams
    table: ChainTable | None  # start configurations of the fast path; None on the general path
    general: GeneralProblem | None  # task and parameters of the general path; None on the fast path
    T_d: Array  # (k, 4, 4) desired poses of the tips
    seed: Array  # (n,) joint positions of the seed [rad or m]


class PoseTargets(NamedTuple):
    """The b poses of a call, with their seeds."""

    T: Array  # (b, k, 4, 4) desired T_base_tip of each tip
    seed: Array  # (b, n), or (1, n) for all poses [rad or m]
    max_change: Array  # (n,) maximum difference of a solution from its seed [rad or m]


class Rows(NamedTuple):
    """State of the searches for b poses, by which searches can be interrupted and continued.

    The state of one pose, without the first dimension, is called a row.
    """

    counts: Indices  # (b, 4 or more) columns ATTEMPTS to PAIRS in selection.py
    best: Array  # (b, n) best solution, or the configuration with the smallest error [rad or m]
    figures: Array  # (b, 3) position error [m], rotation error [rad] and measure of `best`


class SearchScratch(NamedTuple):
    """Scratch arrays of one thread for searches."""

    random_state: NDArray[np.uint64]  # (1,) state of the random generator
    q: Array  # (n,) joint positions of the attempt [rad or m]
    error: Array  # (2,) position error [m] and rotation error [rad] at q
    kept: Array  # (n,) copy of a solution while a solution closer to the seed is tried
    lower: Array  # (n,) lower joint limits near the seed [rad or m]
    upper: Array  # (n,) upper joint limits near the seed [rad or m]
    starts: Starts  # copy of the `starts` of the search, with bounds near the seed
    work: AnyWorkspace  # scratch arrays of the path: FastWorkspace or Workspace


class Memory(NamedTuple):
    """State of a method between the steps of an attempt; `steps[0]` is 0 before the first step."""

    # (4,) number of steps; iterations that determine lambda, in the last step and in all steps;
    # number of earlier attempts for the pose
    steps: Indices
    lambda2: Array  # (1,) squared damping factor of the last step
    manipulability: Array  # (1,) manipulability at the last step
    gradient: Array  # (n,) gradient of the limit criterion at the last step
    J: Array  # (rows, n) Jacobian of the last step
    e: Array  # (r,) error of the last step before it was clamped
    remaining: Array  # (r,) error that the last step left for its own target; nan if unknown
    sqp: Array  # (n + 4, n + 2) SQP: state of the minimisation, see core/sqp.py; else (0, n + 2)


class LimitState(NamedTuple):
    """Output of a limit strategy for the step dq = z + C P (e - J z).

    Joints with the activation 1 move by z only.
    """

    activation: Array  # h (n,) activation of each joint's limit, 0 (free) to 1 (held)
    motion: Array  # z (n,) motion that the strategy prescribes for each joint [rad or m]
    scale: Array  # c (n,) diagonal of C, the factor of every column of the Jacobian
    # (n,) GWLN: vector a of C = I - a a^T, which is not diagonal; IDV, CNS: stored activations
    axis: Array


class Decomposition(NamedTuple):
    """Singular value decomposition B = U diag(s) V^T of the last matrix that was decomposed.

    All entries are NaN before the first decomposition.
    """

    B: Array  # (r, n) matrix that was decomposed
    Ut: Array  # (r, r) left singular vectors u_i as rows
    s: Array  # (r,) singular values in descending order
    Vt: Array  # (r, n) right singular vectors v_i as rows


class StepScratch(NamedTuple):
    """Scratch arrays of core/step.py, for r task rows and, for the strategy TA, one more row."""

    v: Array  # (n,) gradient of the objective, times its gain
    J: Array  # (r, n) Jacobian with the row of TA, or with filtered singular values
    e: Array  # (r,) error with the row of TA
    B: Array  # (r, n) Jacobian with scaled columns, whose inverse is applied
    left: Array  # (r,) error that the inverse corrects
    W: Array  # (r, r) weight of the error
    free: Indices  # (n,) indices of the free joints


class Workspace(NamedTuple):
    """Scratch arrays of one thread on the general path.

    The sizes are m moving elements, k tips, n joint variables and r task rows.
    """

    axes: Array  # (m, 2, 3) z axis and origin of each element's frame
    T: Array  # (k, 3, 4) poses of the tips
    relative: Array  # (3, 3) a relative rotation
    full_error: Array  # (r,) scaled error without regard to tolerances [m]
    e: Array  # (r,) scaled error [m]
    J: Array  # (r, n) Jacobian of the scaled error
    dq: Array  # (n,) step of the method [rad or m]
    limit: LimitState  # output of the limit strategy
    memory: Memory  # state of the method between steps
    step: StepScratch
    last_svd: Decomposition  # reused if the matrix to decompose is the same as before


class FastWorkspace(NamedTuple):
    """Scratch arrays of one thread on the fast path, for m elements and n joint variables."""

    s: Array  # (m,) sine of each element's angle
    c: Array  # (m,) cosine of each element's angle
    axes: Array  # (m, 6) z axis and origin of each element's frame
    T: Array  # (3, 4) orientation of the last frame and position of the tip
    target: Array  # (3, 4) desired value of T
    relative: Array  # (3, 3) a relative rotation
    e: Array  # (6,) scaled error [m]
    J: Array  # (n, 6) transposed Jacobian of the scaled error
    dq: Array  # (n,) step of the method [rad or m]
    h: Array  # (n,) activation of each joint's limit: 1 for a held joint, else 0
    y: Array  # (6,) solution of the normal equations
    z: Array  # (n,) motion toward the seed [rad or m]
    distance: Array  # (LEAF,) squared distances of a leaf's rows from the target, inf if used
    features: Array  # (9,) features of the target
    memory: Array  # (13 n + 48,) scratch of solve_few in core/fast/step.py


class FollowMethods(NamedTuple):
    """Method chosen for following a target, and a fallback for cycles without a useful step.

    The fallback replaces the chosen method in each cycle in which neither the step of the chosen
    method nor a shorter step in its direction lowers the error.
    """

    method: Method  # chosen method
    general: GeneralProblem  # task and parameters for `method`
    descending: Method  # fallback method, whose steps lower the error at almost all configurations
    plain: GeneralProblem  # task and parameters for `descending`
    stop: StopCriteria  # tolerances within which a pose counts as reached
    mobility: Array  # (n,) factor of the columns of J, 1 / sqrt(weight); 0 for frozen joints


class FollowScratch(NamedTuple):
    """Scratch arrays of core/follow.py; the task has r rows, and m is the smaller of r and n."""

    outside: Array  # (n,) 1 for joints that are beyond a limit and return to it, else 0
    free: Array  # (n,) share, 0 to 1, of its step that each joint can make because of its limits
    e: Array  # (r,) scaled error before the step [m]
    J: Array  # (r, n) Jacobian of the scaled error before the step
    left: Array  # (r,) scaled error that remains after the step [m]
    F: Array  # (r, n) Jacobian of the free joints
    K: Array  # (n, n) derivatives of J^T left
    curvature: Decomposition  # symmetric matrix (m, m)
    A: Array  # (m, m) Hessian matrix
    along: Array  # (m,) step along the singular directions of F
    stiff: Array  # (m,) right side of Newton's method
    trial: Array  # (n,) joint positions [rad or m]
    error: Array  # (2,) position error [m] and rotation error [rad]


class FollowState(NamedTuple):
    """State of following a target, which core/follow.py updates in place in each control cycle."""

    q: Array  # (n,) joint positions [rad or m]
    motion: Array  # (2 n,) last step of each joint, and the share of a full step that it makes
    work: Workspace  # scratch arrays, and state of the method
    scratch: FollowScratch
    observed: Array  # (4,) position error [m], rotation error [rad]; min, max singular value of J
    limit_activation: Array  # (n,) 0 (free) to 1 (held by its limit)
