# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""IK with constraints, which solves a sequence of variants of a problem with regions as targets.

An orientation constraint on a requested link replaces the orientation of the requested pose. If the
requested pose satisfies all constraints on its link, variants with the exact pose are solved first,
then variants with the regions of the constraints. A constraint whose region is a union of n regions
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
MIN_VARIANT_TIMEOUT = 1e-6  # [s] minimum solver timeout of a variant
RELAXED_NOTE = "the orientation differs from the requested pose, within its constraint"


class LinkGoal(NamedTuple):
    """Requested link with the requested pose, and with the constraints on this link."""

    tip: int  # index of the solver's tip to which the link is rigidly attached
    link: str  # name of the requested link
    T_tip_link: Array  # (4, 4) constant pose of the link in the tip frame
    T_base_link: Array  # (4, 4) requested pose
    bounds: tuple[LinkBound, ...]  # constraints on the link, or on links rigidly attached to it

    @property
    def is_relaxed(self) -> bool:
        """Whether an orientation constraint replaces the requested orientation."""
        return any(bound.is_orientation for bound in self.bounds)

    @property
    def is_within(self) -> bool:
        """Whether the requested pose satisfies all constraints on the link."""
        return all(bound.holds(self.T_base_link) for bound in self.bounds)


class BoundPoint(NamedTuple):
    """Constraint on a point of a link; the point becomes an additional tip of the robot model."""

    goal: LinkGoal | None  # requested link of the constraint; None: not a requested link
    bound: LinkBound


class Variant(NamedTuple):
    """Variant of an IK problem: a target and a task for each of k tips."""

    targets: Array  # (k, 4, 4) T_base_tip
    tasks: tuple[Task, ...]  # (k,)
    is_relaxed: bool  # whether regions replace requested poses


def solve_constrained(
    problem: IkProblem, given: Any, context: RobotContext, timeout: float
) -> Generator[None, None, tuple[IkResult, str]]:
    """Solve a problem with constraints, as a generator of slices of approximately 10 ms.

    Args:
        problem: Problem of the request, without constraints.
        given: ``moveit_msgs/Constraints`` of the request.
        context: Arm in the state of the request.
        timeout: Maximum time [s].

    Returns:
        Result, and a note for the client: whether the orientation was relaxed, or which constraints
        the closest configuration violates; empty if there is nothing to note.

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
    options = parameters.service_options(problem.solver.method)
    if scene is not None and parameters.solve_type == CLEARANCE_SOLVE_TYPE:
        options["solve_type"] = CLEARANCE_SOLVE_TYPE
    make = partial(IkSolver, robot, problem.solver.method, scene=scene, **options)
    result, variant = yield from _solve_variants(make, variants, problem.seed, timeout)
    if result.success:
        return result, RELAXED_NOTE if variant.is_relaxed else ""
    return result, _violations(robot, result.q, points, values)


def _link_goals(problem: IkProblem, bounds: Sequence[LinkBound], tree: Tree) -> list[LinkGoal]:
    """Return the requested links, each with the requested pose and the constraints on the link.

    Args:
        problem: Problem of the request, without constraints.
        bounds: Constraints on all links.
        tree: Robot.

    Raises:
        RequestError: If a requested pose violates a constraint on its link, and no orientation
            constraint replaces the requested orientation.
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
                "violates the constraint",
            )
    return goals


def _moved_to(link: str, bound: LinkBound, tree: Tree) -> LinkBound | None:
    """Return a constraint as a constraint on `link`, if `link` is rigidly attached to its link.

    Returns:
        Equivalent constraint on `link`; None if fixed joints do not connect `link` to the link of
        the constraint.
    """
    T_link_bound = tree.fixed_offset(link, bound.link)
    if T_link_bound is None:
        return None
    return bound._replace(link=link, T_link_point=T_link_bound @ bound.T_link_point)


