"""Solve within constraints: problems with regions as targets, tried one after the other.

A constraint on the orientation of a requested link replaces the orientation of its pose. Poses that
are within all their constraints are first tried as they are, then relaxed. Each union of regions
multiplies the number of problems.
"""

import itertools
import math
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import ChainError, Code, MethodError, OptionError, RequestError
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.services.constraints import (
    LinkBound,
    Region,
    invalid,
    narrow_limits,
    orientation_bound,
    position_bound,
    read_interval,
)
from dls_ik.ros.services.request import IkProblem, RobotContext, is_moved
from dls_ik.solver import IkResult, IkSolver
from dls_ik.solver.method import AUTO
from dls_ik.solver.solver import CLEARANCE
from dls_ik.solver.task import Task
from dls_ik.text import listing

MAX_VARIANTS = 64
FREE = Task(position_tolerance=math.inf, rotation_tolerance=math.inf)
ANYWHERE = Region(np.eye(4), FREE)
FEW_RESTARTS = 50  # in which nearly all that can be solved is
MIN_TIMEOUT = 1e-6  # [s]
RELAXED = "the orientation is not the one of the pose, but within its constraint"


class LinkGoal(NamedTuple):
    """A requested link with its pose and the bounds on it."""

    tip: int  # index of the solver's tip that the link is attached to
    link: str
    T_tip_link: Array  # (4, 4)
    T_base_link: Array  # (4, 4) as requested
    bounds: tuple[LinkBound, ...]  # on this link or on attached ones, moved to this link

    @property
    def is_relaxed(self) -> bool:
        """True if a constraint replaces its orientation."""
        return any(bound.is_orientation for bound in self.bounds)

    @property
    def is_within(self) -> bool:
        """True if the requested pose itself is within all constraints."""
        return all(bound.holds(self.T_base_link) for bound in self.bounds)


class BoundPoint(NamedTuple):
    """A bound that is solved for, by a tip of its own."""

    goal: LinkGoal | None  # whose link it is on
    bound: LinkBound


class Variant(NamedTuple):
    """One problem to try: targets and tasks of k tips."""

    targets: Array  # (k, 4, 4) T_base_tip
    tasks: tuple[Task, ...]  # (k,)
    is_relaxed: bool  # not the poses as they were requested


def solve_constrained(
    problem: IkProblem, given: Any, context: RobotContext, timeout: float
) -> Generator[None, None, tuple[IkResult, str]]:
    """Solve within ``moveit_msgs/Constraints``, in slices; return the result and a note on it.

    Raises:
        RequestError: If constraints are not valid or cannot be satisfied.
        FrameError: If a frame is unknown.
    """
    tree, robot, values = context.arm.tree, problem.solver.robot, context.values
    base = robot.base
    intervals = [read_interval(each, tree) for each in given.joint_constraints]
    bounds = [orientation_bound(each, context, base) for each in given.orientation_constraints]
    bounds += [position_bound(each, context, base) for each in given.position_constraints]
    goals = _link_goals(problem, bounds, tree)
    points = _bound_points(bounds, goals, robot, context)
    variants = _variants(problem, goals, points)
    robot = _with_tips(robot, goals, points, values)
    robot = narrow_limits(robot, intervals, values, problem.seed)
    parameters, scene = context.arm.parameters, context.scene
    options = parameters.solver_options()
    if scene is not None and parameters.solve_type == CLEARANCE:
        options["solve_type"] = CLEARANCE
    make = partial(IkSolver, robot, problem.solver.method, scene=scene, **options)
    result, variant = yield from _solve_variants(make, variants, problem.seed, timeout)
    if result.success:
        return result, RELAXED if variant.is_relaxed else ""
    return result, _unmet(robot, result.q, points, values)


def _link_goals(problem: IkProblem, bounds: Sequence[LinkBound], tree: Tree) -> list[LinkGoal]:
    """Return the requested links, each with its bounds."""
    goals = []
    for tip, attachment in enumerate(problem.attachments):
        if attachment is None:
            continue
        T_tip_link = inverse(attachment.T_link_tip)
        link = problem.links[attachment.link_index] or problem.solver.robot.tips[tip]
        own = tuple(moved for bound in bounds if (moved := _moved_to(link, bound, tree)))
        goals.append(LinkGoal(tip, link, T_tip_link, problem.targets[tip] @ T_tip_link, own))
    for goal in goals:
        outside = [bound for bound in goal.bounds if not bound.holds(goal.T_base_link)]
        if outside and not goal.is_relaxed:
            raise RequestError(
                Code.NO_IK_SOLUTION,
                f"{outside[0].label} cannot be met: the pose asked for of link {goal.link!r} is "
                "outside",
            )
    return goals


def _moved_to(link: str, bound: LinkBound, tree: Tree) -> LinkBound | None:
    """Return the same bound on a link rigidly attached to its own; None: it is not attached."""
    T_link_bound = tree.fixed_offset(link, bound.link)
    if T_link_bound is None:
        return None
    return bound._replace(link=link, T_link_point=T_link_bound @ bound.T_link_point)


def _bound_points(
    bounds: Sequence[LinkBound], goals: Sequence[LinkGoal], robot: RobotModel, context: RobotContext
) -> list[BoundPoint]:
    """Return bounds of relaxed goals, and those on other links that move; check all others."""
    tree, base = context.arm.tree, robot.base
    points = [BoundPoint(goal, bound) for goal in goals if goal.is_relaxed for bound in goal.bounds]
    for bound in bounds:
        if any(tree.fixed_offset(goal.link, bound.link) is not None for goal in goals):
            continue
        if is_moved(tree, bound.link, robot.joint_names):
            points.append(BoundPoint(None, bound))
        elif not bound.holds(context.link_pose(bound.link, base)):
            raise RequestError(
                Code.NO_IK_SOLUTION,
                f"{bound.label} cannot be met: no joint that is solved for moves the link, and it "
                "stands outside",
            )
    return [
        BoundPoint(goal, _nearest_first(bound, context.link_pose(bound.link, base)))
        for goal, bound in points
        if bound.regions
    ]


