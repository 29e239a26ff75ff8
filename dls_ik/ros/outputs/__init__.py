"""Commands on their way to drivers: one file for each type of message."""

from dls_ik.ros.outputs.outputs import Outputs

__all__ = ["Outputs"]
