"""Names in messages."""

import re
from collections.abc import Iterable

from dls_ik.printable import plain


def listing(names: Iterable[str], limit: int = 24) -> str:
    """The names in one line, the first ``limit`` of them when there are many more."""
    names = list(names)
    if len(names) <= limit + 1:
        return ", ".join(map(plain, names)) or "none"
    return f"{', '.join(map(plain, names[:limit]))} and {len(names) - limit} more"


def quoted(text: object, limit: int = 160) -> str:
    """The text in quotes, or any object as Python writes it, in one line.

    The middle of a very long one is left out.
    """
    try:
        shown = re.sub(r"\n\s*", " ", repr(text))
    except (ValueError, RecursionError):  # integers of thousands of digits are not written
        shown = f"a very large {type(text).__name__}"
    if len(shown) <= limit:
        return shown
    return f"{shown[: limit // 2]}...{shown[-limit // 2 :]}"
