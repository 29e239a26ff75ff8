"""What was done and checked, and what did not hold."""

from collections import Counter

MOST = 20  # violations that are kept with their words


class Ledger:
    """Counts by kind; the words of the first violations."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()  # what was sent to the node
        self.checked: Counter[str] = Counter()  # by invariant
        self.violations: Counter[str] = Counter()  # by invariant
        self.words: list[str] = []

    def check(self, holds: bool, invariant: str, words: str) -> None:
        """Count a check; keep the words if it does not hold."""
        self.checked[invariant] += 1
        if not holds:
            self.violations[invariant] += 1
            if len(self.words) < MOST:
                self.words.append(f"{invariant}: {words}")
