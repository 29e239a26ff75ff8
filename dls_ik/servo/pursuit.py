"""Pursuit of a reference that turns faster than a command can: corners are cut, not swung past."""

import math

import numpy as np

from dls_ik.core.types import Array

MEAN_OVER = 0.15  # [s] that the velocity of a reference is averaged over
LATE = 0.08  # [s] of lag up to which the command keeps up; at twice as much it lags
FEASIBLE, TOO_FAST = 0.6, 0.8  # share of the acceleration that the averaged reference asks for
KEPT = 2.5  # [s] for which that is kept: it comes and goes with every turn
GENTLE = 0.25  # share of the acceleration that closes the gap of a command that lags


class Pursuit:
    """Adapts a reference for a limiter that would swing past it.

    To keep the reference's velocity and to close the gap as fast as possible, while the reference
    turns faster than the limits of acceleration allow, would be to swing past every turn, far
    outside its path. So the more the command lags then, the less of that velocity it takes over,
    and the more gently it closes the gap.

    Args:
        acceleration: (n,) limits [rad/s^2 or m/s^2], infinite without a limit.
        slack: lag that a command has anyway, such as by a limit of jerk [s].
    """

    def __init__(self, acceleration: Array, slack: float = 0.0) -> None:
        self._late = LATE + slack
        self._acceleration, self._limits = acceleration, acceleration.tolist()
        self._is_limited = bool(np.isfinite(acceleration).any())
        self.reset(np.zeros(len(acceleration)))

    def reset(self, v: Array) -> None:
        """Begin with a reference of velocity `v` (n,) [rad/s or m/s]."""
        self._means = [(speed, speed) for speed in v.tolist()]  # (n, 2)
        self._demand = 0.0  # share of the acceleration that the reference asked for of late

    def follow(self, q: Array, q_r: Array, v_r: Array, dt: float) -> tuple[Array, Array]:
        """Return what a command `q` (n,) is to follow for `dt` [s]: the reference if it can.

        Args:
            q_r: (n,) reference at the end of the cycle [rad or m].
            v_r: (n,) its velocity [rad/s or m/s].
        """
        share = self._share(q, q_r, v_r, dt)
        if share >= 1.0:
            return q_r, v_r
        v_r = share * v_r
        gap = np.abs(q_r - q - v_r * dt)
        step = (GENTLE + (1.0 - GENTLE) * share) * self._acceleration * dt  # [rad/s or m/s]
        with np.errstate(divide="ignore", invalid="ignore"):
            speed = 2.0 * step * gap / (np.sqrt(step * (step * dt + 2.0 * gap) / dt) + step) / dt
            speed = np.fmax(speed, np.minimum(gap / dt, step))
            closed = np.where(gap > 0.0, speed * dt / gap, 1.0)
        v_r = v_r + min(1.0, float(closed.min())) * ((q_r - q) / dt - v_r)
        return q + v_r * dt, v_r

    def _share(self, q: Array, q_r: Array, v_r: Array, dt: float) -> float:
        """Return the share of the reference's velocity that is taken over, 1 if it can be followed.

        Its velocity is averaged twice, as it may come in bursts; the difference is acceleration.
        """
        if not self._is_limited:
            return 1.0
        new, lag, demand = min(1.0, dt / MEAN_OVER), 0.0, 0.0
        rates, means = v_r.tolist(), []
        values = zip(q_r.tolist(), rates, q.tolist(), self._limits, self._means, strict=True)
        for q_j, v_j, command, limit, (once, twice) in values:
            once += new * (v_j - once)
            twice += new * (once - twice)
            means.append((once, twice))
            lag = max(
                lag, abs(q_j - v_j * dt - command) / (limit * dt * dt + self._late * abs(once))
            )
            demand = max(demand, abs(once - twice) / limit)
        self._means = means
        self._demand = max(demand / MEAN_OVER, self._demand * math.exp(-dt / KEPT))
        if lag <= 1.0 or self._demand <= FEASIBLE or not any(rates):
            return 1.0
        return max(0.0, 2.0 - lag, (TOO_FAST - self._demand) / (TOO_FAST - FEASIBLE))
