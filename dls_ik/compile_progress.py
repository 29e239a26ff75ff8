# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Progress reports while several processes compile kernels (Numba functions).

Each compiling process writes a line to its standard output when the compilation of a kernel starts
or ends. The parent process reads these lines. Approximately every ten seconds it prints the number
of finished kernels and the estimated time left. The estimate is based on typical compile times of
the kernels and on the speed of the compilation so far.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any, TextIO

from dls_ik.compat import on_numba_compilation
from dls_ik.core.jit import cache_folder

CORE_PREFIX = "dls_ik.core."
PERIOD = 10.0  # time between printed lines [s]
ROUNDED = 5.0  # step to which the time left is rounded [s]
# First words of the lines about a kernel.
KERNEL_EXPECTED, KERNEL_STARTED, KERNEL_DONE = "expected", "started", "done"
# The estimated speed is an average of the typical speed 1 over this time [s] and of the measured
# speed over the elapsed time.
PRIOR = 10.0
UNFINISHED = 0.9  # maximum fraction of its typical time that an unfinished kernel counts as done
DEFAULT_KERNEL_TIME = 0.5  # typical time of a kernel without an entry in TYPICAL_TIMES [s]

# Typical compile times [s of one processor]. The outer key is the function of dls_ik.warm_up that
# uses the kernel first; the inner key is the name of the kernel. Kernels are in the order of use.
TYPICAL_TIMES: dict[str, dict[str, float]] = {
    "_solve_fast": {
        "kinematics.forward": 0.9,
        "limits.clips": 0.1,
        "fast.table.fill": 1.5,
        "search_rows.search_packed": 16.9,
        "reach_bounds.rows_beyond_reach": 0.7,
    },
    "_follow": {
        "follow.new_state": 2.0,
        "boxes.boxed": 1.4,
        "limiter.stopping_point": 0.2,
        "se3.is_pose": 0.2,
        "se3.difference": 0.1,
        "follow.follow": 32.2,
        "limiter.advance": 0.6,
        "limiter.stop_after_cycle": 0.8,
        "pursuit.pursue": 1.1,
        "pursuit.target_velocity": 0.6,
        "follow.tip_pose": 0.5,
        "follow.tip_errors": 0.6,
        "se3.moved": 0.3,
        "limiter.brake": 0.4,
    },
    "_solve_by_the_general_step": {"search_rows.search_rows": 15.1},
    "_use_stack": {
        "stack_motion.search_levels": 9.0,
        "stack_motion.compare_levels": 0.1,
        "stack_motion.add_levels": 9.0,
        "self_motion_curve.follow_curve": 7.0,
    },
    "_guard": {
        "limiter.even_stop": 0.3,
        "near_pairs.watch": 3.9,
        "certificate.certify": 3.0,
        "avoidance.follow_apart": 21.0,
        "near_pairs.near_rows": 4.6,
        "avoidance.stopping_time": 0.1,
        "avoidance.approach_bounds": 0.1,
    },
    "_check_collisions": {
        "shape_distance.mesh_distances": 0.6,
        "shape_distance.tightest_sphere": 0.2,
        "shape_distance.primitive_distances": 0.1,
        "collision.check_rows": 2.1,
        "collision.check_pairs": 0.7,
        "collision.count_pairs": 0.9,
        "collision.link_poses": 0.6,
        "distance_bounds.bound_pairs": 1.6,
        "distance_bounds.advance_pairs": 1.2,
        "distance_bounds.block_of_path": 1.7,
        "search_rows.search_packed_free": 17.3,
        "search_rows.search_rows_free": 16.6,
        "selection.count_pair": 0.1,
    },
    "_step_and_plot": {
        "step.run_steps": 14.2,
        "step.error_and_jacobian": 2.3,
        "damping_policies.law_damping": 1.9,
        "linalg.svd": 0.3,
        "damping.gains": 0.4,
        "damping.jt_step_length": 0.1,
        "optimal_damping.search_plain": 0.3,
        "linalg.singular_values": 0.2,
        "damping_policies.accuracy_weight": 0.1,
        "damping_policies.weight_columns": 0.1,
        "kinematics.jacobian": 0.4,
        "limits.activation": 0.1,
        "search.unwind": 0.2,
    },
    "_solve_whole_path": {
        "path_graph.mark_new": 1.3,
        "path_graph.find_sequences": 1.5,
        "path_refinement.null_bases": 5.8,
        "path_refinement.smoothing_step": 1.3,
        "path_lines.line_motions": 0.3,
        "cubic_spline.spline_slopes": 0.5,
        "path_lines.line_distances": 0.5,
        "path_speed.fastest_speeds": 2.4,
    },
}


def typical_time(kernel: str) -> float:
    """Return the typical compile time [s of one processor] of the kernel with a given name."""
    found = (times[kernel] for times in TYPICAL_TIMES.values() if kernel in times)
    return next(found, DEFAULT_KERNEL_TIME)


# Used by a compiling process


