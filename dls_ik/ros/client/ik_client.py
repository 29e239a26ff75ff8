# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client of ``compute_ik`` and ``compute_fk``, with blocking and asynchronous calls."""

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
from dls_ik.ros.client.constraints import Bounds, Frozen, joint_constraints, task_constraints
from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix
from dls_ik.solver.task import Task
from dls_ik.solver.task_stack import TaskStack
from dls_ik.text import listing

# number of queued answers, including answers to other clients of the service
IK_ANSWER_QUEUE_DEPTH = 1000
MAX_TIMEOUT = 3600.0  # [s] maximum timeout of a request
ORTHOGONALITY_TOLERANCE = 1e-4  # maximum deviation of R' R from the identity

# Joint positions: a mapping by joint name, a sensor_msgs/JointState, or an array (n,) in the order
# of given joint names.
JointValues = Mapping[str, float] | ArrayLike | Any


class IkAnswer(NamedTuple):
    """Answer of ``compute_ik``: joint positions, or the reason of a failure.

    An answer is true in a condition if `success` is True.
    """

    success: bool
    q: dict[str, float]  # positions of all joints of the robot [rad or m]; empty on failure
    code: int  # a value of moveit_msgs/msg/MoveItErrorCodes
    message: str  # message of the server; empty if its version of MoveIt messages has none
    response: Any  # received moveit_msgs/srv/GetPositionIK response

    def __bool__(self) -> bool:
        """Return `success`."""
        return self.success

    def array(self, joint_names: Sequence[str]) -> Array:
        """Return the positions of joints, shape (n,), in the order of `joint_names` [rad or m].

        Raises:
            JointValueError: If the answer lacks one of the joints.
        """
        missing = [name for name in joint_names if name not in self.q]
        if missing:
            raise JointValueError(
                f"the answer does not contain joint {missing[0]!r}; joints in the answer: "
                f"{listing(self.q)}"
            )
        return np.array([self.q[name] for name in joint_names])


class FkAnswer(NamedTuple):
    """Answer of ``compute_fk``: poses of links, or the reason of a failure.

    An answer is true in a condition if `success` is True.
    """

    success: bool
    poses: dict[str, Array]  # T_frame_link (4, 4) by link name; empty on failure
    frame: str  # frame of the poses; empty on failure
    code: int  # a value of moveit_msgs/msg/MoveItErrorCodes
    message: str  # message of the server; empty if its version of MoveIt messages has none
    response: Any  # received moveit_msgs/srv/GetPositionFK response

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
    task: Task | TaskStack | None = None,
    joint_bounds: Bounds | None = None,
    frozen_joints: Frozen = (),
) -> GetPositionIK.Request:
    """Return a ``moveit_msgs/srv/GetPositionIK`` request.

    Args:
        pose: (4, 4) pose ``T_frame_link`` [m], or a message.
        seed: Joint positions from which the search starts [rad or m]; None: current positions.
        link: Link to bring to the pose; empty: the tip of the chain.
        frame: Frame of `pose`, if it is an array; empty: the root of the robot.
        group: Planning group; empty: the default of the server.
        timeout: Maximum solver time [s]; 0: the default of the server.
        avoid_collisions: Whether the solution must be collision-free.
        joint_names: (n,) joint names of `seed`, if it is an array.
        task, joint_bounds, frozen_joints: See :meth:`IkClient.solve`.

    Raises:
        PoseError: If `pose` is not a rigid transform.
        JointValueError: If `seed` is an array whose size differs from that of `joint_names`.
        OptionError: If `timeout` is out of range, `frame` differs from the frame of a message, or
            constraints cannot express the task, the bounds or the frozen joints.
    """
    if not 0.0 <= timeout <= MAX_TIMEOUT:
        raise OptionError(f"timeout must be from 0 to {MAX_TIMEOUT:g} s; got {timeout:g}")
    request = GetPositionIK.Request()
    ik = request.ik_request
    ik.group_name, ik.ik_link_name = group, link
    ik.pose_stamped, ik.avoid_collisions = stamped_pose(pose, frame), avoid_collisions
    ik.robot_state.joint_state = state = _joint_state(seed, joint_names)
    stamped = ik.pose_stamped
    if task is not None:
        T = matrix_from_pose(stamped.pose)
        ik.constraints = task_constraints(task, T, link, stamped.header.frame_id)
    if joint_bounds or frozen_joints:
        named = dict(zip(state.name, state.position, strict=False))
        ik.constraints.joint_constraints = joint_constraints(joint_bounds, frozen_joints, named)
    whole = int(timeout)
    ik.timeout = Duration(sec=whole, nanosec=int(1e9 * (timeout - whole)))
    return request


