"""Tasks that change parameters, and read back what holds."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rcl_interfaces.srv import GetParameters, SetParametersAtomically
from rclpy.parameter import Parameter, parameter_value_to_python

from benchmarks.concurrency.tasks import Steps
from benchmarks.concurrency.world import World

PAUSE = 0.2  # [s] mean
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
        yield float(rng.exponential(PAUSE))
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
