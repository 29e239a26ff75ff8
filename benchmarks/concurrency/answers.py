"""Answers of compute_ik and compute_fk held against the robots that may have given them."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from dls_ik import RobotModel
from dls_ik.model.analysis import ready_configuration
from dls_ik.ros.frames import matrix_from_pose

Heard = tuple[tuple[str, ...], np.ndarray]  # names of joints, and their values [rad]

SUCCESS = 1
LOOSEST = 1e-4  # [m, rad] tolerance that the parameters are ever given
TIGHT = 1e-9
NEAR = 0.1  # [m, or difference of a matrix] of a cycle or two of motion


def explains(robot: RobotModel, response: Any, link: str, T: np.ndarray) -> bool:
    """Whether an answer of compute_ik is right for a robot: names, limits, and the pose (4, 4).

    Joints that do not move the link stay where they are, which is where the robot before was told
    to be, or a driver says that they are.
    """
    state = response.solution.joint_state
    if tuple(state.name) != robot.joint_names or state.header.frame_id != robot.base:
        return False
    if link and link not in robot.tree.child_joints:
        return False
    q = np.array(state.position)
    moving = {joint.name for joint in robot.tree.path(robot.base, link or robot.tip)}
    stays = np.array([name not in moving for name in robot.joint_names])
    if not robot.within_limits(np.where(stays, robot.clip(q), q), TIGHT):
        return False
    at, tip = robot.link_pose(link or robot.tip, q), robot.fk(q)
    arm = np.linalg.norm(at[:3, 3] - tip[:3, 3])  # a link of the tip is off by what the tip turns
    close = np.linalg.norm(at[:3, 3] - T[:3, 3]) <= (1.01 + arm) * LOOSEST
    return bool(close and np.linalg.norm(at[:3, :3] - T[:3, :3]) <= 1.5 * LOOSEST)


def explains_fk(robot: RobotModel, response: Any, links: list[str], q: dict[str, float]) -> bool:
    """Whether poses of links are those of a robot at joint values by name, given in full."""
    asked = links or [robot.tip]
    if response.fk_link_names != asked or len(response.pose_stamped) != len(asked):
        return False
    if any(link not in robot.tree.child_joints for link in asked):
        return False
    frames = {stamped.header.frame_id for stamped in response.pose_stamped}
    known = {name: value for name, value in q.items() if name in robot.tree.mimic_of}
    at = [robot.tree.pose(link, known) for link in asked]
    poses = [matrix_from_pose(stamped.pose) for stamped in response.pose_stamped]
    return frames == {robot.tree.root} and bool(np.abs(np.array(at) - poses).max() < TIGHT)


def distance(robot: RobotModel, response: Any, states: Iterable[np.ndarray]) -> float:
    """How far the pose of the tip in an answer is from that at the nearest state (n,)."""
    if response.fk_link_names != [robot.tip]:
        return np.inf
    values = np.array(list(states)).reshape(-1, robot.n)
    T = matrix_from_pose(response.pose_stamped[0].pose)
    return float(np.abs(robot.fk(values) - T).max(axis=(1, 2)).min(initial=np.inf))


def states_of(robot: RobotModel, heard: Iterable[Heard], is_new: bool) -> list[np.ndarray]:
    """States (n,) that a robot was in by what was commanded or measured, names and values.

    Args:
        is_new: it may have taken the place of another robot just now: joints that were not there
            before begin where the node begins.
    """
    start, found = ready_configuration(robot), []
    for names, q in heard:
        known = dict(zip(names, q, strict=True))
        if is_new or all(name in known for name in robot.joint_names):
            pairs = zip(robot.joint_names, start, strict=True)
            found.append(np.array([known.get(name, first) for name, first in pairs]))
    return found


def told_in_parts(robot: RobotModel, told: Iterable[Heard]) -> list[np.ndarray]:
    """States (n,) of what drivers told last of each joint, which may be of one robot and the next.

    Args:
        told: in the order in which it was.
    """
    latest: dict[str, float] = {}
    found = []
    for names, q in told:
        latest.update(zip(names, q, strict=True))
        if all(name in latest for name in robot.joint_names):
            found.append(np.array([latest[name] for name in robot.joint_names]))
    return found
