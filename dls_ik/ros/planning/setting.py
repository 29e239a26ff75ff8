# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Setting of a planned motion: chain, start, scene and limits, read from a request and checked."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import Code, RequestError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm, Group, IkChain
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import MODE_NONE
from dls_ik.ros.services.request import RobotContext, read_state, request_scene
from dls_ik.ros.services.scene import scene_in_state
from dls_ik.scene.joint_paths import PathPairs, path_pairs
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.servo import gentle_acceleration
from dls_ik.servo.joint_motion import MotionLimits
from dls_ik.servo.options import motion_limits
from dls_ik.servo.planner import PATH_CLEARANCE

MAX_START_EXCESS = 0.01  # [rad or m] largest distance of the start outside the joint limits
DEFAULT_VELOCITY = 1.0  # [rad/s or m/s] limit of joints without a velocity limit, as in MoveIt
DEFAULT_ACCELERATION = 100.0  # [rad/s^2 or m/s^2] limit of joints without an acceleration limit


class Scaling(NamedTuple):
    """Factors of a request that reduce velocities and accelerations."""

    velocity: float = 1.0
    acceleration: float = 1.0


class Sources(NamedTuple):
    """Functions and objects of the node from which settings are read."""

    arm: Callable[[], Arm]
    current: Callable[[Arm], Mapping[str, float]]  # joint positions by name [rad or m]
    frames: Frames
    find_scene: Callable[[Tree], PlanningScene]


class Setting(NamedTuple):
    """Chain, start, scene and limits of a planned motion."""

    group: Group
    chain: IkChain
    context: RobotContext  # start state, and the scene in this state; None: no collision checks
    start: Array  # (n,) start of the chain's joints [rad or m]
    limits: MotionLimits
    min_distance: float  # [m] distance that all pairs keep
    notes: tuple[str, ...]  # remarks for the client

    @property
    def robot(self) -> RobotModel:
        """Robot model of the chain."""
        return self.chain.solver.robot

    @property
    def world(self) -> SceneSnapshot | None:
        """Scene in the start state; None: no collision checks."""
        scene = self.context.scene
        return None if scene is None else scene.snapshot

    def pairs(self) -> PathPairs | None:
        """Return the pairs of the scene, with the margins of planned paths."""
        world = self.world
        clearance = self.min_distance + PATH_CLEARANCE
        return None if world is None else path_pairs(world, clearance)


class _Wanted(NamedTuple):
    avoid_collisions: bool
    robot_state: Any


def read_setting(
    sources: Sources,
    group_name: str,
    link: str,
    start_state: Any,
    scaling: Scaling,
    avoid_collisions: bool = True,
) -> Setting:
    """Return the setting of a motion, with a start that is valid.

    Args:
        sources: Objects of the node.
        group_name: Name of the group.
        link: Link with a goal or a path; empty: the tips of the group.
        start_state: ``moveit_msgs/RobotState``; joints that it does not name are at their current
            positions.
        scaling: Factors for velocities and accelerations.
        avoid_collisions: Whether the motion must be collision-free.

    Raises:
        RequestError: If the group or the link is unknown, the start is outside the joint limits or
            in collision, or a check is needed and there is no scene.
        FrameError: If the frame of an attached object is unknown.
    """
    arm = sources.arm()
    group = arm.group(group_name)
    chain = arm.ik_chain(group, (link,)) if link else whole_group(arm, group)
    robot = chain.solver.robot
    scene, unchecked = request_scene(
        _Wanted(avoid_collisions, start_state), arm, sources.find_scene
    )
    state = read_state(arm.tree, start_state, keeps_attached=scene is not None)
    values = state.overlay(arm.tree, sources.current(arm))
    context = RobotContext(arm, sources.frames, values)
    if scene is not None:
        attached = state.attached, state.keeps_attached
        context = context._replace(scene=scene_in_state(scene, robot, context, attached))
    complete = arm.tree.values(values)
    start = np.array([complete[name] for name in robot.joint_names], np.float64)
    _check_start(robot, start, context.scene)
    notes = tuple(filter(None, (unchecked, *state.notes)))
    distance = _min_distance(arm, robot) if scene is not None else 0.0
    limits = planning_limits(arm, robot, scaling)
    return Setting(group, chain, context, start, limits, distance, notes)


def whole_group(arm: Arm, group: Group) -> IkChain:
    """Return the chain of a group, all of whose tips are requested links."""
    return arm.ik_chain(group, group.solver.robot.tips)


def _check_start(robot: RobotModel, start: Array, scene: PlanningScene | None) -> None:
    bad = np.flatnonzero(
        (start < robot.lower - MAX_START_EXCESS) | (start > robot.upper + MAX_START_EXCESS)
    )
    for j in bad[:1]:
        raise RequestError(
            Code.START_STATE_INVALID,
            f"joint {robot.joint_names[j]!r} starts at {start[j]:.4g}, outside its limits from "
            f"{robot.lower[j]:.4g} to {robot.upper[j]:.4g} [{robot.units[j]}]; give a start_state "
            "within the limits, or move the arm",
        )
    pair = None if scene is None else scene.snapshot.colliding_pair(start)
    if pair is not None:
        raise RequestError(
            Code.START_STATE_IN_COLLISION,
            f"{pair[0]!r} and {pair[1]!r} collide at the start; move them apart with a pose or "
            "twist target, or allow this collision in the scene",
        )


def _min_distance(arm: Arm, robot: RobotModel) -> float:
    """Return the distance that the servo loop keeps when it executes motions of a chain [m]."""
    is_stream = robot.joint_names == arm.robot.joint_names
    avoids = arm.parameters.stream_avoid_collisions != MODE_NONE
    return arm.controller.options.min_distance if is_stream and avoids else 0.0


def planning_limits(arm: Arm, robot: RobotModel, scaling: Scaling) -> MotionLimits:
    """Return the limits of a planned motion.

    Joints that follow targets have the acceleration and jerk limits of the stream; other joints
    have the default acceleration limits. The parameter `scale` reduces velocities and
    accelerations, as it does in the stream.

    Args:
        arm: Arm in use.
        robot: Robot model of the chain.
        scaling: Factors of the request.
    """
    options = arm.controller.options
    share = options.scale if options.scale > 0.0 else 1.0
    acceleration, jerk = motion_limits(options, arm.robot)
    of_stream = dict(zip(arm.robot.joint_names, zip(acceleration, jerk, strict=True), strict=True))
    gentle = None if set(robot.joint_names) <= set(of_stream) else gentle_acceleration(robot)
    pairs = [
        of_stream.get(name, (0.0 if gentle is None else gentle[j], np.inf))
        for j, name in enumerate(robot.joint_names)
    ]
    acceleration, jerk = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    velocity = np.where(np.isfinite(robot.velocity), robot.velocity, DEFAULT_VELOCITY)
    return MotionLimits(
        share * scaling.velocity * velocity,
        share * scaling.acceleration * np.minimum(acceleration, DEFAULT_ACCELERATION),
        jerk,
    )


def read_scaling(request: Any) -> Scaling:
    """Return the scaling factors of a request; values outside (0, 1] mean 1, as in MoveIt."""
    given = request.max_velocity_scaling_factor, request.max_acceleration_scaling_factor
    return Scaling(*(value if 0.0 < value <= 1.0 else 1.0 for value in given))
