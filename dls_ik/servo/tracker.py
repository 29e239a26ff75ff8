"""Bringing the tip to a pose: by local motion, and through joint space where that gets stuck."""

import math
from concurrent.futures import Executor

import numpy as np

from dls_ik.core.types import Array
from dls_ik.servo.limiter import Limiter
from dls_ik.servo.planner import Planner
from dls_ik.servo.servo import Servo, ServoStep
from dls_ik.servo.stall import RefusalMonitor, StallWatch
from dls_ik.servo.state import ServoState
from dls_ik.servo.targets.target import Target, is_same
from dls_ik.solver import IkResult

ARRIVED = 1e-9  # [rad or m] from the goal of a joint motion
BETTER = 0.99  # share of the error that the nearest configuration must leave to be gone to


class Tracker:
    """Moves a command toward poses, from wherever it is.

    Local motion makes a reference, and the command goes after it within the limits. Where the
    reference stalls short of a target that stands, the solver is asked for the nearest solution,
    and the command goes straight there in joint space; for a target out of reach, to the nearest
    configuration that the solver found, if it is nearer, and then it is still: local motion would
    creep on for minutes.

    Args:
        servo: makes the reference.
        limiter: keeps the command.
        joint_motion: whether to move through joint space.
        executor: see :class:`dls_ik.servo.planner.Planner`.
    """

    def __init__(
        self, servo: Servo, limiter: Limiter, joint_motion: bool, executor: Executor | None
    ) -> None:
        self.servo, self.limiter = servo, limiter
        self._joint_motion = joint_motion
        names = ("position_tolerance", "rotation_tolerance", "rotation_weight", "length_unit")
        options = {name: getattr(servo.options, name) for name in names}
        self._unit = servo.options.length_unit
        self._weight = servo.options.rotation_weight * self._unit
        self._planner = Planner(servo.robot, executor, **options)
        if joint_motion:
            self._planner.prepare()
        self._stall = StallWatch(servo.robot.velocity, self._weight)
        self._refusal = RefusalMonitor()
        self._reference = limiter.q  # (n,) what the command goes after in this cycle
        self.reason = ""  # why the command does not move, if it may not
        self._goal: Array | None = None  # (n,) of a joint motion
        self._out_of_reach = False  # the target last asked for
        self._rests_at: Array | None = None  # (4, 4) the target it stalled at for good

    def seed(self, q: Array) -> None:
        """Go on from joint values (n,), at rest."""
        self.limiter.reset(q)
        self._restart()

    def take_over(self, other: "Tracker") -> None:
        """Go on with the motion of another tracker of the same joints."""
        self.limiter.take_over(other.limiter)
        self._restart()

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s]; what was gone after is forgotten."""
        self.limiter.brake(dt)
        self._restart()

    def track(
        self, T_d: Array, target: Target, now: float, dt: float
    ) -> tuple[ServoState, ServoStep]:
        """Move for a cycle of `dt` [s] toward a pose (4, 4) of a target.

        A joint motion makes sense for a target that stands and waits for the arm. A velocity leads
        on from the command: the reference does not run ahead, to be caught up with later.

        Returns:
            What goes on, as far as it is known here, and what was seen.
        """
        state, step = self._track(T_d, target, now, dt)
        self.reason = ""
        if self._refusal.update(now, self._reference, self.limiter.q):
            away = np.abs(self._reference - self.limiter.q)
            j = int(np.argmax(away))
            name = self.servo.robot.joint_names[j]
            self.reason = f"limits keep joint {name!r} {away[j]:.3g} away from where it is to go"
            state = ServoState.STALLED
        return state, step

    def _track(
        self, T_d: Array, target: Target, now: float, dt: float
    ) -> tuple[ServoState, ServoStep]:
        if self._goal is not None and not self._planner.has_asked(T_d):
            self._restart()
        if self._goal is not None:
            return ServoState.JOINT_MOTION, self._approach(self._goal, dt)
        if self._rests_at is not None and not is_same(T_d, self._rests_at, self._unit):
            self._rests_at = None
            self._stall.reset()
        if self._rests_at is not None:
            return self._rest(T_d, target.stands(now), dt)
        if target.is_velocity:
            self.servo.go_on_from(self.limiter.q)
        stands, before = target.stands(now), self.servo.q
        step = self.servo.step(T_d, dt)
        v_r = (step.q - before) / dt
        self._advance(step.q, v_r, dt)
        there = self.servo.is_reached(step.position_error, step.rotation_error)
        if not self._stall.update(now, self._size(step), step.q, T_d) or there:
            return ServoState.FOLLOWING, step
        if stands and self._stall.has_lasted(now):
            self._rests_at = T_d.copy()
        return self._stalled(T_d, stands, step), step

    def _rest(self, T_d: Array, stands: bool, dt: float) -> tuple[ServoState, ServoStep]:
        """Creep no nearer to a target that was stalled at for long; see what there is to see."""
        q = self.servo.q
        step = self.servo.step(T_d, dt)
        self.servo.reset(q)
        self._advance(q, np.zeros_like(q), dt)
        return self._stalled(T_d, stands, step), step

    def _advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        self._reference = q_r
        self.limiter.advance(q_r, v_r, dt)

    def _restart(self) -> None:
        """Let local motion begin where the command can stop."""
        self.servo.reset(self.limiter.stopping_point())
        self._stall.reset()
        self._refusal.reset()
        self._planner.forget()
        self._goal = self._rests_at = None

    def _approach(self, goal: Array, dt: float) -> ServoStep:
        self._advance(goal, np.zeros_like(goal), dt)
        if np.abs(goal - self.limiter.q).max() <= ARRIVED:
            self.servo.reset(goal)
            self._goal = None
            self._stall.reset()
        else:
            self.servo.reset(self.limiter.stopping_point())  # where another target would begin
        return self.servo.step(None, dt)

    def _stalled(self, T_d: Array, stands: bool, step: ServoStep) -> ServoState:
        """What is done about a target that local motion does not reach."""
        if not (stands and self._joint_motion):
            return ServoState.STALLED
        if not self._planner.has_asked(T_d):
            self._out_of_reach = False
            self._planner.ask(T_d, self.limiter.q)
        result = self._planner.answer()
        if result is not None:
            self._use(result, step)
        if self._goal is not None:
            return ServoState.JOINT_MOTION
        if not self._out_of_reach:
            return ServoState.STALLED
        self._rests_at = T_d.copy()
        return ServoState.UNREACHABLE

    def _use(self, result: IkResult, step: ServoStep) -> None:
        self._out_of_reach = not result.success
        if result.success or self._size(result) < BETTER * self._size(step):
            self._goal, self._rests_at = result.q, None

    def _size(self, at: ServoStep | IkResult) -> float:
        """Length of the scaled error, in the robot's unit of length."""
        return math.hypot(at.position_error, self._weight * at.rotation_error)
