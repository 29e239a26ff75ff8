"""An arm of the page that avoids collisions: it goes around, or says which pair is in the way."""

from __future__ import annotations

import math
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo import ServoState
from dls_ik.servo.local_ik import default_method
from dls_ik.solver.solver import IkSolver
from dls_ik.solver.task import Tasks
from dls_ik.viewer.source import LocalSource, Sample, bare_stepper, sample_at

SPEED = 0.5  # of the velocity limits on a way around; [rad/s or m/s] of joints without one
AGAIN, SAME = 0.2, 2.0  # [s] until a way is searched again: anew, and where nothing has changed
CHECKS = 4  # of each step of the arm
GOALS = 6  # configurations at the target that are tried
TIMEOUT = 0.1  # [s] to find them
REACH, SPACING = 0.6, 0.05  # [rad or m] of a branch, and between two checks of it
BRANCHES = 400  # of a search
SPREADS = np.geomspace(0.02, 2.0, 20)  # [rad or m] of configurations tried to leave a collision


class AvoidingSource(LocalSource):
    """Follows the target as :class:`LocalSource` does, but takes no step into a collision.

    The solver's thread searches a way around instead: to a configuration at the target that is
    free, through joint space.

    Args:
        scene: of the robot; it counts as it stands at each step. Other arguments: of the base.
    """

    def __init__(
        self,
        robot: RobotModel,
        scene: PlanningScene,
        method: str | None = None,
        start: Array | None = None,
        task: Tasks = None,
        **options: Any,
    ) -> None:
        self._scene, self._solver = scene, IkSolver(robot, task=task, scene=scene)
        self._probe = bare_stepper(
            robot, default_method(robot), robot.clip(np.zeros(robot.n)), task
        )
        bounded = np.where(np.isfinite(robot.velocity), robot.velocity, 1.0)
        self._speed = SPEED * bounded  # (n,) [rad/s or m/s]
        self._way: list[Array] = []  # (n,) each
        self._search: Future[Detour] | None = None
        self._asked: tuple[SceneSnapshot, Array] | None = None  # world and target of the search
        self._again = -math.inf  # [s]
        self._pair: Pair | None = None  # in the way
        super().__init__(robot, method, start, task, **options)

    def place(self, q: Array) -> None:
        """Put the arm to joint values (n,) at once, also into a collision."""
        super().place(q)
        self._way, self._pair = [], None

    def _move(self, now: float, dt: float) -> Sample:
        before, world = self._motion.q.copy(), self._scene.snapshot
        self._take_detour()
        if self._way:
            return self._go_around(now, dt, before, world)
        sample = super()._move(now, dt)
        self._pair = contact(world, before, sample.q)
        if self._pair is None:
            return sample
        self._motion.seed(before)
        self._look_around(now, before, world)
        return self._sample(now, before, np.zeros(self.robot.n), ServoState.STALLED, IN_THE_WAY)

    def _look_around(self, now: float, q: Array, world: SceneSnapshot) -> None:
        """Begin to search for a way around, now and then."""
        target, asked = self._target, self._asked
        if target is None or self._search is not None:
            return
        is_same = asked is not None and asked[0] is world and np.array_equal(asked[1], target)
        if now >= self._again + (SAME if is_same else AGAIN):
            self._again, self._asked = now, (world, target)
            seed = int(1e3 * max(now, 0.0))
            self._search = self._executor.submit(find_detour, self._solver, world, q, target, seed)

    def _take_detour(self) -> None:
        if self._search is not None and self._search.done():
            detour, self._search = self._search.result(), None
            self._way = [*detour.way]

    def _go_around(self, now: float, dt: float, before: Array, world: SceneSnapshot) -> Sample:
        """Step along the way, which ends where an obstacle has come into it."""
        ahead = self._way[0] - before
        share = min(1.0, dt / max(float((np.abs(ahead) / self._speed).max()), 1e-9))
        q = before + share * ahead
        if world.colliding_pair(before) is None and contact(world, before, q) is not None:
            self._way, q = [], before
        elif share == 1.0:
            self._way.pop(0)
        self._motion.seed(q)
        return self._sample(now, q, (q - before) / dt, ServoState.JOINT_MOTION, AROUND)

    def _sample(
        self, now: float, q: Array, velocity: Array, state: ServoState, words: str
    ) -> Sample:
        pair = " and ".join(self._pair) if self._pair else "what was in the way"
        return sample_at(self._probe, now, q, velocity, self._target, state, words.format(pair))


IN_THE_WAY, AROUND = "in the way: {}", "goes around: {}"


def contact(world: SceneSnapshot, before: Array, q: Array) -> Pair | None:
    """Return a pair that collides on a small step from one configuration (n,) to another."""
    steps = np.linspace(before, q, CHECKS + 1)[1:]
    for each in steps[world.in_collision(steps)]:
        return world.colliding_pair(each)
    return None


