# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Random events of a stream in a campaign, drawn from a seed.

Each kind of event has its own random numbers, so a run without some kinds is otherwise the same. A
failure can thus be reduced to the necessary kinds of events.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from geometry_msgs.msg import PoseArray, PoseStamped, TwistStamped

from benchmarks.composition_stream import ARMS, Settings, Stream, Thing, arm_model
from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.params import (
    JOINT_STATE,
    JOINT_TRAJECTORY,
    MODE_AUTO,
    MODE_NONE,
    MODE_REQUIRED,
    POSITION_ARRAY,
)
from dls_ik.scene.shapes import Box, Cylinder, Shape, Sphere
from dls_ik.servo import Controller
from dls_ik.solver.plugins import register_method

MAX_OBJECTS = 8
ALWAYS = ("pose", "resume", "appear")  # event kinds of every run
TRIES = 40  # maximum number of random configurations or places
PLUGIN, FAILING = "campaign_step", "campaign_failing_step"
METHODS = ("ctp+sd+svf", "svf", "jd", "odls", PLUGIN, FAILING)
SHARES = (0.4, 0.15, 0.15, 0.1, 0.15, 0.05)  # probabilities of METHODS


class Event(NamedTuple):
    """Kind of event."""

    act: Callable[[Stream, np.random.Generator], str]  # returns a description of the event
    interval: float  # mean number of cycles between events


def damped_step(J: Array, e: Array, state: Any) -> Array:
    """Return a damped least squares step, as a user's method."""
    step: Array = J.T @ np.linalg.solve(J @ J.T + 1e-3 * np.eye(len(J)), e)
    return step


def failing_step(J: Array, e: Array, state: Any) -> Array:
    """Return the step of `damped_step` near the target, and fail far from it."""
    if np.linalg.norm(e) > 0.5:
        raise ValueError("this plug-in fails far from the target")
    return damped_step(J, e, state)


def register_plugins() -> None:
    """Register the plug-ins of the campaign as methods of this process."""
    register_method(PLUGIN, damped_step)
    register_method(FAILING, failing_step)


# Draws


def draw_settings(rng: np.random.Generator, name: str) -> Settings:
    """Draw the read-only parameters of a node with an arm of ARMS."""
    types: list[tuple[tuple[str, ...], int]] = [
        ((JOINT_STATE,), 1),
        ((POSITION_ARRAY,), 1),
        ((JOINT_TRAJECTORY,), 1),
        ((JOINT_TRAJECTORY,), int(rng.choice([2, 10, 30]))),
        ((JOINT_TRAJECTORY, JOINT_STATE), 10),
    ]
    output_types, points = types[rng.integers(len(types))]
    acceleration = float(rng.choice([2.0, 5.0, 20.0]))
    is_jerky = bool(rng.random() < 0.35)
    if not is_jerky and rng.random() < 0.05:
        acceleration = math.inf
    feedback = str(rng.choice([MODE_NONE, MODE_AUTO, MODE_REQUIRED], p=[0.4, 0.4, 0.2]))
    return Settings(
        name,
        rate=float(rng.choice([50.0, 100.0, 250.0, 500.0], p=[0.2, 0.5, 0.15, 0.15])),
        acceleration=acceleration,
        jerk=acceleration * float(rng.choice([10.0, 50.0])) if is_jerky else 0.0,
        min_distance=float(rng.choice([0.005, 0.01, 0.02])),
        output_types=output_types,
        trajectory_points=points,
        feedback_mode=feedback,
        when_stuck=str(rng.choice(["hold", "joint_motion"], p=[0.97, 0.03])),
        lag=float(rng.choice([0.0, 0.02, 0.06])),
        noise=float(rng.choice([0.0, 1e-5, 1e-3])),
        plans_late=bool(rng.integers(2)),
    )


def draw_intervals(rng: np.random.Generator) -> dict[str, float]:
    """Draw the event kinds of a run, and the mean number of cycles between events of each kind.

    Runs with few frequent kinds reach states that a mixture of all kinds rarely reaches.
    """
    return {
        kind: max(2.0, event.interval * float(rng.choice([0.3, 1.0, 3.0])))
        for kind, event in EVENTS.items()
        if rng.random() < 0.6 or kind in ALWAYS
    }


