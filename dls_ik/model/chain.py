# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Serial chains as arrays that the Numba kernels take as arguments.

A chain leads from a base link to k tips. A moving element is a joint of the chain that moves. A
variable is a joint position that the solver chooses; a joint and the joints that mimic it have one
common variable.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dls_ik.core.types import Array, Chain, SerialChain
from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.rotations import inverse, rotation_from_z, transform
from dls_ik.model.tree import Tree
from dls_ik.text import listing

MAX_JOINTS = 500  # maximum number n of variables; the work of a solver step grows with n^2
MAX_PARALLEL_SINE = 1e-15  # two axes count as parallel if the sine of their angle is at most this


class ChainPath(NamedTuple):
    """The m moving joints between a base link and a tip, and the fixed transforms between them."""

    elements: tuple[tuple[Joint, Mimic], ...]  # (m,) joint, and its mimic relation to a variable
    # (m + 1, 3, 4) constant transforms from each joint's frame to the next; joints move about or
    # along the z axes of these frames
    fixed: Array


class NamedChain(NamedTuple):
    """A chain and the names of its n variables."""

    joint_names: tuple[str, ...]  # (n,) names of the variables
    chain: Chain


def build_path(tree: Tree, base: str, tip: str, offset: Array) -> ChainPath:
    """Return the moving joints between two links, and the fixed transforms between these joints.

    Args:
        tree: Robot.
        base: Name of the base link.
        tip: Name of the link to which the tip is fixed.
        offset: (4, 4) T_link_tip, pose of the tip in the frame of this link.

    Raises:
        ChainError: If a link is unknown, the tip is not below the base, or there is no moving joint
            or a floating or planar joint between the links.
        RobotModelError: If a joint has no limits, or mimics a joint that does not move.
    """
    elements: list[tuple[Joint, Mimic]] = []
    fixed: list[Array] = []
    T = np.eye(4)  # transform from the previous element's frame
    for joint in tree.path(base, tip):
        T = T @ joint.origin
        if joint.kind == "fixed":
            continue
        if not joint.is_driven:
            raise ChainError(
                f"joint {joint.name!r} between {base!r} and {tip!r} is {joint.kind}; a chain must "
                "consist of revolute, continuous, prismatic and fixed joints"
            )
        if joint.name in tree.unusable:
            raise RobotModelError(tree.unusable[joint.name])
        mimic = tree.mimic_of[joint.name]
        if mimic.multiplier == 0.0:  # the joint never moves
            T = T @ joint.motion(mimic.offset)
            continue
        element_from_z = transform(rotation_from_z(joint.axis))
        fixed.append((T @ element_from_z)[:3])
        elements.append((joint, mimic))
        T = element_from_z.T
    if not elements:
        raise ChainError(
            f"there is no moving joint between {base!r} and {tip!r}; links: {listing(tree.links)}"
        )
    return ChainPath(tuple(elements), np.array([*fixed, T[:3] @ offset]))


def build_chain(tree: Tree, base: str, tips: Sequence[str], offsets: Array) -> NamedChain:
    """Build the chain from a base link to k tips, with read-only arrays.

    Variables are in the order in which they first occur on the paths to the tips. A mimic joint has
    the variable of the joint that it follows (its master), even if the master is outside the chain.
    A variable has the name of the master. The limits of a variable are those of the master,
    narrowed by the limits of all its mimic joints.

    Args:
        tree: Robot.
        base: Name of the base link.
        tips: (k,) names of the links to which the tips are fixed.
        offsets: (k, 4, 4) T_link_tip, pose of each tip in the frame of its link.

    Raises:
        ChainError: If a path is not valid (see :func:`build_path`), or there are more than
            `MAX_JOINTS` variables.
        RobotModelError: If a joint is not usable (see :func:`build_path`), or the limits of a mimic
            joint exclude every position of the joint that it follows.
    """
    ends = zip(tips, offsets, strict=True)
    paths = [build_path(tree, base, tip, offset) for tip, offset in ends]
    elements = [element for path in paths for element in path.elements]  # (m,)
    names = tuple(dict.fromkeys(mimic.master for _, mimic in elements))
    if len(names) > MAX_JOINTS:
        raise ChainError(f"a chain may have at most {MAX_JOINTS} joints; this one has {len(names)}")
    number = {name: i for i, name in enumerate(names)}
    limits = _limits(tree, names, elements)
    chain = Chain(
        fixed=np.concatenate([path.fixed for path in paths]),
        first=np.cumsum([0, *(len(path.elements) for path in paths)], dtype=np.int64),
        prismatic=np.array([joint.kind == "prismatic" for joint, _ in elements]),
        variable=np.array([number[mimic.master] for _, mimic in elements], np.int64),
        scale=np.array([mimic.multiplier for _, mimic in elements]),
        offset=np.array([mimic.offset for _, mimic in elements]),
        lower=limits[0].copy(),
        upper=limits[1].copy(),
        velocity=limits[2].copy(),
    )
    return NamedChain(names, _read_only(chain))


