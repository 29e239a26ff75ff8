"""The check that every joint value from outside passes."""

import numpy as np
from numpy.typing import ArrayLike

from dls_ik.core.types import Array
from dls_ik.exceptions import JointValueError
from dls_ik.model.names import listing


def checked_values(q: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    """Joint values as contiguous, writable float64: (n,), or a batch (b, n).

    Raises:
        JointValueError: not numbers, the wrong length, or not finite; the message says what was
            given, and names the joint.
    """
    try:
        given = np.asarray(q)
        if given.dtype.kind in "cmM":  # NumPy would leave out the imaginary part, or count seconds
            raise TypeError(f"{given.dtype} is no real number")
        values = np.require(given, np.float64, ["C", "W", "A"])
    except (TypeError, ValueError, OverflowError) as error:
        raise JointValueError(f"joint values must be numbers: {error}") from error
    if values.ndim not in (1, 2) or values.shape[-1] != len(joint_names):
        raise JointValueError(
            f"expected {len(joint_names)} joint values ({listing(joint_names)}), "
            f"given the shape {values.shape}"
        )
    if not np.isfinite(values).all():
        at = tuple(np.argwhere(~np.isfinite(values))[0])
        raise JointValueError(
            f"joint {joint_names[at[-1]]!r} has the value {values[at]}, which is not finite"
        )
    return values


def checked_configuration(q: ArrayLike, joint_names: tuple[str, ...]) -> Array:
    """One configuration (n,), as :func:`checked_values` has it.

    Raises:
        JointValueError: as :func:`checked_values`; a batch.
    """
    values = checked_values(q, joint_names)
    if values.ndim != 1:
        raise JointValueError(
            f"expected one configuration of {len(joint_names)} joint values, "
            f"given the shape {values.shape}"
        )
    return values
