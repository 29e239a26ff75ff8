# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Computation of reachability maps in chunks of voxels, on local threads or on a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import (
    FIRST_COMPLETED,
    CancelledError,
    Executor,
    Future,
    ThreadPoolExecutor,
    wait,
)
from contextlib import contextmanager
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik import __version__
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.reachability.grid import ReachabilityError, orientations
from dls_ik.reachability.settings import MapJob, checked_task
from dls_ik.solver.calls import usable_cores
from dls_ik.solver.result import IkBatchResult, Status
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Task, task_jacobians

LOG = logging.getLogger("dls_ik")
# Number of retries of a chunk that raises an error; chunks of a worker that dies are always retried
MAX_CHUNK_RETRIES = 5
CHUNKS_PER_THREAD = 2  # number of chunks submitted at a time for each thread of the cluster
SCHEDULER_TIMEOUT = 5.0  # [s] maximum time to connect to a scheduler

Single = NDArray[np.float32]


class Voxels(NamedTuple):
    """Results for v voxels, arrays of shape (v,), or for a whole map, arrays of shape (nx, ny, nz).

    Dexterity measures are NaN in voxels without a reached orientation.
    """

    reached: NDArray[np.int32]  # number of orientations with a solution
    # Number of orientations for which no solution was found, although one may exist
    undecided: NDArray[np.int32]
    in_collision: NDArray[np.int32]  # number of orientations whose solutions are all in collision
    manipulability_mean: Single  # mean over the solutions in the voxel
    manipulability_best: Single  # maximum over the solutions in the voxel
    isotropy_best: Single  # maximum over the solutions in the voxel
    margin_best: Single  # maximum of Dexterity.margin over the solutions in the voxel


def solve_chunk(job: MapJob, chunk: int) -> Voxels:
    """Solve every orientation in every voxel of a chunk, and return the results for the voxels.

    The solver keeps no state from one pose to the next, so the result does not depend on the order
    of the chunks or on the thread, nor on the machine if all machines are of the same kind.

    Args:
        job: Map to compute.
        chunk: Number of the chunk.
    """
    solver = _solver(job)
    first, last = job.settings.voxels(chunk)
    poses = chunk_poses(job, first, last)
    result = solver.solve_batch(poses, threads=1)  # chunks run in parallel
    return _per_voxel(job, solver, result, last - first)


def chunk_poses(job: MapJob, first: int, last: int) -> Array:
    """Return the poses to solve for voxels `first` to `last` - 1.

    Returns:
        T_base_tip ((last - first) * orientations, 4, 4), all orientations of a voxel in succession.
    """
    rotations = orientations(job.settings.orientations, job.settings.task)
    poses = np.zeros((last - first, len(rotations), 4, 4))
    poses[..., :3, :3] = rotations
    poses[..., :3, 3] = job.settings.grid.centres(first, last)[:, None]
    poses[..., 3, 3] = 1.0
    return poses.reshape(-1, 4, 4)


@lru_cache(maxsize=4)
def _solver(job: MapJob) -> IkSolver:
    return job.solver()


def _per_voxel(job: MapJob, solver: IkSolver, result: IkBatchResult, voxels: int) -> Voxels:
    shape = (voxels, job.settings.orientations)
    task, weight = checked_task(job.settings.task), solver.options.rotation_weight
    values = dexterity(solver.robot, task, weight, result.q[result.success])
    best = [_reduced(np.fmax, each, result.success, shape) for each in values]
    reached = result.success.reshape(shape).sum(axis=1, dtype=np.int32)
    ended = result.status.reshape(shape)
    missed = [
        (ended == status).sum(axis=1, dtype=np.int32)
        for status in (Status.MAX_RESTARTS, Status.IN_COLLISION)
    ]
    total = _reduced(np.add, values.manipulability, result.success, shape)
    measures = (total / np.maximum(reached, 1), *best)
    singles = [measure.astype(np.float32) for measure in measures]
    return Voxels(reached, *missed, *singles)


