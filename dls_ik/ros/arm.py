# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Arm: a robot with the groups, solvers and controller that the parameters describe."""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import (
    ChainError,
    Code,
    DlsIkError,
    MethodError,
    OptionError,
    RequestError,
    RobotModelError,
)
from dls_ik.model.analysis import ready_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.model.tree import Tree
from dls_ik.ros.params import GroupParameters, Parameters
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.srdf import Srdf
from dls_ik.servo import DEFAULT_METHOD, Controller, gentle_acceleration
from dls_ik.servo.workspace import Bound
from dls_ik.solver import IkSolver
from dls_ik.text import listing, quoted

# Name of the group of requests that name no group: the chain that follows targets.
DEFAULT_GROUP = ""
MAX_SRDF_GROUPS = 64
MAX_CACHED_CHAINS = 64  # maximum number of combinations of a group and requested links


class Group(NamedTuple):
    """Group of tips that are brought to target poses together, with a solver and its settings."""

    solver: IkSolver  # the tips of the group are the tips of the solver's robot model
    method: str  # name of the method
    timeout: float  # [s] timeout of requests that give no timeout


class TipAttachment(NamedTuple):
    """Requested link to which a tip of a chain is rigidly attached."""

    link_index: int  # index of the link in the request
    T_link_tip: Array  # (4, 4) constant pose of the tip in the link frame


class IkChain(NamedTuple):
    """Solver for requested links, and for each of its k tips the attachment to a requested link.

    A tip without an attachment keeps its current pose.
    """

    solver: IkSolver
    attachments: tuple[TipAttachment | None, ...]  # (k,) None: no requested link


PREPARING = "the planning scene is being prepared"


class Surroundings(NamedTuple):
    """Scene and workspace bounds that limit the motion of an arm that follows targets."""

    scene: PlanningScene | None = None
    workspace: tuple[Bound, ...] = ()
    hold_reason: str = ""  # reason why the arm must hold its position; empty: the arm may move
    reason: str = ""  # reason why there is no scene


