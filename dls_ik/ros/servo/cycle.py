# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Cycle of the servo loop: it computes the next command from the received messages."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import DlsIkError, HeldError, OptionError, StaleTargetError
from dls_ik.ros.arm import PREPARING, Arm
from dls_ik.ros.frames import Frames, strip_slash
from dls_ik.ros.params import MODE_AUTO, MODE_REQUIRED
from dls_ik.ros.servo.freshness import DRAIN_TIME, Freshness, min_stall
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.ros.servo.state_monitor import CurrentStateMonitor, JointPositions
from dls_ik.ros.servo.target_buffer import Address, Arrival, apply_target, target_note
from dls_ik.ros.util import Throttle
from dls_ik.servo import Controller, ServoOutput, ServoState
from dls_ik.servo.joint_target import JointTarget, MotionEnd
from dls_ik.servo.knots import EARLIEST
from dls_ik.servo.motion import StopPath
from dls_ik.servo.state import AWAITS_STATES

# States in which an arm at rest gets no commands. WAITING: no target, or no joint states yet.
SILENT_STATES = (ServoState.PAUSED, ServoState.FAULT, ServoState.WAITING)
STALL_CONSEQUENCE = (
    "messages from that time are ignored; the arm continues from its current position"
)
TARGET_IGNORED = "target ignored"
MAY_BE_OLD = f"{TARGET_IGNORED}: it may have been queued while the loop stalled; send it again"
STOPS_FOR_ROBOT = f"{TARGET_IGNORED}: the arm stops first, because the new robot has other joints"
PREEMPTED_BY_TARGET = "a newer target arrived before the motion started"
PREEMPTED_BY_GOAL = "a newer goal arrived before the motion started"
NOTE_DURATION = 0.5  # [s] time for which a remark on a target is part of the status
MAX_IN_STEP_PERIODS = 1.25  # maximum time between two cycles that are triggered by targets
MAX_COAST_PERIODS = 2.0  # time after a command until the arm is at rest if no command follows
# Share of `measurement_timeout`. After a longer gap between cycles, joint states may be unread.
MAX_SILENT_SHARE = 0.5

Action = Callable[[Controller], None]
JointPositionsByName = Callable[[], Mapping[str, float]]
# Function of an arm, the time on the steady clock [s], and a function that returns measured joint
# positions by name. The function returns the reason why the arm must hold, or an empty text.
HoldCheck = Callable[[Arm, float, JointPositionsByName], str]


class Commanded(NamedTuple):
    """Command of a cycle, and the arm for which it was computed."""

    arm: Arm
    output: ServoOutput
    awaits_states: bool  # whether the status reported that the arm waits for joint states
    is_command: bool  # whether the command is published


