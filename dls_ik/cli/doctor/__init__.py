"""``dls-ik doctor``: what is installed, what works, and what to do about the rest."""

from dls_ik.cli.doctor.command import doctor

__all__ = ["doctor"]
