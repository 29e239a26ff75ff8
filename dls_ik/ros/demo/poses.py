"""Part one: a dozen poses for ``compute_ik``, each answer checked by other kinematics."""

from collections.abc import Callable, Iterator, Sequence
from math import pi
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError
from dls_ik.model.kdl import kdl_chain
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_from_z, transform
from dls_ik.ros.client import IkClient
from dls_ik.ros.errors import Code
from dls_ik.ros.frames import pose_errors
from dls_ik.solver.solver import IkSolver

# Elbow bent, tool straight down: the seed of every request, and the centre of the figure of eight.
HOME = (0.0, 0.5, 0.0, 1.7, 0.0, pi - 2.2, 0.0)

TOOL = 0.06  # [m] from wrist to tip
# Greatest distance from shoulder to wrist: both arms' lengths, each over its offset of 45 mm.
REACH = float(np.hypot(0.55, 0.045) + np.hypot(0.3, 0.045))  # [m]
TIMEOUT = 1.0  # [s] of a request, enough on a busy machine
TOLERANCE = 1e-6  # [m] and [rad], the node's default
ROUNDING = 1e-9  # of a quaternion and of another library's products

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
_UNREACHABLE = {  # position of the wrist [m], direction of the tool
    "1 cm beyond the stretched arm": ((REACH + 0.01) * np.array([0.8, 0.0, 0.6]), (0.8, 0.0, 0.6)),
    "near enough, but tool turned back": ((REACH + 0.03, 0.0, 0.0), (-1.0, 0.0, 0.0)),
    "inside its own shoulder": ((0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
    "straight down through its base": ((0.0, 0.0, -0.8), (0.0, 0.0, -1.0)),
}


class DemoPose(NamedTuple):
    """A pose to ask for."""

    name: str
    T: Array  # (4, 4) T_base_tip
    reachable: bool


def demo_poses(robot: RobotModel) -> list[DemoPose]:
    """Return eight poses that the WAM reaches, then four that it provably does not.

    A reachable pose is the forward kinematics of joint values within the limits. An unreachable one
    needs a position of the wrist (where the axes of the last three joints meet, 60 mm behind the
    tip) that the first four joints cannot reach.
    """
    reachable = [DemoPose(name, robot.fk(q), True) for name, q in _REACHABLE.items()]
    unreachable = [
        DemoPose(name, _pose_of_wrist(np.array(wrist), np.array(tool)), False)
        for name, (wrist, tool) in _UNREACHABLE.items()
    ]
    return reachable + unreachable


def _pose_of_wrist(wrist: Array, tool: Array) -> Array:
    return transform(rotation_from_z(tool), wrist + TOOL * tool)


class IndependentCheck(NamedTuple):
    """Forward kinematics that the solver does not use."""

    name: str
    pose: Callable[[Array], Array]  # (n,) -> (4, 4) T_base_tip

    def errors(self, T: Array, q: Array) -> tuple[float, float]:
        """Return distance [m] and angle [rad] between a pose and the tip at joint values (n,)."""
        return pose_errors(T, self.pose(q))


def independent_check(robot: RobotModel) -> IndependentCheck:
    """Return PyKDL's kinematics if it is installed, else products of 4x4 matrices."""
    try:
        return IndependentCheck("PyKDL", _kdl_pose(robot))
    except DlsIkError:
        return IndependentCheck("NumPy", lambda q: robot.link_pose(robot.tip, q))


def _kdl_pose(robot: RobotModel) -> Callable[[Array], Array]:
    chain = kdl_chain(robot)
    import PyKDL  # kdl_chain has checked that it is there

    solver = PyKDL.ChainFkSolverPos_recursive(chain)

    def pose(q: Array) -> Array:
        joints, frame = PyKDL.JntArray(chain.getNrOfJoints()), PyKDL.Frame()
        for i, value in enumerate(q):
            joints[i] = float(value)
        solver.JntToCart(joints, frame)
        rows: list[list[Any]] = [[frame[i, j] for j in range(4)] for i in range(3)]
        return np.array([*rows, [0.0, 0.0, 0.0, 1.0]])

    return pose


class PoseCheck(NamedTuple):
    """The answer of the node for a pose, and what the independent check found."""

    pose: DemoPose
    code: int  # of MoveItErrorCodes
    q: Array | None  # (n,)
    position_error: float  # [m]; NaN without an answer
    rotation_error: float  # [rad]
    inside: bool  # no joint beyond a limit
    round_trip: float = 0.0  # [s]
    solve_time: float = 0.0  # [s] of the same request in this process

    @property
    def is_reached(self) -> bool:
        """True if the joint values bring the tip to the pose, inside the limits."""
        errors = (self.position_error, self.rotation_error)  # comparisons with NaN are False
        return self.inside and all(error <= TOLERANCE + ROUNDING for error in errors)

    @property
    def is_right(self) -> bool:
        """True if code and joint values are as they should be."""
        if self.pose.reachable:
            return self.code == Code.SUCCESS and self.is_reached
        return self.code == Code.NO_IK_SOLUTION


def ask_poses(
    client: IkClient, robot: RobotModel, poses: Sequence[DemoPose], check: IndependentCheck
) -> Iterator[PoseCheck]:
    """Ask ``compute_ik`` for one pose after the other.

    Raises:
        DlsIkError: no answer came.
    """
    solver, seed = IkSolver(robot), np.array(HOME)
    solver.solve(poses[0].T, seed)  # loads the kernels
    client.solve(poses[0].T, seed, frame=robot.base, timeout=TIMEOUT)  # connects
    for pose in poses:
        begin = perf_counter()
        answer = client.solve(pose.T, seed, frame=robot.base, timeout=TIMEOUT)
        round_trip = perf_counter() - begin
        q = answer.array(robot.joint_names) if answer.success else None
        yield _check(robot, pose, answer.code, q, check)._replace(
            round_trip=round_trip, solve_time=solver.solve(pose.T, seed, TIMEOUT).duration
        )


def _check(
    robot: RobotModel, pose: DemoPose, code: int, q: Array | None, check: IndependentCheck
) -> PoseCheck:
    if q is None or not np.isfinite(q).all():
        return PoseCheck(pose, code, q, np.nan, np.nan, False)
    return PoseCheck(pose, code, q, *check.errors(pose.T, q), bool(robot.within_limits(q)))
