# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Shapes of a robot's links, from the URDF or as a skeleton of bones, and poses of the links."""

import io
import re
from collections.abc import Container, Sequence
from functools import partial
from os.path import normpath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh
from trimesh.resolvers import FilePathResolver

from dls_ik.core.types import Array
from dls_ik.model.files import package_roots, read_file, resource_candidates
from dls_ik.model.joint import Joint
from dls_ik.model.robot import RobotModel
from dls_ik.model.rotations import (
    inverse,
    quaternion_from_rotation,
    rotation_from_quaternion,
    transform,
)
from dls_ik.model.xml import MAX_XML_BYTES as MAX_URDF_BYTES
from dls_ik.scene.collada import read_unit
from dls_ik.text import escape

Colour = tuple[int, int, int]  # 0 to 255 each


class Piece(NamedTuple):
    """Mesh that is fixed to a link."""

    link: str
    mesh: trimesh.Trimesh  # coordinates in the link's frame [m]
    colour: Colour | None  # None if the mesh has its own colours


class Shapes(NamedTuple):
    """Shapes of the links of a robot, and names of shapes that could not be read."""

    pieces: tuple[Piece, ...]
    missing: tuple[str, ...] = ()  # names of meshes and shapes that could not be read
    substitutes: tuple[str, ...] = ()  # kinds of shapes that are drawn instead of missing ones
    bare_links: tuple[str, ...] = ()  # links whose shapes are all unreadable

    def of(self, links: Container[str]) -> "Shapes":
        """Return a copy with the shapes of the given links only."""
        return self._replace(pieces=tuple(p for p in self.pieces if p.link in links))

    @property
    def complaint(self) -> str:
        """Warning about shapes that could not be read; empty if all were read."""
        if not self.missing:
            return ""
        more = f" and {len(self.missing) - 3} more" if len(self.missing) > 3 else ""
        count = f"{len(self.missing)} mesh{'es' * (len(self.missing) > 1)}"
        instead = f"; drawn instead: {' and '.join(self.substitutes)}" if self.substitutes else ""
        names = ", ".join(self.missing[:3])
        return f"{count} missing or not readable: {names}{more}{instead}"


# Poses of links


def link_poses(robot: RobotModel, q: Array) -> dict[str, Array]:
    """Return the pose ``T_base_link`` (4, 4) of every link at q (n,) [rad or m], by link name.

    Joints outside the chain are at 0, or at the limit closest to 0. No compiled kernel is used.
    """
    values = robot.tree.values(robot.named(q))
    poses = {robot.tree.root: np.eye(4)}
    for joint in robot.tree.downward:
        T = joint.motion(values[joint.name]) if joint.name in values else np.eye(4)
        poses[joint.child] = poses[joint.parent] @ joint.origin @ T
    T_base_root = inverse(poses[robot.base])
    return {link: T_base_root @ T for link, T in poses.items()}


def moving_links(robot: RobotModel) -> frozenset[str]:
    """Return the names of the links that joints of the chain move relative to the base."""
    drives, links = robot.tree.mimic_of, set[str]()
    for joint in robot.tree.downward:
        drive = drives.get(joint.name)
        driven = drive is not None and drive.master in robot.joint_names
        if driven or joint.parent in links:
            links.add(joint.child)
    return frozenset(links)


def wxyz_from_pose(T: Array) -> Array:
    """Return the rotation of a pose T (4, 4) as a quaternion (4,) w x y z, the order of viser."""
    return np.roll(quaternion_from_rotation(T[:3, :3]), 1)


def pose_from_wxyz(wxyz: Array, position: Array) -> Array:
    """Return the pose (4, 4) with a quaternion (4,), ordered w x y z, and a position (3,)."""
    w, x, y, z = (float(component) for component in wxyz)
    return transform(rotation_from_quaternion((x, y, z, w)), np.asarray(position, np.float64))


