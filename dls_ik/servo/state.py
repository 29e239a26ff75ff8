"""What the controller does, for people and in the numbers of ``moveit_msgs/msg/ServoStatus``."""

import enum


class ServoState(enum.Enum):
    """One state a cycle: a name, the number of it in ServoStatus, and a sentence for a person."""

    NO_ROBOT = (-1, "no robot yet")
    WAITING = (0, "no target yet")
    FOLLOWING = (0, "following")
    REACHED = (0, "at the target")
    JOINT_MOTION = (0, "moving through joint space to a solution that local motion did not find")
    PAUSED = (0, "paused")
    NEAR_SINGULARITY = (1, "near a singularity")
    STALLED = (2, "stalled")
    UNREACHABLE = (2, "as near to the target as the arm comes, which is out of its reach")
    LEAVING_SINGULARITY = (3, "leaving a singularity")
    JOINT_BOUND = (6, "a joint is held at its limit; the others make up for it as they can")
    STALE = (-1, "the targets have ceased to come; the arm stops and holds")
    REFUSED = (-1, "the target is not valid; the arm stops and holds")
    FAULT = (-1, "a fault; the arm stops and holds until it is reset")

    @property
    def code(self) -> int:
        """The number in ServoStatus (-1 invalid, 0 fine, 1 to 3 singularity, 6 joint bound)."""
        return self.value[0]

    @property
    def explanation(self) -> str:
        """One sentence for a person."""
        return self.value[1]
