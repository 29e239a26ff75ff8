"""The node: parameters, requests for IK and FK, and messages of a stream with any field changed."""

import math
import sys
from array import array
from copy import deepcopy
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import DECLARED, Parameters
from dls_ik.ros.services.server import answer_fk
from dls_ik.ros.servo import state_monitor
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor, Echo
from dls_ik.ros.servo.targets import Arrival
from dls_ik.ros.sim_arm.arm import SimArmParameters
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller
from fuzz.guard import Run, refusals, require, require_inside
from fuzz.source import WHOLE, Source, anything, numbers
from fuzz.targets.solving import PARTS, PLANAR, method_name

TEST = Path(__file__).resolve().parents[2] / "test"
sys.path += [str(TEST / "ros"), str(TEST)]  # requests and surroundings of the tests

import pytest  # noqa: E402
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, TwistStamped  # noqa: E402
from moveit_msgs.srv import GetPositionFK  # noqa: E402
from ros_arms import CURRENT, GOOD, NAMES, TREE, robot_and_parameters  # noqa: E402
from ros_requests import answer_ik  # noqa: E402
from ros_world import World  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

# Parameters

FURTHER = ("group.a.tip", "group.a.base", "group.a.method", "group.a.timeout", "group.", "x")
LISTS = ("a", "a,b", "wam_link4", "joint_state", "joint_trajectory,position_array", "", "a,a")


def build_parameters() -> Run:
    """Return the target of parameters: any name with any value that ROS may set."""

    def run(source: Source) -> None:
        with refusals():
            kind = Parameters if source.below(8) else SimArmParameters
            given = {_parameter(source): _value(source) for _ in range(1 + source.below(4))}
            if source.one_in(8):
                given["groups"] = source.pick(LISTS)
            parameters = kind().changed(given)
            if source.one_in(128) and isinstance(parameters, Parameters):
                Arm(PLANAR, parameters).controller.cycle(1.0, 0.01)

    return run


def _parameter(source: Source) -> str:
    return source.pick((*DECLARED, *FURTHER))


def _value(source: Source) -> Any:
    """Draw a value such as ROS sends, or anything."""
    kind = source.below(8)
    if kind == 0:
        return bool(source.below(2))
    if kind == 1:
        return source.below(256) - 8
    if kind == 2:
        return source.number()
    if kind == 3:
        return source.pick((*LISTS, *PARTS, "auto", "required", "refuse", "hold"))
    if kind == 4:
        return array("d", numbers(source, source.below(9)))
    if kind == 5:
        return [source.pick(LISTS) for _ in range(source.below(4))]
    if kind == 6:
        return method_name(source)
    return anything(source)


# Messages

SIZES = (0, 1, 2, 3, 7, 14, 100)
# Times that are short, or refused: longer ones would be waited for.
SECONDS = (0, -1, -(2**31), 0, 0, 1)
NANOSECONDS = (0, 1, 1000, 999_999_999, 2**32 - 1)
DEPTH = 6


def changed(source: Source, message: Any, names: tuple[str, ...]) -> Any:
    """Return a copy with one to four fields changed; `names` are likely strings."""
    message = deepcopy(message)
    for _ in range(1 + source.below(4)):
        change(source, message, names, DEPTH)
    return message


def change(source: Source, message: Any, names: tuple[str, ...], depth: int) -> None:
    """Change one field, or a field of a message within."""
    kinds = message.get_fields_and_field_types()
    name = source.pick(sorted(kinds))
    setattr(message, name, _field(source, kinds[name], getattr(message, name), names, depth))


def _field(source: Source, kind: str, now: Any, names: tuple[str, ...], depth: int) -> Any:
    if kind.startswith("sequence<"):
        item, _, bound = kind[9:-1].partition(", ")
        return _items(source, item, now, names, depth)[: int(bound or 2**31)]
    if kind.endswith("]"):
        return now
    if "/" in kind:
        return _nested(source, deepcopy(now), names, depth)
    return _scalar(source, kind, names)


def _nested(source: Source, message: Any, names: tuple[str, ...], depth: int) -> Any:
    if type(message).__name__ == "Duration":
        message.sec, message.nanosec = source.pick(SECONDS), source.pick(NANOSECONDS)
    elif depth:
        for _ in range(1 + source.below(2)):
            change(source, message, names, depth - 1)
    return message


def _items(source: Source, kind: str, now: Any, names: tuple[str, ...], depth: int) -> Any:
    """Change the length of a list, or an item in it."""
    now = list(now)
    if "/" in kind:
        fresh = _nested(source, deepcopy(now[0]) if now else _message(kind), names, depth)
    else:
        fresh = _scalar(source, kind, names)
    if now and source.below(2):
        now[source.below(len(now))] = fresh
        return _packed(kind, now)
    size = source.pick(SIZES if depth == DEPTH else SIZES[:4])
    return _packed(kind, [fresh] * size)


def _packed(kind: str, items: list[Any]) -> Any:
    return array("d", items) if kind == "double" else items


