# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Node whose stream avoids the objects of a scene, and exact distances of its commands by coal."""

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.qos import QoSProfile
from ros_client import Client, NodeProcess
from ros_scene import SRDF, apply, world
from ros_streamer import ALONE, Streamer, positions
from ros_wam import WAM
from ros_watched import moveit
from std_msgs.msg import String
from std_srvs.srv import Trigger
from visualization_msgs.msg import MarkerArray

from dls_ik import PlanningScene
from dls_ik.model.rotations import transform
from dls_ik.ros.robot_source import DESCRIPTION_QOS as LATCHED

START = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])
KEPT = 0.02  # [m]
ARGUMENTS = {
    "robot": "wam",
    "acceleration": [6.0],
    "initial_positions": START.tolist(),
    "stream_avoid_collisions": "required",
    "min_distance": KEPT,
}
NEAR, HALT = 4, 5  # codes of ServoStatus


class Guarded:
    """Node with an SRDF in a namespace, and a streaming client that keeps all messages."""

    def __init__(self, namespace, **parameters):
        given = {**ARGUMENTS, **parameters}
        words = [word for name, value in given.items() for word in ("-p", f"{name}:={value}")]
        self.client = Client(namespace)
        srdf = self.client.node.create_publisher(String, "robot_description_semantic", LATCHED)
        srdf.publish(String(data=SRDF))
        self.process = NodeProcess("-r", f"__ns:={namespace}", *words)
        self.statuses = self.client.listen(
            moveit.ServoStatus, "dls_ik/status", QoSProfile(depth=1000)
        )
        self.markers = self.client.listen(MarkerArray, "dls_ik/markers")
        self.diagnostics = self.client.listen(DiagnosticArray, "/diagnostics")

    def __enter__(self):
        self.process.wait_for_line("the stream keeps")
        self.streamer = Streamer(self.client)
        return self

    def __exit__(self, *_):
        self.client.__exit__()
        self.process.__exit__()

    @property
    def q(self):
        return positions(self.streamer.states[-1])

    def fresh(self, *objects):
        """Start at START, in a world with these objects only."""
        assert apply(self.client, world(is_diff=False))
        self.client.call(Trigger, "dls_ik/reset", Trigger.Request())
        self.streamer.go(WAM.fk(START))
        if objects:
            assert apply(self.client, world(*objects))
        self.client.spin_for(ALONE)
        for inbox in (self.streamer.states, self.statuses, self.markers):
            inbox.clear()

    def least(self, *objects, states=None):
        """Return the minimum distance of all commands to objects, and between links [m]."""
        return self.nearest(*objects, states=states).distance

    def nearest(self, *objects, states=None):
        """Return the pair with the minimum distance."""
        scene = PlanningScene(WAM, SRDF)
        scene.load(world(*objects))
        q = np.array([positions(s) for s in (states or self.streamer.states)])
        away = q[np.abs(np.diff(q, axis=0, prepend=q[:1] + 1.0)).max(axis=1) > 0.0]
        return min((scene.distance(each) for each in away), key=lambda pair: pair.distance)

    def said(self, *words):
        return any(all(word in s.message for word in words) for s in self.statuses)

    def wait_for_code(self, code):
        try:
            self.client.spin_until(lambda: code in self.codes(), what=f"code {code}")
        except AssertionError as error:
            said = list(dict.fromkeys((s.code, s.message) for s in self.statuses))[-20:]
            raise AssertionError(f"{error}; {said}, {self.figures()}") from None

    def codes(self):
        return {s.code for s in self.statuses}

    def figures(self):
        """Return the values of the latest diagnostics of this node."""
        name = f"{self.client.node.get_namespace()}/dls_ik: stream"
        found = [s for m in self.diagnostics for s in m.status if s.name == name]
        return {v.key: v.value for v in found[-1].values} if found else {}


def shifted(x=0.0, y=0.0, z=0.0):
    """Return the tip pose at START, moved along the axes of the base [m]."""
    return transform(translation=np.array([x, y, z])) @ WAM.fk(START)
