# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Client of an interactive marker that behaves like RViz."""

import math
import time

import numpy as np
from visualization_msgs.msg import InteractiveMarkerFeedback as Feedback
from visualization_msgs.msg import InteractiveMarkerUpdate
from visualization_msgs.srv import GetInteractiveMarkers

from dls_ik.ros.frames import matrix_from_pose, pose_from_matrix

FRAME = 1.0 / 30.0  # [s] frame time of RViz
SERVER = "dls_ik/target"
OLD = (1, 0)  # [s, ns] RViz stamps feedback as old as the transforms to the marker's frame


class Rviz:
    """Client that applies the updates of the marker, and drags it."""

    def __init__(self, client):
        self.client = client
        self._updates = client.listen(InteractiveMarkerUpdate, f"{SERVER}/update", 100)
        self._feedback = client.publisher(Feedback, f"{SERVER}/feedback", 100)
        self._marker = None
        self._sequence = 0
        client.spin_until(self._is_there, what="a marker")

    def _is_there(self):
        request = GetInteractiveMarkers.Request()
        answer = self.client.call(
            GetInteractiveMarkers, f"{SERVER}/get_interactive_markers", request
        )
        self._sequence = answer.sequence_number
        self._marker = answer.markers[0] if answer.markers else None
        return len(answer.markers) == 1

    @property
    def marker(self):
        """Current marker; RViz would restart after updates with a gap in their numbers."""
        for update in self._updates:
            if update.seq_num <= self._sequence:
                continue
            assert update.seq_num == self._sequence + 1
            self._sequence = update.seq_num
            for marker in update.markers:
                self._marker = marker
            for new in update.poses:
                assert new.name == self._marker.name
                if math.isfinite(new.pose.position.x):  # other poses are ignored
                    self._marker.header, self._marker.pose = new.header, new.pose
            assert self._marker.name not in update.erases
        del self._updates[:]
        return self._marker

    @property
    def T(self):
        return matrix_from_pose(self.marker.pose)

    def shows(self, T, tolerance=1e-4):
        self.client.spin_until(lambda: np.abs(self.T - T).max() < tolerance, what="the marker")

    def gets_heard(self):
        """Move the marker slightly until it reacts; the library is deaf in its first second."""
        T = self.T + 0.01 * np.eye(4, k=3)

        def is_heard():
            self._say(Feedback.POSE_UPDATE, T)
            return np.abs(self.T - T).max() < 1e-4

        self.client.spin_until(is_heard, what="the marker to move")

    def press(self):
        self._say(Feedback.POSE_UPDATE, self.T)
        self._say(Feedback.MOUSE_DOWN, self.T)

    def drag(self, T, frames=15):
        """Drag the pressed marker along a straight line to a pose, without rotation."""
        begin, T_from = time.monotonic(), self.T
        for k in range(1, frames + 1):
            T_k = T.copy()
            T_k[:3, 3] = T_from[:3, 3] + (T[:3, 3] - T_from[:3, 3]) * (k / frames)
            self._say(Feedback.POSE_UPDATE, T_k)
            self.client.spin_for(max(0.0, begin + k * FRAME - time.monotonic()))

    def release(self, T):
        self._say(Feedback.POSE_UPDATE, T)
        self._say(Feedback.MOUSE_UP, T)

    def choose(self, title):
        [entry] = [entry for entry in self.marker.menu_entries if entry.title.endswith(title)]
        self._say(Feedback.MENU_SELECT, self.T, entry.id)

    def _say(self, event, T, entry=0):
        pose = pose_from_matrix(np.asarray(T, np.float32))
        message = Feedback(event_type=event, pose=pose, menu_entry_id=entry, client_id="rviz")
        message.marker_name = self._marker.name
        message.header.frame_id = self._marker.header.frame_id
        message.header.stamp.sec, message.header.stamp.nanosec = OLD
        self._feedback.publish(message)
