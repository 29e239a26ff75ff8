"""Robots: URDF as bytes and by a grammar, DH rows as objects and as YAML.

Each is loaded and used, or refused in one line.
"""

import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.model.urdf import sanitized_urdf
from fuzz.guard import Run, refusals, require, require_inside
from fuzz.source import Source, anything

ROOT = Path(__file__).resolve().parents[2]
METHODS = ("auto", "svf", "ctp+sd+svf", "sdls", "jt")

# Use of a robot


def use(robot: RobotModel, source: Source) -> None:
    """Require finite poses and Jacobians, and answers inside the limits."""
    q = robot.random(np.random.default_rng(source.below(256)))
    require_inside(robot, q)
    T, J = robot.fk(q), robot.jacobian(q)
    require(np.isfinite(T).all() and np.isfinite(J).all(), "kinematics not finite", T, J)
    if not source.one_in(16):  # a solver takes a hundred times longer to make
        return
    with refusals(in_one_line=True):  # some methods need limits
        solver = IkSolver(robot, source.pick(METHODS), max_restarts=1, max_iterations=20)
        result = solver.solve(T, robot.random(np.random.default_rng(1)))
        if result.success:
            require_inside(robot, result.q)
        require(np.isfinite(result.q).all(), "an answer that is not finite", result)


# URDF as bytes

XML_TOKENS = (
    b"<robot name='r'>", b"<link name='a'/>", b"<link name='b'/>", b"</robot>", b"</joint>",
    b"<joint name='j' type='revolute'>", b"<parent link='a'/>", b"<child link='b'/>",
    b"<axis xyz='0 0 1'/>", b"<origin xyz='0 0 1' rpy='0 0 0'/>", b"<!DOCTYPE robot [", b"]>",
    b"<limit lower='-1' upper='1' velocity='1'/>", b"<!ENTITY e 'x'>", b"&e;", b"&#10;", b"&#0;",
    b"<mimic joint='k'/>", b"type='continuous'", b"type='floating'", b"<?xml version='1.0'?>",
    b"<?xml version='1.0' encoding='utf-16'?>", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?x ?>",
    b"<xacro:if/>", b"xmlns:x='y'", b"1e400", b"nan", b"quat_xyzw='0 0 0 1'", b"\xef\xbb\xbf",
)  # fmt: skip


def build_xml() -> Run:
    """Return the target of URDF as bytes, some of which stand for tokens."""

    def run(source: Source) -> None:
        data = _with_tokens(source.rest())
        with refusals(in_one_line=True):
            sanitized_urdf(data)
        text = data.decode("utf-8", "surrogateescape")
        if text.lstrip("\ufeff \t\r\n").startswith("<"):  # else a path
            with refusals(in_one_line=True):
                RobotModel.from_urdf(text)

    return run


def seeds_xml() -> Iterable[bytes]:
    """Yield robots of the package, and a small one of tokens."""
    for name in ("planar_2r", "y_shape"):
        yield (ROOT / "urdf" / f"{name}.urdf").read_bytes()[:4000]
    yield bytes([0, 1, 2, 5, 6, 7, 8, 12, 4, 3])


def _with_tokens(data: bytes) -> bytes:
    """Replace bytes below 32 that are not white space, and above 239, by tokens."""
    parts = [XML_TOKENS[_token(byte)] if _token(byte) >= 0 else bytes([byte]) for byte in data]
    return b"".join(parts)


def _token(byte: int) -> int:
    if byte < 32 and byte not in b"\t\n\r":
        return byte
    return byte - 240 + 16 if byte >= 240 else -1


# URDF by a grammar

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "screw", "")
NUMBERS = (
    "0", "1", "-1", "0.5", "1.5707963", "-0", "1e-9", "1e400", "-1e400", "nan", "inf", "1e308",
    "1e9", "1e160", "1e-320", "0x1", "1_0", "", "x", "\u0661", "1e-400", "6.5e5", "1" * 200,
)  # fmt: skip
ENCODED = {ord(c): f"&#{ord(c)};" for c in "&<>\"'\n\r\t"}


def build_urdf() -> Run:
    """Return the target of trees, cycles, mimics, limits and numbers, kernels loaded."""
    robot = RobotModel.wam()
    for method in METHODS:
        IkSolver(robot, method, max_restarts=0).solve(np.eye(4))

    def run(source: Source) -> None:
        text = robot_text(source)
        base = source.pick((None, None, None, "l0", "l1", "l2", "x"))
        tip = source.pick((None, None, None, "l1", "l2", "l3", ("l1", "l2"), "x", ()))
        robot = None
        with refusals(in_one_line=True):
            robot = RobotModel.from_urdf(text, base, tip)
        if robot is not None:
            use(robot, source)

    return run


