"""Groups of the robot, each with its chain, solver and defaults."""

from collections.abc import Mapping
from typing import NamedTuple

from dls_ik.errors import ChainError, MethodError, OptionError, RobotModelError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.bodies import attached_pair
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.parameters.groups import GroupParameters
from dls_ik.solver import IkSolver

DEFAULT = ""  # the name of the chain that follows targets, for requests that name no group


class Group(NamedTuple):
    """Links that are brought to poses together."""

    solver: IkSolver  # its robot has these links as tips
    method: str
    timeout: float  # [s] of a request that gives none


def build_groups(
    robot: RobotModel, parameters: Parameters, others: Mapping[str, Group]
) -> dict[str, Group]:
    """The groups by name, the default one among them; all solvers are ready for use.

    Args:
        robot: of the default group.
        others: groups there were before; of the same robot, whose models are used again, as bounds
            on what they reach take some tenths of a second.

    Raises:
        OptionError: a group that does not fit the robot, with the valid names.
        MethodError: a method that does not serve a group.
    """
    known = [group.solver.robot for group in others.values()]
    solver = IkSolver(robot, parameters.method, **parameters.solver_options())
    solver.reach.prepare()  # not while a request waits
    groups = {DEFAULT: Group(solver, parameters.method, parameters.timeout)}
    for details in parameters.group_details:
        models = [robot, *known, *(group.solver.robot for group in groups.values())]
        try:
            groups[details.name] = _group(details, parameters, models)
        except RobotModelError as error:
            raise OptionError(f"group {details.name!r} does not fit the robot: {error}") from error
        except MethodError as error:
            raise MethodError(f"group {details.name!r}: {error}") from error
    return groups


def _group(details: GroupParameters, parameters: Parameters, models: list[RobotModel]) -> Group:
    base, tip = details.base or parameters.base, details.tip or parameters.tip
    model = RobotModel.from_tree(models[0].tree, base, tip)
    pair = attached_pair(model.tree, model.tips)
    if pair:
        raise ChainError(f"its tips {pair[0]!r} and {pair[1]!r} are rigidly attached to each other")
    ends = (model.base, model.tips)
    model = next((known for known in models if (known.base, known.tips) == ends), model)
    method = details.method or parameters.method
    solver = IkSolver(model, method, **parameters.solver_options())
    solver.reach.prepare()
    return Group(solver, method, details.timeout or parameters.timeout)
