"""How targets are followed."""

from dataclasses import dataclass

from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import parameter
from dls_ik.servo import DEFAULT_METHOD


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
    initial_positions: tuple[float, ...] = parameter(
        (),
        readers.numbers,
        "joint positions of the chain to begin with where no driver publishes them, read when a "
        "robot is taken up; empty: 0, or the limit next to it",
        "rad or m",
    )
