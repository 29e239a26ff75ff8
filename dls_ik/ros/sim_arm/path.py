"""A path in joint space, as a joint_trajectory_controller takes one through its points."""

from typing import NamedTuple

import numpy as np

from dls_ik.core.types import Array


class Path(NamedTuple):
    """k knots; before the first and after the last it stands still.

    Between two knots it is straight, or a cubic where both of them have velocities.
    """

    times: Array  # (k,) [s] increasing
    positions: Array  # (k, n) [rad or m]
    velocities: Array  # (k, n) [rad/s or m/s], rows of NaN where there are none

    def at(self, t: float) -> tuple[Array, Array]:
        """Positions (n,) and velocities (n,) at a time [s]."""
        i = int(np.searchsorted(self.times, t, side="right"))
        if i == 0 or i == len(self.times):
            return self.positions[max(i - 1, 0)], np.zeros(self.positions.shape[1])
        h = float(self.times[i] - self.times[i - 1])
        s = (t - float(self.times[i - 1])) / h
        ends = (self.positions[i - 1], self.positions[i])
        slopes = (self.velocities[i - 1], self.velocities[i])
        if np.isnan(slopes).any():
            return ends[0] + s * (ends[1] - ends[0]), (ends[1] - ends[0]) / h
        return _cubic(s, h, ends, slopes)

    def from_here(self, t: float, positions: Array, velocities: Array) -> "Path":
        """The same path, and before its first knot on the way there from a state (n,) at a time."""
        if t >= self.times[0]:
            return self
        return Path(
            np.concatenate([[t], self.times]),
            np.vstack([positions, self.positions]),
            np.vstack([velocities, self.velocities]),
        )


def standstill(positions: Array, t: float) -> Path:
    """A path that is at these positions (n,), from a time on."""
    return Path(np.array([t]), positions[None], np.full((1, len(positions)), np.nan))


def _cubic(
    s: float, h: float, ends: tuple[Array, Array], slopes: tuple[Array, Array]
) -> tuple[Array, Array]:
    """Hermite's cubic over h [s] at a share s of it: positions (n,) and velocities (n,)."""
    rise = ends[1] - ends[0]
    first, second = h * slopes[0] - rise, rise - h * slopes[1]
    bend = (1.0 - s) * first + s * second
    position = ends[0] + s * rise + s * (1.0 - s) * bend
    velocity = (rise + (1.0 - 2.0 * s) * bend + s * (1.0 - s) * (second - first)) / h
    return position, velocity
