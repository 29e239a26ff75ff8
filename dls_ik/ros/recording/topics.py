# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Topics of a running node and their roles in a recording, found in the graph of ROS."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from rclpy.node import Node

TARGET_ROLE = "target"
STATE_ROLE = "state"
SCENE_ROLE = "scene"
DESCRIPTION_ROLE = "description"
OPTION_ROLE = "option"
COMMAND_ROLE = "command"
STATUS_ROLE = "status"
TIP_ROLE = "tip"

POSE_KIND = "geometry_msgs/msg/PoseStamped"
TWIST_KIND = "geometry_msgs/msg/TwistStamped"
PLAIN_TWIST_KIND = "geometry_msgs/msg/Twist"
POSES_KIND = "geometry_msgs/msg/PoseArray"
JOG_KIND = "control_msgs/msg/JointJog"
JOINTS_KIND = "sensor_msgs/msg/JointState"
TRAJECTORY_KIND = "trajectory_msgs/msg/JointTrajectory"
NUMBERS_KIND = "std_msgs/msg/Float64MultiArray"
TEXT_KIND = "std_msgs/msg/String"
SCENES_KIND = "moveit_msgs/msg/PlanningScene"
STATUSES_KIND = "moveit_msgs/msg/ServoStatus"
TARGET_KINDS = (POSE_KIND, TWIST_KIND, PLAIN_TWIST_KIND, POSES_KIND, JOG_KIND)

# Roles of the topics that a node reads and publishes, by type; other topics are not recorded.
READ_ROLES = {
    **dict.fromkeys(TARGET_KINDS, TARGET_ROLE),
    JOINTS_KIND: STATE_ROLE,
    SCENES_KIND: SCENE_ROLE,
    "moveit_msgs/msg/CollisionObject": SCENE_ROLE,
    "moveit_msgs/msg/AttachedCollisionObject": SCENE_ROLE,
    TEXT_KIND: DESCRIPTION_ROLE,
    "std_msgs/msg/Float64": OPTION_ROLE,
}
PUBLISHED_ROLES = {
    STATUSES_KIND: STATUS_ROLE,
    TRAJECTORY_KIND: COMMAND_ROLE,
    NUMBERS_KIND: COMMAND_ROLE,
    JOINTS_KIND: COMMAND_ROLE,
    POSE_KIND: TIP_ROLE,
}
# Topics that are not recorded: the node computes them from the joint states, for subscribers only.
MEASURED_TOPICS = ("current_pose", "current_twist")
POSTURE_TOPIC_NAME = "posture"  # preferred joint positions, in JointState messages
TARGET_JOINT_NAME = "target_joint"  # target joint positions, in JointState messages
JOINT_STATES_NAME = "joint_states"
INFO_TOPIC = "recording"  # topic below the full name of the node, with a RecordingInfo as JSON


def full_name(namespace: str, name: str) -> str:
    """Return the name of a node with its namespace, such as ``/left/dls_ik``."""
    return f"/{namespace.strip('/')}/{name}".replace("//", "/")


def topic_roles(node: Node, name: str, namespace: str) -> dict[tuple[str, str], str]:
    """Return the roles of the topics of a running node, by topic and type.

    Topics have the names after remapping. A topic that the node both reads and publishes has the
    role of the topic that is read.

    Args:
        node: Node of the client.
        name: Name of the running node.
        namespace: Namespace of the running node.
    """
    published = node.get_publisher_names_and_types_by_node
    read = node.get_subscriber_names_and_types_by_node
    found: dict[tuple[str, str], str] = {}
    for find, roles in ((published, PUBLISHED_ROLES), (read, READ_ROLES)):
        try:
            topics = find(name, "/" + namespace.strip("/"))
        except Exception:  # noqa: BLE001  the exception for an unknown node depends on the version
            return {}
        for topic, kinds in topics:
            last = topic.rpartition("/")[2]
            if last not in MEASURED_TOPICS:
                found |= {(topic, kind): roles[kind] for kind in kinds if kind in roles}
            named = {POSTURE_TOPIC_NAME: OPTION_ROLE, TARGET_JOINT_NAME: TARGET_ROLE}.get(last)
            if named is not None:
                found |= dict.fromkeys(((topic, kind) for kind in kinds), named)
    return found


def joint_topic(roles: Mapping[str, str]) -> str:
    """Return the topic of the measured joint positions, or else that of commanded positions.

    Args:
        roles: Role of each topic of type JointState. Without a topic of measured or commanded
            positions, ``joint_states`` is returned.
    """
    measured = [topic for topic, role in roles.items() if role == STATE_ROLE]
    commands = [topic for topic, role in roles.items() if role == COMMAND_ROLE]
    usual = [topic for topic in measured if topic.endswith(f"/{JOINT_STATES_NAME}")]
    return (usual + measured + commands + [JOINT_STATES_NAME])[0]


class RecordingInfo(NamedTuple):
    """Node that was recorded."""

    node: str = ""  # name with namespace; empty: not known
    roles: Mapping[str, str] = {}  # role by topic
    joints: tuple[str, ...] = ()  # (n,) names in messages, from base to tip; empty: not known
    base: str = ""  # base link; empty: not known
    tip: str = ""

    @property
    def namespace(self) -> str:
        """Namespace of the node, without a slash at its end."""
        return self.node.rpartition("/")[0]

    def to_text(self) -> str:
        """Return the information as JSON."""
        return json.dumps(self._asdict())

    @classmethod
    def from_text(cls, text: str) -> "RecordingInfo":
        """Return the information that a JSON text contains; other entries are ignored.

        Raises:
            ValueError: If the text is not an object of JSON.
        """
        given = json.loads(text)
        if not isinstance(given, dict):
            raise ValueError("expected an object")
        known: dict[str, Any] = {key: given[key] for key in cls._fields if key in given}
        known["joints"] = tuple(known.get("joints", ()))
        return cls(**known)