def draw_start(
    name: str, rng: np.random.Generator, distance: float
) -> tuple[Array, dict[str, float]]:
    """Draw joint positions (n,) that keep a distance of links [m], and those of other joints."""
    from benchmarks.composition_stream import Surrounding

    model = arm_model(name)
    others = [j for j in model.robot.tree.mimic_of if j not in model.robot.joint_names]
    while True:
        values = {}
        for joint in others:
            limits = model.robot.tree.joint[joint]
            low, high = (x if np.isfinite(x) else 0.0 for x in (limits.lower, limits.upper))
            values[joint] = float(rng.uniform(low, high))
        world = Surrounding(model, values).world()
        for _ in range(TRIES):
            q = model.robot.random(rng=rng)
            if not world.least(q[None], np.full(len(world.pairs), distance + 2e-3)):
                return q, values


def draw_shape(rng: np.random.Generator) -> Shape:
    """Draw a wall, a box, a ball or a cylinder."""
    size = rng.uniform(0.05, 0.3, 3)
    if rng.random() < 0.3:
        return Box(np.append(rng.uniform(0.5, 1.2, 2), 0.05))
    shapes: tuple[Shape, ...] = (Box(size), Sphere(size[0] / 2), Cylinder(0.4 * size[0], size[1]))
    return shapes[rng.integers(3)]


def draw_place(
    stream: Stream, rng: np.random.Generator, shape: Shape, clear: float
) -> Array | None:
    """Draw a pose (4, 4) of a shape with at least a distance [m] to the arm, or return None."""
    tip = stream.robot.fk(stream.q)[:3, 3]
    for _ in range(TRIES):
        place = rng.uniform((-1.0, -1.0, -0.7), (1.0, 1.0, 1.3))
        if rng.random() < 0.5:
            place = tip + rng.normal(0.0, 0.25, 3)
        T = transform(rotation_from_rpy(*rng.uniform(-3.0, 3.0, 3)), place)
        world = stream.around.world({"new": Thing(shape, T)})
        limits = np.array(
            [clear if "new" in world.name(p) else -np.inf for p in range(len(world.pairs))]
        )
        if not world.near(stream.q[None], limits):
            return T
    return None


# Targets


def pose(stream: Stream, rng: np.random.Generator) -> str:
    """Send a single pose: anywhere, nearby, in an object, or beyond reach."""
    robot, kind = stream.robot, rng.random()
    T = robot.fk(robot.random(rng=rng))
    if kind < 0.6:
        T = robot.fk(stream.q)
        T[:3, 3] += toward(stream, rng)
    elif kind < 0.7:
        T = robot.fk(robot.clip(stream.q + rng.normal(0.0, 0.3, robot.n)))
    elif kind < 0.75:
        T[:3, 3] *= 3.0
    stream.message = PoseStamped(pose=pose_from_matrix(T))
    stream.streamed = T
    return f"target_pose {np.round(T[:3, 3], 3).tolist()}"


def toward(stream: Stream, rng: np.random.Generator) -> Array:
    """Return the vector (3,) from the tip to the centre of an object [m], or a random vector."""
    loose = [each for _, each in sorted(stream.around.things.items()) if not each.link]
    if not loose:
        return rng.normal(0.0, 0.3, 3)
    way: Array = loose[rng.integers(len(loose))].T[:3, 3] - stream.robot.fk(stream.q)[:3, 3]
    return way


def next_pose(stream: Stream, rng: np.random.Generator) -> str:
    """Send the next pose of a stream, close to the previous one."""
    T = getattr(stream, "streamed", None)
    if T is None or rng.random() < 0.01:
        T = stream.robot.fk(stream.q)
    T = T.copy()
    T[:3, 3] += rng.normal(0.0, 4e-3, 3)
    stream.streamed = T
    stream.message = PoseStamped(pose=pose_from_matrix(T))
    return ""


def twist(stream: Stream, rng: np.random.Generator) -> str:
    """Send a twist, along the axes of the root or of the tip."""
    V = rng.normal(0.0, rng.choice([0.1, 0.5, 2.0]), 6)
    message = TwistStamped()
    if rng.random() < 0.5:
        way = toward(stream, rng)
        V[:3], V[3:] = way * rng.uniform(0.2, 1.0) / (1e-3 + np.linalg.norm(way)), 0.0
    elif rng.random() < 0.3:
        message.header.frame_id = stream.robot.tip
    linear, angular = message.twist.linear, message.twist.angular
    linear.x, linear.y, linear.z, angular.x, angular.y, angular.z = map(float, V)
    stream.message = message
    return f"target_twist {np.round(V, 3).tolist()}"


