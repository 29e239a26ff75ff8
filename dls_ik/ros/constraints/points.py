"""Points of links that are bound, each a further tip, and the problems that they come to."""

import itertools
import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from dls_ik.model.tree import Tree
from dls_ik.ros.constraints.bound import Bound, Region
from dls_ik.ros.constraints.goals import Goal
from dls_ik.ros.constraints.place import Place, invalid
from dls_ik.ros.constraints.stages import Stage
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.ros.services.problem import Problem
from dls_ik.solver.task import Task

MOST_STAGES = 64
FREE = Task(position_slack=math.inf, rotation_slack=math.inf)
NOWHERE = Region(np.eye(4), FREE)


class Point(NamedTuple):
    """A bound on a link that is solved for."""

    goal: Goal | None  # whose link it is on
    bound: Bound


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
    drives = (tree.drives.get(joint.name) for joint in tree.path(tree.root, link))
    return any(d is not None and d.multiplier and d.master in joint_names for d in drives)


def _sorted(bound: Bound, place: Place) -> Bound:
    """The regions in the order of how far their middles are from where the point is now."""
    point = (place.link(bound.link) @ bound.T_link_point)[:3, 3]

    def distance(region: Region) -> float:
        return float(np.linalg.norm(region.T_base_region[:3, 3] - point))

    return bound._replace(regions=tuple(sorted(bound.regions, key=distance)))
