"""Which robot."""

from dataclasses import dataclass

from dls_ik.exceptions import OptionError
from dls_ik.ros.parameters import readers
from dls_ik.ros.parameters.declare import Settings, parameter


@dataclass(frozen=True)
class RobotParameters(Settings):
    """The robot, and the ends of its chain."""

    robot: str = parameter(
        "",
        readers.text,
        "robot that comes with the package, a URDF, xacro or DH file, or package://NAME/PATH; "
        "behind a xacro file its arguments: 'FILE.xacro NAME:=VALUE'",
        read_only=True,
    )
    robot_description: str = parameter(
        "",
        readers.text,
        "URDF of the robot as text; without it and without 'robot' the topic is waited for",
        read_only=True,
    )
    base: str = parameter("", readers.text, "first link of the chain; empty: root", read_only=True)
    tip: str = parameter(
        "", readers.text, "last link of the chain; empty: the only one there is", read_only=True
    )

    def ends(self) -> tuple[str | None, str | None]:
        """Base and tip; None where the robot tells."""
        return self.base or None, self.tip or None

    def check(self) -> None:
        """Refuse two robots.

        Raises:
            OptionError: both are given.
        """
        super().check()
        if self.robot and self.robot_description:
            raise OptionError("'robot' and 'robot_description' are both given; give one of them")
