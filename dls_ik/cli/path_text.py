"""What ``dls-ik path`` says of a trajectory."""

from __future__ import annotations

from typing import Any

import numpy as np

from dls_ik.cli.path_solving import missed, steps
from dls_ik.cli.tables import print_pairs, stdout_console
from dls_ik.cli.timing import FASTEST, speeds
from dls_ik.cli.trajectory import Trajectory
from dls_ik.core.types import Array
from dls_ik.plot.canvas import unit_of
from dls_ik.solver.result import Status


def summary(trajectory: Trajectory, jump: float) -> dict[str, Any]:
    """Figures of a trajectory as a document."""
    robot, places, q = trajectory.robot, trajectory.given.places, trajectory.q
    result, t = trajectory.result, trajectory.timing.t
    lost, far = missed(result), np.flatnonzero((steps(q) > jump).any(axis=1))
    share = speeds(robot, t, q)
    return {
        "robot": robot.name,
        "poses": len(places),
        "reached": len(places) - len(lost),
        "missed": [_missed(trajectory, int(i)) for i in lost],
        "position_error": float(result.position_error.max()),
        "rotation_error": float(result.rotation_error.max()),
        "largest_step": _extreme(trajectory, steps(q), largest=True),
        "nearest_limit": _extreme(
            trajectory, np.minimum(q - robot.lower, robot.upper - q), largest=False
        ),
        "jumps": [{"place": places[i], **_step(trajectory, int(i))} for i in far],
        "duration": float(t[-1] - t[0]),
        "times": trajectory.timing.source,
        "largest_share_of_velocity_limit": float(share.max(initial=0.0)),
        "too_fast": [places[i + 1] for i in np.flatnonzero(share > 1.0 + 1e-6)],
        "seconds_to_solve": result.duration,
    }


def _missed(trajectory: Trajectory, i: int) -> dict[str, Any]:
    result = trajectory.result
    return {
        "place": trajectory.given.places[i],
        "status": str(Status(int(result.status[i]))),
        "position_error": float(result.position_error[i]),
        "rotation_error": float(result.rotation_error[i]),
    }


def _extreme(trajectory: Trajectory, values: Array, largest: bool) -> dict[str, Any]:
    """The largest or the least of (b, n) values, and where it is."""
    i, j = np.unravel_index(values.argmax() if largest else values.argmin(), values.shape)
    name, place = trajectory.robot.joint_names[j], trajectory.given.places[i]
    unit = unit_of(trajectory.robot, int(j))
    return {"value": float(values[i, j]), "unit": unit, "joint": name, "place": place}


def _step(trajectory: Trajectory, i: int) -> dict[str, Any]:
    moved = steps(trajectory.q)[i]
    j = int(moved.argmax())
    name, unit = trajectory.robot.joint_names[j], unit_of(trajectory.robot, j)
    return {"joint": name, "change": float(moved[j]), "unit": unit}


def show_summary(facts: dict[str, Any], written: list[str]) -> None:
    """Print the summary for people."""
    step, room = facts["largest_step"], facts["nearest_limit"]
    free = not np.isfinite(room["value"])
    share = facts["largest_share_of_velocity_limit"]
    is_fastest = facts["times"] == FASTEST
    print_pairs(
        stdout_console(),
        [
            ("poses", f"{facts['poses']}, {facts['reached']} reached"),
            ("error", f"{facts['position_error']:.2g} m, {facts['rotation_error']:.2g} rad"),
            ("largest step", _shown(step)),
            ("nearest limit", "none" if free else _shown(room)),
            ("duration", f"{facts['duration']:.4g} s, {facts['times']}"),
            *([] if is_fastest else [("fastest", f"{100.0 * share:.3g} % of a velocity limit")]),
            *[("wrote", line) for line in written],
        ],
    )


def _shown(extreme: dict[str, Any]) -> str:
    where = f"{extreme['joint']}, {extreme['place']}"
    return f"{extreme['value']:.4g} {extreme['unit']} ({where})"


def complaints(facts: dict[str, Any], jump: float, most: int = 10) -> list[str]:
    """Lines for what a robot may not follow, at most so many of a kind."""
    far = [
        f"{each['place']}: {each['joint']} moves by {each['change']:.3g} {each['unit']}, more than "
        f"{jump:g}: the tip does not go straight there"
        for each in facts["jumps"]
    ]
    fast = [f"{place}: faster than a velocity limit" for place in facts["too_fast"]]
    return [*_some(far, most), *_some(fast, most)]


def reasons(facts: dict[str, Any], most: int = 10) -> list[str]:
    """Lines for the poses that are not reached."""
    return _some(
        [
            f"{each['place']}: {each['status']}, the nearest found is {each['position_error']:.3g} "
            f"m and {each['rotation_error']:.3g} rad off"
            for each in facts["missed"]
        ],
        most,
    )


def _some(lines: list[str], most: int) -> list[str]:
    if len(lines) <= most + 1:
        return lines
    return [*lines[:most], f"and {len(lines) - most} more such lines"]
