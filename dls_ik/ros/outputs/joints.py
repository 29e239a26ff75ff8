"""The joints of a chain as the outputs order and name them."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.exceptions import OptionError
from dls_ik.model.names import listing


class OutputJoints(NamedTuple):
    """Which joint of a chain stands where in the outputs."""

    order: NDArray[np.intp]  # (n,) index in the chain of each joint of the outputs
    names: tuple[str, ...]  # (n,) in the outputs, as drivers call them
    robot_names: dict[str, str]  # by the name that drivers use, where it is another one


def arrange(
    chain: Sequence[str], joints: Sequence[str] = (), names: Sequence[str] = ()
) -> OutputJoints:
    """Order and name the joints of a chain.

    Controllers refuse a message that lacks a joint of theirs, and a tip that is reached without
    one of the chain's joints is not reached; so the outputs have all of them and no others.

    Args:
        chain: (n,) names of the joints from base to tip.
        joints: the same names in the order of the outputs; empty: as they are.
        names: (n,) what drivers call them, in that order; empty: the same.

    Raises:
        OptionError: other names, or too few or too many of them; with those that are valid.
    """
    joints = joints or chain
    if sorted(joints) != sorted(chain):
        raise OptionError(
            f"output_joints is {', '.join(joints)}: not each joint of the chain once; joints: "
            f"{listing(chain)}"
        )
    if names and len(names) != len(joints):
        raise OptionError(
            f"output_names has {len(names)} names ({', '.join(names)}) for {len(joints)} joints "
            f"({', '.join(joints)})"
        )
    called = tuple(names or joints)
    renamed = {new: old for new, old in zip(called, joints, strict=True) if new != old}
    order = np.array([list(chain).index(joint) for joint in joints], dtype=np.intp)
    return OutputJoints(order, called, renamed)
