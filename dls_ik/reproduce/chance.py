"""Whether two measured figures differ by more than chance."""

from math import sqrt

SIGMAS = 3.0  # of the difference; of a hundred figures less than one goes beyond it by chance


def percents_differ(first: float, count: int, second: float, second_count: int) -> bool:
    """Whether two shares [percent] of so many tries differ by more than their binomial spread."""
    shares = first / 100.0, second / 100.0
    pooled = (shares[0] * count + shares[1] * second_count) / (count + second_count)
    sigma = sqrt(pooled * (1.0 - pooled) * (1.0 / count + 1.0 / second_count))
    return abs(shares[0] - shares[1]) > SIGMAS * sigma


def means_differ(
    first: float, count: int, second: float, second_count: int, deviation: float, rounding: float
) -> bool:
    """Whether two means differ by more than their spread.

    Args:
        deviation: standard deviation of one try, the same for both.
        rounding: by which a printed mean may be off.
    """
    if min(count, second_count) < 2:
        return False
    sigma = deviation * sqrt(1.0 / count + 1.0 / second_count)
    return abs(first - second) > SIGMAS * sigma + rounding
