"""The structs that kernels take and give. Arrays and numbers only, so that they cache on disk."""

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]
WIDEST = 1e7  # [rad or m] of a limit; beyond, it is none that matters


class Chain(NamedTuple):
    """The paths from the base to each of k tips, driven by the same n joint variables.

    A path is a row of moving elements; the m elements of all paths lie one after the other, so that
    a trunk that several tips share stands in each of their paths. A serial arm is one path.

    Every element moves about or along the z axis of its own frame: the model turns other axes into
    z by a fixed rotation before and after. A mimic joint is an element of its own that shares the
    variable of the joint it follows: element value = scale * q[variable] + offset.
    """

    fixed: Array  # (m + k, 3, 4) transform between elements of a path; its last one to the tip
    first: NDArray[np.int64]  # (k + 1,) where the elements of each path begin; the last one is m
    prismatic: NDArray[np.bool_]  # (m,) along z instead of about z
    variable: NDArray[np.int64]  # (m,) which joint variable drives the element
    scale: Array  # (m,)
    offset: Array  # (m,) [rad or m]
    lower: Array  # (n,) [rad or m], -inf where there is none
    upper: Array  # (n,) [rad or m], +inf where there is none
    velocity: Array  # (n,) [rad/s or m/s], +inf where there is none


class Arm(NamedTuple):
    """The only path of a chain in frames that make an iteration cheap: core/fast/kinematics.py.

    Element k turns by turn[k, 0] * q + turn[k, 1] about and slides by slide[k] * q along its z
    axis, q the value of its variable; then comes a translation and a rotation about x.
    """

    turn: Array  # (m, 2) rate, 0 for prismatic elements, and offset [rad]
    slide: Array  # (m,) rate, 0 for revolute elements
    link: Array  # (m, 5) translation [m] to, cosine and sine of the rotation into the next frame
    variable: NDArray[np.int64]  # (m,) which joint variable drives the element
    lower: Array  # (n,) [rad or m], -inf where there is none
    upper: Array  # (n,) [rad or m], +inf where there is none
    base: Array  # (3, 4) from the base into the first frame
    tip: Array  # (3, 3) from the tip's axes to those of the last frame


class Table(NamedTuple):
    """Configurations to start from, found by their poses: core/fast/table.py.

    A tree halves the rows again and again by one of their features; its leaves have `LEAF` rows.
    """

    features: Array  # (leaves, 9, LEAF) of the middle of the arm
    middle: Array  # (rows, 3, 4) last frame with the first and last joint at zero angle
    q: Array  # (rows, n)
    by: NDArray[np.int64]  # (nodes,) feature that a node of the tree goes by; node 1 is the root
    cut: Array  # (nodes,) its least value in the second half
    levels: int
    first_turns: bool  # the first joint can make up for any turn of the arm about its axis
    last_turns: bool  # and the last one about its own


class Method(NamedTuple):
    """Which law, strategy and bound, and the parameters that most have; symbols as in papers."""

    damping: int  # id of a file in damping/
    limits: int  # id of a file in limits/
    step: int  # id of a file in step/
    alpha: float  # gain of every step
    lambda_: float  # damping factor of JD
    error_gain: float  # E = error_gain * norm(e)^2 of ED
    nu: float  # shape factor of SVF
    sigma0: float  # least singular value that SVF lets through
    gamma_max: float  # largest joint change of SD and SDLS [rad or m]
    margin: float  # CTP, TP: where activation begins, as a fraction of the joint's range
    mu: float  # CTP, TP: gain of the push toward mid-range; GP, TA: gain of the objective
    following: bool  # a target: CTP one way (limits/ctp.py), and the error damps too


class Task(NamedTuple):
    """Which of the pose errors count: the r rows of the error and of the Jacobian, k tips."""

    tip: NDArray[np.int64]  # (r,) whose error a row is of
    component: NDArray[np.int64]  # (r,) 0 to 2: position, 3 to 5: rotation, along x, y or z
    weight: Array  # (r,) of the row; rotation rows: w included [m/rad]
    group: NDArray[np.int64]  # (r,) rows of one group make one vector: a tip's position or rotation
    groups: int
    in_target: NDArray[np.bool_]  # (k,) components are along the axes of the target, not the base's
    turning: NDArray[np.int64]  # (k,) how rotation is compared: FREE to EULER in task.py
    axis: NDArray[np.int64]  # (k,) 0 to 2: the axis that points (SWING), or is turned about (TWIST)
    exact: NDArray[np.bool_]  # (k,) rotation rows have their exact derivative, far from the target
    has_slack: bool  # whether any row has a tolerance
    slack: Array  # (r,) tolerance: error that counts as zero [m or rad]
    aim: Array  # (r,) how much of it is left to a row that is brought inside [m or rad]
    round: NDArray[np.bool_]  # (r,) of a tip's position: those of one length that is compared


