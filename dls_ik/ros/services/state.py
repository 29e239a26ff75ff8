"""The state that a request is about: the current one, overlaid with what the request gives."""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from dls_ik.model.tree import Tree
from dls_ik.ros.services.codes import Code, RequestError


class State(NamedTuple):
    """Joint values, and what is to be said about them."""

    values: dict[str, float]  # by joint; those not in it stand at 0, or at the limit next to 0
    note: str  # empty, or a sentence for the answer


def overlaid(tree: Tree, current: Mapping[str, float], joint_state: Any) -> State:
    """Overlay the current values with a ``sensor_msgs/JointState`` given in a request.

    Joints that the robot does not have, or that no value moves, are passed over.

    Raises:
        RequestError: a value that is not finite.
    """
    values = {name: value for name, value in current.items() if name in tree.drives}
    names, positions = joint_state.name, joint_state.position
    if len(names) != len(positions):
        counts = f"{len(names)} names and {len(positions)} positions"
        return State(values, f"the joint state given has {counts}, so it is not used")
    for name, value in zip(names, positions, strict=True):
        if name not in tree.drives:
            continue
        if not math.isfinite(value):
            raise RequestError(
                Code.INVALID_ROBOT_STATE,
                f"joint {name!r} of the state given has the value {value}, which is not finite",
            )
        values[name] = value
    return State(values, "")


def driven_joints(tree: Tree) -> list[str]:
    """The names of all joints that one value moves, in the order of the robot description."""
    return [joint.name for joint in tree.joints if joint.is_driven]
