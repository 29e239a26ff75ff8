"""An arm in the scene: its pieces on frames, one for each link."""

from typing import Any

import numpy as np

from dls_ik.core.types import Array
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.links import LinkPoses
from dls_ik.viewer.poses import wxyz_of
from dls_ik.viewer.shapes import Colour, Shapes

SWELL = 1.03  # of a ghost
MOVED = 1e-6  # [m and 1] entries of a pose: less does not show


class Figure:
    """Draws the pieces below a node, and moves them with the joints.

    Args:
        scene: of viser.
        root: name of the node that all hangs below, such as ``/arm``.
        tint: a colour for all pieces, translucent; None: their own.
    """

    def __init__(
        self, scene: Any, root: str, robot: RobotModel, shapes: Shapes, tint: Colour | None = None
    ) -> None:
        self._poses = LinkPoses(robot)
        self._root = scene.add_frame(root, show_axes=False)
        drawn = dict.fromkeys(piece.link for piece in shapes.pieces)
        names = scene_names(root, tuple(drawn))
        self._frames = {
            link: scene.add_frame(name, show_axes=False) for link, name in names.items()
        }
        self._shown: dict[str, Array] = {}
        for i, piece in enumerate(shapes.pieces):
            name = f"{names[piece.link]}/{i}"
            if tint is not None:
                _add_simple(scene, name, _swollen(piece.mesh), tint, opacity=0.42)
            elif piece.colour is None:
                scene.add_mesh_trimesh(name, piece.mesh)
            else:
                _add_simple(scene, name, piece.mesh, piece.colour)

    def show(self, q: Array) -> None:
        """Move to joint values (n,)."""
        poses = self._poses(q)
        for link, frame in self._frames.items():
            T, shown = poses[link], self._shown.get(link)
            if shown is None or np.abs(T - shown).max() > MOVED:
                frame.position, frame.wxyz = T[:3, 3], wxyz_of(T)
                self._shown[link] = T

    @property
    def visible(self) -> bool:
        """Whether it is shown."""
        return bool(self._root.visible)

    @visible.setter
    def visible(self, is_shown: bool) -> None:
        if is_shown != self._root.visible:
            self._root.visible = is_shown

    def remove(self) -> None:
        """Take it out of the scene, with all below it."""
        self._root.remove()


def scene_names(root: str, links: tuple[str, ...]) -> dict[str, str]:
    """A node name for each link: numbered, since a link's name may hold anything, slashes too."""
    return {link: f"{root}/link{i}" for i, link in enumerate(links)}


def _swollen(mesh: Any) -> Any:
    """A little larger, so that of two surfaces in one place one is in front."""
    middle = mesh.bounds.mean(axis=0)
    larger = mesh.copy()
    larger.apply_translation(-middle)
    larger.apply_scale(SWELL)
    larger.apply_translation(middle)
    return larger


def _add_simple(scene: Any, name: str, mesh: Any, colour: Colour, **look: Any) -> None:
    vertices = np.asarray(mesh.vertices, np.float32)
    faces = np.asarray(mesh.faces, np.uint32)
    scene.add_mesh_simple(name, vertices, faces, color=colour, **look)
