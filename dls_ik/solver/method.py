# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Method names such as ``ctp+sd+svf``, and the list of published methods.

A name consists of parts. A method has at most one part of each kind: damping law, limit strategy,
error bound and step bound. Kernels identify the parts by integer ids, see :mod:`dls_ik.core`.
"""

from typing import Any, NamedTuple

from dls_ik.core import damping, error_clamping, limits, step_bounds
from dls_ik.errors import MethodError
from dls_ik.solver.plugins import Plugin, find_plugin, plugin_names, reserve
from dls_ik.text import did_you_mean, quoted, suggest_names

AUTO_METHOD = "auto"
KDL_METHODS = ("kdl_lma", "kdl_nr", "kdl_nr_jl")
PART_KINDS = ("damping law", "limit strategy", "error bound", "step bound")

# Kind, id in `core` and option defaults of each part of a name.
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
        name: (PART_KINDS[3], i, {})
        for name, i in step_bounds.STEP_BOUND_IDS.items()
        if name != "none"
    },
    "ta": (PART_KINDS[1], limits.TA, {"objective": "centring", "mu": 0.0}),
    "wln": (PART_KINDS[1], limits.WLN, {"alpha": 0.2}),
    "dls": (PART_KINDS[0], damping.JD, {"lambda_": 0.1}),
    "odls": (PART_KINDS[0], damping.JD, {"policy": "optimal"}),
}

# Long names of the parts, and of the methods that do not consist of parts.
_LONG_NAMES = {
    AUTO_METHOD: "error damping, an active set of limits, restarts",
    "jp": "Jacobian pseudoinverse",
    "jt": "Jacobian transpose",
    "tpinv": "truncated pseudoinverse",
    "jd": "Jacobian damping",
    "jf": "Jacobian filtering",
    "nf": "numerical filtering",
    "ed": "error damping",
    "ied": "improved error damping",
    "svf": "singular value filtering",
    "dls": "damped least squares",
    "odls": "optimally damped least squares",
    "jw": "Jacobian weighting",
    "gp": "gradient projection",
    "ta": "task augmentation",
    "wln": "weighted least norm",
    "jc": "joint clamping",
    "tp": "task priority",
    "ctp": "continuous task priority",
    "clamp": "error clamping",
    "halve": "error halving",
    "sd": "selective damping",
    "sdls": "selectively damped least squares",
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
           "any reachable pose inside the limits, or the reason why there is no answer"),
    "jp": ("Whitney 1969; Colome & Torras 2012, (2), Table II",
           "exact and quick away from singularities, unbounded at them"),
    "jt": ("Wolovich & Elliott 1984; Buss & Kim 2004, section 5; Colome & Torras 2012, Table II",
           "no inverse: cheap steps, many of them"),
    "tpinv": ("Tabaczynski 2005, 2.3; Buss & Kim 2004, section 5",
              "drops directions of small singular values at once"),
    "jd": ("Wampler 1986; Nakamura & Hanafusa 1986; Colome & Torras 2012, Table II",
           "a bounded inverse; a policy may choose the damping factor"),
    "jf": ("Maciejewski & Klein 1988; Colome & Torras 2012, Table II, appendix",
            "damps the direction of the smallest singular value alone, near a singularity"),
    "nf": ("Maciejewski & Klein 1988; Deo & Walker 1993, section 3",
           "bounds the joint velocity with two directions near singular"),
    "ed": ("Chan & Lawrence 1988; Colome & Torras 2012, Table II",
           "damped far from the goal, undamped at it: reaches far goals"),
    "ied": ("Sugihara 2009; Colome & Torras 2012, Table II",
            "as ed, for goals that may be singular"),
    "svf": ("Colome & Torras 2012, (3), (4)",
            "passes singularities without damping elsewhere"),
    "svf+ed": ("Colome & Torras 2012, Table V", "as ed, for goals that may be singular"),
    "sd": ("Colome & Torras 2012, section VI, (8)",
           "bounds the motion along each singular direction"),
    "svf+sd": ("Colome & Torras 2012, Table V", "as sd, in fewer steps"),
    "dls": ("Wampler 1986; Buss & Kim 2004, section 5",
            "a heavy constant factor: smooth motion that lags near singularities"),
    "odls": ("Deo & Walker 1993, 3.1", "minimum damping that keeps the step within a bound"),
    "dls+clamp": ("Buss & Kim 2004, sections 3, 5", "targets far out of reach, several tips"),
    "dls+max": ("Buss & Kim 2004, section 5", "damping, and no joint moves far in a step"),
    "dls+norm": ("Deo & Walker 1993, DLP-2", "a bound by scaling, for comparison with odls"),
    "jt+max": ("Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2",
               "the transpose, and no joint moves far in a step"),
    "tpinv+max": ("Buss & Kim 2004, section 5; Tabaczynski 2005, 3.2",
                  "the truncated pseudoinverse, and no joint moves far in a step"),
    "tpinv+halve": ("Tabaczynski 2005, 2.2", "targets out of reach, for comparison"),
    "sdls": ("Buss & Kim 2004, (3), (4)",
              "bounds each singular direction by the tip motion that it causes"),
    "sdls+clamp": ("Buss & Kim 2004, sections 3, 5", "as sdls, for far targets"),
    "jw": ("Chan & Dubey 1995; Colome & Torras 2012, Table III",
           "joints that approach a limit move less; limits are not enforced"),
    "gp": ("Liegeois 1977; Colome & Torras 2012, Table III",
           "an objective in the null space of a redundant arm"),
    "gp+dls": ("Deo & Walker 1993, (22), (23), (24)", "as gp, near singularities"),
    "gp+odls": ("Deo & Walker 1993, 4.1", "as odls, with an objective"),
    "ta": ("Egeland et al. 1991; Colome & Torras 2012, Table III",
           "the objective as one more row of the task"),
    "ta+dls": ("Deo & Walker 1993, (19)", "as ta; the damping absorbs conflicts"),
    "wln": ("Chan & Dubey 1995; Colome & Torras 2012, Table V",
            "motion toward the limits costs more, in the null space first"),
    "jc": ("Raunhardt & Boulic 2007; Colome & Torras 2012, Table III",
           "holds joints at their limits, at once"),
    "jc+ed": ("Raunhardt & Boulic 2007; Chan & Lawrence 1988",
              "one attempt that keeps the limits"),
    "tp": ("Colome & Torras 2012, (5)", "holds joints near their limits, at once"),
    "ctp": ("Mansard, Remazeilles & Chaumette 2009, (20), definition 4.1; "
            "Colome & Torras 2012, (6)",
            "holds joints near their limits, gradually: smooth motion"),
    "ctp+svf": ("Colome & Torras 2012, Table V", "as ctp, through singularities"),
    "ctp+sd": ("Colome & Torras 2012, (7), (8)", "as ctp, with bounded steps"),
    "ctp+sd+svf": ("Colome & Torras 2012, Table V",
                   "follows a target smoothly within the limits: the default of the stream"),
    "kdl_lma": ("Orocos KDL", "for comparison; limits are ignored"),
    "kdl_nr": ("Orocos KDL", "for comparison; limits are ignored"),
    "kdl_nr_jl": ("Orocos KDL", "for comparison; joints are clipped to their limits"),
}  # fmt: skip


reserve((*_LISTED, *_PARTS))


class MethodInfo(NamedTuple):
    """Description of a method: its names, its source and its purpose."""

    name: str
    long_name: str
    source: str  # keys of docs/references.md with equation numbers
    summary: str  # purpose or effect of the method


class MethodChoice(NamedTuple):
    """A method: ids of its damping law, limit strategy, error bound and step bound in `core`."""

    name: str  # parts joined by "+", in the order that the papers use
    damping: int = damping.JP
    limits: int = limits.NO_LIMIT_STRATEGY
    reach: int = error_clamping.NO_ERROR_CLAMPING  # error bound
    step: int = step_bounds.NO_STEP_BOUND  # step bound
    defaults: tuple[tuple[str, Any], ...] = ()  # option defaults that the parts set

    @property
    def is_kdl(self) -> bool:
        """Whether this is a method of PyKDL."""
        return self.name in KDL_METHODS

    @property
    def follows_no_target(self) -> bool:
        """Whether the method cannot follow a target, because it offers no single steps."""
        return self.is_kdl

    @property
    def plugin(self) -> Plugin | None:
        """The plug-in of this name; None for built-in methods."""
        return find_plugin(self.name) if _is_plugin(self.name) else None

    @property
    def is_gp(self) -> bool:
        """Whether the limit strategy is gradient projection."""
        return self.limits == limits.GP

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
        """Return the reason why a damping policy does not fit this method, or None if it does."""
        if policy == "constant":
            return None
        if self.damping != damping.JD:
            return (
                f"policy {policy!r} needs the damping law jd or dls; the law of {self.name} has no "
                "damping factor"
            )
        allowed = (limits.NO_LIMIT_STRATEGY, limits.JC, limits.GP, limits.TA)
        if policy == "optimal" and self.limits not in allowed:
            return (
                "policy 'optimal' bounds the step of a single inverse of J, but the limit strategy "
                f"of {self.name} adds joint motion; use no limit strategy, or jc, gp or ta"
            )
        return None


def _published_name(parts: dict[str, list[str]]) -> str:
    """Join parts in the order of the papers, such as SVF+SD but CTP+SD+SVF.

    JP is omitted next to a part of another kind, because JP is the default damping law.
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
        return MethodInfo(known, "plug-in", choice.plugin.origin, "a method of your own")
    parts = [known] if known in _LONG_NAMES else known.split("+")
    published = dict.fromkeys(_LISTED[part][0] for part in parts if part in _LISTED)
    words = _LISTED.get(known, ("; ".join(published), "a combination of its parts"))
    return MethodInfo(known, " + ".join(_LONG_NAMES[part] for part in parts), *words)


