# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of several tips: each followed frame has a target of its own, or holds its pose."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from dls_ik.core.types import Array
from dls_ik.servo.followed_frames import FollowedFrame
from dls_ik.servo.state import ServoState, TipStatus
from dls_ik.servo.stream_end import FINISHING
from dls_ik.servo.targets import PoseTarget, Target, TrajectoryTarget, TwistTarget

HOLDS = "the tip holds its pose"
Kind = TypeVar("Kind", bound=Target)


@dataclass
class TipTarget:
    """Target of a frame, or the pose that the frame holds.

    Attributes:
        frame: The frame.
        target: Target that the frame follows; None: the frame holds `held`.
        held: (4, 4) pose to hold; None: the pose of the frame in the next cycle.
        state: FOLLOWING with a target, otherwise WAITING, TIMED_OUT or REFUSED.
        reason: Why the frame is in this state.
    """

    frame: FollowedFrame
    target: Target | None = None
    held: Array | None = None
    state: ServoState = ServoState.WAITING
    reason: str = HOLDS

    def hold(self, state: ServoState, reason: str = HOLDS) -> None:
        """Drop the target, and hold the pose that the frame has in the next cycle."""
        self.target, self.held, self.state, self.reason = None, None, state, reason

    def follow(self, target: Target, reason: str = "") -> None:
        """Follow a target."""
        self.target, self.state, self.reason = target, ServoState.FOLLOWING, reason