def _message(kind: str) -> Any:
    package, _, name = kind.partition("/")
    return getattr(import_module(f"{package}.msg"), name)()


def _scalar(source: Source, kind: str, names: tuple[str, ...]) -> Any:
    if kind == "string":
        return source.pick(names) if source.below(2) else source.word().replace("\0", "")
    if kind == "double":
        return source.number(3.0)
    if kind == "float":
        return float(np.float32(source.unit())) if source.below(4) else source.pick((0.0, math.inf))
    if kind == "boolean":
        return bool(source.below(2))
    if kind in ("octet", "byte"):
        return source.take(1)
    bits = int(kind.lstrip("uint"))
    low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
    known = [each for each in WHOLE if low <= each < low + 2**bits]
    return source.pick(known) if source.below(2) else low + source.below(256)


# Requests

TIMEOUT = 2_000_000  # [ns] at most


def build_requests() -> Run:
    """Return the target of requests, with the robot of the tests and kernels loaded."""
    arm, frames = Arm(*robot_and_parameters()), Frames()

    def run(source: Source) -> None:
        good = source.pick(GOOD)
        is_fk = isinstance(good, GetPositionFK.Request)
        request = changed(source, good if is_fk else good.ik_request, (*NAMES, *CURRENT))
        with refusals():
            if is_fk:
                answer_fk(request, arm, CURRENT, frames)
            else:
                _limit_timeout(request)
                _check_state(answer_ik(request, arm, CURRENT, frames).response)

    for byte in range(0, 256, 17):
        run(Source(bytes([byte]) * 64))
    return run


def _limit_timeout(request: Any) -> None:
    """Shorten the timeout of a request, which may be long without being a defect."""
    timeout = request.timeout
    if timeout.sec >= 0:
        timeout.sec, timeout.nanosec = 0, min(timeout.nanosec or TIMEOUT, TIMEOUT)


def _check_state(response: object) -> None:
    """Require a finite state in an answer."""
    state = response.solution.joint_state  # type: ignore[attr-defined]
    require(np.isfinite(state.position).all(), "not finite", state)
    given = dict(zip(state.name, state.position, strict=True))
    for name, value in given.items():
        joint = TREE.joint[name]
        if name not in CURRENT or math.isclose(value, CURRENT[name]):
            continue
        require(math.isfinite(value), "not finite", joint.name)


# Stream

STREAM_NAMES = ("joint1", "joint2", "base", "tip", "link1", "/base", "map", "")
COMMANDS = (Controller.pause, Controller.resume, Controller.reset)
STEPS = (0.01, 0.01, 0.01, 0.005, 0.02, 0.3, 2.0)
CYCLES = 24
WORLDS: tuple[dict[str, Any], ...] = (
    {"when_stuck": "hold"},
    {"when_stuck": "hold", "feedback_mode": "required"},
    {"when_stuck": "hold", "feedback_mode": "none", "acceleration": [8.0]},
)


def build_stream() -> Run:
    """Return the target of targets, joint states, stamps and commands, by a clock of the input."""
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
        worlds = [World(patch, **given) for given in WORLDS]

    def run(source: Source) -> None:
        world = source.pick(worlds)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(state_monitor.time, "monotonic", lambda: world.now)
            _begin(world, bool(source.below(2)), bool(source.below(2)))
            for _ in range(CYCLES):
                if not source.has_more:
                    break
                _cycle(source, world, good)

    run(Source(bytes(range(256))))
    return run


def _begin(world: Any, display_only: bool, shares: bool) -> None:
    """Make a new stream for the same arm, without publishers."""
    node = world.node
    node.publishers, node.listeners, node.lines = int(shares), [], []
    world.states = CurrentStateMonitor(node, Echo() if shares else None, display_only)
    log = Throttle(node, clock=lambda: world.now)
    world.stream = ServoCycle(world.states, Frames(), log, display_only)
    world.arm.controller.reset()
    world.stream.use(world.arm)
    world.now = 1000.0


def _cycle(source: Source, world: Any, good: tuple[Any, ...]) -> None:
    dt = source.pick(STEPS)
    world.now += dt
    kind, arrival = source.below(8), None
    if kind < 4:
        message = changed(source, good[kind], STREAM_NAMES) if source.below(2) else good[kind]
        if kind == 3:
            world.states.store(message)
        else:
            arrival = Arrival(message, world.now - source.pick((0.0, 0.004)), 1)
    elif kind == 4:
        world.stream.submit(source.pick(COMMANDS))
    elif kind == 5:
        world.add_driver([source.number(2.0), source.number(2.0)])
    stamp = source.pick((0, 1, 10**18, 2**62))
    outcome = world.stream.run(world.now, stamp, dt, arrival)
    require(outcome.message, "no words", outcome.state)
    if outcome.output is None:
        return
    robot, output = world.robot, outcome.output
    require(np.isfinite(output.q).all(), "not finite", output)
    fast = np.abs(output.velocity) > robot.velocity * (1.0 + 1e-6)
    require(not fast.any(), "too fast", output)
    if outcome.is_command and not world.states.values():
        require_inside(robot, output.q)
