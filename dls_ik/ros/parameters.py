"""The parameters of the node, each declared once; the rest of the node sees a frozen struct."""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any

from dls_ik.exceptions import OptionError
from dls_ik.ros import readers
from dls_ik.servo import DEFAULT_METHOD
from dls_ik.solver.method import AUTO, parse_method
from dls_ik.solver.options import SolverOptions, solver_options

IGNORE, REFUSE = "ignore", "refuse"
JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY = "joint_state", "joint_trajectory", "position_array"


def _parameter(
    default: Any,
    read: Callable[[Any], Any],
    text: str,
    unit: str = "",
    span: tuple[float, float] | None = None,
    choices: tuple[str, ...] = (),
    read_only: bool = False,
) -> Any:
    about = {
        "read": read,
        "text": text,
        "unit": unit,
        "range": span,
        "choices": choices,
        "read_only": read_only,
    }
    return field(default=default, metadata=about)


def _option(name: str) -> Any:
    """An option of the solver, declared there."""
    option = {f.name: f for f in fields(SolverOptions)}[name]
    about = option.metadata
    if "choices" in about:
        return _parameter(option.default, readers.text, about["text"], choices=about["choices"])
    read = readers.whole_number if isinstance(option.default, int) else readers.number
    return _parameter(option.default, read, about["text"], about["unit"], about["range"])


@dataclass(frozen=True)
class Parameters:
    """All parameters of the node. A trailing underscore is not part of a name in ROS."""

    robot: str = _parameter(
        "", readers.text, "robot that comes with the package, or a URDF file", read_only=True
    )
    robot_description: str = _parameter(
        "",
        readers.text,
        "URDF of the robot as text; without it and without 'robot' the topic is waited for",
        read_only=True,
    )
    base: str = _parameter("", readers.text, "first link of the chain; empty: root", read_only=True)
    tip: str = _parameter(
        "", readers.text, "last link of the chain; empty: the only one there is", read_only=True
    )
    group_name: tuple[str, ...] = _parameter(
        (), readers.names, "group names that requests may give, one or several; empty: any"
    )
    method: str = _parameter(AUTO, readers.text, "method that services solve with")
    stream_method: str = _parameter(
        DEFAULT_METHOD, readers.text, "method that streamed targets are followed with"
    )
    position_tolerance: float = _option("position_tolerance")
    rotation_tolerance: float = _option("rotation_tolerance")
    rotation_weight: float = _option("rotation_weight")
    timeout: float = _option("timeout")
    solve_type: str = _option("solve_type")
    random_seed: int = _option("random_seed")
    avoid_collisions: str = _parameter(
        IGNORE,
        readers.text,
        "what becomes of requests to avoid collisions, which this node cannot see",
        choices=(IGNORE, REFUSE),
    )
    rate: float = _parameter(
        100.0,
        readers.number,
        "cycles of the streaming loop",
        "Hz",
        (1.0, 1000.0),
        read_only=True,
    )
    output_type: str = _parameter(
        JOINT_STATE,
        readers.text,
        "message that commands are published as",
        choices=(JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY),
        read_only=True,
    )
    output_topic: str = _parameter(
        "", readers.text, "topic of the commands; empty: the usual one of the type", read_only=True
    )
    initial_positions: tuple[float, ...] = _parameter(
        (),
        readers.numbers,
        "joint positions of the chain to begin with where no driver publishes them, read when a "
        "robot is taken up; empty: 0, or the limit next to it",
        "rad or m",
    )
    alpha: float = _option("alpha")
    lambda_: float = _option("lambda_")
    nu: float = _option("nu")
    sigma0: float = _option("sigma0")
    gamma_max: float = _option("gamma_max")
    margin: float = _option("margin")
    mu: float = _option("mu")

    def changed(self, given: Mapping[str, Any]) -> "Parameters":
        """The parameters with some values changed, by their names in ROS; all of it checked.

        Raises:
            OptionError: a value of the wrong type or out of range, or an unknown name.
            MethodError: an unknown method, or parameters that break a condition of a method.
        """
        unknown = sorted(set(given) - set(DECLARED))
        if unknown:
            raise OptionError(f"unknown parameter {unknown[0]!r}; known: {', '.join(DECLARED)}")
        values = {DECLARED[name].name: _checked(name, value) for name, value in given.items()}
        candidate = replace(self, **values)
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
        return (self.stream_method, *self.solver_options().items())


DECLARED: dict[str, Field[Any]] = {f.name.rstrip("_"): f for f in fields(Parameters)}


def _checked(name: str, value: Any) -> Any:
    about = DECLARED[name].metadata
    try:
        result = about["read"](value)
    except ValueError as error:
        raise OptionError(f"{name} takes {error}, not {value!r}") from None
    if about["choices"] and result not in about["choices"]:
        raise OptionError(f"{name} is one of {', '.join(about['choices'])}, not {value!r}")
    if about["range"] and not about["range"][0] <= result <= about["range"][1]:
        low, high = about["range"]
        unit = f" [{about['unit']}]" if about["unit"] else ""
        raise OptionError(f"{name} is from {low:g} to {high:g}{unit}, not {value!r}")
    return result
