# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Conversion of levels and frozen joints between the page and the parameters of a node."""

from rclpy.parameter import Parameter

from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.ros.params import Parameters
from dls_ik.solver.stack_labels import level_label
from dls_ik.solver.task_stack import ObjectiveTask, PostureTask, SwivelTask
from dls_ik.viewer.redundancy import Redundancy

KINDS_IN_ORDER = (SwivelTask, PostureTask, ObjectiveTask)  # levels of a node, in their order


def read_redundancy(parameters: Parameters, robot: RobotModel) -> Redundancy:
    """Return the levels and frozen joints that the parameters of a node describe.

    Args:
        parameters: Parameters of the node.
        robot: Robot of the node.
    """
    levels = tuple((task,) for task in parameters.task_levels())
    found = Redundancy(levels, parameters.frozen_joints)
    return found.with_posture({}, robot.joint_names)


def redundancy_parameters(wanted: Redundancy, robot: RobotModel) -> list[Parameter]:
    """Return the parameters of a node for levels and frozen joints.

    Args:
        wanted: Levels and frozen joints.
        robot: Robot of the node.

    Raises:
        OptionError: If a node cannot have these levels, or not in this order.
    """
    tasks = [task for level in wanted.levels for task in level]
    places = [
        next((k for k, kind in enumerate(KINDS_IN_ORDER) if isinstance(task, kind)), -1)
        for task in tasks
    ]
    posture = wanted.posture(robot.joint_names)
    is_partial = bool(posture) and len(posture) < robot.n
    if -1 in places or places != sorted(set(places)) or is_partial:
        given = "; ".join(map(level_label, wanted.levels))
        raise OptionError(
            "the levels of a node are the swivel angle, the posture of all joints and one "
            f"objective, in this order; got {given}"
        )
    swivel = [] if wanted.swivel is None else [wanted.swivel]
    positions = [posture[name] for name in robot.joint_names] if posture else []
    objectives = [task.objective for task in tasks if isinstance(task, ObjectiveTask)]
    kind = Parameter.Type
    return [
        Parameter("frozen_joints", kind.STRING_ARRAY, list(wanted.frozen)),
        Parameter("swivel", kind.DOUBLE_ARRAY, swivel),
        Parameter("posture", kind.DOUBLE_ARRAY, positions),
        Parameter("stream_objective", kind.STRING, objectives[0] if objectives else ""),
    ]
