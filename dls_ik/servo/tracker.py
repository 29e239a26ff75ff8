"""Bringing the tip to a pose: by local motion, and through joint space where that gets stuck."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from typing import Any, NamedTuple, cast

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.servo.guard import Guard, NearPair
from dls_ik.servo.limiter import AccelerationLimiter, JerkLimiter, Limiter
from dls_ik.servo.local_ik import LocalIk, ServoStep
from dls_ik.servo.options import JOINT_MOTION, ControllerOptions, motion_limits
from dls_ik.servo.state import ServoState
from dls_ik.servo.targets import Target, is_same
from dls_ik.servo.workspace import Bound
from dls_ik.solver import IkResult, IkSolver

ARRIVED = 1e-9  # [rad or m] from the goal of a joint motion
BETTER = 0.99  # share of the error that the nearest configuration must leave to be gone to
NO_NEARER = "local motion leads no nearer to the target"
TICK = 1e-6  # [s] by which times that are the same may differ

# Planner
RESTARTS = 2000  # some 20 ms; not a time, so that equal targets always cause equal motion
JOINTS = 10  # with more joints there are fewer restarts, as each takes longer

# Stall
WINDOW = 0.25  # [s]
PATIENCE = 2.0  # [s]
CYCLES = 5  # at least, in a window
PROGRESS = 0.8  # share of the error that a window may leave
CREEP = 0.1  # share of the velocity limits: slower motion is a stall, so is going to and fro

# Refusal
REFUSED = 0.5  # [s] in which a command that may move does
LEAST_GAP = 1e-6  # [rad or m] to the reference
LEAST_SHARE = 1e-3  # of the gap


class StallWindow(NamedTuple):
    """Begin of the cycles that a stall is judged by."""

    since: float  # [s]
    error: float  # [m]
    q: Array  # (n,)
    T: Array  # (4, 4) target
    cycles: int = 1


class StallMonitor:
    """Detects a stall: a while has left most of the error, and the arm in place.

    Motion that keeps up with a moving target is no stall, however slow: then the error is less than
    the way of the target meanwhile.

    Args:
        velocity: (n,) limits [rad/s or m/s].
        weight: length that a rotation of the target counts as [m/rad].
    """

    def __init__(self, velocity: Array, weight: float) -> None:
        self._velocity, self._weight = velocity, weight
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._window: StallWindow | None = None

    def update(self, now: float, error: float, q: Array, T_d: Array) -> bool:
        """Return whether motion has stalled.

        Args:
            error: that is left [m], rotation weighted.
            q: (n,) joint values.
            T_d: (4, 4) pose of the target.
        """
        window = self._window
        if window is None or not PROGRESS * window.error <= error <= window.error / PROGRESS:
            self._window = StallWindow(now, error, q.copy(), T_d.copy())
            return False
        self._window = window = window._replace(cycles=window.cycles + 1)
        if now - window.since < WINDOW - TICK or window.cycles <= CYCLES:
            return False
        way = float(np.max(np.abs(q - window.q) / self._velocity))
        V = difference(window.T, T_d)
        moved = math.hypot(*V[:3], *(self._weight * V[3:]))  # [m]
        if way <= CREEP * (now - window.since) and error >= moved:
            return True
        self._window = StallWindow(now, error, q.copy(), T_d.copy())
        return False

    def has_lasted(self, now: float) -> bool:
        """Return whether a stall just detected is so old that the arm need not creep on."""
        return self._window is not None and now - self._window.since >= PATIENCE - TICK


class RefusalMonitor:
    """Detects a command that stays where it is although its reference is elsewhere."""

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin anew, such as for another target."""
        self._still: tuple[float, Array] | None = None  # since when [s], and where (n,)

    def update(self, now: float, q_r: Array, q: Array) -> bool:
        """Return whether the command (n,) has not moved toward its reference (n,) for a while."""
        gap = max(map(abs, (q_r - q).tolist()))
        if (
            gap < LEAST_GAP
            or self._still is None
            or max(map(abs, (q - self._still[1]).tolist())) > LEAST_SHARE * gap
        ):
            self._still = now, q.copy()
        return now - self._still[0] >= REFUSED - TICK


class Planner:
    """Asks the solver for the solution nearest to the arm.

    Args:
        executor: in which the solver runs, so that the loop need not wait; None: in the loop, which
            makes the same motion every time, and takes some tens of milliseconds.
        options: tolerances, as for :class:`dls_ik.IkSolver`.
    """

    def __init__(self, robot: RobotModel, executor: Executor | None, **options: Any) -> None:
        restarts = RESTARTS * JOINTS // max(robot.n, JOINTS)
        self._solver = IkSolver(
            robot, timeout=3600.0, max_restarts=restarts, solve_type="distance", **options
        )
        self._executor = executor

    def prepare(self) -> None:
        """Compute in advance the tables of the first answer, if it is to come in the loop."""
        if self._executor is None:
            self._solver.prepare()

    def ask(self, T: Array, q: Array) -> "Future[IkResult]":
        """Begin to solve for a target (4, 4), from joint values (n,); both are copied."""
        target, seed = T.copy(), q.copy()
        if self._executor is not None:
            return self._executor.submit(self._solver.solve, target, seed)
        done: Future[IkResult] = Future()
        done.set_result(self._solver.solve(target, seed))
        return done


