"""Pictures of a motion: where the tip went, and where the joints stood within their limits.

Functions take arrays and a robot and return a matplotlib figure, which saves itself without a
display: ``joint_bands(robot, times, q).savefig("joints.png")``.
"""

from dls_ik.plot.joints import joint_bands
from dls_ik.plot.tip import tip_path

__all__ = ["joint_bands", "tip_path"]