class Arm:
    """Robot with the groups, solvers and controller for given parameters; never modified.

    Args:
        robot: Robot whose chain follows targets.
        parameters: Parameters of the node.
        executor: Executor in which the controller runs the solver.
        controller: Existing controller with the same settings, which is used instead of a new one.
        groups: Previous groups of the same robot, whose robot models are reused.
        srdf: SRDF whose groups are added to the groups of the parameters.
        surroundings: Scene and workspace bounds, as far as they are known.

    Raises:
        MethodError: If a method does not support the robot.
        OptionError: If a group does not fit the robot, or the links of the arm can never keep
            `min_distance`.
        JointValueError: If the parameter `initial_positions` does not fit the robot.
    """

    def __init__(
        self,
        robot: RobotModel,
        parameters: Parameters,
        executor: Executor | None = None,
        controller: Controller | None = None,
        groups: Mapping[str, Group] | None = None,
        srdf: Srdf | None = None,
        surroundings: Surroundings | None = None,
    ) -> None:
        self.robot, self.srdf = robot, srdf
        self.surroundings = surroundings or Surroundings()
        self.outside_joints = joints_outside_chain(robot)
        self.parameters = parameters
        self.tree: Tree = robot.tree
        self.start = robot.validated(parameters.initial_positions or ready_configuration(robot))
        pair = attached_pair(robot.tree, robot.tips) if len(robot.tips) > 1 else None
        if pair:
            raise OptionError(
                f"tips {pair[0]!r} and {pair[1]!r} of stream_group are rigidly attached to each "
                "other; give one of them"
            )
        self.groups = build_groups(robot, parameters, groups or {})
        self.solver = self.groups[DEFAULT_GROUP].solver
        self._unusable: dict[str, str] = {}  # names of unusable SRDF groups, and reasons
        if srdf is not None:
            self._add_srdf_groups(srdf, groups or {})
        self._executor = executor
        self.controller = controller or self._new_controller()
        self.ik_chain = SolverCache(self.tree, parameters).find

    def changed(self, parameters: Parameters) -> "Arm":
        """Return an arm of the same robot with other parameters.

        The controller is kept if its settings are unchanged.

        Raises:
            MethodError, OptionError, JointValueError: If the parameters do not fit the robot, as
                for the constructor.
        """
        same = parameters.stream_settings() == self.parameters.stream_settings()
        controller = self.controller if same else None
        return self._replaced(parameters, controller, self.srdf, self.surroundings)

    def with_srdf(self, srdf: Srdf) -> "Arm":
        """Return an arm with the groups of an SRDF in addition.

        Building a group takes a few tenths of a second.
        """
        return self._replaced(self.parameters, self.controller, srdf, self.surroundings)

    def within(self, surroundings: Surroundings) -> "Arm":
        """Return an arm with another scene and other workspace bounds.

        Also load all kernels that the controller of this arm calls.

        Raises:
            OptionError: If the links of the arm can never keep `min_distance`.
        """
        arm = self._replaced(self.parameters, None, self.srdf, surroundings)
        if surroundings.scene is not None or surroundings.workspace:
            _rehearse(arm._new_controller(), arm.start)
        return arm

    def prepare(self) -> None:
        """Compute the bounds on the reach of all groups now.

        Otherwise the first request of an unreachable pose would be delayed by this computation.
        """
        for group in self.groups.values():
            group.solver.prepare()

    def _replaced(
        self,
        parameters: Parameters,
        controller: Controller | None,
        srdf: Srdf | None,
        surroundings: Surroundings,
    ) -> "Arm":
        return Arm(
            self.robot, parameters, self._executor, controller, self.groups, srdf, surroundings
        )

    def _new_controller(self) -> Controller:
        parameters, around = self.parameters, self.surroundings
        named = parameters.stream_method if parameters.stream_method != DEFAULT_METHOD else None
        return Controller(
            self.robot,
            named,
            self._executor,
            scene=around.scene,
            workspace=around.workspace,
            task=parameters.stream_task(),
            frozen_joints=parameters.frozen_joints,
            **parameters.solver_options(),
            **controller_options(self.robot, parameters),
        )

    def group(self, name: str) -> Group:
        """Return a group by name; an empty name means the default group.

        Raises:
            RequestError: If the name is unknown, or if the SRDF group of this name is not usable;
                the message lists the valid names.
        """
        group = self.groups.get(name)
        if group is not None:
            return group
        others = self.parameters.group_name
        semantic = {} if self.srdf is None else self.srdf.groups
        if name in others or not (others or self.parameters.groups or semantic):
            return self.groups[DEFAULT_GROUP]
        message = f"unknown group {quoted(name)}"
        if name in self._unusable:
            reason = self._unusable[name]
            message = f"group {quoted(name)} of the SRDF is not usable: {reason}"
        known = listing(dict.fromkeys([*filter(None, self.groups), *others]))
        raise RequestError(Code.INVALID_GROUP_NAME, f"{message}; known: {known}")

    def _add_srdf_groups(self, srdf: Srdf, others: Mapping[str, Group]) -> None:
        """Add the groups of an SRDF, except those with names that the parameters use.

        Args:
            srdf: SRDF.
            others: Previous groups of the same robot, whose robot models are reused.
        """
        models = [group.solver.robot for group in (*self.groups.values(), *others.values())]
        given = {*self.groups, *self.parameters.group_name}
        for name in [each for each in srdf.groups if each not in given][:MAX_SRDF_GROUPS]:
            group = self._srdf_group(name, srdf, models)
            if group is not None:
                self.groups[name] = group
                models.append(group.solver.robot)

    def _srdf_group(self, name: str, srdf: Srdf, models: list[RobotModel]) -> Group | None:
        try:
            base, tips = srdf.ends(self.tree, name)
            details = GroupParameters(name, tip=tips, base=base)
            return _build_group(details, self.parameters, models)
        except DlsIkError as error:
            self._unusable[name] = str(error)
            return None


