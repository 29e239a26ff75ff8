# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Connection to a running node, with its topics, parameters, robot and joint names."""

import time
from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from rclpy.node import Node

from dls_ik.errors import DlsIkError
from dls_ik.ros.client.connection import NoAnswerError, OwnNode, ServiceMissingError, wait_until
from dls_ik.ros.client.target_publisher import NodeMonitor
from dls_ik.ros.params import Parameters
from dls_ik.ros.recording.topics import (
    JOINTS_KIND,
    STATUS_ROLE,
    TARGET_ROLE,
    TIP_ROLE,
    RecordingInfo,
    full_name,
    joint_topic,
    topic_roles,
)
from dls_ik.ros.robot_source import (
    DescribedRobot,
    first_ends,
    served_robot,
    subscribe_descriptions,
)
from dls_ik.ros.servo.outputs import OutputJoints, arrange_joints
from dls_ik.ros.viewer_source import NodeParameters
from dls_ik.text import listing

CLIENT_NAME = "dls_ik_recording"
DISCOVERY_TIME = 0.5  # [s] time without a new topic after which all topics of a node are known

OwnRobot = Callable[[str | None, str | None], DescribedRobot]


class RunningNode:
    """Connection to ``ik_node``; use it as a context manager.

    Args:
        namespace: Namespace of the node.
        name: Name of the node.
        patience: Maximum time until the node is found [s].
        own_robot: Function of base and tip that returns a robot that the user chose instead of the
            robot of the node; None: the robot of the node.

    Raises:
        ServiceMissingError: If there is no node with this name.
        NoAnswerError: If the node reads no targets, for example because it is starting.
    """

    def __init__(
        self,
        namespace: str = "",
        name: str = "dls_ik",
        patience: float = 5.0,
        own_robot: OwnRobot | None = None,
    ) -> None:
        self.namespace, self.name, self.patience = namespace, name, patience
        self._own, self._own_robot = OwnNode(namespace, CLIENT_NAME), own_robot
        self.node: Node = self._own.node
        try:
            self.roles = self._wait_for_topics()
            self._texts: list[Any] = []
            subscribe_descriptions(self.node, self._texts.append)
            self._settings = NodeParameters(self.node, name)
        except BaseException:
            self._own.close()
            raise

    def __enter__(self) -> "RunningNode":
        """Return the connection."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the connection."""
        self.close()

    def close(self) -> None:
        """Destroy the client's node; no callback runs afterwards."""
        self._own.close()

    @property
    def full_name(self) -> str:
        """Name of the node with its namespace."""
        return full_name(self.namespace, self.name)

    def topics(self, role: str, *kinds: str) -> list[tuple[str, str]]:
        """Return topics and types of a role; with `kinds`, only topics of these types."""
        return sorted(
            (topic, kind)
            for (topic, kind), each in self.roles.items()
            if each == role and (not kinds or kind in kinds)
        )

    @cached_property
    def monitor(self) -> NodeMonitor:
        """Monitor of the node, which starts with the first access."""
        status, tip = (
            next((topic for topic, _ in self.topics(role)), f"{self.name}/{default}")
            for role, default in ((STATUS_ROLE, "status"), (TIP_ROLE, "tip_pose"))
        )
        of_joints = {
            topic: role for (topic, kind), role in self.roles.items() if kind == JOINTS_KIND
        }
        return NodeMonitor(self.node, self.name, (status, tip, joint_topic(of_joints)))

    @cached_property
    def parameters(self) -> Parameters:
        """Parameters of the node.

        Raises:
            NoAnswerError: If the node does not answer.
        """
        return self._settings.read(self.patience)

    @cached_property
    def described(self) -> DescribedRobot:
        """Robot of the node, or the robot that the user chose, with its URDF.

        Raises:
            DlsIkError: If the robot is not known, for example because the node read it from a file,
                which the client does not open.
        """
        return served_robot(
            lambda: self.parameters,
            lambda: self._texts[-1].data if self._texts else "",
            self._own_robot,
        )

    @cached_property
    def joints(self) -> OutputJoints:
        """Names of the joints of the robot in messages."""
        parameters, robot = self.parameters, self.described.robot
        return arrange_joints(robot.joint_names, parameters.output_joints, parameters.output_names)

    @property
    def message_names(self) -> tuple[str, ...]:
        """Joint names (n,) from base to tip, as in messages."""
        called = {ours: theirs for theirs, ours in self.joints.robot_names.items()}
        return tuple(called.get(name, name) for name in self.described.robot.joint_names)

    def info(self) -> tuple[RecordingInfo, str]:
        """Return the information for a recording, and why it has no robot; empty if it has one."""
        roles = {topic: role for (topic, _), role in self.roles.items()}
        try:
            base, tip = first_ends(self.parameters)
            robot = self.described.robot
            ends = base or robot.base, tip or robot.tip
            return RecordingInfo(self.full_name, roles, self.message_names, *ends), ""
        except DlsIkError as error:
            return RecordingInfo(self.full_name, roles), str(error)

    def wait_for_tip(self) -> None:
        """Wait until the node publishes the pose of its tip.

        Raises:
            NoAnswerError: If no pose arrives within `patience`, for example without a robot.
        """
        monitor = self.monitor
        if not wait_until(lambda: monitor.rows, time.monotonic() + self.patience):
            raise NoAnswerError(
                f"{self.full_name} publishes no pose of its tip within {self.patience:g} s; its "
                f"state is {monitor.state}: {monitor.message or 'no message'}"
            )

    def positions(self) -> dict[str, float]:
        """Return the last joint positions by name in messages [rad or m]; wait for all joints.

        Raises:
            NoAnswerError: If a position is missing after `patience`.
        """
        names, monitor = self.message_names, self.monitor
        if not wait_until(lambda: monitor.q.keys() >= set(names), time.monotonic() + self.patience):
            missing = listing(name for name in names if name not in monitor.q)
            raise NoAnswerError(
                f"no position of {missing} received within {self.patience:g} s; start the driver "
                "of the arm, or move the arm once so that the node publishes its joints"
            )
        return {name: monitor.q[name] for name in names}

    def find_roles(self) -> dict[tuple[str, str], str]:
        """Return the roles of all topics of the node that are known now."""
        return topic_roles(self.node, self.name, self.namespace)

    def _differs(self, known: dict[tuple[str, str], str]) -> bool:
        """Return whether the topics of the node have changed since `known` was found."""
        return self.find_roles() != known

    def _wait_for_topics(self) -> dict[tuple[str, str], str]:
        """Wait until the topics of the node are known, and return their roles.

        Raises:
            ServiceMissingError: If there is no node with this name.
            NoAnswerError: If the node reads no targets.
        """
        deadline = time.monotonic() + self.patience
        found: dict[tuple[str, str], str] = {}
        while time.monotonic() < deadline:
            is_new = partial(self._differs, found)
            is_settled = not wait_until(is_new, time.monotonic() + DISCOVERY_TIME)
            if is_settled and {TARGET_ROLE, TIP_ROLE} <= set(found.values()):
                return found
            found = self.find_roles()
        if TARGET_ROLE in found.values():
            return found
        nodes = sorted(full_name(space, name) for name, space in
                       self.node.get_node_names_and_namespaces())  # fmt: skip
        if self.full_name in nodes:
            raise NoAnswerError(
                f"{self.full_name} reads no targets within {self.patience:g} s; if it is still "
                "starting, give it more time by --patience"
            )
        others = listing(each for each in nodes if CLIENT_NAME not in each)
        raise ServiceMissingError(
            f"no node {self.full_name} that reads targets; waited {self.patience:g} s; nodes: "
            f"{others}; choose one by --node and --namespace"
        )