class ServoCycle:
    """Computes the commands with which an arm follows targets, one per cycle of the servo loop.

    The arm in use may be replaced by another arm between two cycles.

    Args:
        states: Monitor of the joint states that drivers publish.
        frames: Transforms of the frames of targets.
        log: Log of the node.
        display_only: Whether the commands are for display only. Then commands are also published
            before the first target, unless a driver publishes joint states, so that a viewer can
            draw the arm.
        has_stop_trajectory: Whether each command includes a stop trajectory, which the arm follows
            if no other command arrives. If False, the arm stops at its last command.
        do_drives_move: Function that returns whether the last velocity sent to drives is not zero;
            corrections of drift can move drives while the command is at rest.
    """

    def __init__(
        self,
        states: CurrentStateMonitor,
        frames: Frames,
        log: Throttle,
        display_only: bool,
        has_stop_trajectory: bool = False,
        do_drives_move: Callable[[], bool] = lambda: False,
    ) -> None:
        self._states, self._frames, self._log = states, frames, log
        self._do_drives_move = do_drives_move
        self._display_only = display_only
        self._has_stop = has_stop_trajectory
        self._actions: deque[tuple[float, Action]] = deque()  # times of submission [s], actions
        self._next: Arm | None = None  # written by `use`, applied by the next cycle
        self._arm: Arm | None = None
        self._commanded: Commanded | None = None
        self._previous: Commanded | None = None  # the command before `_commanded`
        # Targets that wait until the arm may start, by tip and reference.
        self._pending: dict[Address, Arrival] = {}
        self._note = (-math.inf, "")  # time [s] and text of a remark on a target
        self._goals: deque[tuple[float, JointTarget]] = deque()  # times of submission [s], goals
        self._goal: JointTarget | None = None  # goal that waits until the arm may start
        self._check_hold: HoldCheck = lambda arm, now, values: ""
        self._hold_reason = ""  # empty: the arm may move

    @property
    def has_arm(self) -> bool:
        """Return whether the cycle has got an arm to use."""
        return self._next is not None

    @property
    def joints(self) -> Iterable[str]:
        """Names of all joints of the robot in use.

        The robot given to :meth:`use` is in use only from the next cycle on, or later if the
        previous arm must stop first.
        """
        arm = self._arm
        return () if arm is None else arm.tree.mimic_of

    def joint_names(self) -> tuple[str, ...]:
        """Return the names of the joints that follow targets; () without an arm."""
        arm = self._next
        return () if arm is None else arm.robot.joint_names

    @property
    def moves(self) -> bool:
        """Return whether the velocity of the last command is not zero."""
        return self._commanded is not None and any(self._commanded.output.velocity.tolist())

    def is_too_late(self, report: CycleReport, age: float) -> bool:
        """Return whether a command must not be published, because it was computed too long ago.

        The arm has meanwhile moved along its stop trajectory, or has stopped.

        Args:
            report: Report of the cycle that computed the command.
            age: Time since the start of the cycle [s].
        """
        if report.arm is None:
            return False
        period = 1.0 / report.arm.parameters.rate
        return age > (MAX_COAST_PERIODS * period if self._has_stop else _min_stall(report.arm))

    def roll_back(self, stop: StopPath | None) -> None:
        """Roll back the last cycle, because its command was not published.

        Args:
            stop: Stop path of the last published command, along which the arm moves; None if the
                arm is at rest at the last published command.
        """
        arm, before = self._arm, self._previous
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
        """Return the time by which the arm lags behind its commands [s]; NaN if unknown."""
        arm = self._arm
        return math.nan if arm is None else arm.controller.lag()

    def use(self, arm: Arm) -> None:
        """Use an arm from the next cycle on, or later if the previous arm must stop first."""
        self._next = arm

    def set_hold_check(self, check: HoldCheck) -> None:
        """Set the function that each cycle calls to decide whether the arm must hold."""
        self._check_hold = check

    def submit(self, action: Action) -> None:
        """Submit an action on the controller for the next cycle; callable from any thread."""
        self._actions.append((time.monotonic(), action))

    def submit_goal(self, goal: JointTarget) -> None:
        """Submit a joint trajectory for the next cycle; callable from any thread.

        The newest target counts: the trajectory replaces earlier targets and trajectories, and a
        later target or trajectory replaces it.
        """
        self._goals.append((time.monotonic(), goal))

    def current(self, arm: Arm) -> dict[str, float]:
        """Return current joint positions by name [rad or m]; callable from any thread.

        These are the last measured positions. If a joint of the chain has no recent measurement,
        the commanded positions are returned for all joints of the chain.

        Args:
            arm: The arm in use, an earlier arm, or an arm that is not in use yet.
        """
        values = self._states.values()
        if self._states.measurement(arm, time.monotonic()) is None:
            last = self._commanded
            known = {} if last is None else _by_name(last.arm, last.output.q)
            q = _start_of(arm, known)
            values |= _by_name(arm, q)
        return values

    def run(self, now: float, stamp: int, gap: float, arrival: Arrival | None) -> CycleReport:
        """Run a cycle: apply a new target, compute the next command, and return a report.

        Args:
            now: Current time on the steady clock [s].
            stamp: Current ROS time [ns].
            gap: Time since the last cycle [s].
            arrival: Newest target since the last cycle; None if no target arrived.
        """
        self._previous = self._commanded
        must_stop = self._switch_arm()
        arm = self._arm
        if arm is None:
            return self._report_no_robot(arrival)
        dt = self._handle_gap(arm, now, gap)
        self._take_input(arm, arrival, now, must_stop)
        positions = self._states.joint_positions(arm, now)
        if positions.freshness is Freshness.WAIT and not arm.controller.moves:
            words = self._with_note(f"the loop stalled; {STALL_CONSEQUENCE}", now)
            return CycleReport(ServoState.STALE, words, arm)
        if positions.is_lost:
            self._stop_without_driver(arm)
        is_measured = positions.measurement is not None
        self._apply_pending(arm, now, stamp, is_measured)
        return self._report(arm, self._advance(arm, now, dt, positions), now, is_measured)

    def _report_no_robot(self, arrival: Arrival | None) -> CycleReport:
        words = ServoState.NO_ROBOT.explanation
        if arrival is not None:
            self._log.warn("robot", f"a target arrived, but there is {words}")
        return CycleReport(ServoState.NO_ROBOT, words)

    def _handle_gap(self, arm: Arm, now: float, gap: float) -> float:
        """Handle a gap between two cycles; return the time step for the controller [s].

        Args:
            arm: Arm in use.
            now: Current time on the steady clock [s].
            gap: Time since the last cycle [s].
        """
        is_stall, dt = self._catch_up(arm, gap)
        if is_stall:
            self._states.note_stall(now)
            self._log.warn("late", f"the loop stalled for {gap:.3g} s: {STALL_CONSEQUENCE}")
        if is_stall or gap > _max_silent_gap(arm):
            arm.controller.expect_measurements(now + DRAIN_TIME if is_stall else now)
        return dt

    def _take_input(self, arm: Arm, arrival: Arrival | None, now: float, must_stop: bool) -> None:
        """Store a target for this or a later cycle, and run the submitted actions.

        A target that may be old is ignored.

        Args:
            arm: Arm in use.
            arrival: Newest target since the last cycle; None if no target arrived.
            now: Time on the steady clock [s].
            must_stop: Whether to drop the target, because the arm must stop before an arm with
                other joints replaces it.
        """
        since_stall, timeout = self._states.since_stall(now), arm.parameters.target_timeout
        is_accepted = False
        for each in () if arrival is None else (arrival, *arrival.others):
            if each.freshness(now, since_stall, timeout) is Freshness.ACCEPT:
                self._pending[each.tip, each.reference] = each
                is_accepted = True
            else:
                self._note = (now, MAY_BE_OLD)
        self._run_actions(arm)
        self._take_goals(is_accepted)
        if must_stop and self._goal is not None:
            self._end_waiting_goal(MotionEnd.STOPPED, STOPS_FOR_ROBOT)
        if must_stop and self._pending:
            self._pending, self._note = {}, (now, STOPS_FOR_ROBOT)
            self._log.warn("leaving", STOPS_FOR_ROBOT)

    def _take_goals(self, has_target: bool) -> None:
        """Keep the newest of the waiting goals and targets.

        Args:
            has_target: Whether this cycle has accepted a target.
        """
        if has_target and self._goal is not None:
            self._end_waiting_goal(MotionEnd.PREEMPTED, PREEMPTED_BY_TARGET)
        while self._goals:
            submitted, goal = self._goals.popleft()
            if self._goal is not None:
                self._end_waiting_goal(MotionEnd.PREEMPTED, PREEMPTED_BY_GOAL)
            self._goal = goal
            pending = self._pending.items()
            self._pending = {key: each for key, each in pending if each.time > submitted}
        if has_target and self._pending and self._goal is not None:
            self._end_waiting_goal(MotionEnd.PREEMPTED, PREEMPTED_BY_TARGET)

    def _end_waiting_goal(self, reason: MotionEnd, message: str) -> None:
        goal, self._goal = self._goal, None
        if goal is not None:
            goal.end(reason, message)

    def _start_goal(self, arm: Arm, now: float) -> None:
        """Pass the waiting goal to the controller, unless the goal has ended, or has other joints.

        Args:
            arm: Arm in use.
            now: Current time on the steady clock [s].
        """
        goal, self._goal = self._goal, None
        if goal is None or goal.has_ended:
            return
        if goal.names != arm.robot.joint_names:
            goal.end(MotionEnd.STOPPED, STOPS_FOR_ROBOT)
            return
        try:
            arm.controller.follow_joints(goal, now)
        except HeldError as error:
            goal.end(MotionEnd.STOPPED, str(error))

    def _stop_without_driver(self, arm: Arm) -> None:
        arm.controller.reset()
        self._log.warn(
            "lost",
            f"joint states on {self._states.topic} timed out: the arm stops; when joint states "
            "arrive again, it follows the next target",
        )

    def _apply_pending(self, arm: Arm, now: float, stamp: int, is_measured: bool) -> None:
        """Pass a stored target to the controller if the arm may move; stop an arm that must hold.

        Args:
            arm: Arm in use.
            now: Current time on the steady clock [s].
            stamp: Current ROS time [ns].
            is_measured: Whether the joint positions of the arm are measured.
        """
        may_start = self._states.may_start(arm, now, is_measured)
        reason = self._check_hold(arm, now, self._states.values) or arm.surroundings.hold_reason
        self._hold_reason = reason
        if reason and arm.controller.started and not arm.controller.hold_reason:
            arm.controller.stop(reason)  # a trajectory ends with this reason
            arm.controller.reset()
        may_follow = bool(arm.controller.hold_reason) or (may_start and not reason)
        if self._goal is not None and (may_follow or self._goal.has_ended):
            self._start_goal(arm, now)
        # If the controller is paused or in a fault, it refuses the target and gives the reason.
        if self._pending and may_follow:
            pending, self._pending = self._pending, {}  # cleared first: `_apply` may raise
            for arrival in sorted(pending.values(), key=lambda each: each.time):
                self._apply(arm, arrival, now, stamp)

    def _advance(self, arm: Arm, now: float, dt: float, positions: JointPositions) -> ServoOutput:
        """Run a cycle of the controller, and return its output.

        Args:
            arm: Arm in use.
            now: Current time on the steady clock [s].
            dt: Time step of the controller [s].
            positions: Joint positions of the arm; the controller gets the measurement, if any.
        """
        measured = positions.measurement
        if measured is None:
            return arm.controller.cycle(now, dt)
        return arm.controller.cycle(now, dt, measured.q, now - measured.times)

    def _catch_up(self, arm: Arm, gap: float) -> tuple[bool, float]:
        """Set the command to the current position of the arm if the last cycle was too long ago.

        A long gap means that the process was stopped or got no processor. If the commands include
        stop trajectories, the arm has meanwhile moved along the stop trajectory of the last
        command. Otherwise the arm is at rest at the last command.

        Args:
            arm: Arm in use.
            gap: Time since the last cycle [s].

        Returns:
            Whether the loop stalled, so that queued messages may be old; and the time step of the
            controller [s], which is limited so that the arm does not jump after a gap.
        """
        period, controller = 1.0 / arm.parameters.rate, arm.controller
        is_stall = gap > _min_stall(arm)
        if self._has_stop:  # the arm reaches a command one period after it is sent
            dt = gap
            if gap > (1.0 + EARLIEST) * period:
                controller.resume_at(gap - period, period)
                dt = period
        else:
            # The drives execute each step in one period, so a longer step would be too fast.
            dt = gap if gap <= MAX_IN_STEP_PERIODS * period else period
            if gap > MAX_COAST_PERIODS * period:
                controller.stand_still()
        if is_stall and not (self._has_stop and controller.moves):
            controller.resume_after_gap(controller.command)
        return is_stall, dt

    def _switch_arm(self) -> bool:
        """Start to use the arm that was given to :meth:`use`, if it is not in use yet.

        Returns:
            True if the arm in use must stop first, because the new arm has other joints.
        """
        arm, old = self._next, self._arm
        if arm is None or arm is old:
            return False
        if old is None:
            arm.controller.seed(arm.start)
        elif arm.controller is not old.controller:
            is_same = arm.robot.joint_names == old.robot.joint_names
            is_new = arm.robot is not old.robot
            if is_same and arm.surroundings.hold_reason == PREPARING and is_new:
                return False  # the previous arm stays in use until the new scene is ready
            if is_same:
                arm.controller.take_over(old.controller)
            elif old.controller.moves or self._do_drives_move():
                # The new controller would not stop the joints of `old`.
                if not old.controller.hold_reason:
                    old.controller.reset()
                return True
            else:
                old.controller.stop(STOPS_FOR_ROBOT)  # ends a trajectory that has not started yet
                commanded = _by_name(old, old.controller.command)
                arm.controller.seed(_start_of(arm, commanded))
                arm.controller.hold_like(old.controller)
                self._pending = {}
        self._arm = arm
        return False

    def _run_actions(self, arm: Arm) -> None:
        """Run the submitted actions; drop a stored target that arrived before an action."""
        while self._actions:
            submitted, action = self._actions.popleft()
            action(arm.controller)
            self._note = (-math.inf, "")
            if self._pending:
                waiting = self._pending.items()
                self._pending = {key: each for key, each in waiting if each.time > submitted}

    def _apply(self, arm: Arm, arrival: Arrival, now: float, stamp: int) -> None:
        """Pass a target to the controller; log and report why a target cannot be followed.

        Args:
            arm: Arm in use.
            arrival: The target.
            now: Current time on the steady clock [s].
            stamp: Current ROS time [ns].
        """
        message = arrival.message
        try:
            values = self._frame_values(arm, message)
            apply_target(arm, arrival, self._frames, values, now, arrival.age(now, stamp))
        except (HeldError, StaleTargetError) as error:
            words = f"{TARGET_IGNORED}: {error}"
            is_held = isinstance(error, HeldError)  # if True, the status already includes the error
            self._note = (now, TARGET_IGNORED if is_held else words)
            self._log.warn("target ignored", words)
        except OptionError as error:  # raised if the tip does not follow such targets
            words = f"{TARGET_IGNORED}: {error}"
            self._note = (now, words)
            self._log.warn("tip", words)
        except DlsIkError as error:
            arm.controller.refuse(str(error), arrival.tip)
            self._log.warn("target", f"target refused, the arm holds: {error}")
        except Exception as error:
            arm.controller.refuse(f"internal error: {error!r}")
            raise
        else:
            if note := target_note(message):
                self._note = (now, note)
                self._log.once("length", f"target: {note} (logged once)")

    def _frame_values(self, arm: Arm, message: Any) -> dict[str, float]:
        """Return the joint positions by name with which a target is transformed to the base frame.

        The result is empty if no transformation is needed, because both the frame of the target and
        the base of the chain are the root link.
        """
        is_root = strip_slash(message.header.frame_id) in ("", arm.tree.root)
        return {} if is_root and arm.robot.base == arm.tree.root else self._joint_values(arm)

    def _joint_values(self, arm: Arm) -> dict[str, float]:
        """Return joint positions by name: commanded for the chain, measured for other joints."""
        measured = {n: q for n, q in self._states.values().items() if n in arm.tree.mimic_of}
        return {**measured, **_by_name(arm, arm.controller.command)}

    def _report(self, arm: Arm, output: ServoOutput, now: float, is_measured: bool) -> CycleReport:
        may_start = self._states.may_start(arm, now, is_measured)
        is_command = self._is_command(arm, output, may_start, is_measured)
        if is_command and is_measured and self._states.shares_topic:
            self._warn_of_driver()
        message, awaits_states = output.message, False
        if output.tips and output.T_d is not None:
            message += "; " + "; ".join(f"{tip.name}: {tip.message}" for tip in output.tips)
        has_awaited = self._commanded is not None and self._commanded.awaits_states
        if may_start and has_awaited:
            self._log_ready(arm, is_measured)
        elif not may_start:
            awaits_states = has_awaited or output.state is ServoState.WAITING
            if output.state is ServoState.WAITING:
                message = f"{AWAITS_STATES} on {self._states.topic}"
        if self._hold_reason and output.state is ServoState.WAITING:
            message = f"{output.state.explanation}; targets wait: {self._hold_reason}"
        self._commanded = Commanded(arm, output, awaits_states, is_command)
        waits = output.state is ServoState.WAITING
        return CycleReport(
            output.state,
            self._with_note(message, now),
            arm,
            output,
            is_command,
            awaits_states=waits and not may_start,
            are_targets_held=waits and bool(self._hold_reason),
        )

    def _with_note(self, message: str, now: float) -> str:
        """Return a message, with the remark on the last target appended if the remark is recent."""
        since, note = self._note
        return f"{message}; {note}" if now - since < NOTE_DURATION else message

    def _is_command(
        self, arm: Arm, output: ServoOutput, may_start: bool, is_measured: bool
    ) -> bool:
        """Return whether the command of this cycle must be published.

        An arm at rest gets no commands while it has no target, is paused, is in a fault, or has no
        measured joint positions yet. Another node may move the arm in this time.

        Args:
            arm: Arm in use.
            output: Output of the controller in this cycle.
            may_start: Whether the arm may start to move.
            is_measured: Whether the joint positions of the arm are measured.
        """
        # After a motion, the first command at rest is published too.
        if self.moves or any(output.velocity.tolist()):
            return True
        if self._display_only:
            return arm.controller.started or (may_start and not is_measured)
        is_supervised = arm.parameters.feedback_mode == MODE_REQUIRED
        if arm.controller.starts_anew and (is_measured or is_supervised):
            return False
        return arm.controller.started and output.state not in SILENT_STATES

    def _log_ready(self, arm: Arm, is_measured: bool) -> None:
        """Log that the arm no longer waits for joint states, and where it starts."""
        topic = self._states.topic
        if is_measured:
            self._log.info("heard", f"received joint states on {topic}: ready for targets")
        elif arm.parameters.feedback_mode == MODE_AUTO:
            self._log.info(
                "heard",
                f"no node publishes joint states of these joints on {topic}: the arm starts at "
                "initial_positions, ready for targets",
            )

    def _warn_of_driver(self) -> None:
        self._log.once(
            "driver",
            f"commands are published on {self._states.topic}, where a driver publishes joint "
            "states: subscribers receive both; set output_topic to another topic, and output_type "
            "to the type that the driver accepts",
        )


def _by_name(arm: Arm, q: Array) -> dict[str, float]:
    """Return the joint positions q (n,) of an arm by joint name."""
    return dict(zip(arm.robot.joint_names, q.tolist(), strict=True))


def _start_of(arm: Arm, known: Mapping[str, float]) -> Array:
    """Return the joint positions (n,) at which an arm starts.

    Args:
        arm: The arm.
        known: Known joint positions by name; for other joints the arm has default positions.
    """
    pairs = zip(arm.robot.joint_names, arm.start.tolist(), strict=True)
    return np.array([known.get(name, start) for name, start in pairs])


def _min_stall(arm: Arm) -> float:
    """Return the time between two cycles [s] above which the loop counts as stalled."""
    return min_stall(arm.parameters.target_timeout, 1.0 / arm.parameters.rate)


def _max_silent_gap(arm: Arm) -> float:
    """Return the time between two cycles [s] above which queued joint states may be unread."""
    share = MAX_SILENT_SHARE * arm.parameters.measurement_timeout
    return max(MAX_COAST_PERIODS / arm.parameters.rate, share)
