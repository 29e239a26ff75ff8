"""A drawn skeleton for a robot without shapes: bones between joints, drums on their axes."""

import numpy as np
import trimesh

from dls_ik.core.types import Array
from dls_ik.model.joint import Joint
from dls_ik.model.robot import RobotModel
from dls_ik.viewer.links import LinkPoses
from dls_ik.viewer.shapes import Colour, Piece, Shapes, smooth

BONE: Colour = (184, 190, 199)
DRUM: Colour = (58, 64, 75)
SLIDE: Colour = (90, 110, 140)
TIP: Colour = (230, 115, 33)
ROUND = 24  # corners of a circle
SHORTEST = 1e-6  # [m] of a bone
THICKNESS = 0.022  # of the whole: a bone's radius
SLENDER = 0.2  # of a bone's length: its radius


def skeleton(robot: RobotModel) -> Shapes:
    """Pieces for every link that has joints, or is a tip."""
    radius = _radius(robot)
    pieces: list[Piece] = []
    for link in robot.tree.links:
        below = robot.tree.below[link]
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
