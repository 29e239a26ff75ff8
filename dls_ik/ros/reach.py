"""How links are brought to poses: by the chains of a group, or else by chains of their own."""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import ChainError, MethodError
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.bodies import attached_pair
from dls_ik.ros.groups import Group
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.solver import IkSolver
from dls_ik.text import listing, quoted

KEPT = 64  # solvers for links that no group has


class Lead(NamedTuple):
    """Which of the links asked for a tip takes along, rigidly attached to it."""

    asked: int
    T_link_tip: Array  # (4, 4)


class Reach(NamedTuple):
    """A solver, and for each of its k tips what leads it; None: it stays where it is."""

    solver: IkSolver
    leads: tuple[Lead | None, ...]  # (k,)


class Reaches:
    """Finds the solver for links of a robot; keeps the last ones."""

    def __init__(self, tree: Tree, parameters: Parameters) -> None:
        self._tree = tree
        self._options = parameters.solver_options()
        self._solver = lru_cache(KEPT)(self._new_solver)

    def find(self, group: Group, links: Sequence[str]) -> Reach:
        """How to bring links to poses; a single empty name is the tip.

        Tips of the group that none of the links is attached to stay where they are. Links that are
        attached to none get chains of their own, from the group's base where it is above them all.

        Raises:
            RequestError: unknown links, links that do not move, or not against each other; one
                empty name of several.
        """
        robot = group.solver.robot
        if list(links) == [""]:
            links = [self._only_tip(robot)]
        self._check(links)
        leads = [self._lead(tip, links) for tip in robot.tips]
        if sum(lead is not None for lead in leads) == len(links):
            return Reach(group.solver, tuple(leads))
        solver = self._solver(robot.base, tuple(links), group.method)
        return Reach(solver, tuple(Lead(i, np.eye(4)) for i in range(len(links))))

    def _lead(self, tip: str, links: Sequence[str]) -> Lead | None:
        for asked, link in enumerate(links):
            T_link_tip = self._tree.fixed_offset(link, tip)
            if T_link_tip is not None:
                return Lead(asked, T_link_tip)
        return None

    def _only_tip(self, robot: RobotModel) -> str:
        if len(robot.tips) > 1:
            raise _invalid(f"the group has several tips, name links: {listing(robot.tips)}")
        return robot.tip

    def _check(self, links: Sequence[str]) -> None:
        unknown = [link for link in dict.fromkeys(links) if link not in self._tree.child_joints]
        if unknown:
            raise self._refused(f"unknown link {listing(map(quoted, unknown))}")
        pair = attached_pair(self._tree, links)
        if pair and pair[0] == pair[1]:
            raise _invalid(f"link {pair[0]!r} is given twice; give one pose for it")
        if pair:
            words = f"links {pair[0]!r} and {pair[1]!r} are rigidly attached to each other"
            raise _invalid(f"{words}; give a pose for one of them")

    def _new_solver(self, base: str, links: tuple[str, ...], method: str) -> IkSolver:
        above = [{joint.parent for joint in self._tree.path(self._tree.root, k)} for k in links]
        start = base if all(base in each for each in above) else self._tree.root
        try:
            chain = RobotModel.from_tree(self._tree, start, links)
            return IkSolver(chain, method, **self._options)
        except ChainError as error:
            words = f"link {listing(map(repr, links))} cannot be brought to a pose: {error}"
            raise self._refused(words) from error
        except MethodError as error:
            raise RequestError(Code.NO_IK_SOLUTION, f"{listing(links)}: {error}") from error

    def _refused(self, message: str) -> RequestError:
        names = listing(link for link in self._tree.links if link != self._tree.root)
        return _invalid(f"{message}; links: {names}")


def _invalid(message: str) -> RequestError:
    return RequestError(Code.INVALID_LINK_NAME, message)
