"""What a request comes to: tips, where each of them is to be, and from where to start."""

from collections.abc import Generator
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.arm import Arm, TipAttachment
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.state import State
from dls_ik.ros.services.wanted import Wanted, wanted
from dls_ik.solver import IkResult, IkSolver
from dls_ik.solver.task import Task


class Problem(NamedTuple):
    """All that a solver needs: k tips, a pose and a task for each, a seed and a time."""

    solver: IkSolver
    targets: Array  # (k, 4, 4) T_base_tip [m]
    tasks: tuple[Task, ...] | None  # (k,) which of the pose errors count; None: all
    seed: Array  # (n,) [rad or m]
    timeout: float  # [s]
    attachments: tuple[TipAttachment | None, ...]  # (k,) which link each tip belongs to
    links: tuple[str, ...]  # asked for; one empty name is the tip


def build_problem(request: Any, arm: Arm, state: State, frames: Frames) -> Problem:
    """The problem that a ``moveit_msgs/PositionIKRequest`` states, without its constraints.

    Raises:
        RequestError: a group, a link, a frame, a pose or a timeout that is not valid.
    """
    _, timeout = timeouts(request, arm)
    asked = wanted(request)
    solver, attachments = arm.ik_chain(arm.group(request.group_name), asked.links)
    tips = solver.robot.tips
    targets = [
        _target(tip, attachment, asked, arm, solver.robot.base, state, frames)
        for tip, attachment in zip(tips, attachments, strict=True)
    ]
    complete = arm.tree.values(state.values)
    seed = np.array([complete[name] for name in solver.robot.joint_names])
    return Problem(solver, np.array(targets), None, seed, timeout, attachments, asked.links)


def timeouts(request: Any, arm: Arm) -> tuple[float, float]:
    """The timeout that a ``moveit_msgs/PositionIKRequest`` asks for, and the one that it gets [s].

    Raises:
        RequestError: a group or a timeout that is not valid.
    """
    asked = seconds(request.timeout, arm.group(request.group_name).timeout)
    return asked, min(asked, arm.parameters.max_timeout)


def seconds(duration: Any, default: float) -> float:
    """The timeout that a ``builtin_interfaces/Duration`` asks for [s]; zero: the default.

    Raises:
        RequestError: below zero.
    """
    time = duration.sec + 1e-9 * duration.nanosec
    if time < 0.0:
        raise RequestError(Code.FAILURE, f"timeout is a time from 0 on [s], not {time:g}")
    return time or default


def solve(problem: Problem) -> Generator[None, None, IkResult]:
    """Find joint values, in slices as :meth:`dls_ik.IkSolver.slices`.

    Raises:
        PoseError: a pose beyond what is finite in practice.
    """
    solver, targets, tasks, seed, timeout = problem[:5]
    T = targets if len(targets) > 1 else targets[0]
    return (yield from solver.slices(T, seed, timeout, tasks))


def _target(
    tip: str,
    attachment: TipAttachment | None,
    asked: Wanted,
    arm: Arm,
    base: str,
    state: State,
    frames: Frames,
) -> Array:
    """(4, 4) T_base_tip of a tip that a link takes along, or that stays where it is."""
    if attachment is None:
        T_root_tip = arm.tree.pose(tip, state.values)
    else:
        pose = asked.poses[attachment.link_index]
        T_root_link = frames.pose_in_root(pose, arm.tree, state.values, at_stamp=True)
        T_root_tip = T_root_link @ attachment.T_link_tip
    return arm.base_from_root(T_root_tip, base, state.values)
