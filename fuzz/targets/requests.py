"""Requests for IK and FK with anything in any field, answered as the node answers them."""

import math
from typing import Any

import numpy as np

from dls_ik.errors import DlsIkError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.services.ik import answer_fk, answer_ik
from fuzz.guard import Run
from fuzz.harness import find_harness
from fuzz.messages import changed
from fuzz.source import Source
from fuzz.targets.checks import require

find_harness()

from message_fuzz import GOOD, NAMES  # noqa: E402
from moveit_msgs.srv import GetPositionFK  # noqa: E402
from ros_arms import CURRENT, TREE, robot_and_parameters  # noqa: E402

SHORT = 2_000_000  # [ns] of the timeouts of requests


def build() -> Run:
    """Make the target, with the robot of the tests and solvers that have solved."""
    arm, frames = Arm(*robot_and_parameters()), Frames()

    def run(source: Source) -> None:
        good = source.pick(GOOD)
        is_fk = isinstance(good, GetPositionFK.Request)
        request = changed(source, good if is_fk else good.ik_request, (*NAMES, *CURRENT))
        try:
            if is_fk:
                answer_fk(request, arm, CURRENT, frames)
            else:
                _hurry(request)
                _check(answer_ik(request, arm, CURRENT, frames).response)
        except DlsIkError as error:
            require(0 < len(str(error)) < 20_000, "a message of length", len(str(error)))

    for byte in range(0, 256, 17):
        run(Source(bytes([byte]) * 64))
    return run


def _hurry(asked: Any) -> None:
    """Let a request take little time: one that takes as long as it asks for does not hang."""
    if asked.timeout.sec >= 0:
        asked.timeout.sec, asked.timeout.nanosec = 0, min(asked.timeout.nanosec or SHORT, SHORT)


def _check(response: object) -> None:
    """The state of an answer is finite, and inside the limits."""
    state = response.solution.joint_state  # type: ignore[attr-defined]
    require(np.isfinite(state.position).all(), "not finite", state)
    given = dict(zip(state.name, state.position, strict=True))
    for name, value in given.items():
        joint = TREE.joint[name]
        if name not in CURRENT or math.isclose(value, CURRENT[name]):
            continue
        require(math.isfinite(value), "not finite", joint.name)
