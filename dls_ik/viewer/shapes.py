"""What the links of a robot look like, from its URDF."""

import io
from collections.abc import Container
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh

from dls_ik.viewer.files import find_file

Colour = tuple[int, int, int]  # 0 to 255 each
GREY: Colour = (170, 175, 182)
SHARP = np.deg2rad(35.0)  # an edge with a larger angle stays one when surfaces are smoothed
SMOOTHED = 30_000  # faces: larger meshes are shown as they are
SECTIONS = 40  # of a round shape


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


def load_shapes(description: Path | str) -> Shapes:
    """The visuals of a URDF, a file or the text, whose kinematics have been read already."""
    import yourdfpy

    source: Any
    if isinstance(description, Path):
        source, folder = str(description), description.resolve().parent
    else:
        source, folder = io.BytesIO(description.encode()), Path()
    urdf = yourdfpy.URDF.load(source, build_scene_graph=False, load_meshes=False)
    materials = {m.name: m for m in urdf.robot.materials or []}
    pieces: list[Piece] = []
    missing: dict[str, None] = {}  # ordered
    for link in urdf.robot.links:
        for visual in link.visuals:
            mesh = _mesh(visual.geometry, folder, missing)
            if mesh is not None:
                pieces.append(_piece(link.name, mesh, visual, materials))
    return Shapes(tuple(pieces), tuple(missing))


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


def _mesh(geometry: Any, folder: Path, missing: dict[str, None]) -> Any:
    if geometry is None:
        return None
    if geometry.box is not None:
        return trimesh.creation.box(extents=geometry.box.size)
    if geometry.sphere is not None:
        return trimesh.creation.icosphere(subdivisions=3, radius=geometry.sphere.radius)
    if geometry.cylinder is not None:
        size = {"radius": geometry.cylinder.radius, "height": geometry.cylinder.length}
        return trimesh.creation.cylinder(sections=SECTIONS, **size)
    if geometry.mesh is None:
        return None
    loaded = _loaded(geometry.mesh.filename, folder)
    if loaded is None:
        missing[geometry.mesh.filename] = None
    elif geometry.mesh.scale is not None:
        loaded.apply_transform(np.diag([*np.broadcast_to(geometry.mesh.scale, 3), 1.0]))
    return loaded


def _loaded(name: str, folder: Path) -> trimesh.Trimesh | None:
    file = find_file(name, folder)
    if file is None:
        return None
    try:
        mesh = trimesh.load(file, force="mesh")
    except Exception:  # noqa: BLE001  readers of a dozen formats raise whatever they meet
        return None
    return mesh if isinstance(mesh, trimesh.Trimesh) and len(mesh.faces) else None
