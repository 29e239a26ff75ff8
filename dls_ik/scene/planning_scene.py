"""The planning scene: a robot's shapes, the things around it, and what touches."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array
from dls_ik.errors import JointValueError, OptionError, SceneError
from dls_ik.model.joint import JointValues
from dls_ik.model.pose import PoseLike, pose_matrix
from dls_ik.model.robot import RobotModel, checked_robot
from dls_ik.scene.changes import apply_changes, for_scene, known_links, known_object
from dls_ik.scene.formats import read_scene, scene_text
from dls_ik.scene.joint_paths import MAX_TREE_NODES, JointPath, path_limits, path_pairs, plan_path
from dls_ik.scene.operations import (
    AddObject,
    AttachObject,
    DetachObject,
    MoveObject,
    Operation,
    RemoveAttached,
    RemoveObject,
    SetJoints,
    SetPadding,
    SetScale,
)
from dls_ik.scene.pairs import default_pairs
from dls_ik.scene.scene_message import scene_fields, yaml_text
from dls_ik.scene.shapes import (
    Body,
    Box,
    Capsule,
    Cylinder,
    Mesh,
    Plane,
    Shape,
    Sphere,
    checked_pose,
    link_bodies,
)
from dls_ik.scene.snapshot import ClosestPair, Contact, PathContact, SceneSnapshot
from dls_ik.scene.srdf import Pair, Srdf, load_srdf, pair_of
from dls_ik.text import quoted, suggest_names


class PlanningScene:
    """A robot's collision geometry and the objects of its world, as MoveIt's planning scene.

    Coordinates are those of the root link of the robot [m]. Changes are applied whole or not at
    all, and replace the snapshot that questions and solvers take: each of them sees one world.
    """

    def __init__(
        self,
        robot: RobotModel,
        srdf: Srdf | str | os.PathLike[str] | None = None,
        *,
        bodies: Mapping[str, Body] | None = None,
        allow: Iterable[str | os.PathLike[str]] = (),
        exact: bool = True,
    ) -> None:
        """Read the robot's shapes, and find which links may touch.

        Args:
            robot: Its joints are those of configurations; other joints stand at 0, or at the limit
                next to 0, until :meth:`set_joints`.
            srdf: File or text of an SRDF, whose pairs of links are not checked; None to find such
                pairs by samples.
            bodies: Collision geometry by link, in place of the URDF's.
            allow: Folders in which meshes may be read, beside the URDF's and its packages'.
            exact: Decide by the library coal what the spheres around shapes leave open. False:
                count such shapes as touching, which needs no library; no shapes that touch are
                called free, but some that are up to a few millimetres apart are called touching.

        Raises:
            SceneError: If there is no collision geometry, or it cannot be used; if `srdf` is not
                an SRDF.
        """
        self.robot, tree = checked_robot(robot), robot.tree
        self._allow = tuple(allow)
        if bodies is None:
            if tree.description is None:
                raise SceneError(
                    f"{robot.name} was not read from a URDF and has no collision geometry: give "
                    "bodies={'LINK': Body(...)}"
                )
            bodies = link_bodies(tree.description, self._allow)
        if srdf is None or isinstance(srdf, Srdf):
            self.srdf = srdf
        else:
            self.srdf = load_srdf(srdf, tree)
        empty = SceneSnapshot(tree, robot.joint_names, dict(bodies), {}, exact=exact)
        known_links(empty, bodies)
        if self.srdf is None:
            self.pairs = default_pairs(tree, bodies, exact)
            frames = {}
        else:
            self.pairs = self.srdf.allowed_pairs(bodies)
            above = {each.parent_frame for each in self.srdf.virtual_joints.values()}
            frames = dict.fromkeys(above - {""}, np.eye(4))
        allowed = dict.fromkeys(self.pairs, True)
        self._snapshot = replace(empty, allowed=allowed, frames=frames)
        self._lock = Lock()

    @property
    def snapshot(self) -> SceneSnapshot:
        """The scene as it stands; later changes leave it as it is."""
        return self._snapshot

    @property
    def objects(self) -> dict[str, Array]:
        """(4, 4) ``T_root_object`` of the objects of the world, by name."""
        return {name: each.T for name, each in self._snapshot.objects.items()}

    @property
    def attached(self) -> dict[str, str]:
        """The links that carry objects, by the names of these."""
        return {name: each.link for name, each in self._snapshot.attached.items()}

    def __repr__(self) -> str:
        """Return the robot, and the numbers of links and objects."""
        now = self._snapshot
        held = f", {len(now.attached)} attached" if now.attached else ""
        return (
            f"PlanningScene({self.robot.name}, {len(now.links)} links with geometry, "
            f"{len(now.objects)} objects{held})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the scene as it stands, for another process or a copy."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Take a scene from another process."""
        vars(self).update(state)
        self._lock = Lock()

    def copy(self) -> PlanningScene:
        """Return the scene as it stands; changes of either leave the other as it is."""
        return copy(self)

    # Changes

    def set_joints(self, values: Mapping[str, float]) -> None:
        """Set where joints beside the chain stand [rad or m], and the chain where nothing says.

        Raises:
            JointValueError: an unknown joint, or a value that is not finite.
        """
        if not isinstance(values, Mapping):
            raise JointValueError(f"joints are given by name, as a dict, not {quoted(values)}")
        self._change(SetJoints(values))

    def add(
        self, name: str, parts: Iterable[tuple[Shape, Any]] | Shape, T: PoseLike | None = None
    ) -> None:
        """Add an object, or replace the one of this name.

        Args:
            parts: A shape; or several, each with (4, 4) ``T_object_shape``.
            T: (4, 4) ``T_root_object``, or any other form of a pose; a position (3,) alone, too.
                Default: the identity.

        Raises:
            SceneError: the name of a link, a pose that is not rigid.
        """
        several = ((parts, np.eye(4)),) if isinstance(parts, Shape) else tuple(parts)
        pose = np.eye(4) if T is None else _pose(name, T)
        self._change(AddObject(name, several, "", pose, {}, False))

    def add_box(self, name: str, size: Any, T: PoseLike | None = None) -> None:
        """Add a box, centred at T (4, 4), of edge lengths (3,) [m].

        Raises:
            SceneError: as :meth:`add`; sizes that are not positive.
        """
        self.add(name, Box(size), T)

    def add_sphere(self, name: str, radius: float, T: PoseLike | None = None) -> None:
        """Add a sphere [m], centred at T (4, 4).

        Raises:
            SceneError: as :meth:`add_box`.
        """
        self.add(name, Sphere(radius), T)

    def add_cylinder(
        self, name: str, radius: float, length: float, T: PoseLike | None = None
    ) -> None:
        """Add a cylinder [m] about the z axis of T (4, 4), centred.

        Raises:
            SceneError: as :meth:`add_box`.
        """
        self.add(name, Cylinder(radius, length), T)

    def add_capsule(
        self, name: str, radius: float, length: float, T: PoseLike | None = None
    ) -> None:
        """Add a cylinder with half a sphere at either end, `length` without these [m].

        Raises:
            SceneError: as :meth:`add_box`.
        """
        self.add(name, Capsule(radius, length), T)

    def add_mesh(self, name: str, vertices: Any, triangles: Any, T: PoseLike | None = None) -> None:
        """Add a mesh of vertices (k, 3) [m] and triangles (m, 3), solid where it is watertight.

        Raises:
            SceneError: as :meth:`add_box`; not a mesh, or too many triangles.
        """
        self.add(name, Mesh(vertices, triangles), T)

    def add_plane(self, name: str, normal: Any = (0.0, 0.0, 1.0), offset: float = 0.0) -> None:
        """Add the half-space ``normal . x <= offset`` [m], such as a floor.

        Raises:
            SceneError: as :meth:`add_box`.
        """
        self.add(name, Plane(normal, offset))

    def move(self, name: str, T: PoseLike) -> None:
        """Move an object of the world to T (4, 4) ``T_root_object``.

        Raises:
            SceneError: an unknown object, a pose that is not rigid.
        """
        self._change(MoveObject(name, "", _pose(name, T)))

    def remove(self, name: str) -> None:
        """Remove an object of the world.

        Raises:
            SceneError: an unknown object.
        """
        with self._lock:
            known_object(self._snapshot, name)
            self._apply((RemoveObject(name),))

    def clear(self) -> None:
        """Remove all objects, also those that are attached."""
        self._change(RemoveObject(""), RemoveAttached())

    def attach(
        self,
        name: str,
        link: str,
        touch_links: Iterable[str] = (),
        *,
        T: PoseLike | None = None,
        q: JointValues | None = None,
    ) -> None:
        """Attach an object of the world to a link, which carries it from now on.

        Args:
            touch_links: Links that it may touch, beside the one that carries it.
            T: (4, 4) ``T_link_object``; default: where it is.
            q: (n,) the configuration in which it is taken where it is; default: as
                :meth:`set_joints` has it.

        Raises:
            SceneError: an unknown object or link, or a plane.
            JointValueError: as :meth:`in_collision`.
        """
        touch = tuple(touch_links)
        with self._lock:
            known_links(self._snapshot, touch)
            change = AttachObject(name, link, (), "", np.eye(4), touch, False)
            if T is not None:
                parts = known_object(self._snapshot, name).body.parts
                change = change._replace(parts=parts, frame=link, T=_pose(name, T))
            self._apply((change,), self._named(q))

    def detach(self, name: str, *, q: JointValues | None = None) -> None:
        """Leave an attached object in the world, where it is at the configuration q (n,).

        Raises:
            SceneError: no such object is attached.
            JointValueError: as :meth:`in_collision`.
        """
        with self._lock:
            attached = self._snapshot.attached
            if name not in attached:
                hint = suggest_names([name], attached)
                raise SceneError(f"no object {quoted(name)} is attached; {hint}")
            self._apply((DetachObject(name, ""),), self._named(q))

    def allow(self, a: str, b: str | None = None, allowed: bool = True) -> None:
        """Let two links or objects touch; or one of them whatever it meets.

        Args:
            b: None for all, as far as pairs are not named themselves.
            allowed: False takes it back.

        Raises:
            SceneError: an unknown name.
        """
        with self._lock:
            now = self._snapshot
            for name in (a,) if b is None else (a, b):
                known = [*now.objects, *now.attached, *now.tree.links]
                if name not in known:
                    raise SceneError(f"no link or object {name!r}; {suggest_names([name], known)}")
            if b is None:
                self._snapshot = replace(now, passes={**now.passes, a: allowed})
            else:
                pair = pair_of(a, b)
                self._snapshot = replace(now, allowed={**now.allowed, pair: allowed})

    def set_padding(self, padding: float | Mapping[str, float]) -> None:
        """Set by how much shapes of links are enlarged [m]: of all links, or by link.

        Raises:
            SceneError: an unknown link, or a length that is negative or larger than 10 m.
        """
        self._change(SetPadding(self._by_link(padding)))

    def set_scale(self, scale: float | Mapping[str, float]) -> None:
        """Set the factors of the shapes of all links, or by link, about each shape's origin.

        Raises:
            SceneError: an unknown link, or a factor that is not from 0.01 to 100.
        """
        self._change(SetScale(self._by_link(scale)))

    def load(
        self,
        source: Any,
        *,
        folder: str | os.PathLike[str] | None = None,
        allow: Iterable[str | os.PathLike[str]] = (),
    ) -> tuple[str, ...]:
        """Apply a scene of MoveIt, whole or not at all.

        Args:
            source: A file (``.scene``, YAML), its text, a message (moveit_msgs/PlanningScene, full
                or a difference, CollisionObject, AttachedCollisionObject), or a mapping like one.
            folder: To which files of meshes are relative; default: that of the file.
            allow: Folders in which meshes may be read, beside those given for the robot.

        Returns:
            A line for each part without effect, such as an octomap, joints that the robot does not
            have, or the removal of an object that is not there.

        Raises:
            SceneError: not a scene, or one that does not fit the robot; the scene stays as it was.
        """
        change = read_scene(source, folder=folder, allow=(*self._allow, *allow))
        change = for_scene(change, self._snapshot)
        try:
            self._change(*change.operations)
        except SceneError as error:
            raise SceneError(f"{change.source}{error}") from error
        return change.notes

    def apply(
        self,
        operations: Iterable[Operation],
        at: Mapping[str, float] | None = None,
        *,
        prepare: bool = True,
    ) -> SceneSnapshot:
        """Apply changes, whole or not at all.

        Args:
            at: Joint values [rad or m] of links that changes name as frames, or that take and leave
                objects, in place of those of the scene.
            prepare: Prepare before what the first question needs.

        Returns:
            The scene after them.

        Raises:
            SceneError: as :meth:`load`; the scene stays as it was.
            JointValueError: as :meth:`set_joints`.
        """
        with self._lock:
            after = apply_changes(self._snapshot, operations, self.pairs, at)
            if prepare:
                _ = after.packed
            self._snapshot = after
        return after

    def with_snapshot(self, snapshot: SceneSnapshot) -> PlanningScene:
        """Return a scene of the same robot that stands as a snapshot of it; changed apart."""
        other = copy(self)
        other._lock, other._snapshot = Lock(), snapshot
        return other

    def replace_snapshot(self, snapshot: SceneSnapshot) -> None:
        """Stand as a snapshot of the same robot from now on."""
        with self._lock:
            self._snapshot = snapshot

    def take_over(self, other: PlanningScene) -> tuple[str, ...]:
        """Take the objects, the state and the changed pairs of another scene.

        That scene may be of another robot. Objects of the world and frames are taken if both robots
        have the same root link, attached objects if this robot has the link that carries them.

        Returns:
            The names of objects that are left out.
        """
        before = other.snapshot
        with self._lock:
            links, now = self._snapshot.tree.child_joints, self._snapshot
            has_root = now.tree.root == before.tree.root
            placed = before.objects if has_root else {}
            objects = {name: each for name, each in placed.items() if name not in links}
            attached = {
                name: each
                for name, each in before.attached.items()
                if each.link in links and name not in links
            }
            frames = {name: T for name, T in before.frames.items() if has_root}
            self._snapshot = replace(
                now,
                values={name: v for name, v in before.values.items() if name in now.tree.joint},
                objects=objects,
                attached=attached,
                padding={link: d for link, d in before.padding.items() if link in links},
                scale={link: s for link, s in before.scale.items() if link in links},
                frames={**frames, **now.frames},
            )
            self._take_changed_pairs(other)
        names = (*before.objects, *before.attached)
        return tuple(name for name in names if name not in objects and name not in attached)

    def _take_changed_pairs(self, other: PlanningScene) -> None:
        """Take the pairs that may touch from another scene, as far as they were changed there."""
        now, before = self._snapshot, other.snapshot
        default = dict.fromkeys(other.pairs, True)
        if before.allowed == default and not before.passes:
            return
        allowed, passes = before.allowed, before.passes
        if now.tree is not before.tree:
            known = {*now.tree.child_joints, *now.objects, *now.attached}
            changed = {
                pair: value
                for pair, value in allowed.items()
                if default.get(pair) != value and known.issuperset(pair)
            }
            removed = default.keys() - allowed.keys()
            kept = {pair: value for pair, value in now.allowed.items() if pair not in removed}
            allowed = {**kept, **changed}
            passes = {name: value for name, value in passes.items() if name in known}
        self._snapshot = replace(now, allowed=allowed, passes=passes)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the scene, as MoveIt reads it too.

        Args:
            path: ``.yaml``: the whole scene, a message moveit_msgs/PlanningScene; ``.scene``: the
                objects of the world. A capsule becomes a cylinder and two spheres.

        Raises:
            SceneError: another ending, or an object that the format does not have.
            OSError: the file cannot be written.
        """
        suffix = Path(path).suffix
        if suffix == ".scene":
            text = scene_text(self._snapshot.objects, self.robot.name)
        elif suffix in (".yaml", ".yml"):
            text = yaml_text(scene_fields(self._snapshot, self.robot.name))
        else:
            shown = quoted(os.fspath(path))
            raise SceneError(f"a scene is saved as .scene, .yaml or .yml, not as {shown}")
        Path(path).write_text(text, encoding="utf-8")

    def _change(self, *operations: Operation) -> None:
        with self._lock:
            self._apply(operations)

    def _apply(
        self, operations: Iterable[Operation], at: Mapping[str, float] | None = None
    ) -> None:
        self._snapshot = apply_changes(self._snapshot, operations, self.pairs, at)

    def _named(self, q: JointValues | None) -> dict[str, float] | None:
        return None if q is None else self.robot.named(self.robot.validated_one(q))

    def _by_link(self, given: float | Mapping[str, float]) -> Mapping[str, float]:
        if isinstance(given, Mapping):
            return given
        return dict.fromkeys(self._snapshot.links, given)

    # Questions

    def in_collision(self, q: JointValues) -> bool | NDArray[np.bool_]:
        """Test configurations: what is said to be free is, and what is said to collide does.

        Args:
            q: (n,) or (b, n).

        Returns:
            A bool, or (b,).

        Raises:
            JointValueError: as :meth:`dls_ik.RobotModel.validated`.
            SceneError: an exact check is needed, and coal is not installed.
        """
        values = self.robot.validated(q)
        if values.ndim == 1:
            return self._snapshot.colliding_pair(values) is not None
        return self._snapshot.in_collision(values)

    def distance(self, q: JointValues) -> ClosestPair | None:
        """Find the closest pair at q (n,): distance, names, nearest points, normal.

        Returns:
            None if no pair is checked.

        Raises:
            JointValueError: as :meth:`in_collision`, and for a batch.
            SceneError: as :meth:`in_collision`.
        """
        return self._snapshot.distance(self.robot.validated_one(q))

    def contacts(self, q: JointValues) -> tuple[Contact, ...]:
        """Return the contacts of all pairs that collide at q (n,), the deepest first.

        Raises:
            JointValueError, SceneError: as :meth:`distance`.
        """
        return self._snapshot.contacts(self.robot.validated_one(q))

    def clearance(self, q: JointValues, within: float = np.inf) -> dict[Pair, float]:
        """Return the distance [m] of each pair at q (n,), the closest first.

        Args:
            within: Leave out pairs that are farther apart [m], which saves their exact distances.

        Raises:
            JointValueError, SceneError: as :meth:`distance`.
        """
        return self._snapshot.clearance(self.robot.validated_one(q), within)

    def path_in_collision(self, q0: JointValues, q1: JointValues) -> PathContact | None:
        """Find the first contact on the straight joint path between q0 and q1, (n,) each.

        No step can jump through a thing, however thin. Shapes nearer than 1e-5 m count as touching.

        Returns:
            The time, 0 at q0 and 1 at q1, and the names of the pair; None if the path is free.

        Raises:
            JointValueError, SceneError: as :meth:`distance`.
        """
        return self._snapshot.path_in_collision(
            self.robot.validated_one(q0), self.robot.validated_one(q1)
        )

    def plan(
        self,
        q0: JointValues,
        q1: JointValues,
        *,
        min_distance: float = 0.0,
        max_nodes: int = MAX_TREE_NODES,
        seed: int = 0,
    ) -> JointPath:
        """Find a way from q0 (n,) to q1 that is free of collisions.

        The straight joint path, or one with corners by RRT-Connect (Kuffner & LaValle 2000),
        shortened. All of it is certain to be free, not only samples. The same input leads to the
        same way.

        Args:
            q1: (n,), or (g, n): to any of these, the first one before others.
            min_distance: Distance [m] that pairs keep; a pair that is nearer at an end leaves from
                there.
            max_nodes: Configurations after which the search gives up.
            seed: Seed of random configurations.

        Returns:
            The way: ``q`` (m, n) from q0 on, joined by straight joint paths. Without success ``q``
            is empty, and ``names`` has a pair in the way.

        Raises:
            JointValueError: as :meth:`distance`.
            OptionError: a distance or number below 0, or one that is not finite.
            SceneError: as :meth:`distance`.
        """
        start, goals = self.robot.validated_one(q0), np.atleast_2d(self.robot.validated(q1))
        if not 0.0 <= min_distance < np.inf:
            raise OptionError(f"min_distance is at least 0 [m], not {quoted(min_distance)}")
        limits = path_limits(self.robot, start, goals, max_nodes, seed)
        pairs = path_pairs(self._snapshot, min_distance)
        return plan_path(self._snapshot, start, goals, limits, pairs)


def _pose(name: str, given: PoseLike) -> Array:
    return checked_pose(pose_matrix(given, position_only=True), f"the pose of {name!r}")
