"""What is kept of names that anybody may send."""

from collections.abc import Mapping
from typing import TypeVar

MOST = 10_000  # names

Value = TypeVar("Value")


def with_news(known: Mapping[str, Value], news: Mapping[str, Value]) -> dict[str, Value]:
    """What is known, with the news of these names, and of new ones as far as there is room."""
    room = MOST - len(known)
    new = [name for name in news if name not in known]
    dropped = set(new[max(room, 0) :])
    return {**known, **{n: value for n, value in news.items() if n not in dropped}}
