"""What an experiment hands over: rows measured and printed, settings, notes; plain data."""

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

Row = dict[str, Any]


@dataclass
class Reproduction:
    """One published table or figure, measured again. An experiment fills it in as it goes.

    A run that is interrupted leaves the rows that were finished.
    """

    what: str
    samples: int
    seed: int
    settings: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)  # measured
    printed: list[Row] = field(default_factory=list)  # in the paper, with the same keys
    notes: list[str] = field(default_factory=list)  # what differs, and why
    series: dict[str, Any] = field(default_factory=dict)  # what the picture draws
    complete: bool = False

    def to_json(self) -> str:
        """The whole as JSON; a number that is not finite is null."""
        return json.dumps(_plain(asdict(self)), indent=2, allow_nan=False)


def reports_json(what: str, reports: list[Reproduction]) -> str:
    """Several reports as one JSON object."""
    whole = {"what": what, "reports": [asdict(report) for report in reports]}
    return json.dumps(_plain(whole), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    """The value in the types that JSON has."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
