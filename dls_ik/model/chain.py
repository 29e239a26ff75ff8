"""Chains: from the paths in a tree to the arrays that the kernels read."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Arm, Array, Chain
from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.rotations import inverse, rotation_from_z, transform
from dls_ik.model.tree import Tree
from dls_ik.text import listing

MAX_JOINTS = 500  # variables; the work of a step grows with their square

PARALLEL = 1e-15  # sine of the angle between two axes that count as parallel


class Element(NamedTuple):
    """One moving element of a chain."""

    joint: Joint
    drive: Mimic  # who drives it


class ChainPath(NamedTuple):
    """The m elements from a link down to another one."""

    elements: tuple[Element, ...]  # (m,)
    fixed: Array  # (m + 1, 3, 4) transforms between their frames, each with its motion along z

    def followed_by(self, offset: Array) -> "ChainPath":
        """The path that goes on by a transform (4, 4)."""
        fixed = self.fixed.copy()
        fixed[-1] = self.fixed[-1] @ offset
        return self._replace(fixed=fixed)


@np.errstate(over="ignore", invalid="ignore")  # refused at the end
def build_path(tree: Tree, base: str, tip: str) -> ChainPath:
    """The path between two links.

    Raises:
        ChainError: the links do not span a chain, it has no moving joints, or a floating or planar
            one.
        RobotModelError: one of the joints has no limits, or follows another that does not move.
    """
    elements: list[Element] = []
    fixed: list[Array] = []
    T = np.eye(4)  # from the previous element's frame
    for joint in tree.path(base, tip):
        T = T @ joint.origin
        if joint.kind == "fixed":
            continue
        if not joint.is_driven:
            raise ChainError(
                f"joint {joint.name!r} between {base!r} and {tip!r} is {joint.kind}; a chain takes "
                "revolute, continuous, prismatic and fixed joints"
            )
        if joint.name in tree.broken:
            raise RobotModelError(tree.broken[joint.name])
        drive = tree.mimic_of[joint.name]
        if drive.multiplier == 0.0:  # follows its master by not moving at all
            T = T @ joint.motion(drive.offset)
            continue
        element_from_z = transform(rotation_from_z(joint.axis))
        fixed.append((T @ element_from_z)[:3])
        elements.append(Element(joint, drive))
        T = element_from_z.T
    if not elements:
        raise ChainError(
            f"no moving joint lies between {base!r} and {tip!r}; links: {listing(tree.links)}"
        )
    return ChainPath(tuple(elements), np.array([*fixed, T[:3]]))


class NamedChain(NamedTuple):
    """A chain, and what its variables are called."""

    joint_names: tuple[str, ...]  # (n,)
    chain: Chain
    continuous: NDArray[np.bool_]  # (n,) a full turn changes nothing, and nothing limits it


def build_chain(tree: Tree, base: str, tips: Sequence[str], offsets: Array) -> NamedChain:
    """The chain from a link down to each of k others, its arrays read-only.

    Variables are in the order in which the paths first meet them. Mimic joints share the variable
    of the joint that they follow, which takes that joint's name and limits even when it lies off
    the chain; their own limits narrow it, on whichever path they are.

    Args:
        offsets: (k, 4, 4) from the links to the tips.

    Raises:
        ChainError: links that do not span a chain, a path without moving joints, or with a
            floating or planar one; more than MAX_JOINTS variables.
        RobotModelError: a mimic joint's limits leave its master no room, or lengths overflow.
    """
    ends = zip(tips, offsets, strict=True)
    paths = [build_path(tree, base, tip).followed_by(offset) for tip, offset in ends]
    elements = [element for path in paths for element in path.elements]  # (m,)
    driven: dict[str, list[Element]] = {}  # by variable
    for element in elements:
        driven.setdefault(element.drive.master, []).append(element)
    names = tuple(driven)
    if len(names) > MAX_JOINTS:
        raise ChainError(f"a chain has {MAX_JOINTS} joints at most, this one {len(names)}")
    number = {name: i for i, name in enumerate(names)}
    limits = np.array([_limits(tree, name, driven[name]) for name in names])  # (n, 3)
    chain = Chain(
        fixed=np.concatenate([path.fixed for path in paths]),
        first=np.cumsum([0, *(len(path.elements) for path in paths)], dtype=np.int64),
        prismatic=np.array([element.joint.kind == "prismatic" for element in elements]),
        variable=np.array([number[element.drive.master] for element in elements], np.int64),
        scale=np.array([element.drive.multiplier for element in elements]),
        offset=np.array([element.drive.offset for element in elements]),
        lower=limits[:, 0].copy(),
        upper=limits[:, 1].copy(),
        velocity=limits[:, 2].copy(),
    )
    continuous = np.array([_is_continuous(chain, i) for i in range(len(names))])
    for array in (*chain, continuous):
        array.flags.writeable = False
    return NamedChain(names, chain, continuous)


def _limits(tree: Tree, name: str, driven: Sequence[Element]) -> tuple[float, float, float]:
    """Lower, upper and velocity limit of a variable, narrowed by the elements it drives."""
    master = tree.joint[name]
    lower, upper, velocity = master.lower, master.upper, master.velocity
    for joint, drive in driven:
        ends = sorted((end - drive.offset) / drive.multiplier for end in (joint.lower, joint.upper))
        lower, upper = max(lower, ends[0]), min(upper, ends[1])
        velocity = min(velocity, joint.velocity / abs(drive.multiplier))
        if upper < lower:
            raise joint.error(f"its limits leave {name!r}, which it follows, no room to move")
    return lower, upper, velocity


def _is_continuous(chain: Chain, variable: int) -> bool:
    driven = chain.variable == variable  # (m,)
    turns = not chain.prismatic[driven].any() and bool(np.all(chain.scale[driven] % 1.0 == 0.0))
    return turns and math.isinf(chain.lower[variable]) and math.isinf(chain.upper[variable])


def tip_poses(chain: Chain, configurations: Array) -> Array:
    """``T_base_tip`` of k tips, for configurations (b, n): (b, k, 4, 4)."""
    from dls_ik.core.kinematics import forward  # numba takes long to import

    axes, T = _scratch(chain)
    poses = np.zeros((len(configurations), len(T), 4, 4))
    poses[..., 3, 3] = 1.0
    for q, pose in zip(configurations, poses, strict=True):
        forward(chain, q, axes, T)
        pose[:, :3] = T
    return poses


def tip_jacobians(chain: Chain, configurations: Array) -> Array:
    """Geometric Jacobians of k tips, for configurations (b, n): (b, 6 k, n), linear rows first."""
    from dls_ik.core.kinematics import forward, jacobian  # numba takes long to import

    axes, T = _scratch(chain)
    jacobians = np.empty((len(configurations), 6 * len(T), len(chain.lower)))
    for q, J in zip(configurations, jacobians, strict=True):
        forward(chain, q, axes, T)
        jacobian(chain, axes, T, J)
    return jacobians


def _scratch(chain: Chain) -> tuple[Array, Array]:
    """Room for the axes (m, 2, 3) and the tips (k, 3, 4)."""
    return np.empty((len(chain.prismatic), 2, 3)), np.empty((len(chain.first) - 1, 3, 4))


def build_arm(chain: Chain) -> Arm:
    """Write a chain of one path in frames between which only x turns.

    Any fixed rotation is Rz(a) Rx(b) Rz(c). Rz commutes with the motion of the joint at its side,
    so that a goes into the offset of the joint before and c into that of the joint after.
    """
    m = len(chain.variable)
    turn, slide, link = np.zeros((m, 2)), np.zeros(m), np.zeros((m, 5))
    after = 0.0  # c of the rotation before the element
    for k in range(m):
        R, p = chain.fixed[k + 1, :, :3], chain.fixed[k + 1, :, 3]
        a, b, c = _angles(R) if k < m - 1 else (0.0, 0.0, 0.0)
        turn[k, 1] = after + a
        link[k, :3] = _about_z(-a) @ p
        if chain.prismatic[k]:
            slide[k] = chain.scale[k]
            link[k, 2] += chain.offset[k]
        else:
            turn[k] += chain.scale[k], chain.offset[k]
        link[k, 3:] = np.cos(b), np.sin(b)
        after = c
    before = np.vstack([chain.fixed[0], [0.0, 0.0, 0.0, 1.0]])
    limits = chain.lower, chain.upper
    return Arm(
        turn, slide, link, chain.variable, *limits, inverse(before)[:3], chain.fixed[m, :, :3].T
    )


def _angles(R: Array) -> tuple[float, float, float]:
    """(a, b, c) of R = Rz(a) Rx(b) Rz(c), a in +-pi/2.

    Near parallel axes only the sum or difference of a and c is well determined: b and c are taken
    from what is left of R after the a that is taken, so that no digit of R is lost.
    """
    a, side = 0.0, np.copysign(1.0, -R[1, 2])
    if np.hypot(R[0, 2], R[1, 2]) > PARALLEL:
        a = float(np.arctan2(side * R[0, 2], -side * R[1, 2]))
    left = _about_z(-a) @ R
    return a, float(np.arctan2(-left[1, 2], left[2, 2])), float(np.arctan2(-left[0, 1], left[0, 0]))


def _about_z(angle: float) -> Array:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
