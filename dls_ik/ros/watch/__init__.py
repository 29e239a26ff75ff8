"""What is published for those who watch: status, diagnostics, the tip, markers."""

from dls_ik.ros.watch.watch import Watch

__all__ = ["Watch"]
