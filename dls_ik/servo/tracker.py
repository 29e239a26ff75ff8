"""Bringing the tip to a pose: by local motion, and through joint space where that gets stuck."""

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.se3 import difference
from dls_ik.core.types import Array
from dls_ik.errors import MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo.guard import Guard
from dls_ik.servo.joint_motion import (
    ARRIVED,
    Answer,
    MotionLimits,
    PlannedMotion,
)
from dls_ik.servo.limiter import AccelerationLimiter, JerkLimiter, Limiter
from dls_ik.servo.local_ik import LocalIk, ServoStep
from dls_ik.servo.options import JOINT_MOTION, ControllerOptions, motion_limits
from dls_ik.servo.planner import Planner
from dls_ik.servo.scene_state import NearPair
from dls_ik.servo.stall import TICK, RefusalMonitor, StallMonitor
from dls_ik.servo.state import ServoState
from dls_ik.servo.targets import Target, TwistTarget, is_same
from dls_ik.servo.tip_speed import TipSpeed, tip_speed
from dls_ik.servo.workspace import Bound
from dls_ik.solver import IkResult

BETTER = 0.99  # share of the error that the nearest configuration must leave to be gone to
NO_WAY = "no free way to the target was found"
NO_SPEED = "scale is 0"
NO_NEARER = "local motion leads no nearer to the target"
TRIES, RETRY = 6, 0.5  # searches for a way in a scene that stands, and the time between them [s]
HINT_NEAR = 1e-6  # [rad or m] from the beginning of a way
PLANNING = "local motion leads no nearer to the target; a way through joint space is looked for"


class PlanRequest(NamedTuple):
    """A target that the solver was asked for."""

    T: Array  # (4, 4)
    answer: "Future[IkResult] | None"  # None: it was used
    is_out_of_reach: bool = False
    goal: Array | None = None  # (n,) of the joint motion to the solution; None: none, or it is over


@dataclass
class SceneMotion:
    """A joint motion in a scene: looked for, made, or not found."""

    T: Array  # (4, 4) target
    world: SceneSnapshot  # in which it is looked for, or was tested last
    attempt: int  # number of the search
    answer: "Future[Answer] | None" = None  # that is waited for
    motion: PlannedMotion | None = None  # that is made
    test: "Future[bool] | None" = None  # whether its rest is still free
    result: IkResult | None = None
    names: Pair | None = None  # in the way, where no way was found
    since: float = 0.0  # [s] when none was


