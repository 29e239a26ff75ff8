# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Links out of docs/ work on a forge and on the site.

A forge shows pages where they lie, so ``../CONTRIBUTING.md`` is a file of the repository. On the
site it is a page of its own, or is offered for download; a folder is named without a link.
"""

import os
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAGES = {  # files of the repository that are pages of the site
    "README.md": "index",
    "CONTRIBUTING.md": "project/contributing",
    "CHANGELOG.rst": "project/changes",
}
INCLUDED = "project/"  # pages that include one of these files


class RepositoryLinks(SphinxTransform):
    """Turns links to files and folders outside docs/ into what a site can show."""

    default_priority = 5  # before downloads are collected and links are looked up

    def apply(self, **_: Any) -> None:
        """Replace what is to be replaced in one page."""
        links = (addnodes.download_reference, addnodes.pending_xref)
        for node in [found for kind in links for found in self.document.findall(kind)]:
            target, _, anchor = node["reftarget"].partition("#")
            if node.get("refdomain") == "doc" and target.startswith("/"):  # not below docs/
                self._replace(node, target + self._suffix(target), anchor)
            elif target and node.get("refdomain") is None:
                self._replace(node, target, anchor)

    def _suffix(self, target: str) -> str:
        """What Sphinx took off the name of a page."""
        return next((end for end in (".md", ".rst") if Path(target + end).is_file()), "")

    def _replace(self, node: nodes.Element, target: str, anchor: str) -> None:
        root, source = Path(self.env.srcdir).resolve().parent, Path(self.env.srcdir).resolve()
        page = Path(self.env.doc2path(self.env.docname)).resolve().parent
        path = ((root if self.env.docname.startswith(INCLUDED) else page) / target).resolve()
        name = path.relative_to(root).as_posix() if path.is_relative_to(root) else ""
        if name in PAGES:
            node.replace_self(_to_page(node, PAGES[name], ""))
        elif path.suffix == ".md" and path.is_relative_to(source) and path.is_file():
            node.replace_self(
                _to_page(node, name.removeprefix("docs/").removesuffix(".md"), anchor)
            )
        elif path.is_file() and isinstance(node, addnodes.pending_xref):
            node.replace_self(_to_file(node, os.path.relpath(path, page)))
        elif path.is_dir():
            node.replace_self(nodes.inline("", "", *node.children, classes=["folder"]))


def _to_page(node: nodes.Element, page: str, anchor: str) -> nodes.Node:
    return addnodes.pending_xref(
        "",
        *node.children,
        refdomain="doc",
        reftarget=page,
        reftargetid=anchor or None,
        refdoc=node["refdoc"],
        reftype="myst",
        refexplicit=True,
    )


def _to_file(node: nodes.Element, path: str) -> nodes.Node:
    return addnodes.download_reference(
        "", *node.children, refdomain=None, reftarget=path, refdoc=node["refdoc"], reftype="myst"
    )


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about the transform."""
    app.add_transform(RepositoryLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
