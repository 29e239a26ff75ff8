# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Values and objects drawn from bytes, so that each input of a fuzzer is one case."""

import math
import struct
from array import array
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

Item = TypeVar("Item")
SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.5, 1e-3, math.pi, -math.pi / 2, math.tau, 1e3, 1e-9, 5e-324, 1e-320,
    2.3e-308, 1e9, -1e9, 1.0000001e9, 1e154, 1.4e154, -1e300, 1.7976931348623157e308,
    math.nan, math.inf, -math.inf, 1e16, 2.0**31, 2.0**53, 2.0**63, 4.9e-162,
)  # fmt: skip
WHOLE = (
    0, 1, -1, 2, 3, 7, 16, 250, 255, 1000, 2**31 - 1, -(2**31), 2**31, 2**32, 2**53 + 1, 2**63 - 1,
    -(2**63), 2**63, 2**64, 10**18, 10**400, -(10**5000),
)  # fmt: skip
WORDS = (
    "", " ", "x", "z", "xyz", "base", "target", "auto", "none", "nan", "inf", "true", "1e400", "é",
    "\u202e", "\x1b[2J", "\n", "'\"\\", "%s%n{0}", "../../etc", "a" * 300, "\U0001f600", "0x10",
)  # fmt: skip
DTYPES = ("f8", "f4", "f2", "i8", "u1", "?", "c16", "O", "U3", "S3", "M8[s]", "m8[s]", ">f8", "V4")
SHAPES = (
    (), (0,), (1,), (2,), (3,), (6,), (7,), (8,), (3, 3), (4, 4), (0, 4, 4), (1, 7), (2, 7), (7, 1),
    (1, 4, 4), (2, 4, 4), (4, 4, 4), (2, 2, 4, 4), (1, 1, 4, 4), (2, 0),
)  # fmt: skip


class Source:
    """Source of values drawn from bytes in order, and from zeros after the last byte."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def has_more(self) -> bool:
        """Whether bytes are left."""
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        """Draw bytes."""
        begin = self._at
        self._at += count
        return self._data[begin : self._at].ljust(count, b"\0")

    def rest(self) -> bytes:
        """Draw all remaining bytes."""
        begin, self._at = self._at, len(self._data)
        return self._data[begin:]

    def below(self, count: int) -> int:
        """Draw an integer from 0 to `count` - 1; `count` is at most 65536."""
        if count <= 256:
            return self.take(1)[0] % count
        return int.from_bytes(self.take(2), "little") % count

    def pick(self, items: Sequence[Item]) -> Item:
        """Draw one of the items."""
        return items[self.below(len(items))]

    def one_in(self, count: int) -> bool:
        """Draw True in one of `count` cases; False from zeros."""
        return self.below(count) == count - 1

    def unit(self) -> float:
        """Draw a number from -1 to 1."""
        return int.from_bytes(self.take(2), "little", signed=True) / 32768.0

    def number(self, scale: float = 1.0) -> float:
        """Draw a number: mostly within +-scale, else special, or of any bits."""
        kind = self.below(8)
        if kind == 6:
            return self.pick(SPECIAL)
        if kind == 7:
            return float(struct.unpack("<d", self.take(8))[0])
        return scale * self.unit()

    def whole(self) -> int:
        """Draw an integer: small, special or of any 64 bits."""
        kind = self.below(4)
        if kind == 2:
            return self.pick(WHOLE)
        if kind == 3:
            return int.from_bytes(self.take(8), "little", signed=True)
        return self.below(256) - 8

    def word(self) -> str:
        """Draw a string: special, or of any bytes that are UTF-8."""
        if self.below(2):
            return self.pick(WORDS)
        return self.take(self.below(12)).decode("utf-8", "ignore")


def anything(source: Source, depth: int = 2) -> Any:
    """Draw an object of any type; sequences nest down to a depth."""
    return source.pick(SIMPLE if depth <= 0 else EVERY)(source, depth)


def numbers(source: Source, count: int, scale: float = 1.0) -> list[float]:
    """Draw several numbers."""
    return [source.number(scale) for _ in range(count)]


def an_array(source: Source, depth: int = 0) -> Any:
    """Draw an array of any shape and type."""
    shape, dtype = source.pick(SHAPES), source.pick(DTYPES)
    if dtype in ("f8", ">f8", "f4", "O", "c16"):
        size = int(np.prod(shape))
        with np.errstate(all="ignore"):
            values = np.array(numbers(source, min(size, 64), 3.0), np.float64).astype(dtype)
        return np.resize(values, shape) if size else np.zeros(shape, dtype)
    return np.zeros(shape, dtype)


def _sequence(source: Source, depth: int) -> Any:
    items = [anything(source, depth - 1) for _ in range(source.below(9))]
    kind = source.below(4)
    if kind == 3:
        return (item for item in items)
    return (list, tuple, list)[kind](items)


def _mapping(source: Source, depth: int) -> dict[str, Any]:
    return {source.word(): anything(source, depth - 1) for _ in range(source.below(4))}


KINDS = (complex, np.float32, np.int64, np.bool_, lambda n: np.datetime64(n, "s"), Decimal)
SIMPLE = (
    lambda s, d: s.number(),
    lambda s, d: s.number(),
    lambda s, d: s.whole(),
    lambda s, d: s.word(),
    lambda s, d: s.take(s.below(9)),
    lambda s, d: Fraction(s.whole(), 3),
    lambda s, d: s.pick(KINDS)(s.below(100)),
    lambda s, d: s.pick((None, None, True, False, float, object())),
)
EVERY = (
    *SIMPLE,
    *[an_array, _sequence] * 2,
    _mapping,
    lambda s, d: array("d", numbers(s, s.below(9))),
)