def trajectory(stream: Stream, rng: np.random.Generator) -> str:
    """Send a trajectory of some poses near the arm."""
    robot, q = stream.robot, stream.q
    steps = np.cumsum(rng.normal(0.0, 0.1, (rng.integers(1, 6), robot.n)), axis=0)
    poses = [pose_from_matrix(robot.fk(robot.clip(q + step))) for step in steps]
    stream.message = PoseArray(poses=poses)
    return f"target_trajectory of {len(poses)} poses"


# Services and parameters


def pause(stream: Stream, rng: np.random.Generator) -> str:
    """Pause the stream."""
    stream.cycle.submit(Controller.pause)
    return "pause"


def resume(stream: Stream, rng: np.random.Generator) -> str:
    """Resume the stream, and sometimes clear a fault."""
    held = stream.controller.hold_reason
    if not held:
        return ""
    is_fault = "fault" in held
    stream.cycle.submit(Controller.reset if is_fault else Controller.resume)
    return "reset" if is_fault else "resume"


def reset(stream: Stream, rng: np.random.Generator) -> str:
    """Reset the stream."""
    stream.cycle.submit(Controller.reset)
    return "reset"


LIVE: dict[str, Callable[[np.random.Generator], Any]] = {
    "scale": lambda rng: float(rng.choice([0.0, 0.1, 0.5, 1.0], p=[0.05, 0.25, 0.3, 0.4])),
    "max_linear_speed": lambda rng: float(rng.choice([math.inf, 0.1, 0.3, 0.8])),
    "max_angular_speed": lambda rng: float(rng.choice([math.inf, 0.5, 1.5])),
    "stream_method": lambda rng: str(rng.choice(METHODS, p=SHARES)),
    "when_stuck": lambda rng: str(rng.choice(["hold", "joint_motion"], p=[0.8, 0.2])),
    "feed_forward": lambda rng: bool(rng.integers(2)),
    "bridge_time": lambda rng: float(rng.choice([0.0, 0.15])),
    "command_in_type": lambda rng: str(rng.choice(["speed_units", "unitless"])),
    "command_scale.linear": lambda rng: float(rng.choice([0.1, 0.4, 2.0])),
    "command_scale.rotational": lambda rng: float(rng.choice([0.2, 0.8, 4.0])),
    "command_scale.joint": lambda rng: float(rng.choice([0.1, 0.5, 2.0])),
    "target_timeout": lambda rng: float(rng.choice([0.05, 0.25, 1.0])),
    "when_stream_ends": lambda rng: str(rng.choice(["settle", "stop", "finish"])),
    "settle_distance": lambda rng: float(rng.choice([0.0, 0.05, 1.0])),
    "settle_angle": lambda rng: float(rng.choice([0.0, 0.2, 3.0])),
    "stamp_tolerance": lambda rng: float(rng.choice([0.05, 0.1])),
    "twist_lookahead": lambda rng: float(rng.choice([0.001, 0.005, 0.1])),
    "trajectory_period": lambda rng: float(rng.choice([0.02, 0.1, 0.5])),
    "position_tolerance": lambda rng: float(rng.choice([1e-6, 1e-4])),
    "rotation_tolerance": lambda rng: float(rng.choice([1e-6, 1e-3])),
    "rotation_weight": lambda rng: float(rng.choice([0.1, 0.3, 1.0])),
    "timeout": lambda rng: float(rng.choice([0.005, 0.05])),
    "solve_type": lambda rng: str(rng.choice(["speed", "distance"])),
    "random_seed": lambda rng: int(rng.integers(100)),
    "method_options.alpha": lambda rng: float(rng.choice([0.3, 1.0])),
    "method_options.lambda": lambda rng: float(rng.choice([0.01, 0.1])),
    "method_options.nu": lambda rng: float(rng.choice([1.0, 10.0])),
    "method_options.sigma0": lambda rng: float(rng.choice([0.01, 0.05])),
    "method_options.gamma_max": lambda rng: float(rng.choice([0.3, 0.8])),
    "method_options.margin": lambda rng: float(rng.choice([0.05, 0.2])),
    "method_options.mu": lambda rng: float(rng.choice([0.1, 0.5])),
    "method": lambda rng: str(rng.choice(["auto", "svf"])),
    "avoid_collisions": lambda rng: str(rng.choice(["request", "always"])),
    "group_name": lambda rng: [],
    "initial_positions": lambda rng: [],
    "free_axes": lambda rng: [[], ["rz"], ["x", "ry"]][rng.integers(3)],
    "swivel": lambda rng: [] if rng.random() < 0.3 else [float(rng.uniform(-3.0, 3.0))],
    "stream_objective": lambda rng: str(rng.choice(["", "manipulability", "limits", "centring"])),
}
# Live parameters with a value for each joint
OF_JOINTS: dict[str, Callable[[np.random.Generator, RobotModel], Any]] = {
    "posture": lambda rng, robot: robot.random(rng=rng).tolist() if rng.random() < 0.7 else [],
    "frozen_joints": lambda rng, robot: [name for name in robot.joint_names if rng.random() < 0.1],
    "joint_weights": lambda rng, robot: (
        rng.choice([1.0, 4.0, 100.0], robot.n).tolist() if rng.random() < 0.7 else []
    ),
}
RATHER = (
    "scale", "max_linear_speed", "max_angular_speed", "stream_method", "feed_forward", "swivel",
    "posture",
)  # fmt: skip