Ways = tuple[Planner, Guard]


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

    In a scene, or a workspace, the command rests while a way is looked for, which is free as a
    whole, and goes along it. The rest of the way is tested anew where the scene changes. Where
    there is no way it holds.

    Args:
        planner: None: the command does not move through joint space.
        acceleration: (n,) limits of the limiter [rad/s^2 or m/s^2].
        tip: limits of the speed of the tip.
        scale: share of the limits that is used; 0: the command stops and holds.
    """

    def __init__(
        self,
        local_ik: LocalIk,
        limiter: Limiter | Guard,
        planner: Planner | None,
        acceleration: Array,
        tip: TipSpeed | None = None,
        scale: float = 1.0,
    ) -> None:
        self.local_ik, self.limiter, self.acceleration = local_ik, limiter, acceleration
        self.guard = limiter if isinstance(limiter, Guard) else None
        self._planner, self._tip, self._scale = planner, tip, scale
        self._unit = local_ik.options.length_unit
        self._weight = local_ik.options.rotation_weight * self._unit
        if planner is not None:
            planner.prepare()
        self._stall = StallMonitor(local_ik.robot.velocity, self._weight)
        self._refusal = RefusalMonitor()
        self._request: PlanRequest | None = None
        self._motion: SceneMotion | None = None
        self._rests_at: Array | None = None  # (4, 4) the target it stalled at for good
        self._is_at_rest = False  # it has begun anew where the command stands

    @property
    def hindrance(self) -> NearPair | None:
        """The pair that slowed or turned the motion in the last cycle."""
        guard, k = self.guard, self.local_ik.hindrance
        if guard is None or guard.refused is not None:
            return None if guard is None else guard.refused
        return guard.state.near_pair(k) if 0 <= k < len(guard.state.pairs.names) else None

    def seed(self, q: Array) -> None:
        """Continue from joint values (n,), at rest."""
        self.limiter.reset(q)
        self._restart()

    def take_over(self, other: "Tracker") -> None:
        """Continue the motion of another tracker of the same joints."""
        self.limiter.take_over(other.limiter.hand_over())
        self._restart()
        other._cancel_questions()
        before = other._motion
        if before is not None and before.motion is not None and self._ways is not None:
            self._look_for_way(self._ways, before.T, before.attempt, before.motion.rest[1:])

    def most_of_twist(self, V: Array) -> float:
        """Return the share of a twist (6,) that the tip may have."""
        return 1.0 if self._tip is None else self._tip.twist_share(V)

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

        Raises:
            MethodError: a plug-in or the planner failed; nothing has moved.
        """
        for question in self._questions():
            if question.done() and (error := question.exception()) is not None:
                raise MethodError(f"the planner failed: {error!r}") from error
        self._is_at_rest = False
        if self._scale == 0.0:
            self.limiter.brake(dt)
            self._restart()
            return Tracked(ServoState.STALLED, self.local_ik.stay(), NO_SPEED)
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
        motion = self._motion
        if motion is not None:
            if self._ways is not None and is_same(T_d, motion.T, self._unit):
                return self._move(self._ways, motion, now, dt)
            self._restart()
        if self._rests_at is not None and not is_same(T_d, self._rests_at, self._unit):
            self._rests_at = None
            self._stall.reset()
        stands = target.stands(now)
        if self._rests_at is not None:
            return self._rest(T_d, stands, dt)
        if isinstance(target, TwistTarget):
            target.is_hindered = self.hindrance is not None
        if target.is_velocity:
            self.local_ik.continue_from(self.limiter.q)
        if self.guard is not None:
            self.local_ik.near = self.guard.near if self.guard.state.pairs.names else None
        before = self.local_ik.q
        step = self._slowed(before, self.local_ik.advance(T_d[None], dt), T_d, dt)
        self.limiter.advance(step.q, (step.q - before) / dt, dt)
        if self.guard is not None and self.guard.refused is not None:
            self.local_ik.continue_from(self.limiter.stopping_point())
        is_stalled = self._stall.update(now, self._size(step), step.q, T_d)
        if not is_stalled or self.local_ik.is_reached(step.position_error, step.rotation_error):
            return step.q, Tracked(ServoState.FOLLOWING, step)
        if stands and self._stall.has_lasted(now):
            self._rests_at = T_d.copy()
        return step.q, self._stalled(T_d, stands, step)

    def _slowed(self, before: Array, step: ServoStep, T_d: Array, dt: float) -> ServoStep:
        """Return the step from joint values (n,), shortened to the speeds of the tip."""
        share = 1.0 if self._tip is None else self._tip.step_share(before, step.q, dt)
        if share == 1.0:
            return step
        q = before + share * (step.q - before)
        self.local_ik.continue_from(q)
        left = difference(self.local_ik.robot.fk(q), T_d)
        position, rotation = float(np.linalg.norm(left[:3])), float(np.linalg.norm(left[3:]))
        return step._replace(q=q, position_error=position, rotation_error=rotation)

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
        self._cancel_questions()
        self._request = self._rests_at = self._motion = None

    def _questions(self) -> "list[Future[Any]]":
        """Return what the planner was asked for, and was not used yet."""
        request, at = self._request, self._motion
        asked: list[Future[Any] | None] = [] if request is None else [request.answer]
        asked += [] if at is None else [at.answer, at.test]
        return [each for each in asked if each is not None]

    def _cancel_questions(self) -> None:
        """Let the planner not begin with what nobody waits for any more."""
        for question in self._questions():
            question.cancel()

    @property
    def _ways(self) -> Ways | None:
        """The planner and the guard, where ways are to be free of something."""
        planner, guard = self._planner, self.guard
        if planner is None or guard is None or not guard.state.pairs.names:
            return None
        return planner, guard

    def _look_for_way(self, by: Ways, T: Array, attempt: int, known: Array | None = None) -> None:
        """Begin to look for a way from where the command stops."""
        planner, guard = by
        answer = planner.ask_way(T, self.limiter.stopping_point(), guard, attempt, known)
        self._motion = SceneMotion(T.copy(), guard.world, attempt, answer)

    def _move(self, by: Ways, at: SceneMotion, now: float, dt: float) -> tuple[Array, Tracked]:
        """Make a joint motion in a scene, or wait for one."""
        if by[1].world is not at.world:
            self.local_ik.hindrance = -1  # it may be another pair's number now
        if at.motion is not None:
            return self._move_along(by, at, at.motion, dt)
        self.limiter.brake(dt)
        q, stay = self.limiter.q, self.local_ik.stay()
        self.local_ik.restart(self.limiter.stopping_point())
        if at.answer is not None:
            if _is_there(at.answer) and not self.limiter.v.any():
                self._use(by, at, at.answer.result(), now)
            return q, Tracked(ServoState.STALLED, stay, PLANNING)
        changed = by[1].world is not at.world
        if now - at.since >= RETRY - TICK and (changed or at.attempt + 1 < TRIES):
            self._look_for_way(by, at.T, 0 if changed else at.attempt + 1)
        names = at.names
        reason = f"{names[0]!r} and {names[1]!r} are in the way" if names else NO_WAY
        return q, Tracked(ServoState.BLOCKED, stay, reason)

    def _use(self, by: Ways, at: SceneMotion, answer: Answer, now: float) -> None:
        """Begin the motion that was found, or hold."""
        at.answer, course, plan = None, answer.course, answer.plan
        if plan is not None:
            at.result, at.names, at.since = plan.result, plan.names, now
        if course is not None and np.abs(course.way[0] - self.limiter.q).max() > HINT_NEAR:
            self._look_for_way(by, at.T, at.attempt, course.way[1:])
            return
        if plan is not None and not plan.result.success and plan.result.pair_in_the_way is None:
            left = difference(self.local_ik.robot.fk(self.limiter.q), at.T)
            now_left = math.hypot(*left[:3], *(self._weight * left[3:]))
            if course is None or self._size(plan.result) >= BETTER * now_left:
                self._motion, self._rests_at = None, at.T
                self._request = PlanRequest(at.T, None, True)
                return
        if course is not None:
            at.motion = PlannedMotion(course, by[0].limits.velocity)

    def _move_along(
        self, by: Ways, at: SceneMotion, motion: PlannedMotion, dt: float
    ) -> tuple[Array, Tracked]:
        """Move along a way for as long as it is free."""
        planner, guard = by
        has_arrived = motion.advance(self.limiter, dt)
        moving = Tracked(ServoState.JOINT_MOTION, self.local_ik.stay())
        self.local_ik.restart(self.limiter.stopping_point())
        if has_arrived and at.names is not None:  # out of where the arm was too near, so far
            at.motion = None
        elif has_arrived:
            self.local_ik.restart(motion.goal)
            self._stall.reset()
            is_far = at.result is not None and not at.result.success
            self._motion, self._request = None, PlanRequest(at.T, None, is_far)
        if has_arrived:
            return motion.goal, moving
        if at.test is None and guard.world is not at.world:
            at.world, at.test = guard.world, planner.ask_if_free(motion.rest, guard)
        is_blocked = False
        if at.test is not None and _is_there(at.test):
            is_blocked, at.test = not at.test.result(), None
        if is_blocked or motion.has_failed:
            self._look_for_way(by, at.T, at.attempt + 1)
        return motion.reference, moving

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
        planner = self._planner
        if not stands or planner is None:
            return stalled
        request = self._request
        is_settled = self._has_asked(T_d) and request is not None and request.is_out_of_reach
        if self._ways is not None and not is_settled:
            self._rests_at = None
            self._look_for_way(self._ways, T_d, 0)
            return stalled
        if request is None or not self._has_asked(T_d):
            self._cancel_questions()
            request = PlanRequest(T_d.copy(), planner.ask(T_d, self.limiter.q))
        if request.answer is not None and _is_there(request.answer):
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


