#!/usr/bin/env python3
# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Layers of the package: print their table, write it into docs/architecture.md, or check it there.

The order of the layers and their rules come from the import contracts in pyproject.toml, the
description of a layer from the first sentence of the docstring of its package or module.
"""

import argparse
import ast
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).resolve().parents[1]
PAGE = Path("docs") / "architecture.md"
START, END = "<!-- layers of dls_ik -->\n", "<!-- end of layers -->\n"
HEADER = "| layer | contents | may import | other contracts |\n| --- | --- | --- | --- |\n"


class Layer(NamedTuple):
    """One layer of a contract, which may have several packages."""

    packages: list[str]
    is_independent: bool  # its packages do not import each other


def contracts(root: Path) -> list[dict[str, Any]]:
    """Return the contracts of import-linter."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = settings["tool"]["importlinter"]["contracts"]
    return found


def layers(contract: dict[str, Any]) -> list[Layer]:
    """Return the layers of a contract, from the lowest to the highest."""
    return [
        Layer(re.findall(r"\w+", line), is_independent=":" not in line)
        for line in reversed(contract["layers"])
    ]


def description(root: Path, package: str, name: str) -> str:
    """Return the first sentence of the docstring of a package or module, without its full stop."""
    folder = root / package / name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_bytes())) or ""
    first = re.split(r"\.(?:\s|$)", text, maxsplit=1)[0]
    return " ".join(first.replace("``", "`").split())


def may_import(layer: Layer, name: str, lower: list[Layer]) -> str:
    """Return the names of the layers that a package of a layer may import.

    Args:
        layer: The layer of the package.
        name: The package.
        lower: The lower layers, from the lowest.
    """
    allowed = [] if layer.is_independent else [each for each in layer.packages if each != name]
    listed = ", ".join(f"`{each}`" for each in [*allowed, *(lower[-1].packages if lower else [])])
    return f"{listed} and lower layers" if len(lower) > 1 else listed or "no other layer"


def table(root: Path) -> str:
    """Return the table of the layers, the lowest first."""
    found = contracts(root)
    (order,) = (each for each in found if each["type"] == "layers")
    (package,) = order["containers"]
    rows = []
    lower: list[Layer] = []
    for layer in layers(order):
        for name in layer.packages:
            others = [
                each["name"]
                for each in found
                if f"{package}.{name}" in each.get("source_modules", ())
            ]
            cells = (
                f"`{name}`",
                description(root, package, name),
                may_import(layer, name, lower),
                "; ".join(others),
            )
            rows.append(f"| {' | '.join(cells)} |\n")
        lower.append(layer)
    return HEADER + "".join(rows)


def replaced(text: str, new: str) -> str:
    """Return the text of the page with another table.

    Raises:
        ValueError: If the page lacks one of the two markers.
    """
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not (start and end):
        raise ValueError(f"{PAGE} lacks the line {(END if start else START).strip()}")
    return before + start + new + end + after


def main() -> int:
    """Print, write or check the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    action = parser.add_mutually_exclusive_group()
    action.add_argument("--write", action="store_true", help=f"write the table into {PAGE}")
    action.add_argument("--check", action="store_true", help="exit with 1 if the page differs")
    arguments = parser.parse_args()
    new, page = table(ROOT), ROOT / PAGE
    if not (arguments.write or arguments.check):
        print(new, end="")
        return 0
    text = page.read_text(encoding="utf-8")
    if arguments.write:
        page.write_text(replaced(text, new), encoding="utf-8")
    elif text != replaced(text, new):
        print(f"layers: the table in {PAGE} is out of date: python scripts/layers.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
