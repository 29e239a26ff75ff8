# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of the node: parameters, IK and FK requests, and stream messages with changed fields."""

import math
import sys
from array import array
from collections.abc import Callable
from copy import deepcopy
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np

from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params import DECLARED, Parameters
from dls_ik.ros.services.answers import answer_fk
from dls_ik.ros.servo import state_monitor
from dls_ik.ros.servo.cycle import ServoCycle
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor, Echo
from dls_ik.ros.servo.target_buffer import Arrival
from dls_ik.ros.sim_arm.arm import SimArmParameters
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller
from fuzz.guard import ROOT, refusals, require, require_inside
from fuzz.source import WHOLE, Source, anything, numbers
from fuzz.targets.solving import PARTS, PLANAR, method_name, require_slow

sys.path += [  # requests and worlds of the tests
    folder for folder in (f"{ROOT}/test/ros", f"{ROOT}/test") if folder not in sys.path
]

import pytest
from geometry_msgs.msg import Pose, PoseArray, PoseStamped, TwistStamped
from moveit_msgs.srv import GetPositionFK
from ros_arms import CURRENT, GOOD, NAMES, TREE, robot_and_parameters
from ros_requests import answer_ik
from ros_world import World
from sensor_msgs.msg import JointState

# Parameters

FURTHER = ("group.a.tip", "group.a.base", "group.a.method", "group.a.timeout", "group.", "x")
LISTS = ("a", "a,b", "wam_link4", "joint_state", "joint_trajectory,position_array", "", "a,a")
VALUES: tuple[Callable[[Source], Any], ...] = (  # such as ROS sends, and any
    lambda source: bool(source.below(2)),
    lambda source: source.below(256) - 8,
    lambda source: source.number(),
    lambda source: source.pick((*LISTS, *PARTS, "auto", "required", "refuse", "hold")),
    lambda source: array("d", numbers(source, source.below(9))),
    lambda source: [source.pick(LISTS) for _ in range(source.below(4))],
    method_name,
    anything,
)


def fuzz_parameters(source: Source) -> None:
    """Set parameters to values that ROS may send, and sometimes create an arm with them."""
    names = [source.pick((*DECLARED, *FURTHER)) for _ in range(1 + source.below(4))]
    given = {name: source.pick(VALUES)(source) for name in names}
    if source.one_in(8):
        given["groups"] = source.pick(LISTS)
    with refusals():
        parameters = (Parameters if source.below(8) else SimArmParameters)().changed(given)
        if source.one_in(128) and isinstance(parameters, Parameters):
            Arm(PLANAR, parameters).controller.cycle(1.0, 0.01)


# Messages

SIZES = (0, 1, 2, 3, 7, 14, 100)
# Times that are short, or refused: longer ones would be waited for.
SECONDS = (0, -1, -(2**31), 0, 0, 1)
NANOSECONDS = (0, 1, 1000, 999_999_999, 2**32 - 1)
DEPTH = 6


def changed(source: Source, message: Any, names: tuple[str, ...], depth: int = DEPTH) -> Any:
    """Return a copy with one to four changed fields at any depth; `names` are frequent strings."""
    message = deepcopy(message)
    if type(message).__name__ == "Duration":
        message.sec, message.nanosec = source.pick(SECONDS), source.pick(NANOSECONDS)
        return message
    kinds = message.get_fields_and_field_types()
    for _ in range(1 + source.below(4 if depth == DEPTH else 2)):
        name = source.pick(sorted(kinds))
        setattr(message, name, _field(source, kinds[name], getattr(message, name), names, depth))
    return message


def _field(source: Source, kind: str, now: Any, names: tuple[str, ...], depth: int) -> Any:
    if kind.startswith("sequence<"):
        item, _, bound = kind[9:-1].partition(", ")
        items = _items(source, item, list(now), names, depth)[: int(bound or 2**31)]
        return array("d", items) if item == "double" else items
    if kind.endswith("]") or ("/" in kind and depth == 0):
        return now
    return changed(source, now, names, depth - 1) if "/" in kind else _scalar(source, kind, names)


def _items(
    source: Source, kind: str, now: list[Any], names: tuple[str, ...], depth: int
) -> list[Any]:
    """Change the length of a list, or an item in it."""
    package, _, name = kind.partition("/")
    first = now[0] if now else name and getattr(import_module(f"{package}.msg"), name)()
    fresh = _field(source, kind, first, names, depth)
    if now and source.below(2):
        now[source.below(len(now))] = fresh
        return now
    return [fresh] * source.pick(SIZES if depth == DEPTH else SIZES[:4])


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


@cache
def arm() -> Arm:
    """Return the arm of the tests."""
    return Arm(*robot_and_parameters())


def fuzz_requests(source: Source) -> None:
    """Answer a request for IK or FK, and require finite values of known joints."""
    good = source.pick(GOOD)
    is_fk = isinstance(good, GetPositionFK.Request)
    request = changed(source, good if is_fk else good.ik_request, (*NAMES, *CURRENT))
    with refusals():
        if is_fk:
            answer_fk(request, arm(), CURRENT, Frames())
            return
        timeout = request.timeout
        if timeout.sec >= 0:  # a long one is no defect
            timeout.sec, timeout.nanosec = 0, min(timeout.nanosec or TIMEOUT, TIMEOUT)
        state = answer_ik(request, arm(), CURRENT, Frames()).response.solution.joint_state
        require(np.isfinite(state.position).all(), "not finite", state)
        require(len(state.name) == len(state.position), "names and values", state)
        require({*state.name} <= {*TREE.joint}, "unknown joints", state.name)


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
POSE = Pose()
POSE.position.x, POSE.position.y, POSE.orientation.w = 0.7, 0.5, 1.0
MESSAGES = (
    PoseStamped(pose=POSE),
    TwistStamped(),
    PoseArray(poses=[POSE] * 3),
    JointState(name=["joint1", "joint2"], position=[0.1, 0.2]),
)


@cache
def worlds() -> list[Any]:
    """Return the surroundings of streams."""
    with pytest.MonkeyPatch.context() as patch:
        return [World(patch, **given) for given in WORLDS]


def fuzz_stream(source: Source) -> None:
    """Send targets, joint states, stamps and commands at times drawn from the input."""
    world = source.pick(worlds())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_monitor.time, "monotonic", lambda: world.now)
        _begin(world, bool(source.below(2)), bool(source.below(2)))
        for _ in range(CYCLES):
            if not source.has_more:
                break
            _cycle(source, world)


def _begin(world: Any, display_only: bool, shares: bool) -> None:
    """Create a new stream for the same arm, without publishers."""
    node = world.node
    node.publishers, node.listeners, node.lines = int(shares), [], []
    world.states = CurrentStateMonitor(node, Echo() if shares else None, display_only)
    log = Throttle(node, clock=lambda: world.now)
    world.stream = ServoCycle(world.states, Frames(), log, display_only)
    world.arm.controller.reset()
    world.stream.use(world.arm)
    world.now = 1000.0


def _cycle(source: Source, world: Any) -> None:
    dt = source.pick(STEPS)
    world.now += dt
    kind, arrival = source.below(8), None
    if kind < 4:
        message = MESSAGES[kind]
        message = changed(source, message, STREAM_NAMES) if source.below(2) else message
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
    require_slow(world.robot, outcome.output)
    if outcome.is_command and not world.states.values():
        require_inside(world.robot, outcome.output.q)