def _bound_points(
    bounds: Sequence[LinkBound], goals: Sequence[LinkGoal], robot: RobotModel, context: RobotContext
) -> list[BoundPoint]:
    """Return the constraints that need an additional tip of the robot model.

    These are the constraints on requested links whose orientation is relaxed, and the constraints
    on other links that the chain moves.

    Args:
        bounds: Constraints on all links.
        goals: Requested links with their constraints.
        robot: Robot of the chain.
        context: Arm in the state of the request.

    Raises:
        RequestError: If a link that no joint of the chain moves violates a constraint.
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
                "and the current pose of the link violates the constraint",
            )
    return [
        BoundPoint(goal, _closest_first(bound, context.link_pose(bound.link, base)))
        for goal, bound in points
        if bound.regions
    ]


def _closest_first(bound: LinkBound, T_base_link: Array) -> LinkBound:
    """Return a constraint with its regions sorted by distance from the current position.

    Args:
        bound: Constraint on a point of a link, which must be in one of several regions.
        T_base_link: (4, 4) current pose of the link.
    """
    point = (T_base_link @ bound.T_link_point)[:3, 3]

    def distance(region: Region) -> float:
        return float(np.linalg.norm(region.T_base_region[:3, 3] - point))

    return bound._replace(regions=tuple(sorted(bound.regions, key=distance)))


def _variants(
    problem: IkProblem, goals: Sequence[LinkGoal], points: Sequence[BoundPoint]
) -> list[Variant]:
    """Return the variants of a problem in the order in which they are solved.

    If requested poses satisfy the constraints on their links, the first variants contain these
    exact poses. The last variants contain only regions for relaxed goals. The targets of a variant
    are those of the tips of the problem, then of a tip for each relaxed goal, and then of a tip for
    each point.

    Args:
        problem: Problem of the request, without constraints.
        goals: Requested links with their constraints.
        points: Constraints that need an additional tip.

    Raises:
        RequestError: If there are more than MAX_VARIANTS variants.
    """
    relaxed = [goal for goal in goals if goal.is_relaxed]
    exact = [goal for goal in relaxed if goal.is_within]
    kept_sets = [exact, []] if exact else [[]]
    counts = [math.prod(len(each) for each in _choices(points, kept)) for kept in kept_sets]
    if sum(counts) > MAX_VARIANTS:
        raise invalid(
            f"the regions of all constraints may have at most {MAX_VARIANTS} combinations; got "
            f"{sum(counts)}; give fewer regions"
        )
    return [
        _variant(problem, relaxed, kept, regions)
        for kept in kept_sets
        for regions in itertools.product(*_choices(points, kept))
    ]


def _choices(points: Sequence[BoundPoint], kept: Sequence[LinkGoal]) -> list[tuple[Region, ...]]:
    """Return the alternative regions of each point in a variant.

    A point on a link whose requested pose is solved exactly has one unlimited region, because the
    exact pose already satisfies the constraint.

    Args:
        points: Constraints that need an additional tip.
        kept: Requested links whose requested pose is solved exactly.
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
    """Return the robot with an additional tip for each relaxed goal and for each point.

    Args:
        robot: Robot of the chain.
        goals: Requested links with their constraints.
        points: Constraints that need an additional tip.
        values: Joint positions by name [rad or m], which place joints outside the chain.

    Raises:
        RequestError: If no chain to a point is possible.
    """
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
        raise invalid(f"{bound.label} is not supported: {error}") from error


def _violations(
    robot: RobotModel, q: Array, points: Sequence[BoundPoint], values: Mapping[str, float]
) -> str:
    """Return a text that lists the constraints violated at a configuration q (n,) [rad or m].

    The text is empty if no constraint is violated, or if q is not finite.
    """
    if not np.isfinite(q).all():
        return ""
    violated = [
        bound.label
        for _, bound in points
        if not bound.holds(robot.link_pose(bound.link, q, values))
    ]
    return f"violated by the closest configuration: {listing(violated)}" if violated else ""


Slices = Generator[None, None, tuple[IkResult, Variant]]


def _solve_variants(
    make: Callable[..., IkSolver],
    variants: Sequence[Variant],
    seed: Array,
    timeout: float,
) -> Slices:
    """Solve variants until one has a solution; return the last result and the variant of it.

    In a first round each variant gets a limited number of restarts, so that the answer does not
    depend on processor speed. In a second round the variants share the remaining time.

    Args:
        make: Function that returns a solver of all variants, with options as keyword arguments.
        variants: Variants in the order of the attempts.
        seed: (n,) start configuration [rad or m].
        timeout: Maximum time for all variants [s].

    Raises:
        RequestError: If the method of the solver does not support the variants.
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
    """Solve each variant once until one has a solution; return the last result and its variant.

    Args:
        solver: Solver of all variants.
        variants: Variants in the order of the attempts.
        seed: (n,) start configuration [rad or m].
        deadline: Time at which the last attempt must end, on the clock of perf_counter [s].
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
