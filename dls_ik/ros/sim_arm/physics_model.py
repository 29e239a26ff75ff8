# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""MuJoCo model of a robot and the objects around it, built from a URDF and a planning scene."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import WIDEST, Array
from dls_ik.errors import RobotModelError
from dls_ik.model.rotations import rotation_from_rpy
from dls_ik.model.tree import Description, Tree
from dls_ik.model.xml import Schema, XmlElement, read_elements
from dls_ik.ros.sim_arm.physics_shapes import (
    PhysicsError,
    SolidLibrary,
    compiled,
    mujoco,
    mujoco_pose,
)
from dls_ik.scene.shapes import Body
from dls_ik.scene.snapshot import SceneSnapshot
from dls_ik.scene.srdf import Pair, pair_of
from dls_ik.text import listing

SIMULATION_STEP = 1e-3  # [s] simulation step
DENSITY = 1000.0  # [kg/m^3] assumed density of links without a mass
ROD_RADIUS = 0.03  # [m] radius of the rods that replace links without shapes and mass
INERTIA_RADIUS = 0.05  # [m] radius of the sphere that replaces an inertia if not positive definite
NUM_LOAD_SAMPLES = 200  # random configurations used to find loads and links that always touch
ALWAYS_TOUCHING_SHARE = 0.95  # pairs that touch in this fraction of samples have no contacts
SPARE_ACCELERATION = 20.0  # [rad/s^2 or m/s^2] default effort limits allow it and twice the weight
MIN_DEFAULT_EFFORT = 1.0  # [N m or N] minimum of the default effort limit
MAX_LISTED_NAMES = 4  # maximum number of names in a note
# Pairs (contype, conaffinity) of MuJoCo, with which links collide with links and objects, but two
# objects never collide.
LINK, OBJECT = (1, 3), (2, 1)
PHYSICAL: Schema = {
    "link": {"inertial": {"origin": {}, "mass": {}, "inertia": {}}},
    "joint": {"limit": {}, "dynamics": {}},
}


# Dynamics in the URDF


class LinkMass(NamedTuple):
    """Mass, centre of mass and inertia of a link."""

    mass: float  # [kg]
    centre: Array  # (3,) centre of mass in the frame of the link [m]
    inertia: Array  # (3, 3) inertia about the centre of mass, in the axes of the link [kg m^2]


class JointData(NamedTuple):
    """Effort limit, damping and friction of a joint."""

    effort: float = 0.0  # [N m or N] effort limit; 0: not given
    damping: float = 0.0  # [N m s or N s/m] viscous damping
    friction: float = 0.0  # [N m or N] Coulomb friction


def read_dynamics(description: Description) -> tuple[dict[str, LinkMass], dict[str, JointData]]:
    """Return the dynamics that a URDF describes.

    Returns:
        Masses by link name, only of links with a mass; and effort limits, damping and friction by
        joint name.

    Raises:
        RobotModelError: If a mass, effort limit, damping or friction is negative or not a number,
            or if a centre of mass or an inertia is not finite; the message gives the line.
    """
    root = read_elements(description.urdf, PHYSICAL, "URDF", "robot", RobotModelError)
    masses = {}
    for link in root.all("link"):
        inertial = link.first("inertial")
        if inertial is not None and (mass := _mass(inertial)) is not None:
            masses[link.name()] = mass
    return masses, {joint.name(): _joint_data(joint) for joint in root.all("joint")}


def _mass(inertial: XmlElement) -> LinkMass | None:
    given, matrix = inertial.first("mass"), inertial.first("inertia")
    mass = 0.0 if given is None else _non_negative(given, "value")
    if mass == 0.0:
        return None
    centre, R = np.zeros(3), np.eye(3)
    origin = inertial.first("origin")
    if origin is not None:
        centre = np.array(origin.numbers("xyz", 3, "0 0 0"))
        R = rotation_from_rpy(*origin.numbers("rpy", 3, "0 0 0"))
    inertia = np.zeros((3, 3))
    if matrix is not None:
        xx, xy, xz, yy, yz, zz = (
            matrix.numbers(key, 1, "0")[0] for key in ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
        )
        inertia = R @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ R.T
    if not (np.isfinite(inertia).all() and np.isfinite(centre).all()):
        inertial.refuse("all numbers in <inertial> must be finite")
    return LinkMass(mass, centre, inertia)


