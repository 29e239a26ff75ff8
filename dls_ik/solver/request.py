"""Which of the solutions a call asks for: the solver's options, and what the call says instead."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.search import DEXTROUS, FIRST, NEAREST
from dls_ik.core.types import Array
from dls_ik.errors import OptionError
from dls_ik.model.robot import RobotModel
from dls_ik.solver.options import SolverOptions
from dls_ik.solver.values import checked_value
from dls_ik.text import listing

KINDS = {"speed": FIRST, "distance": NEAREST, "manipulability": DEXTROUS}
_FIELDS = SolverOptions.__dataclass_fields__


class Request(NamedTuple):
    """Which solution is wanted, and what counts as one."""

    kind: int  # of core/search.py
    compared: int  # attempts
    change: Array  # (n,) by which an answer may differ from the seed [rad or m]
    approximate: bool  # whether what is found is an answer in any case
    narrows: bool  # whether some change is bounded

    def check_seed(self, seed: Any) -> None:
        """Refuse to bound the distance from a seed that is None.

        Raises:
            OptionError: as said.
        """
        if seed is None and self.narrows:
            raise OptionError("max_joint_change is the distance from a seed, and none is given")

    def leaves_nothing(self, robot: RobotModel, seeds: Array) -> NDArray[np.bool_]:
        """(b,) whether no configuration inside the limits is near enough to each seed (b, n)."""
        if not self.narrows:
            return np.zeros(len(seeds), np.bool_)
        apart = (seeds - self.change > robot.upper) | (seeds + self.change < robot.lower)
        return np.logical_and(apart.any(axis=1), np.isfinite(seeds).all(axis=1))


def build_request(robot: RobotModel, options: SolverOptions, **given: Any) -> Request:
    """Return what is wanted; those of `given` that are None are left to the options.

    Raises:
        OptionError: a value that is not valid.
    """
    chosen = {
        name: getattr(options, name) if value is None else checked_value(_FIELDS[name], value)
        for name, value in given.items()
    }
    change = np.array(chosen["max_joint_change"], np.float64)
    if change.ndim == 1 and len(change) != robot.n:
        raise OptionError(
            f"max_joint_change is one number, or one for each of the {robot.n} joints "
            f"({listing(robot.joint_names)}), not {len(change)}"
        )
    return Request(
        KINDS[chosen["solve_type"]],
        options.num_candidates,
        np.broadcast_to(change, (robot.n,)).copy(),
        bool(chosen["approximate"]),
        bool(np.isfinite(change).any()),
    )
