"""The guard of a stream: no command without a stop behind it that keeps all distances.

Each cycle the limiter moves on. If the step and the stop behind it are certified, they are taken.
Else the command goes along the stop that was certified before, or between the two as far as that
is certified: position, velocity, acceleration and jerk are within limits in both, and so between.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from dls_ik import compat
from dls_ik.core.certificate import certify
from dls_ik.core.near_pairs import watch
from dls_ik.core.proximity import ROUNDING
from dls_ik.core.types import Array, Indices
from dls_ik.errors import OptionError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo.limiter import Limiter, Motion, StopPath
from dls_ik.servo.own_step import NearRows
from dls_ik.servo.workspace import Bound, GuardedPairs, checked_bounds, guarded_pairs

BISECTIONS = 3  # between the stop and the step that was not certified
SAMPLES = 40  # of a stop that cannot be certified
CONFIGURATIONS = 64  # in which links are looked at that always are near
TIGHT_SHARE = 0.25  # of these configurations in which min_distance stops a pair that is reported
USUAL_QUANTILE = 0.1  # of these configurations that are below the distance that is proposed
REST = 0.01  # [s] of a cycle that is not known


class NearPair(NamedTuple):
    """The two links, objects or bounds that are nearest each other within `influence_distance`."""

    names: Pair
    distance: float  # [m], at most as large as it is: of spheres around the shapes
    points: Array  # (2, 3) on either, in the root link's frame [m]
    normal: Array  # (3,) unit vector from the first to the second

    def __str__(self) -> str:
        """Return names and distance."""
        return f"{self.names[0]!r} and {self.names[1]!r}, {1e3 * self.distance:.3g} mm apart"


class TightPair(NamedTuple):
    """Two links whose distance is often below `min_distance`, by the bounds of their spheres."""

    names: Pair
    share: float  # of random configurations in which the pair stops the arm
    usual: float  # [m] distance that nine of ten random configurations keep

    def __str__(self) -> str:
        """Return names, share and distance."""
        shown = f"{self.names[0]!r} and {self.names[1]!r}"
        return f"{shown} ({100.0 * self.share:.0f} %, min_distance up to {self.usual:.2g} m)"


class Certificate(Protocol):
    """A property that a step and the stop behind it keep, beside distances."""

    def __call__(self, last: Motion, stop: StopPath, dt: float) -> bool:
        """Test the step of `dt` [s] from the last motion to the beginning of a stop, and that."""

    def share(self, q_a: Array, q_b: Array, dt: float) -> float:
        """Return the share of a step of `dt` [s] (n,) that is likely to keep it."""


def prepare(snapshot: SceneSnapshot) -> None:
    """Compute all that a guard needs of a snapshot, before a cycle does."""
    _ = snapshot.packed, snapshot.leverage, snapshot.second_first


class SceneState:
    """Distances of the pairs of a scene, as the command moves.

    Args:
        n: joints.
    """

    def __init__(self, pairs: GuardedPairs, n: int) -> None:
        self.pairs = pairs
        count = len(pairs.names)
        self.least = np.full(count, -np.inf)  # (p + s,) that each pair keeps [m]
        self._known = np.full(count, -np.inf), np.zeros(n)
        self._seen = np.full(n, np.nan), np.zeros((count, 2), np.int64)
        self._points = np.zeros((3, 3))
        self._certify: Callable[..., Any] | None = None  # for arguments of these types
        self._watch: Callable[..., Any] | None = None

    @property
    def watched(self) -> tuple[Array, Array, Indices]:
        """Distances (p + s,) and the place (n,) of the last look, and nearest leaves (p + s, 2)."""
        return self._known[0], *self._seen

    def begin(self, q: Array, influence: float) -> None:
        """Let pairs that are too near at q (n,) keep what they have."""
        self._known[0].fill(-np.inf)
        self.least.fill(-np.inf)
        self.look(q, influence)

    def failing(self, q: Array, stop: StopPath) -> int:
        """Return a pair that does not keep its distance from q to a stop and along it, or -1."""
        if not len(self.least):
            return -1
        pairs = self.pairs
        args = (pairs.packed, pairs.leverage, self.least, self._known, q, stop[:])
        if self._certify is None:
            self._certify = compat.numba_entry(certify, args)
        return int(self._certify(*args))

    def look(self, q: Array, influence: float) -> NearPair | None:
        """Return the nearest pair at q (n,), if it is within a distance [m]."""
        if not len(self.least):
            return None
        pairs = self.pairs
        limits = self.least, pairs.distance
        packed, reach = pairs.packed, pairs.leverage[0]
        args = (packed, reach, limits, self._known, self._seen, q, influence, self._points)
        if self._watch is None:
            self._watch = compat.numba_entry(watch, args)
        k, d = self._watch(*args)
        if k < 0:
            return None
        return self._near_pair(k, float(d), self._points.copy())

    def relax(self, promised: Array) -> None:
        """Let pairs keep what they have, where a stop led nearer than its arm had been on the way.

        Spheres of leaves stand out of those about them: the distance that is known may be less than
        that which is certified, and what a pair keeps would sink by that at every stop.

        Args:
            promised: (p + s,) distance that each pair kept when the stop was certified [m].
        """
        least, known = self.least, self._known[0]
        below = known < least - 2.0 * ROUNDING
        least[below] = np.maximum(known[below] + 0.9 * ROUNDING, promised[below])

    def distances(self, q: Array, within: float) -> Array:
        """Return lower bounds (p + s,) of the distances at q (n,) [m], exact within a distance."""
        self.begin(q, within)
        return self._known[0].copy()

    def near_pair(self, k: int) -> NearPair:
        """Return the names of a pair and a lower bound of its distance."""
        return self._near_pair(k, float(self._known[0][k]), np.zeros((3, 3)))

    def _near_pair(self, k: int, d: float, points: Array) -> NearPair:
        one, normal = points[:2], points[2]
        if self.pairs.second_first[k]:
            one, normal = one[::-1], -normal
        return NearPair(self.pairs.names[k], d, one, normal)


class Guard:
    """A limiter whose commands, and stops behind them, keep the distances of a scene.

    Args:
        limiter: of the joints.
        scene: as it stands at each cycle; None: without.
        bounds: of the workspace.
        distances: `min_distance` and `influence_distance` [m].
        stop_limits: (n,) of acceleration and of jerk.
        certificates: further properties.

    Attributes:
        limiter: as given.
        world: the scene as it stood at the last cycle, for the joints of the robot.
        nearest: the nearest pair at the command.
        near: what the reference keeps apart.
        refused: the pair for which the command did not follow its reference in the last cycle.
        collision: a fault: the pair that comes too near although the arm stops.
        tight_pairs: pairs of links that `min_distance` stops in many configurations.

    Raises:
        SceneError: a scene of another robot, or bounds that are none.
        OptionError: distances that do not fit the robot or each other.
    """

    def __init__(
        self,
        limiter: Limiter,
        robot: RobotModel,
        scene: PlanningScene | None,
        bounds: Sequence[Bound],
        distances: tuple[float, float],
        stop_limits: tuple[Array, Array],
        certificates: Sequence[Certificate] = (),
    ) -> None:
        self.limiter, self._robot, self._scene = limiter, robot, scene
        self._bounds = checked_bounds(robot, bounds)
        self._min_distance, self._influence = distances
        self._certificates = tuple(certificates)
        acceleration, jerk = stop_limits
        self._stopping = (
            acceleration,
            float(np.max(np.where(jerk < np.inf, acceleration, 0.0) / jerk)),
        )
        if scene is not None and scene.robot.tree.digest != robot.tree.digest:
            raise SceneError(
                f"the scene is of {scene.robot.name!r}, the controller of {robot.name!r}: a scene "
                "holds the shapes of its own robot"
            )
        if not self._influence > self._min_distance:
            raise OptionError(
                f"influence_distance = {self._influence:g} m is to be above min_distance = "
                f"{self._min_distance:g} m"
            )
        self._snapshot = None if scene is None else scene.snapshot
        self.state, self.near = self._new_state()
        self.tight_pairs = self._find_tight_pairs()
        self.nearest: NearPair | None = None
        self.refused: NearPair | None = None
        self.collision: NearPair | None = None
        self._stop, self._is_forced = limiter.stop_path(REST), False
        self._begin(REST)

    @property
    def q(self) -> Array:
        """The command (n,) [rad or m]."""
        return self.limiter.q

    @property
    def v(self) -> Array:
        """Mean velocity of the last cycle (n,) [rad/s or m/s]."""
        return self.limiter.v

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`."""
        self.limiter.reset(q, v)
        self._begin(REST)

    def take_over(self, other: Limiter) -> None:
        """Continue the motion of another limiter of the same joints."""
        self.limiter.take_over(other)
        self._begin(REST)

    def look(self) -> None:
        """Take the scene as it stands, at the beginning of a cycle."""
        if self._scene is None or self._scene.snapshot is self._snapshot:
            return
        self._snapshot = self._scene.snapshot
        self.state, self.near = self._new_state()
        self._check_stop()

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        if self._is_forced:
            self.brake(dt)
            return
        limiter, last, stop = self.limiter, self.limiter.motion(), self._stop
        limiter.advance(q_r, v_r, dt)
        share = min([1.0, *(each.share(last.q, limiter.q, dt) for each in self._certificates)])
        if share < 1.0:
            way = share * (limiter.q - last.q)
            limiter.restore(last)
            limiter.advance(last.q + way, way / dt, dt)
        self.refused = None
        if not self._take(last, dt):
            step = limiter.motion()
            limiter.restore(last)
            limiter.continue_stop(stop, dt)
            safe, self._stop = limiter.motion(), limiter.stop_path(dt)
            taken, low, high = safe, 0.0, 1.0
            for _ in range(BISECTIONS):
                share = 0.5 * (low + high)
                if limiter.blend(last, safe, step, share, dt) and self._take(last, dt):
                    taken, low = limiter.motion(), share
                else:
                    high = share
            limiter.restore(taken)
        self._watch()

    def brake(self, dt: float) -> None:
        """Slow down for `dt` [s], along the stop."""
        self.limiter.continue_stop(self._stop, dt)
        self._stop = self.limiter.stop_path(dt)
        if self._is_forced:
            self._check_stop()
        self._watch()

    def go_back(self, stop: StopPath) -> None:
        """Be at the beginning of a stop under way, of an earlier command."""
        self.limiter.go_back(stop)
        self._stop = stop
        self._check_stop()
        self._watch()

    def stopping_point(self) -> Array:
        """Return the joint values (n,) at rest after braking from now on."""
        return self._stop.end

    def stop_path(self, period: float) -> StopPath:
        """Return the stop that a controller follows if no command comes after this one."""
        return self._stop

    def resume_at(self, elapsed: float, period: float) -> None:
        """Continue on the stop path, on which the arm has moved for `elapsed` [s] by itself."""
        self.brake(elapsed)

    def _new_state(self) -> tuple[SceneState, NearRows]:
        snapshot, robot = self._snapshot, self._robot
        if snapshot is not None and snapshot.joint_names != robot.joint_names:
            snapshot = snapshot.with_state(robot.joint_names, {})
        self.world = snapshot or SceneSnapshot(robot.tree, robot.joint_names, {}, {})
        pairs = guarded_pairs(robot, snapshot, self._bounds, self._min_distance)
        state = SceneState(pairs, robot.n)
        return state, NearRows.of(
            pairs.packed,
            pairs.leverage[0],
            state.least,
            state.watched,
            self._stopping,
            self._influence,
        )

    def _begin(self, period: float) -> None:
        """Begin with the limiter's state, whatever it is."""
        self._stop = self.limiter.stop_path(period)
        self.refused = None
        self._check_stop()
        self._watch()

    def _take(self, last: Motion, dt: float) -> bool:
        """Take the limiter's state if it is certified."""
        stop = self.limiter.stop_path(dt)
        k = self.state.failing(last.q, stop)
        if k >= 0:
            self.refused = self._pair(k)
            return False
        if not all(keeps(last, stop, dt) for keeps in self._certificates):
            return False
        self._stop, self._promised = stop, self.state.least.copy()
        return True

    def _check_stop(self) -> None:
        """Certify the stop under way in a scene that is new; if it is not, go along it to its end.

        Pairs that are too near at its beginning may come no nearer.
        """
        self.state.begin(self.q, self._influence)
        k = self.state.failing(self.q, self._stop)
        self._is_forced = k >= 0
        self._promised = self.state.least.copy()
        self.collision = None
        if k >= 0:
            self.refused = self._pair(k)
            path = self._stop.at(np.linspace(0.0, self._stop.duration, SAMPLES))[0]
            found = [self.state.look(q, self._influence) for q in path]
            worst = min((f for f in found if f is not None), key=lambda f: f.distance)
            if worst.distance <= 0.0:
                self.collision = worst
            self.state.begin(self.q, self._influence)

    def _watch(self) -> None:
        self.nearest = self.state.look(self.q, self._influence)
        if self.refused is not None and self._stop.is_over:
            self.state.relax(self._promised)

    def _pair(self, k: int) -> NearPair:
        """Return the names of a pair, with the distance now."""
        near = self.nearest
        names = self.state.pairs.names[k]
        if near is not None and near.names == names:
            return near
        return self.state.near_pair(k)

    def _find_tight_pairs(self) -> tuple[TightPair, ...]:
        """Return the pairs of links that `min_distance` stops in many random configurations.

        Raises:
            OptionError: If two links are closer than `min_distance` in every configuration.
        """
        if self._snapshot is None:
            return ()
        rng, near = np.random.default_rng(0), self._min_distance + 1e-3
        found = [self.state.distances(self._robot.random(rng), near) for _ in range(CONFIGURATIONS)]
        own = np.array(found)[:, : len(self._snapshot.arrays.pairs)]  # (CONFIGURATIONS, p)
        farthest, tight = own.max(axis=0, initial=-np.inf), []
        for k in np.flatnonzero(np.mean(own < self._min_distance, axis=0) >= TIGHT_SHARE).tolist():
            names = self.state.pairs.names[k]
            if farthest[k] < self._min_distance:
                raise OptionError(
                    f"min_distance = {self._min_distance:g} m: {names[0]!r} and {names[1]!r} are "
                    f"never farther than {farthest[k]:.3g} m apart; let them touch in the scene, "
                    "or set it lower"
                )
            share = float(np.mean(own[:, k] < self._min_distance))
            usual = max(float(np.quantile(own[:, k], USUAL_QUANTILE)), 0.0)
            tight.append(TightPair(names, share, usual))
        return tuple(sorted(tight, key=lambda pair: -pair.share))
