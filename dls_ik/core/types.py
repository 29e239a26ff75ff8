"""The structs that kernels take and give. Arrays and numbers only, so that they cache on disk.

In structs that :mod:`dls_ik.core.fast.packed` packs, whole numbers stand before other numbers.
"""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
Flags = NDArray[np.bool_]
WIDEST = 1e7  # [rad or m] widest range of a joint that counts as limited


class Chain(NamedTuple):
    """The paths from the base to each of k tips, driven by the same n joint variables.

    A path is a row of moving elements; the m elements of all paths lie one after the other, so that
    a trunk that several tips share stands in each of their paths. A serial arm is one path.

    Every element moves about or along the z axis of its own frame: the model turns other axes into
    z by a fixed rotation before and after. A mimic joint is an element of its own that shares the
    variable of the joint it follows: element value = scale * q[variable] + offset.
    """

    fixed: Array  # (m + k, 3, 4) transform between elements of a path; its last one to the tip
    first: Indices  # (k + 1,) where the elements of each path begin; the last one is m
    prismatic: Flags  # (m,) along z instead of about z
    variable: Indices  # (m,) which joint variable drives the element
    scale: Array  # (m,)
    offset: Array  # (m,) [rad or m]
    lower: Array  # (n,) [rad or m], -inf without a limit
    upper: Array  # (n,) [rad or m], +inf without a limit
    velocity: Array  # (n,) [rad/s or m/s], +inf without a limit


class SerialChain(NamedTuple):
    """A chain of one path, in frames that make an iteration cheap: core/fast/kinematics.py.

    Element k turns by turn[k, 0] * q + turn[k, 1] about and slides by slide[k] * q along its z
    axis, q the value of its variable; then comes a translation and a rotation about x.
    """

    turn: Array  # (m, 2) rate, 0 for prismatic elements, and offset [rad]
    slide: Array  # (m,) rate, 0 for revolute elements
    link: Array  # (m, 5) translation [m] to, cosine and sine of the rotation into the next frame
    variable: Indices  # (m,) which joint variable drives the element
    lower: Array  # (n,) [rad or m], -inf without a limit
    upper: Array  # (n,) [rad or m], +inf without a limit
    base: Array  # (3, 4) from the base into the first frame
    tip: Array  # (3, 3) from the tip's axes to those of the last frame


class ChainTable(NamedTuple):
    """Configurations to start from, found by their poses: core/fast/table.py.

    A tree halves the rows again and again by one of their features; its leaves have `LEAF` rows.
    """

    levels: int
    first_turns: bool  # the first joint can make up for any turn of the arm about its axis
    last_turns: bool  # and the last one about its own
    by: Indices  # (nodes,) feature that a node of the tree goes by; node 1 is the root
    cut: Array  # (nodes,) its least value in the second half
    features: Array  # (leaves, 9, LEAF) of the middle of the arm
    middle: Array  # (rows, 3, 4) last frame with the first and last joint at zero angle
    q: Array  # (rows, n)


class Method(NamedTuple):
    """Law, strategy and bound, and the parameters of those on the fast path; papers' symbols."""

    damping: int  # id in damping.py
    limits: int  # id in limits.py
    step: int  # id in step_bounds.py
    following: bool  # a moving target: CTP holds one way only, and the error damps too
    alpha: float  # gain of every step
    lambda_: float  # damping factor of JD
    error_gain: float  # E = error_gain * norm(e)^2 of ED
    nu: float  # shape factor of SVF
    sigma0: float  # least singular value that SVF lets through
    gamma_max: float  # largest joint change of SD and SDLS [rad or m]
    margin: float  # CTP, TP: where activation begins, as a fraction of the joint's range
    mu: float  # CTP, TP: gain of the push toward mid-range; GP, TA: gain of the objective


class TaskParams(NamedTuple):
    """The pose errors that count: the r rows of the error and of the Jacobian, k tips."""

    tip: Indices  # (r,) whose error a row is of
    component: Indices  # (r,) 0 to 2: position, 3 to 5: rotation, along x, y or z
    weight: Array  # (r,) of the row; rotation rows: w included [m/rad]
    group: Indices  # (r + 1,) rows of one group make one vector: a tip's position or rotation; TA's
    in_target: Flags  # (k,) components are along the axes of the target, not the base's
    rotation_kind: Indices  # (k,) how rotation is compared: FREE to SINE in task.py
    axis: Indices  # (k,) 0 to 2: the axis that points (SWING), or is turned about (TWIST)
    exact_derivative: Flags  # (k,) of the rotation rows, also far from the target
    has_tolerance: bool  # whether any row has one
    tolerance: Array  # (r,) error that counts as zero [m or rad]
    inner_tolerance: Array  # (r,) error left to a row that is brought inside [m or rad]
    round: Flags  # (r,) of a tip's position: rows whose common length is compared


