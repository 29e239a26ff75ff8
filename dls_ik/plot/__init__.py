"""Pictures of a motion, and of methods at work.

Functions take arrays and a robot and return a matplotlib figure, which saves itself without a
display: ``joint_bands(robot, times, q).savefig("joints.png")``.
"""

from dls_ik.plot.conditioning import error_and_conditioning
from dls_ik.plot.joints import joint_bands
from dls_ik.plot.methods import compare_methods
from dls_ik.plot.planes import tip_planes
from dls_ik.plot.saving import check_picture, save_picture
from dls_ik.plot.stroboscope import stroboscope
from dls_ik.plot.tip import tip_path
from dls_ik.plot.velocities import joint_velocities

__all__ = [
    "check_picture",
    "compare_methods",
    "error_and_conditioning",
    "joint_bands",
    "joint_velocities",
    "save_picture",
    "stroboscope",
    "tip_path",
    "tip_planes",
]
