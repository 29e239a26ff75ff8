"""Names in messages."""

from collections.abc import Iterable

from dls_ik.printable import plain


def listing(names: Iterable[str], limit: int = 24) -> str:
    """The names in one line, the first ``limit`` of them when there are many more."""
    names = list(names)
    if len(names) <= limit + 1:
        return ", ".join(map(plain, names)) or "none"
    return f"{', '.join(map(plain, names[:limit]))} and {len(names) - limit} more"


def quoted(text: object, limit: int = 160) -> str:
    """The text in quotes, the middle of a very long one left out."""
    shown = repr(text)
    if len(shown) <= limit:
        return shown
    return f"{shown[: limit // 2]}...{shown[-limit // 2 :]}"