def _limits(
    tree: Tree, names: Sequence[str], elements: Sequence[tuple[Joint, Mimic]]
) -> NDArray[np.float64]:
    """Return lower, upper and velocity limits (3, n) of n variables.

    Args:
        tree: Robot.
        names: (n,) names of the variables.
        elements: Each joint of the chain with its mimic relation to a variable. The limits of the
            joint narrow the limits of the variable.

    Raises:
        RobotModelError: If the limits of a mimic joint exclude all positions of its master joint.
    """
    masters = [tree.joint[name] for name in names]
    limits = {each.name: (each.lower, each.upper, each.velocity) for each in masters}
    for joint, (master, multiplier, offset) in elements:
        low, high = sorted((end - offset) / multiplier for end in (joint.lower, joint.upper))
        lower, upper, velocity = limits[master]
        lower, upper = max(lower, low), min(upper, high)
        limits[master] = lower, upper, min(velocity, joint.velocity / abs(multiplier))
        if upper < lower:
            raise joint.error(f"its limits exclude every position of {master!r}, which it follows")
    return np.array(list(limits.values())).T


def extend_chain(chain: NamedChain, path: NamedChain) -> NamedChain:
    """Return a chain with an additional tip.

    Args:
        chain: Chain.
        path: Chain from the base link of `chain` to the additional tip. All variables of `path`
            must also be variables of `chain`.
    """
    one, more = chain.chain, path.chain
    which = np.array([chain.joint_names.index(name) for name in path.joint_names], np.int64)
    lower, upper, velocity = one.lower.copy(), one.upper.copy(), one.velocity.copy()
    lower[which] = np.maximum(lower[which], more.lower)  # mimic joints on the path narrow limits
    upper[which] = np.minimum(upper[which], more.upper)
    velocity[which] = np.minimum(velocity[which], more.velocity)
    joined = Chain(
        fixed=np.concatenate([one.fixed, more.fixed]),
        first=np.append(one.first, one.first[-1] + more.first[-1]),
        prismatic=np.concatenate([one.prismatic, more.prismatic]),
        variable=np.concatenate([one.variable, which[more.variable]]),
        scale=np.concatenate([one.scale, more.scale]),
        offset=np.concatenate([one.offset, more.offset]),
        lower=lower,
        upper=upper,
        velocity=velocity,
    )
    return NamedChain(chain.joint_names, _read_only(joined))


def _read_only(chain: Chain) -> Chain:
    """Return the chain after marking its arrays as read-only."""
    for array in chain:
        array.flags.writeable = False
    return chain


def typical_link_length(chain: Chain) -> float:
    """Return the length of a typical link of a chain [m]; 0 if all joints and tips coincide.

    A link reaches from the origin of a joint to that of the next joint, or to the tip. The result
    is the mean of the lengths weighted by the lengths themselves, so that small offsets count
    little.
    """
    k = len(chain.first) - 1
    begins = chain.first[:-1] + np.arange(k)  # transforms from the base to the first joints
    links = np.linalg.norm(np.delete(chain.fixed[:, :, 3], begins, axis=0), axis=1)
    total = float(links.sum())
    return float(links @ links) / total if total > 0.0 else 0.0


