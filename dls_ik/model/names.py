"""Names in messages."""

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

from dls_ik.printable import plain

LONGEST = 80  # characters of a word that are compared with others
ALIKE, SAME = 0.6, 0.05  # likeness from which a name may be meant; difference that tells nothing


def listing(names: Iterable[str], limit: int = 24) -> str:
    """The names in one line, the first ``limit`` of them when there are many more."""
    names = list(names)
    if len(names) <= limit + 1:
        return ", ".join(map(plain, names)) or "none"
    return f"{', '.join(map(plain, names[:limit]))} and {len(names) - limit} more"


def suggestion(word: object, known: Iterable[str]) -> str:
    """``did you mean a or b?``, of what is most alike, or nothing where nothing is."""
    text = str(word).lower().lstrip("-")[:LONGEST]
    plainly = {name: name.lower().lstrip("-") for name in known}
    likeness = {name: SequenceMatcher(None, text, w).ratio() for name, w in plainly.items()}
    best = max(likeness.values(), default=0.0)
    alike = [name for name, ratio in likeness.items() if ratio >= max(ALIKE, best - SAME)][:3]
    return f"did you mean {' or '.join(map(plain, alike))}?" if alike else ""


def meant(words: Iterable[object], known: Iterable[str]) -> str:
    """Which names unknown words may mean, or the first of the known ones where none is alike."""
    words, known = list(words), list(known)
    alike = {str(word)[:LONGEST]: suggestion(word, known) for word in words}
    if len(words) == 1 and all(alike.values()):
        return next(iter(alike.values()))
    hints = [f"{plain(word)}: {hint}" for word, hint in alike.items() if hint]
    return "; ".join(hints) or f"known are {listing(known)}"


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
