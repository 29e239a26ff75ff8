"""Options as keyword arguments, for type checkers and editors; declared in :mod:`.options`.

``Unpack`` is in :mod:`typing` from Python 3.11 on: signatures that use it take it from
``typing_extensions`` while types are checked, and need nothing when they run.
"""

from collections.abc import Sequence
from typing import Literal, TypeAlias, TypedDict

from dls_ik.core.types import Array

Vector: TypeAlias = Sequence[float] | Array  # numbers
SolveType: TypeAlias = Literal["speed", "distance", "manipulability"]
Policy: TypeAlias = Literal[
    "constant",
    "error",
    "manipulability",
    "rate",
    "velocity",
    "tracking",
    "condition",
    "accuracy",
    "mayorga-condition",
    "mayorga-rank",
    "optimal",
]


class SolverKeywords(TypedDict, total=False):
    """Fields of :class:`dls_ik.solver.options.SolverOptions`, which says what they mean."""

    position_tolerance: float
    rotation_tolerance: float
    error_tolerance: float
    rotation_weight: float
    length_unit: float
    timeout: float
    max_iterations: int
    max_restarts: int | None
    random_seed: int
    stall_ratio: float
    stall_count: int
    long_attempt_every: int
    prove_after: int
    starts: Literal["random", "table"]
    solve_type: SolveType
    num_candidates: int
    max_joint_change: float | Vector
    approximate: bool
    alpha: float
    lambda_: float
    error_gain: float
    nu: float
    sigma0: float
    gamma_max: float
    margin: float
    mu: float
    policy: Policy
    lambda0: float
    w_t: float
    rate_t: float
    velocity_bound: float
    tracking_bound: float
    condition_bound: float
    lambda_max: float
    epsilon: float
    w_min: float
    direction: Vector | None
    search: Literal[17, 18]
    Delta: float
    omega: float
    truncation: float
    objective: Literal["limits", "centring", "manipulability", "posture", "obstacle"]
    form: Literal[22, 23, 24]
    alpha1: float
    alpha2: float
    joint_weights: Vector | None
    w_c: float
    reference: Vector | None
    obstacle: Vector | None
    influence: float
    D_max: float
    adaptive: bool
    halving: float
    largest_change: float
    soft: bool
    bug_compatible: bool
