# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Signatures as the source has them.

Autodoc shows what annotations evaluate to, such as three lines for an ``ArrayLike``. Here a
signature is the text of the source, with the names of documented classes as links.
"""

import ast
import importlib
import inspect
import textwrap
from typing import Any

from sphinx.application import Sphinx

ROOMS = (  # packages whose public names are documented under these very names
    "dls_ik",
    "dls_ik.plot",
    "dls_ik.reachability",
    "dls_ik.ros.client",
    "dls_ik.servo",
)


class Qualified(ast.NodeTransformer):
    """Puts the package before the names of documented classes."""

    def __init__(self, names: dict[str, Any]) -> None:
        rooms = [importlib.import_module(room) for room in ROOMS]
        self.known = {id(getattr(m, n)): f"{m.__name__}.{n}" for m in rooms for n in m.__all__}
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        """Replace a name in an annotation."""
        return ast.Name(self.known.get(id(self.names.get(node.id)), node.id), node.ctx)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Take the quotes off a class that is named before it is there."""
        if isinstance(node.value, str) and node.value.isidentifier():
            return self.visit_Name(ast.Name(node.value, ast.Load()))
        return node


def signature_as_written(
    app: Sphinx, what: str, name: str, obj: Any, *_: Any
) -> tuple[str, str] | None:
    """Arguments and result; none for a class whose constructor is made for it."""
    if what not in ("class", "function", "method"):
        return None
    function = obj.__dict__.get("__init__") if inspect.isclass(obj) else obj
    function = inspect.unwrap(getattr(function, "__func__", function))
    try:
        source = textwrap.dedent(inspect.getsource(function))
        node = next(ast.iter_child_nodes(ast.parse(source)))
    except (OSError, TypeError):
        return "", ""
    return _text(node, function) if isinstance(node, ast.FunctionDef) else ("", "")


def _text(node: ast.FunctionDef, function: Any) -> tuple[str, str]:
    qualified, arguments = Qualified(function.__globals__), node.args
    for each in ast.walk(arguments):
        if isinstance(each, ast.arg) and each.annotation is not None:
            each.annotation = qualified.visit(each.annotation)
    if arguments.args and arguments.args[0].arg in ("self", "cls"):
        arguments.args.pop(0)
    if node.returns is None or node.name == "__init__":
        return f"({ast.unparse(arguments)})", ""
    return f"({ast.unparse(arguments)})", ast.unparse(qualified.visit(node.returns))


def found_elsewhere(app: Sphinx, env: Any, node: Any, content: Any) -> Any:
    """Link a name without its module, as docstrings have it, to where it is documented."""
    if node.get("refdomain") != "py" or node.get("refspecific"):
        return None
    node["refspecific"] = True  # wherever it is
    name, page, role = node["reftarget"].rpartition(".")[2], node["refdoc"], node["reftype"]
    return env.domains.python_domain.resolve_xref(env, page, app.builder, role, name, node, content)


def setup(app: Sphinx) -> dict[str, bool]:
    """Listen to autodoc, and to what finds no target."""
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", signature_as_written)
    app.connect("missing-reference", found_elsewhere)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
