"""Requests and responses of ``compute_ik`` and ``compute_fk`` from and to Python's own types."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from numpy.typing import ArrayLike
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.errors import JointValueError, OptionError, PoseError
from dls_ik.model.rotations import not_a_rotation, roughness
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix
from dls_ik.text import listing

SUCCESS = 1  # of moveit_msgs/msg/MoveItErrorCodes
LONGEST_TIMEOUT = 3600.0  # [s]
ORTHOGONAL = 1e-4  # how far R' R may be from 1

# Values by joint, a sensor_msgs/JointState, or an array in the order of the joint names.
JointValues = Mapping[str, float] | ArrayLike | Any


def joint_state(values: JointValues, joint_names: Sequence[str]) -> JointState:
    """The message of joint values; None is an empty one, which stands for the current state.

    Raises:
        JointValueError: an array that does not fit the names, or no numbers.
    """
    if values is None:
        return JointState()
    if isinstance(values, JointState):
        return values
    if isinstance(values, Mapping):
        return JointState(
            name=[str(name) for name in values], position=[float(v) for v in values.values()]
        )
    q = np.asarray(values, float)
    if q.shape != (len(joint_names),):
        raise JointValueError(
            f"joint values of shape {q.shape} for {len(joint_names)} joint names; give the client "
            "joint_names in the order of the values, or values by name"
        )
    return JointState(name=list(joint_names), position=q.tolist())


def stamped_pose(pose: ArrayLike | PoseStamped, frame: str) -> PoseStamped:
    """The message of a (4, 4) pose in a frame, or the message given, which has its own.

    Raises:
        PoseError: no rigid transform.
        OptionError: a frame beside a message.
    """
    if isinstance(pose, PoseStamped):
        if frame and frame != pose.header.frame_id:
            raise OptionError(f"frame {frame!r}, but the pose is in {pose.header.frame_id!r}")
        return pose
    T = np.asarray(pose, float)
    if T.shape != (4, 4) or not np.isfinite(T).all():
        raise PoseError(f"a pose is a finite (4, 4) array or a PoseStamped, given {T.shape}")
    R = T[:3, :3]
    if not roughness(R) <= ORTHOGONAL:
        raise PoseError(f"the upper left of a pose is a rotation; {not_a_rotation(R, ORTHOGONAL)}")
    message = PoseStamped(pose=pose_from_matrix(T))
    message.header.frame_id = frame
    return message


def ik_request(
    pose: ArrayLike | PoseStamped,
    seed: JointValues = None,
    *,
    link: str = "",
    frame: str = "",
    group: str = "",
    timeout: float = 0.0,
    joint_names: Sequence[str] = (),
) -> GetPositionIK.Request:
    """A request for a link at a pose; without a link the tip, without a timeout [s] the default.

    Raises:
        PoseError, JointValueError, OptionError: for what is not valid.
    """
    if not 0.0 <= timeout <= LONGEST_TIMEOUT:
        raise OptionError(f"timeout is from 0 to {LONGEST_TIMEOUT:g} [s], not {timeout:g}")
    request = GetPositionIK.Request()
    ik = request.ik_request
    ik.group_name, ik.ik_link_name = group, link
    ik.pose_stamped = stamped_pose(pose, frame)
    ik.robot_state.joint_state = joint_state(seed, joint_names)
    whole = int(timeout)
    ik.timeout = Duration(sec=whole, nanosec=int(1e9 * (timeout - whole)))
    return request


def fk_request(
    q: JointValues = None,
    links: Sequence[str] = (),
    *,
    frame: str = "",
    joint_names: Sequence[str] = (),
) -> GetPositionFK.Request:
    """A request for the poses of links in a frame; without links the tip.

    Raises:
        JointValueError: as :func:`joint_state`.
    """
    request = GetPositionFK.Request(fk_link_names=list(links))
    request.header.frame_id = frame
    request.robot_state.joint_state = joint_state(q, joint_names)
    return request


class IkAnswer(NamedTuple):
    """Joint values for a pose, or why there are none; true as a condition if it is a success."""

    success: bool
    q: dict[str, float]  # [rad or m] by joint, of the whole robot; empty without success
    code: int  # of moveit_msgs/msg/MoveItErrorCodes
    message: str  # empty from servers older than the field
    response: Any  # as it came, moveit_msgs/srv/GetPositionIK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success

    def array(self, joint_names: Sequence[str]) -> Array:
        """(n,) the values of these joints [rad or m].

        Raises:
            JointValueError: the answer has no such joint.
        """
        missing = [name for name in joint_names if name not in self.q]
        if missing:
            raise JointValueError(
                f"the answer has no joint {missing[0]!r}; it has {listing(self.q) or 'none'}"
            )
        return np.array([self.q[name] for name in joint_names])


class FkAnswer(NamedTuple):
    """Poses of links, or why there are none; true as a condition if it is a success."""

    success: bool
    poses: dict[str, Array]  # (4, 4) T_frame_link by link; empty without success
    frame: str
    code: int
    message: str
    response: Any  # as it came, moveit_msgs/srv/GetPositionFK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success


def ik_answer(response: Any) -> IkAnswer:
    """Read the response of a ``moveit_msgs/srv/GetPositionIK``."""
    code, message = _verdict(response)
    state = response.solution.joint_state
    found = dict(zip(state.name, state.position, strict=False)) if code == SUCCESS else {}
    return IkAnswer(code == SUCCESS, found, code, message, response)


def fk_answer(response: Any) -> FkAnswer:
    """Read the response of a ``moveit_msgs/srv/GetPositionFK``."""
    code, message = _verdict(response)
    stamped = response.pose_stamped if code == SUCCESS else []
    pairs = zip(response.fk_link_names, stamped, strict=False)
    poses = {link: matrix_from_pose(each.pose) for link, each in pairs}
    frame = stamped[0].header.frame_id if stamped else ""
    return FkAnswer(code == SUCCESS, poses, frame, code, message, response)


def _verdict(response: Any) -> tuple[int, str]:
    error_code = response.error_code
    return int(error_code.val), str(getattr(error_code, "message", ""))
