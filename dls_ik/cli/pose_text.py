"""A pose as commands print it: xyz, rpy, quaternion and matrix."""

from __future__ import annotations

from typing import Any

from dls_ik.core.types import Array
from dls_ik.model.rotations import quaternion_from_rotation, rpy_from_rotation


def pose_facts(T: Array) -> dict[str, Any]:
    """A pose (4, 4) in all the forms that commands take."""
    return {
        "xyz": T[:3, 3].tolist(),
        "rpy": list(rpy_from_rotation(T[:3, :3])),
        "quat": list(quaternion_from_rotation(T[:3, :3])),
        "matrix": T.tolist(),
    }


def pose_pairs(T: Array, digits: int = 6) -> list[tuple[str, str]]:
    """Its lines in a terminal, rounded; each may be given to an option as it stands."""
    facts = pose_facts(T)
    pairs = [(name, figures(facts[name], digits)) for name in ("xyz", "rpy", "quat")]
    rows = [figures(row, digits) for row in facts["matrix"][:3]]
    return [*pairs, ("matrix", rows[0]), ("", rows[1]), ("", rows[2])]


def figures(numbers: Any, digits: int = 6) -> str:
    """Numbers in columns, none of them -0."""
    return " ".join(f"{round(float(x), digits) + 0.0:{digits + 4}.{digits}f}" for x in numbers)
