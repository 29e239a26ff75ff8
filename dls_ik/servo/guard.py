"""The guard of a stream: no command without a stop behind it that keeps all distances.

Each cycle the limiter moves on. If the step and the stop behind it are certified, they are taken.
Else the command goes along the stop that was certified before, or between the two as far as that
is certified: position, velocity, acceleration and jerk are within limits in both, and so between.

The stop behind the command, with the distance that each pair was certified to keep along it, goes
from controller to controller and from scene to scene. Pairs that are the same in a new scene keep
their distances without a test. Only pairs that are new, or that changed, are certified anew, from
their present distance on. Neither a change of parameters nor one of another object can therefore
replace the stop by a longer one.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dls_ik.core.types import Array, Flags, Indices
from dls_ik.errors import OptionError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo.limiter import UNKNOWN_PERIOD, Limiter
from dls_ik.servo.motion import Handover, Motion, StopPath
from dls_ik.servo.own_step import NearRows
from dls_ik.servo.scene_state import NearPair, SceneState
from dls_ik.servo.workspace import Bound, checked_bounds, guarded_pairs

BISECTIONS = 3  # between the stop and the step that was not certified
SAMPLES = 40  # of a stop that cannot be certified
CONFIGURATIONS = 64  # in which links are looked at that always are near
TIGHT_SHARE = 0.25  # share of these configurations above which a pair is reported
USUAL_QUANTILE = 0.1  # quantile of these distances that is proposed as min_distance
DEEPER = 1e-4  # [m] by which a stop must deepen a contact to be a fault
NUM_RECENT_STOPS = 4  # of earlier commands, to which the motion may go back


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
    """A property of a cycle and of the stop behind it, besides distances."""

    def __call__(self, motion: Motion, stop: StopPath) -> bool:
        """Return whether the last cycle of a motion and the stop behind it have the property."""

    def share(self, motion: Motion, stop: StopPath) -> float:
        """Return the share of the velocity that is likely to have the property."""


class KeptStop(NamedTuple):
    """The stop behind a command, and the distances that it is certified to keep."""

    path: StopPath
    promised: Array  # (p + s,) distance of each pair along the path [m]; -inf: not certified
    is_certified: bool = False  # all pairs that move are

    def renumbered(self, numbers: Indices) -> "KeptStop":
        """Return the same stop for other pairs.

        Args:
            numbers: (p,) number that each pair had before, -1 if it is new or changed.
        """
        known = np.append(self.promised, -np.inf)
        return KeptStop(self.path, known[numbers])


def prepare(snapshot: SceneSnapshot) -> None:
    """Compute all that a guard needs of a snapshot, before a cycle does."""
    _ = snapshot.packed, snapshot.leverage, snapshot.second_first, snapshot.pair_keys


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
        collision: a fault: a pair that the stop brings into contact, or deeper into one.
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
        self._kept: KeptStop
        self._recent: deque[KeptStop] = deque(maxlen=NUM_RECENT_STOPS)
        self._stand()

    @property
    def q(self) -> Array:
        """The command (n,) [rad or m]."""
        return self.limiter.q

    @property
    def v(self) -> Array:
        """Mean velocity of the last cycle (n,) [rad/s or m/s]."""
        return self.limiter.v

    @property
    def rate(self) -> Array:
        """Velocity at the end of the last cycle (n,) [rad/s or m/s]."""
        return self.limiter.rate

    def motion(self) -> Motion:
        """Return the state of the limiter."""
        return self.limiter.motion()

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Stand at `q` (n,), or pass it with `v`."""
        known = [each for each in (self._kept, *self._recent) if each.path.q.tolist() == q.tolist()]
        self.limiter.reset(q, v)
        self._stand(known[0].promised if known and v is None else None)

    def hand_over(self) -> Handover:
        """Return the whole state of motion, for another guard or limiter of the same joints."""
        kept = self._kept
        pairs = zip(self.state.pairs.keys, kept.promised.tolist(), strict=True)
        return Handover(self.limiter.hand_over().motion, kept.path, dict(pairs))

    def take_over(self, state: Handover) -> None:
        """Continue the motion of another limiter or guard of the same joints, or an earlier motion.

        The stop that comes with the motion is followed until another one is certified. A stop that
        leaves the position limits is replaced if one that does not is certified.
        """
        if self._scene is not None and self._scene.snapshot is not self._snapshot:
            self._see(self._scene.snapshot)
        known = {id(each.path): each.promised for each in (self._kept, *self._recent)}
        promised = known.get(id(state.stop))
        if promised is None:
            keys = self.state.pairs.keys
            promised = np.array([state.promises.get(key, -np.inf) for key in keys])
        fits = self.limiter.take_over(state)
        self._adopt(KeptStop(state.stop, promised))
        stop = state.stop if fits else self.limiter.stop_path(UNKNOWN_PERIOD)
        if not fits and self.state.failing(self.q, stop) < 0:
            self._kept = KeptStop(stop, self.state.least.copy(), True)
        self._watch()

    def look(self) -> None:
        """Take the scene as it stands, at the beginning of a cycle."""
        if self._scene is None or self._scene.snapshot is self._snapshot:
            return
        self._see(self._scene.snapshot)
        self._adopt(self._kept)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move toward a reference (n,) that has the velocity `v_r` (n,), for `dt` [s]."""
        kept = self._kept
        if not kept.is_certified:
            self.brake(dt)
            return
        limiter, last = self.limiter, self.limiter.motion()
        self._recent.append(kept)
        limiter.advance(q_r, v_r, dt)
        if self._certificates:
            behind = limiter.motion(), limiter.stop_path(dt)
            share = min(each.share(*behind) for each in self._certificates)
            if share < 1.0:
                limiter.advance_slower(last, share, dt)
        self.refused = None
        if not self._take(last, dt):
            step = limiter.motion()
            limiter.restore(last)
            limiter.continue_stop(kept.path, dt)
            safe, self._kept = limiter.motion(), kept._replace(path=limiter.stop_path(dt))
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
        kept = self._kept
        self._recent.append(kept)
        self.limiter.continue_stop(kept.path, dt)
        self._kept = kept._replace(path=self.limiter.stop_path(dt))
        if not kept.is_certified:
            self._adopt(self._kept)
        self._watch()

    def stopping_point(self) -> Array:
        """Return the joint values (n,) at rest after braking from now on."""
        return self._kept.path.end

    def stop_path(self, period: float) -> StopPath:
        """Return the stop that a controller follows if no command comes after this one."""
        return self._kept.path

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

    def _see(self, snapshot: SceneSnapshot) -> None:
        """Use another snapshot; pairs that are the same in it keep what was promised of them."""
        before = {key: k for k, key in enumerate(self.state.pairs.keys)}
        self._snapshot = snapshot
        self.state, self.near = self._new_state()
        numbers = np.array([before.get(key, -1) for key in self.state.pairs.keys], np.int64)
        self._kept = self._kept.renumbered(numbers)
        recent = [each.renumbered(numbers) for each in self._recent]
        self._recent = deque(recent, NUM_RECENT_STOPS)

    def _stand(self, promised: Array | None = None) -> None:
        """Start from the state of the limiter, of which distances (p + s,) may be promised."""
        if promised is None:
            promised = np.full(len(self.state.least), -np.inf)
        self._recent.clear()
        self.refused = None
        self._adopt(KeptStop(self.limiter.stop_path(UNKNOWN_PERIOD), promised))
        self._watch()

    def _take(self, last: Motion, dt: float) -> bool:
        """Take the limiter's state if it is certified."""
        stop = self.limiter.stop_path(dt)
        k = self.state.failing(last.q, stop)
        if k >= 0:
            self.refused = self._pair(k)
            return False
        motion = self.limiter.motion()
        if not all(keeps(motion, stop) for keeps in self._certificates):
            return False
        self._kept = KeptStop(stop, self.state.least.copy(), True)
        return True

    def _adopt(self, kept: KeptStop) -> None:
        """Keep a stop that starts at the command, and certify it for pairs without a promise.

        These pairs may come no nearer along the stop than they are, and than they have to keep. If
        one does, the stop is followed until it is certified, at its end at the latest.
        """
        state = self.state
        state.begin(self.q, self._influence, kept.promised)
        is_open = np.isneginf(kept.promised)
        k = state.failing_among(is_open, self.q, kept.path)
        self.collision = None
        if k < 0:
            promised = np.where(is_open, state.least, kept.promised)
            self._kept = KeptStop(kept.path, promised, True)
            return
        self._kept = kept._replace(is_certified=False)
        self.refused = self._pair(k)
        self.collision = self._unavoidable_contact(is_open)

    def _unavoidable_contact(self, some: Flags) -> NearPair | None:
        """Return the pair, of some (p + s,), that the stop brings deepest into contact, if any.

        A pair that overlaps already and separates along the stop is none.
        """
        before = self.state.distances_now()
        path = self._kept.path.at(np.linspace(0.0, self._kept.path.duration, SAMPLES))[0]
        deepest = self.state.smallest_along(path, self._influence)
        self.state.look(self.q, self._influence)
        is_contact = some & (deepest <= 0.0) & (deepest < before - DEEPER)
        if not is_contact.any():
            return None
        k = int(np.argmin(np.where(is_contact, deepest, np.inf)))
        return self.state.near_pair(k, float(deepest[k]))

    def _watch(self) -> None:
        self.nearest = self.state.look(self.q, self._influence)
        if self.refused is not None and self._kept.path.is_over:
            self.state.relax(self._kept.promised)

    def _pair(self, k: int) -> NearPair:
        """Return the names of a pair, with the distance now."""
        near = self.nearest
        names = self.state.pairs.names[k]
        if near is not None and near.names == names:
            return near
        return self.state.near_pair(k)

    def _find_tight_pairs(self) -> tuple[TightPair, ...]:
        """Return the pairs of links that `min_distance` stops in many random configurations.

        Pairs that joints outside the chain can separate, such as a link of another arm, are left
        out.

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
            if self._is_moved_by_others(names):
                continue
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

    def _is_moved_by_others(self, names: Pair) -> bool:
        """Return whether joints outside the chain move two links relative to each other."""
        tree, chain = self._robot.tree, set(self._robot.joint_names)
        movers: list[set[str]] = []
        for name in names:
            path = tree.path(tree.root, name) if name in tree.links else ()
            movers.append({tree.mimic_of[j.name].master for j in path if j.name in tree.mimic_of})
        return bool((movers[0] ^ movers[1]) - chain)
