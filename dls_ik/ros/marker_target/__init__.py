"""A marker in RViz that is dragged to where the arm is to go."""

from dls_ik.ros.marker_target.build import marker_target
from dls_ik.ros.marker_target.marker_target import MarkerTarget

__all__ = ["MarkerTarget", "marker_target"]