class Settings(NamedTuple):
    """Choices and parameters of methods beyond the quick ones: numbers only, cheap to hand on."""

    policy: int  # id of a file in policy/: how the damping factor is chosen
    reach: int  # id of a file in reach/: how much of the error one step goes for
    objective: int  # id of a file in objectives/
    search: int  # 17 or 18: iteration for the optimal damping factor, Deo & Walker 1993
    form: int  # 22, 23 or 24: GP with damping, Deo & Walker 1993
    adaptive: bool  # ClampMag: D_max grows when the target jumps away
    soft: bool  # SDLS: scaled as by the published code, not clamped as in the text
    published: bool  # slips of the published code instead of what is meant
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
    D_max: float  # ClampMag: longest error of a group [m]
    halving: float  # part of the error out of reach above which it is halved [m]
    largest_change: float  # [rad or m]
    w_c: float  # TA: weight of the added row
    influence: float  # obstacle: distance within which it pushes [m]


class Details(NamedTuple):
    """What the methods beyond the quick ones need to know; None in its place leaves them out."""

    task: Task
    settings: Settings
    direction: Array  # (r,) accuracy: unit vector of the task that may be less exact
    reference: Array  # (n,) posture: where to [rad or m]
    obstacle: Array  # (3,) in the base frame [m]
    joint_weights: Array  # (n,) diagonal of A in GP (22)
    translational: NDArray[np.bool_]  # (n,) joints that only slide


class Goal(NamedTuple):
    """When a pose counts as reached, and when an attempt ends."""

    position_tolerance: float  # [m] for every tip
    rotation_tolerance: float  # [rad]
    error_tolerance: float  # [m] for the norm of the scaled error
    rotation_weight: float  # w [m/rad]: the error is (dp, w * rotation vector)
    max_iterations: int  # of one attempt
    stall_ratio: float  # an iteration is slow if it leaves more than this share of the error
    stall_count: int  # so many slow iterations in a row end an attempt; 0: never
    patience: int  # every so many attempts one goes on while it gets anywhere; 0: none does


class Starts(NamedTuple):
    """Where attempts after the first one start, and how answers are brought back to the seed."""

    lower: Array  # (n,) finite bounds of a uniform start [rad or m]
    upper: Array  # (n,)
    turning: Indices  # (n,) 1 where whole turns make no difference to the pose, else 0
    joint_weights: Array  # (n,) of the squared joint distances in the joint metric


class Wish(NamedTuple):
    """Which of the solutions is wanted: numbers only."""

    kind: int  # FIRST, NEAREST or DEXTROUS in search.py
    compared: int  # attempts, of which the best solution is taken; FIRST takes the first one
    seeded: bool  # whether the first attempt starts from the seed


class Rows(NamedTuple):
    """The state of the searches for b poses, so that each can be stopped and taken up again."""

    counts: NDArray[np.int64]  # (b, 4) see ATTEMPTS to STATE in search.py
    best: Array  # (b, n) the best solution, or where an attempt ended with the least error
    figures: Array  # (b, 3) position [m] and rotation error [rad] there, and what a wish goes by


class Memory(NamedTuple):
    """What a method remembers from one step of an attempt to the next; `steps` 0 is a fresh one."""

    steps: NDArray[np.int64]  # (3,) made; iterations of the search for lambda, last and in all
    lambda2: Array  # (1,) squared damping factor of the last step
    manipulability: Array  # (1,)
    gradient: Array  # (n,) of the limit criterion
    J: Array  # (rows, n)
    e: Array  # (r,) before it was bounded
    left: Array  # (r,) what the step left of it, if the target has moved since; else nan


class Workspace(NamedTuple):
    """Scratch of one thread for m elements, k tips, n variables and r task rows."""

    axes: Array  # (m, 2, 3)
    T: Array  # (k, 3, 4)
    relative: Array  # (3, 3)
    whole: Array  # (r,) scaled error before tolerances are taken off
    e: Array  # (r,) scaled error
    J: Array  # (r, n) scaled Jacobian
    dq: Array  # (n,) the step
    h: Array  # (n,) activation of each joint's limit, 0 free to 1 held
    z: Array  # (n,) motion that the limit strategy asks for
    memory: Memory


class QuickWork(NamedTuple):
    """Scratch of one thread on the quick path, for m elements and n variables."""

    s: Array  # (m,) sine of each element's angle
    c: Array  # (m,) cosine
    axes: Array  # (m, 6) z axis and origin of each element's frame
    T: Array  # (3, 4) last frame, moved to the tip
    target: Array  # (3, 4) where that should be
    relative: Array  # (3, 3)
    e: Array  # (6,) scaled error
    J: Array  # (n, 6) columns of the scaled Jacobian
    dq: Array  # (n,) the step
    h: Array  # (n,) 1 where a joint is held, else 0
    y: Array  # (6,)
    z: Array  # (n,) way to the seed
    distance: Array  # (LEAF,) of the rows of a leaf from the target; inf once used
    features: Array  # (9,) of the target


# What loops hand on without looking into it: the types of the one kind of solver or of the other.
Structure: TypeAlias = Any  # Chain, or Arm on the quick path
Scratch: TypeAlias = Any  # Workspace, or QuickWork
