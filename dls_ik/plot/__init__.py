"""Pictures of a motion, and of methods at work.

Functions take arrays and a robot and return a matplotlib figure, which saves itself without a
display: ``joint_bands(robot, times, q).savefig("joints.png")``. Each is imported when it is first
used, so that who only saves a picture does not wait for the kernels.
"""

from typing import TYPE_CHECKING

from dls_ik.first_use import on_first_use

if TYPE_CHECKING:
    from dls_ik.plot.conditioning import error_and_conditioning
    from dls_ik.plot.joints import joint_bands
    from dls_ik.plot.methods import compare_methods
    from dls_ik.plot.planes import tip_planes
    from dls_ik.plot.saving import check_picture, save_picture
    from dls_ik.plot.strobe import stroboscope
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

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "check_picture": "saving",
        "compare_methods": "methods",
        "error_and_conditioning": "conditioning",
        "joint_bands": "joints",
        "joint_velocities": "velocities",
        "save_picture": "saving",
        "stroboscope": "strobe",
        "tip_path": "tip",
        "tip_planes": "planes",
    },
)