class LinkBoxes:
    """Bounding boxes of the links' shapes, a fast estimate of the space that the robot occupies."""

    def __init__(self, robot: RobotModel, shapes: Shapes) -> None:
        self.poses = partial(link_poses, robot)
        self._moving = sorted(moving_links(robot))
        bounds: dict[str, list[Array]] = {}
        for piece in shapes.pieces:
            bounds.setdefault(piece.link, []).append(piece.mesh.bounds)
        self.boxes: dict[str, Array] = {}  # (4, 8) homogeneous box corners in the link's frame [m]
        for link, found in bounds.items():
            low, high = np.min(found, axis=0)[0], np.max(found, axis=0)[1]
            grid = np.meshgrid(*zip(low, high, strict=True))
            self.boxes[link] = np.stack([*(axis.ravel() for axis in grid), np.ones(8)])

    def corners(self, q: Array, with_links: bool = True) -> Array:
        """Return the corners (k, 3) [m] of all boxes in the base frame at q (n,) [rad or m].

        The origin of the base frame is included; with `with_links` also the origins of all links.
        """
        poses = self.poses(q)
        parts = [(poses[link] @ box)[:3].T for link, box in self.boxes.items()]
        if with_links:
            parts.append(np.array([T[:3, 3] for T in poses.values()]))
        return np.concatenate([np.zeros((1, 3)), *parts])

    def heights(self, q: Array) -> Array:
        """Return the height (k,) [m] of the lowest point of each moving link at q (n,) [rad or m].

        Heights are z coordinates in the base frame. The order of the links is the same at each
        call.
        """
        poses = self.poses(q)
        origin = np.array([[0.0], [0.0], [0.0], [1.0]])
        lows = [(poses[link] @ self.boxes.get(link, origin))[2].min() for link in self._moving]
        return np.array(lows)


# Visuals of a URDF

LINK_GREY: Colour = (170, 175, 182)
MIN_SHARP_ANGLE = np.deg2rad(35.0)  # [rad] larger angles between faces are drawn as sharp edges
MAX_SMOOTHED_FACES = 30_000
MAX_COORDINATE = 1e6  # [m] meshes with larger coordinates are rejected
NUM_SECTIONS = 40  # number of faces around a round shape
MESH_SUFFIXES = (".stl", ".dae", ".obj", ".ply", ".glb", ".gltf", ".off")  # archives are not read
MAX_SHAPES = 2000
MAX_DRAWN_MESH_BYTES = 256 * 1024 * 1024
NAMELESS = re.compile(rb"<robot(?=[\s>])(?![^>]*\sname\s*=)")
XML_DECLARATION = re.compile(r"^[\ufeff\s]*<\?xml[^>]*\?>")


class MeshFolderResolver(FilePathResolver):
    """Resolver for files that a mesh refers to, which only opens files below the mesh's folder."""

    def __init__(self, mesh: Path) -> None:
        super().__init__(str(mesh))
        self._folder = mesh.parent.resolve()

    def get(self, name: str) -> bytes:
        """Return the content of a file that a mesh refers to, such as a material or a picture.

        Raises:
            OSError: If the file is outside the folder, not a regular file, or too large.
            ValueError: If the file name is not valid.
        """
        for inside in (name.strip(), name.strip().lstrip("/"), Path(name).name):
            file = (self._folder / inside).resolve()
            if file.is_relative_to(self._folder) and file.exists():
                return read_file(file, MAX_DRAWN_MESH_BYTES)
        raise FileNotFoundError(name)


COLLISION, BONES = "collision shapes", "bones between joints"


def described_shapes(robot: RobotModel) -> Shapes:
    """Return the shapes of a robot from the URDF that its model was made from.

    If the URDF was given as text, only meshes in installed ROS packages are opened. A robot without
    a URDF has a skeleton of bones.
    """
    given = robot.tree.description
    if given is None:
        return skeleton(robot)
    return robot_shapes(robot, given.urdf, given.folder is None, given.folder)


