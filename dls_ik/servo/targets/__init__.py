"""What the tip is to follow: each gives a pose for every cycle."""

from dls_ik.servo.targets.pose import PoseTarget
from dls_ik.servo.targets.target import Target
from dls_ik.servo.targets.trajectory import TrajectoryTarget
from dls_ik.servo.targets.twist import TwistTarget

__all__ = ["PoseTarget", "Target", "TrajectoryTarget", "TwistTarget"]
