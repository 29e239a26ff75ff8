"""A marker in RViz to drag the target with."""

from dls_ik.ros.marker_target.build import build_marker
from dls_ik.ros.marker_target.marker import MarkerTarget

__all__ = ["MarkerTarget", "build_marker"]