def robot_shapes(
    robot: RobotModel,
    description: Path | str | bytes | None,
    is_foreign: bool = False,
    folder: Path | None = None,
) -> Shapes:
    """Return the shapes of a robot from a URDF; links with unreadable shapes get bones instead.

    Args:
        robot: Robot to draw.
        description: URDF file or text; None if the robot has no URDF, as a robot from DH rows.
        is_foreign, folder: See :func:`load_shapes`.
    """
    bones = skeleton(robot)
    if description is None:
        return bones
    shapes = load_shapes(description, is_foreign, folder)
    if not shapes.pieces:
        return bones._replace(missing=shapes.missing)
    drawn = {piece.link for piece in shapes.pieces}
    lost = bones.of(set(shapes.bare_links) - drawn).pieces
    if not lost:
        return shapes
    kinds = (*shapes.substitutes, BONES)
    return shapes._replace(pieces=shapes.pieces + lost, substitutes=kinds)


def load_shapes(
    description: Path | str | bytes, is_foreign: bool = False, folder: Path | None = None
) -> Shapes:
    """Load the visual shapes of a URDF that is known to be valid.

    If the visual shapes of a link cannot be read, the collision shapes of the link are used.

    Args:
        description: URDF file or text.
        is_foreign: Whether the description came over the network. If so, only meshes in installed
            ROS packages are opened.
        folder: Folder to which relative paths in a URDF text refer; default: the current folder.
    """
    if isinstance(description, Path):
        folder = description.resolve().parent
    beside = None if is_foreign else folder or Path()
    try:
        robot = _parse(description)
        materials = {m.name: m for m in robot.materials or []}
        links = [(link.name, link.visuals, link.collisions) for link in robot.links]
    except Exception as error:  # noqa: BLE001  the parser may raise any error
        return Shapes((), (f"all visuals ({escape(str(error))})",))
    pieces: list[Piece] = []
    missing: dict[str, None] = {}  # used as an ordered set
    substitutes: dict[str, None] = {}
    bare: list[str] = []
    left = MAX_SHAPES
    for link, visuals, collisions in links:
        if len(visuals) > left:
            missing[f"shapes beyond the first {MAX_SHAPES}"] = None
        found, lost = _pieces(link, visuals[:left], beside, materials)
        left -= len(visuals[:left])
        if lost:
            missing |= dict.fromkeys(lost)
            instead, also_lost = _pieces(link, collisions[:left], beside, materials)
            left -= len(collisions[:left])
            if instead and not also_lost:
                found = instead
                substitutes[COLLISION] = None
            if not found:
                bare.append(link)
        pieces += found
    return Shapes(tuple(pieces), tuple(missing), tuple(substitutes), tuple(bare))


def _pieces(
    link: str, shapes: Sequence[Any], beside: Path | None, materials: dict[str, Any]
) -> tuple[list[Piece], list[str]]:
    """Return the meshes of the shapes of a link, and the names of shapes that could not be read.

    Args:
        link: Name of the link.
        shapes: Visual or collision elements of the link.
        beside: Folder of the URDF; None for a URDF received over the network.
        materials: Materials of the URDF by name.
    """
    pieces, lost = [], []
    for shape in shapes:
        try:
            with np.errstate(all="ignore"):
                mesh = _mesh(shape.geometry, beside)
            if mesh is not None:
                pieces.append(_piece(link, mesh, shape, materials))
        except Exception:  # noqa: BLE001, PERF203  readers may raise any error
            lost.append(_visual_name(shape, link))
    return pieces, lost


def _parse(description: Path | str | bytes) -> Any:
    """Parse a URDF file or text with the package yourdfpy.

    The encoding declaration of a text is removed, because the text is already decoded.
    """
    import yourdfpy

    if isinstance(description, str):
        source = XML_DECLARATION.sub("", description).encode()
    elif isinstance(description, bytes):
        source = description
    else:
        source = read_file(description, MAX_URDF_BYTES)
    source = NAMELESS.sub(rb'<robot name="robot"', source, count=1)  # yourdfpy needs a name
    reader = yourdfpy.URDF.load(io.BytesIO(source), build_scene_graph=False, load_meshes=False)
    return reader.robot


