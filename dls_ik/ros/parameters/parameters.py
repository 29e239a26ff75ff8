"""The parameters of the node, each declared once; the rest of the node sees a frozen struct."""

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, replace
from typing import Any

from dls_ik.exceptions import OptionError
from dls_ik.ros.parameters.declare import checked
from dls_ik.ros.parameters.methods import MethodParameters
from dls_ik.ros.parameters.outputs import OutputParameters
from dls_ik.ros.parameters.robot import RobotParameters
from dls_ik.ros.parameters.solving import SolvingParameters
from dls_ik.ros.parameters.streaming import StreamingParameters
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import SolverOptions, solver_options


@dataclass(frozen=True)
class Parameters(
    MethodParameters, OutputParameters, StreamingParameters, SolvingParameters, RobotParameters
):
    """All parameters of the node. A trailing underscore is not part of a name in ROS."""

    def changed(self, given: Mapping[str, Any]) -> "Parameters":
        """The parameters with some values changed, by their names in ROS; all of it checked.

        Raises:
            OptionError: a value of the wrong type or out of range, or an unknown name.
            MethodError: an unknown method, or parameters that break a condition of a method.
        """
        unknown = sorted(set(given) - set(DECLARED))
        if unknown:
            raise OptionError(f"unknown parameter {unknown[0]!r}; known: {', '.join(DECLARED)}")
        values = {
            DECLARED[name].name: checked(name, DECLARED[name], value)
            for name, value in given.items()
        }
        candidate = replace(self, **values)
        candidate.check_outputs()
        for method in (candidate.method, candidate.stream_method):
            solver_options(parse_method(method), candidate.solver_options())
        if candidate.robot and candidate.robot_description:
            raise OptionError("'robot' and 'robot_description' are both given; give one of them")
        return candidate

    def solver_options(self) -> dict[str, Any]:
        """What of this a solver and a servo take.

        Parameters at their default are left out, as some methods have defaults of their own.
        """
        defaults = {f.name: f.default for f in fields(SolverOptions)}
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name in defaults}
        return {name: value for name, value in given.items() if value != defaults[name]}

    def stream_settings(self) -> tuple[Any, ...]:
        """All that a servo is made from, to see whether it has changed."""
        return (self.stream_method, self.controller_options(), self.solver_options())


DECLARED: dict[str, Field[Any]] = {f.name.rstrip("_"): f for f in fields(Parameters)}