class PlanRequest(NamedTuple):
    """A target that the solver was asked for."""

    T: Array  # (4, 4)
    answer: "Future[IkResult] | None"  # None: it was used
    is_out_of_reach: bool = False
    goal: Array | None = None  # (n,) of the joint motion to the solution; None: none, or it is over


class Tracked(NamedTuple):
    """Outcome of a cycle: a state as far as it is known, its reason, and the step of local IK."""

    state: ServoState
    step: ServoStep
    reason: str = ""


class Tracker:
    """Moves a command toward poses, from wherever it is.

    Local motion makes a reference, and the command follows it within the limits. Where the
    reference stalls short of a target that stands, the solver is asked for the nearest solution,
    and the command goes straight there in joint space; for a target out of reach, to the nearest
    configuration that the solver found, if it is nearer. It rests there, as local motion would
    creep on for minutes.

    Args:
        joint_motion: whether to move through joint space.
        executor: see :class:`Planner`.
    """

    def __init__(
        self,
        local_ik: LocalIk,
        limiter: Limiter | Guard,
        joint_motion: bool,
        executor: Executor | None,
    ) -> None:
        self.local_ik, self.limiter = local_ik, limiter
        self.guard = limiter if isinstance(limiter, Guard) else None
        self._joint_motion = joint_motion
        names = ("position_tolerance", "rotation_tolerance", "rotation_weight", "length_unit")
        options = {name: getattr(local_ik.options, name) for name in names}
        self._unit = local_ik.options.length_unit
        self._weight = local_ik.options.rotation_weight * self._unit
        self._planner = Planner(local_ik.robot, executor, **options)
        if joint_motion:
            self._planner.prepare()
        self._stall = StallMonitor(local_ik.robot.velocity, self._weight)
        self._refusal = RefusalMonitor()
        self._request: PlanRequest | None = None
        self._rests_at: Array | None = None  # (4, 4) the target it stalled at for good
        self._is_at_rest = False  # it has begun anew where the command stands

    @property
    def hindrance(self) -> NearPair | None:
        """The pair that slowed or turned the motion in the last cycle."""
        guard, k = self.guard, self.local_ik.hindrance
        if guard is None or guard.refused is not None:
            return None if guard is None else guard.refused
        return None if k < 0 else guard.state.near_pair(k)

    def seed(self, q: Array) -> None:
        """Continue from joint values (n,), at rest."""
        self.limiter.reset(q)
        self._restart()

    def take_over(self, other: "Tracker") -> None:
        """Continue the motion of another tracker of the same joints."""
        guard = other.guard
        moved = other.limiter if guard is None else guard.limiter
        self.limiter.take_over(cast(Limiter, moved))
        self._restart()

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s], and forget the target."""
        self.limiter.brake(dt)
        if not (self._is_at_rest and self.limiter.q.tolist() == self.local_ik.q.tolist()):
            self._restart()
            self._is_at_rest = not any(self.limiter.v.tolist())

    def track(self, T_d: Array, target: Target, now: float, dt: float) -> Tracked:
        """Move for a cycle of `dt` [s] toward a pose (4, 4) of a target.

        Only for a target that stands and waits for the arm is there a joint motion. A velocity
        continues from the command: the reference does not run ahead, to be caught up with later.
        """
        self._is_at_rest = False
        reference, tracked = self._track(T_d, target, now, dt)
        if not self._refusal.update(now, reference, self.limiter.q):
            return tracked
        away = np.abs(reference - self.limiter.q)
        j = int(np.argmax(away))
        name = self.local_ik.robot.joint_names[j]
        reason = f"limits keep joint {name!r} {away[j]:.3g} away from its goal"
        return Tracked(ServoState.STALLED, tracked.step, reason)

    def _track(self, T_d: Array, target: Target, now: float, dt: float) -> tuple[Array, Tracked]:
        """Return the reference (n,) of the command too."""
        request = self._request
        if request is not None and request.goal is not None:
            if self._has_asked(T_d):
                return request.goal, self._approach(request, request.goal, dt)
            self._restart()
        if self._rests_at is not None and not is_same(T_d, self._rests_at, self._unit):
            self._rests_at = None
            self._stall.reset()
        stands = target.stands(now)
        if self._rests_at is not None:
            return self._rest(T_d, stands, dt)
        if target.is_velocity:
            self.local_ik.continue_from(self.limiter.q)
        if self.guard is not None:
            self.local_ik.near = self.guard.near
        before = self.local_ik.q
        step = self.local_ik.advance(T_d[None], dt)
        self.limiter.advance(step.q, (step.q - before) / dt, dt)
        if self.guard is not None and self.guard.refused is not None:
            self.local_ik.continue_from(self.limiter.stopping_point())
        is_stalled = self._stall.update(now, self._size(step), step.q, T_d)
        if not is_stalled or self.local_ik.is_reached(step.position_error, step.rotation_error):
            return step.q, Tracked(ServoState.FOLLOWING, step)
        if stands and self._stall.has_lasted(now):
            self._rests_at = T_d.copy()
        return step.q, self._stalled(T_d, stands, step)

    def _rest(self, T_d: Array, stands: bool, dt: float) -> tuple[Array, Tracked]:
        """Stay at a target that was stalled at for long; take a step only for its figures."""
        q = self.local_ik.q
        step = self.local_ik.advance(T_d[None], dt)
        self.local_ik.restart(q)
        self.limiter.advance(q, np.zeros_like(q), dt)
        return q, self._stalled(T_d, stands, step)

    def _restart(self) -> None:
        """Let local motion begin where the command can stop."""
        self.local_ik.restart(self.limiter.stopping_point())
        self._stall.reset()
        self._refusal.reset()
        self._request = self._rests_at = None

    def _approach(self, request: PlanRequest, goal: Array, dt: float) -> Tracked:
        """Move through joint space to the goal (n,) of a request."""
        self.limiter.advance(goal, np.zeros_like(goal), dt)
        if np.abs(goal - self.limiter.q).max() <= ARRIVED:
            self.local_ik.restart(goal)
            self._request = request._replace(goal=None)
            self._stall.reset()
        else:
            self.local_ik.restart(self.limiter.stopping_point())  # where another target would begin
        return Tracked(ServoState.JOINT_MOTION, self.local_ik.stay())

    def _stalled(self, T_d: Array, stands: bool, step: ServoStep) -> Tracked:
        """Ask for a solution of a target that local motion does not reach, and use the answer."""
        stalled = Tracked(ServoState.STALLED, step, NO_NEARER)
        if not (stands and self._joint_motion):
            return stalled
        request = self._request
        if request is None or not self._has_asked(T_d):
            request = PlanRequest(T_d.copy(), self._planner.ask(T_d, self.limiter.q))
        if request.answer is not None and request.answer.done():
            result = request.answer.result()
            is_better = result.success or self._size(result) < BETTER * self._size(step)
            goal = result.q if is_better else None
            request = PlanRequest(request.T, None, not result.success, goal)
        self._request = request
        if request.goal is not None:
            self._rests_at = None
            return Tracked(ServoState.JOINT_MOTION, step)
        if not request.is_out_of_reach:
            return stalled
        self._rests_at = T_d.copy()
        return Tracked(ServoState.UNREACHABLE, step)

    def _has_asked(self, T: Array) -> bool:
        """Return whether the last request was for this target (4, 4)."""
        return self._request is not None and is_same(T, self._request.T, self._unit)

    def _size(self, at: ServoStep | IkResult) -> float:
        """Return the length of the scaled error, in the robot's unit of length."""
        return math.hypot(at.position_error, self._weight * at.rotation_error)