def _joint_data(joint: XmlElement) -> JointData:
    limit, dynamics = joint.first("limit"), joint.first("dynamics")
    effort = 0.0 if limit is None else _non_negative(limit, "effort", "0")
    if dynamics is None:
        return JointData(effort)
    friction = _non_negative(dynamics, "friction", "0")
    return JointData(effort, _non_negative(dynamics, "damping", "0"), friction)


def _non_negative(element: XmlElement, key: str, default: str | None = None) -> float:
    """Return the number in the attribute `key` of an XML element; return 0 if it is infinite.

    Args:
        element: XML element.
        key: Name of the attribute.
        default: Text that replaces a missing attribute; None: the attribute must exist.

    Raises:
        RobotModelError: If the attribute is missing without a default, or is not a number of at
            least 0.
    """
    (value,) = element.numbers(key, 1, default)
    if not value >= 0.0:
        element.refuse(f"{key} of <{element.tag}> must be at least 0; got {value:g}")
    return value if value < WIDEST else 0.0


# Model


class PhysicalModel(NamedTuple):
    """Compiled MuJoCo model of a robot and objects, with the indices of joints and objects.

    The m joints are those of `RobotPhysics.joints`.
    """

    model: Any  # mujoco.MjModel
    positions: Array  # (m,) index of each joint in MuJoCo's qpos
    velocities: Array  # (m,) index of each joint in MuJoCo's qvel
    names: tuple[str, ...]  # for each MuJoCo body, the name of its link or object
    is_object: Array  # for each MuJoCo body, whether it is an object of the world
    mocap: Mapping[str, int]  # MuJoCo's mocap index by name of an object of the world


class JointLoads(NamedTuple):
    """Maximum loads of k drives over random configurations, and their effort limits."""

    inertia: Array  # (k,) [kg m^2 or kg] maximum inertia about or along the axis of each drive
    gravity: Array  # (k,) [N m or N] maximum effort needed to hold the weight
    effort: Array  # (k,) [N m or N] effort limits from the description, or default limits


