"""What methods are tuned by."""

from dataclasses import dataclass

from dls_ik.ros.parameters.declare import option
from dls_ik.solver.options import SolverOptions


@dataclass(frozen=True)
class MethodParameters:
    """Of the methods, services and stream alike."""

    alpha: float = option(SolverOptions, "alpha")
    lambda_: float = option(SolverOptions, "lambda_")
    nu: float = option(SolverOptions, "nu")
    sigma0: float = option(SolverOptions, "sigma0")
    gamma_max: float = option(SolverOptions, "gamma_max")
    margin: float = option(SolverOptions, "margin")
    mu: float = option(SolverOptions, "mu")
