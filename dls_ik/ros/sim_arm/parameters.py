"""The parameters of the node, each declared once."""

from dataclasses import dataclass

from dls_ik.errors import OptionError
from dls_ik.ros.params.declare import parameter
from dls_ik.ros.params.robot import RobotParameters

LONGEST = 60.0  # [s] of any time here


@dataclass(frozen=True)
class SimArmParameters(RobotParameters):
    """Which joints there are, and how they answer."""

    joint_names: tuple[str, ...] = parameter(
        (),
        "joints, in the order of position_array, where no robot says so; without velocity limits",
        read_only=True,
    )
    rate: float = parameter(250.0, "joint states in a second", "Hz", (1.0, 1000.0), read_only=True)
    initial_positions: tuple[float, ...] = parameter(
        (),
        "where the joints stand at the start and after a reset; empty: 0, or the limit next to it, "
        "bent where that is near a singularity",
        "rad or m",
    )
    delay: float = parameter(0.0, "time from a command to the drives", "s", (0.0, LONGEST))
    time_constant: float = parameter(
        0.0, "first-order lag behind the commands; 0: none", "s", (0.0, LONGEST)
    )
    limit_velocity: bool = parameter(
        True, "whether joints keep to the velocity limits of the robot description"
    )
    noise: float = parameter(
        0.0,
        "standard deviation of the measured positions",
        "rad or m",
        (0.0, 1.0),
    )
    dropout_rate: float = parameter(
        0.0,
        "gaps in the joint states, in a second without them; at random, this in the mean",
        "1/s",
        (0.0, 1000.0),
    )
    dropout_duration: float = parameter(0.1, "length of each such gap", "s", (0.0, LONGEST))
    random_seed: int = parameter(
        0,
        "of noise and gaps",
        span=(0, 2**31 - 1),
        read_only=True,
    )

    def check(self) -> None:
        """Refuse two sets of joints, and one joint twice.

        Raises:
            OptionError: saying which.
        """
        super().check()
        robot = "robot" if self.robot else "robot_description" if self.robot_description else ""
        if self.joint_names and robot:
            raise OptionError(f"'joint_names' and {robot!r} are both given; give one of them")
        if len(set(self.joint_names)) < len(self.joint_names):
            raise OptionError(f"joint_names has a name twice: {', '.join(self.joint_names)}")

    def gaps(self) -> tuple[float, float]:
        """How often and how long [1/s, s] nothing is heard."""
        return self.dropout_rate, self.dropout_duration
