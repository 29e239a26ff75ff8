# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Options of the solver: declarations with default, unit, range and meaning; validation.

Each option is declared once, as a field of a frozen dataclass. The options of the servo controller
and the parameters of the node are declared and validated in the same way.

Signatures with options use ``**options: Unpack[SolverKeywords]``, so that type checkers know the
option types. ``Unpack`` is in :mod:`typing` only since Python 3.11. Type checkers therefore import
it from ``typing_extensions``; at run time it is not imported.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, Literal, TypeAlias, TypedDict

from dls_ik.core import damping, damping_policies, limits, objectives
from dls_ik.core.types import Array, Method, StopCriteria
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.joint import ordered_values, some_by_name
from dls_ik.solver.method import AUTO_METHOD, MethodChoice
from dls_ik.solver.task import ROTATION_ERRORS
from dls_ik.text import did_you_mean, listing, quoted, suggest_names

MAX_VECTOR_ENTRY = 1e9  # also the maximum of pose coordinates
RESTARTS_UNTIL_TIMEOUT = 1_000_000_000  # maximum of max_restarts: the timeout ends every search
GP_FORMS, OPTIMAL_SEARCHES = (22, 23, 24), (17, 18)
ADAPTIVE_BY = ("divergence", "approach")
STARTS = "random", "table"
SOLVE_TYPES = "speed", "distance", "manipulability", "clearance"
SOLVE_TYPE_ALIASES = {"nearest": "distance"}

Vector: TypeAlias = Sequence[float] | Array | Mapping[str, float]  # keys of a mapping: joint names
SolveType: TypeAlias = Literal["speed", "distance", "nearest", "manipulability", "clearance"]
Policy: TypeAlias = Literal[
    "constant", "error", "manipulability", "rate", "velocity", "tracking", "condition", "accuracy",
    "mayorga-condition", "mayorga-rank", "optimal",
]  # fmt: skip

# Names of other libraries and of text books, each with the option that it stands for
USUAL_NAMES = {
    **dict.fromkeys(("damping", "damping_factor", "damp", "lambda", "lam", "lmbda"), "lambda_"),
    **dict.fromkeys(("tol", "tolerance", "eps", "pos_tol", "pos_tolerance"), "position_tolerance"),
    **dict.fromkeys(
        ("rot_tol", "orientation_tolerance", "ori_tol", "angle_tolerance"), "rotation_tolerance"
    ),
    **dict.fromkeys(("orientation_weight", "rot_weight", "ori_weight"), "rotation_weight"),
    **dict.fromkeys(("max_iter", "maxiter", "max_iters", "iterations", "ilimit"), "max_iterations"),
    **dict.fromkeys(("restarts", "num_restarts", "slimit", "attempts"), "max_restarts"),
    **dict.fromkeys(("max_time", "time_limit", "maxtime", "timeout_s"), "timeout"),
    **dict.fromkeys(("step_size", "gain", "lr", "learning_rate"), "alpha"),
    **dict.fromkeys(("max_step", "max_joint_step", "dq_max"), "gamma_max"),
    **dict.fromkeys(("weights", "joint_weight"), "joint_weights"),
    **dict.fromkeys(("rng", "np_seed"), "random_seed"),
    **dict.fromkeys(("posture", "q_ref", "nullspace", "null_space", "rest_pose"), "reference"),
}


def number(default: Any, low: float, high: float, unit: str, text: str) -> Any:
    """Declare an option that is a number, or an integer if the default is an integer or None.

    Args:
        default: Default value.
        low: Smallest valid value.
        high: Largest valid value.
        unit: Unit, or "" for a number without unit.
        text: Description of the option.
    """
    return field(default=default, metadata={"range": (low, high), "unit": unit, "text": text})


def optional_number(low: float, high: float, unit: str, text: str) -> Any:
    """Declare an option that is a real number; its default None selects a value for the robot.

    Args:
        low: Smallest valid value.
        high: Largest valid value.
        unit: Unit, or "" for a number without unit.
        text: Description of the option, which says what None stands for.
    """
    about = {"range": (low, high), "unit": unit, "text": text, "real": True}
    return field(default=None, metadata=about)


