"""One step of every method beside the oracle's: all arms, inside, in margins, at limits, beyond."""

import numpy as np
import pytest
from cases import ARMS, CASES, NAMES, PLACES, draws, label, slack, suits
from oracle_ik import Oracle, parts_of
from ours import options_of, our_quick_step, our_step


def assert_same(name, options, robot, draw, following=False):
    q, J, e, T_d = draw
    oracle = Oracle(name, robot, options_of(name, **options))
    expected = oracle.step(q, J, e, following, T_d)
    if following:
        ours = our_quick_step(name, robot, q, J, e, following=True, **options)
    else:
        ours = our_step(name, robot, q, J, e, **options)
    atol = slack(name, options, oracle, expected)
    np.testing.assert_allclose(ours, expected, rtol=0.0, atol=atol)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("case", CASES, ids=label)
def test_is_the_papers_step(case, place):
    name, options = case
    weight = options.get("rotation_weight", 0.5)
    for i, (arm, robot) in enumerate(ARMS.items()):
        if not suits(name, options, robot):
            continue
        every = draws(arm, place, weight=weight)
        is_listed = name in NAMES and not options
        for draw in every if is_listed else every[i % 3 : i % 3 + 1]:
            assert_same(name, options, robot, draw)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "name", [n for n in NAMES if parts_of(n).strategy in ("none", "jc", "ctp", "active")]
)
def test_is_the_step_of_following(name, place):  # fmt: skip
    for arm in ("wam", "6 and a follower", "9"):
        robot = ARMS[arm]
        for draw in draws(arm, place, seed=6):
            assert_same(name, {}, robot, draw, following=True)
