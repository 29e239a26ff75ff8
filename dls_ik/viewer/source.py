"""What the page shows: a source of samples, which may be a controller here or a node elsewhere.

The page knows no more of it than is written here. What a source cannot do it says by attributes,
and the page then has no widgets for it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel


class Sample(NamedTuple):
    """Where an arm is, and what it does about its target."""

    time: float  # [s] on the clock of :meth:`Source.step`
    q: Array  # (n,) [rad or m]
    velocity: Array  # (n,) [rad/s or m/s]
    T_tip: Array  # (4, 4) T_base_tip
    T_target: Array | None  # (4, 4) that is followed now; None: none
    position_error: float  # [m]; NaN without a target
    rotation_error: float  # [rad]; NaN without a target
    state: str  # name of a :class:`dls_ik.servo.ServoState`
    words: str  # a sentence: what the arm does, and why


class Parameter(NamedTuple):
    """Something a person may change: a number from low to high, or one of some choices."""

    name: str
    value: Any
    text: str  # what it means
    unit: str = ""
    low: float = 0.0
    high: float = 0.0
    choices: tuple[Any, ...] = ()  # not empty: one of these, and no range


class Source(Protocol):
    """An arm that follows a target. :meth:`step` is called by one thread, all else by any."""

    robot: RobotModel

    @property
    def name(self) -> str:
        """What the legend calls it, such as its method."""

    @property
    def methods(self) -> Sequence[str]:
        """Methods to choose from; empty: there is no choice."""

    @property
    def method(self) -> str:
        """The method now; empty: not known."""

    @property
    def parameters(self) -> Sequence[Parameter]:
        """What may be changed now, which depends on the method; empty: nothing."""

    @property
    def can_place(self) -> bool:
        """Whether :meth:`place` works: an arm can be put where one likes, a real one cannot."""

    @property
    def is_remote(self) -> bool:
        """Whether it is elsewhere: others aim it too, and it may be paused."""

    def aim(self, T: Array) -> None:
        """Follow the pose ``T_base_tip`` (4, 4), until there is another."""

    def step(self, now: float) -> Sample | None:
        """Go on to a time [s], on a steady clock; None: nothing is known yet.

        Called at the page's rate. A source that has its own clockwork returns the newest it knows.
        """

    def use(self, method: str) -> None:
        """Go on with another method.

        Raises:
            DlsIkError: the reason why not; all stays as it was.
        """

    def change(self, name: str, value: Any) -> None:
        """Change one of :attr:`parameters`.

        Raises:
            DlsIkError: the reason why not; all stays as it was.
        """

    def place(self, q: Array) -> None:
        """Be at joint values (n,) [rad or m], at rest and without a target."""

    def pause(self, paused: bool) -> None:
        """Stop and pass targets over, or go on.

        Raises:
            DlsIkError: the reason why not.
        """

    def reset(self) -> None:
        """Forget target and faults; go back to where it began, if it can be placed.

        Raises:
            DlsIkError: the reason why not.
        """

    def close(self) -> None:
        """End whatever it runs."""
