# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A client of ``compute_ik`` and ``compute_fk``: calls that wait, and calls to be awaited."""

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Generic, NamedTuple, TypeVar, cast

import numpy as np
from builtin_interfaces.msg import Duration
from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from numpy.typing import ArrayLike
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from sensor_msgs.msg import JointState

from dls_ik.core.types import Array
from dls_ik.errors import Code, JointValueError, OptionError, PoseError
from dls_ik.model.pose import pose_matrix
from dls_ik.model.rotations import not_a_rotation, roughness
from dls_ik.ros.client.connection import (
    NoAnswerError,
    NotSpunError,
    OwnNode,
    ServiceClient,
    ServiceMissingError,
    call_with_retry,
)
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix
from dls_ik.text import listing

DEPTH = 1000  # answers that wait to be taken, those to other clients among them
MAX_TIMEOUT = 3600.0  # [s]
ORTHOGONAL = 1e-4  # how far R' R may be from 1

# Values by joint, a sensor_msgs/JointState, or an array in the order of the joint names.
JointValues = Mapping[str, float] | ArrayLike | Any


class IkAnswer(NamedTuple):
    """Joint values for a pose, or the reason of a failure; true as a condition on success."""

    success: bool
    q: dict[str, float]  # [rad or m] by joint, of the whole robot; empty without success
    code: int  # a value of moveit_msgs/msg/MoveItErrorCodes
    message: str  # empty from servers older than the field
    response: Any  # as it came, moveit_msgs/srv/GetPositionIK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success

    def array(self, joint_names: Sequence[str]) -> Array:
        """(n,) the values of these joints [rad or m].

        Raises:
            JointValueError: If the answer has no such joint.
        """
        missing = [name for name in joint_names if name not in self.q]
        if missing:
            raise JointValueError(
                f"the answer has no joint {missing[0]!r}; it has {listing(self.q) or 'none'}"
            )
        return np.array([self.q[name] for name in joint_names])


class FkAnswer(NamedTuple):
    """Poses of links, or the reason of a failure; true as a condition on success."""

    success: bool
    poses: dict[str, Array]  # (4, 4) T_frame_link by link; empty without success
    frame: str
    code: int
    message: str
    response: Any  # as it came, moveit_msgs/srv/GetPositionFK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success


def ik_request(
    pose: ArrayLike | PoseStamped,
    seed: JointValues = None,
    *,
    link: str = "",
    frame: str = "",
    group: str = "",
    timeout: float = 0.0,
    avoid_collisions: bool = False,
    joint_names: Sequence[str] = (),
) -> GetPositionIK.Request:
    """Build a request for a link at a pose; without a link the tip, without a timeout the default.

    Raises:
        PoseError, JointValueError, OptionError: If the argument of that kind is not valid.
    """
    if not 0.0 <= timeout <= MAX_TIMEOUT:
        raise OptionError(f"timeout is from 0 to {MAX_TIMEOUT:g} [s], not {timeout:g}")
    request = GetPositionIK.Request()
    ik = request.ik_request
    ik.group_name, ik.ik_link_name = group, link
    ik.pose_stamped, ik.avoid_collisions = stamped_pose(pose, frame), avoid_collisions
    ik.robot_state.joint_state = _joint_state(seed, joint_names)
    whole = int(timeout)
    ik.timeout = Duration(sec=whole, nanosec=int(1e9 * (timeout - whole)))
    return request


def stamped_pose(pose: ArrayLike | PoseStamped, frame: str = "") -> PoseStamped:
    """Return the message of a pose (4, 4) in a frame, or the message given, which has its own.

    Raises:
        PoseError: If the pose is not a rigid transform.
        OptionError: If a frame is given with a message that names another frame.
    """
    if isinstance(pose, PoseStamped):
        if frame and frame != pose.header.frame_id:
            raise OptionError(f"frame {frame!r}, but the pose is in {pose.header.frame_id!r}")
        return pose
    T = np.asarray(pose_matrix(pose), float)
    if T.shape != (4, 4) or not np.isfinite(T).all():
        raise PoseError(f"a pose is a finite (4, 4) array or a PoseStamped, given {T.shape}")
    R = T[:3, :3]
    if not roughness(R) <= ORTHOGONAL:
        raise PoseError(f"the upper left of a pose is a rotation; {not_a_rotation(R, ORTHOGONAL)}")
    message = PoseStamped(pose=pose_from_matrix(T))
    message.header.frame_id = frame
    return message


