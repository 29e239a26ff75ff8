"""Names of methods: the parts that ``ctp+sd+svf`` stands for, and the names that are listed.

A method has at most one part of each kind: a damping law, a limit strategy, an error and a step
bound. Kernels know the parts by the ids in :mod:`dls_ik.core`.
"""

from typing import Any, NamedTuple

from dls_ik.core import damping, error_clamping, limits, step_bounds
from dls_ik.errors import MethodError
from dls_ik.text import did_you_mean, quoted, suggest_names

AUTO = "auto"
KDL = ("kdl_lma", "kdl_nr", "kdl_nr_jl")
PART_KINDS = ("damping law", "limit strategy", "error bound", "step bound")

# A part of a name: its kind, its id in ``core``, and the options that it sets.
_PARTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{name: (PART_KINDS[0], i, {}) for name, i in damping.IDS.items() if "+" not in name},
    **{
        name: (PART_KINDS[1], i, {})
        for name, i in limits.IDS.items()
        if name not in ("none", "active")
    },
    **{name: (PART_KINDS[2], i, {}) for name, i in error_clamping.IDS.items() if name != "none"},
    **{name: (PART_KINDS[3], i, {}) for name, i in step_bounds.IDS.items() if name != "none"},
    "ta": (PART_KINDS[1], limits.TA, {"objective": "centring", "mu": 0.0}),
    "dls": (PART_KINDS[0], damping.JD, {"lambda_": 0.1}),
    "odls": (PART_KINDS[0], damping.JD, {"policy": "optimal"}),
}

# The names that are listed: those of the papers, and combinations that have proved useful.
_PRESETS = (
    "jp", "jt", "tpinv", "jd", "jf", "nf", "ed", "ied", "svf", "svf+ed", "sd", "svf+sd",
    "dls", "odls", "dls+clamp", "dls+max", "dls+norm", "jt+max", "tpinv+max", "tpinv+halve",
    "sdls", "sdls+clamp",
    "jw", "gp", "gp+dls", "gp+odls", "ta", "ta+dls", "jc", "jc+ed", "tp",
    "ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf",
)  # fmt: skip


class MethodChoice(NamedTuple):
    """A damping law, a limit strategy, an error and a step bound, by their ids in ``core``."""

    name: str  # as the papers write it
    damping: int = damping.JP
    limits: int = limits.NONE
    reach: int = error_clamping.NONE
    step: int = step_bounds.NONE
    defaults: tuple[tuple[str, Any], ...] = ()  # options that the name brings

    @property
    def is_kdl(self) -> bool:
        """True for methods of PyKDL."""
        return self.name in KDL

    @property
    def is_gp(self) -> bool:
        """True if the limit strategy is gradient projection."""
        return self.limits == limits.GP

    @property
    def is_quick(self) -> bool:
        """True if the fast path of the kernels has its steps."""
        return (
            self.damping in (damping.JP, damping.JD, damping.ED)
            and self.limits in (limits.NONE, limits.JC, limits.ACTIVE)
            and self.reach == error_clamping.NONE
            and self.step == step_bounds.NONE
        )

    def policy_conflict(self, policy: str) -> str | None:
        """Return why a policy cannot choose the damping factor of this method; None if it can."""
        if policy == "constant":
            return None
        if self.damping != damping.JD:
            return (
                f"policy {policy!r} needs the law jd or dls; the law of {self.name} has no damping "
                "factor"
            )
        allowed = (limits.NONE, limits.JC, limits.GP, limits.TA)
        if policy == "optimal" and self.limits not in allowed:
            return (
                "the optimal damping factor bounds the motion of one inverse of J, and the limit "
                f"strategy of {self.name} moves joints besides; it goes with none, jc, gp and ta"
            )
        return None


