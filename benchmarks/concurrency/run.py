"""A run: the node, all tasks with seeds of their own, and the results."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from benchmarks.concurrency.asking import ask_fk, ask_ik, leave_unanswered
from benchmarks.concurrency.changing import GOOD, change, drive, order, send_targets, swap_robots
from benchmarks.concurrency.checks import Ledger
from benchmarks.concurrency.robots import broken_robots, good_robots
from benchmarks.concurrency.world import FAULTS, Steps, World
from benchmarks.processes import STARTING, ProcFigures, proc_figures

SAMPLE = 5.0  # [s]
ASKING = {"ask_ik": (ask_ik, 4), "ask_fk": (ask_fk, 2)}  # tasks, and how many of each
EXIT, LOG = "the node ends with exit code 0", "no fault in the log"


class Found(NamedTuple):
    """Results of a run."""

    ledger: Ledger
    sizes: list[ProcFigures]  # of the node, every SAMPLE seconds


def run(duration: float, seed: int, enough: Callable[[Ledger], bool] = lambda _: True) -> Found:
    """Let all tasks work on one node for a time [s], and until there was enough."""
    good_robots(), broken_robots()  # not while the node waits
    with World() as world:
        world.wait_until(world.is_served, STARTING)
        _add_tasks(world, seed)
        world.wait_until(lambda: bool(world.log), STARTING)
        sizes = [proc_figures(world.process.process.pid)]
        world.add("watch", _watch(world, sizes))
        world.run(duration, enough)
        leave_unanswered(world)
    ledger = world.ledger
    ledger.check(world.process.exit_code == 0, EXIT, f"it is {world.process.exit_code}")
    faults = [line for line in world.log if any(fault in line for fault in FAULTS)]
    ledger.check(not faults, LOG, "\n".join(world.log[-100:]) if faults else "")
    ledger.done["robots that were in force"] = sum(" ready after " in line for line in world.log)
    ledger.done["robots refused"] = world.history.refused
    return Found(ledger, sizes)


def _watch(world: World, sizes: list[ProcFigures]) -> Steps:
    while True:
        yield SAMPLE
        sizes.append(proc_figures(world.process.process.pid))


def _add_tasks(world: World, seed: int) -> None:
    """All tasks, each with numbers of its own from the seed."""
    seeds = iter(np.random.SeedSequence(seed).spawn(20))

    def rng() -> np.random.Generator:
        return np.random.default_rng(next(seeds))

    world.add("swap_robots", swap_robots(world, rng()))
    for name, (task, count) in ASKING.items():
        for i in range(count):
            world.add(f"{name} {i}", task(world, rng()))
    for part in range(len(GOOD)):
        world.add(f"change {part}", change(world, rng(), part))
    world.add("send_targets", send_targets(world, rng()))
    world.add("drive", drive(world, rng()))
    world.add("order", order(world, rng()))
