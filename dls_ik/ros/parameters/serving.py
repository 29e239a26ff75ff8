"""How many requests are worked on, and how many wait."""

from dataclasses import dataclass

from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import parameter


@dataclass(frozen=True)
class ServingParameters:
    """Of compute_ik under load."""

    service_threads: int = parameter(
        2,
        readers.whole_number,
        "requests that take long that are solved at once",
        span=(1, 64),
        read_only=True,
    )
    service_queue: int = parameter(
        64,
        readers.whole_number,
        "requests that wait for one of these threads; more are answered at once with an error",
        span=(1, 10_000),
        read_only=True,
    )
    max_timeout: float = parameter(
        10.0,
        readers.number,
        "longest time that a request is solved for; a longer timeout is cut to it",
        "s",
        (1e-3, 3600.0),
        read_only=True,
    )