class MethodParams(NamedTuple):
    """Choices and parameters of methods beyond the fast path: numbers only, cheap to hand on."""

    policy: int  # id in damping_policies.py: how the damping factor is chosen
    reach: int  # id in error_clamping.py: how much of the error one step goes for
    objective: int  # id in objectives.py
    search: int  # 17 or 18: iteration for the optimal damping factor, Deo & Walker 1993
    form: int  # 22, 23 or 24: GP with damping, Deo & Walker 1993
    adaptive: bool  # ClampMag: D_max grows by what the last step did
    by_approach: bool  # by how far it came nearer, as in the text, not how far it led away
    soft: bool  # SDLS: scaled as by the published code, not clamped as in the text
    bug_compatible: bool  # SD, CLAMP, GP, TP, CTP: with the slips of the published code
    lambda0: float  # damping at the singularity (manipulability), and its scale (rate, Mayorga)
    w_t: float  # manipulability below which is damped
    rate_t: float  # ratio of manipulabilities of two steps below which is damped
    velocity_bound: float  # joint velocity for a unit velocity of the tip
    tracking_bound: float  # largest tracking error relative to the tip's velocity
    condition_bound: float  # largest condition number
    lambda_max: float  # JF, accuracy: damping factor at the singularity
    epsilon: float  # JF, accuracy: least singular value below which is damped
    w_min: float  # accuracy: least weight of the direction that may be less exact
    omega: float  # IED: its square is added to E
    truncation: float  # TPINV: singular values below this share of the largest count as zero
    alpha1: float  # GP (22), (23): weight of the distance from the objective's motion
    alpha2: float  # GP (22): weight of the joint motion
    Delta: float  # bound on the 2-norm of the step [rad or m]
    Delta_tolerance: float  # policy optimal: of the step's norm, relative to Delta
    D_max: float  # ClampMag: longest error of a group [m]
    halving: float  # unreachable part of the error above which it is halved [m]
    largest_change: float  # [rad or m]
    w_c: float  # TA: weight of the added row
    influence: float  # obstacle: distance within which it pushes [m]


class GeneralProblem(NamedTuple):
    """Inputs of the step of all methods; None in its place selects the fast path."""

    task: TaskParams
    params: MethodParams
    direction: Array  # (r,) accuracy: unit vector of the task that may be less exact
    reference: Array  # (n,) posture: where to [rad or m]
    obstacle: Array  # (3,) in the base frame [m]
    joint_weights: Array  # (n,) diagonal of A in GP (22)
    translational: Flags  # (n,) joints that only slide


class Grouping(NamedTuple):
    """Groups of rows and joints that step bounds distinguish."""

    group: Indices  # (r,) of each row, as in TaskParams
    translational: Flags  # (n,) joints that only slide


class StopCriteria(NamedTuple):
    """When a pose counts as reached, and when an attempt ends."""

    max_iterations: int  # of one attempt
    stall_count: int  # so many slow iterations in a row end an attempt; 0: never
    long_attempt_every: int  # every so many attempts one goes on while the error falls; 0: never
    position_tolerance: float  # [m] for every tip
    rotation_tolerance: float  # [rad]
    error_tolerance: float  # [m] for the norm of the scaled error
    rotation_weight: float  # w [m/rad]: the error is (dp, w * rotation vector)
    stall_ratio: float  # an iteration is slow if it leaves more than this share of the error


class Starts(NamedTuple):
    """Starts of the attempts after the first, and the way back of answers to the seed."""

    lower: Array  # (n,) finite bounds of a uniform start [rad or m]
    upper: Array  # (n,)
    periodic: Indices  # (n,) 1 where whole turns make no difference to the pose, else 0
    joint_weights: Array  # (n,) of the squared joint distances in the joint metric


