"""Structs packed into two arrays come out as they went in."""

import numpy as np
import pytest
from arms import random_arm

from dls_ik import IkSolver
from dls_ik.core.fast.packed import pack, unpack
from dls_ik.core.jit import kernel
from dls_ik.core.types import ChainTable, Method, SerialChain, Starts, StopCriteria
from dls_ik.model.chain import build_arm
from dls_ik.solver.problem import no_table, random_starts, start_table


@kernel
def unpacked(numbers, integers):
    return unpack(numbers, integers)


ARMS = {
    "1": ["revolute"],
    "6 and two followers": [*["revolute"] * 3, "mimic", "prismatic", "mimic", "revolute"],
    "7": ["continuous", *["revolute"] * 6],
    "12": ["revolute", "prismatic"] * 6,
}


def structs(kinds, with_table):
    """Structs in which no two numbers are the same."""
    rng = np.random.default_rng(1)
    robot = random_arm(rng, *kinds)
    options = IkSolver(robot, max_iterations=77, stall_count=5).options
    goal = options.goal()._replace(position_tolerance=0.1, rotation_tolerance=0.2)
    method = Method(3, 4, 5, True, 0.6, 0.7, 0.8, 0.9, 1.1, 1.2, 1.3, 1.4)
    starts = random_starts(robot, rng.uniform(1.0, 2.0, robot.n), True)
    table = start_table(robot, 0.5) if with_table else no_table(robot.n)
    return build_arm(robot.chain), table, method, goal, starts


@pytest.mark.parametrize("with_table", [False, True], ids=["no table", "table"])
@pytest.mark.parametrize("name", ARMS)
def test_come_out_as_they_went_in(name, with_table):
    given = structs(ARMS[name], with_table)
    back = unpacked(*pack(*given))
    for kind, ours, theirs in zip(
        (SerialChain, ChainTable, Method, StopCriteria, Starts), given, back, strict=True
    ):
        for field in kind._fields:
            before, after = getattr(ours, field), getattr(theirs, field)
            np.testing.assert_array_equal(after, before, f"{kind.__name__}.{field}")
            assert np.shape(after) == np.shape(before), f"{kind.__name__}.{field}"


def test_arrays_hold_nothing_else():
    given = structs(ARMS["7"], True)
    numbers, integers = pack(*given)
    arm, table, _, _, starts = given
    arrays = [x for each in (arm, table, starts) for x in each if isinstance(x, np.ndarray)]
    whole = sum(x.size for x in arrays if x.dtype == np.int64)
    assert numbers.size == 13 + sum(x.size for x in arrays) - whole
    assert integers.size == 13 + whole
    assert (numbers.dtype, integers.dtype) == (np.float64, np.int64)