def _is_there(answer: "Future[Any]") -> bool:
    """Return whether an answer came; one that failed is looked at in the next cycle."""
    return answer.done() and answer.exception() is None


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
    share = options.scale if options.scale > 0.0 else 1.0
    local_ik = LocalIk(robot, method, scale=share, **method_options)
    bare: Limiter = (
        AccelerationLimiter(robot, acceleration, options.scale)
        if np.isinf(jerk).all()
        else JerkLimiter(robot, acceleration, jerk, options.scale)
    )
    speeds = options.max_linear_speed, options.max_angular_speed
    tip = tip_speed(robot, speeds, options.scale, local_ik.options.length_unit, acceleration)
    limiter: Limiter | Guard = bare
    if scene is not None or workspace or tip is not None:
        distances = options.min_distance, options.influence_distance
        tests = () if tip is None else (tip,)
        given = distances, (acceleration, jerk), tests
        limiter = Guard(bare, robot, scene, workspace, *given)
    planner = None
    if options.when_stuck == JOINT_MOTION:
        names = ("position_tolerance", "rotation_tolerance", "rotation_weight", "length_unit")
        metric = {name: getattr(local_ik.options, name) for name in names}
        limits = MotionLimits(share * robot.velocity, share * acceleration, jerk, tip)
        planner = Planner(robot, executor, limits, scene=scene, **metric)
    tracker = Tracker(local_ik, limiter, planner, acceleration, tip, options.scale)
    tracker.seed(robot.clip(np.zeros(robot.n)))
    return tracker
