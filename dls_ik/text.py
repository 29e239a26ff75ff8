# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Formatting of values for messages: escaping, quoting, lists, suggestions, numbers, and JSON."""

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, is_dataclass
from difflib import SequenceMatcher
from typing import Any

MAX_COMPARED = 80  # maximum number of characters compared with known names
MIN_LIKENESS = 0.6  # minimum similarity (0 to 1) of a suggested name to the unknown name
PREFIXES = (("", 1.0), ("m", 1e-3), ("u", 1e-6), ("n", 1e-9))
MIN_EXPONENT_VALUE = 1e5  # smallest number written with an exponent
UNITS_OF_TIME = ((31_557_600.0, "years"), (86_400.0, "days"), (3600.0, "hours"))  # [s]
EQUAL_LIKENESS = 0.05  # maximum difference in similarity of names that are suggested together


def escape(text: str, keep: str = "") -> str:
    """Return a text with non-printable characters, such as line breaks, escaped as by ``repr``.

    Args:
        text: Text to escape.
        keep: Characters that are not escaped.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else repr(c)[1:-1] for c in text)


def quoted(value: object, limit: int = 160) -> str:
    """Return the ``repr`` of a value as one line of approximately `limit` characters at most.

    If the ``repr`` is longer, its middle is replaced by ``...``.
    """
    try:
        shown = re.sub(r"\n\s*", " ", repr(value))
    except (ValueError, RecursionError):  # repr rejects integers of thousands of digits
        shown = f"a very large {type(value).__name__}"
    if len(shown) <= limit:
        return shown
    return f"{shown[: limit // 2]}...{shown[-limit // 2 :]}"


def listing(names: Iterable[str], limit: int = 24) -> str:
    """Return names joined by commas; ``none`` if there are no names.

    If there are more than `limit` + 1 names, the text has the first `limit` names and the number of
    other names, such as ``a, b and 12 more``.
    """
    names = list(names)
    if len(names) <= limit + 1:
        return ", ".join(map(escape, names)) or "none"
    return f"{', '.join(map(escape, names[:limit]))} and {len(names) - limit} more"


def did_you_mean(word: object, known: Iterable[str], form: str = "{}") -> str:
    """Return a suggestion such as ``did you mean a or b?`` for an unknown name.

    The result is empty if no known name is similar to the unknown name.

    Args:
        word: Unknown name.
        known: Known names; up to three names that are most similar to `word` are suggested.
        form: Format string into which the suggestion is inserted, such as ``" ({})"``.
    """
    text = str(word).lower().lstrip("-")[:MAX_COMPARED]
    likeness = {
        name: SequenceMatcher(None, text, name.lower().lstrip("-")).ratio() for name in known
    }
    threshold = max(MIN_LIKENESS, max(likeness.values(), default=0.0) - EQUAL_LIKENESS)
    alike = [name for name, ratio in likeness.items() if ratio >= threshold][:3]
    return form.format(f"did you mean {' or '.join(map(escape, alike))}?") if alike else ""


def suggest_names(
    words: Iterable[object], known: Iterable[str], usual: Mapping[str, str] | None = None
) -> str:
    """Return a suggestion of similar known names for one or more unknown names.

    If no known name is similar to any of the unknown names, the text lists the known names.

    Args:
        words: Unknown names.
        known: Known names.
        usual: Known names by names that people use elsewhere, such as ``damping``; a known name
            is suggested for these even if it is not similar.
    """
    words, known, usual = list(words), list(known), usual or {}
    hints = {}
    for word in words:
        meant = usual.get(str(word).lower().strip("_"))
        hint = f"did you mean {meant}?" if meant in known else did_you_mean(word, known)
        hints[str(word)[:MAX_COMPARED]] = hint
    if len(words) == 1 and all(hints.values()):
        return next(iter(hints.values()))
    found = [f"{escape(word)}: {hint}" for word, hint in hints.items() if hint]
    return "; ".join(found) or f"known are {listing(known)}"


def short(value: float, digits: int = 2) -> str:
    """Format a number with `digits` significant digits, without an exponent if possible."""
    rounded = float(f"{value:.{digits - 1}e}") if math.isfinite(value) else value
    if rounded == 0.0 or not 1e-3 <= abs(rounded) < MIN_EXPONENT_VALUE:
        return f"{value:.{digits}g}"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    text = f"{rounded:.{decimals}f}"
    return text.rstrip("0").rstrip(".") if decimals else text


def scaled(value: float, unit: str, digits: int = 2) -> str:
    """Format a value with a suitable prefix of its unit, such as ``1.5 um`` for 1.5e-6 and "m".

    Args:
        value: Value in the unit.
        unit: Unit without prefix, such as "m", "rad" or "s".
        digits: Number of significant digits.
    """
    if not math.isfinite(value):
        return f"{value:.0f} {unit}"
    size = abs(float(f"{value:.{digits - 1}e}"))
    for prefix, step in PREFIXES:
        if size >= step:
            return f"{short(value / step, digits)} {prefix}{unit}"
    return f"{short(value / PREFIXES[-1][1], digits)} n{unit}" if size >= 1e-12 else f"0 {unit}"


def elapsed(seconds: float) -> str:
    """Format a time [s] in a suitable unit, such as ``12 s`` or ``57 years``."""
    for unit, name in UNITS_OF_TIME:
        if seconds >= 2.0 * unit:
            return f"{short(seconds / unit)} {name}"
    return f"{short(seconds, 3)} s"


def span(values: Iterable[float], unit: str) -> str:
    """Format the minimum and maximum of values as a range, such as ``4 to 8 Hz``.

    If the minimum and the maximum have the same text, the result is a single number: ``4 Hz``.

    Args:
        values: Values; at least one.
        unit: Unit of the values.
    """
    values = list(values)
    low, high = short(min(values), 2), short(max(values), 2)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def json_text(document: Any, indent: int | None = 2) -> str:
    """Return a document as strict JSON text.

    Args:
        document: Dataclasses, dicts, lists, arrays and numbers, which may be nested. Arrays become
            lists, and non-finite numbers become null.
        indent: Number of spaces by which to indent each level; None for a single line.
    """
    return json.dumps(_json_value(document), indent=indent, allow_nan=False)


def _json_value(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if hasattr(value, "tolist"):  # NumPy arrays and scalars
        value = value.tolist()
    if isinstance(value, dict):
        return {str(key): _json_value(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_value(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
