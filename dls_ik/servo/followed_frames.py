# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Frames that follow targets of their own: the tips, and tips relative to other links."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.stack_problem import StackProblem
from dls_ik.solver.task import Task
from dls_ik.text import did_you_mean, listing, quoted


class FollowedFrame(NamedTuple):
    """A tip whose target is a pose in the base frame, or in the frame of another link."""

    tip: str
    reference: str | None = None  # link in whose frame the target is given; None: the base
    initial: Array | None = None  # (4, 4) target until one arrives; None: hold the pose
    has_position: bool = True  # whether an axis of the position counts
    has_rotation: bool = True  # whether an axis of the rotation counts

    @property
    def is_free(self) -> bool:
        """Return whether no axis counts, so that the frame follows no target."""
        return not (self.has_position or self.has_rotation)

    @property
    def name(self) -> str:
        """Name of the tip, and of the link to which the pose is relative."""
        return self.tip if self.reference is None else f"{self.tip} in {self.reference}"


def tip_frames(robot: RobotModel, tasks: Sequence[Task]) -> tuple[FollowedFrame, ...]:
    """Return the frames of the tips of a robot.

    Args:
        robot: Robot with k tips.
        tasks: (k,) tasks of the tips.
    """
    return tuple(
        FollowedFrame(tip, None, None, *_counted(task))
        for tip, task in zip(robot.tips, tasks, strict=True)
    )


def stack_frames(
    robot: RobotModel, tasks: Sequence[Task], problem: StackProblem, given: Sequence[Task]
) -> tuple[tuple[FollowedFrame, ...], list[tuple[int, int]]]:
    """Return the frames of a stack that follow targets, and the numbers of their targets.

    A :class:`dls_ik.FrameTask` of a tip follows the targets of this tip; with a reference it
    follows the targets of the tip relative to this reference.

    Args:
        robot: Robot with k tips.
        tasks: (k,) tasks of the tips.
        problem: The stack.
        given: Tasks of the frames in `problem.frames`.

    Returns:
        The followed frames, the tips first; and pairs of indices: of a pose in `problem.targets`,
        and of the followed frame that gives this pose.

    Raises:
        OptionError: If a tip has two targets in the same frame.
    """
    frames = list(tip_frames(robot, tasks))
    numbers = [(number, number) for number in range(len(frames))]
    known = {(frame.tip, frame.reference): k for k, frame in enumerate(frames)}
    seen: set[tuple[str, str | None]] = set()
    for (link, reference, number), task in zip(problem.frames, given, strict=True):
        if link not in robot.tips:
            continue
        key = link, reference
        if key in seen or (reference is None and not frames[known[key]].is_free):
            of = "" if reference is None else f" relative to {reference!r}"
            raise OptionError(
                f"tip {link!r} has two tasks for its pose{of}; give it one target: if a FrameTask "
                "places the tip, its Task must be Task.free()"
            )
        seen.add(key)
        frame = FollowedFrame(link, reference, problem.targets[number], *_counted(task))
        if reference is None:
            frames[known[key]] = frame
        else:
            known[key] = len(frames)
            frames.append(frame)
        numbers.append((number, known[key]))
    return tuple(frames), numbers


def _counted(task: Task) -> tuple[bool, bool]:
    """Return whether an axis of the position counts, and whether one of the rotation does."""
    axes = dict(zip("xyz", task.position_tolerance, strict=True))
    return any(np.isfinite(axes[axis]) for axis in task.position), bool(task.rotation)


def find_frame(
    frames: Sequence[FollowedFrame], tip: str | None, reference: str | None = None
) -> int:
    """Return the index of the frame that a tip and a reference name.

    Args:
        frames: Frames that follow targets.
        tip: Name of the tip; None: the only tip.
        reference: Link in whose frame targets are given; None: the base.

    Raises:
        OptionError: If the tip is missing or unknown, no task has the reference, or the frame is
            free.
    """
    tips = list(dict.fromkeys(frame.tip for frame in frames))
    if tip is None:
        if len(tips) > 1:
            raise OptionError(f"there are several tips; give tip=, one of {listing(tips)}")
        tip = tips[0]
    if tip not in tips:
        hint = did_you_mean(tip, tips, "; {}")
        raise OptionError(f"unknown tip {quoted(tip)}; tips are {listing(tips)}{hint}")
    if tip == reference:
        raise OptionError(
            f"the pose of {tip!r} relative to itself is constant; give another link as reference"
        )
    for index, frame in enumerate(frames):
        if (frame.tip, frame.reference) == (tip, reference):
            if frame.is_free:
                raise OptionError(_free(frames, frame))
            return index
    pairs = [frame.name for frame in frames if frame.reference is not None]
    raise OptionError(
        f"no task gives the pose of {tip!r} relative to {quoted(reference)} a target; relative "
        f"targets: {listing(pairs)}; add FrameTask({tip!r}, T, reference={reference!r}) "
        "to the stack"
    )


def _free(frames: Sequence[FollowedFrame], frame: FollowedFrame) -> str:
    """Return the message that a tip follows no target, with the relative targets of this tip."""
    others = [f.name for f in frames if f.tip == frame.tip and f.reference is not None]
    also = f"; its relative targets: {listing(others)}" if others else ""
    return f"tip {frame.tip!r} is free in its task, and follows no pose in the base frame{also}"
