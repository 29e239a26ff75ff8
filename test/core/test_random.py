"""The random generator: SplitMix64, reproducible, uniform."""

import numpy as np
import pytest

from dls_ik.core.search import uniform

WORD = 2**64


def splitmix64(state):
    """The next number and state, in Python's unbounded integers."""
    state = (state + 0x9E3779B97F4A7C15) % WORD
    z = (state ^ (state >> 30)) * 0xBF58476D1CE4E5B9 % WORD
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
    return ((z ^ (z >> 31)) >> 11) / 2**53, state


def drawn(seed, count):
    state = np.array([seed], np.uint64)
    return np.array([uniform(state) for _ in range(count)])


@pytest.mark.parametrize("seed", [0, 1, 42, 2**63 - 1, 2**64 - 1])
def test_is_splitmix64(seed):
    state = np.array([seed], np.uint64)
    slow = seed
    for _ in range(100):
        number, slow = splitmix64(slow)
        assert uniform(state) == number
        assert int(state[0]) == slow


def test_same_seed_same_numbers():
    np.testing.assert_array_equal(drawn(7, 100), drawn(7, 100))
    assert not np.isin(drawn(7, 100), drawn(8, 100)).any()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_uniform_in_zero_to_one(seed):
    count, bins = 20_000, 20
    numbers = drawn(seed, count)
    assert (numbers >= 0.0).all()
    assert (numbers < 1.0).all()
    hits = np.histogram(numbers, bins, (0.0, 1.0))[0]
    chi2 = np.sum((hits - count / bins) ** 2) / (count / bins)
    assert chi2 < 43.8  # the 99.9th percentile for 19 degrees of freedom
    neighbours = np.corrcoef(numbers[:-1], numbers[1:])[0, 1]
    assert abs(neighbours) < 4.0 / np.sqrt(count)
