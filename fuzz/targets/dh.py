"""DH rows as objects, and YAML files of them."""

import tempfile
from pathlib import Path
from typing import Any

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError
from fuzz.anything import anything
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require_line
from fuzz.targets.urdf import KINDS, NUMBERS, use

KEYS = ("a", "alpha", "d", "theta", "kind", "lower", "upper", "velocity", "name")
TOKENS = (
    "rows:\n", "- {a: 0.3, kind: continuous}\n", "- a: 1\n", "  alpha: 1.57\n", "  lower: -1\n",
    "  upper: 2\n", "name: r\n", "tip: t\n", "base: b\n", "&a ", "*a", "<<: ", "[", "]", "{", "}",
    "? ", ": ", "!!python/object:os.system ", "!!binary ", "!!timestamp ", "2020-01-01", "1:2:3",
    "0x", ".nan", ".inf", "~", "|\n", "%YAML 1.1\n", "---\n", "...\n", "\t",
)  # fmt: skip
FILE = Path(tempfile.mkdtemp(prefix="dls_ik_fuzz_")) / "arm.yaml"


def build() -> Run:
    """Make the target."""
    return run


def run(source: Source) -> None:
    """Load rows, or a file, and use the robot."""
    kind = source.below(4)
    if kind == 0:
        FILE.write_bytes(_yaml(source.rest()))
    elif kind == 1:
        FILE.write_text(_document(source))
    try:
        if kind < 2:
            robot = RobotModel.from_dh(FILE)
        else:
            rows = [_row(source) for _ in range(source.below(6))]
            given = anything(source) if source.one_in(16) else rows
            if isinstance(given, str):
                return  # a path
            robot = RobotModel.from_dh(given)
    except DlsIkError as error:
        require_line(error)
        return
    use(robot, source)


def _row(source: Source) -> Any:
    if source.one_in(12):
        return anything(source)
    row: dict[str, Any] = {"a": 0.3, "kind": source.pick(KINDS[:3]), "lower": -1.0, "upper": 1.0}
    for _ in range(source.below(5)):
        key = source.pick(KEYS)
        row[key] = source.pick(KINDS) if key == "kind" else source.number()
        if source.one_in(8):
            row[key] = anything(source)
    return row


def _document(source: Source) -> str:
    lines = ["rows:"]
    for _ in range(source.below(6)):
        pairs = [f"{source.pick(KEYS)}: {source.pick(NUMBERS)}" for _ in range(source.below(4))]
        lines.append(f"- {{a: 0.1, kind: {source.pick(KINDS)}, {', '.join(pairs)}}}")
    return "\n".join([*lines, f"{source.pick(('name', 'tip', 'x'))}: {source.pick(NUMBERS)}"])


def _yaml(data: bytes) -> bytes:
    parts = [TOKENS[b - 200].encode() if 200 <= b < 232 else bytes([b]) for b in data]
    return b"".join(parts)
