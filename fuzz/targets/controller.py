"""The controller: targets, measurements, pauses, bad input and jumps of time in any order."""

from typing import Any

import numpy as np

from dls_ik import RobotModel
from dls_ik.servo import Controller
from fuzz.guard import Run, refusals, require
from fuzz.source import Source, anything, numbers
from fuzz.targets.solving import PLANAR, WAM, configuration, pose

STEPS = (0.01, 0.01, 0.002, 1e-6, 0.3, 10.0, 1e6)
TIMES = (0.0, 0.01, 1.0, -1.0, 1e9)  # added to the time; the last one is another clock
OPERATIONS = 32
KINDS: tuple[tuple[RobotModel, dict[str, Any]], ...] = (
    (WAM, {"when_stuck": "hold"}),
    (WAM, {"when_stuck": "hold", "acceleration": 8.0, "supervised": True}),
    (PLANAR, {"when_stuck": "hold", "acceleration": 4.0, "feed_forward": True}),
    (PLANAR, {"when_stuck": "joint_motion"}),
)


def build_controller() -> Run:
    """Return the target; controllers are reset for each input."""
    controllers = [Controller(robot, **options) for robot, options in KINDS]

    def run(source: Source) -> None:
        controller = source.pick(controllers)
        controller.reset()
        controller.seed(controller.robot.clip(np.zeros(controller.robot.n)))
        now = 100.0
        for _ in range(OPERATIONS):
            if not source.has_more:
                break
            now = _operate(source, controller, now)

    for byte in range(0, 256, 5):
        run(Source(bytes([byte]) * 64))
    return run


def _operate(source: Source, controller: Controller, now: float) -> float:
    kind = source.below(12)
    with refusals():
        if kind < 6:
            return _cycle(source, controller, now)
        _tell(source, controller, kind, now)
    return now


def _cycle(source: Source, controller: Controller, now: float) -> float:
    robot, before = controller.robot, controller.command
    dt = source.pick(STEPS)
    now += source.pick(TIMES) if source.one_in(16) else dt
    measured = configuration(source, robot) if source.one_in(4) else None
    if source.one_in(32):
        controller.cycle(anything(source), anything(source), measured)
    output = controller.cycle(now, dt, measured)
    require(np.isfinite(output.q).all() and np.isfinite(output.velocity).all(), "not finite")
    slow = np.abs(output.velocity) <= robot.velocity * (1.0 + 1e-6) + 1e-9
    require(slow.all(), "too fast", output.velocity)
    known = np.array([before, before if measured is None else robot.validated(measured)])
    low, high = np.minimum(robot.lower, known.min(0)), np.maximum(robot.upper, known.max(0))
    require(((output.q >= low) & (output.q <= high)).all(), "beyond the limits", output.q)
    return now


def _tell(source: Source, controller: Controller, kind: int, now: float) -> None:
    robot = controller.robot
    age = source.pick((0.0, 0.0, 0.1, -0.05, 10.0, source.number()))
    if kind == 6:
        controller.follow_pose(pose(source, robot), now, age)
    elif kind == 7:
        R = anything(source) if source.one_in(8) else source.pick((None, np.eye(3)))
        V = anything(source) if source.one_in(8) else numbers(source, 6, 0.5)
        controller.follow_twist(V, now, R, age)
    elif kind == 8:
        Ts = anything(source) if source.one_in(8) else [pose(source, robot) for _ in range(3)]
        controller.follow_trajectory(Ts, source.pick((0.1, 0.001, source.number())), now, age)
    elif kind == 9:
        source.pick((controller.pause, controller.resume, controller.reset))()
    elif kind == 10:
        controller.refuse(source.word())
    else:
        controller.seed(robot.clip(np.zeros(robot.n)) + numbers(source, robot.n, 0.1))
