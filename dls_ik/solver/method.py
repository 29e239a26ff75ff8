# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Method names such as ``ctp+sd+svf``, and the list of published methods.

A name consists of parts joined by ``+``. A method has at most one part of each kind: damping law,
limit strategy, error bound and step bound. Kernels identify the parts by integer ids, see
:mod:`dls_ik.core`. The methods ``auto``, those of KDL and plug-ins do not consist of parts.
"""

from math import pi
from typing import Any, NamedTuple

from dls_ik.core import damping, error_clamping, limits, step_bounds
from dls_ik.errors import MethodError
from dls_ik.solver.plugins import Plugin, find_plugin, plugin_names, reserve
from dls_ik.text import did_you_mean, quoted, suggest_names

AUTO_METHOD = "auto"
KDL_METHODS = ("kdl_lma", "kdl_nr", "kdl_nr_jl")
UNBOUNDED_STEP = 1e6  # [rad or m] gamma_max that no step of a singular direction exceeds
PART_KINDS = ("damping law", "limit strategy", "error bound", "step bound")

# Each part of a name: its kind, its id in `core`, and the option defaults that it sets.
_PARTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{name: (PART_KINDS[0], i, {}) for name, i in damping.DAMPING_IDS.items() if "+" not in name},
    **{
        name: (PART_KINDS[1], i, {})
        for name, i in limits.LIMIT_IDS.items()
        if name not in ("none", "active")
    },
    **{
        name: (PART_KINDS[2], i, {})
        for name, i in error_clamping.CLAMPING_IDS.items()
        if name != "none"
    },
    **{
        name: (PART_KINDS[3], i, {"gamma_max": pi / 4} if name.startswith("sdls") else {})
        for name, i in step_bounds.STEP_BOUND_IDS.items()
        if name != "none"
    },
    # The pseudoinverse near the target is SDLS with bounds that no step exceeds
    "jp_near": (PART_KINDS[3], step_bounds.SDLS_NEAR, {"gamma_max": UNBOUNDED_STEP}),
    "ta": (PART_KINDS[1], limits.TA, {"objective": "centring", "mu": 0.0}),
    "gwln": (PART_KINDS[1], limits.GWLN, {"alpha": 0.2}),
    "srtp": (PART_KINDS[1], limits.SRTP, {"objective": "centring"}),
    "dls": (PART_KINDS[0], damping.JD, {"lambda_": 0.1}),
    "odls": (PART_KINDS[0], damping.JD, {"policy": "optimal"}),
}

FORMER_NAMES = {"wln": "gwln"}  # {former name: current name} of renamed method parts

# Long names of the parts, and of the methods that do not consist of parts.
_LONG_NAMES = {
    AUTO_METHOD: "error damping, an active set of limits, restarts",
    "jp": "Jacobian pseudoinverse",
    "jt": "Jacobian transpose",
    "tpinv": "truncated pseudoinverse",
    "jd": "Jacobian damping",
    "jf": "Jacobian filtering",
    "nf": "numerical filtering",
    "nfd": "numerically filtered damping",
    "ed": "error damping",
    "ied": "improved error damping",
    "lm": "Levenberg-Marquardt with robust damping",
    "gdls": "Gaussian damping",
    "svf": "singular value filtering",
    "dls": "damped least squares",
    "odls": "optimally damped least squares",
    "jw": "Jacobian weighting",
    "gp": "gradient projection",
    "ta": "task augmentation",
    "gwln": "general-weighted least norm",
    "jc": "joint clamping",
    "tp": "task priority",
    "ctp": "continuous task priority",
    "sns": "saturation in the null space",
    "hqp": "hierarchical quadratic program",
    "srtp": "singularity-robust task priority",
    "avoid": "obstacle avoidance by task priority",
    "idv": "intermediate desired values",
    "cns": "continuous null space",
    "sqp": "sequential quadratic programming",
    "dual": "Newton's method and sequential quadratic programming in turns",
    "quik": "Halley's method",
    "clamp": "error clamping",
    "halve": "error halving",
    "sd": "selective damping",
    "sdls": "selectively damped least squares",
    "sdls_near": "selective damping near the target",
    "jp_near": "Jacobian pseudoinverse near the target",
    "max": "bounded joint steps",
    "norm": "bounded norm of the step",
    "kdl_lma": "KDL's Levenberg-Marquardt",
    "kdl_nr": "KDL's Newton-Raphson",
    "kdl_nr_jl": "KDL's Newton-Raphson with joint limits",
}

# Listed methods with source (keys of docs/references.md) and purpose: the methods of the papers,
# and useful combinations.
_LISTED: dict[str, tuple[str, str]] = {
    AUTO_METHOD: ("Chan & Lawrence 1988",
           "finds a solution inside the limits for any reachable pose, or tells why there is none"),
    "jp": ("Whitney 1969; Colome & Torras 2012, (2), Table II",
           "exact and fast away from singularities; steps are unbounded at singularities"),
    "jt": ("Wolovich & Elliott 1984; Buss & Kim 2004, section 5; Colome & Torras 2012, Table II",
           "needs no inverse: cheap steps, but many of them"),
    "tpinv": ("Tabaczynski 2005, 2.3; Buss & Kim 2004, section 5",
              "ignores directions whose singular values are small"),
    "jd": ("Wampler 1986; Nakamura & Hanafusa 1986; Colome & Torras 2012, Table II",
           "bounded inverse; an optional policy chooses the damping factor"),
    "jf": ("Maciejewski & Klein 1988; Colome & Torras 2012, Table II, appendix",
            "damps only the direction of the smallest singular value, near a singularity"),
    "nf": ("Maciejewski & Klein 1988; Deo & Walker 1993, section 3",
           "bounds the joint velocity, even if two directions are nearly singular"),
    "ed": ("Chan & Lawrence 1988; Colome & Torras 2012, Table II",
           "strong damping far from the goal, none at the goal: reaches far goals"),
    "ied": ("Sugihara 2009; Colome & Torras 2012, Table II",
            "as ed, for goals that may be singular"),
    "lm": ("Sugihara 2011",
           "as ed, for goals that may be singular; joints may have different biases"),
    "nfd": ("Chiaverini, Siciliano & Egeland 1994; Chiaverini 1997",
            "damps all directions lightly, and the smallest singular value near a singularity"),
    "gdls": ("Phuoc et al. 2008",
             "damps each singular direction by its own singular value, continuously"),
    "svf": ("Colome & Torras 2012, (3), (4)",
            "passes singularities; almost no damping away from them"),
    "svf+ed": ("Colome & Torras 2012, Table V", "as ed, for goals that may be singular"),
    "sd": ("Colome & Torras 2012, section VI, (8)",
           "bounds the joint motion of each singular direction"),
    "svf+sd": ("Colome & Torras 2012, Table V", "as sd, with fewer steps"),
    "dls": ("Wampler 1986; Buss & Kim 2004, section 5",
            "large constant damping: smooth motion that lags near singularities"),
    "odls": ("Deo & Walker 1993, 3.1", "minimum damping with which the step is within a bound"),
    "dls+clamp": ("Buss & Kim 2004, sections 3, 5",
                  "for targets far out of reach, and for several tips"),
    "dls+max": ("Buss & Kim 2004, section 5", "dls with a bound on the joint motion of a step"),
    "dls+norm": ("Deo & Walker 1993, DLP-2",
                 "dls with steps scaled down to a bound, for comparison with odls"),
    "jt+max": ("Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2",
               "jt with a bound on the joint motion of a step"),
    "tpinv+max": ("Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2",
                  "tpinv with a bound on the joint motion of a step"),
    "tpinv+halve": ("Tabaczynski 2005, 2.2", "for targets out of reach; for comparison"),
    "sdls": ("Buss & Kim 2004, (3), (4)",
              "bounds the motion of each singular direction by the tip motion that it causes"),
    "sdls+clamp": ("Buss & Kim 2004, sections 3, 5", "as sdls, for targets far away"),
    "dls+sdls_near+clamp": ("Buss & Kim 2004, section 5",
                            "for far targets: few steps to the target, and exact there"),
    "dls+jp_near": ("Tabaczynski 2005, section 5",
                    "smooth motion to the target, and few steps there"),
    "jw": ("Chan & Dubey 1995; Colome & Torras 2012, Table III",
           "joints move less when they approach a limit; limits are not enforced"),
    "gp": ("Liegeois 1977; Colome & Torras 2012, Table III",
           "optimizes an objective in the null space of a redundant arm"),
    "gp+dls": ("Deo & Walker 1993, (22), (23), (24)", "as gp, damped near singularities"),
    "gp+odls": ("Deo & Walker 1993, 4.1", "as odls, with an objective in the null space"),
    "ta": ("Egeland et al. 1991; Colome & Torras 2012, Table III",
           "adds the objective as a row to the task of a redundant arm"),
    "ta+dls": ("Deo & Walker 1993, (19)", "as ta, damped where objective and task conflict"),
    "gwln": ("Xiang, Zhong & Wei 2010; Chan & Dubey 1995; Colome & Torras 2012, Table V",
             "penalizes motion toward a limit, so that other joints move instead"),
    "jc": ("Raunhardt & Boulic 2007; Colome & Torras 2012, Table III",
           "stops a joint abruptly at its limit"),
    "jc+ed": ("Raunhardt & Boulic 2007; Chan & Lawrence 1988",
              "a single attempt inside the limits"),
    "tp": ("Colome & Torras 2012, (5)", "pushes joints away from their limits, abruptly"),
    "ctp": ("Mansard, Remazeilles & Chaumette 2009, (20), definition 4.1; "
            "Colome & Torras 2012, (6)",
            "pushes joints away from their limits, gradually: smooth motion"),
    "ctp+svf": ("Colome & Torras 2012, Table V", "as ctp, passes singularities"),
    "ctp+sd": ("Colome & Torras 2012, (7), (8)", "as ctp, with bounded steps"),
    "ctp+sd+svf": ("Colome & Torras 2012, Table V",
                   "follows a moving target smoothly within the limits; default of the servo loop"),
    "sns": ("Flacco et al. 2012, Algorithm 1; Flacco et al. 2015",
            "satisfies the bounds of all joints; scales the error if they do not permit it"),
    "hqp": ("Kanoun, Lamiraux & Wieber 2011",
            "satisfies the bounds of all joints, with the smallest remaining error"),
    "srtp": ("Chiaverini 1997, (34)",
             "solves an objective as a second task, also where it conflicts with the pose"),
    "idv": ("Lee, Mansard & Park 2012",
            "as ctp: blends the step with and without each limit, joint by joint"),
    "cns": ("Dietrich, Albu-Schaeffer & Hirzinger 2012",
            "as ctp, with a single inverse: other joints do not compensate"),
    "sqp": ("Beeson & Ames 2015; Kraft 1988; Powell 1978",
            "minimizes the error within the limits: for comparison, and for goals near limits"),
    "dual": ("Beeson & Ames 2015", "for comparison: the algorithm of TRAC-IK, with restarts"),
    "quik": ("Lloyd, Irani & Ahmadi 2022", "few steps near the goal; limits are ignored"),
    "kdl_lma": ("Orocos KDL", "for comparison; limits are ignored"),
    "kdl_nr": ("Orocos KDL", "for comparison; limits are ignored"),
    "kdl_nr_jl": ("Orocos KDL", "for comparison; joints are clipped to their limits"),
}  # fmt: skip


# Methods that need further options and are therefore not listed, with source and purpose.
_UNLISTED: dict[str, tuple[str, str]] = {
    "avoid": ("Maciejewski & Klein 1985",
              "moves the arm away from an obstacle as far as the pose permits; needs the option "
              "obstacle"),
}  # fmt: skip

reserve((*_LISTED, *_UNLISTED, *_PARTS, *FORMER_NAMES))


class MethodInfo(NamedTuple):
    """Description of a method: its names, its source and its purpose."""

    name: str
    long_name: str
    source: str  # keys of docs/references.md with equation numbers
    summary: str  # purpose or effect of the method


class MethodChoice(NamedTuple):
    """A parsed method name: ids in `core` of damping law, limit strategy and bounds."""

    name: str  # parts joined by "+", in the order that the papers use
    damping: int = damping.JP
    limits: int = limits.NO_LIMIT_STRATEGY
    reach: int = error_clamping.NO_ERROR_CLAMPING  # bound of the error that enters a step
    step: int = step_bounds.NO_STEP_BOUND  # step bound
    defaults: tuple[tuple[str, Any], ...] = ()  # option defaults that the parts set

    @property
    def is_kdl(self) -> bool:
        """Whether PyKDL implements the method."""
        return self.name in KDL_METHODS

    @property
    def follows_no_target(self) -> bool:
        """Whether the method only solves single poses, because it has no independent steps."""
        return self.is_kdl or self.limits in (limits.SQP, limits.DUAL)

    @property
    def plugin(self) -> Plugin | None:
        """The plug-in with the name of this method; None for built-in methods."""
        return find_plugin(self.name) if _is_plugin(self.name) else None

    @property
    def is_gp(self) -> bool:
        """Whether the limit strategy is gradient projection."""
        return self.limits == limits.GP

    @property
    def keeps_bounds(self) -> bool:
        """Whether the step of the limit strategy satisfies the bounds of all joints."""
        return self.limits in (limits.SNS, limits.HQP)

    @property
    def is_quick(self) -> bool:
        """Whether the fast kernels for the full pose of one tip implement the method."""
        return not _is_plugin(self.name) and (
            self.damping in (damping.JP, damping.JD, damping.ED)
            and self.limits in (limits.NO_LIMIT_STRATEGY, limits.JC, limits.ACTIVE)
            and self.reach == error_clamping.NO_ERROR_CLAMPING
            and self.step == step_bounds.NO_STEP_BOUND
        )

    def policy_conflict(self, policy: str) -> str | None:
        """Return the reason why a damping policy does not fit this method; None if it fits.

        `policy` is a value of the option of this name.
        """
        if policy == "constant":
            return None
        if self.damping != damping.JD:
            return (
                f"policy {policy!r} needs the damping law jd or dls; the law of {self.name} has no "
                "damping factor"
            )
        if policy in ("accuracy", "optimal") and self.step == step_bounds.SDLS_NEAR:
            return (
                f"policy {policy!r} belongs to a step by the damping law, but near the target "
                f"{self.name} makes a step of sdls; use another policy, such as 'constant'"
            )
        if policy == "accuracy" and self.limits in (limits.AVOID, limits.IDV):
            return (
                "policy 'accuracy' changes the weights of the task rows, but "
                f"{self.name} combines several inverses; use another policy, such as 'constant'"
            )
        if policy == "accuracy" and self.keeps_bounds:
            return (
                "policy 'accuracy' changes the weights of the task rows, so that at the bounds "
                f"{self.name} would solve another task; use another policy, such as 'constant'"
            )
        allowed = (limits.NO_LIMIT_STRATEGY, limits.JC, limits.GP, limits.TA)
        if policy == "optimal" and self.limits not in allowed:
            return (
                "policy 'optimal' bounds the step of a single inverse of J, but the limit strategy "
                f"of {self.name} adds joint motion; use no limit strategy, or jc, gp or ta"
            )
        return None


# Methods that do not consist of parts, except those of KDL.
WHOLE_METHODS = {
    AUTO_METHOD: MethodChoice(AUTO_METHOD, damping.ED, limits.ACTIVE),
    "sqp": MethodChoice("sqp", limits=limits.SQP),
    "dual": MethodChoice(
        "dual",
        limits=limits.DUAL,
        defaults=(("max_restarts", None), ("stall_count", 10), ("stall_ratio", 0.99)),
    ),
    "quik": MethodChoice(
        "quik",
        damping.JD,
        limits.QUIK,
        error_clamping.CLAMP,
        defaults=(("D_max", 0.3), ("lambda_", 0.0)),
    ),
}


def _published_name(parts: dict[str, list[str]]) -> str:
    """Join the parts of a name, given by kind, in the order of the papers.

    With a limit strategy, the order is strategy, step bound, error bound, damping law, as in
    CTP+SD+SVF; without, it is damping law, step bound, error bound, as in SVF+SD. JP is omitted
    next to a part of another kind, because JP is the default damping law.
    """
    laws, strategy, error, bound = (parts[kind] for kind in PART_KINDS)
    if strategy or error or bound:
        laws = [law for law in laws if law != "jp"]
    laws = sorted(laws, key=lambda law: law == "ed")
    order = [strategy, bound, error, laws] if strategy else [laws, bound, error]
    return "+".join(part for some in order for part in some)


def method_names() -> tuple[str, ...]:
    """Return the names of the published methods and of useful combinations.

    Other combinations of their parts, in any order, are valid names too. Names that start with
    ``kdl`` need PyKDL.
    """
    return tuple(_LISTED)


def method_table() -> tuple[MethodInfo, ...]:
    """Return the descriptions of all methods of :func:`method_names`."""
    return tuple(map(method_info, _LISTED))


def method_info(name: str) -> MethodInfo:
    """Return the description of a method from :func:`method_names` or a combination of parts.

    Raises:
        MethodError: If the name is not valid, see :func:`parse_method`.
    """
    choice = parse_method(name)
    known = choice.name
    if choice.plugin is not None:
        return MethodInfo(known, "plug-in", choice.plugin.origin, "user-defined method")
    parts = [known] if known in _LONG_NAMES else known.split("+")
    described = _LISTED | _UNLISTED
    published = dict.fromkeys(described[part][0] for part in parts if part in described)
    words = described.get(known, ("; ".join(published), "combination of parts"))
    return MethodInfo(known, " + ".join(_LONG_NAMES[part] for part in parts), *words)


def long_name(name: str) -> str:
    """Return the long name of a method, such as ``error damping`` for ``ed``.

    Raises:
        MethodError: If the name is not valid, see :func:`parse_method`.
    """
    return method_info(name).long_name


def parse_method(name: str) -> MethodChoice:
    """Parse a method name such as ``ctp+sd+svf``; the order of parts and the case do not matter.

    Raises:
        MethodError: If a part of the name is unknown, or parts exclude each other. The message
            lists similar or valid names, or gives the reason.
    """
    words = [part.strip() for part in str(name).lower().split("+")]
    if len(words) == 1 and words[0] in WHOLE_METHODS:
        return WHOLE_METHODS[words[0]]
    if len(words) == 1 and (words[0] in KDL_METHODS or _is_plugin(words[0])):
        return MethodChoice(words[0])
    if len(set(words)) != len(words) or not set(words) <= set(_PARTS):
        raise _unknown(name, words)
    parts: dict[str, list[str]] = {kind: [] for kind in PART_KINDS}
    for word in words:
        parts[_PARTS[word][0]].append(word)
    for kind, found in parts.items():
        if len(found) > 1 and set(found) != {"svf", "ed"}:
            raise MethodError(
                f"method {quoted(name)} has two parts of one kind, {' and '.join(found)}; a method "
                f"has at most one {kind} (svf+ed counts as one)"
            )
    law, strategy, error, bound = (_part_id(found) for found in parts.values())
    brought = tuple(sorted(pair for word in words for pair in _PARTS[word][2].items()))
    choice = MethodChoice(_published_name(parts), law, strategy, error, bound, brought)
    _check_combination(choice)
    return choice


def _is_plugin(word: str) -> bool:
    """Return whether a word names a plug-in.

    Built-in names are recognized first, because the search of entry points for a plug-in is slow.
    """
    is_other = "+" in word or word in _PARTS or word in _LISTED
    return not is_other and find_plugin(word) is not None


def _part_id(found: list[str]) -> int:
    """Return the id in `core` of the parts of one kind: no part, one part, or svf and ed."""
    if not found:
        return 0  # damping law JP, or no limit strategy, error bound or step bound
    return damping.SVF_ED if len(found) == 2 else _PARTS[found[0]][1]


def _check_combination(choice: MethodChoice) -> None:
    """Check that the parts of a method can be combined.

    Raises:
        MethodError: If the parts cannot be combined; the message gives the reason.
    """
    if choice.damping == damping.JT and choice.is_gp:
        raise MethodError(
            f"method {choice.name!r}: the transpose provides no null-space projection of J, so the "
            "objective would disturb the task; combine jt with another limit strategy"
        )
    combining = {limits.SRTP: "srtp", limits.AVOID: "avoid", limits.IDV: "idv"}
    if choice.damping == damping.JT and choice.limits in combining:
        raise MethodError(
            f"method {choice.name!r}: {combining[choice.limits]} combines several inverses of the "
            "Jacobian, but jt uses the transpose, which is no inverse; combine jt with another "
            "limit strategy"
        )
    if choice.keeps_bounds and choice.damping == damping.JT:
        raise MethodError(
            f"method {choice.name!r}: sns and hqp need an inverse of the Jacobian, but jt uses the "
            "transpose, which is no inverse; combine jt with another limit strategy"
        )
    by_direction = (step_bounds.SD, step_bounds.SDLS, step_bounds.SDLS_NEAR)
    if choice.keeps_bounds and choice.step in by_direction:
        raise MethodError(
            f"method {choice.name!r}: sd, sdls, sdls_near and jp_near bound each singular "
            "direction, but sns and hqp bound each joint; choose one of the two, or the step bound "
            "max or norm"
        )
    conflict = choice.policy_conflict(dict(choice.defaults).get("policy", "constant"))
    if conflict:
        raise MethodError(f"method {choice.name!r}: {conflict}")
    by_joint = {limits.AVOID: "avoid", limits.IDV: "idv", limits.CNS: "cns"}
    if choice.limits in by_joint and choice.step in by_direction:
        raise MethodError(
            f"method {choice.name!r}: sd, sdls, sdls_near and jp_near bound each singular "
            f"direction of one inverse, but {by_joint[choice.limits]} changes the step afterwards; "
            "use the step bound max or norm"
        )


def _unknown(name: object, words: list[str]) -> MethodError:
    """Return the error for a name with unknown or repeated parts.

    Args:
        name: Name that was given.
        words: Lower-case parts of the name.
    """
    known = (*method_names(), *plugin_names(), *_PARTS) if len(words) == 1 else tuple(_PARTS)
    strange = [word for word in words if word not in _PARTS]
    alone = next((word for word in words if word in (*WHOLE_METHODS, *KDL_METHODS)), None)
    if alone is not None:
        return MethodError(
            f"unknown method {quoted(name)}; {alone} cannot be combined with other parts"
        )
    former = next((word for word in strange if word in FORMER_NAMES), None)
    if former is not None:
        return MethodError(
            f"unknown method {quoted(name)}; method {former!r} is now {FORMER_NAMES[former]!r}"
        )
    if not strange:
        twice = next(word for i, word in enumerate(words) if word in words[:i])
        return MethodError(f"unknown method {quoted(name)}; {twice} is given twice")
    is_close = any(did_you_mean(word, known) for word in strange)
    hint = suggest_names(strange, known) if is_close else _listing()
    return MethodError(f"unknown method {quoted(name)}; {hint}")


def _listing() -> str:
    """Return a sentence for error messages that lists the special method names and all parts."""
    words = {kind: [w for w, part in _PARTS.items() if part[0] == kind] for kind in PART_KINDS}
    kinds = "; ".join(f"{kind}: {', '.join(some)}" for kind, some in words.items())
    return (
        f"a method is {', '.join((*WHOLE_METHODS, *KDL_METHODS))}, or at most one part of each "
        f"kind, joined by '+' as in ctp+sd+svf: {kinds}"
    )
