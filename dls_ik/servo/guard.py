# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Guard of the commands: the arm can stop from each command without violating a minimum distance.

In each cycle the limiter proposes a step of the command. The step is certified if a bound proves
that all required distances are kept during the step and during the stop that starts at the end of
the step. The guard accepts a certified step. Otherwise the command follows the stop that was
certified in the previous cycle, or a weighted mean of this stop and the step if the mean is
certified. The stop, the step and the mean all keep the limits of position, velocity, acceleration
and jerk.

A new controller or a new scene takes over the current stop and the distances certified along this
stop. A pair that is equal in the old and the new scene keeps its certified distance. Only new or
changed pairs are certified again; they must keep `min_distance`, or their current distance if it is
smaller. Therefore neither new parameters nor changes of other objects can replace the stop by a
longer stop.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from dls_ik.core.near_pairs import NearRows
from dls_ik.core.types import Array, Flags, Indices
from dls_ik.errors import OptionError, SceneError
from dls_ik.model.robot import RobotModel
from dls_ik.scene.planning_scene import PlanningScene
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair
from dls_ik.servo.limiter import UNKNOWN_PERIOD, Limiter
from dls_ik.servo.motion import Handover, Motion, StopPath
from dls_ik.servo.scene_state import NearPair, SceneState
from dls_ik.servo.workspace import Bound, checked_bounds, guarded_pairs

NUM_BLEND_BISECTIONS = 3  # bisections of the weight between the stop and an uncertified step
NUM_CONTACT_SAMPLES = 40  # configurations checked for contact along a stop that is not certified
NUM_PROXIMITY_SAMPLES = 64  # random configurations used to find links that are always close
TIGHT_SHARE = 0.25  # a pair is reported if it is too close in this share of configurations
USUAL_QUANTILE = 0.1  # the suggested min_distance is this quantile of a pair's distances
MIN_CONTACT_GROWTH = 1e-4  # [m] a penetration that grows more during a stop is a fault
NUM_RECENT_STOPS = 4  # stops of earlier commands, to which the motion may roll back


class TightPair(NamedTuple):
    """Pair of links that is closer than `min_distance` in many configurations.

    Distances are lower bounds, computed from spheres around the links.
    """

    names: Pair
    share: float  # share of random configurations in which the distance is below min_distance
    usual: float  # [m] distance exceeded in nine of ten random configurations

    def __str__(self) -> str:
        """Return the names, the share of configurations in percent, and a suitable distance."""
        shown = f"{self.names[0]!r} and {self.names[1]!r}"
        return f"{shown} ({100.0 * self.share:.0f} %, min_distance up to {self.usual:.2g} m)"


class Certificate(Protocol):
    """Requirement, in addition to distances, for the motion of a cycle and the stop after it."""

    def __call__(self, motion: Motion, stop: StopPath) -> bool:
        """Return whether the last cycle of a motion, and the stop after it, are acceptable.

        Args:
            motion: State of motion at the end of the cycle, with the path during the cycle.
            stop: Stop that starts at the end of the cycle.
        """

    def share(self, motion: Motion, stop: StopPath) -> float:
        """Return a factor, 0 to 1, for the velocity with which a cycle probably is acceptable.

        Args:
            motion: State of motion at the end of the cycle, with the path during the cycle.
            stop: Stop that starts at the end of the cycle.
        """


class KeptStop(NamedTuple):
    """Stop that starts at a command, and the distances that are proven (certified) along it."""

    path: StopPath
    promised: Array  # (p + s,) certified distance of each pair [m]; -inf: not certified
    is_certified: bool = False  # whether all pairs of the scene are certified

    def renumbered(self, numbers: Indices) -> "KeptStop":
        """Return this stop with the certified distances in the pair order of a new scene.

        Args:
            numbers: (p + s,) for each pair of the new scene, its index in the previous scene; -1
                for new or changed pairs.
        """
        known = np.append(self.promised, -np.inf)
        return KeptStop(self.path, known[numbers])


