"""Method names: what ``ctp+sd+svf`` means, which names there are, and what is wrong with others."""

from itertools import product
from typing import NamedTuple

from dls_ik.core import damping, limits, step
from dls_ik.exceptions import MethodError

AUTO = "auto"

# What can be named; the active set is the limit strategy of "auto" and has no published name.
_LIMITS = {name: number for name, number in limits.IDS.items() if name in ("jc", "ctp")}
_STEPS = {name: number for name, number in step.IDS.items() if name != "none"}


class MethodChoice(NamedTuple):
    """A damping law, a limit strategy and a step bound, by their ids in ``core``."""

    name: str  # as the papers write it
    damping: int
    limits: int
    step: int


def _published_name(law: str, strategy: str | None, bound: str | None) -> str:
    """Join as the papers do: SVF+SD, but CTP+SD+SVF; JP goes without saying."""
    said = None if law == "jp" and (strategy or bound) else law
    order = (strategy, bound, said) if strategy else (said, bound)
    return "+".join(part for part in order if part)


def _all_choices() -> dict[str, MethodChoice]:
    choices = {}
    for strategy, bound, law in product((None, *_LIMITS), (None, *_STEPS), damping.IDS):
        name = _published_name(law, strategy, bound)
        choices[name] = MethodChoice(
            name,
            damping.IDS[law],
            _LIMITS[strategy] if strategy else limits.NONE,
            _STEPS[bound] if bound else step.NONE,
        )
    return choices


_AUTO_CHOICE = MethodChoice(AUTO, damping.ED, limits.ACTIVE, step.NONE)
_CHOICES = {AUTO: _AUTO_CHOICE, **_all_choices()}
_BY_PARTS = {frozenset(name.split("+")): choice for name, choice in _CHOICES.items()}
_BY_PARTS |= {parts | {"jp"}: c for parts, c in _BY_PARTS.items() if c.damping == damping.JP}


def method_names() -> tuple[str, ...]:
    """Return every name that a method goes by; :func:`parse_method` takes them in any order."""
    return tuple(_CHOICES)


def parse_method(name: str) -> MethodChoice:
    """Find the method for a name such as ``ctp+sd+svf``, its parts in any order or case.

    Raises:
        MethodError: with the names that there are.
    """
    parts = [part.strip() for part in str(name).lower().split("+")]
    choice = _BY_PARTS.get(frozenset(parts))
    if choice is None or len(set(parts)) != len(parts):
        laws, strategies, bounds = (", ".join(x) for x in (damping.IDS, _LIMITS, _STEPS))
        raise MethodError(
            f"unknown method {name!r}; a method is 'auto', or at most one each of the damping laws "
            f"({laws}), limit strategies ({strategies}) and step bounds ({bounds}), joined by '+': "
            f"{', '.join(method_names())}"
        )
    return choice