def stamped_pose(pose: ArrayLike | PoseStamped, frame: str = "") -> PoseStamped:
    """Return a message with a pose (4, 4) in a frame.

    If `pose` is already a message, return it unchanged; `frame` must then be empty or the frame of
    the message.

    Raises:
        PoseError: If the pose is not a rigid transform.
        OptionError: If `frame` differs from the frame of a message.
    """
    if isinstance(pose, PoseStamped):
        if frame and frame != pose.header.frame_id:
            raise OptionError(
                f"frame must be empty or the frame of the message, {pose.header.frame_id!r}; "
                f"got {frame!r}"
            )
        return pose
    T = np.asarray(pose_matrix(pose), float)
    if T.shape != (4, 4) or not np.isfinite(T).all():
        raise PoseError(
            f"a pose must be a finite (4, 4) array or a PoseStamped; got an array of {T.shape}"
        )
    R = T[:3, :3]
    if not roughness(R) <= ORTHOGONALITY_TOLERANCE:
        raise PoseError(
            "the upper left 3x3 block of a pose must be a rotation; "
            f"{not_a_rotation(R, ORTHOGONALITY_TOLERANCE)}"
        )
    message = PoseStamped(pose=pose_from_matrix(T))
    message.header.frame_id = frame
    return message


def _joint_state(values: JointValues, joint_names: Sequence[str]) -> JointState:
    """Return a ``sensor_msgs/JointState`` with joint positions [rad or m].

    Args:
        values: Joint positions; None: an empty message, which means the current positions.
        joint_names: (n,) joint names of `values`, if these are an array.

    Raises:
        JointValueError: If `values` is an array whose size differs from that of `joint_names`.
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
            f"an array of joint values must have one value for each of the {len(joint_names)} "
            f"joint names of the client; got an array of shape {q.shape}; give the client "
            "joint_names in the order of the values, or give values by name"
        )
    return JointState(name=list(joint_names), position=q.tolist())


def ik_answer(response: Any) -> IkAnswer:
    """Return a ``moveit_msgs/srv/GetPositionIK`` response as an IkAnswer."""
    code, message = _code_and_message(response)
    success, state = code == Code.SUCCESS, response.solution.joint_state
    found = dict(zip(state.name, state.position, strict=False)) if success else {}
    return IkAnswer(success, found, code, message, response)


def fk_answer(response: Any) -> FkAnswer:
    """Return a ``moveit_msgs/srv/GetPositionFK`` response as an FkAnswer."""
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
    """Future of an answer: a `concurrent.futures.Future` that coroutines can also await.

    A coroutine of asyncio does not block its event loop while it awaits the future. A coroutine
    that an rclpy executor runs, such as an async callback, may await the future only if the same
    executor spins the node of the client, because this executor resumes the coroutine.
    """

    def __await__(self) -> Generator[Any, None, ResultT]:
        """Suspend the awaiting coroutine until the answer arrives, and return the answer."""
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
    """Client of a kinematics server: the node of this package, or move_group.

    If no node is given, the client creates a node with its own context and thread. Such a client
    can be used anywhere, even in callbacks of other nodes. Close the client after use, or use it
    as a context manager.

    If a node is given, the executor of this node receives the answers. In threads of the executor,
    for example in callbacks, use only the asynchronous calls; a blocking call would block the
    executor, so that no answer arrives. Use the blocking calls in other threads.

    Args:
        node: Node of the client; None: a new node.
        ik: Name of the service for inverse kinematics.
        fk: Name of the service for forward kinematics.
        namespace: Namespace of the services if no node is given.
        group: Default planning group of requests; None: the default of the server.
        joint_names: (n,) order of joint positions that are given as arrays.
        patience: Maximum time until a service is available [s]; also the maximum time to wait for
            an answer beyond the timeout of the request [s].

    Raises:
        OptionError: If the namespace is not valid.
        ClientStartError: If ROS 2 cannot be started.
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
        self._calls = set[Any]()  # rclpy futures without an answer
        # The default group would be blocked while one of its callbacks awaits an answer.
        callbacks = ReentrantCallbackGroup()
        self._ik = ServiceClient(self._node, GetPositionIK, ik, IK_ANSWER_QUEUE_DEPTH, callbacks)
        self._fk = ServiceClient(self._node, GetPositionFK, fk, IK_ANSWER_QUEUE_DEPTH, callbacks)

    def __enter__(self) -> "IkClient":
        """Return the client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the client."""
        self.close()

    def close(self) -> None:
        """Destroy the service clients, and the node if the client has created it.

        The futures of calls that have no answer yet raise a NoAnswerError.
        """
        if self._own is not None:
            self._own.close()
        else:
            self._ik.close()
            self._fk.close()
        for call in list(self._calls):
            call.set_exception(NoAnswerError("the client was closed before the answer arrived"))

    @property
    def is_served(self) -> bool:
        """Whether a node offers ``compute_ik``."""
        return self._ik.is_served

    def wait(self, patience: float | None = None) -> None:
        """Wait until a node offers ``compute_ik``.

        Args:
            patience: Maximum time to wait [s]; None: `patience` of the constructor.

        Raises:
            ServiceMissingError: If no node offers the service within `patience`.
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
        task: Task | TaskStack | None = None,
        joint_bounds: Bounds | None = None,
        frozen_joints: Frozen = (),
    ) -> IkAnswer:
        """Request joint positions that bring a link to a pose, and wait for the answer.

        If no answer arrives within a second after the timeout, the request is sent again.

        Args:
            pose: (4, 4) pose ``T_frame_link`` [m], or a message.
            seed: Joint positions from which the search starts [rad or m]: by name, as a message,
                or (n,) in the order of `joint_names`. Missing joints start at their current
                positions.
            link: Link to bring to the pose; empty: the tip of the chain.
            frame: Frame of `pose`, if it is an array; empty: the root of the robot.
            group: Planning group; None: the default of the client.
            timeout: Maximum solver time [s]; 0: the default of the server.
            avoid_collisions: Whether the solution must be free of self-collisions and of
                collisions with the planning scene of the server.
            task: Task of `link`, which must then be given; its orientation may be free or have
                tolerances. To constrain other links too, give a stack with a single level: the task
                of `link` and one :class:`dls_ik.FrameTask` for each other link, with the target in
                `frame`. A stack with several levels is refused.
            joint_bounds: Lower and upper bound of joints by name [rad or m], within their limits.
            frozen_joints: Joints that do not move: positions by name [rad or m], or names of joints
                that keep their position in the seed.

        Raises:
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the server does not answer in time.
            NotSpunError: If no executor spins the given node.
            PoseError: If `pose` is not a rigid transform.
            JointValueError: If `seed` is an array whose size differs from that of `joint_names`.
            OptionError: If `timeout` is out of range, `frame` differs from the frame of a message,
                or constraints cannot express the task, the bounds or the frozen joints.
        """
        options: dict[str, Any] = {"link": link, "frame": frame, "timeout": timeout}
        options |= {"task": task, "joint_bounds": joint_bounds, "frozen_joints": frozen_joints}
        request = self.ik_request(
            pose, seed, group=group, avoid_collisions=avoid_collisions, **options
        )
        return self._wait_for_answer(self._ik, request, ik_answer, timeout)

    def solve_async(
        self, pose: ArrayLike | PoseStamped, seed: JointValues = None, **options: Any
    ) -> Pending[IkAnswer]:
        """Send the request of :meth:`solve`, and return the future of the answer immediately.

        Use this in asyncio coroutines and callbacks. If the service is not available yet, the
        future raises a ServiceMissingError; :meth:`wait` waits for the service.

        Args:
            pose: See :meth:`solve`.
            seed: See :meth:`solve`.
            options: All other arguments of :meth:`solve`.
        """
        return self._call(self._ik, self.ik_request(pose, seed, **options), ik_answer)

    def fk(self, q: JointValues = None, links: Sequence[str] = (), *, frame: str = "") -> FkAnswer:
        """Request the poses of links at joint positions, and wait for the answer.

        Args:
            q: Joint positions [rad or m]: by name, as a message, or (n,) in the order of
                `joint_names`. Missing joints are at their current positions.
            links: Names of the links; empty: the tip of the chain.
            frame: Frame of the poses; empty: the root of the robot.

        Raises:
            ServiceMissingError: If no node offers the service.
            NoAnswerError: If the server does not answer in time.
            NotSpunError: If no executor spins the given node.
            JointValueError: If `q` is an array whose size differs from that of `joint_names`.
        """
        return self._wait_for_answer(self._fk, self._fk_request(q, links, frame), fk_answer, 0.0)

    def fk_async(
        self, q: JointValues = None, links: Sequence[str] = (), *, frame: str = ""
    ) -> Pending[FkAnswer]:
        """Send the request of :meth:`fk`, and return the future of the answer immediately."""
        return self._call(self._fk, self._fk_request(q, links, frame), fk_answer)

    def ik_request(
        self,
        pose: ArrayLike | PoseStamped,
        seed: JointValues = None,
        *,
        group: str | None = None,
        **options: Any,
    ) -> Any:
        """Return the ``moveit_msgs/srv/GetPositionIK`` request that :meth:`solve` would send."""
        group = self._group if group is None else group
        return ik_request(pose, seed, group=group, joint_names=self._joint_names, **options)

    def send(self, request: Any) -> Pending[IkAnswer]:
        """Send a ``GetPositionIK`` request, and return the future of the answer immediately."""
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
            except Exception as error:  # noqa: BLE001  the future raises it
                pending.set_exception(error)

        if service.is_served:
            call = service.send(request)
            self._calls.add(call)
            call.add_done_callback(self._calls.discard)
            call.add_done_callback(finish)
            pending.add_done_callback(lambda _: call.cancel())  # if the caller cancels
        else:
            pending.set_exception(ServiceMissingError(service.describe_missing()))
        return pending

    def _wait_for_answer(
        self, service: ServiceClient, request: Any, read: Callable[[Any], AnswerT], timeout: float
    ) -> AnswerT:
        if self._node.executor is None:
            raise NotSpunError(
                f"no executor spins the node {self._node.get_name()!r}, so no answer can arrive; "
                "add the node to an executor in another thread, or create an IkClient without a "
                "node"
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
                + ("" if self._own else ", or the executor of the client's node is blocked")
            )
        return cast(AnswerT, pending.result())
