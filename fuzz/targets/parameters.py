"""Parameters of the node: any name with any value that ROS, or anybody, may set."""

from array import array
from typing import Any

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError
from dls_ik.ros.arm import Arm
from dls_ik.ros.params import DECLARED, Parameters
from dls_ik.ros.sim_arm.simulation import SimArmParameters
from fuzz.anything import anything, numbers
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require
from fuzz.targets.options import PARTS, method_name

FURTHER = ("group.a.tip", "group.a.base", "group.a.method", "group.a.timeout", "group.", "x")
LISTS = ("a", "a,b", "wam_link4", "joint_state", "joint_trajectory,position_array", "", "a,a")
PLANAR = RobotModel.from_name("planar_2r")


def build() -> Run:
    """Make the target."""
    return run


def run(source: Source) -> None:
    """Change some parameters, and now and then take them into use."""
    try:
        kind = Parameters if source.below(8) else SimArmParameters
        given = {_name(source): value(source) for _ in range(1 + source.below(4))}
        if source.one_in(8):
            given["groups"] = source.pick(LISTS)
        parameters = kind().changed(given)
        if source.one_in(128) and isinstance(parameters, Parameters):
            arm = Arm(PLANAR, parameters)
            arm.controller.cycle(1.0, 0.01)
    except DlsIkError as error:
        require(str(error), "an error without words")


def _name(source: Source) -> str:
    return source.pick((*DECLARED, *FURTHER))


def value(source: Source) -> Any:
    """As a parameter of ROS comes, or anything."""
    kind = source.below(8)
    if kind == 0:
        return bool(source.below(2))
    if kind == 1:
        return source.below(256) - 8
    if kind == 2:
        return source.number()
    if kind == 3:
        return source.pick((*LISTS, *PARTS, "auto", "required", "refuse", "hold"))
    if kind == 4:
        return array("d", numbers(source, source.below(9)))
    if kind == 5:
        return [source.pick(LISTS) for _ in range(source.below(4))]
    if kind == 6:
        return method_name(source)
    return anything(source)
