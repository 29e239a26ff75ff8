"""A request for ``compute_ik`` on its way to an answer."""

import time
from typing import Any

from builtin_interfaces.msg import Duration
from moveit_msgs.msg import AttachedCollisionObject
from rclpy.serialization import serialize_message
from sensor_msgs.msg import JointState, MultiDOFJointState

from dls_ik.model.tree import Tree
from dls_ik.ros.arm import Arm
from dls_ik.ros.constraints.solve import are_given, check_amounts
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.services.problem import timeouts
from dls_ik.ros.services.wanted import wanted

HOP = 0.005  # [s] that a change of threads may take; it makes no request late
SHORTEST = 1e-9  # [s] as 0 asks for the default
MAX_BYTES = 256 * 1024  # of a request, without what is not used of it; they may wait by the hundred


class Call:
    """A request with the arm that was in use when it came, on which it is answered.

    Its timeout counts from its arrival.

    Args:
        request: ``moveit_msgs/PositionIKRequest``; its timeout is written, and what is not used
            of it is dropped.
        empty: the response where there is no answer.

    Raises:
        RequestError: a group or a timeout that is not valid, constraints of a kind or a number
            that is not solved for, or a request that is too large.
    """

    def __init__(self, request: Any, empty: Any, arm: Arm) -> None:
        self.request, self.empty, self.arm = request, empty, arm
        self._arrived = time.perf_counter()
        self._group = arm.group(request.group_name)
        asked, self.timeout = timeouts(request, arm)  # [s]
        cut = f"the timeout of {asked:g} s was cut to the parameter max_timeout, {self.timeout:g} s"
        self.note = cut if asked > self.timeout else ""
        check_amounts(request.constraints)
        _drop_unused(request, arm.tree)
        size = len(serialize_message(request))
        if size > MAX_BYTES:
            words = f"the request has {size} bytes that count; at most {MAX_BYTES} are taken"
            raise RequestError(Code.FAILURE, words)

    @property
    def deadline(self) -> float:
        """When it is late [s], on the clock of perf_counter."""
        return self._arrived + self.timeout + HOP

    @property
    def waited(self) -> float:
        """Time since it arrived [s]."""
        return time.perf_counter() - self._arrived

    @property
    def is_late(self) -> bool:
        """Whether its timeout was over before its turn came."""
        return time.perf_counter() > self.deadline

    @property
    def is_constrained(self) -> bool:
        """Whether it has constraints."""
        return are_given(self.request.constraints)

    @property
    def kind(self) -> tuple[Any, ...]:
        """What requests have in common that are answered with the same solver.

        Raises:
            RequestError: not as many links as poses.
        """
        return self._group.solver, wanted(self.request).links, self.is_constrained

    def allow(self, longest: float) -> None:
        """Let the request ask for what is left of its timeout, and not for more than this [s]."""
        left = max(min(self.timeout - self.waited, longest), SHORTEST)
        whole = int(left)
        self.request.timeout = Duration(sec=whole, nanosec=int(1e9 * (left - whole)) or 1)


def _drop_unused(request: Any, tree: Tree) -> None:
    """Drop what nothing is read of, such as meshes that are attached to the robot."""
    state = request.robot_state
    joints = state.joint_state
    if len(joints.name) == len(joints.position):
        pairs = [p for p in zip(joints.name, joints.position, strict=True) if p[0] in tree.mimic_of]
        names, positions = [name for name, _ in pairs], [position for _, position in pairs]
        state.joint_state = JointState(name=names, position=positions)
    others = state.multi_dof_joint_state.joint_names[:1]  # that there are any is told
    state.multi_dof_joint_state = MultiDOFJointState(joint_names=others)
    if state.attached_collision_objects:
        state.attached_collision_objects = [AttachedCollisionObject()]
