"""Commands on their way to drivers."""

from dls_ik.ros.outputs.outputs import Outputs

__all__ = ["Outputs"]
