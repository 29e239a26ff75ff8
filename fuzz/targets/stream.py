"""Targets, joint states, stamps and orders in any order, through the cycle of the stream."""

from typing import Any

import numpy as np

from dls_ik.ros.frames import Frames
from dls_ik.ros.stream import joint_states
from dls_ik.ros.stream.cycle import Stream
from dls_ik.ros.stream.echo import Echo
from dls_ik.ros.stream.joint_states import JointStates
from dls_ik.ros.stream.targets import Arrival
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller
from fuzz.guard import Run
from fuzz.harness import find_harness
from fuzz.messages import changed
from fuzz.source import Source
from fuzz.targets.checks import require, require_inside

find_harness()

import pytest  # noqa: E402
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, TwistStamped  # noqa: E402
from ros_world import World  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

NAMES = ("joint1", "joint2", "base", "tip", "link1", "/base", "map", "")
ORDERS = (Controller.pause, Controller.resume, Controller.reset)
STEPS = (0.01, 0.01, 0.01, 0.005, 0.02, 0.3, 2.0)
CYCLES = 24
PARAMETERS: tuple[dict[str, Any], ...] = (
    {"when_stuck": "hold"},
    {"when_stuck": "hold", "feedback_mode": "required"},
    {"when_stuck": "hold", "feedback_mode": "none", "acceleration": [8.0]},
)


def build() -> Run:
    """Make the target: worlds whose clock only the input turns."""
    poses = [Pose() for _ in range(3)]
    for pose in poses:
        pose.position.x, pose.position.y, pose.orientation.w = 0.7, 0.5, 1.0
    good = (
        PoseStamped(pose=poses[0]),
        TwistStamped(),
        PoseArray(poses=poses),
        JointState(name=["joint1", "joint2"], position=[0.1, 0.2]),
    )
    with pytest.MonkeyPatch.context() as patch:
        worlds = [World(patch, **given) for given in PARAMETERS]

    def run(source: Source) -> None:
        world = source.pick(worlds)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(joint_states.time, "monotonic", lambda: world.now)
            _begin(world, bool(source.below(2)), bool(source.below(2)))
            for _ in range(CYCLES):
                if not source.has_more:
                    break
                _cycle(source, world, good)

    run(Source(bytes(range(256))))
    return run


def _begin(world: Any, shows: bool, shares: bool) -> None:
    """Another stream for the same arm, with nobody who publishes yet."""
    node = world.node
    node.publishers, node.listeners, node.lines = int(shares), [], []
    world.states = JointStates(node, Echo() if shares else None)
    log = Throttle(node, clock=lambda: world.now)
    world.stream = Stream(world.states, Frames(), log, shows, shares)
    world.arm.controller.reset()
    world.stream.use(world.arm)
    world.now = 1000.0


def _cycle(source: Source, world: Any, good: tuple[Any, ...]) -> None:
    dt = source.pick(STEPS)
    world.now += dt
    kind, arrival = source.below(8), None
    if kind < 4:
        message = changed(source, good[kind], NAMES) if source.below(2) else good[kind]
        if kind == 3:
            world.states.store(message)
        else:
            arrival = Arrival(message, world.now - source.pick((0.0, 0.004)), 1)
    elif kind == 4:
        world.stream.order(source.pick(ORDERS))
    elif kind == 5:
        world.add_driver([source.number(2.0), source.number(2.0)])
    stamp = source.pick((0, 1, 10**18, 2**62))
    outcome = world.stream.cycle(world.now, stamp, dt, arrival)
    require(outcome.words, "no words", outcome.state)
    if outcome.output is None:
        return
    robot, output = world.robot, outcome.output
    require(np.isfinite(output.q).all(), "not finite", output)
    fast = np.abs(output.velocity) > robot.velocity * (1.0 + 1e-6)
    require(not fast.any(), "too fast", output)
    if outcome.is_command and not world.states.values():
        require_inside(robot, output.q)
