"""What the servo is doing, in the numbers of ``moveit_msgs/msg/ServoStatus``."""

import enum


class ServoCode(enum.IntEnum):
    """One code a cycle."""

    INVALID = -1
    OK = 0
    NEAR_SINGULARITY = 1
    JOINT_BOUND = 6

    @property
    def explanation(self) -> str:
        """One sentence for a person."""
        return _EXPLANATIONS[self]


_EXPLANATIONS = {
    ServoCode.INVALID: "the target is not valid; the arm holds",
    ServoCode.OK: "following",
    ServoCode.NEAR_SINGULARITY: "near a singularity: motion along the lost direction is damped",
    ServoCode.JOINT_BOUND: "a joint is held at its limit; the others make up for it as they can",
}
