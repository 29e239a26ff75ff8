"""A task that gives the node other robots, good and broken ones."""

import numpy as np
from std_msgs.msg import String

from benchmarks.concurrency.robots import broken_robots, good_robots
from benchmarks.concurrency.tasks import Steps
from benchmarks.concurrency.world import World
from dls_ik.ros.robot_source import QOS

PAUSE = 0.7  # [s] mean
BURST, BROKEN = 0.2, 0.25  # shares


def swap_robots(world: World, rng: np.random.Generator) -> Steps:
    """Send descriptions; wait until a good one is in force, or send others meanwhile."""
    publisher = world.node.create_publisher(String, "robot_description", QOS)
    good, broken = good_robots(), broken_robots()
    while True:
        count = int(rng.integers(2, 5)) if rng.random() < BURST else 1
        for _ in range(count):
            if rng.random() < BROKEN and world.history.sent:
                robot = broken[int(rng.integers(len(broken)))]
                world.ledger.done["broken robots"] += 1
            else:
                robot = good[int(rng.integers(len(good)))]
                world.ledger.done["robots"] += 1
            publisher.publish(String(data=world.history.send(robot)))
            if count > 1:
                yield float(rng.exponential(0.02))
        if robot.model is not None:  # a later one takes its place, but only this task sends them
            last = len(world.history.sent) - 1
            yield lambda last=last: world.history.last_ready >= last
        yield float(rng.exponential(PAUSE))
