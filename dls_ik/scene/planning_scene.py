# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The planning scene: collision geometry of a robot, objects around it, and allowed contacts."""

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
from dls_ik.scene.sphere_fit import WorkBudget
from dls_ik.scene.srdf import Pair, Srdf, load_srdf, pair_of
from dls_ik.text import quoted, suggest_names


class PlanningScene:
    """Collision geometry of a robot and objects of its world, as in MoveIt's planning scene.

    Coordinates are in the frame of the robot's root link [m]. A change is applied as a whole or not
    at all. Each change replaces the immutable snapshot from which queries and solvers read;
    therefore every query and every solver run sees a consistent world.
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
        """Read the robot's collision geometry, and determine which links may touch.

        Args:
            robot: Robot. Configurations q (n,) have the positions of its joints. All other joints
                of the tree are at 0, or at the limit closest to 0, until :meth:`set_joints`.
            srdf: File or text of an SRDF with the pairs of links that are not checked. None: the
                pairs that need no check are found by random sampling.
            bodies: Collision geometry by link; None: the collision geometry of the URDF.
            allow: Folders from which meshes may be read, in addition to the folder of the URDF and
                to ROS packages.
            exact: Whether the library coal decides pairs that bounding spheres leave undecided. If
                False, coal is not needed, and undecided pairs count as collisions: shapes that
                touch are always reported, but shapes up to a few millimetres apart may be reported
                as well.

        Raises:
            SceneError: If the robot has no collision geometry, the geometry is not usable, or
                `srdf` is not an SRDF.
        """
        self.robot, tree = checked_robot(robot), robot.tree
        self._allow = tuple(allow)
        if bodies is None:
            if tree.description is None:
                raise SceneError(
                    f"{robot.name} was not read from a URDF and has no collision geometry; give "
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
        """Current snapshot of the scene; later changes of the scene do not affect the snapshot."""
        return self._snapshot

    @property
    def objects(self) -> dict[str, Array]:
        """``T_root_object`` (4, 4) of the objects of the world, by name."""
        return {name: each.T for name, each in self._snapshot.objects.items()}

    @property
    def attached(self) -> dict[str, str]:
        """Names of the links that carry attached objects, by the name of the object."""
        return {name: each.link for name, each in self._snapshot.attached.items()}

    def __repr__(self) -> str:
        """Return the robot and the numbers of links and objects."""
        now = self._snapshot
        held = f", {len(now.attached)} attached" if now.attached else ""
        return (
            f"PlanningScene({self.robot.name}, {len(now.links)} links with geometry, "
            f"{len(now.objects)} objects{held})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return the content for pickling and copying."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the content after pickling or copying."""
        vars(self).update(state)
        self._lock = Lock()

    def copy(self) -> PlanningScene:
        """Return an independent copy of the scene."""
        return copy(self)

    # Changes

    def set_joints(self, values: Mapping[str, float]) -> None:
        """Set positions of joints by name [rad or m].

        Joints outside the chain keep these positions. For a joint of the chain, the position is
        used where a method needs link poses and no configuration q is given.

        Raises:
            JointValueError: If a joint is unknown, or a position is not finite.
        """
        if not isinstance(values, Mapping):
            raise JointValueError(f"joints must be given as a dict by name; got {quoted(values)}")
        self._change(SetJoints(values))

    def add(
        self, name: str, parts: Iterable[tuple[Shape, Any]] | Shape, T: PoseLike | None = None
    ) -> None:
        """Add an object, or replace the object of the same name.

        Args:
            name: Name of the object.
            parts: A shape, or several shapes, each with ``T_object_shape`` (4, 4).
            T: ``T_root_object`` (4, 4), a pose in another form, or a position (3,). None: the
                identity.

        Raises:
            SceneError: If the name is empty or the name of a link, or the pose is not rigid.
        """
        several = ((parts, np.eye(4)),) if isinstance(parts, Shape) else tuple(parts)
        pose = np.eye(4) if T is None else _pose(name, T)
        self._change(AddObject(name, several, "", pose, {}, False))

    def add_box(self, name: str, size: Any, T: PoseLike | None = None) -> None:
        """Add a box with edge lengths (3,) [m] and its centre at T (4, 4).

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Box(size), T)

    def add_sphere(self, name: str, radius: float, T: PoseLike | None = None) -> None:
        """Add a sphere with a radius [m] and its centre at T (4, 4).

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Sphere(radius), T)

    def add_cylinder(
        self, name: str, radius: float, length: float, T: PoseLike | None = None
    ) -> None:
        """Add a cylinder of a radius and length [m] about the z axis of T (4, 4), centred at T.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Cylinder(radius, length), T)

    def add_capsule(
        self, name: str, radius: float, length: float, T: PoseLike | None = None
    ) -> None:
        """Add a capsule about the z axis of T (4, 4), centred at T.

        A capsule is a cylinder of a radius and length [m] with a hemisphere at each end.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Capsule(radius, length), T)

    def add_mesh(self, name: str, vertices: Any, triangles: Any, T: PoseLike | None = None) -> None:
        """Add a mesh with vertices (k, 3) [m] and triangles (m, 3); watertight meshes are solid.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or the mesh is not valid or
                too large.
        """
        self.add(name, Mesh(vertices, triangles), T)

    def add_plane(self, name: str, normal: Any = (0.0, 0.0, 1.0), offset: float = 0.0) -> None:
        """Add the half-space ``normal . x <= offset`` [m], such as a floor.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or the normal is zero.
        """
        self.add(name, Plane(normal, offset))

    def move(self, name: str, T: PoseLike) -> None:
        """Move an object of the world to T (4, 4) ``T_root_object``.

        Raises:
            SceneError: If the object is unknown, or the pose is not rigid.
        """
        self._change(MoveObject(name, "", _pose(name, T)))

    def remove(self, name: str) -> None:
        """Remove an object of the world.

        Raises:
            SceneError: If the object is unknown.
        """
        with self._lock:
            known_object(self._snapshot, name)
            self._apply((RemoveObject(name),))

    def clear(self) -> None:
        """Remove all objects, including attached objects."""
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
        """Attach an object of the world to a link.

        Args:
            name: Name of the object.
            link: Link that carries the object.
            touch_links: Further links that the object may touch.
            T: ``T_link_object`` (4, 4); None: the pose relative to the link that the object has
                when the robot is at q.
            q: Configuration (n,) of the robot; None: the positions set by :meth:`set_joints`.

        Raises:
            SceneError: If the object or a link is unknown, or a shape is a plane.
            JointValueError: If q is not valid, see :meth:`dls_ik.RobotModel.validated`.
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
        """Move an attached object into the world, to its pose at the configuration q (n,).

        Without q, the positions set by :meth:`set_joints` are used.

        Raises:
            SceneError: If the object is not attached.
            JointValueError: If q is not valid, see :meth:`dls_ik.RobotModel.validated`.
        """
        with self._lock:
            attached = self._snapshot.attached
            if name not in attached:
                hint = suggest_names([name], attached)
                raise SceneError(f"no object {quoted(name)} is attached; {hint}")
            self._apply((DetachObject(name, ""),), self._named(q))

    def allow(self, a: str, b: str | None = None, allowed: bool = True) -> None:
        """Allow or forbid contact between two links or objects, or between one and all others.

        Args:
            a: Link or object.
            b: Link or object; None: all others, except those whose pair with `a` was set by name.
            allowed: Whether contact is allowed.

        Raises:
            SceneError: If a name is unknown.
        """
        with self._lock:
            now = self._snapshot
            for name in (a,) if b is None else (a, b):
                known = [*now.objects, *now.attached, *now.tree.links]
                if name not in known:
                    hint = suggest_names([name], known)
                    raise SceneError(f"there is no link or object {name!r}; {hint}")
            if b is None:
                self._snapshot = replace(now, passes={**now.passes, a: allowed})
            else:
                pair = pair_of(a, b)
                self._snapshot = replace(now, allowed={**now.allowed, pair: allowed})

    def set_padding(self, padding: float | Mapping[str, float]) -> None:
        """Set the padding [m] that enlarges the shapes of links: one number, or numbers by link.

        Raises:
            SceneError: If a link is unknown, or a padding is not from 0 to 10 m.
        """
        self._change(SetPadding(self._by_link(padding)))

    def set_scale(self, scale: float | Mapping[str, float]) -> None:
        """Set the factor that scales the shapes of links: one number, or numbers by link.

        Each shape is scaled about its origin.

        Raises:
            SceneError: If a link is unknown, or a factor is not from 0.01 to 100.
        """
        self._change(SetScale(self._by_link(scale)))

    def load(
        self,
        source: Any,
        *,
        folder: str | os.PathLike[str] | None = None,
        allow: Iterable[str | os.PathLike[str]] = (),
    ) -> tuple[str, ...]:
        """Apply a scene of MoveIt, as a whole or not at all.

        Args:
            source: A file (``.scene`` or YAML); the text of such a file; a message of type
                moveit_msgs/PlanningScene (full or as a difference), CollisionObject or
                AttachedCollisionObject; or a mapping with the same fields as a message.
            folder: Folder for relative paths of mesh files; None: the folder of the file.
            allow: Folders from which meshes may be read, in addition to the folders that were
                allowed when the scene was created.

        Returns:
            One line of text for each part without effect, such as an octomap, joints that the robot
            does not have, or the removal of an unknown object.

        Raises:
            SceneError: If the source is not a scene or does not fit the robot; the scene is then
                unchanged.
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
        budget: WorkBudget | None = None,
    ) -> SceneSnapshot:
        """Apply changes, as a whole or not at all.

        Args:
            operations: Changes, applied in order.
            at: Joint positions by name [rad or m] at which the poses of links are computed; None:
                the joint positions of the scene.
            prepare: Whether to build the arrays for queries now instead of in the first query.
            budget: Work for the spheres of new shapes, which are then fitted now even if `prepare`
                is False; None: a new budget for each snapshot.

        Returns:
            The new snapshot.

        Raises:
            SceneError: If a change is not possible; the scene is then unchanged.
            JointValueError: If a joint is unknown, or a position is not finite.
        """
        with self._lock:
            after = apply_changes(self._snapshot, operations, self.pairs, at)
            if budget is not None:
                after.fit_shapes(budget)
            if prepare:
                _ = after.packed
            self._snapshot = after
        return after

    def with_snapshot(self, snapshot: SceneSnapshot) -> PlanningScene:
        """Return an independent scene of the same robot with a given snapshot."""
        other = copy(self)
        other._lock, other._snapshot = Lock(), snapshot
        return other

    def replace_snapshot(self, snapshot: SceneSnapshot) -> None:
        """Replace the current snapshot by another snapshot of the same robot."""
        with self._lock:
            self._snapshot = snapshot

    def take_over(self, other: PlanningScene) -> tuple[str, ...]:
        """Copy objects, joint positions and changed pairs from another scene.

        The other scene may belong to another robot. Objects of the world and frames are copied if
        both robots have the same root link. An attached object is copied if this robot has the link
        that carries the object.

        Returns:
            Names of the objects that were not copied.
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
        """Copy from another scene which pairs may touch, for pairs whose rule was changed there."""
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
        """Write the scene to a file that MoveIt can also read.

        Args:
            path: Path of the file. If the path ends with ``.yaml``, the file contains the whole
                scene as a message moveit_msgs/PlanningScene; if the path ends with ``.scene``, only
                the objects of the world. A capsule is written as a cylinder and two spheres.

        Raises:
            SceneError: If the ending of the path is not valid, or the format does not support an
                object.
            OSError: If the file cannot be written.
        """
        suffix = Path(path).suffix
        if suffix == ".scene":
            text = scene_text(self._snapshot.objects, self.robot.name)
        elif suffix in (".yaml", ".yml"):
            text = yaml_text(scene_fields(self._snapshot, self.robot.name))
        else:
            shown = quoted(os.fspath(path))
            raise SceneError(f"a scene file must end in .scene, .yaml or .yml; got {shown}")
        Path(path).write_text(text, encoding="utf-8")

    def _change(self, *operations: Operation) -> None:
        """Take the lock and apply operations."""
        with self._lock:
            self._apply(operations)

    def _apply(
        self, operations: Iterable[Operation], at: Mapping[str, float] | None = None
    ) -> None:
        """Apply operations while the caller holds the lock.

        Args:
            operations: Operations, applied in order.
            at: Joint positions by name [rad or m] at which the poses of links are computed; None:
                the joint positions of the scene.
        """
        self._snapshot = apply_changes(self._snapshot, operations, self.pairs, at)

    def _named(self, q: JointValues | None) -> dict[str, float] | None:
        """Return the positions by joint name of a configuration q (n,); None if q is None."""
        return None if q is None else self.robot.named(self.robot.validated_one(q))

    def _by_link(self, given: float | Mapping[str, float]) -> Mapping[str, float]:
        """Return values by link; a single number is the value of all links with geometry."""
        if isinstance(given, Mapping):
            return given
        return dict.fromkeys(self._snapshot.links, given)

    # Queries

    def in_collision(self, q: JointValues) -> bool | NDArray[np.bool_]:
        """Return whether configurations are in collision.

        If the scene is `exact`, every answer is certain. Otherwise only the answer False is
        certain.

        Args:
            q: One configuration (n,) or several configurations (b, n).

        Returns:
            A bool for one configuration, an array (b,) for several.

        Raises:
            JointValueError: If q is not valid, see :meth:`dls_ik.RobotModel.validated`.
            SceneError: If an exact check is needed, and coal is not installed.
        """
        values = self.robot.validated(q)
        if values.ndim == 1:
            return self._snapshot.colliding_pair(values) is not None
        return self._snapshot.in_collision(values)

    def distance(self, q: JointValues) -> ClosestPair | None:
        """Return the closest pair of links or objects at a configuration q (n,).

        Returns:
            Distance, names, closest points and normal of the pair; None if no pair is checked.

        Raises:
            JointValueError: If q is not a valid configuration.
            SceneError: If coal is not installed.
        """
        return self._snapshot.distance(self.robot.validated_one(q))

    def contacts(self, q: JointValues) -> tuple[Contact, ...]:
        """Return the contacts of all pairs in collision at q (n,), deepest contact first.

        Raises:
            JointValueError: If q is not a valid configuration.
            SceneError: If coal is not installed.
        """
        return self._snapshot.contacts(self.robot.validated_one(q))

    def clearance(self, q: JointValues, within: float = np.inf) -> dict[Pair, float]:
        """Return the distance [m] of each pair at a configuration q (n,), smallest first.

        Args:
            q: (n,) configuration.
            within: Only pairs closer than this distance are returned [m]; a small value saves time.

        Raises:
            JointValueError: If q is not a valid configuration.
            SceneError: If coal is not installed.
        """
        return self._snapshot.clearance(self.robot.validated_one(q), within)

    def path_in_collision(self, q0: JointValues, q1: JointValues) -> PathContact | None:
        """Return the first contact on the straight joint path from q0 (n,) to q1 (n,).

        The check is continuous and therefore never misses thin objects. Shapes closer than 1e-5 m
        count as touching.

        Returns:
            Names of the pair, and the time of the contact (0 at q0, 1 at q1); None without a
            contact.

        Raises:
            JointValueError: If q0 or q1 is not a valid configuration.
            SceneError: If an exact check is needed, and coal is not installed.
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
        """Find a collision-free joint path from q0 to q1.

        The result is the straight joint path if it is collision-free, otherwise a path that
        RRT-Connect finds and that is then shortened (Kuffner & LaValle 2000). The path is proven
        collision-free along its whole length, not only at samples. The result is deterministic.

        Args:
            q0: Start (n,).
            q1: Goal (n,), or several alternative goals (g, n) in order of preference.
            min_distance: Distance that all pairs keep along the path [m]. A pair that is closer at
                the start or at the goal may be closer near that end of the path.
            max_nodes: Maximum number of configurations in the search trees.
            seed: Seed of the random configurations.

        Returns:
            The path, whose ``q`` (m, n) starts at q0 and is joined by straight joint paths. If no
            path was found, ``q`` is empty, and ``names`` is a pair that blocks the path.

        Raises:
            JointValueError: If a configuration is not valid.
            OptionError: If a number is negative or not finite.
            SceneError: If an exact check is needed, and coal is not installed.
        """
        start, goals = self.robot.validated_one(q0), np.atleast_2d(self.robot.validated(q1))
        if not 0.0 <= min_distance < np.inf:
            raise OptionError(
                f"min_distance must be at least 0 [m], and finite; got {quoted(min_distance)}"
            )
        limits = path_limits(self.robot, start, goals, max_nodes, seed)
        pairs = path_pairs(self._snapshot, min_distance)
        return plan_path(self._snapshot, start, goals, limits, pairs)


def _pose(name: str, given: PoseLike) -> Array:
    """Return the pose (4, 4) of the object `name`, given in any form of a pose.

    Raises:
        SceneError: If the pose is not rigid.
    """
    return checked_pose(pose_matrix(given, position_only=True), f"the pose of {name!r}")