def is_integer(option: Any) -> bool:
    """Return whether a declared option with a range takes integers."""
    default = option.default
    return isinstance(default, int) or (default is None and not option.metadata.get("real"))


def choice_of(
    default: Any, choices: Iterable[Any], text: str, aliases: Mapping[str, str] | None = None
) -> Any:
    """Declare an option whose value is one of several choices.

    Args:
        default: Default value.
        choices: Valid values.
        text: Description of the option.
        aliases: Further valid values, each with the choice that it stands for.
    """
    about = {"choices": tuple(choices), "unit": "", "text": text, "aliases": aliases or {}}
    return field(default=default, metadata=about)


def switch(text: str) -> Any:
    """Declare a boolean option with the default False; `text` is its description."""
    return choice_of(False, (False, True), text)


def vector(unit: str, text: str) -> Any:
    """Declare an option that is a vector of finite numbers; the default is None.

    Args:
        unit: Unit of the numbers, or "".
        text: Description of the option.
    """
    return field(default=None, metadata={"vector": True, "unit": unit, "text": text})


def per_joint(default: float, unit: str, text: str) -> Any:
    """Declare an option that is one number for all joints, or one for each joint.

    Args:
        default: Default value for all joints.
        unit: Unit of the numbers; valid numbers are at least 0, and may be infinite.
        text: Description of the option.
    """
    about = {"per_joint": True, "unit": unit, "text": text}
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class SolverOptions:
    """Options of a solver, with default, range, unit and description of each option.

    The symbols are those of the papers; docs/methods.md has the formulas.
    """

    position_tolerance: float = number(1e-6, 1e-12, 1e3, "m", "maximum position error")
    rotation_tolerance: float = number(1e-6, 1e-12, math.pi, "rad", "maximum rotation error")
    error_tolerance: float = number(
        math.inf, 1e-12, math.inf, "m", "maximum norm of the scaled error"
    )
    rotation_weight: float = number(
        0.5, 1e-6, 1e6, "m/rad", "weight of the rotation error: length that weighs as much as 1 rad"
    )
    rotation_error: str = choice_of(
        "vector",
        ROTATION_ERRORS,
        "rotation error: axis times angle, or axis times sine of the angle",
    )
    length_unit: float = number(
        1.0,
        1e-9,
        1e9,
        "",
        "number of length units of the robot in a metre, 1000 for mm; options in m stay in m",
    )
    timeout: float = number(0.05, 0.0, 3600.0, "s", "maximum time for one pose")
    max_iterations: int = number(250, 1, 1_000_000, "", "maximum number of steps of an attempt")
    max_restarts: int | None = number(
        None,
        0,
        RESTARTS_UNTIL_TIMEOUT,
        "",
        "maximum number of restarts for one pose; none: 10 000 (1000 in batches), in a scene "
        "until the timeout",
    )
    random_seed: int = number(0, 0, 2**63 - 1, "", "seed of the random restarts")
    stall_ratio: float = number(
        0.7, 0.0, 1e9, "", "a step is slow if more than this fraction of the error remains after it"
    )
    stall_count: int = number(
        0, 0, 1_000_000, "", "consecutive slow steps that end an attempt; 0: no limit"
    )
    long_attempt_every: int = number(
        0,
        0,
        1_000_000,
        "",
        "of this many attempts, one may make 8 times as many steps; 0: none may",
    )
    prove_after: int = number(
        100,
        1,
        1_000_000,
        "",
        "number of attempts before the solver tries to prove a pose unreachable; a fifth of it for "
        "tasks other than the full pose of one tip",
    )
    starts: str = choice_of(
        "random",
        STARTS,
        "start of an attempt without a seed: random, or from a table of poses close to the target",
    )
    solve_type: str = choice_of(
        "speed",
        SOLVE_TYPES,
        "solution to return: first, closest to the seed, most dexterous, farthest from collisions",
        SOLVE_TYPE_ALIASES,
    )
    num_candidates: int = number(
        150,
        1,
        1_000_000,
        "",
        "number of attempts whose solutions are compared, unless "
        "solve_type is speed; at most max_restarts + 1",
    )
    max_joint_change: float | tuple[float, ...] = per_joint(
        math.inf,
        "rad or m",
        "maximum change of a joint from the seed to the solution, for all joints or for each",
    )
    approximate: bool = switch("return the closest configuration if the pose is not reached")
    alpha: float = number(1.0, 1e-6, 1.0, "", "gain of every step, (1)")
    lambda_: float = number(0.005, 0.0, 1e6, "", "JD, NFD, QUIK: damping factor")
    error_gain: float = number(0.5, 0.0, 1e6, "", "ED: E = error_gain * norm(e)^2")
    nu: float = number(10.0, 1e-9, 1e9, "", "SVF: shape factor")
    sigma0: float = number(0.01, 1e-12, 1e6, "", "SVF: minimum filtered singular value")
    gamma_max: float = number(0.5, 1e-9, 1e6, "rad or m", "SD, SDLS: maximum joint step")
    margin: float = number(
        0.05,
        1e-6,
        0.5,
        "",
        "CTP, TP, IDV, CNS: margin at a limit, as a fraction of the joint range",
    )
    mu: float = number(
        0.2,
        0.0,
        1e3,
        "",
        "CTP, TP, IDV, CNS: gain of the push away from a limit; GP, TA, SRTP, AVOID: task gain",
    )
    policy: str = choice_of(
        "constant", damping_policies.POLICY_IDS, "JD: policy for the damping factor"
    )
    lambda0: float = number(
        0.01, 0.0, 1e6, "", "policies manipulability, rate, mayorga: maximum lambda^2, or its scale"
    )
    w_t: float = number(
        0.05, 1e-12, 1e6, "", "policy manipulability: manipulability below which damping starts"
    )
    rate_t: float = number(
        0.95, 1e-12, 1.0, "", "policy rate: ratio of w to its last value below which damping starts"
    )
    velocity_bound: float = number(
        20.0,
        1e-6,
        1e9,
        "1/m",
        "policy velocity, NF: maximum joint velocity per unit tip velocity",
    )
    tracking_bound: float = number(
        0.05,
        1e-12,
        0.999999,
        "",
        "policy tracking: maximum error relative to the tip velocity",
    )
    condition_bound: float = number(
        100.0, 1.001, 1e15, "", "policies condition, mayorga-condition: maximum condition number"
    )
    lambda_max: float = number(
        0.02, 0.0, 1e6, "", "JF, NFD, SRTP, AVOID, policy accuracy: maximum damping factor"
    )
    epsilon: float = number(
        0.1,
        1e-12,
        1e6,
        "",
        "JF, NFD, SRTP, AVOID, policy accuracy: smallest singular value that is not damped",
    )
    w_min: float = number(
        0.1, 1e-6, 1.0, "", "policy accuracy: minimum weight of the low-accuracy direction"
    )
    direction: tuple[float, ...] | None = vector(
        "", "policy accuracy: low-accuracy direction, one number per task row; none: the last row"
    )
    search: int = choice_of(
        18,
        OPTIMAL_SEARCHES,
        "policy optimal: equation of the search for the damping factor, (17) or (18)",
    )
    Delta: float = number(
        0.5, 1e-9, 1e6, "rad or m", "policy optimal, norm: maximum 2-norm of the step"
    )
    Delta_tolerance: float = number(
        1e-3, 1e-13, 0.9, "", "policy optimal: tolerance of the step norm, relative to Delta"
    )
    omega: float = number(0.01, 0.0, 1e6, "", "IED: damping factor whose square is added to E")
    bias: float | tuple[float, ...] = per_joint(
        1e-3, "", "LM: bias that is added to E, for all joints or for each"
    )
    gauss_width: float = number(
        0.1, 1e-12, 1e6, "", "GDLS: singular value at which lambda^2 is 1/e of lambda_max^2"
    )
    truncation: float = number(
        0.01, 0.0, 1.0, "", "TPINV: singular values below this fraction of the largest count as 0"
    )
    objective: str = choice_of(
        "limits", objectives.OBJECTIVE_IDS, "GP, TA, SRTP: null-space objective"
    )
    form: int = choice_of(24, GP_FORMS, "GP: form of damping, (22), (23) or (24)")
    alpha1: float = number(0.05, 1e-9, 1e6, "", "GP (22), (23): weight of the objective's motion")
    alpha2: float = number(0.05, 0.0, 1e6, "", "GP (22): weight of the joint motion")
    joint_weights: tuple[float, ...] | None = vector(
        "", "GP (22), solve_type distance: weights of the joints, from 1e-9 to 1e9; none: ones"
    )
    w_c: float = number(1.0, 1e-9, 1e6, "", "TA: weight of the added row")
    reference: tuple[float, ...] | None = vector(
        "rad or m", "objective posture: joint positions to stay close to; none: mid-range"
    )
    obstacle: tuple[float, ...] | None = vector(
        "m", "AVOID, objective obstacle: obstacle position x y z in the base frame"
    )
    influence: float = number(0.3, 1e-6, 1e6, "m", "AVOID, objective obstacle: influence distance")
    D_max: float | None = optional_number(
        1e-9,
        1e9,
        "m",
        "CLAMP: bound on the error of a tip from which a step is computed; none: half the length "
        "of a typical link",
    )
    adaptive: bool = switch(
        "CLAMP: increase D_max by the change of the distance in the last step, see adaptive_by"
    )
    adaptive_by: str = choice_of(
        "divergence",
        ADAPTIVE_BY,
        "CLAMP, adaptive: D_max grows by the increase (published "
        "code) or decrease (text) of the distance",
    )
    halving: float = number(
        1e-3,
        1e-12,
        1e9,
        "m",
        "HALVE: the error is halved while its unreachable part exceeds this value",
    )
    switch_distance: float = number(
        0.1, 0.0, 1e9, "m", "SDLS_NEAR: norm of the error below which SDLS replaces the law"
    )
    largest_change: float = number(
        math.pi / 4, 1e-9, 1e6, "rad or m", "MAX, SNS, HQP: maximum joint change in a step"
    )
    optimal_saturation: bool = switch(
        "SNS: scale the error as little as the bounds permit, and use the shortest such step"
    )
    soft: bool = switch(
        "SDLS: scale steps softly as in the published code, instead of clamping them as in the text"
    )
    bug_compatible: bool = switch(
        "SD, CLAMP, JC, GP, TP, CTP: reproduce the mistakes of the published code"
    )

    def goal(self) -> StopCriteria:
        """Return the stop criteria of an attempt and the rotation weight, for the kernels.

        Lengths are converted from metres to the length unit of the robot.
        """
        return StopCriteria(
            position_tolerance=self.position_tolerance * self.length_unit,
            rotation_tolerance=self.rotation_tolerance,
            error_tolerance=self.error_tolerance * self.length_unit,
            rotation_weight=self.rotation_weight * self.length_unit,
            max_iterations=self.max_iterations,
            stall_ratio=self.stall_ratio,
            stall_count=self.stall_count,
            long_attempt_every=self.long_attempt_every,
        )

    def method(self, choice: MethodChoice) -> Method:
        """Return the method struct for the kernels: ids of the parts, and some of the options.

        `choice` is the parsed name of the method.
        """
        parameters = {f: getattr(self, f) for f in Method._fields if hasattr(self, f)}
        is_slip = self.bug_compatible and choice.limits == limits.JC
        return Method(
            **parameters,
            damping=choice.damping,
            limits=limits.JC_AS_RUN if is_slip else choice.limits,
            step=choice.step,
            following=False,
        )


