# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Write the parameter tables of topics_and_services.md: python docs/make_parameters.py.

Each table is between two comments that name it, and comes from the declarations of the nodes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import Field
from pathlib import Path
from typing import Any

from dls_ik.ros.bounds import BoundParameters
from dls_ik.ros.declare import NUMBERS, TEXTS, declared, yaml_number
from dls_ik.ros.params import DECLARED, GroupParameters, RobotParameters
from dls_ik.ros.sim_arm.arm import SimArmParameters

PAGE = Path(__file__).with_name("topics_and_services.md")
HEAD = "| parameter | default | values | changes | meaning |\n| --- | --- | --- | --- | --- |\n"
TABLES: Mapping[str, Mapping[str, Field[Any]]] = {
    "ik_node": DECLARED,
    "a group": GroupParameters.fields_of(["NAME"]),
    "a bound": BoundParameters.fields_of(["NAME"]),
    "ik_sim_arm": {
        name: field
        for name, field in declared(SimArmParameters).items()
        if name not in declared(RobotParameters)
    },
}
NAMES = {str: "text", int: "whole number", float: "number", TEXTS: "names", NUMBERS: "numbers"}


def page(text: str) -> str:
    """Return the text of the page with new tables."""
    for name, fields in TABLES.items():
        begin, end = f"<!-- parameters of {name} -->\n", f"<!-- end of {name} -->\n"
        rows = "".join(row(*item) for item in fields.items())
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        text, count = re.subn(
            pattern, lambda _, t=begin + HEAD + rows + end: t, text, flags=re.DOTALL
        )
        if count != 1:
            raise SystemExit(f"{PAGE.name} has {count} tables of {name}, not one")
    return text


def row(name: str, field: Field[Any]) -> str:
    """Return the row of a parameter."""
    about = field.metadata
    changes = "fixed" if about["read_only"] else "live"
    cells = (f"`{name}`", shown(field.default), values(field), changes, about["text"])
    return f"| {' | '.join(cells)} |\n"


def shown(default: Any) -> str:
    """Return a default as written on a command line; empty if it is not set."""
    if isinstance(default, tuple):
        return ", ".join(map(shown, default))
    if isinstance(default, bool):
        return str(default).lower()
    return yaml_number(default) if isinstance(default, float) else str(default)


def limit(value: float) -> str:
    """Return an end of a range, with at most four digits."""
    return f"{value:.4g}" if math.isfinite(value) else yaml_number(value)


def values(field: Field[Any]) -> str:
    """Return the valid values: choices, or a range and its unit."""
    about = field.metadata
    unit, span = about["unit"], about["range"]
    if about["choices"]:
        return ", ".join(f"`{choice}`" for choice in about["choices"])
    if field.type is bool:
        return "`true`, `false`"
    words = [] if field.type != NUMBERS else ["list"]
    words += [f"{limit(span[0])} to {limit(span[1])}"] if span else []
    if field.type == NUMBERS and unit and not span:
        words.append(unit)
        unit = ""
    return f"{', '.join(words)} {unit}".rstrip() if words else NAMES[field.type]


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