class SelectionRule(NamedTuple):
    """Which of the solutions is selected: numbers only."""

    kind: int  # FIRST, NEAREST or DEXTROUS in search.py
    num_candidates: int  # attempts, of which the best solution is taken; FIRST takes the first one
    seeded: bool  # whether the first attempt starts from the seed


class SearchParams(NamedTuple):
    """Parameters of a search, the same for all poses of a call."""

    method: Method
    stop: StopCriteria
    starts: Starts
    rule: SelectionRule


class PoseTargets(NamedTuple):
    """The b poses of a call."""

    T: Array  # (b, k, 4, 4) T_base_tip of each tip
    seed: Array  # (b, n), or (1, n) for all [rad or m]
    max_change: Array  # (n,) by which an answer may differ from its seed [rad or m]


class Rows(NamedTuple):
    """The state of the searches for b poses, so that each can be stopped and taken up again."""

    counts: Indices  # (b, 4) see ATTEMPTS to STATE in search.py
    best: Array  # (b, n) the best solution, or where an attempt ended with the least error
    figures: Array  # (b, 3) position [m] and rotation error [rad] there, and the rule's measure


class SearchScratch(NamedTuple):
    """Scratch of a search, whatever the path."""

    random_state: NDArray[np.uint64]  # (1,)
    q: Array  # (n,) of the attempt
    error: Array  # (2,) position [m] and rotation error [rad] at q
    kept: Array  # (n,) a solution, while a nearer one is tried


class Memory(NamedTuple):
    """State of a method between the steps of an attempt; `steps` 0 is a fresh one."""

    steps: Indices  # (3,) made; iterations of the search for lambda, last and in all
    lambda2: Array  # (1,) squared damping factor of the last step
    manipulability: Array  # (1,)
    gradient: Array  # (n,) of the limit criterion
    J: Array  # (rows, n)
    e: Array  # (r,) before it was bounded
    remaining: Array  # (r,) error after the step, if the target has moved since; else nan


class LimitState(NamedTuple):
    """Output of the limit strategy: dq = z + C P (e - J z), joints with h = 1 held at z."""

    activation: Array  # h (n,) activation of each joint's limit, 0 free to 1 held
    motion: Array  # z (n,)
    scale: Array  # c (n,) diagonal of C, the scale of every column
    axis: Array  # a (n,) WLN: C = I - a a^T


class Workspace(NamedTuple):
    """Scratch of one thread for m elements, k tips, n variables and r task rows."""

    axes: Array  # (m, 2, 3)
    T: Array  # (k, 3, 4)
    relative: Array  # (3, 3)
    full_error: Array  # (r,) scaled error before tolerances are taken off
    e: Array  # (r,) scaled error
    J: Array  # (r, n) scaled Jacobian
    dq: Array  # (n,) the step
    limit: LimitState
    memory: Memory


class FastWorkspace(NamedTuple):
    """Scratch of one thread on the fast path, for m elements and n variables."""

    s: Array  # (m,) sine of each element's angle
    c: Array  # (m,) cosine
    axes: Array  # (m, 6) z axis and origin of each element's frame
    T: Array  # (3, 4) last frame, moved to the tip
    target: Array  # (3, 4) where that should be
    relative: Array  # (3, 3)
    e: Array  # (6,) scaled error
    J: Array  # (n, 6) columns of the scaled Jacobian
    dq: Array  # (n,) the step
    h: Array  # (n,) activation of each joint's limit: 1 where the joint is held, else 0
    y: Array  # (6,)
    z: Array  # (n,) way to the seed
    distance: Array  # (LEAF,) of the rows of a leaf from the target; inf once used
    features: Array  # (9,) of the target
    memory: Array  # (13 n + 48,) of solve_few in core/fast/step.py


class FollowState(NamedTuple):
    """State of following a target, stepped in place by core/follow.py."""

    q: Array  # (n,) joint values [rad or m]
    motion: Array  # (2 n,) the last step, and the share that each joint takes of a full one
    memory: Memory  # of the method
    observed: Array  # (4,) position [m] and rotation error [rad]; least, greatest singular value
    limit_activation: Array  # (n,) 0 free to 1 held by its limit


# Loops hand these on without looking into them: of the general path, or of the fast one.
AnyChain: TypeAlias = Any  # Chain, or SerialChain
AnyWorkspace: TypeAlias = Any  # Workspace, or FastWorkspace
