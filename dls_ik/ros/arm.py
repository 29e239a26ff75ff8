"""A robot ready for use: its groups, how its links are brought to poses, and its controller."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Executor

from dls_ik.core.types import Array
from dls_ik.model.analysis import ready_configuration
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.ros.groups import DEFAULT, Group, build_groups
from dls_ik.ros.parameters import Parameters
from dls_ik.ros.reach import Reach, Reaches
from dls_ik.ros.services.codes import Code, RequestError
from dls_ik.servo import DEFAULT_METHOD, Controller
from dls_ik.text import listing, quoted


class Arm:
    """A robot with the parameters that it is used with; never changed, only replaced.

    Args:
        executor: what the controller asks the solver in.
        controller: that there is already, made from the same parameters.
        groups: those that there were before, of the same robot.

    Raises:
        MethodError, OptionError: a method or a group that does not fit this robot.
        JointValueError: initial positions that do not fit it.
    """

    def __init__(
        self,
        robot: RobotModel,
        parameters: Parameters,
        executor: Executor | None = None,
        controller: Controller | None = None,
        groups: Mapping[str, Group] | None = None,
    ) -> None:
        self.robot = robot
        self.parameters = parameters
        self.tree: Tree = robot.tree
        self.start = robot.validated(parameters.initial_positions or ready_configuration(robot))
        options = parameters.solver_options()
        self.groups = build_groups(robot, parameters, groups or {})
        self.solver = self.groups[DEFAULT].solver
        named = parameters.stream_method if parameters.stream_method != DEFAULT_METHOD else None
        self._executor = executor
        self.controller = controller or Controller(
            robot, named, executor, **options, **parameters.controller_options()
        )
        self._reaches = Reaches(self.tree, parameters)

    def changed(self, parameters: Parameters) -> "Arm":
        """The same robot with other parameters; with the same controller where it is not concerned.

        Raises:
            MethodError, OptionError, JointValueError: as on construction.
        """
        same = parameters.stream_settings() == self.parameters.stream_settings()
        controller = self.controller if same else None
        return Arm(self.robot, parameters, self._executor, controller, self.groups)

    def base_from_root(self, T_root_link: Array, base: str, values: Mapping[str, float]) -> Array:
        """(4, 4) T_base_link for a pose in the root frame, with the base where `values` put it."""
        if base == self.tree.root:
            return T_root_link
        return inverse(self.tree.pose(base, values)) @ T_root_link

    def group(self, name: str) -> Group:
        """The group of a name, the default one for an empty name.

        Raises:
            RequestError: an unknown name; with the valid ones.
        """
        group = self.groups.get(name)
        if group is not None:
            return group
        others = self.parameters.group_name
        if name in others or not (others or self.parameters.groups):
            return self.groups[DEFAULT]
        known = listing([*self.parameters.groups, *others])
        words = f"unknown group {quoted(name)}; known: {known}"
        raise RequestError(Code.INVALID_GROUP_NAME, words)

    def reach(self, group: Group, links: Sequence[str]) -> Reach:
        """How to bring links to poses, see :meth:`dls_ik.ros.reach.Reaches.find`."""
        return self._reaches.find(group, links)