def continuous_variables(chain: Chain) -> NDArray[np.bool_]:
    """Return (n,) whether a variable has no limits and a full turn changes no pose; read-only.

    A full turn of a variable changes poses if one of its joints is prismatic, or mimics the
    variable with a multiplier that is not an integer.
    """
    continuous: NDArray[np.bool_] = np.isinf(chain.lower) & np.isinf(chain.upper)
    turns = ~chain.prismatic & (chain.scale % 1.0 == 0.0)  # (m,)
    continuous[chain.variable[~turns]] = False
    continuous.flags.writeable = False
    return continuous


def tip_poses(chain: Chain, configurations: Array) -> Array:
    """Return poses ``T_base_tip`` (b, k, 4, 4) of all k tips at configurations (b, n)."""
    # This function imports the kernel, because importing numba is slow.
    from dls_ik.core.kinematics import forward

    axes, T = _workspace(chain)
    poses = np.zeros((len(configurations), len(T), 4, 4))
    poses[..., 3, 3] = 1.0
    for q, pose in zip(configurations, poses, strict=True):
        forward(chain, q, axes, T)
        pose[:, :3] = T
    return poses


def tip_jacobians(chain: Chain, configurations: Array) -> Array:
    """Return geometric Jacobians (b, 6 k, n) of all k tips at configurations (b, n)."""
    # This function imports the kernels, because importing numba is slow.
    from dls_ik.core.kinematics import forward, jacobian

    axes, T = _workspace(chain)
    jacobians = np.empty((len(configurations), 6 * len(T), len(chain.lower)))
    for q, J in zip(configurations, jacobians, strict=True):
        forward(chain, q, axes, T)
        jacobian(chain, axes, T, J)
    return jacobians


def _workspace(chain: Chain) -> tuple[Array, Array]:
    """Return uninitialised arrays for the m joint axes (m, 2, 3) and k tip poses (k, 3, 4).

    The forward kinematics of a chain writes its results into these arrays.
    """
    return np.empty((len(chain.prismatic), 2, 3)), np.empty((len(chain.first) - 1, 3, 4))


def build_arm(chain: Chain) -> SerialChain:
    """Return a chain with one tip as a :class:`SerialChain`, in which fixed rotations are about x.

    The fixed rotation between two joints can be written as Rz(a) Rx(b) Rz(c). Rotations about z
    commute with the motion of a joint about or along z. The angle a is therefore added to the
    offset of the joint before the fixed rotation, and c to the offset of the joint after the fixed
    rotation. Only Rx(b) remains between the joints.
    """
    m = len(chain.variable)
    turn, slide, link = np.zeros((m, 2)), np.zeros(m), np.zeros((m, 5))
    after = 0.0  # angle c of the fixed rotation before joint k
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
    return SerialChain(
        turn, slide, link, chain.variable, *limits, inverse(before)[:3], chain.fixed[m, :, :3].T
    )


def _angles(R: Array) -> tuple[float, float, float]:
    """Return the angles a, b, c [rad] of a rotation R (3, 3) = Rz(a) Rx(b) Rz(c).

    The angle a is within +-pi/2. If R hardly tilts the z axis, only the sum or the difference of a
    and c is well determined. The angles b and c are computed from Rz(-a) R, which avoids a loss of
    digits in this case.
    """
    a, side = 0.0, np.copysign(1.0, -R[1, 2])
    if np.hypot(R[0, 2], R[1, 2]) > MAX_PARALLEL_SINE:
        a = float(np.arctan2(side * R[0, 2], -side * R[1, 2]))
    left = _about_z(-a) @ R
    return a, float(np.arctan2(-left[1, 2], left[2, 2])), float(np.arctan2(-left[0, 1], left[0, 0]))


def _about_z(angle: float) -> Array:
    """Return the (3, 3) rotation about z by an angle [rad]."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
