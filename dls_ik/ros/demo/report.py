"""Every figure that is printed, for programs."""

import json
import math
from pathlib import Path
from typing import Any

from dls_ik.ros.demo.ask import Answer
from dls_ik.ros.demo.load import Load
from dls_ik.ros.demo.messages import code_name
from dls_ik.ros.demo.tracking import JointUse, Spread, Tracking
from dls_ik.ros.demo.verdict import Criterion, has_passed


def save_report(
    file: Path,
    answers: list[Answer],
    tracking: Tracking,
    uses: list[JointUse],
    criteria: list[Criterion],
    load: Load,
) -> None:
    """Write them as JSON, in SI units; what is not a number is null."""
    report = {
        "passed": has_passed(criteria),
        "load": {**load._asdict(), "is_busy": load.is_busy},
        "criteria": [criterion._asdict() for criterion in criteria],
        "answers": [_answer(answer) for answer in answers],
        "tracking": {
            name: value._asdict() if isinstance(value, Spread) else value
            for name, value in tracking._asdict().items()
        },
        "joints": [{**use._asdict(), "room": use.room} for use in uses],
    }
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(_finite(report), indent=2, allow_nan=False) + "\n")


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "pose": answer.pose.name,
        "T_base_tip": answer.pose.T.tolist(),
        "reachable": answer.pose.reachable,
        "code": answer.code,
        "answer": code_name(answer.code),
        "right": answer.is_right,
        "q": None if answer.q is None else answer.q.tolist(),
        "position_error": answer.position_error,
        "rotation_error": answer.rotation_error,
        "inside_limits": answer.inside,
        "round_trip": answer.round_trip,
        "solve_time": answer.solve_time,
    }


def _finite(value: Any) -> Any:
    """The same with null for NaN and infinities, which JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_finite(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
