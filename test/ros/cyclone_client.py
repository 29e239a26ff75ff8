# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A program that talks to ik_node over CycloneDDS, without ROS: ``cyclone_client.py ORDER``.

ORDER is JSON: ``send`` names a kind of message, ``rows`` are its numbers. With ``near`` or
``away``, a place and a distance [m], the program sends until the tip is there and the status has
the message ``status``. It then prints the last message of each topic as JSON, and waits for the
end of its input.
"""

import json
import math
import os
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Any

os.environ["CYCLONEDDS_URI"] = """
<CycloneDDS><Domain>
  <General>
    <Interfaces><NetworkInterface name="lo" multicast="false"/></Interfaces>
    <AllowMulticast>false</AllowMulticast>
  </General>
  <Discovery>
    <ParticipantIndex>auto</ParticipantIndex>
    <MaxAutoParticipantIndex>60</MaxAutoParticipantIndex>
    <Peers><Peer address="127.0.0.1"/></Peers>
  </Discovery>
</Domain></CycloneDDS>
"""

from cyclonedds.domain import DomainParticipant
from cyclonedds.idl import IdlStruct
from cyclonedds.idl.types import array, float32, float64, int8, int32, sequence, uint8, uint32
from cyclonedds.pub import DataWriter
from cyclonedds.qos import Policy, Qos
from cyclonedds.sub import DataReader
from cyclonedds.topic import Topic
from cyclonedds.util import duration

PERIOD = 0.05  # [s] period of messages
RELIABLE = Qos(Policy.Reliability.Reliable(duration(seconds=1)), Policy.History.KeepLast(10))
BEST_EFFORT = Qos(Policy.Reliability.BestEffort, Policy.History.KeepLast(10))


@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32 = 0
    nanosec: uint32 = 0


@dataclass
class Duration(IdlStruct, typename="builtin_interfaces::msg::dds_::Duration_"):
    sec: int32 = 0
    nanosec: uint32 = 0


@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@dataclass
class Point(IdlStruct, typename="geometry_msgs::msg::dds_::Point_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@dataclass
class Point32(IdlStruct, typename="geometry_msgs::msg::dds_::Point32_"):
    x: float32 = 0.0
    y: float32 = 0.0
    z: float32 = 0.0


@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@dataclass
class Pose(IdlStruct, typename="geometry_msgs::msg::dds_::Pose_"):
    position: Point = field(default_factory=Point)
    orientation: Quaternion = field(default_factory=Quaternion)


@dataclass
class PoseStamped(IdlStruct, typename="geometry_msgs::msg::dds_::PoseStamped_"):
    header: Header = field(default_factory=Header)
    pose: Pose = field(default_factory=Pose)


@dataclass
class PoseArray(IdlStruct, typename="geometry_msgs::msg::dds_::PoseArray_"):
    header: Header = field(default_factory=Header)
    poses: sequence[Pose] = field(default_factory=list)


@dataclass
class Twist(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    linear: Vector3 = field(default_factory=Vector3)
    angular: Vector3 = field(default_factory=Vector3)


@dataclass
class TwistStamped(IdlStruct, typename="geometry_msgs::msg::dds_::TwistStamped_"):
    header: Header = field(default_factory=Header)
    twist: Twist = field(default_factory=Twist)


@dataclass
class JointState(IdlStruct, typename="sensor_msgs::msg::dds_::JointState_"):
    header: Header = field(default_factory=Header)
    name: sequence[str] = field(default_factory=list)
    position: sequence[float64] = field(default_factory=list)
    velocity: sequence[float64] = field(default_factory=list)
    effort: sequence[float64] = field(default_factory=list)


@dataclass
class JointTrajectoryPoint(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectoryPoint_"):
    positions: sequence[float64] = field(default_factory=list)
    velocities: sequence[float64] = field(default_factory=list)
    accelerations: sequence[float64] = field(default_factory=list)
    effort: sequence[float64] = field(default_factory=list)
    time_from_start: Duration = field(default_factory=Duration)


@dataclass
class JointTrajectory(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectory_"):
    header: Header = field(default_factory=Header)
    joint_names: sequence[str] = field(default_factory=list)
    points: sequence[JointTrajectoryPoint] = field(default_factory=list)


@dataclass
class ServoStatus(IdlStruct, typename="moveit_msgs::msg::dds_::ServoStatus_"):
    code: int8 = 0
    message: str = ""


@dataclass
class ObjectType(IdlStruct, typename="object_recognition_msgs::msg::dds_::ObjectType_"):
    key: str = ""
    db: str = ""


@dataclass
class Polygon(IdlStruct, typename="geometry_msgs::msg::dds_::Polygon_"):
    points: sequence[Point32] = field(default_factory=list)


@dataclass
class SolidPrimitive(IdlStruct, typename="shape_msgs::msg::dds_::SolidPrimitive_"):
    type: uint8 = 1  # BOX
    dimensions: sequence[float64, 3] = field(default_factory=list)
    polygon: Polygon = field(default_factory=Polygon)


@dataclass
class MeshTriangle(IdlStruct, typename="shape_msgs::msg::dds_::MeshTriangle_"):
    vertex_indices: array[uint32, 3] = field(default_factory=lambda: [0, 0, 0])


@dataclass
class Mesh(IdlStruct, typename="shape_msgs::msg::dds_::Mesh_"):
    triangles: sequence[MeshTriangle] = field(default_factory=list)
    vertices: sequence[Point] = field(default_factory=list)


@dataclass
class Plane(IdlStruct, typename="shape_msgs::msg::dds_::Plane_"):
    coef: array[float64, 4] = field(default_factory=lambda: [0.0, 0.0, 0.0, 0.0])


@dataclass
class CollisionObject(IdlStruct, typename="moveit_msgs::msg::dds_::CollisionObject_"):
    header: Header = field(default_factory=Header)
    pose: Pose = field(default_factory=Pose)
    id: str = ""
    type: ObjectType = field(default_factory=ObjectType)
    primitives: sequence[SolidPrimitive] = field(default_factory=list)
    primitive_poses: sequence[Pose] = field(default_factory=list)
    meshes: sequence[Mesh] = field(default_factory=list)
    mesh_poses: sequence[Pose] = field(default_factory=list)
    planes: sequence[Plane] = field(default_factory=list)
    plane_poses: sequence[Pose] = field(default_factory=list)
    subframe_names: sequence[str] = field(default_factory=list)
    subframe_poses: sequence[Pose] = field(default_factory=list)
    operation: uint8 = 0  # ADD


def pose(xyz_xyzw: list[float]) -> Pose:
    return Pose(Point(*xyz_xyzw[:3]), Quaternion(*xyz_xyzw[3:]))


# The topic, type and message of each kind of order.
SENT = {
    "pose": ("target_pose", PoseStamped, lambda rows: PoseStamped(pose=pose(rows[0]))),
    "poses": ("target_trajectory", PoseArray, lambda rows: PoseArray(poses=list(map(pose, rows)))),
    "twist": (
        "target_twist",
        TwistStamped,
        lambda rows: TwistStamped(twist=Twist(Vector3(*rows[0][:3]), Vector3(*rows[0][3:]))),
    ),
    "box": (
        "collision_object",
        CollisionObject,
        lambda rows: CollisionObject(
            id="cyclone_box",
            pose=pose(rows[0]),
            primitives=[SolidPrimitive(dimensions=rows[1])],
            primitive_poses=[Pose()],
        ),
    ),
}
HEARD = {
    "joint_states": JointState,
    "joint_trajectory_controller/joint_trajectory": JointTrajectory,
    "dls_ik/status": ServoStatus,
    "dls_ik/tip_pose": PoseStamped,
}


def main() -> None:
    order = json.loads(sys.argv[1])
    participant = DomainParticipant(int(os.environ["ROS_DOMAIN_ID"]))
    readers = {
        name: DataReader(participant, Topic(participant, f"rt/{name}", kind), qos=BEST_EFFORT)
        for name, kind in HEARD.items()
    }
    name, kind, make = SENT[order["send"]]
    writer = DataWriter(participant, Topic(participant, f"rt/{name}", kind), qos=RELIABLE)
    message, heard = make(order["rows"]), dict[str, Any]()
    is_once = order["send"] in ("poses", "box")
    deadline = time.monotonic() + order["limit"]
    while not writer.get_matched_subscriptions():
        check_time(deadline, f"no subscription to {name} within {order['limit']} s")
    if is_once:
        writer.write(message)
    rounds, before = 0, dict[str, Any]()
    # Each topic is heard again after the end was reached; until the arm rests, if it has a goal.
    while rounds < 2 or ("near" in order and positions(before) != positions(heard)):
        rounds, before = rounds + 1, dict(heard)
        heard.clear()
        while not is_over(order, heard):
            if not is_once:
                writer.write(message)
            check_time(deadline, f"not there within {order['limit']} s; heard: {heard}")
            for topic, reader in readers.items():
                if samples := reader.take(100):
                    heard[topic] = asdict(samples[-1])
    print(json.dumps(heard), flush=True)
    sys.stdin.read()  # the writer is there until what it sent has been seen


def positions(heard: dict[str, Any]) -> list[Any]:
    """Return the joint positions of states and trajectory, which change until the arm rests."""
    if set(heard) != set(HEARD):
        return []
    plan = heard["joint_trajectory_controller/joint_trajectory"]
    return [heard["joint_states"]["position"], plan["points"][0]["positions"]]


def check_time(deadline: float, message: str) -> None:
    """Wait for a period; end the program with a message after the deadline [s]."""
    if time.monotonic() > deadline:
        sys.exit(message)
    time.sleep(PERIOD)


def is_over(order: dict[str, Any], heard: dict[str, Any]) -> bool:
    """Return whether each topic was heard, and tip and status are as the order says."""
    if not {"near", "away"} & set(order):
        return True
    if set(heard) != set(HEARD):
        return False
    place, bound = order.get("near") or order["away"]
    distance = math.dist(heard["dls_ik/tip_pose"]["pose"]["position"].values(), place)
    is_there = distance < bound if "near" in order else distance > bound
    return is_there and heard["dls_ik/status"]["message"] == order["status"]


if __name__ == "__main__":
    main()