def _rehearse(controller: Controller, q: Array) -> None:
    """Use all functions of a controller once, so that all kernels are compiled or loaded.

    Args:
        controller: Controller, which is not used afterwards.
        q: (n,) joint positions at which the controller starts [rad or m].
    """
    controller.seed(q)
    controller.follow_pose(controller.robot.fk(q), 0.0)
    tip = next(frame.tip for frame in controller.frames if not frame.is_free)
    for k in range(2):
        controller.cycle(0.01 * k, 0.01)
    controller.follow_twist(np.full(6, 1e-3), 0.02, tip=tip)
    controller.cycle(0.02, 0.01)
    controller.pause()
    controller.cycle(0.03, 0.01)
    controller.stop_path(0.01)


def joints_outside_chain(robot: RobotModel) -> tuple[str, ...]:
    """Return the names of the movable joints outside the chain, such as fingers or other arms."""
    masters = dict.fromkeys(mimic.master for mimic in robot.tree.mimic_of.values())
    return tuple(name for name in masters if name not in robot.joint_names)


def controller_options(robot: RobotModel, parameters: Parameters) -> dict[str, Any]:
    """Return the options of a controller by name.

    Acceleration limits are computed from the robot if the parameters give none.
    """
    options = parameters.controller_options()
    if "acceleration" not in options:
        options["acceleration"] = tuple(gentle_acceleration(robot).tolist())
    return options


def build_groups(
    robot: RobotModel, parameters: Parameters, others: Mapping[str, Group]
) -> dict[str, Group]:
    """Return the groups of the parameters and the default group, by name.

    Args:
        robot: Robot model of the default group.
        parameters: Parameters of the node.
        others: Previous groups of the same robot. Their robot models are reused, because computing
            the bounds on the reach of a new model takes a few tenths of a second.

    Raises:
        OptionError: If a group does not fit the robot.
        MethodError: If the method of a group does not support the tips of the group.
    """
    models = [robot, *(group.solver.robot for group in others.values())]
    groups = {DEFAULT_GROUP: _prepared(robot, parameters.method, parameters.timeout, parameters)}
    for details in parameters.group_details:
        try:
            group = _build_group(details, parameters, models)
        except RobotModelError as error:
            raise OptionError(f"group {details.name!r} does not fit the robot: {error}") from error
        except MethodError as error:
            raise MethodError(f"group {details.name!r}: {error}") from error
        groups[details.name] = group
        models.append(group.solver.robot)
    return groups


def _build_group(
    details: GroupParameters, parameters: Parameters, models: list[RobotModel]
) -> Group:
    base, tip = details.base or parameters.base, details.tip or parameters.tip
    model = RobotModel.from_tree(models[0].tree, base, tip)
    pair = attached_pair(model.tree, model.tips)
    if pair:
        raise ChainError(f"its tips {pair[0]!r} and {pair[1]!r} are rigidly attached to each other")
    ends = (model.base, model.tips)
    model = next((known for known in models if (known.base, known.tips) == ends), model)
    method, timeout = details.method or parameters.method, details.timeout or parameters.timeout
    return _prepared(model, method, timeout, parameters)


def _prepared(robot: RobotModel, method: str, timeout: float, parameters: Parameters) -> Group:
    return Group(IkSolver(robot, method, **parameters.service_options(method)), method, timeout)


def attached_pair(tree: Tree, links: Iterable[str]) -> tuple[str, str] | None:
    """Return the first pair of links that are equal or rigidly attached to each other.

    Returns:
        Pair of link names; None if there is no such pair.
    """
    seen: dict[str, str] = {}
    for link in links:
        body = _body(tree, link)
        if body in seen:
            return seen[body], link
        seen[body] = link
    return None


