"""The parameters of the node, each declared once; the rest of the node sees a frozen struct."""

from dataclasses import dataclass, fields
from typing import Any

from dls_ik.exceptions import MethodError
from dls_ik.ros.parameters.declare import declared
from dls_ik.ros.parameters.groups import GroupsParameters
from dls_ik.ros.parameters.methods import MethodParameters
from dls_ik.ros.parameters.outputs import OutputParameters
from dls_ik.ros.parameters.serving import ServingParameters
from dls_ik.ros.parameters.solving import SolvingParameters
from dls_ik.ros.parameters.streaming import StreamingParameters
from dls_ik.solver.method import parse_method
from dls_ik.solver.options import SolverOptions, solver_options


@dataclass(frozen=True)
class Parameters(
    MethodParameters,
    OutputParameters,
    StreamingParameters,
    ServingParameters,
    SolvingParameters,
    GroupsParameters,
):
    """All parameters of the node."""

    def check(self) -> None:
        """Refuse what does not go together.

        Raises:
            OptionError: two robots, groups or outputs that do not fit each other.
            MethodError: an unknown method, one that cannot follow targets, or parameters that break
                a condition of a method.
        """
        super().check()
        of_groups = [group.method for group in self.group_details if group.method]
        for method in (self.method, self.stream_method, *of_groups):
            solver_options(parse_method(method), self.solver_options())
        if parse_method(self.stream_method).is_kdl:  # told before there is a robot, too
            raise MethodError(f"stream_method {self.stream_method!r} follows no target")

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


DECLARED = declared(Parameters)  # without those of each group
