"""What methods are tuned by."""

from dataclasses import dataclass

from dls_ik.ros.parameters.declare import option


@dataclass(frozen=True)
class MethodParameters:
    """Of the methods, services and stream alike."""

    alpha: float = option("alpha")
    lambda_: float = option("lambda_")
    nu: float = option("nu")
    sigma0: float = option("sigma0")
    gamma_max: float = option("gamma_max")
    margin: float = option("margin")
    mu: float = option("mu")
