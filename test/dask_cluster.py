# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Scheduler and workers of Dask, as processes."""

import json
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")

PATIENCE = 60.0


@contextmanager
def process(*arguments):
    """Run a process of Dask, and kill it at the end."""
    command = [sys.executable, "-m", *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as running:
        try:
            yield running
        finally:
            running.kill()


def worker(file, name, *more):
    options = ("--nthreads", 1, "--no-nanny", "--no-dashboard", "--name", name, *more)
    return process("distributed.cli.dask_worker", "--scheduler-file", file, *options)


@contextmanager
def scheduler(tmp_path):
    """Yield the address of a scheduler, and the file by which workers find it."""
    file = tmp_path / "scheduler.json"
    options = ("--host", "127.0.0.1", "--port", 0, "--no-dashboard", "--scheduler-file", file)
    with process("distributed.cli.dask_scheduler", *options) as running:
        yield address_in(file, running), file, running


def address_in(file, running):
    while running.poll() is None and not (file.exists() and file.read_text().endswith("}")):
        time.sleep(0.05)
    return json.loads(file.read_text())["address"]


def wait_for_workers(address, count):
    with distributed.Client(address, timeout=PATIENCE, set_as_default=False) as client:
        client.wait_for_workers(count, timeout=PATIENCE)
