"""One cycle of the stream: from the messages that arrived to the command that goes out."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, HeldError, StaleTargetError
from dls_ik.ros.arm import PREPARING, Arm
from dls_ik.ros.frames import Frames, strip_slash
from dls_ik.ros.params import AUTO, REQUIRED
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor
from dls_ik.ros.servo.targets import Arrival, apply_target, target_note
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoOutput, ServoState
from dls_ik.servo.knots import EARLIEST
from dls_ik.servo.motion import StopPath

# States in which no command goes out at rest. WAITING with a target: the arm is not measured yet.
SILENT = (ServoState.PAUSED, ServoState.FAULT, ServoState.WAITING)
LOST = "the arm stops, and continues with the next target when they come"
STOOD_STILL = "messages of that time are passed over, and the arm continues from where it is"
PASSED_OVER = "target passed over"
MAY_BE_OLD = f"{PASSED_OVER}: it may have waited while the loop stood still, send it again"
LEAVING = "the arm comes to rest first, for a robot with other joints"
NOTE_DURATION = 0.5  # [s] for which the status tells of a target
LATE = 1.25  # periods from a cycle to the next in step with targets
LONGEST = 2.0  # periods after which an arm without further commands stands still
STILL = 4.0  # periods from which the loop stood still, where target_timeout is shorter
UNHEARD_SHARE = 0.5  # share of measurement_timeout above which a gap excuses silence of the driver

Action = Callable[[Controller], None]
Measured = Callable[[], Mapping[str, float]]
Look = Callable[[Arm, float, Measured], str]  # with the time [s] steady; why the arm may not move


class Commanded(NamedTuple):
    """The last command, published or not, and the arm that it is for."""

    arm: Arm
    output: ServoOutput
    awaits_states: bool  # the status has said that it waits for joint states
    is_command: bool  # the command goes out


class ServoCycle:
    """Follows targets with the arm that it is given, which may change between cycles.

    Args:
        display_only: commands are for display, and go out before the first target too, so that a
            viewer has an arm to draw; unless there is a driver, or was no time to find one.
        has_stop_trajectory: the arm follows the stop of a command that no other one follows; else
            it stops with the commands.
    """

    def __init__(
        self,
        states: CurrentStateMonitor,
        frames: Frames,
        log: Throttle,
        display_only: bool,
        has_stop_trajectory: bool = False,
    ) -> None:
        self._states, self._frames, self._log = states, frames, log
        self._display_only = display_only
        self._has_stop = has_stop_trajectory
        self._actions: deque[tuple[float, Action]] = deque()  # with the time [s] of each
        self._next: Arm | None = None  # written by `use`, taken up by the next cycle
        self._arm: Arm | None = None
        self._commanded: Commanded | None = None
        self._before: Commanded | None = None  # the one before
        self._pending: Arrival | None = None  # a target that waits for joint states
        self._note = (-math.inf, "")  # time and text of a remark on a target
        self._look: Look = lambda arm, now, measured: ""
        self._hindrance = ""  # why the arm may not move

    @property
    def has_arm(self) -> bool:
        """Return whether there is an arm to move."""
        return self._next is not None

    @property
    def joints(self) -> Iterable[str]:
        """All joints of the robot that is moved; not yet those of one that is to be used."""
        arm = self._arm
        return () if arm is None else arm.tree.mimic_of

    @property
    def moves(self) -> bool:
        """Return whether the last command was one of motion."""
        return self._commanded is not None and any(self._commanded.output.velocity.tolist())

    def is_old(self, report: CycleReport, age: float) -> bool:
        """Return whether a command of this age [s] would take the arm back to where it was then."""
        if report.arm is None:
            return False
        period = 1.0 / report.arm.parameters.rate
        return age > (LONGEST * period if self._has_stop else _longest_gap(report.arm))

    def withdraw(self, stop: StopPath | None) -> None:
        """Take the last cycle back, whose command did not go out: the arm is where it was led to.

        Args:
            stop: of the command before, which the arm continues on; None: it stands there.
        """
        arm, before = self._arm, self._before
        self._commanded = before
        if arm is None:
            return
        is_same = before is not None and before.arm.robot.joint_names == arm.robot.joint_names
        if stop is not None and is_same:
            arm.controller.go_back(stop)
        elif before is not None and is_same and before.is_command:
            arm.controller.stand_at(before.output.q)
        else:
            known = {} if before is None else _by_name(before.arm, before.output.q)
            arm.controller.resume_after_gap(_start_of(arm, known))

    def lag(self) -> float:
        """Return how late the arm follows its commands, as measured [s]; NaN: not known yet."""
        arm = self._arm
        return math.nan if arm is None else arm.controller.lag()

    def use(self, arm: Arm) -> None:
        """Use this arm from the next cycle on."""
        self._next = arm

    def watch(self, look: Look) -> None:
        """Show each cycle's arm, and where joints are measured, to a function that may hold it."""
        self._look = look

    def submit(self, action: Action) -> None:
        """Apply an action to the controller at the beginning of the next cycle, from any thread."""
        self._actions.append((time.monotonic(), action))

    def current(self, arm: Arm) -> dict[str, float]:
        """Return joint values by name: as drivers publish them, else as they are commanded.

        Any thread may ask, also for an arm that no cycle has taken up yet, or that one has left.
        """
        values = self._states.values()
        if self._states.measurement(arm, time.monotonic()) is None:
            last = self._commanded
            known = {} if last is None else _by_name(last.arm, last.output.q)
            q = _start_of(arm, known)
            values |= _by_name(arm, q)
        return values

    def run(self, now: float, stamp: int, gap: float, arrival: Arrival | None) -> CycleReport:
        """Run a cycle with the target that arrived since the last one.

        Args:
            now: [s] steady.
            stamp: the time now by the clock that messages are stamped with [ns].
            gap: time since the last cycle [s].
        """
        self._before = self._commanded
        is_leaving = self._take_up()
        arm = self._arm
        if arm is None:
            if arrival is not None:
                words = ServoState.NO_ROBOT.explanation
                self._log.warn("robot", f"a target arrived, but there is {words}")
            return CycleReport(ServoState.NO_ROBOT, ServoState.NO_ROBOT.explanation)
        stood_still, dt = self._catch_up(arm, gap)
        if stood_still:
            self._states.distrust(now)
            self._log.warn("late", f"the loop stood still for {gap:.3g} s: {STOOD_STILL}")
        if stood_still or gap > _longest_unheard_gap(arm):
            since = self._states.trusted_since if stood_still else now
            arm.controller.expect_measurements(since)
        measurement = self._states.measurement(arm, now)
        is_measured = measurement is not None
        if arrival is not None and self._counts(arm, arrival, now):
            self._pending = arrival
        elif arrival is not None:
            self._note = (now, MAY_BE_OLD)
        self._run_pending(arm)
        if is_leaving and self._pending is not None:
            self._pending, self._note = None, (now, f"{PASSED_OVER}: {LEAVING}")
            self._log.warn("leaving", f"{PASSED_OVER}: {LEAVING}")
        if not arm.controller.moves and self._states.is_uncertain(now, is_measured):
            words = self._with_note(f"the loop stood still; {STOOD_STILL}", now)
            return CycleReport(ServoState.STALE, words, arm)
        if self._states.loses(arm, now, is_measured):
            arm.controller.reset()
            self._log.warn("lost", f"no joint states on {self._states.topic} any more: {LOST}")
        may_start = self._states.may_start(arm, now, is_measured)
        hindrance = self._look(arm, now, self._states.values) or arm.surroundings.hindrance
        self._hindrance = hindrance
        if hindrance and arm.controller.started and not arm.controller.hold_reason:
            arm.controller.reset()
        may_start = may_start and not hindrance
        if self._pending is not None and (arm.controller.hold_reason or may_start):
            pending, self._pending = self._pending, None  # also if it cannot be applied
            self._apply(arm, pending, now, stamp)
        if measurement is None:
            output = arm.controller.cycle(now, dt)
        else:
            output = arm.controller.cycle(now, dt, measurement.q, now - measurement.times)
        return self._report(arm, output, now, is_measured)

    def _catch_up(self, arm: Arm, gap: float) -> tuple[bool, float]:
        """Move the command to the arm if the gap since the last cycle [s] is longer than a period.

        The process was stopped or got no processor. An arm that is sent stops has moved along the
        last one since its command was due; an arm that is sent single points stands at its command.

        Returns:
            True if the loop stood still so long that messages of the gap are old; and the time to
            advance by [s], so that a stall of the machine is no jump of the arm.
        """
        period, controller = 1.0 / arm.parameters.rate, arm.controller
        stood_still = gap > _longest_gap(arm)
        if self._has_stop:  # each command is due a period after it is sent
            dt = gap
            if gap > (1.0 + EARLIEST) * period:
                controller.resume_at(gap - period, period)
                dt = period
        else:
            # A step of one period, as a controller may take no longer for it.
            dt = gap if gap <= LATE * period else period
            if gap > LONGEST * period:
                controller.stand_still()
        if stood_still and not (self._has_stop and controller.moves):
            controller.resume_after_gap(controller.command)
        return stood_still, dt

    def _take_up(self) -> bool:
        """Use the next arm, if there is one.

        Returns:
            True if the arm in use must come to rest first, as the next one has other joints.
        """
        arm, old = self._next, self._arm
        if arm is None or arm is old:
            return False
        if old is None:
            arm.controller.seed(arm.start)
        elif arm.controller is not old.controller:
            is_same = arm.robot.joint_names == old.robot.joint_names
            if is_same and arm.surroundings.hindrance == PREPARING and arm.robot is not old.robot:
                return False  # the one before knows its scene
            if is_same:
                arm.controller.take_over(old.controller)
            elif old.controller.moves:  # nobody else would bring these joints to rest
                if not old.controller.hold_reason:
                    old.controller.reset()
                return True
            else:
                commanded = _by_name(old, old.controller.command)
                arm.controller.seed(_start_of(arm, commanded))
                arm.controller.hold_like(old.controller)
                self._pending = None
        self._arm = arm
        return False

    def _counts(self, arm: Arm, arrival: Arrival, now: float) -> bool:
        """Return whether a target is not one that may have waited while the loop stood still."""
        if self._states.is_settled(now):
            return True
        if arrival.was_queued(now, arm.parameters.target_timeout):
            return False
        is_timed = arrival.is_stamped or arrival.delay is not None
        return is_timed or self._states.is_trusted(now)

    def _run_pending(self, arm: Arm) -> None:
        """Run the actions; a target that was sent before one of them is forgotten."""
        while self._actions:
            given, action = self._actions.popleft()
            action(arm.controller)
            self._note = (-math.inf, "")
            if self._pending is not None and self._pending.time <= given:
                self._pending = None

    def _apply(self, arm: Arm, arrival: Arrival, now: float, stamp: int) -> None:
        message = arrival.message
        try:
            values = self._frame_values(arm, message)
            apply_target(arm, message, self._frames, values, now, arrival.age(now, stamp))
        except (HeldError, StaleTargetError) as error:
            is_held = isinstance(error, HeldError)  # which the status says by itself
            self._note = (now, PASSED_OVER if is_held else f"{PASSED_OVER}: {error}")
            self._log.warn("passed over", f"{PASSED_OVER}: {error}")
        except DlsIkError as error:
            arm.controller.refuse(str(error))
            self._log.warn("target", f"target refused, the arm holds: {error}")
        except Exception as error:
            arm.controller.refuse(f"internal error: {error!r}")
            raise
        else:
            if note := target_note(message):
                self._note = (now, note)
                self._log.once("length", f"target: {note} (told once)")

    def _frame_values(self, arm: Arm, message: Any) -> dict[str, float]:
        """Return the joint values that the frame of a target depends on: none in the root frame."""
        is_root = strip_slash(message.header.frame_id) in ("", arm.tree.root)
        return {} if is_root and arm.robot.base == arm.tree.root else self._joint_values(arm)

    def _joint_values(self, arm: Arm) -> dict[str, float]:
        """Return the values of all joints of the robot, those of the chain as commanded."""
        measured = {n: q for n, q in self._states.values().items() if n in arm.tree.mimic_of}
        return {**measured, **_by_name(arm, arm.controller.command)}

    def _report(self, arm: Arm, output: ServoOutput, now: float, is_measured: bool) -> CycleReport:
        may_start = self._states.may_start(arm, now, is_measured)
        is_command = self._is_command(arm, output, may_start, is_measured)
        if is_command and is_measured and self._states.shares_topic:
            self._warn_of_driver()
        message, awaits_states = output.message, False
        has_awaited = self._commanded is not None and self._commanded.awaits_states
        if may_start and has_awaited:
            self._log_ready(arm, is_measured)
        elif not may_start:
            awaits_states = has_awaited or output.state is ServoState.WAITING
            if output.state is ServoState.WAITING:
                message = f"waiting for joint states on {self._states.topic}"
        if self._hindrance and output.state is ServoState.WAITING:
            message = f"{output.state.explanation}; targets wait: {self._hindrance}"
        self._commanded = Commanded(arm, output, awaits_states, is_command)
        waits = output.state is ServoState.WAITING
        return CycleReport(
            output.state,
            self._with_note(message, now),
            arm,
            output,
            is_command,
            awaits_states=waits and not may_start,
            are_targets_held=waits and bool(self._hindrance),
        )

    def _with_note(self, message: str, now: float) -> str:
        """Add the remark on the last target to a message, for NOTE_DURATION."""
        since, note = self._note
        return f"{message}; {note}" if now - since < NOTE_DURATION else message

    def _is_command(
        self, arm: Arm, output: ServoOutput, may_start: bool, is_measured: bool
    ) -> bool:
        """Return whether a command goes out.

        None does from an arm at rest that has no target, is paused, at fault, or not measured yet:
        others may move it, or have moved it.
        """
        if self.moves or any(output.velocity.tolist()):  # the last one stands still
            return True
        if self._display_only:
            return arm.controller.started or (may_start and not is_measured)
        is_supervised = arm.parameters.feedback_mode == REQUIRED
        if arm.controller.starts_anew and (is_measured or is_supervised):
            return False
        return arm.controller.started and output.state not in SILENT

    def _log_ready(self, arm: Arm, is_measured: bool) -> None:
        """Log that waiting for joint states is over."""
        topic = self._states.topic
        if is_measured:
            self._log.info("heard", f"joint states come on {topic}: ready for targets")
        elif arm.parameters.feedback_mode == AUTO:
            self._log.info(
                "heard",
                f"nobody publishes joint states of these joints on {topic}: the arm starts at "
                "initial_positions, ready for targets",
            )

    def _warn_of_driver(self) -> None:
        self._log.once(
            "driver",
            f"commands go out on {self._states.topic}, where a driver publishes joint states: "
            "listeners get both; set the parameter output_topic to another topic, and output_type "
            "to the one that the driver takes",
        )


def _by_name(arm: Arm, q: Array) -> dict[str, float]:
    return dict(zip(arm.robot.joint_names, q.tolist(), strict=True))


def _start_of(arm: Arm, known: Mapping[str, float]) -> Array:
    """Return where an arm starts (n,): joints whose values are known stay there."""
    pairs = zip(arm.robot.joint_names, arm.start.tolist(), strict=True)
    return np.array([known.get(name, start) for name, start in pairs])


def _longest_gap(arm: Arm) -> float:
    """Return the gap [s] from which the loop stood still."""
    return max(arm.parameters.target_timeout, STILL / arm.parameters.rate)


def _longest_unheard_gap(arm: Arm) -> float:
    """Return the gap [s] from which the loop itself may be why no joint states were heard."""
    parameters = arm.parameters
    return max(LONGEST / parameters.rate, UNHEARD_SHARE * parameters.measurement_timeout)