def build_tracker(
    robot: RobotModel,
    method: str | None,
    options: ControllerOptions,
    method_options: Mapping[str, Any],
    executor: Executor | None,
    scene: PlanningScene | None = None,
    workspace: Sequence[Bound] = (),
) -> Tracker:
    """Build the tracker of a controller, at rest near zero.

    Raises:
        MethodError, OptionError, SceneError: a method, options, or a scene that do not suit the
            robot.
    """
    if len(robot.tips) != 1:
        raise MethodError(
            f"a controller moves one tip, the robot has {len(robot.tips)}: {', '.join(robot.tips)}"
        )
    acceleration, jerk = motion_limits(options, robot)
    local_ik = LocalIk(robot, method, **method_options)
    bare: Limiter = (
        AccelerationLimiter(robot, acceleration)
        if np.isinf(jerk).all()
        else JerkLimiter(robot, acceleration, jerk)
    )
    limiter: Limiter | Guard = bare
    if scene is not None or workspace:
        distances = options.min_distance, options.influence_distance
        limiter = Guard(bare, robot, scene, workspace, distances, (acceleration, jerk))
    tracker = Tracker(local_ik, limiter, options.when_stuck == JOINT_MOTION, executor)
    tracker.seed(robot.clip(np.zeros(robot.n)))
    return tracker