def _published_name(parts: dict[str, list[str]]) -> str:
    """Join parts in the order of the papers: SVF+SD, but CTP+SD+SVF; JP is left out."""
    laws, strategy, error, bound = (parts[kind] for kind in PART_KINDS)
    if strategy or error or bound:
        laws = [law for law in laws if law != "jp"]
    laws = sorted(laws, key=lambda law: law == "ed")
    order = [strategy, bound, error, laws] if strategy else [laws, bound, error]
    return "+".join(part for some in order for part in some)


def method_names() -> tuple[str, ...]:
    """Return the names of the published methods; others combine from the same parts.

    The parts may be in any order. Names that begin with ``kdl`` need PyKDL.
    """
    return (AUTO, *_PRESETS, *KDL)


def parse_method(name: str) -> MethodChoice:
    """Find the method for a name such as ``ctp+sd+svf``, its parts in any order or case.

    Raises:
        MethodError: an unknown part, with those that may be meant, or that there are; parts that
            exclude each other, with the reason.
    """
    words = [part.strip() for part in str(name).lower().split("+")]
    if words == [AUTO]:
        return MethodChoice(AUTO, damping.ED, limits.ACTIVE)
    if len(words) == 1 and words[0] in KDL:
        return MethodChoice(words[0])
    if len(set(words)) != len(words) or not set(words) <= set(_PARTS):
        raise _unknown(name, words)
    parts: dict[str, list[str]] = {kind: [] for kind in PART_KINDS}
    for word in words:
        parts[_PARTS[word][0]].append(word)
    for kind, found in parts.items():
        if len(found) > 1 and set(found) != {"svf", "ed"}:
            raise MethodError(
                f"method {quoted(name)} has two parts of one kind, {' and '.join(found)}: a method "
                f"has at most one {kind} (svf+ed is one)"
            )
    law, strategy, error, bound = (_part_id(found) for found in parts.values())
    brought = tuple(sorted(pair for word in words for pair in _PARTS[word][2].items()))
    choice = MethodChoice(_published_name(parts), law, strategy, error, bound, brought)
    _check_combination(choice)
    return choice


def _part_id(found: list[str]) -> int:
    if not found:
        return 0  # JP, and no strategy or bound
    return damping.SVF_ED if len(found) == 2 else _PARTS[found[0]][1]


def _check_combination(choice: MethodChoice) -> None:
    if choice.damping == damping.JT and choice.is_gp:
        raise MethodError(
            f"method {choice.name!r}: the transpose gives no projection into the null space of J, "
            "so that the objective would disturb the task; jt goes with the other limit strategies"
        )
    conflict = choice.policy_conflict(dict(choice.defaults).get("policy", "constant"))
    if conflict:
        raise MethodError(f"method {choice.name!r}: {conflict}")


def _unknown(name: object, words: list[str]) -> MethodError:
    """Return the error for a name with unknown parts, or with one part twice."""
    known = (*method_names(), *_PARTS) if len(words) == 1 else tuple(_PARTS)
    strange = [word for word in words if word not in _PARTS]
    alone = next((word for word in words if word in (AUTO, *KDL)), None)
    if alone is not None:
        return MethodError(
            f"unknown method {quoted(name)}; {alone} is a method by itself, not a part"
        )
    if not strange:
        twice = next(word for i, word in enumerate(words) if word in words[:i])
        return MethodError(f"unknown method {quoted(name)}; {twice} is given twice")
    is_close = any(did_you_mean(word, known) for word in strange)
    hint = suggest_names(strange, known) if is_close else _listing()
    return MethodError(f"unknown method {quoted(name)}; {hint}")


def _listing() -> str:
    words = {kind: [w for w, part in _PARTS.items() if part[0] == kind] for kind in PART_KINDS}
    kinds = "; ".join(f"{kind}: {', '.join(some)}" for kind, some in words.items())
    return (
        f"a method is {AUTO}, {', '.join(KDL)}, or at most one part of each kind, joined by '+' as "
        f"in ctp+sd+svf: {kinds}"
    )