class SolverKeywords(TypedDict, total=False):
    """The fields of :class:`SolverOptions` as keyword arguments, for type checkers and editors."""

    position_tolerance: float
    rotation_tolerance: float
    error_tolerance: float
    rotation_weight: float
    rotation_error: Literal["vector", "sine"]
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
    Delta_tolerance: float
    omega: float
    bias: float | Vector
    gauss_width: float
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
    D_max: float | None
    adaptive: bool
    adaptive_by: Literal["divergence", "approach"]
    halving: float
    switch_distance: float
    largest_change: float
    optimal_saturation: bool
    soft: bool
    bug_compatible: bool


# Defaults of method "auto", tuned on the WAM and five other arms with 6 or 7 joints: light damping
# and early restarts.
_AUTO = SolverOptions(
    error_gain=0.1,
    max_iterations=25,
    stall_ratio=0.6,
    stall_count=2,
    long_attempt_every=16,
    starts="table",
)
_PUBLISHED = SolverOptions(max_restarts=0)  # defaults of other methods: one attempt, as in papers


def solver_options(
    choice: MethodChoice, given: Mapping[str, Any], joint_names: tuple[str, ...] = ()
) -> SolverOptions:
    """Validate the options given for a method, and return the values of all options.

    Args:
        choice: Parsed name of the method, which determines the defaults.
        given: Options by name.
        joint_names: Joints of the robot. If they are given, options with one value per joint may be
            mappings by joint name.

    Raises:
        JointValueError: If a joint is unknown, or a joint is missing in `reference`.
        OptionError: If an option is unknown or has a value out of range.
        MethodError: If options violate a condition of the method.
    """
    known = {f.name: f for f in fields(SolverOptions)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        hint = suggest_names(unknown, known, USUAL_NAMES)
        raise OptionError(f"unknown option {listing(unknown)}; {hint}")
    checked = {n: checked_value(known[n], v, joint_names) for n, v in given.items()}
    base = _AUTO if choice.name == AUTO_METHOD else replace(_PUBLISHED, **dict(choice.defaults))
    options = replace(base, **checked)
    restarts, compared = options.max_restarts, options.num_candidates
    if "num_candidates" in checked and restarts is not None and compared > restarts + 1:
        raise OptionError(
            f"num_candidates must be at most max_restarts + 1, which is {restarts + 1} for method "
            f"{choice.name!r}; got {compared}: set max_restarts to {compared - 1} or more"
        )
    _check_conditions(choice, options)
    return options


def checked_timeout(value: Any) -> float:
    """Validate a timeout for one pose, and return it as a number [s].

    Raises:
        OptionError: If the value is not valid.
    """
    return float(checked_value(SolverOptions.__dataclass_fields__["timeout"], value))


def checked_count(name: str, value: Any, minimum: int) -> int:
    """Validate an argument that must be an integer of at least `minimum`, and return it.

    Args:
        name: Name of the argument, for the message.
        value: Value given.
        minimum: Smallest valid value.

    Raises:
        OptionError: If the value is not an integer, or is below the minimum.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
        raise OptionError(f"{name} must be an integer of at least {minimum}; got {quoted(value)}")
    return int(value)


def _check_conditions(choice: MethodChoice, options: SolverOptions) -> None:
    """Check that the options fit the method.

    Raises:
        MethodError: If the parameters of SVF violate a condition of the paper, or an option needs
            another damping law or limit strategy.
    """
    if choice.damping in (damping.SVF, damping.SVF_ED):
        nu, sigma0 = options.nu, options.sigma0
        if not (nu > sigma0 and 2.0 > nu * sigma0):  # the filter (3) is monotonic only then
            raise MethodError(
                f"svf needs nu > sigma0 and 2 > nu * sigma0; got nu={nu}, sigma0={sigma0}: with "
                f"this nu, sigma0 must be below {min(nu, 2.0 / nu):.3g}"
            )
    numbers = options.bias if isinstance(options.bias, tuple) else (options.bias,)
    if choice.damping == damping.LM and not all(0.0 < each < math.inf for each in numbers):
        raise MethodError(f"lm needs a positive, finite bias of each joint; got {options.bias!r}")
    if choice.damping == damping.LM and choice.keeps_bounds and len(set(numbers)) > 1:
        raise MethodError(
            f"{choice.name!r} needs the same bias of all joints, because sns and hqp do not weigh "
            f"joints; got {options.bias!r}"
        )
    conflict = choice.policy_conflict(options.policy)
    if conflict:
        raise MethodError(conflict)
    is_exact_sns = choice.limits == limits.SNS and choice.damping == damping.JP
    if options.optimal_saturation and not is_exact_sns:
        raise MethodError(
            f"optimal_saturation needs the method 'sns' without a damping law; got {choice.name!r}"
        )
    if options.form != 24 and not (choice.is_gp and choice.damping == damping.JD):
        raise MethodError(
            f"form {options.form} belongs to gradient projection with a damping factor: it needs a "
            f"method such as 'gp+dls'; got {choice.name!r}"
        )


def checked_value(option: Any, value: Any, joint_names: tuple[str, ...] = ()) -> Any:
    """Validate a value for an option, and return it converted to the option's type.

    Args:
        option: Field declared by a function of this module, such as :func:`number`.
        value: Value to validate.
        joint_names: Joints of the robot. If they are given, options with one value per joint may be
            mappings by joint name.

    Raises:
        OptionError: If the value has another type or is out of range; the message lists the valid
            values.
    """
    if isinstance(value, Mapping) and joint_names:
        value = _ordered(option, value, joint_names)
    if "choices" in option.metadata:
        return _checked_choice(option, value)
    if "per_joint" in option.metadata:
        return _checked_per_joint(option, value)
    if "vector" in option.metadata:
        return _checked_vector(option, value)
    return _checked_number(option, value)


def _ordered(option: Any, value: Mapping[str, Any], joint_names: tuple[str, ...]) -> Any:
    """Convert a mapping by joint name to a sequence in the order of `joint_names`.

    The mapping is returned unchanged if the option does not have one value per joint. Joints that
    are missing get the default of the option, or 1 for weights.
    """
    if "per_joint" in option.metadata:
        return some_by_name(value, joint_names, option.default)
    if option.name == "joint_weights":
        return some_by_name(value, joint_names, 1.0)
    return ordered_values(value, joint_names).tolist() if option.name == "reference" else value


def _refusal(option: Any, valid: str, value: Any) -> OptionError:
    """Return the error to raise for an invalid value of an option.

    Args:
        option: Declared field of the option.
        valid: Description of the valid values for the message, such as "a number from 0 to 1".
        value: Value given.
    """
    text = f"{option.name} ({option.metadata['text']}) must be {valid}; got {quoted(value)}"
    return OptionError(text)


def _checked_number(option: Any, value: Any) -> Any:
    low, high = option.metadata["range"]
    if value is None and option.default is None:
        return None
    is_whole = is_integer(option)
    given = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        with contextlib.suppress(OverflowError):
            float(value)
            given = int(value) if isinstance(value, Integral) else float(value)
    if not low <= given <= high or (is_whole and given != int(given)):
        kind = "an integer" if is_whole else "a number"
        unit = f" [{option.metadata['unit']}]" if option.metadata["unit"] else ""
        raise _refusal(option, f"{kind} from {low:g} to {high:g}{unit}", value)
    return int(given) if is_whole else float(given)


def _checked_choice(option: Any, value: Any) -> Any:
    choices, aliases = option.metadata["choices"], option.metadata.get("aliases", {})
    if isinstance(value, str):
        value = aliases.get(value, value)
    kind = type(option.default)
    same_kind = isinstance(value, Integral) if kind is int else isinstance(value, kind)
    if not same_kind or (kind is int and isinstance(value, bool)) or value not in choices:
        same = [f"{alias} (same as {name})" for alias, name in aliases.items()]
        listed = ", ".join([*map(str, choices), *same])
        hint = did_you_mean(value, [*map(str, choices), *aliases], "; {}")
        error = _refusal(option, f"one of {listed}", value)
        raise OptionError(f"{error}{hint}")
    return kind(value)


def _checked_per_joint(option: Any, value: Any) -> float | tuple[float, ...]:
    numbers: tuple[float, ...] = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        numbers = (float(value),) if isinstance(value, Real) else tuple(float(x) for x in value)
    if not numbers or not all(x >= 0.0 for x in numbers) or isinstance(value, (bool, str)):
        unit = option.metadata["unit"]
        raise _refusal(option, f"a number of at least 0, or one for each joint [{unit}]", value)
    return numbers[0] if isinstance(value, Real) else numbers


def _checked_vector(option: Any, value: Any) -> tuple[float, ...] | None:
    if value is None:
        return None
    numbers: tuple[float, ...] = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        numbers = tuple(float(x) for x in value)
    is_valid = numbers and all(abs(x) <= MAX_VECTOR_ENTRY for x in numbers)
    if not is_valid or isinstance(value, str):
        valid = f"numbers of magnitude {MAX_VECTOR_ENTRY:g} at most, one for each joint"
        raise _refusal(option, valid, value)
    return numbers
