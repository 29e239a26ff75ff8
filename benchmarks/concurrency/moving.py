"""Tasks that send targets, and joint states as a driver does."""

import time
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped
from sensor_msgs.msg import JointState

from benchmarks.concurrency.tasks import Steps
from benchmarks.concurrency.world import DRIVER, World
from dls_ik import RobotModel
from dls_ik.ros.frames import pose_from_matrix

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
