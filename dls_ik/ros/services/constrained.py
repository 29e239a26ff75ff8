# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""IK with constraints: solves a sequence of variants of a problem, with regions as targets.

An orientation constraint on a requested link replaces the orientation of the requested pose. If the
requested pose satisfies all its constraints, variants with the exact pose are solved first, then
variants with the regions of the constraints. A constraint whose region is a union of n regions
multiplies the number of variants by n.
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
from dls_ik.solver.method import AUTO_METHOD
from dls_ik.solver.solver import CLEARANCE_SOLVE_TYPE
from dls_ik.solver.task import Task
from dls_ik.text import listing

MAX_VARIANTS = 64  # maximum number of variants per request
FREE_TASK = Task(position_tolerance=math.inf, rotation_tolerance=math.inf)
ANYWHERE = Region(np.eye(4), FREE_TASK)
FIRST_ROUND_RESTARTS = 50  # number of restarts that solves nearly all solvable variants
MIN_VARIANT_TIMEOUT = 1e-6  # [s]
RELAXED_NOTE = "the orientation differs from the requested pose, within its constraint"


class LinkGoal(NamedTuple):
    """A requested link with its pose and its constraints."""

    tip: int  # index of the solver's tip to which the link is rigidly attached
    link: str
    T_tip_link: Array  # (4, 4)
    T_base_link: Array  # (4, 4) requested pose
    bounds: tuple[LinkBound, ...]  # constraints on the link, or on links rigidly attached to it

    @property
    def is_relaxed(self) -> bool:
        """True if a constraint replaces the requested orientation."""
        return any(bound.is_orientation for bound in self.bounds)

    @property
    def is_within(self) -> bool:
        """True if the requested pose satisfies all constraints."""
        return all(bound.holds(self.T_base_link) for bound in self.bounds)


class BoundPoint(NamedTuple):
    """A constraint that needs an additional tip of the robot model."""

    goal: LinkGoal | None  # requested link that is constrained; None: not a requested link
    bound: LinkBound


class Variant(NamedTuple):
    """A variant of the problem: a target and a task for each of k tips."""

    targets: Array  # (k, 4, 4) T_base_tip
    tasks: tuple[Task, ...]  # (k,)
    is_relaxed: bool  # whether regions replace requested poses


