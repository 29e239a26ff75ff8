"""A client of ``compute_ik`` and ``compute_fk``: calls that wait, and calls to be awaited."""

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from typing import Any, Generic, TypeVar, cast

from geometry_msgs.msg import PoseStamped
from moveit_msgs.srv import GetPositionFK, GetPositionIK
from numpy.typing import ArrayLike
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile

from dls_ik.ros.client.connection import (
    NoAnswerError,
    NotSpunError,
    OwnHost,
    ServiceMissingError,
    first_answered,
)
from dls_ik.ros.client.messages import (
    FkAnswer,
    IkAnswer,
    JointValues,
    fk_answer,
    fk_request,
    ik_answer,
    ik_request,
)
from dls_ik.text import listing

ResultT = TypeVar("ResultT")
AnswerT = TypeVar("AnswerT", IkAnswer, FkAnswer)

DEPTH = 1000  # answers that wait to be taken, those to other clients among them
POLL = 0.01  # [s]


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

    Without a node it has one of its own, in a context of its own, and a thread that runs its
    callbacks: use it anywhere, in callbacks of other nodes too, and close it, or use it as a
    context. On a node of yours the answers come through the executor of that node: calls that wait
    are then for other threads than the executor's; in callbacks use those that do not wait.

    Args:
        ik, fk: names of the services.
        namespace: of the services, without a node; else the node's.
        group: of requests that name none; None: whatever the server takes for its default.
        joint_names: the order of joint values that are given as arrays.
        patience: how long a service and its answer may take beyond the timeout of a request [s].
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
        self._own: OwnHost | None = None
        if node is None:
            self._own = OwnHost(namespace)
            node = self._own.node
        self._node = node
        self._group, self._joint_names = group or "", tuple(joint_names)
        self._patience = patience
        ways: dict[str, Any] = {
            "qos_profile": QoSProfile(depth=DEPTH),
            # Not the node's own, which is closed while a callback of it awaits an answer.
            "callback_group": ReentrantCallbackGroup(),
        }
        self._ik = self._node.create_client(GetPositionIK, ik, **ways)
        self._fk = self._node.create_client(GetPositionFK, fk, **ways)

    def __enter__(self) -> "IkClient":
        """Nothing to do: all is there."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close."""
        self.close()

    def close(self) -> None:
        """Leave the ROS graph; a node that was given stays."""
        if self._own is not None:
            self._own.close()
        else:
            self._node.destroy_client(self._ik)
            self._node.destroy_client(self._fk)

    @property
    def is_served(self) -> bool:
        """Whether somebody serves ``compute_ik``."""
        return bool(self._ik.service_is_ready())

    def solve(
        self,
        pose: ArrayLike | PoseStamped,
        seed: JointValues = None,
        *,
        link: str = "",
        frame: str = "",
        group: str | None = None,
        timeout: float = 0.0,
    ) -> IkAnswer:
        """Find joint values that bring a link to a pose, and wait for them.

        Where no answer comes within a second beyond the timeout, the request is sent anew.

        Args:
            pose: (4, 4) [m] in a frame, or a message.
            seed: where to begin, by name, as a message, or (n,) in the order of `joint_names`;
                joints that are missing stand where the robot is.
            link: default: the tip.
            frame: of an array; default: the root of the robot.
            timeout: for the solver [s]; 0: the server's default.

        Raises:
            ServiceMissingError, NoAnswerError, NotSpunError: there is no answer.
            PoseError, JointValueError, OptionError: for arguments that are not valid.
        """
        request = self.ik_request(pose, seed, link=link, frame=frame, group=group, timeout=timeout)
        return self._wait(self._ik, request, ik_answer, timeout)

    def solve_async(
        self, pose: ArrayLike | PoseStamped, seed: JointValues = None, **options: Any
    ) -> Pending[IkAnswer]:
        """As :meth:`solve`, without waiting: for asyncio, callbacks, and many at once.

        Where the service is not there yet, the result is a ServiceMissingError; see :meth:`wait`.
        """
        return self._call(self._ik, self.ik_request(pose, seed, **options), ik_answer)

    def fk(self, q: JointValues = None, links: Sequence[str] = (), *, frame: str = "") -> FkAnswer:
        """Where links are at joint values, the tip without names; raises as :meth:`solve`."""
        request = fk_request(q, links, frame=frame, joint_names=self._joint_names)
        return self._wait(self._fk, request, fk_answer, 0.0)

    def fk_async(
        self, q: JointValues = None, links: Sequence[str] = (), *, frame: str = ""
    ) -> Pending[FkAnswer]:
        """As :meth:`fk`, without waiting."""
        request = fk_request(q, links, frame=frame, joint_names=self._joint_names)
        return self._call(self._fk, request, fk_answer)

    def ik_request(
        self,
        pose: ArrayLike | PoseStamped,
        seed: JointValues = None,
        *,
        link: str = "",
        frame: str = "",
        group: str | None = None,
        timeout: float = 0.0,
    ) -> Any:
        """The ``moveit_msgs/srv/GetPositionIK`` request that :meth:`solve` sends."""
        group = self._group if group is None else group
        names = self._joint_names
        return ik_request(
            pose, seed, link=link, frame=frame, group=group, timeout=timeout, joint_names=names
        )

    def send(self, request: Any) -> Pending[IkAnswer]:
        """Send a request made elsewhere."""
        return self._call(self._ik, request, ik_answer)

    def wait(self, patience: float | None = None) -> None:
        """Wait for ``compute_ik``.

        Raises:
            ServiceMissingError: it is not there.
        """
        self._wait_for_service(self._ik, self._patience if patience is None else patience)

    def _call(self, client: Any, request: Any, read: Callable[[Any], AnswerT]) -> Pending[AnswerT]:
        pending: Pending[AnswerT] = Pending()

        def finish(future: Any) -> None:
            if not pending.set_running_or_notify_cancel():
                return
            try:
                pending.set_result(read(future.result()))
            except Exception as error:  # noqa: BLE001  goes to whoever waits
                pending.set_exception(error)

        if client.service_is_ready():
            call = client.call_async(request)
            call.add_done_callback(finish)
            pending.add_done_callback(lambda _: call.cancel())  # where nobody waits any more
        else:
            pending.set_exception(ServiceMissingError(self._missing(client)))
        return pending

    def _wait(
        self, client: Any, request: Any, read: Callable[[Any], AnswerT], timeout: float
    ) -> AnswerT:
        if self._node.executor is None:
            raise NotSpunError(
                f"nobody runs the callbacks of {self._node.get_name()!r}, so no answer can come: "
                "add it to an executor in another thread, or make an IkClient without a node"
            )
        self._wait_for_service(client, self._patience)
        pending = first_answered(
            lambda: self._call(client, request, read),
            client.service_is_ready,
            self._patience,
            timeout,
        )
        if pending is None:
            raise NoAnswerError(
                f"{self._resolved(client)} did not answer within {timeout + self._patience:g} s"
                + ("" if self._own else "; or its node is not spun while this thread waits")
            )
        return cast(AnswerT, pending.result())

    def _wait_for_service(self, client: Any, patience: float) -> None:
        deadline = time.monotonic() + patience
        while not client.service_is_ready():
            if time.monotonic() > deadline:
                raise ServiceMissingError(f"{self._missing(client)}, after {patience:g} s")
            time.sleep(POLL)

    def _missing(self, client: Any) -> str:
        kind = f"moveit_msgs/srv/{client.srv_type.__name__}"
        there, asked = self._node.get_service_names_and_types(), self._resolved(client)
        others = [name for name, kinds in there if kind in kinds and name != asked]
        found = f"there is {listing(others)}" if others else "nobody here serves that type"
        return f"no service {asked} ({kind}); {found}"

    def _resolved(self, client: Any) -> str:
        return str(self._node.resolve_service_name(client.srv_name))
