# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""HTML representations of results for notebooks.

Colours and lines are legible on light and dark backgrounds; names of joints are HTML-escaped. The
classes of the results are not imported, because :mod:`dls_ik.solver.result` imports this module.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from dls_ik.text import scaled

GOOD_COLOUR, BAD_COLOUR = "#2da44e", "#e5534b"
LINE_COLOUR = "rgba(128,128,128,.45)"
BAR_WIDTH = 120  # [px] width of a bar of joint limits
MAX_SHOWN_ROWS = 5  # maximum number of rows shown of a batch
CELL = f"padding:2px 10px;text-align:right;white-space:nowrap;border-bottom:1px solid {LINE_COLOUR}"
TABLE_STYLE = "border-collapse:collapse;color:inherit;font-size:inherit"


def result_html(result: Any, explanation: str) -> str:
    """Return the HTML of an :class:`IkResult`: status, errors, and joint positions with limits.

    Args:
        result: Result of one pose.
        explanation: Text next to the status.
    """
    robot = result.robot
    facts = (
        f"error {scaled(result.position_error, 'm', 3)}, {scaled(result.rotation_error, 'rad', 3)}",
        f"{result.iterations} iterations",
        f"{result.restarts} restarts",
        scaled(result.duration, "s", 3),
    )
    rows = [
        (*_value(unit, value), _bar(low, high, value, value))
        for unit, value, low, high in zip(
            robot.units, result.q.tolist(), robot.lower, robot.upper, strict=True
        )
    ]
    heads = ("joint", "value", "", "position between limits")
    named = [(html.escape(name), *row) for name, row in zip(robot.joint_names, rows, strict=True)]
    title = _title(bool(result), str(result.status), explanation)
    return title + _facts(facts) + _table(heads, named)


def batch_html(result: Any, about: str) -> str:
    """Return the HTML of an :class:`IkBatchResult`: counts of statuses, and the first rows.

    Args:
        result: Results of several poses.
        about: Text of the heading, such as the number of solved poses.
    """
    b, robot = len(result), result.robot
    counts = Counter(map(str, result.statuses))
    per_pose = scaled(result.duration / b, "s", 3) if b else "-"
    facts = [f"{count} {status}" for status, count in counts.most_common()]
    facts += [f"{scaled(result.duration, 's', 3)} in total, {per_pose} per pose"]
    units = (f"[{unit}]" for unit in robot.units)
    joints = map(" ".join, zip(map(html.escape, robot.joint_names), units, strict=True))
    heads = ("pose", "status", "position", "rotation", *joints)
    rows = [
        (
            str(i),
            str(result[i].status),
            scaled(result.position_error[i], "m", 3),
            scaled(result.rotation_error[i], "rad", 3),
            *(f"{value:.4f}" for value in result.q[i]),
        )
        for i in range(min(b, MAX_SHOWN_ROWS))
    ]
    more = f"<div>and {b - MAX_SHOWN_ROWS} more poses</div>" if b > MAX_SHOWN_ROWS else ""
    title = _title(bool(result.success.all()), type(result).__name__, about)
    return title + _facts(facts) + _table(heads, rows) + more


def path_html(result: Any, about: str) -> str:
    """Return the HTML of an :class:`IkPathResult`: jumps, missed poses, and joint motions.

    Args:
        result: Results of the poses of a path.
        about: Text of the heading, such as the number of solved poses.
    """
    robot, q = result.robot, result.q
    at = ", ".join(map(str, np.flatnonzero(result.jumps)[:MAX_SHOWN_ROWS].tolist()))
    missed = ", ".join(map(str, np.flatnonzero(~result.success)[:MAX_SHOWN_ROWS].tolist()))
    facts = [f"solved in {scaled(result.duration, 's', 3)}"]
    facts += [f"jumps to pose {at}"] if at else []
    facts += [f"not reached: pose {missed}"] if missed else []
    title = _title(bool(result.success.all() and not at), "IkPathResult", about)
    whole = q[np.isfinite(q).all(axis=1)]
    if not len(whole):
        return title + _facts(facts)
    steps = np.abs(np.diff(whole, axis=0)).max(axis=0, initial=0.0)
    rows = [
        (
            html.escape(robot.joint_names[j]),
            _value(unit, whole[0, j])[0],
            _value(unit, whole[-1, j])[0],
            _value(unit, steps[j])[0],
            _bar(robot.lower[j], robot.upper[j], whole[:, j].min(), whole[:, j].max()),
        )
        for j, unit in enumerate(robot.units)
    ]
    heads = ("joint", "start", "end", "largest step", "range between limits")
    return title + _facts(facts) + _table(heads, rows)