# Ways around


class Detour(NamedTuple):
    """A way around."""

    way: tuple[Array, ...]  # (n,) each, after where the arm stands; empty: none was found
    is_whole: bool  # it leads to the target


def find_detour(
    solver: IkSolver, world: SceneSnapshot, q: Array, target: Array, seed: int
) -> Detour:
    """Find a way from q (n,) to the target; where q collides, out of the collision at least.

    Args:
        solver: With the scene.
        target: (4, 4), (k, 4, 4) for k tips.
        seed: Of random configurations.
    """
    robot, rng = solver.robot, np.random.default_rng(seed)
    out: tuple[Array, ...] = ()
    if world.colliding_pair(q) is not None:
        free = _nearest_free(robot, world, q, rng)
        if free is None:
            return Detour((), False)
        out, q = (free,), free
    nearest = solver.solve(target, q, solve_type="distance", timeout=TIMEOUT)
    if not nearest.success:
        return Detour(out, False)
    others = sorted(solver.solve_all(target, GOALS), key=lambda goal: float(abs(goal - q).max()))
    goals = [nearest.q, *others]
    for goal in goals:
        if world.path_in_collision(q, goal) is None:
            return Detour((*out, goal), True)
    bounds = robot.finite_limits()
    for goal in goals:
        way = way_around(world, (q, goal), bounds, rng)
        if way:
            return Detour((*out, *way), True)
    return Detour(out, False)


def _nearest_free(
    robot: RobotModel, world: SceneSnapshot, q: Array, rng: np.random.Generator
) -> Array | None:
    """Return a free configuration near q (n,), None if none was found."""
    for spread in SPREADS:
        some = robot.clip(q + spread * rng.normal(size=(64, robot.n)))
        free = some[~world.in_collision(some)]
        if len(free):
            nearest: Array = free[np.abs(free - q).max(axis=1).argmin()]
            return nearest
    return None


def way_around(
    world: SceneSnapshot,
    ends: tuple[Array, Array],
    bounds: tuple[Array, Array],
    rng: np.random.Generator,
) -> list[Array]:
    """Search configurations (n,) on a free way by two trees (Kuffner & LaValle 2000).

    Args:
        ends: Start and goal, both free.
        bounds: Lower and upper ends of random configurations.

    Returns:
        Those after the start, joined by straight joint paths that are free; empty if none is found.
    """
    trees = [_Tree(each) for each in ends]
    for k in range(BRANCHES):
        one, other = trees[k % 2], trees[1 - k % 2]
        tip = one.grow(world, rng.uniform(*bounds))
        if tip is not None and other.reach(world, one.points[tip]):
            halves = one.branch(tip), other.branch(len(other.points) - 1)
            first, second = halves if k % 2 == 0 else halves[::-1]
            return _shortened(world, [*first[::-1], *second[1:]])
    return []


class _Tree:
    """Configurations that are joined by free paths to where it began."""

    def __init__(self, q: Array) -> None:
        self.points, self._parents = [q], [-1]

    def grow(self, world: SceneSnapshot, goal: Array) -> int | None:
        """Add a point nearer to the goal; return its number, None where it is not free."""
        i = int(np.abs(np.array(self.points) - goal).max(axis=1).argmin())
        ahead = goal - self.points[i]
        length = float(np.abs(ahead).max())
        q = self.points[i] + min(1.0, REACH / max(length, 1e-9)) * ahead
        count = 1 + int(min(length, REACH) / SPACING)
        if world.in_collision(np.linspace(self.points[i], q, count + 1)[1:]).any():
            return None
        self.points.append(q)
        self._parents.append(i)
        return len(self.points) - 1

    def reach(self, world: SceneSnapshot, goal: Array) -> bool:
        """Grow to the goal; return whether it was reached."""
        while (tip := self.grow(world, goal)) is not None:
            if np.abs(self.points[tip] - goal).max() < 1e-9:
                return True
        return False

    def branch(self, tip: int) -> list[Array]:
        """Return the points from a tip to the root."""
        found = []
        while tip >= 0:
            found.append(self.points[tip])
            tip = self._parents[tip]
        return found


def _shortened(world: SceneSnapshot, way: list[Array]) -> list[Array]:
    """Leave out what straight free paths pass by; empty where a part is not free after all."""
    found, i = list[Array](), 0
    while i < len(way) - 1:
        free = (
            j for j in range(len(way) - 1, i, -1) if world.path_in_collision(way[i], way[j]) is None
        )
        j = next(free, 0)
        if j == 0:
            return []
        found.append(way[j])
        i = j
    return found
