"""Method names: what ``ctp+sd+svf`` means, which names there are, and what is wrong with others."""

from typing import Any, NamedTuple

from dls_ik.core import damping, error_clamping, limits, step_bounds
from dls_ik.errors import MethodError
from dls_ik.text import did_you_mean, quoted, suggest_names

AUTO = "auto"
KDL = ("kdl_lma", "kdl_nr", "kdl_nr_jl")
ROOMS = ("damping law", "limit strategy", "error bound", "step bound")

# A part of a name: its room, its id in ``core``, and the options that it brings with it.
_PARTS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{name: (ROOMS[0], i, {}) for name, i in damping.IDS.items() if "+" not in name},
    **{name: (ROOMS[1], i, {}) for name, i in limits.IDS.items() if name not in ("none", "active")},
    **{name: (ROOMS[2], i, {}) for name, i in error_clamping.IDS.items() if name != "none"},
    **{name: (ROOMS[3], i, {}) for name, i in step_bounds.IDS.items() if name != "none"},
    "ta": (ROOMS[1], limits.TA, {"objective": "centring", "mu": 0.0}),
    "dls": (ROOMS[0], damping.JD, {"lambda_": 0.1}),
    "odls": (ROOMS[0], damping.JD, {"policy": "optimal"}),
}

# The names that are listed: those of the papers, and combinations that have proved useful.
_PRESETS = (
    "jp", "jt", "tpinv", "jd", "jf", "nf", "ed", "ied", "svf", "svf+ed", "sd", "svf+sd",
    "dls", "odls", "dls+clamp", "dls+max", "dls+norm", "jt+max", "tpinv+max", "tpinv+halve",
    "sdls", "sdls+clamp",
    "jw", "gp", "gp+dls", "gp+odls", "ta", "ta+dls", "jc", "jc+ed", "tp",
    "ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf",
)  # fmt: skip

_WITHOUT_LAMBDA = "its damping law has no damping factor to choose"


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
        """Whether PyKDL does it."""
        return self.name in KDL

    @property
    def is_gp(self) -> bool:
        """Whether the limit strategy is gradient projection."""
        return self.limits == limits.GP

    @property
    def is_quick(self) -> bool:
        """Whether the fast path (core/fast) can make its steps."""
        return (
            self.damping in (damping.JP, damping.JD, damping.ED)
            and self.limits in (limits.NONE, limits.JC, limits.ACTIVE)
            and self.reach == error_clamping.NONE
            and self.step == step_bounds.NONE
        )

    def policy_conflict(self, policy: str) -> str | None:
        """Say why the damping factor of this method cannot be chosen by a policy, if so."""
        if self.damping != damping.JD:
            return f"policy {policy!r} needs the law jd or dls: of {self.name} {_WITHOUT_LAMBDA}"
        allowed = (limits.NONE, limits.JC, limits.GP, limits.TA)
        if policy == "optimal" and self.limits not in allowed:
            return (
                f"the optimal damping factor bounds the motion of one inverse of J: with "
                f"{self.name} the limit strategy moves joints besides; it goes with none, jc, gp "
                "and ta"
            )
        return None


def _published_name(parts: dict[str, list[str]]) -> str:
    """Join as the papers do: SVF+SD, but CTP+SD+SVF; JP goes without saying."""
    laws, strategy, error, bound = (parts[room] for room in ROOMS)
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
    parts: dict[str, list[str]] = {room: [] for room in ROOMS}
    for word in words:
        parts[_PARTS[word][0]].append(word)
    _refuse_two_of_a_room(name, parts)
    ids = {room: _room_id(room, found) for room, found in parts.items()}
    law, strategy, error, bound = (ids[room] for room in ROOMS)
    brought = tuple(sorted(pair for word in words for pair in _PARTS[word][2].items()))
    choice = MethodChoice(_published_name(parts), law, strategy, error, bound, brought)
    _refuse_what_makes_no_sense(choice)
    return choice


def _room_id(room: str, found: list[str]) -> int:
    if not found:
        return 0  # JP, and no strategy or bound
    return damping.SVF_ED if len(found) == 2 else _PARTS[found[0]][1]


def _refuse_two_of_a_room(name: str, parts: dict[str, list[str]]) -> None:
    for room, found in parts.items():
        if len(found) > 1 and set(found) != {"svf", "ed"}:
            raise MethodError(
                f"method {quoted(name)} has two parts of one kind, {' and '.join(found)}: a method "
                f"has at most one {room} (svf+ed is one)"
            )


def _refuse_what_makes_no_sense(choice: MethodChoice) -> None:
    if choice.damping == damping.JT and choice.is_gp:
        raise MethodError(
            f"method {choice.name!r}: the transpose gives no projection into the null space of J, "
            "so that the objective would disturb the task; jt goes with the other limit strategies"
        )
    if dict(choice.defaults).get("policy"):
        conflict = choice.policy_conflict("optimal")
        if conflict:
            raise MethodError(f"method {choice.name!r}: {conflict}")


def _unknown(name: object, words: list[str]) -> MethodError:
    """What is said of a name with parts that there are not, or that are there twice."""
    known = (*method_names(), *_PARTS) if len(words) == 1 else tuple(_PARTS)
    strange = [word for word in words if word not in _PARTS]
    alone = next((word for word in words if word in (AUTO, *KDL)), None)
    if alone is not None:
        return MethodError(f"unknown method {quoted(name)}; {alone} stands alone, it is no part")
    if not strange:
        twice = next(word for i, word in enumerate(words) if word in words[:i])
        return MethodError(f"unknown method {quoted(name)}; {twice} is there twice")
    hint = (
        suggest_names(strange, known)
        if any(did_you_mean(w, known) for w in strange)
        else _listing()
    )
    return MethodError(f"unknown method {quoted(name)}; {hint}")


def _listing() -> str:
    by_room = {room: [w for w, part in _PARTS.items() if part[0] == room] for room in ROOMS}
    kinds = "; ".join(f"{room}: {', '.join(words)}" for room, words in by_room.items())
    return (
        f"a method is {AUTO}, {', '.join(KDL)}, or at most one part of each kind, joined by '+' as "
        f"in ctp+sd+svf: {kinds}"
    )
