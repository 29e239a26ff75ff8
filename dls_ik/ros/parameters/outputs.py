"""Where commands go."""

from dataclasses import dataclass

from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import parameter

JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY = "joint_state", "joint_trajectory", "position_array"


@dataclass(frozen=True)
class OutputParameters:
    """Of what is published."""

    output_type: str = parameter(
        JOINT_STATE,
        readers.text,
        "message that commands are published as",
        choices=(JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY),
        read_only=True,
    )
    output_topic: str = parameter(
        "", readers.text, "topic of the commands; empty: the usual one of the type", read_only=True
    )
