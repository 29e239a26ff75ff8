"""Values drawn from bytes, so that one input of a fuzzer, or of hypothesis, is one case."""

import math
import struct
from collections.abc import Sequence
from typing import TypeVar

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


class Source:
    """Draws values from bytes, in order; from zeros when there are no more."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def has_more(self) -> bool:
        """Whether there are bytes left."""
        return self._at < len(self._data)

    def take(self, count: int) -> bytes:
        """So many bytes."""
        begin = self._at
        self._at += count
        return self._data[begin : self._at].ljust(count, b"\0")

    def rest(self) -> bytes:
        """All bytes that are left."""
        begin, self._at = self._at, len(self._data)
        return self._data[begin:]

    def below(self, count: int) -> int:
        """A whole number from 0, below `count`, which is 65536 at most."""
        if count <= 256:
            return self.take(1)[0] % count
        return int.from_bytes(self.take(2), "little") % count

    def pick(self, items: Sequence[Item]) -> Item:
        """One of the items."""
        return items[self.below(len(items))]

    def one_in(self, count: int) -> bool:
        """Whether a thing of so many cases is the case; with zeros it is not."""
        return self.below(count) == count - 1

    def unit(self) -> float:
        """A number from -1 to 1."""
        return int.from_bytes(self.take(2), "little", signed=True) / 32768.0

    def number(self, scale: float = 1.0) -> float:
        """A number: as a rule within +-scale, else special, or of any bits."""
        kind = self.below(8)
        if kind == 6:
            return self.pick(SPECIAL)
        if kind == 7:
            return float(struct.unpack("<d", self.take(8))[0])
        return scale * self.unit()

    def whole(self) -> int:
        """A whole number: small, special or of any 64 bits."""
        kind = self.below(4)
        if kind == 2:
            return self.pick(WHOLE)
        if kind == 3:
            return int.from_bytes(self.take(8), "little", signed=True)
        return self.below(256) - 8

    def word(self) -> str:
        """A string: special, or of any bytes that are UTF-8."""
        if self.below(2):
            return self.pick(WORDS)
        return self.take(self.below(12)).decode("utf-8", "ignore")
