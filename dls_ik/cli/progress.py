"""Bars on stderr for what takes longer than two seconds; none where stderr is no terminal."""

import time
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from dls_ik.cli.interrupts import held
from dls_ik.reproduce.experiment import Item

PATIENCE = 2.0  # [s]


class Bars:
    """Shows how far a run has come. Use it in a ``with``, so that the terminal is left tidy."""

    def __init__(self, console: Console, patience: float = PATIENCE) -> None:
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._patience = patience
        self._begin = time.monotonic()

    def __enter__(self) -> "Bars":
        """Start to count the seconds."""
        self._begin = time.monotonic()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away."""
        self._bars.stop()

    def counter(self, title: str) -> Callable[[int, int], None]:
        """A function to be told how many of how many are done; its bar appears as that of track."""
        task = self._bars.add_task(title, total=None)

        def show(done: int, total: int) -> None:
            self._bars.update(task, completed=done, total=total)
            self._show_in_time()

        return show

    def track(self, items: Sequence[Item], title: str) -> Iterator[Item]:
        """The items one by one; the bar appears once the run has lasted two seconds."""
        task = self._bars.add_task(title, total=len(items))
        try:
            for item in items:
                self._show_in_time()
                yield item
                self._bars.advance(task)
        finally:
            self._bars.remove_task(task)

    def _show_in_time(self) -> None:
        """Begin to show the bars once the run has lasted two seconds."""
        if time.monotonic() - self._begin > self._patience and not self._bars.live.is_started:
            with held():  # rich cannot stop what is half started
                self._bars.start()
