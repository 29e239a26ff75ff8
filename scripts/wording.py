#!/usr/bin/env python3
# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Check of the wording of docstrings and comments: print counts; --check fails above the limits.

The counts cover entries of `Raises:` that do not begin with "If", docstrings of functions that
begin with "Let", "Begin" or "Have", comments that begin with a bare preposition or "that", words
for which the project has another term, and module constants with one name and several values.
--list prints each place.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("dls_ik", "benchmarks", "fuzz", "scripts", "launch", "examples", "test")
PACKAGE = "dls_ik"

# The maximum of each count. Lower a limit when the count falls; never raise one.
LIMITS = {
    "Raises entry without If": 0,
    "docstring begins with Let, Begin or Have": 0,
    "comment is a fragment": 0,
    "word with another term": 0,
    "constant with several values": 0,
}
# Constants that each of several modules has with its own value, because a reader meets them only as
# a part of that module.
ALLOWED_CONSTANTS = {
    "EPILOG",  # end of the help page of a command
    "NOTES",  # notes of a reproduced table, printed below it
    "SETTINGS",  # settings of a reproduced table, printed above it
}
OPENING = re.compile(r"(Let|Begin|Have)\b")
# "[s] after a stall" and "(n,) of all joints" are fragments too.
UNIT = re.compile(r"^(\((\w( \+ \w)?,? ?)+\)\s+)?(\[[^\]]*\],?\s*)?")
FRAGMENT = re.compile(
    r"(about|above|after|among|around|as|at|because|before|behind|below|beneath|beside|besides|"
    r"between|beyond|but|by|during|for|from|in|inside|into|like|of|off|on|onto|or|out|outside|"
    r"over|past|since|so|than|that|those|through|to|towards?|under|until|up|upon|what|when|where|"
    r"which|while|who|"
    r"whose|with|within|without)\b(?! (addition|case|contrast|general|order|particular|this|each|"
    r"least|most|first|once)\b)"
)
TERMS = {
    re.compile(pattern, re.IGNORECASE): term
    for pattern, term in {
        r"\b(a|the|its|this|that|each|free|whole|long) ways?\b(?! (to|in which|of) )": "path",
        r"\b(?<!at )(the )(least|greatest|fewest)\b(?![ -]squares?)": "minimum, maximum",
        r"\bnearer\b": "closer",
        r"\bpassed over\b": "ignored",
        r"\bfree of collisions\b": "collision-free",
        r"\b(fell|falls|fall) silent\b": "stopped",
        r"\bcease[sd]?\b": "stop",
        r"\bhindrances?\b": "hold reason",
        r"\bcounts? no more\b": "ignored",
        r"\bis led to\b": "command, setpoint",
    }.items()
}
CODE_COMMENTS = ("noqa", "type:", "fmt:", "pragma", "shellcheck", "!", "%%")


class Finding(NamedTuple):
    """Finding of a check."""

    kind: str
    file: Path
    line: int
    text: str

    def __str__(self) -> str:
        """Return the finding in the format of compilers."""
        return f"{self.file.relative_to(ROOT)}:{self.line}: {self.kind}: {self.text}"


def findings(file: Path) -> Iterator[Finding]:
    """Yield the findings in one file, without those about constants."""
    source = file.read_text(encoding="utf-8")
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            text = ast.get_docstring(node)
            if text is not None:
                line = node.body[0].lineno
                is_function = not isinstance(node, (ast.ClassDef, ast.Module))
                for kind, where in docstring_findings(text, is_function):
                    yield Finding(kind, file, line, where)
    for line, text in comments(source):
        if FRAGMENT.match(UNIT.sub("", text)):
            yield Finding("comment is a fragment", file, line, text)
        for term in other_terms(text):
            yield Finding("word with another term", file, line, term)


def docstring_findings(text: str, is_function: bool) -> Iterator[tuple[str, str]]:
    """Yield the kind and text of each finding in a docstring."""
    if is_function and OPENING.match(text):
        yield "docstring begins with Let, Begin or Have", text.partition("\n")[0]
    for entry in raises_entries(text):
        if not re.match(r"[\w., ]+: If\b", entry):
            yield "Raises entry without If", entry
    for term in other_terms(text):
        yield "word with another term", term


def raises_entries(text: str) -> Iterator[str]:
    """Yield the first lines of the entries of `Raises:`."""
    _, _, section = text.partition("\nRaises:\n")
    for line in section.splitlines():
        if line and not line.startswith("    "):
            return  # the next section
        if line.startswith("    ") and not line.startswith("     "):
            yield line.strip()


def other_terms(text: str) -> Iterator[str]:
    """Yield the words of a text for which the project has another term, with that term."""
    for pattern, term in TERMS.items():
        for found in pattern.finditer(text):
            yield f"{found[0]!r} ({term})"


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each comment; consecutive comment lines are one comment."""
    last = -1, -1  # line and column
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, column = token.start
        text = token.string.lstrip("#").strip()
        is_next = (line - 1, column) == last
        last = line, column
        if text and not is_next and not text.startswith(CODE_COMMENTS):
            yield line, text


def several_values() -> Iterator[Finding]:
    """Yield the module constants of the package with one name and several values.

    Constants in `ALLOWED_CONSTANTS` are not yielded.
    """
    values: dict[str, dict[str, tuple[Path, int]]] = defaultdict(dict)
    for file in sorted((ROOT / PACKAGE).rglob("*.py")):
        for node in ast.parse(file.read_bytes()).body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            for target in targets:
                names = target.elts if isinstance(target, ast.Tuple) else [target]
                for name in (each.id for each in names if isinstance(each, ast.Name)):
                    if name.isupper() and not name.startswith("_"):
                        values[name].setdefault(ast.unparse(node.value), (file, node.lineno))
    for name, places in sorted(values.items()):
        if len(places) > 1 and name not in ALLOWED_CONSTANTS:
            file, line = next(iter(places.values()))
            yield Finding("constant with several values", file, line, f"{name}: {[*places]}")


def main() -> int:
    """Print the counts or the findings, and return the exit code."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="exit with 1 above the limits")
    parser.add_argument("--list", action="store_true", help="print each place")
    arguments = parser.parse_args()
    files = sorted(file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py"))
    found = [*several_values(), *(each for file in files for each in findings(file))]
    is_wrong = False
    for kind, limit in LIMITS.items():
        places = [each for each in found if each.kind == kind]
        if arguments.list or (arguments.check and len(places) > limit):
            print("\n".join(map(str, places)))
        print(f"{kind:44}{len(places):6} of at most {limit}")
        is_wrong |= len(places) > limit
    return int(arguments.check and is_wrong)


if __name__ == "__main__":
    sys.exit(main())