class RobotPhysics:
    """Masses, drives and shapes of a robot; builds MuJoCo models of the robot and objects.

    Args:
        tree: Robot, read from a URDF.
        bodies: Shapes of the links by link name.

    Attributes:
        drives: (k,) names of the joints that have a drive.
        joints: (m,) names of the joints with a drive, then of the mimic joints.
        loads: Maximum loads and effort limits of the drives.
        notes: Warnings about missing or unusable values of the description, one line each.
        solids: Cache of meshes converted to the form that MuJoCo needs.

    Raises:
        PhysicsError: If the robot was not read from a URDF, has no moving joint, or if MuJoCo
            cannot compile the model.
        RobotModelError: If :func:`read_dynamics` finds an invalid number in the URDF.
    """

    def __init__(self, tree: Tree, bodies: Mapping[str, Body]) -> None:
        if tree.description is None:
            raise PhysicsError(
                f"physics needs a robot that was read from a URDF; {tree.name} was not read from a "
                "URDF"
            )
        self.tree, self.bodies, self.notes = tree, bodies, list[str]()
        self._library = mujoco()
        self._masses, self._data = read_dynamics(tree.description)
        self._groups = dict(_rigid_groups(tree))
        self.solids = SolidLibrary()
        usable = [joint.name for joint in tree.joints if joint.name in tree.mimic_of]
        self.drives = tuple(name for name in usable if tree.mimic_of[name].master == name)
        self.joints = (*self.drives, *(name for name in usable if name not in self.drives))
        if not self.drives:
            raise PhysicsError(f"physics needs a robot with a moving joint; {tree.name} has none")
        self._estimated = frozenset(self._without_mass())
        self._may_touch = frozenset(self._adjacent())
        self.loads = self._study()

    def build(self, scene: SceneSnapshot | None = None) -> PhysicalModel:
        """Return a model of the robot with the world objects and attached objects of a scene.

        Args:
            scene: Scene; None: no objects.

        Raises:
            PhysicsError: If MuJoCo cannot compile the model.
        """
        mj = self._library
        spec = mj.MjSpec()
        spec.compiler.degree, spec.compiler.balanceinertia = False, True
        spec.option.timestep = SIMULATION_STEP
        spec.option.integrator = mj.mjtIntegrator.mjINT_IMPLICITFAST
        parts = {self.tree.root: spec.worldbody.add_body(name=_link(self.tree.root))}
        self._fill(spec, self.tree.root, parts[self.tree.root])
        for joint in self.tree.downward:
            body = parts[joint.parent].add_body(
                name=_link(joint.child), **mujoco_pose(joint.origin)
            )
            parts[joint.child] = body
            self._fill(spec, joint.child, body)
            if joint.name in self.tree.mimic_of:
                self._add_joint(body, joint)
        self._add_drives(spec)
        names = {_link(link): link for link in self.tree.links}
        standing = list[str]()
        if scene is not None:
            for name, placed in scene.objects.items():
                body = spec.worldbody.add_body(
                    name=_object(name), mocap=True, **mujoco_pose(placed.T)
                )
                self._add_shapes(spec, body, placed.body, OBJECT, 0.0)
                standing.append(name)
            for name, held in scene.attached.items():
                body = parts[held.link].add_body(name=_object(name), **mujoco_pose(held.T))
                self._add_shapes(spec, body, held.body, LINK, 0.0)
            names |= {_object(name): name for name in (*scene.objects, *scene.attached)}
        for a, b in self._excluded(scene):
            spec.add_exclude(bodyname1=_name_of(a, self.bodies), bodyname2=_name_of(b, self.bodies))
        return self._indexed(compiled(spec), names, standing)

    def values(self, q: Array, model: PhysicalModel) -> Array:
        """Return MuJoCo's `qpos` for positions q (k,) [rad or m] of the drives.

        The result includes the positions of mimic joints, which follow from q.
        """
        found = np.zeros(model.model.nq)
        by_name = dict(zip(self.drives, q.tolist(), strict=True))
        mimics = [self.tree.mimic_of[name] for name in self.joints]
        found[model.positions] = [m.multiplier * by_name[m.master] + m.offset for m in mimics]
        return found

    # Bodies and joints of the MuJoCo specification

    def _fill(self, spec: Any, link: str, body: Any) -> None:
        """Add the mass and the shapes of a link to a body of the MuJoCo specification.

        Args:
            spec: MuJoCo specification (mujoco.MjSpec).
            link: Name of the link.
            body: Body of the specification that represents the link.
        """
        body.gravcomp = 1.0
        mass = self._masses.get(link)
        if link in self._estimated:
            if link not in self.bodies:
                self._add_rods(body, link)
        else:
            body.explicitinertial = True
            body.mass = 0.0 if mass is None else mass.mass
            if mass is not None:
                inertia = _definite(mass)
                body.ipos = mass.centre
                body.fullinertia = inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]
        if link in self.bodies:
            self._add_shapes(spec, body, self.bodies[link], LINK, DENSITY)

    def _add_rods(self, body: Any, link: str) -> None:
        """Add the shapes that replace a link without shapes and mass to its MuJoCo body.

        These are a sphere at the origin of the link, and rods from the origin to the child joints.
        """
        kinds = self._library.mjtGeom
        ends = [joint.origin[:3, 3] for joint in self.tree.child_joints[link]]
        common = {"density": DENSITY, "contype": 0, "conaffinity": 0}
        for end in (each for each in ends if np.linalg.norm(each) > ROD_RADIUS):
            fromto = [0.0, 0.0, 0.0, *end]
            body.add_geom(
                type=kinds.mjGEOM_CAPSULE, size=[ROD_RADIUS, 0, 0], fromto=fromto, **common
            )
        body.add_geom(type=kinds.mjGEOM_SPHERE, size=[ROD_RADIUS, 0, 0], **common)

    def _add_shapes(
        self, spec: Any, body: Any, given: Body, masks: tuple[int, int], density: float
    ) -> None:
        """Add the shapes of a link or of an object to a body of the MuJoCo specification.

        Concave meshes of objects keep their form; those of links are replaced by convex hulls.

        Args:
            spec: MuJoCo specification.
            body: Body of the specification.
            given: Shapes of the link or object.
            masks: MuJoCo's contype and conaffinity of the shapes.
            density: Density [kg/m^3]; 0 for an object.
        """
        common = {"density": density, "contype": masks[0], "conaffinity": masks[1]}
        for shape, T in given.parts:
            for attributes in self.solids.geoms(spec, shape, T, by_facets=density == 0.0):
                body.add_geom(**attributes, **common)

    def _add_joint(self, body: Any, joint: Any) -> None:
        types, data = self._library.mjtJoint, self._data.get(joint.name, JointData())
        is_limited = joint.lower > -WIDEST and joint.upper < WIDEST
        slack = 1e-9 if joint.upper > joint.lower else 1e-6  # MuJoCo requires a nonempty range
        body.add_joint(
            name=joint.name,
            type=types.mjJNT_SLIDE if joint.kind == "prismatic" else types.mjJNT_HINGE,
            axis=joint.axis,
            limited=is_limited,
            range=[joint.lower - slack, joint.upper + slack] if is_limited else [0.0, 0.0],
            frictionloss=data.friction,
            actgravcomp=True,
        )

    def _add_drives(self, spec: Any) -> None:
        """Add a position actuator for each drive, and couple mimic joints to their masters.

        The gains and limits of the actuators are placeholders; PhysicalArm sets them.
        """
        mj = self._library
        for name in self.drives:
            drive = spec.add_actuator(name=name, target=name)
            drive.trntype = mj.mjtTrn.mjTRN_JOINT
            drive.gaintype, drive.biastype = mj.mjtGain.mjGAIN_FIXED, mj.mjtBias.mjBIAS_AFFINE
            drive.forcelimited, drive.forcerange = True, [-1.0, 1.0]
            joint = spec.joint(name)
            joint.actfrclimited, joint.actfrcrange = True, [-1.0, 1.0]
        for name in self.joints[len(self.drives) :]:
            mimic = self.tree.mimic_of[name]
            follow = spec.add_equality(name1=name, name2=mimic.master)
            follow.type, follow.objtype = mj.mjtEq.mjEQ_JOINT, mj.mjtObj.mjOBJ_JOINT
            follow.data[:5] = [mimic.offset, mimic.multiplier, 0.0, 0.0, 0.0]
            follow.solref = [0.005, 1.0]

    def _indexed(
        self, model: Any, names: Mapping[str, str], standing: Sequence[str]
    ) -> PhysicalModel:
        joints = [model.joint(name).id for name in self.joints]
        # The damping is set here because its attribute in MjSpec differs between MuJoCo versions.
        for joint, name in zip(joints, self.joints, strict=True):
            model.dof_damping[model.jnt_dofadr[joint]] = self._data.get(name, JointData()).damping
        bodies = [model.body(i).name for i in range(model.nbody)]
        mocap = {name: int(model.body(_object(name)).mocapid[0]) for name in standing}
        return PhysicalModel(
            model,
            model.jnt_qposadr[joints],
            model.jnt_dofadr[joints],
            tuple(names.get(body, body) for body in bodies),
            np.array([names.get(body) in mocap for body in bodies]),
            mocap,
        )

    # Properties of the robot without objects

    def _without_mass(self) -> Iterator[str]:
        """Yield the links whose mass is estimated; add notes about missing and wrong masses.

        Masses are estimated in rigid groups (links that are connected by fixed joints) in which no
        link has a mass.
        """
        chosen = list[str]()
        for joint, group in self._groups.items():
            if joint and not any(link in self._masses for link in group):
                shaped = [link for link in group if link in self.bodies]
                chosen += shaped or [self.tree.joint[joint].child]
        if chosen:
            self.notes.append(
                f"no mass in the description of {_few(chosen)}; estimated from shapes, or from "
                f"rods between joints, with a density of {DENSITY:g} kg/m^3"
            )
        wrong = [
            link
            for link, mass in self._masses.items()
            if not np.allclose(mass.inertia, _definite(mass))
        ]
        if wrong:
            self.notes.append(
                f"the inertia of {_few(wrong)} is not positive definite; replaced by that of a "
                f"sphere with a radius of {INERTIA_RADIUS:g} m"
            )
        yield from chosen

    def _adjacent(self) -> Iterator[Pair]:
        """Yield the pairs of links with shapes that are neighbours.

        Neighbours are in the same rigid group (links that are connected by fixed joints), or in
        two rigid groups that are connected by a joint.
        """
        of_link = {link: group for group in self._groups.values() for link in group}
        for joint in self.tree.joints:
            for a in of_link[joint.parent]:
                for b in of_link[joint.child]:
                    if a != b and a in self.bodies and b in self.bodies:
                        yield pair_of(a, b)

    def _study(self) -> JointLoads:
        """Return the loads of the drives, determined from random configurations.

        Also add the pairs of links that touch in nearly all of these configurations to the pairs
        without contacts.
        """
        mj, built = self._library, self.build()
        data = mj.MjData(built.model)
        touching: dict[Pair, int] = {}
        always = set[Pair]()
        rows = self._samples()
        inertia, gravity = np.zeros((2, len(self.joints)))
        for k, q in enumerate(rows):
            data.qpos[:] = self.values(q, built)
            mj.mj_forward(built.model, data)
            M = mass_matrix(built.model, data)
            inertia = np.maximum(inertia, np.diag(M)[built.velocities])
            gravity = np.maximum(gravity, np.abs(data.qfrc_bias[built.velocities]))
            pairs = {names for names, *_ in touching_pairs(built, data)}
            if k == 0:
                always |= pairs
            for pair in pairs:
                touching[pair] = touching.get(pair, 0) + 1
        always |= {
            pair for pair, count in touching.items() if count >= ALWAYS_TOUCHING_SHARE * len(rows)
        }
        self._may_touch |= always
        return self._loads(inertia, gravity)

    def _loads(self, inertia: Array, gravity: Array) -> JointLoads:
        """Return the loads of the drives; add notes about missing and small effort limits.

        The loads of a mimic joint are added to those of the drive that moves it. Drives without an
        effort limit in the description get a default limit.

        Args:
            inertia: (m,) maximum inertia about or along the axis of each joint [kg m^2 or kg].
            gravity: (m,) maximum effort of each joint needed to hold the weight [N m or N].
        """
        k = len(self.drives)
        total, weight = inertia[:k].copy(), gravity[:k].copy()
        for i, name in enumerate(self.joints[k:], start=k):
            mimic = self.tree.mimic_of[name]
            master = self.drives.index(mimic.master)
            total[master] += mimic.multiplier**2 * inertia[i]
            weight[master] += abs(mimic.multiplier) * gravity[i]
        given = np.array([self._data.get(name, JointData()).effort for name in self.drives])
        missing = [name for name, effort in zip(self.drives, given, strict=True) if effort == 0.0]
        if missing:
            self.notes.append(
                f"no effort limit in the description of {_few(missing)}; set to the effort for "
                f"twice the weight and an acceleration of {SPARE_ACCELERATION:g} rad/s^2 or m/s^2"
            )
        chosen = np.maximum(2.0 * weight + SPARE_ACCELERATION * total, MIN_DEFAULT_EFFORT)
        effort = np.where(given > 0.0, given, chosen)
        weak = [
            f"{name} (needs {load:.3g}, has {limit:.3g})"
            for name, load, limit in zip(self.drives, weight, effort, strict=True)
            if load > limit
        ]
        if weak:
            self.notes.append(
                "drives whose effort limit is too small to hold the weight in all configurations "
                f"[N m or N]: {_few(weak)}"
            )
        return JointLoads(total, weight, effort)

    def _samples(self) -> Array:
        """Return NUM_LOAD_SAMPLES positions of the k drives within the limits [rad or m].

        The first row is the default configuration of the robot; all other rows are random.
        """
        joints = [self.tree.joint[name] for name in self.drives]
        lower = np.array([each.lower if each.lower > -WIDEST else -np.pi for each in joints])
        upper = np.array([each.upper if each.upper < WIDEST else np.pi for each in joints])
        q = np.random.default_rng(0).uniform(lower, upper, (NUM_LOAD_SAMPLES, len(joints)))
        values = self.tree.values()
        q[0] = [values[name] for name in self.drives]
        return q

    def _excluded(self, scene: SceneSnapshot | None) -> Iterable[Pair]:
        """Return the sorted pairs of links and objects whose contacts are not simulated.

        Args:
            scene: Scene with objects, and with pairs that may touch; None: no objects.
        """
        found = set(self._may_touch) if hasattr(self, "_may_touch") else set()
        if scene is not None:
            carried, standing = [*self.bodies, *scene.attached], list(scene.objects)
            for i, a in enumerate(carried):
                others = (*carried[i + 1 :], *standing)
                found |= {pair_of(a, b) for b in others if scene.may_touch(a, b)}
        return sorted(found)


