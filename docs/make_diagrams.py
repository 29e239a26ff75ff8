# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Draw the diagrams of architecture.md as SVG: python docs/make_diagrams.py.

Boxes have their middles on a grid, (column, row); arrows lead from box to box.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

COLUMN, ROW = 190, 84  # [px] between the middles of boxes
WIDTH, LINE, PAD = 166, 17, 10  # [px]
INK, PALE, BLUE, ORANGE = "#333333", "#F4F5F7", "#DCEBF7", "#FBEBCB"


class Box(NamedTuple):
    """A text in a place; its first line is bold."""

    column: float
    row: float
    text: str
    fill: str = PALE

    @property
    def middle(self) -> tuple[float, float]:
        """Return the middle (x, y) [px]."""
        return (0.5 + self.column) * COLUMN, (0.5 + self.row) * ROW

    @property
    def height(self) -> float:
        """Return the height [px]."""
        return LINE * len(self.text.split("\n")) + 2 * PAD


class Diagram(NamedTuple):
    """Boxes by name, and arrows (from, to, label)."""

    boxes: dict[str, Box]
    arrows: list[tuple[str, str, str]]


REQUEST = Diagram(
    {
        "client": Box(0, 1.2, "client\nGetPositionIK"),
        "callback": Box(1, 1.2, "executor's thread\nIkRequest: group, link,\ntimeout, state", BLUE),
        "line": Box(1, 0, "solve threads\nBoundedExecutor:\nlonger ones, in turns", BLUE),
        "frames": Box(2, 0, "Frames\nroot, links, TF"),
        "reach": Box(2, 1.2, "Arm.ik_chain\nsolver that brings\nthe link there"),
        "problem": Box(3, 1.2, "IkSolver\npose, seed, task\nto plain arrays"),
        "search": Box(4, 1.2, "search kernel\nattempts, restarts,\nno GIL", ORANGE),
        "answer": Box(2, 2.9, "answer\nall joints, code,\nmessage"),
    },
    [
        ("client", "callback", ""),
        ("callback", "line", "after 1 ms"),
        ("callback", "reach", ""),
        ("frames", "reach", ""),
        ("line", "reach", ""),
        ("reach", "problem", ""),
        ("problem", "search", ""),
        ("search", "answer", ""),
        ("answer", "client", ""),
    ],
)
STREAM = Diagram(
    {
        "target": Box(0, 0, "target_pose\ntwist, trajectory"),
        "states": Box(0, 2, "joint_states\nof a driver"),
        "targets": Box(1, 0, "streaming thread\nTargetBuffer: newest", BLUE),
        "measured": Box(1, 2, "executor's thread\nCurrentStateMonitor:\nlatest joint states", BLUE),
        "cycle": Box(2, 1, "streaming thread\nServoCycle at rate,\nabsolute deadlines", BLUE),
        "controller": Box(3, 1, "Controller\ntarget, method step,\nlimits"),
        "step": Box(4, 0, "follow kernel\none step, halved\nuntil it helps", ORANGE),
        "planner": Box(4, 2, "planner thread\nthe nearest solution,\nwhen stuck", BLUE),
        "outputs": Box(3, 2.6, "Outputs\nmessages filled\nin place"),
        "monitor": Box(2, 2.6, "Monitor\nstatus, tip, markers,\ndiagnostics"),
    },
    [
        ("target", "targets", ""),
        ("states", "measured", ""),
        ("targets", "cycle", ""),
        ("measured", "cycle", ""),
        ("cycle", "controller", ""),
        ("controller", "step", ""),
        ("controller", "planner", ""),
        ("controller", "outputs", ""),
        ("cycle", "monitor", ""),
    ],
)
DIAGRAMS = {"request": REQUEST, "stream": STREAM}


def svg(diagram: Diagram) -> bytes:
    """Return a diagram as the content of an SVG file."""
    boxes = diagram.boxes.values()
    width = COLUMN * (1 + max(box.column for box in boxes))
    height = ROW * (1 + max(box.row for box in boxes))
    root = ET.Element(
        "svg", xmlns="http://www.w3.org/2000/svg", viewBox=f"0 0 {width:g} {height:g}",
        width=f"{width:g}", height=f"{height:g}",
    )  # fmt: skip
    root.set("font-family", "sans-serif")
    root.set("font-size", "13")
    ET.SubElement(root, "rect", width="100%", height="100%", fill="white")
    marker = ET.SubElement(
        ET.SubElement(root, "defs"), "marker", id="tip", viewBox="0 0 8 8", refX="7", refY="4",
        markerWidth="8", markerHeight="8", orient="auto",
    )  # fmt: skip
    ET.SubElement(marker, "path", d="M0,0 L8,4 L0,8 z", fill=INK)
    for first, second, word in diagram.arrows:
        draw_arrow(root, diagram.boxes[first], diagram.boxes[second], word)
    for box in boxes:
        draw_box(root, box)
    ET.indent(root)
    return ET.tostring(root) + b"\n"


def draw_box(root: ET.Element, box: Box) -> None:
    """Draw a box and its text."""
    x, y = box.middle
    ET.SubElement(
        root, "rect", x=f"{x - WIDTH / 2:g}", y=f"{y - box.height / 2:g}", width=f"{WIDTH}",
        height=f"{box.height:g}", rx="5", fill=box.fill, stroke=INK,
    )  # fmt: skip
    for i, line in enumerate(box.text.split("\n")):
        at = {"x": f"{x:g}", "y": f"{y - box.height / 2 + PAD + LINE * (i + 0.75):g}"}
        text = ET.SubElement(root, "text", at, fill=INK)
        text.set("text-anchor", "middle")
        text.set("font-weight", "normal" if i else "bold")
        text.text = line


def draw_arrow(root: ET.Element, first: Box, second: Box, word: str) -> None:
    """Draw a straight arrow between the borders of two boxes."""
    (x1, y1), (x2, y2) = border(first, second), border(second, first)
    line = ET.SubElement(
        root, "line", x1=f"{x1:.1f}", y1=f"{y1:.1f}", x2=f"{x2:.1f}", y2=f"{y2:.1f}", stroke=INK
    )
    line.set("marker-end", "url(#tip)")
    if word:
        at = {"x": f"{(x1 + x2) / 2 + 6:.1f}", "y": f"{(y1 + y2) / 2 + 4:.1f}"}
        ET.SubElement(root, "text", at, fill=INK).text = word


def border(box: Box, other: Box) -> tuple[float, float]:
    """Return where the line from a box to another one crosses its border [px]."""
    (x, y), (x2, y2) = box.middle, other.middle
    dx, dy = x2 - x, y2 - y
    reach = min(
        WIDTH / 2 / abs(dx) if dx else float("inf"),
        box.height / 2 / abs(dy) if dy else float("inf"),
    )
    return x + reach * dx, y + reach * dy


def main(folder: Path) -> None:
    """Write every diagram into a folder."""
    for name, diagram in DIAGRAMS.items():
        (folder / f"architecture_{name}.svg").write_bytes(svg(diagram))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent / "images")
