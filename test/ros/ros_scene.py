# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Node with a WAM and a scene: SRDF, worlds and scene messages."""

import numpy as np
from geometry_msgs.msg import Pose
from moveit_msgs.msg import AttachedCollisionObject, CollisionObject, PlanningScene
from moveit_msgs.srv import ApplyPlanningScene, GetPlanningScene, GetStateValidity
from ros_wam import WAM
from shape_msgs.msg import SolidPrimitive

import dls_ik
from dls_ik.model.rotations import transform
from dls_ik.ros.frames import pose_from_matrix

PAIRS = dls_ik.PlanningScene(WAM).pairs
SRDF = "\n".join([
    '<robot name="wam7">',
    '<group name="arm"><chain base_link="wam_base" tip_link="wam_tip"/></group>',
    '<group name="forearm"><chain base_link="wam_base" tip_link="wam_link5"/></group>',
    '<group name="wrist"><chain base_link="wam_link5" tip_link="wam_tip"/></group>',
    '<group name="nothing"><link name="wam_base"/></group>',
    *(f'<disable_collisions link1="{a}" link2="{b}" reason="{why}"/>'
      for (a, b), why in PAIRS.items()),
    "</robot>",
])  # fmt: skip


def box(name, center, size=(0.1, 0.1, 0.1), frame="", **fields):
    """Return a message that adds a box."""
    pose = pose_from_matrix(transform(translation=np.asarray(center, float)))
    shape = SolidPrimitive(type=SolidPrimitive.BOX, dimensions=list(map(float, size)))
    added = CollisionObject(id=name, pose=pose, primitives=[shape], **fields)
    added.primitive_poses = [Pose()]
    added.header.frame_id = frame
    return added


def removed(name):
    return CollisionObject(id=name, operation=CollisionObject.REMOVE)


def carried(link, held, *touch_links):
    return AttachedCollisionObject(link_name=link, object=held, touch_links=list(touch_links))


def world(*objects, is_diff=True):
    """Return a message of a scene with objects."""
    scene = PlanningScene(is_diff=is_diff)
    scene.robot_state.is_diff = is_diff
    scene.world.collision_objects = list(objects)
    return scene


def apply(client, scene):
    """Apply a scene, and return whether it was accepted."""
    request = ApplyPlanningScene.Request(scene=scene)
    return client.call(ApplyPlanningScene, "apply_planning_scene", request).success


def scene_of(client, components=0):
    request = GetPlanningScene.Request()
    request.components.components = components
    return client.call(GetPlanningScene, "get_planning_scene", request).scene


def objects_of(client):
    return {each.id for each in scene_of(client).world.collision_objects}


def validity(client, q, group="", names=WAM.joint_names, **fields):
    request = GetStateValidity.Request(group_name=group, **fields)
    request.robot_state.is_diff = True
    request.robot_state.joint_state.name = list(names)
    request.robot_state.joint_state.position = list(map(float, q))
    return client.call(GetStateValidity, "check_state_validity", request)