def _body(tree: Tree, link: str) -> str:
    """Return the link closest to the root among the links that are rigidly attached to `link`.

    This link identifies the rigid body of `link`.
    """
    while link in tree.parent_joint and tree.parent_joint[link].kind == "fixed":
        link = tree.parent_joint[link].parent
    return link


class SolverCache:
    """Cache of solvers for requested links."""

    def __init__(self, tree: Tree, parameters: Parameters) -> None:
        self._tree = tree
        self._parameters = parameters
        self._chain = lru_cache(MAX_CACHED_CHAINS)(self._new_chain)

    def find(self, group: Group, links: Sequence[str]) -> IkChain:
        """Return the solver for the requested links of a group.

        If each link is rigidly attached to a tip of the group, the solver of the group is used, and
        the remaining tips of the group keep their poses. Otherwise a new solver is built, with a
        chain to each link. These chains start at the base of the group if the base is an ancestor
        of all links; if not, they start at the root link.

        Args:
            group: Group of the request.
            links: Names of the links; a single empty name means the only tip of the group.

        Raises:
            RequestError: If a link is unknown, if two links are rigidly attached to each other, if
                one of several names is empty, or if the solver does not support the links.
        """
        return self._chain(group, tuple(links))

    def _new_chain(self, group: Group, links: tuple[str, ...]) -> IkChain:
        robot = group.solver.robot
        if links == ("",):
            links = (self._only_tip(robot),)
        self._check(links)
        attachments = tuple(self._attachment(tip, links) for tip in robot.tips)
        if sum(each is not None for each in attachments) == len(links):
            return IkChain(group.solver, attachments)
        solver = self._new_solver(robot.base, links, group.method)
        return IkChain(solver, tuple(TipAttachment(i, np.eye(4)) for i in range(len(links))))

    def _attachment(self, tip: str, links: Sequence[str]) -> TipAttachment | None:
        for index, link in enumerate(links):
            T_link_tip = self._tree.fixed_offset(link, tip)
            if T_link_tip is not None:
                return TipAttachment(index, T_link_tip)
        return None

    def _only_tip(self, robot: RobotModel) -> str:
        if len(robot.tips) > 1:
            raise _invalid(f"the group has several tips; give ik_link_names: {listing(robot.tips)}")
        return robot.tip

    def _check(self, links: Sequence[str]) -> None:
        unknown = [link for link in dict.fromkeys(links) if link not in self._tree.child_joints]
        if unknown:
            raise self._refused(f"unknown link {listing(map(quoted, unknown))}")
        pair = attached_pair(self._tree, links)
        if pair and pair[0] == pair[1]:
            raise _invalid(f"link {pair[0]!r} is given twice; give one pose for it")
        if pair:
            message = f"links {pair[0]!r} and {pair[1]!r} are rigidly attached to each other"
            raise _invalid(f"{message}; give a pose for one of them")

    def _new_solver(self, base: str, links: tuple[str, ...], method: str) -> IkSolver:
        above = [{joint.parent for joint in self._tree.path(self._tree.root, k)} for k in links]
        start = base if all(base in each for each in above) else self._tree.root
        try:
            chain = RobotModel.from_tree(self._tree, start, links)
            return IkSolver(chain, method, **self._parameters.service_options(method))
        except ChainError as error:
            message = f"the solver cannot move link {listing(map(repr, links))}: {error}"
            raise self._refused(message) from error
        except MethodError as error:
            raise RequestError(Code.NO_IK_SOLUTION, f"{listing(links)}: {error}") from error

    def _refused(self, message: str) -> RequestError:
        names = listing(link for link in self._tree.links if link != self._tree.root)
        return _invalid(f"{message}; links: {names}")


def _invalid(message: str) -> RequestError:
    return RequestError(Code.INVALID_LINK_NAME, message)
