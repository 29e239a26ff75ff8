"""Targets that move by themselves, computed for whatever robot there is."""

from dls_ik.model.robot import RobotModel
from dls_ik.viewer.presets.limit import into_a_limit
from dls_ik.viewer.presets.out_of_reach import out_of_reach
from dls_ik.viewer.presets.preset import Preset
from dls_ik.viewer.presets.singularity import through_a_singularity

__all__ = ["Preset", "presets_for"]


def presets_for(robot: RobotModel) -> tuple[Preset, ...]:
    """Those that make sense for a robot; takes some tenths of a second."""
    makers = (through_a_singularity, out_of_reach, into_a_limit)
    return tuple(preset for maker in makers if (preset := maker(robot)) is not None)
