"""What can be dragged: an arrow and a ring for each axis of the tip, and a ball."""

from typing import Any

import numpy as np
from std_msgs.msg import ColorRGBA
from visualization_msgs.msg import InteractiveMarker, InteractiveMarkerControl, Marker

from dls_ik.ros.conversions import quaternion_from_rotation
from dls_ik.ros.watch.tip import Tip

SIZE, BALL = 0.25, 0.06  # shares of the arm's length
GLASS = ColorRGBA(r=0.9, g=0.9, b=0.9, a=0.4)  # what is inside can be seen


def handles(name: str, tip: Tip, pose: Any) -> Any:
    """An ``InteractiveMarker`` for a tip, at a pose in the root frame.

    It has no stamp, so that the latest transform to its frame is used.
    """
    length = tip.length()
    marker = InteractiveMarker(name=name, pose=pose, scale=SIZE * length)
    marker.header.frame_id = tip.frame
    marker.description = f"target of {tip.robot.tip}"
    marker.controls = [_ball(BALL * length)]
    for k, axis in enumerate("xyz"):
        marker.controls.append(_along(k, f"move {axis}", InteractiveMarkerControl.MOVE_AXIS))
        marker.controls.append(_along(k, f"turn {axis}", InteractiveMarkerControl.ROTATE_AXIS))
    return marker


def _along(k: int, name: str, mode: int) -> Any:
    """The handle for one axis of the marker; RViz draws it, along its own x axis."""
    control = InteractiveMarkerControl(name=name, interaction_mode=mode)
    R_marker_control = np.eye(3)[:, [k, (k + 1) % 3, (k + 2) % 3]]
    o = control.orientation
    o.x, o.y, o.z, o.w = quaternion_from_rotation(R_marker_control)
    return control


def _ball(size: float) -> Any:
    """A ball that follows the mouse; with Ctrl it turns."""
    ball = Marker(type=Marker.SPHERE, color=GLASS)
    ball.scale.x = ball.scale.y = ball.scale.z = size
    ball.pose.orientation.w = 1.0
    control = InteractiveMarkerControl(name="move", always_visible=True, markers=[ball])
    control.orientation.w = 1.0
    control.interaction_mode = InteractiveMarkerControl.MOVE_ROTATE_3D
    return control
