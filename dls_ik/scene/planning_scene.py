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
from dls_ik.model.tree import Tree
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

    Coordinates are in the frame of the robot's root link [m]. A change is applied as a whole, or
    not at all if it is not valid. Queries and solvers read an immutable snapshot of the scene, and
    each change replaces the snapshot. Therefore every query and every solver run sees a consistent
    world.
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
            robot: Robot. A configuration q (n,) has the positions of the joints of its chain. All
                other joints of its tree are at 0, or at the limit closest to 0, until
                :meth:`set_joints` changes their positions.
            srdf: Path or text of an SRDF, which defines the pairs of links that are not checked.
                None to find pairs that need no check by random sampling.
            bodies: Collision geometry by link; None for the collision geometry in the URDF.
            allow: Folders from which meshes may be read, in addition to the folder of the URDF and
                to ROS packages.
            exact: Whether the library coal checks pairs for which bounding spheres show neither a
                collision nor its absence. If False, coal is not needed, and such undecided pairs
                count as collisions: shapes that touch are always reported, but shapes up to a few
                millimetres apart may be reported as well.

        Raises:
            SceneError: If the robot has no collision geometry, the geometry is not valid, or `srdf`
                is not an SRDF.
        """
        self.robot, tree = checked_robot(robot), robot.tree
        self._allow = tuple(allow)
        kept: dict[str, Any] = {}
        if bodies is None:
            if tree.description is None:
                raise SceneError(
                    f"{robot.name} was not read from a URDF and has no collision geometry; give "
                    "bodies={'LINK': Body(...)}"
                )
            bodies, kept = _robot_geometry(tree, self._allow)
        else:
            bodies = dict(bodies)  # the caller may change its mapping later
        if srdf is None or isinstance(srdf, Srdf):
            self.srdf = srdf
        else:
            self.srdf = load_srdf(srdf, tree)
        empty = SceneSnapshot(tree, robot.joint_names, bodies, {}, exact=exact, kept=kept)
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
        """For each attached object, by its name, the name of the link that carries the object."""
        return {name: each.link for name, each in self._snapshot.attached.items()}

    def __repr__(self) -> str:
        """Return a text with the name of the robot and the numbers of links and objects."""
        now = self._snapshot
        held = f", {len(now.attached)} attached" if now.attached else ""
        return (
            f"PlanningScene({self.robot.name}, {len(now.links)} links with geometry, "
            f"{len(now.objects)} objects{held})"
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return all attributes except the lock, for pickling and copying."""
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the attributes after pickling or copying, with a new lock."""
        vars(self).update(state)
        self._lock = Lock()

    def copy(self) -> PlanningScene:
        """Return a copy of the scene; changes of the copy do not affect this scene."""
        return copy(self)

    # Changes

    def set_joints(self, values: Mapping[str, float]) -> None:
        """Set positions of joints, given as a mapping from joint name to position [rad or m].

        The joints may be inside or outside the chain. The position of a joint of the chain is used
        only in methods that need poses of links and are called without a configuration q.

        Raises:
            JointValueError: If a joint is unknown, or a position is not finite.
        """
        if not isinstance(values, Mapping):
            raise JointValueError(f"joints must be given as a dict by name; got {quoted(values)}")
        self._change(SetJoints(values))

    def add(
        self, name: str, parts: Iterable[tuple[Shape, Any]] | Shape, T: PoseLike | None = None
    ) -> None:
        """Add an object to the world, or replace the object of the same name.

        Args:
            name: Name of the object.
            parts: A shape, or several shapes, each with its pose ``T_object_shape`` (4, 4).
            T: ``T_root_object``, a matrix (4, 4), a pose in another form, or a position (3,); None
                for the identity.

        Raises:
            SceneError: If the name is empty or the name of a link, or the pose is not rigid.
        """
        several = ((parts, np.eye(4)),) if isinstance(parts, Shape) else tuple(parts)
        pose = np.eye(4) if T is None else _pose(name, T)
        self._change(AddObject(name, several, "", pose, {}, False))

    def add_box(self, name: str, size: Any, T: PoseLike | None = None) -> None:
        """Add a box to the world, or replace the object of the same name.

        Args:
            name: Name of the object.
            size: (3,) edge lengths [m].
            T: Pose of the centre in the root link's frame; see :meth:`add`.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Box(size), T)

    def add_sphere(self, name: str, radius: float, T: PoseLike | None = None) -> None:
        """Add a sphere to the world, or replace the object of the same name.

        Args:
            name: Name of the object.
            radius: Radius [m].
            T: Pose of the centre in the root link's frame; see :meth:`add`.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Sphere(radius), T)

    def add_cylinder(
        self, name: str, radius: float, length: float, T: PoseLike | None = None
    ) -> None:
        """Add a cylinder to the world, or replace the object of the same name.

        Args:
            name: Name of the object.
            radius: Radius [m].
            length: Length along the z axis of T [m].
            T: Pose of the centre in the root link's frame; see :meth:`add`.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Cylinder(radius, length), T)

    def add_capsule(
        self, name: str, radius: float, length: float, T: PoseLike | None = None
    ) -> None:
        """Add a capsule to the world, or replace the object of the same name.

        A capsule is a cylinder with a hemisphere at each end.

        Args:
            name: Name of the object.
            radius: Radius of the cylinder and of the hemispheres [m].
            length: Length of the cylinder along the z axis of T [m].
            T: Pose of the centre in the root link's frame; see :meth:`add`.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or a size is not positive.
        """
        self.add(name, Capsule(radius, length), T)

    def add_mesh(self, name: str, vertices: Any, triangles: Any, T: PoseLike | None = None) -> None:
        """Add a mesh to the world, or replace the object of the same name.

        A watertight mesh is a solid, any other mesh a surface.

        Args:
            name: Name of the object.
            vertices: (k, 3) vertices in the object's frame [m].
            triangles: (m, 3) vertex indices, counter-clockwise seen from outside.
            T: Pose of the object in the root link's frame; see :meth:`add`.

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or the mesh is not valid or
                too large.
        """
        self.add(name, Mesh(vertices, triangles), T)

    def add_plane(self, name: str, normal: Any = (0.0, 0.0, 1.0), offset: float = 0.0) -> None:
        """Add the half-space ``normal . x <= offset``, such as a floor, to the world.

        Args:
            name: Name of the object; an object of the same name is replaced.
            normal: (3,) vector that points out of the solid half-space, in the root link's frame.
            offset: Distance of the boundary plane from the root frame along the normal [m].

        Raises:
            SceneError: If the object cannot be added (see :meth:`add`), or the normal is zero.
        """
        self.add(name, Plane(normal, offset))

    def move(self, name: str, T: PoseLike) -> None:
        """Move an object of the world.

        Args:
            name: Name of the object.
            T: New pose ``T_root_object``; see :meth:`add`.

        Raises:
            SceneError: If the object is unknown, or the pose is not rigid.
        """
        self._change(MoveObject(name, "", _pose(name, T)))

    def remove(self, name: str) -> None:
        """Remove the object of the world with a given name.

        Raises:
            SceneError: If there is no such object.
        """
        with self._lock:
            known_object(self._snapshot, name)
            self._apply((RemoveObject(name),))

    def clear(self) -> None:
        """Remove all objects of the world and all attached objects."""
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
            touch_links: Links, other than `link`, that the object may touch.
            T: ``T_link_object``, a matrix (4, 4) or a pose in another form. None for the pose that
                the object in the world has relative to the link at configuration q.
            q: Configuration (n,) of the robot; None for the positions set by :meth:`set_joints`.

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
        """Move an attached object into the world, at its current pose.

        Args:
            name: Name of the object.
            q: Configuration (n,) of the robot, which determines the pose; None for the positions
                set by :meth:`set_joints`.

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
        """Allow or forbid contact of a link or object with another one, or with all others.

        Args:
            a: Name of a link or object.
            b: Name of another link or object. None for all others; rules that were set for a pair
                of names, and pairs that may touch by default, have precedence.
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
        """Set the padding, a distance by which the shapes of a link are enlarged on all sides.

        Args:
            padding: Padding of all links with geometry [m], or a mapping from links to paddings.

        Raises:
            SceneError: If a link is unknown, or a padding is not from 0 to 10 m.
        """
        self._change(SetPadding(self._by_link(padding)))

    def set_scale(self, scale: float | Mapping[str, float]) -> None:
        """Set the factor by which each shape of a link is scaled about the origin of the shape.

        Args:
            scale: Factor for all links with geometry, or a mapping from links to factors.

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
        """Apply a scene, or a difference of a scene, in a format of MoveIt.

        The scene is applied as a whole, or not at all if it is not valid.

        Args:
            source: Path of a file (``.scene`` or YAML); text of such a file; a message of type
                moveit_msgs/PlanningScene (full or as a difference), CollisionObject or
                AttachedCollisionObject; or a mapping with the same fields as a message.
            folder: Folder to which relative paths of mesh files refer; None for the folder of the
                file.
            allow: Folders from which meshes may be read, in addition to the folders that were
                allowed when the scene was created.

        Returns:
            One line of text for each part of the source without effect, such as an octomap, joints
            that the robot does not have, or the removal of an unknown object.

        Raises:
            SceneError: If the source is not a valid scene, or contains a link or frame that the
                robot does not have. In this case the scene is unchanged.
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
        """Apply operations that change the scene: all of them, or none if one is not possible.

        Args:
            operations: Operations, applied in order.
            at: Joint positions by name [rad or m] at which the poses of links are computed. Joints
                that are missing have their positions in the scene.
            prepare: Whether to build the arrays for queries now instead of in the first query.
            budget: Work for the spheres of new shapes, which are then fitted now even if `prepare`
                is False; None: a new budget for each snapshot.

        Returns:
            The new snapshot.

        Raises:
            SceneError: If an operation is not possible. In this case the scene is unchanged.
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
        """Return a copy of this scene whose current snapshot is the given snapshot.

        Later changes of one of the scenes do not affect the other scene.

        Args:
            snapshot: Snapshot of a scene with the same robot.
        """
        other = copy(self)
        other._lock, other._snapshot = Lock(), snapshot
        return other

    def replace_snapshot(self, snapshot: SceneSnapshot) -> None:
        """Replace the current snapshot by a given snapshot of a scene with the same robot."""
        with self._lock:
            self._snapshot = snapshot

    def take_over(self, other: PlanningScene) -> tuple[str, ...]:
        """Copy the state of another scene, which may belong to another robot, as far as possible.

        Joint positions, paddings and scales are copied if this robot has the joint or link. Objects
        of the world and frames are copied if the root links of both robots have the same name. An
        attached object is copied if this robot has the link that carries the object. Rules about
        which links and objects may touch are copied if they were changed in the other scene.

        Args:
            other: The other scene, which is not changed.

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
        """Copy rules about which links and objects may touch from another scene.

        Only rules that differ from the default rules of the other scene are copied.
        """
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
                scene as a message moveit_msgs/PlanningScene. If the path ends with ``.scene``, the
                file contains only the objects of the world. A capsule is written as a cylinder and
                two spheres.

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
        """Apply operations in order; acquire the lock of the scene meanwhile."""
        with self._lock:
            self._apply(operations)

    def _apply(
        self, operations: Iterable[Operation], at: Mapping[str, float] | None = None
    ) -> None:
        """Apply operations in order; the caller must hold the lock of the scene.

        Args:
            operations: Operations.
            at: Joint positions by name [rad or m] at which the poses of links are computed. Joints
                that are missing have their positions in the scene.
        """
        self._snapshot = apply_changes(self._snapshot, operations, self.pairs, at)

    def _named(self, q: JointValues | None) -> dict[str, float] | None:
        """Return a configuration q (n,) as a mapping from joint name to position [rad or m].

        The result is None if q is None.
        """
        return None if q is None else self.robot.named(self.robot.validated_one(q))

    def _by_link(self, given: float | Mapping[str, float]) -> Mapping[str, float]:
        """Return a padding or scale factor by link.

        Args:
            given: Mapping by link, which is returned unchanged, or a number for all links with
                geometry.
        """
        if isinstance(given, Mapping):
            return given
        return dict.fromkeys(self._snapshot.links, given)

    # Queries

    def in_collision(self, q: JointValues) -> bool | NDArray[np.bool_]:
        """Return whether configurations are in collision.

        If the scene was created with ``exact=True``, every answer is certain. Otherwise True may be
        wrong if shapes are up to a few millimetres apart.

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

        Pairs that may touch are not considered.

        Returns:
            Distance, names, closest points and normal of the pair; None if all pairs may touch.

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
        """Return the distances [m] of pairs of links or objects at a configuration.

        The result is a mapping from the names of a pair to its distance, in ascending order of the
        distances. Pairs that may touch are left out.

        Args:
            q: (n,) configuration [rad or m].
            within: Only pairs closer than this distance [m] are returned; a small value saves time.

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
            Names of the pair, and the time of the contact (0 at q0, 1 at q1); None if there is no
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

        The result is the straight joint path if it is collision-free. Otherwise RRT-Connect
        (Kuffner & LaValle 2000) searches for a path, which is then shortened. The path is proven
        collision-free along its whole length, not only at samples. Equal arguments give equal
        results.

        Args:
            q0: Start (n,) [rad or m]. It may be outside the joint limits, because measured joint
                positions can be.
            q1: Goal (n,), or several alternative goals (g, n) in order of preference [rad or m].
            min_distance: Minimum distance of every pair of shapes along the path [m]. A pair that
                is closer at the start may also be closer on the first segment of the path, and a
                pair that is closer at the goal on the last segment.
            max_nodes: Maximum number of configurations in the search trees.
            seed: Seed of the random configurations.

        Returns:
            The path: its attribute ``q`` (m, n) contains the waypoints from q0 to one of the goals,
            which straight joint paths join [rad or m]. If no path was found, ``q`` is empty, and
            ``names`` is a pair that blocks the path.

        Raises:
            JointValueError: If a configuration is not valid, or a goal is outside the joint limits.
            OptionError: If `min_distance`, `max_nodes` or `seed` is not valid.
            SceneError: If an exact collision check needs the library coal, which is not installed.
        """
        start, goals = self.robot.validated_one(q0), np.atleast_2d(self.robot.validated(q1))
        for goal in goals:
            _check_within_limits(self.robot, goal)
        if not 0.0 <= min_distance < np.inf:
            raise OptionError(
                f"min_distance must be at least 0 [m], and finite; got {quoted(min_distance)}"
            )
        limits = path_limits(self.robot, start, goals, max_nodes, seed)
        pairs = path_pairs(self._snapshot, min_distance)
        return plan_path(self._snapshot, start, goals, limits, pairs)


def _check_within_limits(robot: RobotModel, goal: Array) -> None:
    """Check that a goal is within the joint limits.

    Args:
        robot: Robot with the limits.
        goal: (n,) joint positions [rad or m].

    Raises:
        JointValueError: If a joint is outside its limits; the message names the joint.
    """
    for i in np.flatnonzero((goal < robot.lower) | (goal > robot.upper)):
        raise JointValueError(
            f"a goal must be within the joint limits: joint {quoted(robot.joint_names[i])} must be "
            f"from {robot.lower[i]:g} to {robot.upper[i]:g} [{robot.units[i]}]; got {goal[i]:g}"
        )


def _robot_geometry(
    tree: Tree, allow: tuple[str | os.PathLike[str], ...]
) -> tuple[Mapping[str, Body], dict[str, Any]]:
    """Return the collision geometry of a robot by link, and a cache of results for a new scene.

    Mesh files are read only for the first scene of a kinematic tree. Later scenes of the tree use
    the same geometry, and start with a copy of the cache of the first scene. Each scene then writes
    to its own cache.

    Args:
        tree: Kinematic tree of the robot, made from a robot description.
        allow: Folders from which meshes may be read, see :func:`link_bodies`.

    Raises:
        SceneError: If a shape is not valid, or a mesh cannot be read.
    """
    key = "collision geometry", tuple(os.fspath(folder) for folder in allow)
    first: dict[str, Any] = {}
    if key not in tree.derived and tree.description is not None:
        bodies = link_bodies(tree.description, allow)
        tree.derived[key] = bodies, first
        return bodies, first
    bodies, first = tree.derived[key]
    return bodies, dict(first)


def _pose(name: str, given: PoseLike) -> Array:
    """Return the pose of an object as a matrix (4, 4) [m].

    Args:
        name: Name of the object for the error message.
        given: Pose in any form, or a position (3,).

    Raises:
        SceneError: If the pose is not a rigid transform.
    """
    return checked_pose(pose_matrix(given, position_only=True), f"the pose of {name!r}")