def _reduced(
    combine: np.ufunc, values: Array, success: NDArray[np.bool_], shape: tuple[int, int]
) -> Array:
    """Combine the values of all solutions in each of v voxels, for example by their maximum.

    Args:
        combine: ``np.fmax`` for the maximum, or ``np.add`` for the sum.
        values: One value for each pose that has a solution.
        success: Whether each pose has a solution, for all poses of the v voxels.
        shape: (v, number of orientations).

    Returns:
        Combined values (v,); NaN in voxels without a solution.
    """
    every = np.full(len(success), 0.0 if combine is np.add else np.nan)
    every[success] = values
    combined: Array = combine.reduce(every.reshape(shape), axis=1)
    return np.where(success.reshape(shape).any(axis=1), combined, np.nan)


class Dexterity(NamedTuple):
    """Dexterity measures of b configurations, see :func:`dexterity` and :func:`limit_margin`."""

    manipulability: Array  # (b,) see Yoshikawa 1985
    isotropy: Array  # (b,) ratio of smallest to largest singular value: 0 at a singularity
    # (b,) minimum relative distance to a joint limit: 0 at a limit, 1 with all joints mid-range
    margin: Array


def dexterity(robot: RobotModel, task: Task, rotation_weight: float, q: Array) -> Dexterity:
    """Return the dexterity measures of configurations q (b, n) [rad or m].

    With the Jacobian J (r, n) of the task, the manipulability is sqrt(det(J J^T)), or
    sqrt(det(J^T J)) if n < r (Yoshikawa 1985). The isotropy is the ratio of the smallest to the
    largest singular value of J, whose rotation rows are first multiplied by `rotation_weight`
    [m/rad].
    """
    J = task_jacobians(robot, task, q)
    Jt = J.swapaxes(1, 2)
    square = J @ Jt if J.shape[1] <= J.shape[2] else Jt @ J
    manipulability = np.sqrt(np.maximum(np.linalg.det(square), 0.0))
    weights = np.ones(J.shape[1])
    weights[len(task.position) :] = rotation_weight
    s = np.linalg.svd(weights[:, None] * J, compute_uv=False)  # (b, min(r, n))
    isotropy = s[:, -1] / np.maximum(s[:, 0], np.finfo(float).tiny)
    return Dexterity(manipulability, isotropy, limit_margin(robot, q))


def limit_margin(robot: RobotModel, q: Array) -> Array:
    """Return the smallest relative distance (b,) of a joint to its limits at q (b, n) [rad or m].

    The distance of a joint is divided by half the range of the joint, and is thus 1 at mid-range.
    """
    limited = robot.limited
    lower, upper = robot.lower[limited], robot.upper[limited]
    half = np.maximum((upper - lower) / 2.0, np.finfo(float).tiny)
    share = np.minimum(q[:, limited] - lower, upper - q[:, limited]) / half
    margin: Array = np.clip(share.min(axis=1, initial=1.0), 0.0, 1.0)
    return margin


# Executors

Keep = Callable[[int, Voxels], None]
UnderWay = dict["Future[Voxels]", int]  # submitted chunks and their numbers


def run_chunks(
    job: MapJob, chunks: Iterable[int], executor: Executor, depth: Callable[[], int], keep: Keep
) -> None:
    """Solve chunks, and pass the results of each chunk to `keep` as soon as they are available.

    If a chunk raises an error, or at Ctrl-C, no further chunks are submitted and the submitted
    chunks are cancelled. Chunks that already run in this process cannot be cancelled; they are
    completed and passed to `keep`.

    Args:
        job: Map to compute.
        chunks: Numbers of the chunks.
        executor: Runs the chunks.
        depth: Returns the maximum number of chunks that are submitted at a time; called repeatedly,
            because the number of workers may change.
        keep: Called in this thread with the number and the results of a chunk.

    Raises:
        Exception: If solving a chunk raises this exception.
    """
    waiting = iter(chunks)
    under_way: UnderWay = {}
    try:
        _submit(job, islice(waiting, depth()), executor, under_way)
        while under_way:
            done, _ = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                keep(under_way[future], future.result())
                del under_way[future]
            free = max(depth() - len(under_way), 0 if under_way else 1)
            _submit(job, islice(waiting, free), executor, under_way)
    finally:
        for chunk, voxels in _uncancelled(under_way):
            keep(chunk, voxels)


def _submit(job: MapJob, chunks: Iterator[int], executor: Executor, under_way: UnderWay) -> None:
    for chunk in chunks:
        under_way[executor.submit(solve_chunk, job, chunk)] = chunk


