"""Options of the solver: each declared once, with its default, unit, range and meaning."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any

from dls_ik.core import damping
from dls_ik.core.types import Goal, Method
from dls_ik.exceptions import MethodError, OptionError
from dls_ik.solver.method import AUTO, MethodChoice


def _option(default: Any, low: float, high: float, unit: str, text: str) -> Any:
    return field(default=default, metadata={"range": (low, high), "unit": unit, "text": text})


@dataclass(frozen=True)
class SolverOptions:
    """What can be set on a solver. Symbols as in Colome & Torras 2012."""

    position_tolerance: float = _option(1e-6, 1e-12, 1e3, "m", "position error small enough")
    rotation_tolerance: float = _option(1e-6, 1e-12, math.pi, "rad", "rotation error allowed")
    rotation_weight: float = _option(
        0.5, 1e-6, 1e6, "m/rad", "length that a rotation error of 1 rad counts as"
    )
    timeout: float = _option(0.05, 0.0, 3600.0, "s", "time for one pose")
    max_iterations: int = _option(250, 1, 1_000_000, "", "steps of one attempt")
    max_restarts: int | None = _option(
        None, 0, 1_000_000_000, "", "random restarts of one pose; none: until the timeout"
    )
    random_seed: int = _option(0, 0, 2**63 - 1, "", "where the random restarts begin")
    stall_ratio: float = _option(
        0.7, 0.0, 1e9, "", "a step is slow if it leaves more than this share of the error"
    )
    stall_count: int = _option(
        0, 0, 1_000_000, "", "slow steps in a row that end an attempt, if above 0"
    )
    alpha: float = _option(1.0, 1e-6, 1.0, "", "gain of every step, (1)")
    lambda_: float = _option(0.005, 0.0, 1e6, "", "JD: damping factor")
    error_gain: float = _option(0.5, 0.0, 1e6, "", "ED: E = error_gain * norm(e)^2")
    nu: float = _option(10.0, 1e-9, 1e9, "", "SVF: shape factor")
    sigma0: float = _option(0.01, 1e-12, 1e6, "", "SVF: least singular value")
    gamma_max: float = _option(0.5, 1e-9, 1e6, "rad or m", "SD: largest change of the joints")
    margin: float = _option(0.05, 1e-6, 0.5, "", "CTP: margin at a limit, as a share of the range")
    mu: float = _option(0.2, 0.0, 1.0, "", "CTP: gain of the push away from a limit")

    def goal(self) -> Goal:
        """Return what kernels read of stopping and of the error metric."""
        return Goal(
            self.position_tolerance,
            self.rotation_tolerance,
            self.rotation_weight,
            self.max_iterations,
            self.stall_ratio,
            self.stall_count,
        )

    def method(self, choice: MethodChoice) -> Method:
        """Return what kernels read of a method and its parameters."""
        return Method(
            choice.damping,
            choice.limits,
            choice.step,
            self.alpha,
            self.lambda_,
            self.error_gain,
            self.nu,
            self.sigma0,
            self.gamma_max,
            self.margin,
            self.mu,
            False,
        )


# Measured on the WAM and on five 6- and 7-joint arms: light damping, give up early, try elsewhere.
_AUTO = SolverOptions(error_gain=0.1, max_iterations=60, stall_count=2)
_PUBLISHED = SolverOptions(max_restarts=0)  # one attempt, as in the papers


def solver_options(choice: MethodChoice, given: Mapping[str, Any]) -> SolverOptions:
    """Complete and check the options given for a method.

    Raises:
        OptionError: for an unknown option, or a value out of its range.
        MethodError: for parameters that break a condition of the method.
    """
    known = {f.name: f for f in fields(SolverOptions)}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise OptionError(f"unknown option {', '.join(unknown)}; known are {', '.join(known)}")
    checked = {name: _checked(known[name], value) for name, value in given.items()}
    options = replace(_AUTO if choice.name == AUTO else _PUBLISHED, **checked)
    if choice.damping == damping.SVF:
        _check_filter(options)
    return options


def checked_timeout(value: Any) -> float:
    """Return a time for one pose [s], or raise OptionError."""
    return float(_checked(SolverOptions.__dataclass_fields__["timeout"], value))


def _checked(option: Any, value: Any) -> Any:
    """Return the value as a number of the option's type, in its range."""
    low, high = option.metadata["range"]
    if value is None and option.default is None:
        return None
    whole = isinstance(option.default, int) or option.default is None
    number = math.nan
    if not isinstance(value, bool) and isinstance(value, Real):
        number = int(value) if isinstance(value, Integral) else float(value)
    if not low <= number <= high or (whole and number != int(number)):
        kind = "a whole number" if whole else "a number"
        unit = f" [{option.metadata['unit']}]" if option.metadata["unit"] else ""
        raise OptionError(
            f"{option.name} is {option.metadata['text']}: {kind} from {low:g} to {high:g}{unit}, "
            f"not {value!r}"
        )
    return int(number) if whole else float(number)


def _check_filter(options: SolverOptions) -> None:
    """The filter of SVF rises with s only under the two conditions below (3)."""
    nu, sigma0 = options.nu, options.sigma0
    if not (nu > sigma0 and 2.0 > nu * sigma0):
        raise MethodError(
            f"svf needs nu > sigma0 and 2 > nu * sigma0, not nu={nu}, sigma0={sigma0}"
        )
