"""Python objects of all kinds, for arguments that should have been something else."""

from array import array
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from fuzz.source import Source

DTYPES = ("f8", "f4", "f2", "i8", "u1", "?", "c16", "O", "U3", "S3", "M8[s]", "m8[s]", ">f8", "V4")
SHAPES = (
    (), (0,), (1,), (2,), (3,), (6,), (7,), (8,), (3, 3), (4, 4), (0, 4, 4), (1, 7), (2, 7), (7, 1),
    (1, 4, 4), (2, 4, 4), (4, 4, 4), (2, 2, 4, 4), (1, 1, 4, 4), (2, 0),
)  # fmt: skip


def anything(source: Source, depth: int = 2) -> Any:
    """An object of some kind; sequences in it, down to a depth."""
    return source.pick(SIMPLE if depth <= 0 else EVERY)(source, depth)


def numbers(source: Source, count: int, scale: float = 1.0) -> list[float]:
    """So many numbers."""
    return [source.number(scale) for _ in range(count)]


def an_array(source: Source, depth: int = 0) -> Any:
    """An array of some shape and type."""
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


def _packed(source: Source, depth: int) -> Any:
    return array("d", numbers(source, source.below(9)))


SIMPLE = (
    lambda s, d: s.number(),
    lambda s, d: s.number(),
    lambda s, d: s.whole(),
    lambda s, d: s.word(),
    lambda s, d: None,
    lambda s, d: s.one_in(2),
    lambda s, d: complex(s.number(), s.number()),
    lambda s, d: s.take(s.below(9)),
    lambda s, d: Fraction(s.whole(), 3),
    lambda s, d: Decimal(s.below(100)),
    lambda s, d: np.float32(s.unit()),
    lambda s, d: np.int64(s.below(100)),
    lambda s, d: np.bool_(s.one_in(2)),
    lambda s, d: np.datetime64(s.below(100), "s"),
    lambda s, d: object(),
    lambda s, d: float,
)
EVERY = (*SIMPLE, an_array, an_array, an_array, _sequence, _sequence, _mapping, _packed)
