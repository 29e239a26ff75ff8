"""Where commands go, and what is shown of the arm."""

from dataclasses import dataclass

from dls_ik.exceptions import OptionError
from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import Settings, parameter

JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY = "joint_state", "joint_trajectory", "position_array"


@dataclass(frozen=True)
class OutputParameters(Settings):
    """Of what is published."""

    output_type: tuple[str, ...] = parameter(
        (JOINT_STATE,),
        readers.names,
        "messages that commands are published as, one or several",
        choices=(JOINT_STATE, JOINT_TRAJECTORY, POSITION_ARRAY),
        read_only=True,
    )
    output_topic: tuple[str, ...] = parameter(
        (),
        readers.names,
        "topics of the commands, one for each output_type; empty: the usual one of each type",
        read_only=True,
    )
    output_joints: tuple[str, ...] = parameter(
        (),
        readers.names,
        "the joints of the chain in the order of all outputs; empty: from base to tip",
        read_only=True,
    )
    output_names: tuple[str, ...] = parameter(
        (),
        readers.names,
        "what drivers call these joints, in outputs and in joint_states; empty: as the robot does",
        read_only=True,
    )
    trajectory_points: int = parameter(
        1,
        readers.whole_number,
        "points of a joint_trajectory: 1 a cycle ahead; more go on to a stop, in case the stream "
        "breaks off",
        span=(1, 100),
        read_only=True,
    )
    trail: float = parameter(
        5.0,
        readers.number,
        "how long the markers show where the tip was",
        "s",
        (0.0, 60.0),
        read_only=True,
    )
    interactive_marker: bool = parameter(
        False,
        readers.switch,
        "whether there is a marker in RViz to drag the target with",
        read_only=True,
    )

    def check(self) -> None:
        """Refuse lists that do not fit each other.

        Raises:
            OptionError: with what was given.
        """
        super().check()
        types, topics = self.output_type, self.output_topic
        if not types:
            raise OptionError("output_type is empty; give at least one type")
        if topics and len(topics) != len(types):
            raise OptionError(
                f"output_topic has {len(topics)} topics ({', '.join(topics)}) for {len(types)} of "
                f"output_type ({', '.join(types)}); give one for each, or none"
            )
        for name in ("output_joints", "output_names"):
            given = getattr(self, name)
            twice = sorted({item for item in given if given.count(item) > 1})
            if twice:
                raise OptionError(f"{name} has {', '.join(twice)} more than once")
