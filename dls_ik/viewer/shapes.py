"""Shapes of the links of a robot, from its URDF, or a drawn skeleton for one without."""

import io
import re
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from os.path import normpath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh
from trimesh.resolvers import FilePathResolver

from dls_ik.core.types import Array
from dls_ik.model.files import PACKAGE_SCHEME, package_folders, package_roots, read_file
from dls_ik.model.joint import Joint
from dls_ik.model.robot import RobotModel
from dls_ik.model.urdf import MAX_BYTES as MAX_URDF_BYTES
from dls_ik.text import escape
from dls_ik.viewer.poses import LinkPoses

Find = Callable[[str], Path | None]
Colour = tuple[int, int, int]  # 0 to 255 each
GREY: Colour = (170, 175, 182)
SHARP = np.deg2rad(35.0)  # an edge with a larger angle stays one when surfaces are smoothed
SMOOTHED = 30_000  # faces: larger meshes are shown as they are
FARTHEST = 1e6  # [m]
SECTIONS = 40  # of a round shape
MESHES = (".stl", ".dae", ".obj", ".ply", ".glb", ".gltf", ".off")  # no archives
MOST = 2000  # shapes
MAX_BYTES = 256 * 1024 * 1024  # of a mesh
DECLARATION = re.compile(r"^[\ufeff\s]*<\?xml[^>]*\?>")
FILE = "file://"

# A drawn skeleton: bones between joints, drums on their axes
BONE: Colour = (184, 190, 199)
DRUM: Colour = (58, 64, 75)
SLIDE: Colour = (90, 110, 140)
TIP: Colour = (230, 115, 33)
ROUND = 24  # corners of a circle
SHORTEST = 1e-6  # [m] of a bone
THICKNESS = 0.022  # of the whole: a bone's radius
SLENDER = 0.2  # of a bone's length: its radius


class Piece(NamedTuple):
    """A shape that is fixed to a link."""

    link: str
    mesh: trimesh.Trimesh  # in the link's frame [m]
    colour: Colour | None  # None: the mesh has its own


class Shapes(NamedTuple):
    """All that can be drawn of a robot."""

    pieces: tuple[Piece, ...]
    missing: tuple[str, ...] = ()  # files that are not there, or cannot be read

    def of(self, links: Container[str]) -> "Shapes":
        """Those of some links."""
        return self._replace(pieces=tuple(p for p in self.pieces if p.link in links))

    @property
    def complaint(self) -> str:
        """One line about what is missing; empty where nothing is."""
        if not self.missing:
            return ""
        more = f" and {len(self.missing) - 3} more" if len(self.missing) > 3 else ""
        count = f"{len(self.missing)} mesh{'es' * (len(self.missing) > 1)}"
        return f"{count} missing or not readable: {', '.join(self.missing[:3])}{more}"


class FilesBeside(FilePathResolver):
    """The files that a mesh names, of materials and pictures: in its folder or below."""

    def __init__(self, mesh: Path) -> None:
        super().__init__(str(mesh))
        self._folder = mesh.parent.resolve()

    def get(self, name: str) -> bytes:
        """The content of a file.

        Raises:
            OSError: there is none in the folder, it is no regular file, or too large.
            ValueError: no name that a file could have.
        """
        for inside in (name.strip(), name.strip().lstrip("/"), Path(name).name):
            file = (self._folder / inside).resolve()
            if file.is_relative_to(self._folder) and file.exists():
                return read_file(file, MAX_BYTES)
        raise FileNotFoundError(name)


def load_shapes(description: Path | str, is_foreign: bool = False) -> Shapes:
    """The visuals of a URDF, a file or the text, whose kinematics have been read already.

    Args:
        is_foreign: it came over the network, so that meshes are taken from the ROS packages of
            this machine only.
    """
    folder = description.resolve().parent if isinstance(description, Path) else Path()
    find = find_installed_file if is_foreign else partial(find_file, beside=folder)
    try:
        robot = _parsed(description)
        materials = {m.name: m for m in robot.materials or []}
        visuals = [(link.name, visual) for link in robot.links for visual in link.visuals]
    except Exception as error:  # noqa: BLE001  the reader raises whatever it meets
        return Shapes((), (f"all visuals ({escape(str(error))})",))
    missing: dict[str, None] = {}  # ordered
    if len(visuals) > MOST:
        missing[f"shapes beyond the first {MOST}"] = None
    made = [_made(link, visual, find, materials, missing) for link, visual in visuals[:MOST]]
    return Shapes(tuple(piece for piece in made if piece), tuple(missing))


