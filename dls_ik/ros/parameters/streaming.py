"""How targets are followed."""

from dataclasses import dataclass, field, fields
from typing import Any

from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import option, parameter
from dls_ik.servo import DEFAULT_METHOD, ControllerOptions

AUTO, REQUIRED, NONE = "auto", "required", "none"


_OPTIONS = {f.name for f in fields(ControllerOptions)}


def _fixed(name: str) -> Any:
    """An option that keeps an arm from harm: not to be changed while it moves."""
    declared = option(ControllerOptions, name)
    return field(default=declared.default, metadata={**declared.metadata, "read_only": True})


@dataclass(frozen=True)
class StreamingParameters:
    """Of the stream."""

    stream_method: str = parameter(
        DEFAULT_METHOD, readers.text, "method that streamed targets are followed with"
    )
    rate: float = parameter(
        100.0,
        readers.number,
        "cycles of the streaming loop",
        "Hz",
        (1.0, 1000.0),
        read_only=True,
    )
    thread_priority: int = parameter(
        50,
        readers.whole_number,
        "real-time priority of the streaming loop (SCHED_FIFO), where it is permitted; 0: none",
        span=(0, 99),
        read_only=True,
    )
    acceleration: tuple[float, ...] = _fixed("acceleration")
    jerk: tuple[float, ...] = _fixed("jerk")
    when_stuck: str = option(ControllerOptions, "when_stuck")
    feed_forward: bool = option(ControllerOptions, "feed_forward")
    target_timeout: float = option(ControllerOptions, "target_timeout")
    stamp_tolerance: float = option(ControllerOptions, "stamp_tolerance")
    lead: float = option(ControllerOptions, "lead")
    twist_frame: str = parameter(
        "",
        readers.text,
        "frame of a geometry_msgs/Twist on target_twist, which has none; empty: the root",
        read_only=True,
    )
    trajectory_period: float = parameter(
        0.1,
        readers.number,
        "time between the poses of a trajectory",
        "s",
        (1e-3, 3600.0),
    )
    driver: str = parameter(
        AUTO,
        readers.text,
        "joint states of a driver: auto: they are where the arm starts, and commands for a "
        "controller wait for them; required: they are watched too; none: passed over",
        choices=(AUTO, REQUIRED, NONE),
        read_only=True,
    )
    measurement_timeout: float = _fixed("measurement_timeout")
    max_deviation: float = _fixed("max_deviation")
    initial_positions: tuple[float, ...] = parameter(
        (),
        readers.numbers,
        "joint positions of the chain to begin with where no driver publishes them, read when a "
        "robot is taken up; empty: 0, or the limit next to it, bent where that is near a "
        "singularity",
        "rad or m",
    )

    def controller_options(self) -> dict[str, Any]:
        """What of this a controller takes, beside the options of its method."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name in _OPTIONS}
        given["supervised"] = self.driver == REQUIRED
        return {name: _for_joints(value) for name, value in given.items() if value != ()}


def _for_joints(value: Any) -> Any:
    """One number for all joints may be given as a list of one."""
    return value[0] if isinstance(value, tuple) and len(value) == 1 else value
