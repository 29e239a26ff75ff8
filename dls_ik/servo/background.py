# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Work outside the control loop."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import TypeVar

R = TypeVar("R")


def submit(executor: Executor | None, work: Callable[[], R]) -> "Future[R]":
    """Start work in an executor, or do the work at once, and return the future result.

    Args:
        executor: Executor; None: the work is done before this function returns.
        work: Function without arguments.
    """
    if executor is not None:
        return executor.submit(work)
    done: Future[R] = Future()
    try:
        done.set_result(work())
    except Exception as error:  # noqa: BLE001  an executor also stores any exception
        done.set_exception(error)
    return done
