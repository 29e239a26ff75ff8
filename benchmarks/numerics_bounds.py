"""How long a step of a method can be at most, by what is published of it."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from dls_ik.core import damping, limits, step_bounds
from dls_ik.core.objectives import STEEPEST
from dls_ik.solver.method import MethodChoice, parse_method
from dls_ik.solver.options import SolverOptions

Array = np.ndarray


class Bound(NamedTuple):
    """A bound on steps, for errors (b,) [m] that they start from."""

    what: str
    largest: bool  # on the largest change of a joint, else on the norm
    most: Callable[[Array], Array]  # (b,) [rad]


def bound_of(name: str, options: SolverOptions, n: int) -> Bound | None:
    """The bound that a method promises on an arm of n joints that turn; None where there is none.

    That of the step bound, else that of the damping: of all s / (s^2 + lambda^2) none is above
    1 / (2 lambda).
    """
    choice = parse_method(name)
    of_step = _of_step(choice, options)
    pushes = choice.limits in (limits.TP, limits.CTP, limits.ACTIVE)
    if of_step is not None or pushes or choice.is_kdl:
        return of_step
    gain = _of_gain(choice, options)
    if gain is None or options.policy != "constant":
        return None
    if choice.limits == limits.GP:
        if options.objective != "limits" or options.form != 24:
            return None
        moved = options.mu * STEEPEST * np.sqrt(n)
        return Bound("gain, objective", False, lambda e: gain(e) * e + moved)
    if choice.limits == limits.TA and options.mu != 0.0:
        return None
    return Bound("gain", False, lambda e: gain(e) * e)


def _of_step(choice: MethodChoice, options: SolverOptions) -> Bound | None:
    most: dict[int, tuple[str, bool, float]] = {
        step_bounds.SD: ("gamma_max", False, options.gamma_max),
        step_bounds.SDLS: ("gamma_max", True, options.gamma_max),
        step_bounds.MAX: ("largest_change", True, options.largest_change),
        step_bounds.NORM: ("Delta", False, options.Delta),
    }
    if options.policy == "optimal" and choice.step == step_bounds.NONE:
        return Bound("Delta", False, lambda e: np.full_like(e, options.Delta))
    if choice.step not in most:
        return None
    what, largest, value = most[choice.step]
    return Bound(what, largest, lambda e: np.full_like(e, value))


def _of_gain(choice: MethodChoice, options: SolverOptions) -> Callable[[Array], Array] | None:
    """The largest gain of a law for errors (b,) [m]; not larger for those that were shortened."""
    if choice.damping == damping.JD and options.lambda_ > 0.0:
        return lambda e: np.full_like(e, 0.5 / options.lambda_)
    if choice.damping == damping.SVF:
        return lambda e: np.full_like(e, 1.0 / options.sigma0)
    if choice.reach or options.error_gain == 0.0:  # the error that damps is the shortened one
        return None
    if choice.damping in (damping.ED, damping.SVF_ED, damping.IED):
        omega = options.omega if choice.damping == damping.IED else 0.0
        tiny = np.finfo(float).tiny
        return lambda e: 0.5 / np.sqrt(np.maximum(options.error_gain * e * e + omega**2, tiny))
    return None
