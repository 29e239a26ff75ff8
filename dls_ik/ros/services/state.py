"""The state that a request is about: the current one, overlaid with what the request gives."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from dls_ik.core.se3 import FARTHEST
from dls_ik.model.tree import Tree
from dls_ik.ros.errors import Code, RequestError


class State(NamedTuple):
    """Joint values, and what is to be said about them."""

    values: dict[str, float]  # by joint; those not in it stand at 0, or at the limit next to 0
    note: str  # empty, or sentences for the answer


def overlaid(tree: Tree, current: Mapping[str, float], robot_state: Any) -> State:
    """Overlay the current values with a ``moveit_msgs/RobotState`` given in a request.

    It does so with `is_diff` and without, as move_group has it. Joints that the robot does not
    have, or that no value moves, are passed over.

    Raises:
        RequestError: a value that is not finite, or beyond all numbers that are of use.
    """
    notes = _not_used(robot_state)
    values = {name: value for name, value in current.items() if name in tree.mimic_of}
    names, positions = robot_state.joint_state.name, robot_state.joint_state.position
    if len(names) != len(positions):
        counts = f"{len(names)} names and {len(positions)} positions"
        notes.insert(0, f"the joint state given has {counts}, so it is not used")
        names = positions = []
    for name, value in zip(names, positions, strict=True):
        if name not in tree.mimic_of:
            continue
        if not abs(value) <= FARTHEST:
            raise RequestError(
                Code.INVALID_ROBOT_STATE,
                f"joint {name!r} of the state given has the value {value}, which is not finite, or "
                f"beyond {FARTHEST:g}",
            )
        values[name] = value
    return State(values, "; ".join(notes))


def _not_used(robot_state: Any) -> list[str]:
    """What of a state given has no meaning here, in sentences."""
    notes = []
    if robot_state.multi_dof_joint_state.joint_names:
        notes.append("joints with several degrees of freedom are not used")
    if robot_state.attached_collision_objects:
        notes.append("attached objects are not used")
    return notes


def driven_joints(tree: Tree) -> list[str]:
    """The names of all joints that one value moves, in the order of the robot description."""
    return [joint.name for joint in tree.joints if joint.name in tree.mimic_of]
