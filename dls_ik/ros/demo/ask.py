"""Part one: ask the node for every pose, and check what it answers."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.ros.demo.check import Check
from dls_ik.ros.demo.client import Client
from dls_ik.ros.demo.messages import NO_IK_SOLUTION, SUCCESS
from dls_ik.ros.demo.poses import HOME, Pose
from dls_ik.solver.solver import IkSolver

TIMEOUT = 1.0  # [s] to solve in, on a busy machine too
TOLERANCE = 1e-6  # [m] and [rad], the node's own default
ROUNDING = 1e-9  # a quaternion and another library's products


class Answer(NamedTuple):
    """One pose, what the node answered, and what is true."""

    pose: Pose
    code: int  # of MoveItErrorCodes
    q: Array | None  # (n,)
    position_error: float  # [m] by the independent check; NaN without an answer
    rotation_error: float  # [rad]
    inside: bool  # no joint beyond a limit
    round_trip: float  # [s]
    solve_time: float  # [s] of the same request in this process

    @property
    def is_reached(self) -> bool:
        """Whether these joint values bring the tip to the pose, inside the limits."""
        errors = (self.position_error, self.rotation_error)  # NaN is not within
        return self.inside and all(error <= TOLERANCE + ROUNDING for error in errors)

    @property
    def is_right(self) -> bool:
        """Whether the node said and did what it should."""
        if self.pose.reachable:
            return self.code == SUCCESS and self.is_reached
        return self.code == NO_IK_SOLUTION


def answers(client: Client, poses: list[Pose], check: Check) -> Iterator[Answer]:
    """Ask for one pose after the other."""
    solver = IkSolver(client.robot)
    seed = np.array(HOME)
    solver.solve(poses[0].T, seed)  # loads the kernels
    client.ask(poses[0].T, seed, TIMEOUT)  # connects
    for pose in poses:
        reply = client.ask(pose.T, seed, TIMEOUT)
        solve_time = solver.solve(pose.T, seed, TIMEOUT).duration
        yield _judged(client, pose, reply.code, reply.q, check)._replace(
            round_trip=reply.round_trip, solve_time=solve_time
        )


def _judged(client: Client, pose: Pose, code: int, q: Array | None, check: Check) -> Answer:
    if q is None or not np.isfinite(q).all():
        return Answer(pose, code, q, np.nan, np.nan, False, 0.0, 0.0)
    inside = bool(client.robot.within_limits(q))
    return Answer(pose, code, q, *check.errors(pose.T, q), inside, 0.0, 0.0)