def change(stream: Stream, rng: np.random.Generator) -> str:
    """Change a live parameter."""
    names = RATHER if rng.random() < 0.6 else (*LIVE, *OF_JOINTS)
    name = names[rng.integers(len(names))]
    value = LIVE[name](rng) if name in LIVE else OF_JOINTS[name](rng, stream.robot)
    taken = stream.change({name: value})
    return f"{name}: {value}" if taken else ""


def slider(stream: Stream, rng: np.random.Generator) -> str:
    """Move a slider: change a parameter in each of several cycles."""
    stream.slider = int(rng.integers(5, 20)), int(rng.choice([1, 2, 5]))
    return "a slider is moved"


# Robot and scene


def describe(stream: Stream, rng: np.random.Generator) -> str:
    """Replace the robot by one with the same joints."""
    if not stream.has_taken_up:
        return ""
    velocity = float(rng.choice([2.0, 1.2]))
    stream.describe(velocity)
    return f"robot_description with velocity limits {velocity:g}"


def replace(stream: Stream, rng: np.random.Generator) -> str:
    """Replace the robot by one with other joints."""
    if not stream.has_taken_up or stream.settings.jerk:
        return ""
    names = [each for each in ARMS if each != stream.settings.name]
    name = names[rng.integers(len(names))]
    stream.change({key: [] for key in (*OF_JOINTS, "swivel")})  # they may not fit the new robot
    stream.replace(name, *draw_start(name, rng, stream.settings.min_distance))
    return f"robot_description of {name}"


def appear(stream: Stream, rng: np.random.Generator, clear: float | None = None) -> str:
    """Add an object, sometimes too close."""
    around = stream.around
    if not stream.has_taken_up or len(around.things) >= MAX_OBJECTS:
        return ""
    shape = draw_shape(rng)
    if clear is None:
        clear = 0.002 if rng.random() < 0.1 else stream.settings.min_distance + 5e-3
    T = draw_place(stream, rng, shape, clear)
    if T is None:
        return ""
    name = around.new_name()
    around.things[name] = Thing(shape, T)
    around.scene.add(name, shape, T)
    stream.scene_changed()
    return f"{name} appears at {np.round(T[:3, 3], 3).tolist()}"


def _loose(stream: Stream, rng: np.random.Generator) -> str:
    names = [name for name, each in sorted(stream.around.things.items()) if not each.link]
    return names[rng.integers(len(names))] if names and stream.has_taken_up else ""


def move(stream: Stream, rng: np.random.Generator) -> str:
    """Start moving an object, as on a conveyor."""
    name = _loose(stream, rng)
    if name:
        stream.conveyor = name, rng.normal(0.0, 3e-3, 3), int(rng.integers(2, 30))
    return f"{name} begins to move" if name else ""


def convey(stream: Stream) -> None:
    """Move the conveyed object by a step."""
    name, step, left = stream.conveyor
    around = stream.around
    thing = around.things.get(name)
    stream.conveyor = (name, step, left - 1) if left > 1 else None
    if thing is None or thing.link or not stream.has_taken_up:
        return
    T = thing.T.copy()
    T[:3, 3] += step
    around.things[name] = thing._replace(T=T)
    around.scene.move(name, T)
    stream.scene_changed()


def disappear(stream: Stream, rng: np.random.Generator) -> str:
    """Remove an object."""
    name = _loose(stream, rng)
    if not name:
        return ""
    del stream.around.things[name]
    stream.around.scene.remove(name)
    stream.scene_changed()
    return f"{name} disappears"


