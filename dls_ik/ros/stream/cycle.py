"""One cycle of the stream: from the messages that arrived to the command that goes out."""

import math
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from geometry_msgs.msg import TwistStamped

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, HeldError, StaleTargetError
from dls_ik.ros.arm import Arm
from dls_ik.ros.frames import Frames
from dls_ik.ros.params.ik_node import AUTO
from dls_ik.ros.stream.aim import age_by_stamp, aim, is_stamped, remark
from dls_ik.ros.stream.joint_states import JointStates
from dls_ik.ros.stream.late import Late
from dls_ik.ros.stream.targets import Arrival
from dls_ik.ros.stream.whereabouts import Whereabouts
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoOutput, ServoState

SILENT = (ServoState.PAUSED, ServoState.FAULT)
LOST = "the arm stops, and goes on with the next target when they come"
STOOD_STILL = "what came meanwhile is passed over, and the arm goes on from where it is"
PASSED_OVER = "target passed over"
SAID = 0.5  # [s] that the status tells of a target that was passed over, or not taken as it is


class Outcome(NamedTuple):
    """What came of a cycle."""

    arm: Arm | None  # None: there is no robot yet
    output: ServoOutput | None  # None: as well
    is_command: bool  # whether it goes out
    state: ServoState
    words: str


class Stream:
    """Follows targets with the arm that it is given, which may change between cycles.

    Args:
        shows: the commands are for display, and go out before the first target too, so that a
            viewer has an arm to draw; unless there is a driver, or was no time to find one.
        shares: the commands go out on the topic that drivers publish on.
        goes_on: the arm follows the stop of a command that no other one follows; else it stops with
            the commands.
    """

    def __init__(
        self,
        states: JointStates,
        frames: Frames,
        log: Throttle,
        shows: bool,
        shares: bool,
        goes_on: bool = False,
    ) -> None:
        self._where, self._frames, self._log = Whereabouts(states, shows), frames, log
        self._shows, self._shares = shows, shares
        self._late = Late(goes_on)
        self._next: Arm | None = None  # written by `use`, taken up by the next cycle
        self._arm: Arm | None = None
        self._commanded: tuple[tuple[str, ...], Array] = ((), np.zeros(0))  # never changed
        self._waits = False  # the status said that it waits for joint states
        self._leaves = False  # the arm slows down, to give way to one of other joints
        self._pending: Arrival | None = None
        self._said = (-math.inf, "")  # when, and what, of a target
        self._moved = False  # in the last cycle
        self._orders: deque[tuple[float, Callable[[Controller], None]]] = deque()

    @property
    def has_arm(self) -> bool:
        """Whether there is anything to move."""
        return self._next is not None

    @property
    def moves(self) -> bool:
        """Whether the command of the last cycle was one of motion."""
        return self._moved

    def is_old(self, outcome: Outcome, age: float) -> bool:
        """Whether a command was made too long ago [s] to go out."""
        return outcome.arm is not None and self._late.is_old(outcome.arm, age)

    def lag(self) -> float:
        """How late the arm follows its commands [s], by its joint states; NaN: not known yet."""
        arm = self._arm
        return math.nan if arm is None else arm.controller.lag()

    def use(self, arm: Arm) -> None:
        """Go on with this arm from the next cycle."""
        self._next = arm

    def order(self, order: Callable[[Controller], None]) -> None:
        """Do something with the controller at the beginning of the next cycle, from any thread."""
        self._orders.append((time.monotonic(), order))

    def current(self, arm: Arm) -> dict[str, float]:
        """Joint values by name: as drivers publish them, else as they are commanded.

        Any thread may ask, also for an arm that no cycle has taken up yet, or that one has left.
        """
        values = self._where.values()
        if self._where.measured(arm, time.monotonic()) is None:
            q = _start(arm, *self._commanded)
            values.update(zip(arm.robot.joint_names, q.tolist(), strict=True))
        return values

    def cycle(self, now: float, stamp: int, dt: float, arrival: Arrival | None) -> Outcome:
        """Advance by `dt` [s], with the message that arrived since the last cycle.

        Args:
            stamp: the time now by the clock that messages are stamped with [ns].
        """
        self._take_up()
        arm = self._arm
        if arm is None:
            nothing = ServoState.NO_ROBOT
            if arrival is not None:
                self._log.warn("robot", f"a target arrived, but there is {nothing.explanation}")
            return Outcome(None, None, False, nothing, nothing.explanation)
        dt = self._catch_up(arm, now, dt)
        found = self._where.measurement(arm, now)
        measured, age = (None, 0.0) if found is None else (found.q, now - found.times)
        self._pending = self._of_now(arm, arrival, now) or self._pending
        self._obey(arm)
        if self._leaves:
            self._pending = None
        if not arm.controller.moves and self._where.is_uncertain(now, measured):
            words = f"the loop stood still; {STOOD_STILL}"
            return Outcome(arm, None, False, ServoState.STALE, words)
        if self._where.loses(arm, now, measured):
            arm.controller.reset()
            self._log.warn("lost", f"no joint states on {self._where.topic} any more: {LOST}")
        if self._pending is not None and self._may_aim(arm, now, measured):
            self._aim(arm, self._pending, now, stamp)
            self._pending = None
        output = arm.controller.cycle(now, dt, measured, age)
        self._commanded = arm.robot.joint_names, output.q
        is_command = self._is_command(arm, output, measured, now)
        if is_command and measured is not None and self._shares:
            self._warn_of_driver()
        words = self._words(arm, output, measured, now)
        return Outcome(arm, output, is_command, output.state, words)

    def _catch_up(self, arm: Arm, now: float, dt: float) -> float:
        """Let the command be where the arm came to, if this cycle is late; return its dt [s]."""
        gap, is_lapse, dt = self._late.cycle(arm, now, dt)
        if is_lapse:
            self._where.distrust(now)
            self._log.warn("late", f"the loop stood still for {gap:.3g} s: {STOOD_STILL}")
        return dt

    def _of_now(self, arm: Arm, arrival: Arrival | None, now: float) -> Arrival | None:
        """A target, unless it may have waited while the loop stood; a stamp tells by itself."""
        if arrival is None or self._where.is_settled(now):
            return arrival
        parameters = arm.parameters
        if now - arrival.time > parameters.target_timeout:  # it was here, and nobody took it
            return None
        if is_stamped(arrival.message):
            return arrival
        if arrival.waited(parameters.target_timeout, parameters.stamp_tolerance):
            return None
        return arrival if arrival.sent or self._where.is_trusted(now) else None

    def _take_up(self) -> None:
        arm, old = self._next, self._arm
        self._leaves = False
        if arm is None or arm is old:
            return
        if old is None:
            arm.controller.seed(arm.start)
        elif arm.controller is not old.controller:
            if arm.robot.joint_names == old.robot.joint_names:
                arm.controller.take_over(old.controller)
            elif old.controller.moves:  # nobody else would bring these joints to rest
                if not old.controller.hold_reason:
                    old.controller.reset()
                self._leaves = True
                return
            else:
                arm.controller.seed(_start(arm, old.robot.joint_names, old.controller.command))
                arm.controller.hold_like(old.controller)
                self._pending = None
        self._arm = arm

    def _obey(self, arm: Arm) -> None:
        """Carry the orders out; a target that was sent before them is forgotten."""
        while self._orders:
            given, order = self._orders.popleft()
            order(arm.controller)
            self._said = (-math.inf, "")
            if self._pending is not None and self._pending.time <= given:
                self._pending = None

    def _may_aim(self, arm: Arm, now: float, measured: Array | None) -> bool:
        """Whether a target need not wait: it can be followed, or will be passed over anyway."""
        return bool(arm.controller.hold_reason) or self._where.may_start(arm, now, measured)

    def _aim(self, arm: Arm, arrival: Arrival, now: float, stamp: int) -> None:
        try:
            waited = now - arrival.time
            age = age_by_stamp(arrival.message, stamp, waited)
            if isinstance(arrival.message, TwistStamped):
                age += waited  # a pose may wait for a driver, motion may not
            aim(arm, arrival.message, self._frames, self._known(arm), now, age)
            if words := remark(arrival.message):
                self._said = (now, words)
                self._log.once("length", f"target: {words} (told once)")
        except (HeldError, StaleTargetError) as error:
            is_held = isinstance(error, HeldError)  # which the status says by itself
            self._said = (now, PASSED_OVER if is_held else f"{PASSED_OVER}: {error}")
            self._log.warn("passed over", f"{PASSED_OVER}: {error}")
        except DlsIkError as error:
            arm.controller.refuse(str(error))
            self._log.warn("target", f"target refused, the arm holds: {error}")

    def _known(self, arm: Arm) -> dict[str, float]:
        """The values of all joints of the robot, those of the chain as they are commanded."""
        heard = {n: p for n, p in self._where.values().items() if n in arm.tree.mimic_of}
        names = arm.robot.joint_names
        return {**heard, **dict(zip(names, arm.controller.command.tolist(), strict=True))}

    def _is_command(
        self, arm: Arm, output: ServoOutput, measured: Array | None, now: float
    ) -> bool:
        """Whether a command goes out: not from an arm at rest without a target, paused or at fault.

        Others may move it then, or it may have been moved.
        """
        moved, self._moved = self._moved, bool(output.velocity.any())
        if moved or self._moved:  # the last one stands still
            return True
        if arm.controller.started and (self._shows or output.state not in SILENT):
            return True
        return self._shows and measured is None and self._where.may_start(arm, now, measured)

    def _words(self, arm: Arm, output: ServoOutput, measured: Array | None, now: float) -> str:
        words = output.message
        if output.state is ServoState.WAITING and not self._where.may_start(arm, now, measured):
            words = f"waiting for joint states on {self._where.topic}"
            self._waits = True
        elif self._waits and self._where.may_start(arm, now, measured):
            self._waits = False
            self._tell_start(arm, measured)
        since, said = self._said
        return f"{words}; {said}" if now - since < SAID else words

    def _tell_start(self, arm: Arm, measured: Array | None) -> None:
        """Say in the log that what the status said is over."""
        if measured is not None:
            self._log.info("heard", f"joint states come on {self._where.topic}: ready for targets")
        elif arm.parameters.feedback_mode == AUTO:
            self._log.info(
                "heard",
                f"nobody publishes joint states of these joints on {self._where.topic}: the arm "
                "starts at initial_positions, ready for targets",
            )

    def _warn_of_driver(self) -> None:
        self._log.once(
            "driver",
            f"commands go out on {self._where.topic}, where a driver publishes joint states: "
            "whoever listens gets both; set the parameter output_topic to another topic, and "
            "output_type to what the driver takes",
        )


def _start(arm: Arm, names: tuple[str, ...], q: Array) -> Array:
    """Where an arm begins after commands `q` of these joints: those of its own stay there."""
    known = dict(zip(names, q.tolist(), strict=True))
    pairs = zip(arm.robot.joint_names, arm.start.tolist(), strict=True)
    return np.array([known.get(name, start) for name, start in pairs])
