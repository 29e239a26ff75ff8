"""A robot ready for use: its solvers by link, and its controller."""

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import ChainError
from dls_ik.model.names import listing
from dls_ik.model.rigid import inverse
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.servo import DEFAULT_METHOD, Controller
from dls_ik.solver import IkSolver


class Reach(NamedTuple):
    """How a link is brought to a pose: by a chain, and a fixed offset from the chain's tip."""

    solver: IkSolver
    T_link_tip: Array  # (4, 4)


class Arm:
    """A robot with the parameters that it is used with; never changed, only replaced.

    Args:
        executor: what the controller asks the solver in.
        controller: that there is already, made from the same parameters.

    Raises:
        MethodError, OptionError: a method that does not serve this robot.
        JointValueError: initial positions that do not fit it.
    """

    def __init__(
        self,
        robot: RobotModel,
        parameters: Parameters,
        executor: Executor | None = None,
        controller: Controller | None = None,
    ) -> None:
        self.robot = robot
        self.parameters = parameters
        self.tree: Tree = robot.tree
        self.start = robot.validated(parameters.initial_positions or robot.clip(np.zeros(robot.n)))
        options = parameters.solver_options()
        self.solver = IkSolver(robot, parameters.method, **options)
        self.solver.reach.prepare()  # not while a request waits
        named = parameters.stream_method if parameters.stream_method != DEFAULT_METHOD else None
        self._executor = executor
        self.controller = controller or Controller(
            robot, named, executor, **options, **parameters.controller_options()
        )
        self._reaches = {robot.tip: Reach(self.solver, np.eye(4))}

    def changed(self, parameters: Parameters) -> "Arm":
        """The same robot with other parameters; with the same controller where it is not concerned.

        Raises:
            MethodError, OptionError, JointValueError: as on construction.
        """
        same = parameters.stream_settings() == self.parameters.stream_settings()
        return Arm(self.robot, parameters, self._executor, self.controller if same else None)

    def base_from_root(self, T_root_link: Array, base: str, values: Mapping[str, float]) -> Array:
        """(4, 4) T_base_link for a pose in the root frame, with the base where `values` put it."""
        if base == self.tree.root:
            return T_root_link
        return inverse(self.tree.pose(base, values)) @ T_root_link

    def reach(self, link: str) -> Reach:
        """How to bring a link to a pose; an empty name is the tip.

        Raises:
            RequestError: an unknown link, or one that no joint moves; with the names of others.
        """
        link = link or self.robot.tip
        if link not in self._reaches:
            self._reaches[link] = self._new_reach(link)
        return self._reaches[link]

    def _new_reach(self, link: str) -> Reach:
        if link not in self.tree.below:
            raise self._unknown(f"unknown link {link!r}")
        T_link_tip = self.tree.fixed_offset(link, self.robot.tip)
        if T_link_tip is not None:
            return Reach(self.solver, T_link_tip)
        try:
            chain = RobotModel.from_tree(self.tree, self._base_above(link), link)
        except ChainError as error:
            raise self._unknown(f"link {link!r} cannot be brought to a pose: {error}") from error
        parameters = self.parameters
        solver = IkSolver(chain, parameters.method, **parameters.solver_options())
        return Reach(solver, np.eye(4))

    def _base_above(self, link: str) -> str:
        """The base of the arm if it lies above a link, else the root."""
        above = {joint.parent for joint in self.tree.path(self.tree.root, link)}
        return self.robot.base if self.robot.base in above else self.tree.root

    def _unknown(self, message: str) -> RequestError:
        names = listing(link for link in self.tree.links if link != self.tree.root)
        return RequestError(Code.INVALID_LINK_NAME, f"{message}; links: {names}")
