# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Formulas as MathML: browsers set them, without a script or the network.

They need a font for mathematics, which many systems lack: STIX Two Math (SIL Open Font License), of
the package ziamath, becomes a part of the site.
"""

import re
import shutil
from importlib.util import find_spec
from itertools import cycle
from pathlib import Path

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.writers.html5 import HTML5Translator

ASSIGN = "\N{COLON EQUALS}"
BARS = ("&#x02016;", "&#x0007C;")  # double, single; taken in pairs
BAR = re.compile(f"<mo[^>]*>({'|'.join(BARS)})</mo>")
FONT = "STIXTwoMath-Regular.ttf"  # named in site.css
UNKNOWN = re.compile(r"<mi>(\\.*?|&)</mi>")  # a command that was not understood


def mathml(source: str, display: str) -> str:
    """Convert LaTeX to a ``<math>`` element.

    Raises:
        ExtensionError: a command that the converter does not know.
    """
    try:
        text = convert(source.strip().replace(":=", ASSIGN), display=display)
    except Exception as error:
        raise ExtensionError(f"formula {source!r}: {error!r}") from error
    if UNKNOWN.search(text):
        raise ExtensionError(f"formula {source!r} has an unknown command")
    text = text.replace(f"<mi>{ASSIGN}</mi>", f"<mo>{ASSIGN}</mo>")
    forms = {bar: cycle(("prefix", "postfix")) for bar in BARS}
    return BAR.sub(lambda found: _fence(found[1], next(forms[found[1]])), text)


def _fence(bar: str, form: str) -> str:
    """Return one bar of a norm or an absolute value, as high as a letter."""
    return f'<mo stretchy="false" fence="true" lspace="0" rspace="0" form="{form}">{bar}</mo>'


def visit_inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula in a sentence."""
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def visit_block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, or on several where it is too wide."""
    parts = [mathml(part, "block") for part in re.split(r"\\q?quad\b", node.astext())]
    self.body.append(f'<div class="formula">{"".join(parts)}</div>\n')
    raise nodes.SkipNode


def copy_font(app: Sphinx, error: Exception | None) -> None:
    """Put the font beside the style that names it."""
    package = find_spec("ziamath")
    if error is None and app.builder.format == "html":
        if package is None or package.origin is None:
            raise ExtensionError("the site needs ziamath: pip install -r requirements/docs.txt")
        static = Path(app.outdir) / "_static"
        shutil.copy(Path(package.origin).parent / "fonts" / FONT, static / FONT)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer and the font."""
    app.connect("build-finished", copy_font)
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