def _uncancelled(under_way: UnderWay) -> Iterator[tuple[int, Voxels]]:
    """Cancel submitted chunks; yield numbers and results of the chunks that cannot be cancelled.

    Args:
        under_way: Submitted chunks and their numbers.
    """
    running = [future for future in under_way if not future.cancel()]
    wait(running)
    for future in running:
        if not future.cancelled() and future.exception() is None:
            yield under_way[future], future.result()


@contextmanager
def local_threads() -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Yield an executor with one thread per core, and a function that returns the number of cores.

    The threads run in parallel, because the kernels release the GIL. The function limits the
    submitted chunks to one per thread, so that Ctrl-C waits for the running chunks only.
    """
    cores = usable_cores()
    with ThreadPoolExecutor(cores, thread_name_prefix="reachability") as executor:
        yield executor, lambda: cores


@contextmanager
def dask_cluster(address: str) -> Iterator[tuple[Executor, Callable[[], int]]]:
    """Yield an executor on a Dask cluster, and a function that returns how many chunks to submit.

    Args:
        address: Address of the Dask scheduler, such as ``tcp://10.0.0.1:8786``.

    Raises:
        ReachabilityError: If dask.distributed is not installed, no scheduler answers at the
            address, a process of the cluster has another version of dls_ik or none, the connection
            to the scheduler is lost, or a chunk repeatedly kills its worker.
    """
    client = _connected_client(address)
    from distributed import KilledWorker

    try:
        _check_versions(client)
        if not client.nthreads():
            LOG.warning("the cluster at %s has no worker yet: waiting for one", address)
        executor = client.get_executor(retries=MAX_CHUNK_RETRIES, pure=False)
        yield executor, lambda: max(1, CHUNKS_PER_THREAD * sum(client.nthreads().values()))
    except (CancelledError, OSError) as error:
        raise ReachabilityError(
            f"lost the connection to the Dask scheduler at {address}; finished chunks are kept"
        ) from error
    except KilledWorker as error:
        raise ReachabilityError(
            f"a chunk has killed several workers; finished chunks are kept: {error}"
        ) from error
    finally:
        client.close()


def _connected_client(address: str) -> Any:
    """Return a ``distributed.Client`` that is connected to the scheduler at an address.

    Raises:
        ReachabilityError: If dask.distributed is not installed, or no scheduler answers at the
            address.
    """
    try:
        import distributed
    except ImportError as error:
        raise ReachabilityError(
            "a Dask cluster needs dask.distributed: pip install 'dls-ik[cluster]'"
        ) from error
    try:
        with ThreadPoolExecutor(1) as thread:  # the main thread of a notebook runs an event loop
            thread.submit(asyncio.run, _shake_hands(address)).result()
        return distributed.Client(address, timeout=SCHEDULER_TIMEOUT, set_as_default=False)
    except Exception as error:  # a server that is no Dask scheduler may cause any error
        raise ReachabilityError(
            f"no Dask scheduler answers at {address!r} within {SCHEDULER_TIMEOUT:g} s; "
            "give an address such as tcp://10.0.0.1:8786"
        ) from error


async def _shake_hands(address: str) -> None:
    from distributed.comm import connect
    from distributed.security import Security

    arguments = Security().get_connection_args("client")  # certificates from Dask's configuration
    comm = await connect(address, timeout=SCHEDULER_TIMEOUT, **arguments)
    await comm.close()


def _check_versions(client: Any) -> None:
    """Check that the scheduler and the workers of a cluster have this version of dls_ik.

    Workers that join later, or stop before they answer, are not checked.

    Args:
        client: ``distributed.Client``.

    Raises:
        ReachabilityError: If a process has no dls_ik, or another version.
    """
    try:
        answers = client.run(_version, on_error="return").values()
        there = [answer for answer in answers if not isinstance(answer, OSError)]
        for answer in there:
            if isinstance(answer, Exception):
                raise answer
        versions = {client.run_on_scheduler(_version), *there}
    except Exception as error:  # the import on a worker may raise any error
        raise ReachabilityError(
            f"the Dask scheduler and its workers must have dls_ik {__version__} too: {error}"
        ) from error
    if versions != {__version__}:
        raise ReachabilityError(
            f"the Dask cluster must have dls_ik {__version__}, as this machine; it has "
            f"{', '.join(sorted(versions))}"
        )


def _version() -> str:
    return __version__
