"""The parameters of the node that is shown: read, and changed where the node lets them."""

from collections.abc import Iterable
from typing import Any, cast

from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python

from dls_ik.exceptions import OptionError
from dls_ik.ros.client.connection import Service
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.parameters.declare import declared

KNOWN = declared(Parameters)
CHANGEABLE = tuple(name for name, field in KNOWN.items() if not field.metadata["read_only"])
SIMULATED = "use_sim_time"


class Settings:
    """The parameters as the node had them when they were last read.

    Args:
        name: of the node that is shown.
    """

    def __init__(self, node: Node, name: str) -> None:
        self._get = Service(node, GetParameters, f"{name}/get_parameters")
        self._set = Service(node, SetParametersAtomically, f"{name}/set_parameters_atomically")
        self.current = Parameters()
        self.are_known = False
        self.is_simulated = True  # until it is known that stamps are those of this machine's clock

    def read(self, wait: float = 0.0) -> Parameters:
        """Ask the node, which may come within a time [s].

        Raises:
            ServiceMissingError, NoAnswerError: the node does not say.
            DlsIkError: what it says is not valid here: it is of another version.
        """
        given = self._values(KNOWN, wait)
        given |= self._values(Parameters().further(given), 0.0)
        self.is_simulated = bool(self._values([SIMULATED], 0.0).get(SIMULATED, True))
        self.current = cast(Parameters, Parameters().changed(given))
        self.are_known = True
        return self.current

    def write(self, name: str, value: Any) -> None:
        """Change a parameter.

        Raises:
            OptionError: the node refuses it; the reason.
            ServiceMissingError, NoAnswerError: the node does not answer.
        """
        message = Parameter(name, value=value).to_parameter_msg()
        result = self._set.call(parameters=[message]).result
        if not result.successful:
            raise OptionError(result.reason or f"the node refuses {name} {value!r}")
        self.read()

    def _values(self, names: Iterable[str], wait: float) -> dict[str, Any]:
        asked = list(names)
        if not asked:
            return {}
        values = [parameter_value_to_python(v) for v in self._get.call(wait, names=asked).values]
        if len(values) != len(asked):
            return {}  # a node with other parameters says nothing at all
        return {n: v for n, v in zip(asked, values, strict=True) if v is not None}
