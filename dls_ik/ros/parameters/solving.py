"""How requests are answered."""

from dataclasses import dataclass

from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import option, parameter
from dls_ik.solver.method import AUTO
from dls_ik.solver.options import SolverOptions

IGNORE, REFUSE = "ignore", "refuse"


@dataclass(frozen=True)
class SolvingParameters:
    """Of the services."""

    group_name: tuple[str, ...] = parameter(
        (), readers.names, "group names that requests may give, one or several; empty: any"
    )
    method: str = parameter(AUTO, readers.text, "method that services solve with")
    position_tolerance: float = option(SolverOptions, "position_tolerance")
    rotation_tolerance: float = option(SolverOptions, "rotation_tolerance")
    rotation_weight: float = option(SolverOptions, "rotation_weight")
    timeout: float = option(SolverOptions, "timeout")
    solve_type: str = option(SolverOptions, "solve_type")
    random_seed: int = option(SolverOptions, "random_seed")
    avoid_collisions: str = parameter(
        IGNORE,
        readers.text,
        "what becomes of requests to avoid collisions, which this node cannot see",
        choices=(IGNORE, REFUSE),
    )
