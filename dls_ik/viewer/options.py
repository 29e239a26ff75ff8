"""The options of a method that a person tunes, with ranges to move in, as they are declared."""

import math
from collections.abc import Mapping
from dataclasses import Field, fields
from typing import Any

from dls_ik.servo.options import ControllerOptions
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import SolverOptions
from dls_ik.viewer.source import Parameter

OF_PART = {  # of a method's name
    "ed": ("error_gain",),
    "ied": ("error_gain", "omega"),
    "dls": ("lambda_",),
    "jd": ("lambda_",),
    "odls": ("Delta",),
    "jf": ("lambda_max", "epsilon"),
    "nf": ("velocity_bound",),
    "svf": ("nu", "sigma0"),
    "tpinv": ("truncation",),
    "sd": ("gamma_max",),
    "sdls": ("gamma_max",),
    "max": ("largest_change",),
    "norm": ("Delta",),
    "clamp": ("D_max",),
    "halve": ("halving",),
    "gp": ("objective", "mu"),
    "ta": ("objective", "mu", "w_c"),
    "tp": ("margin", "mu"),
    "ctp": ("margin",),
    AUTO: ("error_gain",),
}
OF_ALL = ("alpha",)
STEPS = 200  # of a slider, at least
WIDE = 5.0  # times the default: how far a slider goes where the range is wider
NEEDS_MORE = ("obstacle",)  # objectives that a slider cannot tell all about


def tunable(method: str, given: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """What may be changed of a method and of how its controller follows.

    Args:
        method: A name from :func:`dls_ik.method_names`.
        given: Values by name that differ from the defaults.
    """
    choice = parse_method(method)
    names = [name for part in choice.name.split("+") for name in OF_PART.get(part, ())]
    declared = {f.name: f for f in fields(SolverOptions)}
    start = {**dict(choice.defaults), **given}
    rows = [_parameter(declared[name], start) for name in (*dict.fromkeys(names), *OF_ALL)]
    stuck = {f.name: f for f in fields(ControllerOptions)}["when_stuck"]
    return (*rows, _parameter(stuck, given))


def _parameter(option: "Field[Any]", given: Mapping[str, Any]) -> Parameter:
    about = option.metadata
    value = given.get(option.name, option.default)
    if "choices" in about:
        choices = tuple(choice for choice in about["choices"] if choice not in NEEDS_MORE)
        return Parameter(option.name, value, about["text"], choices=choices)
    low, high = slider_range(value, *about["range"])
    return Parameter(option.name, value, about["text"], about["unit"], low, high)


def slider_range(value: float, low: float, high: float) -> tuple[float, float]:
    """A range about a value to move a slider in: the whole one, if it is not much wider."""
    reach = WIDE * abs(value) or 1.0
    unit = 10.0 ** math.floor(math.log10(reach))
    top = min(high, round(reach / unit + 0.4) * unit)
    return (0.0 if low <= 0.0 else max(low, slider_step(top))), top


def slider_step(top: float) -> float:
    """How finely a slider moves that ends there: a power of ten."""
    return float(10.0 ** math.floor(math.log10(top / STEPS)))