def touching_pairs(built: PhysicalModel, data: Any) -> Iterator[tuple[Pair, bool, float, int]]:
    """Yield a tuple for each contact in a state of a MuJoCo model.

    A tuple contains the pair of names of the links or objects in contact, whether the pair
    includes an object of the world, the penetration depth [m], and the index of the contact in
    ``data.contact``.

    Args:
        built: Model.
        data: State of the model (mujoco.MjData).
    """
    contacts, body_of = data.contact, built.model.geom_bodyid
    bodies = body_of[contacts.geom]  # (c, 2) body indices of c contacts
    for i, (depth, (a, b)) in enumerate(zip(contacts.dist, bodies, strict=True)):
        if depth < 0.0:
            is_object = bool(built.is_object[a] or built.is_object[b])
            yield pair_of(built.names[a], built.names[b]), is_object, -float(depth), i


def mass_matrix(model: Any, data: Any) -> Array:
    """Return the joint-space mass matrix (v, v) of a MuJoCo model with v degrees of freedom.

    Args:
        model: mujoco.MjModel.
        data: State of the model (mujoco.MjData), after ``mj_forward``.
    """
    M = np.zeros((model.nv, model.nv))
    for row, unit in zip(M, np.eye(model.nv), strict=True):  # rows are columns: M is symmetric
        mujoco().mj_mulM(model, data, row, unit)
    return M


