"""The problems that constraints come to: poses as asked for, then with what constraints let go."""

import itertools
import math
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import MethodError, OptionError
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.constraints.bounds import Bound, Place, Region, invalid
from dls_ik.ros.errors import Code, RequestError
from dls_ik.ros.services.problem import Problem
from dls_ik.solver import IkResult, IkSolver
from dls_ik.solver.method import AUTO
from dls_ik.solver.task import Task

MOST_STAGES = 64
FREE = Task(position_tolerance=math.inf, rotation_tolerance=math.inf)
NOWHERE = Region(np.eye(4), FREE)
FEW = 50  # restarts in which nearly all that can be solved is
SHORTEST = 1e-6  # [s]


class Goal(NamedTuple):
    """A link with a pose for it."""

    tip: int  # of the solver, that takes the link along
    link: str
    T_tip_link: Array  # (4, 4)
    T_base_link: Array  # (4, 4) as asked for
    bounds: tuple[Bound, ...]  # on the link, or on links attached to it; as if on the link

    @property
    def is_relaxed(self) -> bool:
        """Whether a constraint says what its orientation may be."""
        return any(bound.is_orientation for bound in self.bounds)

    @property
    def is_within(self) -> bool:
        """Whether the pose itself is within all constraints."""
        return all(bound.holds(self.T_base_link) for bound in self.bounds)


def goals_of(problem: Problem, bounds: Sequence[Bound], tree: Tree) -> list[Goal]:
    """The links of a request with what is bound of each.

    Raises:
        RequestError: a pose outside of a constraint that does not let go of it.
    """
    goals = []
    for tip, attachment in enumerate(problem.attachments):
        if attachment is None:
            continue
        T_tip_link = inverse(attachment.T_link_tip)
        link = problem.links[attachment.link_index] or problem.solver.robot.tips[tip]
        own = tuple(moved for bound in bounds if (moved := _onto(link, bound, tree)) is not None)
        goals.append(Goal(tip, link, T_tip_link, problem.targets[tip] @ T_tip_link, own))
    for goal in goals:
        _check(goal)
    return goals


def _check(goal: Goal) -> None:
    if goal.is_relaxed:
        return
    for bound in goal.bounds:
        if not bound.holds(goal.T_base_link):
            raise RequestError(
                Code.NO_IK_SOLUTION,
                f"{bound.words} cannot be met: the pose asked for of link {goal.link!r} is outside",
            )


def _onto(link: str, bound: Bound, tree: Tree) -> Bound | None:
    """The same bound on a link that is rigidly attached to its own; None: it is not attached."""
    T_link_bound = tree.fixed_offset(link, bound.link)
    if T_link_bound is None:
        return None
    return bound._replace(link=link, T_link_point=T_link_bound @ bound.T_link_point)


def others_of(bounds: Sequence[Bound], goals: Sequence[Goal], tree: Tree) -> list[Bound]:
    """Bounds on links that are attached to no link asked for."""
    attached = [
        any(tree.fixed_offset(goal.link, bound.link) is not None for goal in goals)
        for bound in bounds
    ]
    return [bound for bound, own in zip(bounds, attached, strict=True) if not own]


class Point(NamedTuple):
    """A bound on a link that is solved for."""

    goal: Goal | None  # whose link it is on
    bound: Bound


class Stage(NamedTuple):
    """Where the k tips are to be."""

    targets: Array  # (k, 4, 4) T_base_tip
    tasks: tuple[Task, ...]  # (k,)
    is_relaxed: bool  # not the poses as they were asked for


def list_points(
    others: Sequence[Bound], goals: Sequence[Goal], joint_names: Sequence[str], place: Place
) -> list[Point]:
    """Bounds of relaxed goals, and on other links that move; of links that do not, checked.

    Raises:
        RequestError: a bound on a link that does not move does not hold.
    """
    points = [Point(goal, bound) for goal in goals if goal.is_relaxed for bound in goal.bounds]
    for bound in others:
        if _is_moved(place.arm.tree, bound.link, joint_names):
            points.append(Point(None, bound))
        elif not bound.holds(place.link(bound.link)):
            raise RequestError(
                Code.NO_IK_SOLUTION,
                f"{bound.words} cannot be met: no joint that is solved for moves the link, and it "
                "stands outside",
            )
    return [Point(goal, _sorted(bound, place)) for goal, bound in points if bound.regions]