def robot_text(source: Source) -> str:
    """Draw the URDF of a robot, with defects."""
    count = 1 + source.below(7)
    names = [_name(source, f"l{i}") for i in range(count)]
    joints = [_joint(source, i, count) for i in range(1, count)]
    if source.one_in(16):
        joints.append(_joint(source, source.below(count), count))
    links = [f'<link name="{name}"/>' for name in names]
    noise = source.pick(("", "", "", "<a/>", "text", "<!--x-->", "<joint/>", "<xacro:x/>"))
    return "\n".join([f'<robot name="{_name(source, "r")}">', *links, *joints, noise, "</robot>"])


def _joint(source: Source, i: int, count: int) -> str:
    kind = source.pick((*KINDS[:3], *KINDS))
    parent = f"l{max(0, i - 1 - source.below(2))}" if not source.one_in(16) else f"l{i}"
    details = [f'<parent link="{parent}"/>', f'<child link="l{i}"/>']
    if not source.one_in(4):
        details.append(f'<axis xyz="{_triple(source, "0 0 1")}"/>')
    if not source.one_in(4):
        xyz, rpy = _triple(source, "0.3 0 0.1"), _triple(source, "0 0.5 0")
        details.append(f'<origin xyz="{xyz}" rpy="{rpy}"/>')
    if not source.one_in(8):
        lower, upper, speed = _word(source, "-2"), _word(source, "2"), _word(source, "1")
        details.append(f'<limit lower="{lower}" upper="{upper}" velocity="{speed}" effort="1"/>')
    if source.one_in(6):
        scale, shift = _word(source, "2"), _word(source, "0.5")
        master = f"j{source.below(count)}"
        details.append(f'<mimic joint="{master}" multiplier="{scale}" offset="{shift}"/>')
    if source.one_in(16):
        del details[source.below(len(details))]
    return f'<joint name="{_name(source, f"j{i}")}" type="{kind}">{"".join(details)}</joint>'


def _name(source: Source, usual: str) -> str:
    return source.word().translate(ENCODED) if source.one_in(24) else usual


def _triple(source: Source, usual: str) -> str:
    kind = source.below(4)
    if kind < 2:
        return usual
    if kind == 2:
        return " ".join(f"{source.unit():.4g}" for _ in range(3))
    return " ".join(source.pick(NUMBERS) for _ in range(source.pick((3, 3, 3, 2, 4, 0))))


def _word(source: Source, usual: str) -> str:
    return source.pick(NUMBERS) if source.one_in(4) else usual


# DH rows

DH_KEYS = ("a", "alpha", "d", "theta", "kind", "lower", "upper", "velocity", "name")
YAML_TOKENS = (
    "rows:\n", "- {a: 0.3, kind: continuous}\n", "- a: 1\n", "  alpha: 1.57\n", "  lower: -1\n",
    "  upper: 2\n", "name: r\n", "tip: t\n", "base: b\n", "&a ", "*a", "<<: ", "[", "]", "{", "}",
    "? ", ": ", "!!python/object:os.system ", "!!binary ", "!!timestamp ", "2020-01-01", "1:2:3",
    "0x", ".nan", ".inf", "~", "|\n", "%YAML 1.1\n", "---\n", "...\n", "\t",
)  # fmt: skip
DH_FILE = Path(tempfile.mkdtemp(prefix="dls_ik_fuzz_")) / "arm.yaml"


def build_dh() -> Run:
    """Return the target of DH rows, as objects and as YAML files."""

    def run(source: Source) -> None:
        kind = source.below(4)
        if kind == 0:
            DH_FILE.write_bytes(_yaml(source.rest()))
        elif kind == 1:
            DH_FILE.write_text(_document(source))
        given: Any = DH_FILE
        if kind >= 2:
            given = [_row(source) for _ in range(source.below(6))]
            given = anything(source) if source.one_in(16) else given
        if isinstance(given, str):
            return  # a path
        robot = None
        with refusals(in_one_line=True):
            robot = RobotModel.from_dh(given)
        if robot is not None:
            use(robot, source)

    return run


def _row(source: Source) -> Any:
    if source.one_in(12):
        return anything(source)
    row: dict[str, Any] = {"a": 0.3, "kind": source.pick(KINDS[:3]), "lower": -1.0, "upper": 1.0}
    for _ in range(source.below(5)):
        key = source.pick(DH_KEYS)
        row[key] = source.pick(KINDS) if key == "kind" else source.number()
        if source.one_in(8):
            row[key] = anything(source)
    return row


def _document(source: Source) -> str:
    lines = ["rows:"]
    for _ in range(source.below(6)):
        pairs = [f"{source.pick(DH_KEYS)}: {source.pick(NUMBERS)}" for _ in range(source.below(4))]
        lines.append(f"- {{a: 0.1, kind: {source.pick(KINDS)}, {', '.join(pairs)}}}")
    return "\n".join([*lines, f"{source.pick(('name', 'tip', 'x'))}: {source.pick(NUMBERS)}"])


def _yaml(data: bytes) -> bytes:
    parts = [YAML_TOKENS[b - 200].encode() if 200 <= b < 232 else bytes([b]) for b in data]
    return b"".join(parts)
