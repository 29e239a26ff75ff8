"""Mutants that no test can tell from the program, and why."""

import re
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

EXPLAINED = Path(__file__).with_name("equivalent.toml")
NUMBER = re.compile(r"\b\d+\.?\d*(?:e[+-]?\d+)?\b")
LAST = re.compile(r"(?<=\.shape\[) ?-1(?=\])")


def explained() -> dict[tuple[str, str, str], str]:
    """Reasons by file, old line and new line."""
    rows = tomllib.loads(EXPLAINED.read_text()).get("mutant", [])
    return {(row["file"], row["old"], row["new"]): row["why"] for row in rows}


def is_same(old: str, new: str) -> bool:
    """Whether a change of a line says nothing.

    A number may only be written otherwise, as 1e150 + 1 is 1e150. The last dimension in place of
    the first is the same one of a vector, and of a matrix the other change of that index says it.
    """
    return _plain(old) == _plain(LAST.sub("0", new))


def _plain(line: str) -> str:
    return NUMBER.sub(lambda found: repr(float(found[0])), line).replace(" ", "")