def _made(
    link: str, visual: Any, find: Find, materials: dict[str, Any], missing: dict[str, None]
) -> Piece | None:
    try:
        with np.errstate(all="ignore"):
            mesh = _mesh(visual.geometry, find)
        return None if mesh is None else _piece(link, mesh, visual, materials)
    except Exception:  # noqa: BLE001  as do readers of a dozen formats, and makers of shapes
        missing[_called(visual, link)] = None
        return None


def _parsed(description: Path | str) -> Any:
    """As yourdfpy reads it; text without the line that says how it was once encoded."""
    import yourdfpy

    if isinstance(description, str):
        source = DECLARATION.sub("", description).encode()
    else:
        source = read_file(description, MAX_URDF_BYTES)
    reader = yourdfpy.URDF.load(io.BytesIO(source), build_scene_graph=False, load_meshes=False)
    return reader.robot


def _called(visual: Any, link: str) -> str:
    mesh = getattr(visual.geometry, "mesh", None)
    return escape(mesh.filename) if mesh is not None else f"a shape of {link}"


def smooth(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    """The mesh with its vertices apart where an edge is sharp, so that it is shaded so."""
    return trimesh.graph.smooth_shade(mesh, angle=SHARP) if len(mesh.faces) <= SMOOTHED else mesh


def _piece(link: str, mesh: trimesh.Trimesh, visual: Any, materials: dict[str, Any]) -> Piece:
    if visual.origin is not None:
        mesh.apply_transform(visual.origin)
    colour = _colour(visual.material, materials)
    look: Any = mesh.visual
    own = look.kind in ("texture", "vertex", "face") and look.defined
    if own and colour is None:
        return Piece(link, mesh, None)
    return Piece(link, smooth(mesh), colour or GREY)


def _colour(material: Any, materials: dict[str, Any]) -> Colour | None:
    if material is None:
        return None
    if material.color is None:
        material = materials.get(material.name, material)
    if material.color is None or material.color.rgba is None:
        return None
    red, green, blue = (round(255.0 * float(c)) for c in np.clip(material.color.rgba[:3], 0, 1))
    return red, green, blue


def _mesh(geometry: Any, find: Find) -> Any:
    """The shape, or None where there is none.

    Raises:
        OSError: the file of a mesh is not there, or not one.
        ValueError, and others: it cannot be read, or a size is none.
    """
    if geometry is None:
        return None
    if geometry.box is not None:
        return _checked(trimesh.creation.box(extents=geometry.box.size))
    if geometry.sphere is not None:
        sphere = trimesh.creation.icosphere(subdivisions=3, radius=geometry.sphere.radius)
        return _checked(sphere)
    if geometry.cylinder is not None:
        size = {"radius": geometry.cylinder.radius, "height": geometry.cylinder.length}
        return _checked(trimesh.creation.cylinder(sections=SECTIONS, **size))
    if geometry.mesh is None:
        return None
    loaded = _loaded(geometry.mesh.filename, find)
    if geometry.mesh.scale is not None:
        loaded.apply_transform(np.diag([*np.broadcast_to(geometry.mesh.scale, 3), 1.0]))
    return _checked(loaded)


def _loaded(name: str, find: Find) -> trimesh.Trimesh:
    file = find(name)
    if file is None or file.suffix.lower() not in MESHES:
        raise OSError(f"no mesh: {name}")
    content = io.BytesIO(read_file(file, MAX_BYTES))
    mesh = trimesh.load(
        content, file_type=file.suffix[1:].lower(), resolver=FilesBeside(file), force="mesh"
    )
    if not isinstance(mesh, trimesh.Trimesh) or not len(mesh.faces):
        raise ValueError(f"an empty mesh: {name}")
    return mesh


def _checked(mesh: trimesh.Trimesh) -> trimesh.Trimesh:
    if not (np.abs(mesh.vertices) <= FARTHEST).all():
        raise ValueError(f"vertices beyond {FARTHEST:g} m, or not finite")
    return mesh


def find_file(name: str, beside: Path) -> Path | None:
    """The file that a URDF means by a name, if there is one.

    ``package://NAME/...`` is looked for in ROS_PACKAGE_PATH and AMENT_PREFIX_PATH, in the folders
    above the URDF, and beside it.

    Args:
        beside: The folder of the URDF.
    """
    if name.startswith(PACKAGE_SCHEME):
        package, _, inside = name.removeprefix(PACKAGE_SCHEME).partition("/")
        candidates = _in_package(package, inside, beside)
    else:
        candidates = iter([beside / name.removeprefix(FILE)])
    return _first_file(candidates)


def find_installed_file(name: str) -> Path | None:
    """The file that a URDF of somebody else's means, if it is in a ROS package of this machine."""
    roots = [normpath(root) for root in package_roots()]
    if name.startswith(PACKAGE_SCHEME):
        package, _, inside = name.removeprefix(PACKAGE_SCHEME).partition("/")
        candidates = [folder / inside for folder in package_folders(package)]
    else:
        candidates = [Path(name.removeprefix(FILE))]
    named = [Path(normpath(path)) for path in candidates]
    return _first_file(path for path in named if any(path.is_relative_to(root) for root in roots))


def _first_file(candidates: Iterable[Path]) -> Path | None:
    try:
        return next((path for path in candidates if path.is_file()), None)
    except (OSError, ValueError):  # no name that a file could have
        return None


def _in_package(package: str, inside: str, beside: Path) -> Iterator[Path]:
    yield from (folder / inside for folder in package_folders(package))
    for above in (beside, *beside.parents):
        yield above / package / inside
        if above.name == package:
            yield above / inside
    yield beside / inside


def skeleton(robot: RobotModel) -> Shapes:
    """Pieces for every link that has joints, or is a tip."""
    radius = _radius(robot)
    pieces: list[Piece] = []
    for link in robot.tree.links:
        below = robot.tree.child_joints[link]
        for joint in below:
            pieces += _bone(link, joint, radius)
            pieces += _axis(joint, radius)
        if not below:
            ball = trimesh.creation.icosphere(subdivisions=2, radius=1.1 * radius)
            pieces.append(Piece(link, ball, TIP))
    return Shapes(tuple(pieces))


def _radius(robot: RobotModel) -> float:
    """Of a bone [m]: thin for the whole, and for a bone as long as most."""
    lengths = [float(np.linalg.norm(joint.origin[:3, 3])) for joint in robot.tree.joints]
    long = [length for length in lengths if length > SHORTEST]
    shares = [THICKNESS * _size(robot), *([SLENDER * float(np.median(long))] if long else [])]
    return min(shares)


def _size(robot: RobotModel) -> float:
    """How far the links are spread at the start [m]."""
    points = np.array([T[:3, 3] for T in LinkPoses(robot)(np.zeros(robot.n)).values()])
    lengths = sum(float(np.linalg.norm(j.origin[:3, 3])) for j in robot.tree.joints)
    return max(float(np.ptp(points, axis=0).max()), lengths / 4.0) or 1.0


def _bone(link: str, joint: Joint, radius: float) -> list[Piece]:
    """From the link's origin to a joint on it."""
    end = joint.origin[:3, 3]
    length = float(np.linalg.norm(end))
    if length < SHORTEST:
        return []
    thin = min(radius, length / 3.0)
    segment = np.array([np.zeros(3), end])
    mesh = trimesh.creation.cylinder(radius=thin, segment=segment, sections=ROUND)
    return [Piece(link, smooth(mesh), BONE)]


def _axis(joint: Joint, radius: float) -> list[Piece]:
    """A drum about a joint that turns, a block along one that slides; on the child."""
    if not joint.is_driven:
        return []
    along: Array = 1.6 * radius * np.array([-joint.axis, joint.axis])
    if joint.kind == "prismatic":
        mesh = trimesh.creation.cylinder(radius=1.3 * radius, segment=1.5 * along, sections=4)
        return [Piece(joint.child, smooth(mesh), SLIDE)]
    mesh = trimesh.creation.cylinder(radius=1.5 * radius, segment=along, sections=ROUND)
    return [Piece(joint.child, smooth(mesh), DRUM)]