def _visual_name(visual: Any, link: str) -> str:
    mesh = getattr(visual.geometry, "mesh", None)
    return escape(mesh.filename) if mesh is not None else f"a shape of {link}"


def _smooth(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """Return a mesh that is shaded smoothly except at sharp edges, where vertices are doubled."""
    if len(mesh.faces) > MAX_SMOOTHED_FACES:
        return mesh
    smooth: trimesh.Trimesh = trimesh.graph.smooth_shade(mesh, angle=MIN_SHARP_ANGLE)
    return smooth


def _piece(link: str, mesh: trimesh.Trimesh, visual: Any, materials: dict[str, Any]) -> Piece:
    if visual.origin is not None:
        mesh.apply_transform(visual.origin)
    colour = _colour(getattr(visual, "material", None), materials)
    look: Any = mesh.visual
    if colour is None and look.kind in ("texture", "vertex", "face") and look.defined:
        return Piece(link, mesh, None)
    return Piece(link, _smooth(mesh), colour or LINK_GREY)


def _colour(material: Any, materials: dict[str, Any]) -> Colour | None:
    if material is not None and material.color is None:
        material = materials.get(material.name, material)
    if material is None or material.color is None or material.color.rgba is None:
        return None
    red, green, blue = (round(255.0 * float(c)) for c in np.clip(material.color.rgba[:3], 0, 1))
    return red, green, blue


def _mesh(geometry: Any, beside: Path | None) -> Any:
    """Return the mesh of a URDF geometry element, or None if it is empty.

    Args:
        geometry: Geometry element parsed by yourdfpy.
        beside: Folder of the URDF; None for a URDF received over the network.

    Raises:
        Exception: If a mesh file cannot be read, whatever the reader of the file raises.
    """
    if geometry is None:
        return None
    make = trimesh.creation
    if geometry.box is not None:
        mesh = make.box(extents=geometry.box.size)
    elif geometry.sphere is not None:
        mesh = make.icosphere(subdivisions=3, radius=geometry.sphere.radius)
    elif geometry.cylinder is not None:
        size = {"radius": geometry.cylinder.radius, "height": geometry.cylinder.length}
        mesh = make.cylinder(sections=NUM_SECTIONS, **size)
    elif geometry.mesh is not None:
        mesh = _mesh_of_file(geometry.mesh.filename, beside)
        if geometry.mesh.scale is not None:
            mesh.apply_transform(np.diag([*np.broadcast_to(geometry.mesh.scale, 3), 1.0]))
    else:
        return None
    if not (np.abs(mesh.vertices) <= MAX_COORDINATE).all():
        raise ValueError(f"vertices beyond {MAX_COORDINATE:g} m, or not finite")
    return mesh


def _mesh_of_file(name: str, beside: Path | None) -> trimesh.Trimesh:
    file = find_file(name, beside)
    if file is None or file.suffix.lower() not in MESH_SUFFIXES:
        raise OSError(f"no mesh: {name}")
    content = read_file(file, MAX_DRAWN_MESH_BYTES)
    mesh = trimesh.load(
        io.BytesIO(content),
        file_type=file.suffix[1:].lower(),
        resolver=MeshFolderResolver(file),
        force="mesh",
    )
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise ValueError(f"an empty mesh: {name}")
    if file.suffix.lower() == ".dae":  # trimesh ignores the length unit of a .dae file
        mesh.apply_transform(np.diag([*[read_unit(content)] * 3, 1.0]))
    return mesh


def find_file(name: str, beside: Path | None) -> Path | None:
    """Return the path of a file that a URDF refers to, or None if the file is not found.

    For a name ``package://NAME/...``, the package is searched in ROS_PACKAGE_PATH and
    AMENT_PREFIX_PATH, in the folders above the URDF, and in the folder of the URDF.

    Args:
        name: Name of the file in the URDF.
        beside: Folder of the URDF; None for a URDF received over the network, whose files must be
            in installed ROS packages.
    """
    paths = resource_candidates(name, beside)
    try:
        if beside is None:
            roots = [normpath(root) for root in package_roots()]
            named = [Path(normpath(path)) for path in paths]
            paths = (path for path in named if any(path.is_relative_to(root) for root in roots))
        return next((path for path in paths if path.is_file()), None)
    except (OSError, ValueError):  # not a valid file name
        return None


# Skeleton: bones between joints, cylinders on revolute axes, boxes on prismatic axes

BONE: Colour = (184, 190, 199)
DRUM: Colour = (58, 64, 75)
SLIDE: Colour = (90, 110, 140)
TIP: Colour = (230, 115, 33)
NUM_CIRCLE_CORNERS = 24  # number of corners of a polygon that represents a circle
MIN_BONE_LENGTH = 1e-6  # [m] shorter bones are not drawn
# Maximum radius of a bone, relative to the robot's size and to the median length of bones
RADIUS_TO_SIZE, RADIUS_TO_LENGTH = 0.022, 0.2


def skeleton(robot: RobotModel) -> Shapes:
    """Return shapes for a robot without meshes: bones, joint axes, and balls at the leaf links.

    A bone is a cylinder from the origin of a link to a joint of the link.
    """
    radius = _bone_radius(robot)
    pieces: list[Piece] = []
    for link in robot.tree.links:
        below = robot.tree.child_joints[link]
        for joint in below:
            pieces += [*_bone(link, joint, radius), *_axis(joint, radius)]
        if not below:
            ball = trimesh.creation.icosphere(subdivisions=2, radius=1.1 * radius)
            pieces.append(Piece(link, ball, TIP))
    return Shapes(tuple(pieces))


def _bone_radius(robot: RobotModel) -> float:
    """Return the radius of bones [m], which is small relative to the robot and to its bones."""
    lengths = [float(np.linalg.norm(joint.origin[:3, 3])) for joint in robot.tree.joints]
    points = np.array([T[:3, 3] for T in link_poses(robot, np.zeros(robot.n)).values()])
    size = max(float(np.ptp(points, axis=0).max()), sum(lengths) / 4.0) or 1.0
    bones = [length for length in lengths if length > MIN_BONE_LENGTH]
    radius = RADIUS_TO_SIZE * size
    return min(radius, RADIUS_TO_LENGTH * float(np.median(bones))) if bones else radius


def _bone(link: str, joint: Joint, radius: float) -> list[Piece]:
    """Return the bone from the origin of a link to one of its child joints, or [] if too short."""
    end = joint.origin[:3, 3]
    length = float(np.linalg.norm(end))
    if length < MIN_BONE_LENGTH:
        return []
    segment = np.array([np.zeros(3), end])
    thin = min(radius, length / 3.0)
    mesh = trimesh.creation.cylinder(radius=thin, segment=segment, sections=NUM_CIRCLE_CORNERS)
    return [Piece(link, _smooth(mesh), BONE)]


def _axis(joint: Joint, radius: float) -> list[Piece]:
    """Return a shape for the axis of a joint, fixed to the child link, or [] if not driven."""
    if not joint.is_driven:
        return []
    along: Array = 1.6 * radius * np.array([-joint.axis, joint.axis])
    if joint.kind == "prismatic":
        mesh = trimesh.creation.cylinder(radius=1.3 * radius, segment=1.5 * along, sections=4)
        return [Piece(joint.child, _smooth(mesh), SLIDE)]
    mesh = trimesh.creation.cylinder(
        radius=1.5 * radius, segment=along, sections=NUM_CIRCLE_CORNERS
    )
    return [Piece(joint.child, _smooth(mesh), DRUM)]