def solve_constrained(
    problem: IkProblem, given: Any, context: RobotContext, timeout: float
) -> Generator[None, None, tuple[IkResult, str]]:
    """Solve a problem with constraints in slices; return the result and a note about it.

    Args:
        problem: Problem without its constraints.
        given: ``moveit_msgs/Constraints``.
        context: Arm in the state of the request.
        timeout: Maximum time [s].

    Raises:
        RequestError: If a constraint is not valid or cannot be satisfied.
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
    if scene is not None and parameters.solve_type == CLEARANCE_SOLVE_TYPE:
        options["solve_type"] = CLEARANCE_SOLVE_TYPE
    make = partial(IkSolver, robot, problem.solver.method, scene=scene, **options)
    result, variant = yield from _solve_variants(make, variants, problem.seed, timeout)
    if result.success:
        return result, RELAXED_NOTE if variant.is_relaxed else ""
    return result, _violations(robot, result.q, points, values)


def _link_goals(problem: IkProblem, bounds: Sequence[LinkBound], tree: Tree) -> list[LinkGoal]:
    """Return the requested links with their constraints.

    Raises:
        RequestError: If a requested pose violates a constraint and no orientation constraint
            replaces its orientation.
    """
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
                f"{outside[0].label} cannot be satisfied: the requested pose of link {goal.link!r} "
                "is outside",
            )
    return goals


def _moved_to(link: str, bound: LinkBound, tree: Tree) -> LinkBound | None:
    """Return a constraint expressed on another link that is rigidly attached to its link.

    Returns:
        None if `link` is not rigidly attached to the link of the constraint.
    """
    T_link_bound = tree.fixed_offset(link, bound.link)
    if T_link_bound is None:
        return None
    return bound._replace(link=link, T_link_point=T_link_bound @ bound.T_link_point)


def _bound_points(
    bounds: Sequence[LinkBound], goals: Sequence[LinkGoal], robot: RobotModel, context: RobotContext
) -> list[BoundPoint]:
    """Return the constraints that need an additional tip.

    Raises:
        RequestError: If a constraint is violated by a link that no joint of the chain moves.
    """
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
                f"{bound.label} cannot be satisfied: no joint that is solved for moves the link, "
                "whose current pose is outside",
            )
    return [
        BoundPoint(goal, _closest_first(bound, context.link_pose(bound.link, base)))
        for goal, bound in points
        if bound.regions
    ]


def _closest_first(bound: LinkBound, T_base_link: Array) -> LinkBound:
    """Return the constraint with its regions sorted by distance from the current point.

    Args:
        bound: Constraint on a point of a link.
        T_base_link: (4, 4) current pose of the link.
    """
    point = (T_base_link @ bound.T_link_point)[:3, 3]

    def distance(region: Region) -> float:
        return float(np.linalg.norm(region.T_base_region[:3, 3] - point))

    return bound._replace(regions=tuple(sorted(bound.regions, key=distance)))


def _variants(
    problem: IkProblem, goals: Sequence[LinkGoal], points: Sequence[BoundPoint]
) -> list[Variant]:
    """Return the variants in order: first those with exact poses that satisfy their constraints.

    A variant has the tips of the problem, then a tip for each relaxed goal, and then a tip for each
    point.
    """
    relaxed = [goal for goal in goals if goal.is_relaxed]
    exact = [goal for goal in relaxed if goal.is_within]
    kept_sets = [exact, []] if exact else [[]]
    counts = [math.prod(len(each) for each in _choices(points, kept)) for kept in kept_sets]
    if sum(counts) > MAX_VARIANTS:
        raise invalid(
            f"unions of regions give {sum(counts)} combinations; at most {MAX_VARIANTS} are "
            "supported: give fewer regions"
        )
    return [
        _variant(problem, relaxed, kept, regions)
        for kept in kept_sets
        for regions in itertools.product(*_choices(points, kept))
    ]


def _choices(points: Sequence[BoundPoint], kept: Sequence[LinkGoal]) -> list[tuple[Region, ...]]:
    """Return the regions of each point; a point on a link with an exact pose may be anywhere.

    Args:
        points: Constraints that need an additional tip.
        kept: Requested links with an exact pose.
    """
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
    tasks = [FREE_TASK if tip in free else Task() for tip in range(len(problem.targets))]
    tasks += [FREE_TASK if goal.tip in tips else Task.position_only() for goal in relaxed]
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
    """Return the robot with a further tip for each relaxed goal and for each point."""
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


def _violations(
    robot: RobotModel, q: Array, points: Sequence[BoundPoint], values: Mapping[str, float]
) -> str:
    """Return a text with the constraints that the configuration q (n,) violates; empty if none."""
    if not np.isfinite(q).all():
        return ""
    violated = [
        bound.label
        for _, bound in points
        if not bound.holds(robot.link_pose(bound.link, q, values))
    ]
    return f"violated there: {listing(violated)}" if violated else ""


Slices = Generator[None, None, tuple[IkResult, Variant]]


def _solve_variants(
    make: Callable[..., IkSolver],
    variants: Sequence[Variant],
    seed: Array,
    timeout: float,
) -> Slices:
    """Solve variants up to the first solution; return the last result and its variant.

    In a first round each variant gets a limited number of restarts, so that the answer does not
    depend on the clock. In a second round the variants share the remaining time.
    """
    start = time.perf_counter()
    deadline = start + timeout
    try:
        solver = make()
        has_first_round = len(variants) > 1 and solver.method == AUTO_METHOD
        found = None
        if has_first_round:
            limited = make(max_restarts=FIRST_ROUND_RESTARTS)
            found = yield from _solve_in_turn(limited, variants, seed, deadline, split=False)
        if found is None or not (found[0].success or time.perf_counter() >= deadline):
            found = yield from _solve_in_turn(solver, variants, seed, deadline, split=True)
    except (MethodError, OptionError) as error:
        raise RequestError(Code.NO_IK_SOLUTION, f"constraints: {error}") from error
    result, variant = found
    return result._replace(duration=time.perf_counter() - start), variant


def _solve_in_turn(
    solver: IkSolver,
    variants: Sequence[Variant],
    seed: Array,
    deadline: float,
    split: bool,
) -> Slices:
    """Solve variants up to the first solution; return the last result and its variant.

    Args:
        solver: Solver of all variants.
        variants: Variants in the order of the attempts.
        seed: (n,) start configuration [rad or m].
        deadline: Latest time by perf_counter [s].
        split: Whether to divide the remaining time equally among the remaining variants; if False,
            each variant may use all the remaining time.
    """
    for i, variant in enumerate(variants):
        remaining = deadline - time.perf_counter()
        share = remaining / (len(variants) - i) if split else remaining
        timeout = max(share, MIN_VARIANT_TIMEOUT)
        result = yield from solver.slices(variant.targets, seed, timeout, variant.tasks)
        if result.success or remaining <= 0.0:
            break
    return result, variant
