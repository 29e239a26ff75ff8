# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of robots: URDF as bytes and by a grammar, DH rows as objects and as YAML.

Each robot is loaded and used, or refused with a message of one line.
"""

import re
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dls_ik import IkSolver, RobotModel
from dls_ik.model.urdf import sanitized_urdf
from fuzz.guard import refusals, require, require_inside
from fuzz.source import Source, anything

METHODS = ("auto", "svf", "ctp+sd+svf", "sdls", "jt")

# Use of a robot


def use(source: Source, load: Callable[..., RobotModel], *given: Any) -> None:
    """Load a robot unless it is refused; require finite poses and answers inside the limits."""
    robot = None
    with refusals(in_one_line=True):
        robot = load(*given)
    if robot is None:
        return
    q = robot.random(rng=np.random.default_rng(source.below(256)))
    require_inside(robot, q)
    T, J = robot.fk(q), robot.jacobian(q)
    require(np.isfinite(T).all() and np.isfinite(J).all(), "kinematics not finite", T, J)
    if not source.one_in(16):  # a solver takes a hundred times longer to make
        return
    with refusals(in_one_line=True):  # some methods need limits
        solver = IkSolver(robot, source.pick(METHODS), max_restarts=1, max_iterations=20)
        result = solver.solve(T, robot.random(rng=np.random.default_rng(1)))
        require(np.isfinite(result.q).all(), "an answer that is not finite", result)
        if result.success:
            require_inside(robot, result.q)


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


def with_tokens(data: bytes, tokens: Sequence[bytes]) -> bytes:
    """Return the input with each byte from 200 on replaced by a token."""
    return b"".join(tokens[b - 200] if 0 <= b - 200 < len(tokens) else bytes([b]) for b in data)


def fuzz_xml(source: Source) -> None:
    """Read a URDF as bytes, with some bytes replaced by tokens."""
    data = with_tokens(source.rest(), XML_TOKENS)
    with refusals(in_one_line=True):
        sanitized_urdf(data)
    text = data.decode("utf-8", "surrogateescape")
    if text.lstrip("\ufeff \t\r\n").startswith("<"):  # else a path
        with refusals(in_one_line=True):
            RobotModel.from_urdf(text)


# URDF by a grammar

KINDS = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar", "screw", "")
NUMBERS = (
    "0", "1", "-1", "0.5", "1.5707963", "-0", "1e-9", "1e400", "-1e400", "nan", "inf", "1e308",
    "1e9", "1e160", "1e-320", "0x1", "1_0", "", "x", "\u0661", "1e-400", "6.5e5", "1" * 200,
)  # fmt: skip
NUMBER = re.compile(r'(?<=[" ])-?\d[\d.]*(?=[" ])')  # number in an attribute
ENCODED = {ord(c): f"&#{ord(c)};" for c in "&<>\"'\n\r\t"}


def fuzz_urdf(source: Source) -> None:
    """Load and use robots with random trees, cycles, mimic joints, limits and numbers."""
    text = robot_text(source)
    base = source.pick((None, None, None, "l0", "l1", "l2", "x"))
    tip = source.pick((None, None, None, "l1", "l2", "l3", ("l1", "l2"), "x", ()))
    use(source, RobotModel.from_urdf, text, base, tip)


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
    parent = i if source.one_in(16) else max(0, i - 1 - source.below(2))
    details = [
        f'<parent link="l{parent}"/>',
        f'<child link="l{i}"/>',
        '<axis xyz="0 0 1"/>',
        '<origin xyz="0.3 0 0.1" rpy="0 0.5 0"/>',
        '<limit lower="-2" upper="2" velocity="1" effort="1"/>',
        f'<mimic joint="j{source.below(count)}" multiplier="2" offset="0.5"/>',
    ]
    kept = [text for text in details[: 6 if source.one_in(6) else 5] if not source.one_in(16)]
    text = NUMBER.sub(lambda found: _number(source, found[0]), "".join(kept))
    kind = source.pick((*KINDS[:3], *KINDS))
    return f'<joint name="{_name(source, f"j{i}")}" type="{kind}">{text}</joint>'


def _name(source: Source, usual: str) -> str:
    return source.word().translate(ENCODED) if source.one_in(24) else usual


def _number(source: Source, usual: str) -> str:
    return source.pick((*NUMBERS, *[f"{source.unit():.4g}"] * 9)) if source.one_in(8) else usual


# DH rows

DH_KEYS = ("a", "alpha", "d", "theta", "kind", "lower", "upper", "velocity", "name")
YAML_TOKENS = (
    b"rows:\n", b"- {a: 0.3, kind: continuous}\n", b"- a: 1\n", b"  alpha: 1.57\n",
    b"  lower: -1\n", b"  upper: 2\n", b"name: r\n", b"tip: t\n", b"base: b\n", b"&a ", b"*a",
    b"<<: ", b"[", b"]", b"{", b"}", b"? ", b": ", b"!!python/object:os.system ", b"!!binary ",
    b"!!timestamp ", b"2020-01-01", b"1:2:3", b"0x", b".nan", b".inf", b"~", b"|\n",
    b"%YAML 1.1\n", b"---\n", b"...\n", b"\t",
)  # fmt: skip
DH_FILE = Path(tempfile.mkdtemp(prefix="dls_ik_fuzz_")) / "arm.yaml"


def fuzz_dh(source: Source) -> None:
    """Load and use DH rows, as objects and as YAML files."""
    given: Any = DH_FILE
    if source.below(4) == 0:
        DH_FILE.write_bytes(with_tokens(source.rest(), YAML_TOKENS))
    else:
        given = [_row(source) for _ in range(source.below(6))]
        given = anything(source) if source.one_in(16) else given
    if not isinstance(given, str):  # a path
        use(source, RobotModel.from_dh, given)


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