def _joint_state(values: JointValues, joint_names: Sequence[str]) -> JointState:
    """Convert joint values; None becomes an empty message, which means the current state."""
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


def ik_answer(response: Any) -> IkAnswer:
    """Read the response of a ``moveit_msgs/srv/GetPositionIK``."""
    code, message = _code_and_message(response)
    success, state = code == Code.SUCCESS, response.solution.joint_state
    found = dict(zip(state.name, state.position, strict=False)) if success else {}
    return IkAnswer(success, found, code, message, response)


def fk_answer(response: Any) -> FkAnswer:
    """Read the response of a ``moveit_msgs/srv/GetPositionFK``."""
    code, message = _code_and_message(response)
    success = code == Code.SUCCESS
    stamped = response.pose_stamped if success else []
    pairs = zip(response.fk_link_names, stamped, strict=False)
    poses = {link: matrix_from_pose(each.pose) for link, each in pairs}
    frame = stamped[0].header.frame_id if stamped else ""
    return FkAnswer(success, poses, frame, code, message, response)


def _code_and_message(response: Any) -> tuple[int, str]:
    error_code = response.error_code
    return int(error_code.val), str(getattr(error_code, "message", ""))


ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT", IkAnswer, FkAnswer)


class Pending(Future[ResultT], Generic[ResultT]):
    """A future of Python's own, which can also be awaited.

    In a coroutine of asyncio it does not block the loop. In one that rclpy runs, such as an async
    callback, the client must belong to a node of the same executor, which then goes on with it.
    """

    def __await__(self) -> Generator[Any, None, ResultT]:
        """Wait for the result."""
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return self._polled()
        return asyncio.wrap_future(self).__await__()

    def _polled(self) -> Generator[Any, None, ResultT]:
        while not self.done():
            yield
        return self.result()


