"""Demonstration of the node: ``python -m dls_ik.ros.demo``."""
