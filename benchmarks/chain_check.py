"""Forward kinematics and errors that owe nothing to the kernels: by PyKDL, else by NumPy."""

from collections.abc import Callable

import numpy as np

from dls_ik import DlsIkError, RobotModel, Task
from dls_ik.model.kdl import kdl_chain, pykdl
from dls_ik.model.tree import Tree

Forward = Callable[[np.ndarray], np.ndarray]  # (b, n) to (b, 4, 4)


def library() -> str:
    """Whose kinematics these are."""
    try:
        return pykdl().__name__
    except DlsIkError:
        return "NumPy"


def forward(robot: RobotModel) -> Forward:
    """The kinematics of a chain.

    Raises:
        DlsIkError: joints of it follow others, which neither knows.
    """
    if library() == "NumPy":
        return lambda q: by_numpy(robot.tree, robot.base, robot.tip, robot.joint_names, q)
    return _by_kdl(robot)


def _by_kdl(robot: RobotModel) -> Forward:
    kdl, chain = pykdl(), kdl_chain(robot)
    solver = kdl.ChainFkSolverPos_recursive(chain)

    def poses(q: np.ndarray, keep=chain) -> np.ndarray:  # the solver does not keep the chain alive
        found = np.tile(np.eye(4), (len(q), 1, 1))
        values, frame = kdl.JntArray(robot.n), kdl.Frame()
        for row, T in zip(q.tolist(), found, strict=True):
            for j, value in enumerate(row):
                values[j] = value
            if solver.JntToCart(values, frame) < 0:
                raise DlsIkError("KDL cannot compute the pose of this chain")
            p, M = frame.p, frame.M
            T[:3] = [[*(M[i, j] for j in range(3)), p[i]] for i in range(3)]
        return found

    return poses


def by_numpy(tree: Tree, base: str, tip: str, names: tuple[str, ...], q: np.ndarray) -> np.ndarray:
    """(b, 4, 4) as the product of the joints' matrices; no joint may follow another one.

    Raises:
        DlsIkError: a joint does.
    """
    poses = np.eye(4)
    for joint in tree.path(base, tip):
        poses = poses @ joint.origin
        if joint.name in names:
            poses = poses @ _motions(joint.kind, joint.axis, q[:, names.index(joint.name)])
        elif joint.mimic is not None:
            raise DlsIkError(f"joint {joint.name!r} follows another one")
    return poses


def _motions(kind: str, axis: np.ndarray, values: np.ndarray) -> np.ndarray:
    """(b, 4, 4) about or along an axis of length 1; Rodrigues' formula."""
    found = np.tile(np.eye(4), (len(values), 1, 1))
    if kind == "prismatic":
        found[:, :3, 3] = values[:, None] * axis
        return found
    cross = np.cross(axis, np.eye(3)).T  # cross @ v is axis x v
    sine, versine = np.sin(values)[:, None, None], 1.0 - np.cos(values)[:, None, None]
    found[:, :3, :3] += sine * cross + versine * (cross @ cross)
    return found


def errors(task: Task, wanted: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """(b, 2) how far poses (b, 4, 4) are from those wanted [m], [rad], in what the task counts.

    Raises:
        DlsIkError: a task other than a pose, a position, or a position and an axis that points.
    """
    position = np.linalg.norm(reached[:, :3, 3] - wanted[:, :3, 3], axis=1)
    if task == Task.position_only():
        return np.column_stack([position, np.zeros(len(position))])
    for k, axis in enumerate("xyz"):
        if task == Task.pointing(axis):
            u, v = reached[:, :3, k], wanted[:, :3, k]
            sine, cosine = np.linalg.norm(np.cross(u, v), axis=1), (u * v).sum(axis=1)
            return np.column_stack([position, np.arctan2(sine, cosine)])
    if task != Task.pose():
        raise DlsIkError(f"no check for {task}")
    R = np.swapaxes(wanted[:, :3, :3], 1, 2) @ reached[:, :3, :3]
    skew = R - np.swapaxes(R, 1, 2)
    sine = np.linalg.norm(skew[:, (2, 0, 1), (1, 2, 0)], axis=1)
    return np.column_stack([position, np.arctan2(sine, np.trace(R, axis1=1, axis2=2) - 1.0)])
