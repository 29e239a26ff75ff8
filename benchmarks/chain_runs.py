"""Runs of one chain: poses missed, wrong answers, and time; checked without the kernels."""

import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import NamedTuple

import numpy as np

from benchmarks.chain_list import ChainRow
from dls_ik import DlsIkError, IkSolver, RobotModel, Task
from dls_ik.model.kdl import kdl_chain, pykdl
from dls_ik.model.tree import Tree
from dls_ik.solver.batch import RESTARTS
from dls_ik.solver.search import new_rows

TOLERANCE = 1e-6 * (1.0 + 1e-6)  # [m], [rad]; other kinematics round differently
CHUNK = 10_000  # poses solved at a time

# Kinematics by other libraries

Forward = Callable[[np.ndarray], np.ndarray]  # (b, n) to (b, 4, 4)


def library() -> str:
    """Return the name of the library whose kinematics check the answers."""
    try:
        return pykdl().__name__
    except DlsIkError:
        return "NumPy"


def forward(robot: RobotModel) -> Forward:
    """Return the forward kinematics of a chain.

    Raises:
        DlsIkError: it has mimic joints.
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
    """Return poses (b, 4, 4) as the product of the joints' matrices; no joint may mimic another.

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
    """Return motions (b, 4, 4) about or along a unit axis, by Rodrigues' formula."""
    found = np.tile(np.eye(4), (len(values), 1, 1))
    if kind == "prismatic":
        found[:, :3, 3] = values[:, None] * axis
        return found
    cross = np.cross(axis, np.eye(3)).T  # cross @ v is axis x v
    sine, versine = np.sin(values)[:, None, None], 1.0 - np.cos(values)[:, None, None]
    found[:, :3, :3] += sine * cross + versine * (cross @ cross)
    return found


def errors(task: Task, wanted: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Return the errors (b, 2) [m], [rad] of poses (b, 4, 4), in the rows of the task.

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


# Runs


class Block(NamedTuple):
    """Some poses of a chain, with their joint values."""

    first: int  # number of the first one
    q: np.ndarray  # (b, n)
    Ts: np.ndarray  # (b, 4, 4)
    seeds: np.ndarray | None  # (b, n)


class Missed(NamedTuple):
    """A pose that was not solved."""

    sample: int
    q: list[float]  # that it comes from
    seed: list[float] | None
    position_error: float  # [m] of the best that was found
    rotation_error: float  # [rad]


class Outcome(NamedTuple):
    """Result for some poses."""

    poses: int
    outside_limits: int  # of the answers that claim success
    outside_tolerance: int
    seconds: float  # of processor time, on one thread
    iterations: int
    restarts: int
    most_restarts: int  # of any pose: how near the rest came to being missed
    missed: list[Missed]


class ChainSolver:
    """A chain, the solver, and kinematics to check it with."""

    def __init__(self, row: ChainRow) -> None:
        self.robot, self.task = row.robot(), row.task
        self.solver = IkSolver(self.robot, task=row.task)
        self.fk = forward(self.robot)

    def blocks(self, samples: int, seed: int, seeded: bool) -> Iterator[Block]:
        """Draw poses, the same ones with seeds and without."""
        poses, seeds = (np.random.default_rng([seed, k]) for k in range(2))
        for first in range(0, samples, CHUNK):
            b = min(CHUNK, samples - first)
            q = self.robot.random(poses, b)
            yield Block(first, q, self.fk(q), self.robot.random(seeds, b) if seeded else None)

    def outcome(self, block: Block) -> Outcome:
        """Solve a block twice: for its answers, and for the time of one thread."""
        result = self.solver.solve_batch(block.Ts, block.seeds)
        begin = time.thread_time()
        on_one_thread(self.solver, block.Ts, block.seeds)
        seconds = time.thread_time() - begin
        good, apart = result.success, errors(self.task, block.Ts, self.fk(result.q))
        beyond = ((result.q < self.robot.lower) | (result.q > self.robot.upper)).any(axis=1)
        apart_too_far = ~(apart <= TOLERANCE).all(axis=1)
        return Outcome(
            len(good),
            int((good & beyond).sum()),
            int((good & apart_too_far).sum()),
            seconds,
            int(result.iterations.sum()),
            int(result.restarts.sum()),
            int(result.restarts.max()),
            [_missed(block, i, apart[i]) for i in np.flatnonzero(~good).tolist()],
        )

    def call_times(self, block: Block, calls: int) -> np.ndarray:
        """Processor times [us] of single calls of `solve`."""
        times = []
        seeds = [None] * len(block.Ts) if block.seeds is None else block.seeds
        for T, seed in islice(zip(block.Ts, seeds, strict=True), calls):
            begin = time.thread_time()
            self.solver.solve(T, seed)
            times.append(time.thread_time() - begin)
        return 1e6 * np.array(times)


def on_one_thread(solver: IkSolver, Ts: np.ndarray, seeds: np.ndarray | None) -> None:
    """Run the kernel that a thread of a batch runs."""
    seeded = seeds is not None
    starts = solver.search.middle if seeds is None else seeds
    rows = new_rows(len(Ts), solver.robot.n, solver.options.random_seed)
    solver.search.attempt(Ts[:, None], starts, 1 + RESTARTS, rows, seeded)


def total(outcomes: list[Outcome]) -> Outcome:
    """Add up all blocks."""
    *sums, most, missed = zip(*outcomes, strict=True)
    return Outcome(
        *(sum(column) for column in sums), max(most), [one for some in missed for one in some]
    )


def _missed(block: Block, i: int, apart: np.ndarray) -> Missed:
    seed = None if block.seeds is None else block.seeds[i].tolist()
    return Missed(block.first + i, block.q[i].tolist(), seed, *apart.tolist())