def attach(stream: Stream, rng: np.random.Generator) -> str:
    """Attach an object: a small ball in front of the tip."""
    around = stream.around
    if not stream.has_taken_up or any(each.link for each in around.things.values()):
        return ""
    robot = stream.robot
    chain = [joint.child for joint in robot.tree.path(robot.base, robot.tip)]
    bodied = [link for link in chain if link in {part.name for part in stream.model.parts}]
    link, touch = bodied[-1], frozenset(bodied[-3:])
    T_root_link = around.link_pose(link, stream.q)
    T = T_root_link @ transform(translation=np.array([0.0, 0.0, rng.uniform(0.05, 0.15)]))
    shape, name = Sphere(float(rng.uniform(0.02, 0.05))), around.new_name()
    thing = Thing(shape, np.linalg.inv(T_root_link) @ T, link, touch)
    world = around.world({name: thing})
    limit = stream.settings.min_distance
    near = world.near(stream.q[None], np.full(len(world.pairs), limit))
    if any(name in world.name(pair) for _, pair in near):
        return ""
    around.things[name] = thing
    around.scene.add(name, shape, T)
    around.scene.attach(name, link, touch, T=thing.T)
    stream.scene_changed()
    return f"{name} is attached to {link}"


def detach(stream: Stream, rng: np.random.Generator) -> str:
    """Detach an object, and keep it in the world or remove it."""
    around = stream.around
    held = [name for name, each in around.things.items() if each.link]
    if not held or not stream.has_taken_up:
        return ""
    name = held[0]
    thing = around.things.pop(name)
    around.scene.detach(name, q=stream.q)
    if rng.random() < 0.5:
        around.things[name] = Thing(thing.shape, around.link_pose(thing.link, stream.q) @ thing.T)
        around.scene.add(name, thing.shape, around.things[name].T)
    else:
        around.scene.remove(name)
    stream.scene_changed()
    return f"{name} is detached"


def beside(stream: Stream, rng: np.random.Generator) -> str:
    """Move the joints outside the chain, such as another arm."""
    around = stream.around
    if not around.values or not stream.has_taken_up:
        return ""
    values = {name: q + float(rng.normal(0.0, 0.02)) for name, q in around.values.items()}
    around.values = values
    around.scene.set_joints(values)
    stream.scene_changed()
    return "the other arm moves"


# Machine and driver


def late(stream: Stream, rng: np.random.Generator) -> str:
    """Delay the next cycle: slightly, by several periods, or by a second."""
    stream.delay = 1.0 + float(10.0 ** rng.uniform(-1.0, 2.0 if rng.random() < 0.1 else 0.6))
    return f"a cycle {stream.delay:.3g} periods after the one before"


def missed(stream: Stream, rng: np.random.Generator) -> str:
    """Delay the command of the next cycle until it is too late to be published."""
    stream.lateness = 2.0
    return "a command comes too late"


def dropout(stream: Stream, rng: np.random.Generator) -> str:
    """Lose the joint states for some cycles."""
    stream.dropout = int(rng.integers(1, 80))
    return f"no joint states for {stream.dropout} cycles"


def push(stream: Stream, rng: np.random.Generator) -> str:
    """Move the arm by hand while it follows no commands."""
    if not stream.is_free:
        return ""
    stream.push(stream.robot.clip(stream.arm_q + rng.normal(0.0, 0.03, len(stream.arm_q))))
    return "the arm is pushed"


EVENTS: dict[str, Event] = {
    "pose": Event(pose, 80.0),
    "next_pose": Event(next_pose, 6.0),
    "twist": Event(twist, 120.0),
    "trajectory": Event(trajectory, 700.0),
    "pause": Event(pause, 900.0),
    "resume": Event(resume, 60.0),
    "reset": Event(reset, 1200.0),
    "change": Event(change, 200.0),
    "slider": Event(slider, 600.0),
    "describe": Event(describe, 900.0),
    "replace": Event(replace, 6000.0),
    "appear": Event(appear, 200.0),
    "move": Event(move, 500.0),
    "disappear": Event(disappear, 400.0),
    "attach": Event(attach, 800.0),
    "detach": Event(detach, 500.0),
    "beside": Event(beside, 200.0),
    "late": Event(late, 60.0),
    "missed": Event(missed, 300.0),
    "dropout": Event(dropout, 800.0),
    "push": Event(push, 400.0),
}