def _nearest_first(bound: LinkBound, T_base_link: Array) -> LinkBound:
    """Sort the regions by the distance of their centres from the present point."""
    point = (T_base_link @ bound.T_link_point)[:3, 3]

    def distance(region: Region) -> float:
        return float(np.linalg.norm(region.T_base_region[:3, 3] - point))

    return bound._replace(regions=tuple(sorted(bound.regions, key=distance)))


def _variants(
    problem: IkProblem, goals: Sequence[LinkGoal], points: Sequence[BoundPoint]
) -> list[Variant]:
    """Return the problems in order: requested poses where they are within bounds, then relaxed.

    The tips are those of the problem, one for each relaxed goal, and one for each point.
    """
    relaxed = [goal for goal in goals if goal.is_relaxed]
    exact = [goal for goal in relaxed if goal.is_within]
    kept_sets = [exact, []] if exact else [[]]
    counts = [math.prod(len(each) for each in _choices(points, kept)) for kept in kept_sets]
    if sum(counts) > MAX_VARIANTS:
        raise invalid(
            f"unions of regions come to {sum(counts)} problems, each of another region for each "
            f"constraint; at most {MAX_VARIANTS} are tried"
        )
    return [
        _variant(problem, relaxed, kept, regions)
        for kept in kept_sets
        for regions in itertools.product(*_choices(points, kept))
    ]


def _choices(points: Sequence[BoundPoint], kept: Sequence[LinkGoal]) -> list[tuple[Region, ...]]:
    """Return the regions of each point; points on links that keep their pose are free."""
    tips = {goal.tip for goal in kept}
    return [
        (ANYWHERE,) if goal is not None and goal.tip in tips else bound.regions
        for goal, bound in points
    ]


def _variant(
    problem: IkProblem,
    relaxed: Sequence[LinkGoal],
    kept: Sequence[LinkGoal],
    regions: Iterable[Region],
) -> Variant:
    tips = {goal.tip for goal in kept}
    free = {goal.tip for goal in relaxed} - tips
    tasks = [FREE if tip in free else Task() for tip in range(len(problem.targets))]
    tasks += [FREE if goal.tip in tips else Task.position_only() for goal in relaxed]
    targets = [*problem.targets, *(goal.T_base_link for goal in relaxed)]
    for T_base_region, task in regions:
        targets.append(T_base_region)
        tasks.append(task)
    return Variant(np.array(targets), tuple(tasks), bool(free))


def _with_tips(
    robot: RobotModel,
    goals: Sequence[LinkGoal],
    points: Sequence[BoundPoint],
    values: Mapping[str, float],
) -> RobotModel:
    """Add a tip for each link whose orientation is relaxed, and for each point."""
    for goal in goals:
        if goal.is_relaxed:
            robot = robot.with_tip(robot.tips[goal.tip], goal.T_tip_link, values)
    for _, bound in points:
        robot = _with_point(robot, bound, values)
    return robot


def _with_point(robot: RobotModel, bound: LinkBound, values: Mapping[str, float]) -> RobotModel:
    try:
        return robot.with_tip(bound.link, bound.T_link_point, values)
    except ChainError as error:
        raise invalid(f"{bound.label} cannot be solved for: {error}") from error


def _unmet(
    robot: RobotModel, q: Array, points: Sequence[BoundPoint], values: Mapping[str, float]
) -> str:
    """Name the constraints that do not hold at the nearest joint positions."""
    if not np.isfinite(q).all():
        return ""
    unmet = [
        bound.label
        for _, bound in points
        if not bound.holds(robot.link_pose(bound.link, q, values))
    ]
    return f"not met there: {listing(unmet)}" if unmet else ""


Slices = Generator[None, None, tuple[IkResult, Variant]]


def _solve_variants(
    make: Callable[..., IkSolver],
    variants: Sequence[Variant],
    seed: Array,
    timeout: float,
) -> Slices:
    """Solve the first variant that has a solution; else return the last one tried.

    Each of several gets a few restarts, so that the answer does not depend on the clock; those
    without a solution then share the remaining time.
    """
    begin = time.perf_counter()
    deadline = begin + timeout
    try:
        solver = make()
        has_turns = len(variants) > 1 and solver.method == AUTO
        found = None
        if has_turns:
            hasty = make(max_restarts=FEW_RESTARTS)
            found = yield from _solve_in_turn(hasty, variants, seed, deadline, split=False)
        if found is None or not (found[0].success or time.perf_counter() >= deadline):
            found = yield from _solve_in_turn(solver, variants, seed, deadline, split=True)
    except (MethodError, OptionError) as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"constraints: {error}") from error
    result, variant = found
    return result._replace(duration=time.perf_counter() - begin), variant


def _solve_in_turn(
    solver: IkSolver,
    variants: Sequence[Variant],
    seed: Array,
    deadline: float,
    split: bool,
) -> Slices:
    """Solve the first variant that has a solution; each gets its share of the time if `split`."""
    for i, variant in enumerate(variants):
        left = deadline - time.perf_counter()
        share = left / (len(variants) - i) if split else left
        timeout = max(share, MIN_TIMEOUT)
        result = yield from solver.slices(variant.targets, seed, timeout, variant.tasks)
        if result.success or left <= 0.0:
            break
    return result, variant
