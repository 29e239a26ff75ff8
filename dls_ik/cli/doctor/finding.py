"""What is found about one thing."""

from typing import NamedTuple

OK, MISSING, BROKEN = "ok", "missing", "broken"


class Finding(NamedTuple):
    """One row of the report."""

    section: str
    name: str
    state: str  # OK, MISSING or BROKEN
    words: str  # the version, or what it does, or why it does not
    mend: str = ""  # the command or the line that helps


def one_line(text: object, most: int = 160) -> str:
    """The first words of an error, in a line."""
    line = " ".join(str(text).split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