def long_name(name: str) -> str:
    """Return the long name of a method, such as ``error damping`` for ``ed``.

    Raises:
        MethodError: If the name is not valid, see :func:`parse_method`.
    """
    return method_info(name).long_name


def parse_method(name: str) -> MethodChoice:
    """Return the method of a name such as ``ctp+sd+svf``, in any order of parts and any case.

    Raises:
        MethodError: If a part of the name is unknown, or parts exclude each other. The message
            lists similar or valid names, or gives the reason.
    """
    words = [part.strip() for part in str(name).lower().split("+")]
    if words == [AUTO_METHOD]:
        return MethodChoice(AUTO_METHOD, damping.ED, limits.ACTIVE)
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
    """Return whether a word names a plug-in; entry points are not searched for built-in words."""
    is_other = word == AUTO_METHOD or "+" in word or word in _PARTS or word in _LISTED
    return not is_other and find_plugin(word) is not None


def _part_id(found: list[str]) -> int:
    """Return the id for the parts of one kind: none, one, or both svf and ed."""
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
    conflict = choice.policy_conflict(dict(choice.defaults).get("policy", "constant"))
    if conflict:
        raise MethodError(f"method {choice.name!r}: {conflict}")


def _unknown(name: object, words: list[str]) -> MethodError:
    """Return the error for a name with unknown or repeated parts."""
    known = (*method_names(), *plugin_names(), *_PARTS) if len(words) == 1 else tuple(_PARTS)
    strange = [word for word in words if word not in _PARTS]
    alone = next((word for word in words if word in (AUTO_METHOD, *KDL_METHODS)), None)
    if alone is not None:
        return MethodError(
            f"unknown method {quoted(name)}; {alone} cannot be combined with other parts"
        )
    if not strange:
        twice = next(word for i, word in enumerate(words) if word in words[:i])
        return MethodError(f"unknown method {quoted(name)}; {twice} is given twice")
    is_close = any(did_you_mean(word, known) for word in strange)
    hint = suggest_names(strange, known) if is_close else _listing()
    return MethodError(f"unknown method {quoted(name)}; {hint}")


def _listing() -> str:
    """Return a sentence that lists the special method names and all parts."""
    words = {kind: [w for w, part in _PARTS.items() if part[0] == kind] for kind in PART_KINDS}
    kinds = "; ".join(f"{kind}: {', '.join(some)}" for kind, some in words.items())
    return (
        f"a method is {AUTO_METHOD}, {', '.join(KDL_METHODS)}, or at most one part of each kind, "
        f"joined by '+' as in ctp+sd+svf: {kinds}"
    )
