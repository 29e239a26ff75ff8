"""The poses that a request asks for, and whether its constraints let go of their orientation."""

from collections.abc import Sequence
from typing import NamedTuple

from dls_ik.core.types import Array
from dls_ik.model.rigid import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.constraints.bound import Bound
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.ros.services.problem import Problem


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
    for tip, lead in enumerate(problem.leads):
        if lead is None:
            continue
        T_tip_link = inverse(lead.T_link_tip)
        link = problem.links[lead.asked] or problem.solver.robot.tips[tip]
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
