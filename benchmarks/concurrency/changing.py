"""Tasks that change the node: parameters, robots, targets, drivers, pause and reset."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from std_srvs.srv import SetBool, Trigger

from benchmarks.concurrency.robots import broken_robots, good_robots
from benchmarks.concurrency.world import DRIVER, Steps, World
from dls_ik import RobotModel
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.robot_source import QOS

# Parameters

BETWEEN_CHANGES, BETWEEN_ROBOTS = 0.2, 0.7  # [s] mean
ANSWERED, HOLDS = "a change is taken or refused as it must be", "a parameter is what was taken last"
GOOD: tuple[Mapping[str, Sequence[Any]], ...] = (
    {
        "method": ["auto", "auto", "svf+sd", "sdls"],
        "timeout": [0.02, 0.05, 0.1],
        "position_tolerance": [1e-6, 1e-5, 1e-4],
        "rotation_tolerance": [1e-6, 1e-5, 1e-4],
        "solve_type": ["speed", "speed", "distance"],
        "random_seed": [0, 1, 7],
        "margin": [0.05, 0.1],
        "avoid_collisions": ["ignore", "ignore", "refuse"],
        "group_name": ["", "", "arm"],
    },
    {
        "stream_method": ["ctp+sd+svf", "svf+sd", "sdls"],
        "when_stuck": ["joint_motion", "hold"],
        "feed_forward": [True, False],
        "target_timeout": [0.1, 0.25, 0.5],
        "stamp_tolerance": [0.1, 1.0],
        "twist_lookahead": [0.005, 0.02],
        "trajectory_period": [0.05, 0.1],
        "mu": [0.1, 0.2],
        "gamma_max": [0.5, 0.8],
    },
)
BAD: tuple[Mapping[str, Sequence[Any]], ...] = (
    {
        "method": ["nope", "", 3],
        "timeout": [-1.0, math.nan, "long"],
        "position_tolerance": [0.0, math.inf],
        "random_seed": [-5, 0.5],
        "avoid_collisions": ["perhaps"],
        "solve_type": ["nearest"],
        "rate": [50.0],
        "robot": ["puma560"],
        "no_such_parameter": [1.0],
    },
    {
        "stream_method": ["nope", "kdl_nr"],
        "when_stuck": ["panic"],
        "feed_forward": ["yes"],
        "target_timeout": [0.0],
        "twist_lookahead": [math.inf],
        "acceleration": [[4.0]],
        "feedback_mode": ["none"],
        "base": ["elsewhere"],
    },
)


def change(world: World, rng: np.random.Generator, part: int) -> Steps:
    """Change some of a part of the parameters; nobody else changes those."""
    names = list(GOOD[part])
    truth: dict[str, Any] = {}
    yield 0.1
    response = yield world.call("dls_ik/get_parameters", GetParameters.Request(names=names))
    truth.update(zip(names, map(parameter_value_to_python, response.values), strict=True))
    while True:
        yield float(rng.exponential(BETWEEN_CHANGES))
        changes = _some(rng, GOOD[part])
        is_good = rng.random() < 0.6
        if not is_good:
            bad = _some(rng, BAD[part], most=1)
            if part and rng.random() < 0.2:
                bad = {"stream_method": "svf+sd", "nu": 1e-9}  # which do not go together
            changes = {**changes, **bad} if rng.random() < 0.5 else {**bad, **changes, **bad}
        world.ledger.done["good changes" if is_good else "bad changes"] += 1
        request = SetParametersAtomically.Request(
            parameters=[Parameter(n, value=v).to_parameter_msg() for n, v in changes.items()]
        )
        call = world.call("dls_ik/set_parameters_atomically", request, f"the change {changes}")
        result = (yield call).result
        world.ledger.check(result.successful == is_good, ANSWERED, f"{changes}: {result.reason}")
        if result.successful:
            truth.update(changes)
        response = yield world.call("dls_ik/get_parameters", GetParameters.Request(names=names))
        found = dict(zip(names, map(parameter_value_to_python, response.values), strict=True))
        wrong = {n: (found[n], truth[n]) for n in names if found[n] != truth[n]}
        world.ledger.check(not wrong, HOLDS, f"(found, taken) {wrong} after {changes}")


def _some(rng: np.random.Generator, of: Mapping[str, Sequence[Any]], most: int = 3) -> dict:
    """Some parameters, and a value for each."""
    count = int(rng.integers(1, most + 1))
    names = [list(of)[i] for i in rng.choice(len(of), count, replace=False)]
    return {name: of[name][int(rng.integers(len(of[name])))] for name in names}


# Robots

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
        yield float(rng.exponential(BETWEEN_ROBOTS))


# Targets and drivers

PERIOD = 0.03  # [s] between targets, and between messages of the driver
KINDS = {"target_pose": PoseStamped, "target_twist": TwistStamped, "target_trajectory": PoseArray}


def send_targets(world: World, rng: np.random.Generator) -> Steps:
    """Streams of poses and twists, single trajectories, nonsense, and silence."""
    publishers = {t: world.node.create_publisher(k, t, 1) for t, k in KINDS.items()}
    yield lambda: world.history.model is not None
    while True:
        kind = str(rng.choice([*KINDS, "nonsense", "silence"], p=[0.45, 0.2, 0.15, 0.1, 0.1]))
        robot = world.history.model
        assert robot is not None  # noqa: S101
        make = _maker(kind, robot, rng)
        for k in range(1 if kind == "target_trajectory" else int(rng.integers(1, 40))):
            message = make(k * PERIOD)
            if message is not None:
                topic = next(t for t, each in KINDS.items() if isinstance(message, each))
                publishers[topic].publish(message)
                world.ledger.done[f"{kind} sent"] += 1
            yield PERIOD


def _maker(kind: str, robot: RobotModel, rng: np.random.Generator) -> Any:
    """A function of time that makes messages of a kind, for a robot that may be replaced soon."""
    middle = 0.5 * (robot.random(rng) + robot.clip(np.zeros(robot.n)))
    swing, speed = 0.3 * rng.standard_normal(robot.n), rng.uniform(1.0, 4.0)

    def pose(t: float) -> Any:
        return pose_from_matrix(robot.fk(robot.clip(middle + swing * np.sin(speed * t))))

    if kind == "target_pose":
        return lambda t: PoseStamped(pose=pose(t))
    if kind == "target_trajectory":
        return lambda _: PoseArray(poses=[pose(0.1 * k) for k in range(10)])
    if kind == "target_twist":
        V = 0.2 * rng.standard_normal(6)
        frame = str(rng.choice(["", robot.tip, robot.base]))
        return lambda _: _twist(V, frame)
    if kind == "nonsense":
        frame = str(rng.choice(["nowhere", ""]))
        return lambda _: _nonsense(frame)
    return lambda _: None


def _twist(V: np.ndarray, frame: str) -> TwistStamped:
    message = TwistStamped()
    message.header.frame_id = frame
    v, w = message.twist.linear, message.twist.angular
    v.x, v.y, v.z, w.x, w.y, w.z = V.tolist()
    return message


def _nonsense(frame: str) -> PoseStamped:
    message = PoseStamped()
    message.header.frame_id = frame
    message.pose.position.x = np.nan
    return message


def drive(world: World, rng: np.random.Generator) -> Steps:
    """A driver that comes and goes; it says that the arm is where the newest command has it."""
    yield lambda: world.commands.last is not None
    while True:
        yield float(rng.exponential(4.0))
        publisher = world.node.create_publisher(JointState, "joint_states", 10)
        world.ledger.done["drivers"] += 1
        end = time.monotonic() + rng.exponential(3.0)
        while time.monotonic() < end:
            command = world.commands.last
            assert command is not None  # noqa: S101
            message = JointState(name=command.names, position=command.q)
            message.header.frame_id = DRIVER
            message.header.stamp = world.node.get_clock().now().to_msg()
            world.commands.measured.append((command.names, command.q))
            publisher.publish(message)
            yield PERIOD
        world.node.destroy_publisher(publisher)


# Pause and reset

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
