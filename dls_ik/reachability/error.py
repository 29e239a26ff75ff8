"""What is wrong with a map that was asked for."""

from dls_ik.exceptions import DlsIkError


class ReachabilityError(DlsIkError):
    """A map that cannot be computed, stored, resumed or read as asked."""