class KernelEvents:
    """Writer of lines that tell the parent process which kernels this process compiles.

    A line is the word ``expected``, ``started`` or ``done``, followed by the name of a kernel.

    Args:
        uses: Names of the functions of dls_ik.warm_up that this process will call. The kernels of
            these functions are expected.
        stream: Stream to which the lines are written.
    """

    def __init__(self, uses: Iterable[str], stream: TextIO) -> None:
        self._stream = stream
        self._left = {kernel for use in uses for kernel in TYPICAL_TIMES.get(use, {})}
        for kernel in self._left:
            self._write(KERNEL_EXPECTED, kernel)
        on_numba_compilation(self._start)

    def tell_done(self) -> None:
        """Write ``done`` for each kernel that was compiled or loaded since the last call."""
        for kernel in [each for each in self._left if is_compiled(each)]:
            self._left.remove(kernel)
            self._write(KERNEL_DONE, kernel)

    def _start(self, dispatcher: Any) -> None:
        module = dispatcher.py_func.__module__ or ""  # None for functions of Numba
        if not module.startswith(CORE_PREFIX) or cache_folder(dispatcher) is None:
            return  # the function is not a kernel but is included in kernels
        self.tell_done()
        kernel = f"{module.removeprefix(CORE_PREFIX)}.{dispatcher.py_func.__name__}"
        self._left.add(kernel)
        self._write(KERNEL_STARTED, kernel)

    def _write(self, event: str, kernel: str) -> None:
        with suppress(OSError):  # raised if the parent process has ended
            print(event, kernel, file=self._stream, flush=True)


def is_compiled(kernel: str) -> bool:
    """Return whether this process has machine code of the kernel with a given name."""
    module, _, function = kernel.rpartition(".")
    dispatcher = getattr(sys.modules.get(CORE_PREFIX + module), function, None)
    return bool(getattr(dispatcher, "overloads", None))


# Used by the parent process


class CompileProgress:
    """Estimator of the time until several compiling processes have compiled all expected kernels.

    Args:
        start: Time at which the compilation starts [s]. All methods take times of the same clock.
        processes: Number of compiling processes.
    """

    def __init__(self, start: float, processes: int) -> None:
        self._start, self._processes = start, processes
        self._expected, self._done = set[str](), set[str]()
        self._started = dict[str, float]()  # time of the start [s] by kernel
        self._speed = (
            1.0  # speed of each process relative to the typical speed; set when kernels are done
        )

    def take(self, event: str, now: float) -> None:
        """Update the estimate by a line of the output of a compiling process.

        Args:
            event: Line; it is ignored if it was not written by :class:`KernelEvents`.
            now: Time at which the line was received [s].
        """
        kind, _, kernel = event.strip().partition(" ")
        if kind in (KERNEL_EXPECTED, KERNEL_STARTED, KERNEL_DONE):
            self._expected.add(kernel)
        if kind == KERNEL_STARTED:
            self._started[kernel] = now
        elif kind == KERNEL_DONE:
            self._done.add(kernel)
            work = self._finished(now) / self._processes
            self._speed = (PRIOR + work) / (PRIOR + now - self._start)

    def time_left(self, now: float) -> float:
        """Return the estimated time [s] from `now` until all expected kernels are done."""
        work = sum(map(typical_time, self._expected)) - self._finished(now)
        return work / (self._processes * self._speed)

    def _finished(self, now: float) -> float:
        """Return the finished work at time `now` [s] as a sum of typical compile times [s].

        A started kernel counts in proportion to the time since its start.
        """
        finished = sum(map(typical_time, self._done))
        for kernel, since in self._started.items():
            if kernel not in self._done:
                bound = UNFINISHED * typical_time(kernel)
                finished += min(bound, self._speed * (now - since))
        return finished

    def line(self, now: float) -> str:
        """Return a line of text with the progress at time `now` [s].

        The text is empty if all expected kernels are done.
        """
        if self._expected <= self._done:
            return ""
        left = self.time_left(now)
        rounded = ROUNDED * round(left / ROUNDED)
        words = f"about {rounded:.0f} s left" if rounded else "a few seconds left"
        return f"compiling kernels: {len(self._done)} of {len(self._expected)} done, {words}"


def wait_and_report(
    processes: Sequence[subprocess.Popen[str]], stream: TextIO, period: float = PERIOD
) -> list[int]:
    """Wait until all compiling processes have ended; meanwhile print progress at regular times.

    Args:
        processes: Compiling processes whose standard output is a pipe, to which
            :class:`KernelEvents` writes.
        stream: Stream to which lines with the progress are printed.
        period: Time between two lines [s].

    Returns:
        Exit code of each process.
    """
    progress = CompileProgress(time.monotonic(), len(processes))
    lock = threading.Lock()

    def read(events: Iterable[str]) -> None:
        for event in events:
            with lock:
                progress.take(event, time.monotonic())

    readers = [
        threading.Thread(target=read, args=(process.stdout,), daemon=True) for process in processes
    ]
    for reader in readers:
        reader.start()
    next_line = time.monotonic() + period
    for reader in readers:
        while reader.is_alive():
            reader.join(max(next_line - time.monotonic(), 0.0))
            if time.monotonic() >= next_line:
                next_line += period
                with lock:
                    line = progress.line(time.monotonic())
                if line:
                    with suppress(OSError):
                        print(line, file=stream, flush=True)
    return [process.wait() for process in processes]


def open_terminal() -> TextIO:
    """Return a stream to the terminal of this process; if it has none, return standard output.

    Progress is printed to the terminal, because pip and colcon hide the standard output of a build.
    colcon captures that output by a pseudo-terminal, which is not the terminal of the user.
    """
    with suppress(OSError):
        return open("/dev/tty", "w", encoding="utf-8")
    return sys.stdout
