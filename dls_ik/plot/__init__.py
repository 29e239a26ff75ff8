# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures of motions and of methods.

The functions take arrays and a robot and return a matplotlib figure, which can be saved without a
display: ``joint_bands(robot, times, q).savefig("joints.png")``. Each function is imported at its
first use, so that pictures that need no compiled kernels do not load them.
"""

from typing import TYPE_CHECKING

from dls_ik.lazy import on_first_use

if TYPE_CHECKING:
    from dls_ik.plot.arm import configurations, stroboscope
    from dls_ik.plot.canvas import check_picture, new_figure, save_picture
    from dls_ik.plot.comparison import path_comparison
    from dls_ik.plot.joints import joint_bands, joint_velocities
    from dls_ik.plot.methods import compare_methods
    from dls_ik.plot.path import path_in_space, path_title
    from dls_ik.plot.scene import arm_among_obstacles
    from dls_ik.plot.sliders import Slider, SliderPicture, with_sliders
    from dls_ik.plot.tip import error_and_conditioning, tip_path, tip_planes

__all__ = [
    "Slider",
    "SliderPicture",
    "arm_among_obstacles",
    "check_picture",
    "compare_methods",
    "configurations",
    "error_and_conditioning",
    "joint_bands",
    "joint_velocities",
    "new_figure",
    "path_comparison",
    "path_in_space",
    "path_title",
    "save_picture",
    "stroboscope",
    "tip_path",
    "tip_planes",
    "with_sliders",
]

__getattr__, __dir__ = on_first_use(
    __name__,
    {
        "Slider": "sliders",
        "SliderPicture": "sliders",
        "arm_among_obstacles": "scene",
        "check_picture": "canvas",
        "compare_methods": "methods",
        "configurations": "arm",
        "error_and_conditioning": "tip",
        "joint_bands": "joints",
        "joint_velocities": "joints",
        "new_figure": "canvas",
        "path_comparison": "comparison",
        "path_in_space": "path",
        "path_title": "path",
        "save_picture": "canvas",
        "stroboscope": "arm",
        "tip_path": "tip",
        "tip_planes": "tip",
        "with_sliders": "sliders",
    },
)
