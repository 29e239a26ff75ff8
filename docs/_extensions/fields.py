# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Fields of dataclasses and named tuples, with the comments behind them.

A field of options has its declaration instead: meaning, unit, range, default.
"""

import ast
import dataclasses
import inspect
import textwrap
import tokenize
from io import StringIO
from typing import Any, NamedTuple

from sphinx.application import Sphinx


class Field(NamedTuple):
    """A field as the source has it."""

    name: str
    kind: str  # its annotation
    text: str


def list_fields(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Append the fields of a class to its docstring, unless that has them."""
    if inspect.isclass(obj) and (dataclasses.is_dataclass(obj) or hasattr(obj, "_fields")):
        fields = [] if "Attributes:" in lines else _fields(obj)
        rows = [f"    {f.name}: ``{f.kind}``{'; ' if f.text else ''}{f.text}" for f in fields]
        lines += ["", "Fields:", *rows] if rows else []


def is_listed(app: Sphinx, what: str, name: str, obj: Any, *_: Any) -> bool | None:
    """Leave out as members what the list of fields has."""
    is_field = inspect.ismemberdescriptor(obj) or type(obj).__name__ == "_tuplegetter"
    return True if is_field else None


def _fields(obj: type) -> list[Field]:
    source = textwrap.dedent(inspect.getsource(obj))
    tokens = tokenize.generate_tokens(StringIO(source).readline)
    texts = {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}
    declared = getattr(obj, "__dataclass_fields__", {})
    found = []
    for node in getattr(ast.parse(source).body[0], "body", []):
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            name = node.target.id
            about = getattr(declared.get(name), "metadata", None)
            text = _declaration(declared[name]) if about else texts.get(node.end_lineno, "")
            found.append(Field(name, ast.unparse(node.annotation).strip("'"), text))
    return [field for field in found if not field.name.startswith("_")]


def _declaration(field: Any) -> str:
    about = field.metadata
    unit = f" [{about['unit']}]" if about["unit"] else ""
    values = ""
    if "range" in about:
        values = "; from {:g} to {:g}".format(*about["range"])
    elif "choices" in about and about["choices"] != (False, True):
        values = "; one of " + ", ".join(f"``{each!r}``" for each in about["choices"])
    return f"{about['text']}{unit}{values}. Default: ``{field.default!r}``."


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to autodoc, before napoleon does."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", list_fields, priority=100)
    app.connect("autodoc-skip-member", is_listed)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
