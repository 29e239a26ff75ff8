"""Part one: a dozen poses for ``compute_ik``, each answer checked by other kinematics."""

from collections.abc import Callable, Iterator
from math import pi
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.kdl import kdl_chain
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.ros.demo.node import NO_IK_SOLUTION, SUCCESS, Client
from dls_ik.solver.solver import IkSolver

# Elbow bent, tool straight down: the seed of every request, and the centre of the figure of eight.
HOME = (0.0, 0.5, 0.0, 1.7, 0.0, pi - 2.2, 0.0)

TOOL = 0.06  # [m] from wrist to tip
# Greatest distance from shoulder to wrist: both arms' lengths, each over its offset of 45 mm.
REACH = float(np.hypot(0.55, 0.045) + np.hypot(0.3, 0.045))  # [m]
TIMEOUT = 1.0  # [s] to solve in, on a busy machine too
TOLERANCE = 1e-6  # [m] and [rad], the node's own default
ROUNDING = 1e-9  # a quaternion and another library's products


class Pose(NamedTuple):
    """A pose to ask for, and what to expect."""

    name: str  # in plain words
    T: Array  # (4, 4) T_base_tip
    reachable: bool


_REACHABLE = {
    "above the table, tool down": (0.5, 0.4, 0.0, 1.9, 0.0, pi - 2.3, 0.0),
    "to the right and low, tool down": (-0.9, 1.1, 0.0, 1.3, 0.0, pi - 2.4, 0.3),
    "to the left, tool outwards": (1.2, 0.4, 0.2, 1.9, -0.3, -0.6, 0.5),
    "overhead": (0.3, -0.2, 0.1, 0.5, -0.4, 0.3, -0.2),
    "behind, waist at its limit": (2.59, 0.8, -0.3, 1.5, 0.2, 0.5, 0.0),
    "arm stretched, 1 mm to spare": (-0.4, 1.2, 0.3, 0.131, 0.2, 0.3, 0.0),
    "forearm folded on upper arm": (0.6, -0.3, 0.4, 3.09, 0.5, -0.9, 1.0),
    "all wrist joints at limits": (-0.3, 0.6, 0.2, 1.4, -4.79, 1.59, 2.19),
}

# Where the wrist would have to be [m], and where the tool points.
_UNREACHABLE = {
    "1 cm beyond the stretched arm": ((REACH + 0.01) * np.array([0.8, 0.0, 0.6]), (0.8, 0.0, 0.6)),
    "near enough, but tool turned back": ((REACH + 0.03, 0.0, 0.0), (-1.0, 0.0, 0.0)),
    "inside its own shoulder": ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "straight down through its base": ((0.0, 0.0, -0.8), (0.0, 0.0, -1.0)),
}


def poses(robot: RobotModel) -> list[Pose]:
    """Eight poses that the WAM reaches, then four that it provably does not.

    A reachable pose is the forward kinematics of joint values within the limits. An unreachable one
    asks for a place of the wrist (the point where the axes of the last three joints meet, 60 mm
    behind the tip) that the first four joints cannot bring it to.
    """
    reachable = [Pose(name, robot.fk(q), True) for name, q in _REACHABLE.items()]
    unreachable = [
        Pose(name, _with_wrist_at(np.array(wrist), np.array(tool)), False)
        for name, (wrist, tool) in _UNREACHABLE.items()
    ]
    return reachable + unreachable


def _with_wrist_at(wrist: Array, tool: Array) -> Array:
    return transform(rotation_from_z(tool), wrist + TOOL * tool)


class IndependentCheck(NamedTuple):
    """Another way from joint values to the pose of the tip."""

    name: str
    pose: Callable[[Array], Array]  # (n,) -> (4, 4) T_base_tip

    def errors(self, T: Array, q: Array) -> tuple[float, float]:
        """How far the tip at `q` is from a pose: distance [m] and angle [rad]."""
        return pose_errors(T, self.pose(q))


def independent_check(robot: RobotModel) -> IndependentCheck:
    """PyKDL's kinematics where it is installed, else plain products of 4x4 matrices."""
    try:
        return IndependentCheck("PyKDL", _kdl_kinematics(robot))
    except DlsIkError:
        return IndependentCheck("NumPy", lambda q: robot.link_pose(robot.tip, q))


def pose_errors(T: Array, other: Array) -> tuple[float, float]:
    """Distance [m] and angle [rad], right up to half a turn, between two poses."""
    R = T[:3, :3].T @ other[:3, :3]
    sine = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])
    angle = np.arctan2(np.linalg.norm(sine), np.trace(R) - 1.0)
    return float(np.linalg.norm(other[:3, 3] - T[:3, 3])), float(angle)


def _kdl_kinematics(robot: RobotModel) -> Callable[[Array], Array]:
    chain = kdl_chain(robot)
    import PyKDL  # it is there, since there is a chain

    solver = PyKDL.ChainFkSolverPos_recursive(chain)

    def pose(q: Array) -> Array:
        joints, frame = PyKDL.JntArray(chain.getNrOfJoints()), PyKDL.Frame()
        for i, value in enumerate(q):
            joints[i] = float(value)
        solver.JntToCart(joints, frame)
        return _matrix(frame)

    return pose


def _matrix(frame: Any) -> Array:
    rows = [[frame[i, j] for j in range(4)] for i in range(3)]
    return np.array([*rows, [0.0, 0.0, 0.0, 1.0]])


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


def answers(client: Client, poses: list[Pose], check: IndependentCheck) -> Iterator[Answer]:
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


def _judged(
    client: Client, pose: Pose, code: int, q: Array | None, check: IndependentCheck
) -> Answer:
    if q is None or not np.isfinite(q).all():
        return Answer(pose, code, q, np.nan, np.nan, False, 0.0, 0.0)
    inside = bool(client.robot.within_limits(q))
    return Answer(pose, code, q, *check.errors(pose.T, q), inside, 0.0, 0.0)