def _rigid_groups(tree: Tree) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the rigid groups of a robot, each as a joint name and link names.

    The links of a rigid group are connected by fixed joints. The joint is the one that moves the
    group relative to its parent group; its name is empty for the group of the root link.
    """
    starts = [("", tree.root), *((j.name, j.child) for j in tree.joints if j.name in tree.mimic_of)]
    for joint, first in starts:
        group = list[str]()
        waiting = [first]
        while waiting:
            link = waiting.pop()
            group.append(link)
            waiting += [j.child for j in tree.child_joints[link] if j.name not in tree.mimic_of]
        yield joint, tuple(group)


def _definite(mass: LinkMass) -> Array:
    """Return the inertia of a link (3, 3) [kg m^2].

    If the inertia in the description is not positive definite, return the inertia of a sphere with
    the mass of the link and radius INERTIA_RADIUS.
    """
    if np.linalg.eigvalsh(mass.inertia)[0] > 1e-12:
        return mass.inertia
    return 0.4 * mass.mass * INERTIA_RADIUS**2 * np.eye(3)


_few = partial(listing, limit=MAX_LISTED_NAMES)


def _link(name: str) -> str:
    return f"link {name}"  # the prefix avoids MuJoCo's own body "world"


def _object(name: str) -> str:
    return f"object {name}"


def _name_of(name: str, links: Mapping[str, Body]) -> str:
    return _link(name) if name in links else _object(name)