def prepare(snapshot: SceneSnapshot) -> None:
    """Compute the cached properties of a snapshot that a guard needs, before a cycle needs them."""
    _ = snapshot.packed, snapshot.leverage, snapshot.second_first, snapshot.pair_keys


class Guard:
    """Limits a command so that minimum distances are kept, also during a stop from the command.

    The distances are those of p pairs of links, and of s pairs of a link and an object or a
    workspace bound.

    Args:
        limiter: Limiter that proposes the commands.
        robot: Robot of the limiter.
        scene: Scene; every cycle uses the current state of the scene. None: no scene.
        bounds: Bounds of the workspace.
        distances: `min_distance` and `influence_distance` [m].
        stop_limits: (n,) acceleration limits [rad/s^2 or m/s^2] and (n,) jerk limits
            [rad/s^3 or m/s^3] of stops.
        certificates: Additional requirements for each command.

    Attributes:
        limiter: As given.
        state: Distances of the pairs.
        world: Snapshot of the scene used in the last cycle, for the joints of the robot.
        nearest: The closest pair at the command; None if no pair is within `influence_distance`.
        near: Distance constraints for the next step of local motion.
        refused: The pair that prevented the command from following its reference; None if no pair
            did.
        collision: The pair that collides, or penetrates deeper, during the current stop, which is a
            fault; None if no pair does.
        tight_pairs: Pairs of links that are closer than `min_distance` in many configurations.

    Raises:
        SceneError: If the scene belongs to another robot, or a bound is invalid.
        OptionError: If `influence_distance` is not above `min_distance`, or two links are always
            closer than `min_distance`.
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
                f"the scene belongs to robot {scene.robot.name!r}, the controller to robot "
                f"{robot.name!r}; build the scene from the controller's robot"
            )
        if not self._influence > self._min_distance:
            raise OptionError(
                f"influence_distance must be above min_distance = {self._min_distance:g} m; got "
                f"{self._influence:g} m"
            )
        self._snapshot = None if scene is None else scene.snapshot
        self.state, self.near = self._new_state()
        self.tight_pairs = self._find_tight_pairs()
        self.nearest: NearPair | None = None
        self.refused: NearPair | None = None
        self.collision: NearPair | None = None
        self._kept: KeptStop
        self._recent: deque[KeptStop] = deque(maxlen=NUM_RECENT_STOPS)
        self._restart()

    @property
    def q(self) -> Array:
        """Commanded joint positions (n,) [rad or m]."""
        return self.limiter.q

    @property
    def v(self) -> Array:
        """Mean velocity of the command in the last cycle (n,) [rad/s or m/s]."""
        return self.limiter.v

    @property
    def rate(self) -> Array:
        """Velocity of the command at the end of the last cycle (n,) [rad/s or m/s]."""
        return self.limiter.rate

    def motion(self) -> Motion:
        """Return the state of motion of the limiter."""
        return self.limiter.motion()

    def reset(self, q: Array, v: Array | None = None) -> None:
        """Set the command to `q` (n,) with velocity `v` (n,); None: at rest."""
        known = [each for each in (self._kept, *self._recent) if each.path.q.tolist() == q.tolist()]
        self.limiter.reset(q, v)
        self._restart(known[0].promised if known and v is None else None)

    def hand_over(self) -> Handover:
        """Return the complete state of motion, which another guard or limiter can take over."""
        kept = self._kept
        pairs = zip(self.state.pairs.keys, kept.promised.tolist(), strict=True)
        return Handover(self.limiter.hand_over().motion, kept.path, dict(pairs))

    def take_over(self, state: Handover) -> None:
        """Continue an earlier motion, or the motion of another limiter or guard of the same joints.

        The command follows the stop in `state` until another stop is certified. If the stop in
        `state` leaves the position limits, and a stop within the limits can be certified, the
        command follows the stop within the limits.
        """
        if self._scene is not None and self._scene.snapshot is not self._snapshot:
            self._use_snapshot(self._scene.snapshot)
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
        """Switch to the current state of the scene; call at the start of a cycle."""
        if self._scene is None or self._scene.snapshot is self._snapshot:
            return
        self._use_snapshot(self._scene.snapshot)
        self._adopt(self._kept)

    def advance(self, q_r: Array, v_r: Array, dt: float) -> None:
        """Move the command for one cycle toward a moving reference, or stop if motion is not safe.

        Args:
            q_r: (n,) position of the reference at the end of the cycle [rad or m].
            v_r: (n,) velocity of the reference [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        self._move(lambda: self.limiter.advance(q_r, v_r, dt), dt)

    def drive(self, v: Array, dt: float) -> None:
        """Move the command for one cycle toward a velocity, or stop if motion is not safe.

        Args:
            v: (n,) desired velocities [rad/s or m/s].
            dt: Duration of the cycle [s].
        """
        self._move(lambda: self.limiter.drive(v, dt), dt)

    def _move(self, propose: Callable[[], None], dt: float) -> None:
        """Move the command for one cycle; keep as much of the proposed motion as is safe.

        Args:
            propose: Function that moves the command of the limiter.
            dt: Duration of the cycle [s].
        """
        kept = self._kept
        if not kept.is_certified:
            self.brake(dt)
            return
        limiter, last = self.limiter, self.limiter.motion()
        self._recent.append(kept)
        propose()
        if self._certificates:
            behind = limiter.motion(), limiter.stop_path(dt)
            share = min(each.share(*behind) for each in self._certificates)
            if share < 1.0:
                limiter.advance_slower(last, share, dt)
        self.refused = None
        if not self._accept(last, dt):
            step = limiter.motion()
            limiter.restore(last)
            limiter.continue_stop(kept.path, dt)
            safe, self._kept = limiter.motion(), kept._replace(path=limiter.stop_path(dt))
            taken, low, high = safe, 0.0, 1.0
            for _ in range(NUM_BLEND_BISECTIONS):
                share = 0.5 * (low + high)
                if limiter.blend(last, safe, step, share, dt) and self._accept(last, dt):
                    taken, low = limiter.motion(), share
                else:
                    high = share
            limiter.restore(taken)
        self._watch()

    def brake(self, dt: float) -> None:
        """Move the command for `dt` [s] along the stop that starts at the command."""
        kept = self._kept
        self._recent.append(kept)
        self.limiter.continue_stop(kept.path, dt)
        self._kept = kept._replace(path=self.limiter.stop_path(dt))
        if not kept.is_certified:
            self._adopt(self._kept)
        self._watch()

    def stopping_point(self) -> Array:
        """Return the joint positions (n,) at which the command comes to rest if it stops now."""
        return self._kept.path.end

    def stop_path(self, period: float) -> StopPath:
        """Return the path of the stop that starts at the last command; `period` is not used."""
        return self._kept.path

    def resume_at(self, elapsed: float, period: float) -> None:
        """Advance the command along its stop path by `elapsed` [s]; `period` is not used."""
        self.brake(elapsed)

    def _new_state(self) -> tuple[SceneState, NearRows]:
        """Return new distances and distance constraints for the snapshot, and update `world`."""
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

    def _use_snapshot(self, snapshot: SceneSnapshot) -> None:
        """Use another snapshot of the scene; unchanged pairs keep their certified distances."""
        before = {key: k for k, key in enumerate(self.state.pairs.keys)}
        self._snapshot = snapshot
        self.state, self.near = self._new_state()
        numbers = np.array([before.get(key, -1) for key in self.state.pairs.keys], np.int64)
        self._kept = self._kept.renumbered(numbers)
        recent = [each.renumbered(numbers) for each in self._recent]
        self._recent = deque(recent, NUM_RECENT_STOPS)

    def _restart(self, promised: Array | None = None) -> None:
        """Forget earlier stops, and certify a new stop that starts at the limiter's command.

        Args:
            promised: (p + s,) certified distances of the pairs at the command [m]; None: unknown.
        """
        if promised is None:
            promised = np.full(len(self.state.least), -np.inf)
        self._recent.clear()
        self.refused = None
        self._adopt(KeptStop(self.limiter.stop_path(UNKNOWN_PERIOD), promised))
        self._watch()

    def _accept(self, last: Motion, dt: float) -> bool:
        """Return whether the limiter's last step, and the stop after the step, can be certified.

        If they can, the stop becomes the current stop. If a pair may become too close, the
        attribute `refused` is set to this pair.

        Args:
            last: State of motion before the step.
            dt: Duration of the step [s].
        """
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
        """Use a stop that starts at the command, and certify pairs without a certified distance.

        Along the stop, each uncertified pair must keep its required distance, or its current
        distance if that is smaller. If a pair does not, the command follows the stop, and each
        cycle attempts to certify the remaining path of the stop. An attempt succeeds at the latest
        when the arm is at rest.
        """
        state = self.state
        state.restart(self.q, self._influence, kept.promised)
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

    def _unavoidable_contact(self, selected: Flags) -> NearPair | None:
        """Return the pair that penetrates deepest during the stop; None if no pair collides.

        Pairs that overlap already, and whose penetration does not grow, are ignored.

        Args:
            selected: (p + s,) flags of the pairs to check.
        """
        before = self.state.distances_now()
        times = np.linspace(0.0, self._kept.path.duration, NUM_CONTACT_SAMPLES)
        path = self._kept.path.at(times)[0]
        deepest = self.state.smallest_along(path, self._influence)
        self.state.look(self.q, self._influence)
        is_contact = selected & (deepest <= 0.0) & (deepest < before - MIN_CONTACT_GROWTH)
        if not is_contact.any():
            return None
        k = int(np.argmin(np.where(is_contact, deepest, np.inf)))
        return self.state.near_pair(k, float(deepest[k]))

    def _watch(self) -> None:
        """Update the distances, and the closest pair, to the joint positions of the command."""
        self.nearest = self.state.look(self.q, self._influence)
        if self.refused is not None and self._kept.path.is_over:
            self.state.relax(self._kept.promised)

    def _pair(self, k: int) -> NearPair:
        """Return the pair with index k, and its current distance."""
        near = self.nearest
        names = self.state.pairs.names[k]
        if near is not None and near.names == names:
            return near
        return self.state.near_pair(k)

    def _find_tight_pairs(self) -> tuple[TightPair, ...]:
        """Return the pairs of links closer than `min_distance` in many random configurations.

        A pair is left out if joints outside the chain can separate its links, for example if one of
        the links belongs to another arm.

        Raises:
            OptionError: If two links are closer than `min_distance` in all random configurations.
        """
        if self._snapshot is None:
            return ()
        rng, near = np.random.default_rng(0), self._min_distance + 1e-3
        samples = [self._robot.random(rng=rng) for _ in range(NUM_PROXIMITY_SAMPLES)]
        found = np.array([self.state.distances(q, near) for q in samples])
        own = found[:, : len(self._snapshot.arrays.pairs)]  # (NUM_PROXIMITY_SAMPLES, p)
        farthest, tight = own.max(axis=0, initial=-np.inf), []
        for k in np.flatnonzero(np.mean(own < self._min_distance, axis=0) >= TIGHT_SHARE).tolist():
            names = self.state.pairs.names[k]
            if self._is_moved_by_others(names):
                continue
            if farthest[k] < self._min_distance:
                raise OptionError(
                    f"min_distance = {self._min_distance:g} m: {names[0]!r} and {names[1]!r} are "
                    f"never more than {farthest[k]:.3g} m apart; allow their collision in the "
                    "scene, or lower min_distance"
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
