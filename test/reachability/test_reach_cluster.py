# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A real Dask scheduler and real workers, as processes."""

import asyncio
from contextlib import ExitStack

import pytest
from dask_cluster import PATIENCE, scheduler, wait_for_workers, worker
from reach_maps import assert_same, chunks_of, start, wait_for_chunks, wam_map

from dls_ik.errors import ChunkError
from dls_ik.reachability import ReachabilityMap


@pytest.mark.slow
def test_a_worker_that_is_killed_changes_nothing(wam, tmp_path):
    out = tmp_path / "map.npz"
    with ExitStack() as stack:
        address, file, _ = stack.enter_context(scheduler(tmp_path))
        first = stack.enter_context(worker(file, "first"))
        stack.enter_context(worker(file, "second"))
        wait_for_workers(address, 2)
        with start("--out", out, "--scheduler", address) as command:
            wait_for_chunks(command, out, 3)
            first.kill()
            first.wait()
            assert len(chunks_of(out)) < wam.settings.chunks
            _, said = command.communicate(timeout=300)
        assert command.returncode == 0, said
        assert_same(ReachabilityMap.load(out), wam)


@pytest.mark.slow
def test_a_scheduler_that_goes_away_keeps_what_is_finished(wam, tmp_path):
    out = tmp_path / "map.npz"
    with ExitStack() as stack:
        address, file, running = stack.enter_context(scheduler(tmp_path))
        with start("--out", out, "--scheduler", address) as command:
            said_first = command.stderr.readline() + command.stderr.readline()
            stack.enter_context(worker(file, "only"))
            wait_for_chunks(command, out, 2)
            running.kill()
            _, said = command.communicate(timeout=300)
    assert command.returncode == 2, said
    assert "has no worker yet: waiting for one" in said_first
    assert "lost the connection to the Dask scheduler" in said
    assert "finished chunks are kept" in said
    assert 2 <= len(chunks_of(out)) < wam.settings.chunks
    assert_same(wam_map(out=out), wam)  # completes here from the chunks of the cluster


DIES_AT_THE_START = """
import os
import dls_ik.chunks.executors as chunks
chunks._version = lambda: os._exit(1)
"""


def test_map_is_completed_without_a_worker_that_dies_at_startup(tmp_path):
    """The caller is a program with an event loop."""

    async def notebook():
        return wam_map(resolution=0.5, orientations=4, scheduler=address)

    (tmp_path / "dies.py").write_text(DIES_AT_THE_START)
    with ExitStack() as stack:
        address, file, _ = stack.enter_context(scheduler(tmp_path))
        dying = stack.enter_context(worker(file, "dying", "--preload", tmp_path / "dies.py"))
        stack.enter_context(worker(file, "well"))
        wait_for_workers(address, 2)
        there = asyncio.run(notebook())
        assert dying.wait(PATIENCE) == 1
    assert_same(there, wam_map(resolution=0.5, orientations=4))


@pytest.mark.parametrize("address", ["tcp://127.0.0.1:9", "smoke://x", ""])
def test_unreachable_scheduler_raises_an_error(tmp_path, address):
    with pytest.raises(ChunkError, match="no Dask scheduler answers at"):
        wam_map(out=tmp_path / "map.npz", scheduler=address)
    assert not list(tmp_path.iterdir())
