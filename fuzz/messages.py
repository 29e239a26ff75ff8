"""Messages with anything in them: some fields of a good one, at any depth, are changed."""

import math
from array import array
from copy import deepcopy
from importlib import import_module
from typing import Any

import numpy as np

from fuzz.source import WHOLE, Source

SIZES = (0, 1, 2, 3, 7, 14, 100)
# Times that are short, or refused: what is longer would be waited for.
SECONDS = (0, -1, -(2**31), 0, 0, 1)
NANOSECONDS = (0, 1, 1000, 999_999_999, 2**32 - 1)
DEPTH = 6


def changed(source: Source, message: Any, names: tuple[str, ...]) -> Any:
    """A copy with one to four fields changed; names are what strings may well be."""
    message = deepcopy(message)
    for _ in range(1 + source.below(4)):
        change(source, message, names, DEPTH)
    return message


def change(source: Source, message: Any, names: tuple[str, ...], depth: int) -> None:
    """Give one field another value; of a message within, one of its fields."""
    kinds = message.get_fields_and_field_types()
    name = source.pick(sorted(kinds))
    setattr(message, name, _value(source, kinds[name], getattr(message, name), names, depth))


def _value(source: Source, kind: str, now: Any, names: tuple[str, ...], depth: int) -> Any:
    if kind.startswith("sequence<"):
        item, _, bound = kind[9:-1].partition(", ")
        return _sequence(source, item, now, names, depth)[: int(bound or 2**31)]
    if kind.endswith("]"):
        return now
    if "/" in kind:
        return _nested(source, deepcopy(now), names, depth)
    return _primitive(source, kind, names)


def _nested(source: Source, message: Any, names: tuple[str, ...], depth: int) -> Any:
    if type(message).__name__ == "Duration":
        message.sec, message.nanosec = source.pick(SECONDS), source.pick(NANOSECONDS)
    elif depth:
        for _ in range(1 + source.below(2)):
            change(source, message, names, depth - 1)
    return message


def _sequence(source: Source, kind: str, now: Any, names: tuple[str, ...], depth: int) -> Any:
    """Another length of it, or another item in it."""
    now = list(now)
    if "/" in kind:
        fresh = _nested(source, deepcopy(now[0]) if now else _message(kind), names, depth)
    else:
        fresh = _primitive(source, kind, names)
    if now and source.below(2):
        now[source.below(len(now))] = fresh
        return _packed(kind, now)
    size = source.pick(SIZES if depth == DEPTH else SIZES[:4])
    return _packed(kind, [fresh] * size)


def _packed(kind: str, items: list[Any]) -> Any:
    return array("d", items) if kind == "double" else items


def _message(kind: str) -> Any:
    package, _, name = kind.partition("/")
    return getattr(import_module(f"{package}.msg"), name)()


def _primitive(source: Source, kind: str, names: tuple[str, ...]) -> Any:
    if kind == "string":
        return source.pick(names) if source.below(2) else source.word().replace("\0", "")
    if kind == "double":
        return source.number(3.0)
    if kind == "float":
        return float(np.float32(source.unit())) if source.below(4) else source.pick((0.0, math.inf))
    if kind == "boolean":
        return bool(source.below(2))
    if kind in ("octet", "byte"):
        return source.take(1)
    bits = int(kind.lstrip("uint"))
    low = 0 if kind.startswith("u") else -(2 ** (bits - 1))
    known = [each for each in WHOLE if low <= each < low + 2**bits]
    return source.pick(known) if source.below(2) else low + source.below(256)