def solutions_html(result: Any, about: str) -> str:
    """Return an HTML table of :class:`IkSolutions`, with a row for each solution.

    A row has the index of the solution, its family number (see
    :attr:`dls_ik.IkSolutions.families`), the joint positions and the errors.

    Args:
        result: Solutions of one pose.
        about: Text of the heading, such as the number of solutions.
    """
    robot = result.robot
    units = (f"[{unit}]" for unit in robot.units)
    joints = map(" ".join, zip(map(html.escape, robot.joint_names), units, strict=True))
    heads = ("solution", "family", *joints, "position", "rotation")
    rows = [
        (
            str(i),
            str(result.families[i]),
            *(f"{value:.4f}" for value in q),
            scaled(result.position_error[i], "m", 3),
            scaled(result.rotation_error[i], "rad", 3),
        )
        for i, q in enumerate(result.q)
    ]
    title = _title(bool(result), type(result).__name__, about)
    return title + (_table(heads, rows) if rows else "")


def _title(is_good: bool, name: str, text: str) -> str:
    """Return the HTML of a heading with a name and a text.

    The name is in the colour of success if `is_good` is true, otherwise in that of failure.
    """
    colour, name = GOOD_COLOUR if is_good else BAD_COLOUR, html.escape(name)
    return f'<div><b style="color:{colour}">{name}</b> {html.escape(text)}</div>'


def _facts(facts: Iterable[str]) -> str:
    return f'<div style="opacity:.8">{" &middot; ".join(facts)}</div>'


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    head = "".join(f'<th style="{CELL}">{each}</th>' for each in heads)
    body = "".join(
        f"<tr>{''.join(f'<td style={chr(34)}{CELL}{chr(34)}>{each}</td>' for each in row)}</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto"><table style="' + TABLE_STYLE + '">'
        f"<tr>{head}</tr>{body}</table></div>"
    )


def _bar(lower: float, upper: float, smallest: float, largest: float) -> str:
    """Return the HTML of a bar that shows the range of positions of a joint [rad or m].

    The bar extends from the lower to the upper limit; a mark on the bar extends from the smallest
    to the largest position. The result is a text if the joint lacks a limit.
    """
    if not (np.isfinite(lower) and np.isfinite(upper)):
        return "no limits"
    span = max(upper - lower, 1e-12)
    shares = [min(max((value - lower) / span, 0.0), 1.0) for value in (smallest, largest)]
    start, end = BAR_WIDTH * shares[0], BAR_WIDTH * shares[1]
    is_inside = lower <= smallest and largest <= upper
    left = min(start, BAR_WIDTH - 4.0)
    mark = (
        f'<div style="position:absolute;left:{left:.0f}px;width:{max(end - start, 4.0):.0f}px;'
        f'height:10px;background:{GOOD_COLOUR if is_inside else BAD_COLOUR}"></div>'
    )
    return (
        f'<div title="{lower:.4g} to {upper:.4g}" style="position:relative;width:{BAR_WIDTH}px;'
        f'height:10px;border:1px solid {LINE_COLOUR}">{mark}</div>'
    )


def _value(unit: str, value: float) -> tuple[str, str]:
    """Return two texts of a joint position: in rad and in degrees, or in m and an empty text."""
    if unit == "m":
        return f"{value:.4f} m", ""
    return f"{value:.4f} rad", f"{np.degrees(value):.1f}&deg;"