class IkClient:
    """Asks a node, this package's or move_group, for inverse and forward kinematics.

    Without a node it has its own, in a context of its own, spun by a thread: use it anywhere, in
    callbacks of other nodes too, and close it, or use it as a context manager. With a node of
    yours, the executor of that node receives the answers: calls that wait then belong in other
    threads than the executor's; in callbacks use those that do not wait.

    Args:
        ik, fk: names of the services.
        namespace: prefix of the services if no node is given; else the node's namespace holds.
        group: default group of requests; None: the default of the server.
        joint_names: the order of joint values that are given as arrays.
        patience: longest time for a service to appear, and for an answer to be overdue [s].
    """

    def __init__(
        self,
        node: Node | None = None,
        *,
        ik: str = "compute_ik",
        fk: str = "compute_fk",
        namespace: str = "",
        group: str | None = None,
        joint_names: Sequence[str] = (),
        patience: float = 5.0,
    ) -> None:
        self._own: OwnNode | None = None
        if node is None:
            self._own = OwnNode(namespace)
            node = self._own.node
        self._node = node
        self._group, self._joint_names = group or "", tuple(joint_names)
        self._patience = patience
        # Not the node's own group, which is closed while a callback of it awaits an answer.
        self._calls = set[Any]()  # futures of rclpy that have no answer yet
        callbacks = ReentrantCallbackGroup()
        self._ik = ServiceClient(self._node, GetPositionIK, ik, DEPTH, callbacks)
        self._fk = ServiceClient(self._node, GetPositionFK, fk, DEPTH, callbacks)

    def __enter__(self) -> "IkClient":
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Leave the ROS graph; a node that was given stays.

        Calls that still wait for an answer end with a NoAnswerError.
        """
        if self._own is not None:
            self._own.close()
        else:
            self._ik.close()
            self._fk.close()
        for call in list(self._calls):
            call.set_exception(NoAnswerError("the client was closed before the answer came"))

    @property
    def is_served(self) -> bool:
        """True if some node offers ``compute_ik``."""
        return self._ik.is_served

    def wait(self, patience: float | None = None) -> None:
        """Wait for ``compute_ik``.

        Raises:
            ServiceMissingError: If no node offers the service within that time [s].
        """
        self._ik.wait(self._patience if patience is None else patience)

    def solve(
        self,
        pose: ArrayLike | PoseStamped,
        seed: JointValues = None,
        *,
        link: str = "",
        frame: str = "",
        group: str | None = None,
        timeout: float = 0.0,
        avoid_collisions: bool = False,
    ) -> IkAnswer:
        """Find joint values that bring a link to a pose, and wait for them.

        If no answer comes within a second beyond the timeout, the request is sent again.

        Args:
            pose: (4, 4) [m] in a frame, or a message.
            seed: start of the search, by name, as a message, or (n,) in the order of `joint_names`;
                joints that are missing stand where the robot is.
            link: default: the tip.
            frame: frame of an array; default: the root of the robot.
            timeout: for the solver [s]; 0: the server's default.
            avoid_collisions: with the arm itself, and with what the server knows around it.

        Raises:
            ServiceMissingError, NoAnswerError, NotSpunError: If there is no answer.
            PoseError, JointValueError, OptionError: If the argument of that kind is not valid.
        """
        options = {"link": link, "frame": frame, "timeout": timeout}
        request = self.ik_request(
            pose, seed, group=group, avoid_collisions=avoid_collisions, **options
        )
        return self._wait_for_answer(self._ik, request, ik_answer, timeout)

    def solve_async(
        self, pose: ArrayLike | PoseStamped, seed: JointValues = None, **options: Any
    ) -> Pending[IkAnswer]:
        """Do as :meth:`solve`, without waiting: for asyncio, callbacks, and many at once.

        Where the service is not there yet, the result is a ServiceMissingError; see :meth:`wait`.
        """
        return self._call(self._ik, self.ik_request(pose, seed, **options), ik_answer)

    def fk(self, q: JointValues = None, links: Sequence[str] = (), *, frame: str = "") -> FkAnswer:
        """Compute poses of links at joint values; default: the tip; raises as :meth:`solve`."""
        return self._wait_for_answer(self._fk, self._fk_request(q, links, frame), fk_answer, 0.0)

    def fk_async(
        self, q: JointValues = None, links: Sequence[str] = (), *, frame: str = ""
    ) -> Pending[FkAnswer]:
        """Do as :meth:`fk`, without waiting."""
        return self._call(self._fk, self._fk_request(q, links, frame), fk_answer)

    def ik_request(
        self,
        pose: ArrayLike | PoseStamped,
        seed: JointValues = None,
        *,
        group: str | None = None,
        **options: Any,
    ) -> Any:
        """Return the ``moveit_msgs/srv/GetPositionIK`` request that :meth:`solve` sends."""
        group = self._group if group is None else group
        return ik_request(pose, seed, group=group, joint_names=self._joint_names, **options)

    def send(self, request: Any) -> Pending[IkAnswer]:
        """Send a request made elsewhere."""
        return self._call(self._ik, request, ik_answer)

    def _fk_request(self, q: JointValues, links: Sequence[str], frame: str) -> Any:
        request = GetPositionFK.Request(fk_link_names=list(links))
        request.header.frame_id = frame
        request.robot_state.joint_state = _joint_state(q, self._joint_names)
        return request

    def _call(
        self, service: ServiceClient, request: Any, read: Callable[[Any], AnswerT]
    ) -> Pending[AnswerT]:
        pending: Pending[AnswerT] = Pending()

        def finish(future: Any) -> None:
            if not pending.set_running_or_notify_cancel():
                return
            try:
                pending.set_result(read(future.result()))
            except Exception as error:  # noqa: BLE001  goes to whoever waits
                pending.set_exception(error)

        if service.is_served:
            call = service.send(request)
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            call.add_done_callback(finish)
            pending.add_done_callback(lambda _: call.cancel())  # if nobody waits any more
        else:
            pending.set_exception(ServiceMissingError(service.describe_missing()))
        return pending

    def _wait_for_answer(
        self, service: ServiceClient, request: Any, read: Callable[[Any], AnswerT], timeout: float
    ) -> AnswerT:
        if self._node.executor is None:
            raise NotSpunError(
                f"nobody runs the callbacks of {self._node.get_name()!r}, so no answer can come: "
                "add it to an executor in another thread, or make an IkClient without a node"
            )
        service.wait(self._patience)
        pending = call_with_retry(
            lambda: self._call(service, request, read),
            lambda: service.is_served,
            self._patience,
            timeout,
        )
        if pending is None:
            raise NoAnswerError(
                f"{service.name} did not answer within {timeout + self._patience:g} s"
                + ("" if self._own else "; or its node is not spun while this thread waits")
            )
        return cast(AnswerT, pending.result())