def build_stages(problem: Problem, goals: Sequence[Goal], points: Sequence[Point]) -> list[Stage]:
    """What to solve, in order: poses as they are, where that is allowed; then with what is let go.

    The tips are those of the problem, one for each relaxed goal, and one for each point.

    Raises:
        RequestError: unions of too many regions.
    """
    relaxed = [goal for goal in goals if goal.is_relaxed]
    exact = [goal for goal in relaxed if goal.is_within]
    kinds = [[]] if not exact else [exact, []]
    counts = [math.prod(len(each) for each in _choices(points, kind)) for kind in kinds]
    if sum(counts) > MOST_STAGES:
        raise invalid(
            f"unions of regions come to {sum(counts)} problems, each of another region for each "
            f"constraint; at most {MOST_STAGES} are tried"
        )
    return [
        _stage(problem, relaxed, kind, regions)
        for kind in kinds
        for regions in itertools.product(*_choices(points, kind))
    ]


def _choices(points: Sequence[Point], exact: Sequence[Goal]) -> list[tuple[Region, ...]]:
    """The regions of each point; none of points that exact poses have in place."""
    kept = {goal.tip for goal in exact}
    return [
        (NOWHERE,) if goal is not None and goal.tip in kept else bound.regions
        for goal, bound in points
    ]


def _stage(
    problem: Problem, relaxed: Sequence[Goal], exact: Sequence[Goal], regions: Iterable[Region]
) -> Stage:
    kept = {goal.tip for goal in exact}
    free = {goal.tip for goal in relaxed} - kept
    tasks = [FREE if tip in free else Task() for tip in range(len(problem.targets))]
    tasks += [FREE if goal.tip in kept else Task.position_only() for goal in relaxed]
    targets = [*problem.targets, *(goal.T_base_link for goal in relaxed)]
    for T_base_region, task in regions:
        targets.append(T_base_region)
        tasks.append(task)
    return Stage(np.array(targets), tuple(tasks), bool(free))


def _is_moved(tree: Tree, link: str, joint_names: Sequence[str]) -> bool:
    """Whether some of the joints move a link."""
    drives = (tree.mimic_of.get(joint.name) for joint in tree.path(tree.root, link))
    return any(d is not None and d.multiplier and d.master in joint_names for d in drives)


def _sorted(bound: Bound, place: Place) -> Bound:
    """The regions in the order of how far their middles are from where the point is now."""
    point = (place.link(bound.link) @ bound.T_link_point)[:3, 3]

    def distance(region: Region) -> float:
        return float(np.linalg.norm(region.T_base_region[:3, 3] - point))

    return bound._replace(regions=tuple(sorted(bound.regions, key=distance)))


Slices = Generator[None, None, tuple[IkResult, Stage]]


def solve_stages(
    make: Callable[..., IkSolver], stages: Sequence[Stage], seed: Array, timeout: float
) -> Slices:
    """The first stage that is solved, else the last one tried; in slices.

    Each of several has a few restarts, by which the answer does not depend on the clock; those
    that have none then share what is left of the time.

    Raises:
        RequestError: a method that does not serve the tasks, or poses that are not valid.
    """
    begin = time.perf_counter()
    deadline = begin + timeout
    solver = _made(make)
    if len(stages) > 1 and solver.method == AUTO:
        hasty = make(max_restarts=FEW)
        found = yield from _in_turn(hasty, stages, seed, deadline, shares=False)
        if found[0].success or time.perf_counter() >= deadline:
            return _timed(found, begin)
    return _timed((yield from _in_turn(solver, stages, seed, deadline, shares=True)), begin)


def _made(make: Callable[..., IkSolver]) -> IkSolver:
    try:
        return make()
    except (MethodError, OptionError) as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"constraints: {error}") from error


def _in_turn(
    solver: IkSolver, stages: Sequence[Stage], seed: Array, deadline: float, shares: bool
) -> Slices:
    for i, stage in enumerate(stages):
        left = deadline - time.perf_counter()
        share = left / (len(stages) - i) if shares else left
        result = yield from _solve(solver, stage, seed, max(share, SHORTEST))
        if result.success or left <= 0.0:
            break
    return result, stage


def _solve(
    solver: IkSolver, stage: Stage, seed: Array, timeout: float
) -> Generator[None, None, IkResult]:
    T = stage.targets if len(stage.targets) > 1 else stage.targets[0]
    try:
        return (yield from solver.slices(T, seed, timeout, stage.tasks))
    except (MethodError, OptionError) as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"constraints: {error}") from error


def _timed(found: tuple[IkResult, Stage], begin: float) -> tuple[IkResult, Stage]:
    """With the time of all stages as the duration."""
    result, stage = found
    return result._replace(duration=time.perf_counter() - begin), stage
