"""What a message tells the controller to follow."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped

from dls_ik.core.types import Array
from dls_ik.errors import PoseError, StaleTargetError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames, matrix_from_pose, quaternion_note, strip_slash
from dls_ik.ros.stream.targets import MOST_POSES, TooLong

Values = Mapping[str, float]


def aim(arm: Arm, message: Any, frames: Frames, values: Values, now: float, age: float) -> None:
    """Let the controller follow a PoseStamped, TwistStamped or PoseArray.

    Args:
        values: where the joints of the robot are, for frames that move with them.
        now: steady [s].
        age: of the message when it arrived [s].

    Raises:
        DlsIkError: a message that is not valid, or that comes too late, or at the wrong time.
    """
    _FOLLOW[type(message)](arm, message, frames, values, now, age)


def remark(message: Any) -> str:
    """What is to be said of a target that was taken: a quaternion that was normalised."""
    if isinstance(message, PoseStamped):
        return quaternion_note([message.pose])
    return quaternion_note(message.poses) if isinstance(message, PoseArray) else ""


def is_stamped(message: Any) -> bool:
    """Whether a message says when it was made."""
    return bool(message.header.stamp.sec or message.header.stamp.nanosec)


def age_by_stamp(message: Any, stamp: int, waited: float) -> float:
    """How old a message was when it arrived [s]; without a stamp it was new.

    Args:
        stamp: the time now by the clock of the stamps [ns], `waited` [s] after it arrived; 0: it is
            that of a simulation, and none has come.

    Raises:
        StaleTargetError: a stamp, but no clock to compare it with.
    """
    time = message.header.stamp
    sampled = time.sec * 10**9 + time.nanosec
    if sampled and not stamp:
        raise StaleTargetError(
            "it has a stamp, and with use_sim_time there is no clock yet to tell how old it is: "
            "publish /clock, or send targets without stamps"
        )
    return 1e-9 * (stamp - sampled) - waited if sampled else 0.0


def _follow_pose(
    arm: Arm, message: Any, frames: Frames, values: Values, now: float, age: float
) -> None:
    T_root_tip = frames.pose_in_root(message, arm.tree, values)
    T_base_tip = arm.base_from_root(T_root_tip, arm.robot.base, values)
    arm.controller.follow_pose(T_base_tip, now, age)


def _follow_twist(
    arm: Arm, message: Any, frames: Frames, values: Values, now: float, age: float
) -> None:
    v, w = message.twist.linear, message.twist.angular
    V = np.array([v.x, v.y, v.z, w.x, w.y, w.z])
    R: Array | None = None
    if strip_slash(message.header.frame_id) != arm.robot.tip:
        T_root_frame = frames.T_root_frame(message.header.frame_id, arm.tree, values)
        R = arm.base_from_root(T_root_frame, arm.robot.base, values)[:3, :3]
    arm.controller.follow_twist(V, now, R, age)


def _follow_trajectory(
    arm: Arm, message: Any, frames: Frames, values: Values, now: float, age: float
) -> None:
    if not message.poses:
        raise PoseError("the trajectory has no poses")
    T_root_frame = frames.T_root_frame(message.header.frame_id, arm.tree, values)
    T_base_frame = arm.base_from_root(T_root_frame, arm.robot.base, values)
    Ts = np.array([T_base_frame @ matrix_from_pose(pose) for pose in message.poses])
    arm.controller.follow_trajectory(Ts, arm.parameters.trajectory_period, now, age)


def _refuse_trajectory(
    arm: Arm, message: TooLong, frames: Frames, values: Values, now: float, age: float
) -> None:
    raise PoseError(
        f"a trajectory has at most {MOST_POSES} poses, this one about {message.poses}: give fewer, "
        "with a longer trajectory_period"
    )


_FOLLOW: dict[type, Callable[..., None]] = {
    PoseStamped: _follow_pose,
    TwistStamped: _follow_twist,
    PoseArray: _follow_trajectory,
    TooLong: _refuse_trajectory,
}
