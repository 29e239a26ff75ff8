"""A task that pauses the stream, takes it up again, and resets it."""

import time

import numpy as np
from std_srvs.srv import SetBool, Trigger

from benchmarks.concurrency.tasks import Steps
from benchmarks.concurrency.world import World

MEAN, PAUSED = 1.5, 0.5  # [s] between orders; of a pause after the arm stands
STANDS, CARRIED_OUT = "a paused arm stands", "an order is taken"


def order(world: World, rng: np.random.Generator) -> Steps:
    """Pause, and watch that the arm stands until it is to go on; or reset."""
    yield lambda: world.history.model is not None
    while True:
        yield float(rng.exponential(MEAN))
        if rng.random() < 0.3:
            answer = yield world.call("dls_ik/reset", Trigger.Request())
            world.ledger.check(answer.success, CARRIED_OUT, answer.message)
            continue
        answer = yield world.call("dls_ik/pause", SetBool.Request(data=True))
        world.ledger.check(answer.success, CARRIED_OUT, answer.message)
        since = time.time()
        yield 0.1
        deadline = time.monotonic() + 5.0  # with a driver there may be no commands at all
        yield lambda since=since, d=deadline: _stands(world, since) or time.monotonic() > d
        stands = _standstill(world, since)
        yield float(rng.exponential(PAUSED))
        until = time.time()
        if stands is not None:
            moved = [c for c in world.commands.heard if stands < c.time < until and c.v.any()]
            words = f"{len(moved)} commands move, the first {moved[0] if moved else ''}"
            world.ledger.check(not moved, STANDS, words)
        if rng.random() < 0.5:
            answer = yield world.call("dls_ik/pause", SetBool.Request(data=False))
        else:
            answer = yield world.call("dls_ik/reset", Trigger.Request())
        world.ledger.check(answer.success, CARRIED_OUT, answer.message)


def _standstill(world: World, since: float) -> float | None:
    """The stamp of the first command at rest after a time [s]."""
    return next((c.time for c in world.commands.heard if c.time > since and not c.v.any()), None)


def _stands(world: World, since: float) -> bool:
    return _standstill(world, since) is not None