class TipTargets:
    """Targets of all followed frames, as one target of the controller.

    A frame without a target holds the pose of its task; if the task has no pose, the frame holds
    its pose in the first cycle.

    Args:
        frames: (s,) frames that follow targets.
    """

    needs_command = True

    def __init__(self, frames: Sequence[FollowedFrame]) -> None:
        self.tips = [TipTarget(frame, held=frame.initial) for frame in frames]

    @property
    def sampled(self) -> float:
        """Time when the newest target was sampled [s]."""
        return max((t.target.sampled for t in self.tips if t.target is not None), default=-math.inf)

    @property
    def is_velocity(self) -> bool:
        """Return whether a frame follows a twist."""
        return any(tip.target is not None and tip.target.is_velocity for tip in self.tips)

    def set_near_obstacle(self, is_near: bool) -> None:
        """Tell the twists among the targets whether a nearby pair slows or deflects the arm."""
        for target in self._targets(TwistTarget):
            target.is_near_obstacle = is_near

    def needs_poses(self) -> bool:
        """Return whether a frame without a target has no pose to hold yet; see :meth:`hold_at`."""
        return any(tip.target is None and tip.held is None for tip in self.tips)

    def hold_at(self, T: Array) -> None:
        """Set the poses (s, 4, 4) of frames that hold, unless they hold a pose already."""
        for tip, pose in zip(self.tips, T, strict=True):
            if tip.target is None and tip.held is None:
                tip.held = pose.copy()

    def pose(self, now: float, dt: float, tip: Callable[[], Array]) -> Array:
        """Return the desired poses (s, 4, 4) of all frames at the end of a cycle.

        Args:
            now: Current time [s].
            dt: Duration of the cycle [s].
            tip: Function that returns the poses (s, 4, 4) of the frames at the command.
        """
        T: Array = np.empty((len(self.tips), 4, 4))
        current: Array | None = None
        for k, each in enumerate(self.tips):
            if each.target is None:
                T[k] = each.held
            elif each.target.needs_command:
                current = tip() if current is None else current
                T_k = current[k]
                T[k] = each.target.pose(now, dt, lambda T_k=T_k: T_k)  # type: ignore[misc]
            else:
                T[k] = each.target.pose(now, dt, tip)
        return T

    def has_timed_out(self, now: float) -> bool:
        """Return whether a target of a frame has timed out."""
        return any(tip.target is not None and tip.target.has_timed_out(now) for tip in self.tips)

    def is_static(self, now: float) -> bool:
        """Return whether all targets have stopped."""
        return all(tip.target is None or tip.target.is_static(now) for tip in self.tips)

    def interrupt(self) -> None:
        """Delay the trajectories, as :meth:`.TrajectoryTarget.interrupt`."""
        for target in self._targets(TrajectoryTarget):
            target.interrupt()

    @property
    def follows(self) -> bool:
        """Return whether a frame has a target."""
        return any(tip.target is not None for tip in self.tips)

    @property
    def targets(self) -> list[Target]:
        """Targets of the frames that have one."""
        return [tip.target for tip in self.tips if tip.target is not None]

    def refuse(self, reason: str, name: str | None) -> bool:
        """Hold the tip of an invalid target if other tips follow targets.

        Args:
            reason: Why the target is invalid.
            name: Name of the tip.

        Returns:
            False if no other frame has a target or there is no such tip, so that the arm must stop.
        """
        others = [tip for tip in self.tips if tip.frame.tip != name and tip.target is not None]
        own = [tip for tip in self.tips if tip.frame.tip == name and not tip.frame.is_free]
        if not others or not own:
            return False
        for tip in own:
            tip.hold(ServoState.REFUSED, reason)
        return True

    def take_over(self, other: Target) -> None:
        """Take the targets and the held poses of frames that `other` has too.

        Args:
            other: Targets of several tips, or a target of the first tip.
        """
        if not isinstance(other, TipTargets):
            if not self.tips[0].frame.is_free:
                self.tips[0].follow(other)
            return
        known = {(tip.frame.tip, tip.frame.reference): tip for tip in other.tips}
        for tip in self.tips:
            before = known.get((tip.frame.tip, tip.frame.reference))
            if before is None or tip.frame.is_free:
                continue
            initial, earlier = tip.frame.initial, before.frame.initial
            if initial is not None and (earlier is None or not np.array_equal(initial, earlier)):
                continue  # the task has another target now
            tip.target, tip.state, tip.reason = before.target, before.state, before.reason
            if tip.frame.initial is None:
                tip.held = before.held

    def statuses(
        self, now: float, state: ServoState, errors: Array, is_reached: Callable[..., bool]
    ) -> tuple[TipStatus, ...]:
        """Return the status of each frame that is not free.

        Args:
            now: Current time [s].
            state: State of the controller, which also holds for frames that follow a target.
            errors: (s, 2) position errors [m] and rotation errors [rad].
            is_reached: Function that returns whether both errors of a frame are within tolerances.
        """
        found = []
        for tip, (position, rotation) in zip(self.tips, errors.tolist(), strict=True):
            if tip.frame.is_free:
                continue
            own, age = tip.state, math.nan
            if tip.target is not None:
                age = now - tip.target.sampled
                if is_reached(position, rotation):
                    own = ServoState.REACHED
                elif state is not ServoState.REACHED:
                    own = state
            message = own.message(tip.reason)
            status = TipStatus(
                tip.frame.tip, tip.frame.reference, own, message, position, rotation, age
            )
            found.append(status)
        return tuple(found)

    def end_streams(
        self, now: float, T: Array, stop_reason: Callable[[Array, PoseTarget], str]
    ) -> None:
        """Hold the poses of frames whose targets have timed out, or finish their motions.

        Args:
            now: Current time [s].
            T: (s, 4, 4) poses of the frames at the command.
            stop_reason: Function that returns why a frame stops before it reaches the last pose of
                its stream; empty: it finishes the motion. Its arguments are the pose (4, 4) of the
                frame, and its target.
        """
        for tip, pose in zip(self.tips, T, strict=True):
            target = tip.target
            if target is None or not target.has_timed_out(now):
                continue
            if not isinstance(target, PoseTarget):
                tip.hold(ServoState.TIMED_OUT)
                continue
            if not tip.frame.has_rotation:  # only the distance from the last pose counts
                pose = np.block([[target.last[:3, :3], pose[:3, 3:]], [pose[3:]]])
            if reason := stop_reason(pose, target):
                tip.hold(ServoState.TIMED_OUT, reason)
            else:
                target.finish()
                tip.reason = FINISHING

    def _targets(self, kind: type[Kind]) -> list[Kind]:
        return [tip.target for tip in self.tips if isinstance(tip.target, kind)]


def held_statuses(
    frames: Sequence[FollowedFrame], state: ServoState, message: str
) -> tuple[TipStatus, ...]:
    """Return the status of each frame that is not free while the controller holds the arm."""
    return tuple(
        TipStatus(frame.tip, frame.reference, state, message, math.nan, math.nan, math.nan)
        for frame in frames
        if not frame.is_free
    )
