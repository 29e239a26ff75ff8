# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The model of a robot: joint names, limits, forward kinematics and Jacobians of a chain."""

from __future__ import annotations

import hashlib
import os
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from numbers import Integral, Real
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import WIDEST, Array, Chain
from dls_ik.errors import ChainError, JointValueError, OptionError, RobotModelError
from dls_ik.lazy_property import cached_property
from dls_ik.model.chain import (
    NamedChain,
    build_chain,
    continuous_variables,
    extend_chain,
    tip_jacobians,
    tip_poses,
)
from dls_ik.model.descriptions import described_tree, named_tree
from dls_ik.model.dh import DhRow, load_dh, tree_from_dh
from dls_ik.model.ends import (
    Offsets,
    TipNames,
    checked_offsets,
    choose_ends,
    moved_link,
)
from dls_ik.model.joint import (
    TURN,
    JointValues,
    checked_configuration,
    checked_values,
    intersect_limits,
)
from dls_ik.model.load import read_tree
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.text import did_you_mean, listing, quoted


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel:
    """Robot model: an immutable chain with n joint variables between a base and k tips.

    Joint positions are in [rad], or [m] for prismatic joints. Poses are matrices (4, 4) in the base
    frame. For k > 1 tips, poses are (k, 4, 4) and Jacobians are (6 k, n). Arrays are read-only.

    Methods accept joint positions as an array in the order of `joint_names`, or by joint name.
    Positions by name are a mapping (with arrays (b,) as values for a batch of b configurations), or
    a message such as ``sensor_msgs/msg/JointState``. Positions by name may contain joints outside
    the chain, which are ignored.

    Two robots are equal if the trees, names, joints, limits, bases and tips are equal.
    """

    base: str  # name of the base link
    tips: tuple[str, ...]  # (k,) names of the tip links
    joint_names: tuple[str, ...]  # (n,) names of the joint variables
    chain: Chain
    tree: Tree
    offsets: Array  # (k, 4, 4) T_link_tip, the identity if the tip frame is the link's frame
    whole: RobotModel | None = None  # robot before its limits were narrowed, or None

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.tree.name

    @property
    def tip(self) -> str:
        """Name of the tip link; if there are several tips, name of the first tip link."""
        return self.tips[0]

    @property
    def n(self) -> int:
        """Number of joint variables of the chain."""
        return len(self.joint_names)

    @property
    def lower(self) -> Array:
        """(n,) lower limits [rad or m], -inf for unlimited joints."""
        return self.chain.lower

    @property
    def upper(self) -> Array:
        """(n,) upper limits [rad or m], +inf for unlimited joints."""
        return self.chain.upper

    @property
    def velocity(self) -> Array:
        """(n,) velocity limits [rad/s or m/s], +inf for unlimited joints."""
        return self.chain.velocity

    @cached_property
    def continuous(self) -> NDArray[np.bool_]:
        """(n,) whether a joint has no limits, and a full turn of the joint changes no tip pose."""
        return continuous_variables(self.chain)

    @property
    def limited(self) -> NDArray[np.bool_]:
        """(n,) whether a joint has both a lower and an upper limit."""
        both: NDArray[np.bool_] = np.isfinite(self.lower) & np.isfinite(self.upper)
        return both

    @cached_property
    def units(self) -> tuple[str, ...]:
        """Units (n,) of joint positions, "m" for prismatic joints and "rad" for all others."""
        kinds = (self.tree.joint[name].kind for name in self.joint_names)
        return tuple("m" if kind == "prismatic" else "rad" for kind in kinds)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links of the robot, including links outside the chain."""
        return self.tree.links

    def __eq__(self, other: object) -> bool:
        """Return whether all names and numbers of another robot are equal."""
        if self is other or not isinstance(other, RobotModel):
            return self is other
        return self._digest == other._digest

    def __hash__(self) -> int:
        """Return the hash of all names and numbers."""
        return hash(self._digest)

    @cached_property
    def _digest(self) -> bytes:
        """SHA-256 digest of all names and numbers of the robot; equal in every process."""
        whole = b"" if self.whole is None else self.whole._digest
        names = repr((self.base, self.tips, self.joint_names)).encode()
        arrays = ((array + 0.0).tobytes() for array in (*self.chain, self.offsets))  # -0.0 is 0.0
        return sha256(b"".join((self.tree.digest, names, whole, *arrays))).digest()

    def __repr__(self) -> str:
        """Return a text with the name of the robot, its base, its tips and its number of joints."""
        joints = f"{self.n} joint{'s' if self.n > 1 else ''}"
        return f"RobotModel({self.name}, {self.base} to {listing(self.tips)}, {joints})"

    @classmethod
    def from_tree(
        cls,
        tree: Tree,
        base: str | None = None,
        tip: TipNames = None,
        offsets: Offsets = None,
    ) -> RobotModel:
        """Build the model of a chain between links of a kinematic tree.

        By default the chain leads from the root to the tip of the only arm. Grippers (links or
        joints with names such as finger, jaw, knuckle or claw) are not part of the default chain.
        If several frames are fixed to the last link, the default tip is the frame that is named
        like a tool frame (tool0, tcp, grasp, tool, ee, flange or gripper).

        Args:
            tree: Links and joints of the robot.
            base: Base link; None stands for the root.
            tip: Tip link, or several tip links, such as two hands, whose poses are solved for
                together. None stands for the default tip.
            offsets: For each tip its pose ``T_link_tip`` (4, 4) [m] in the frame of the tip link,
                or None if the frames are equal. If offsets are given, a link may have several tips.

        Raises:
            ChainError: If a link is unknown, a tip is given twice without offsets, several links
                could be the default tip, the chain has no moving joint, or an offset is not a rigid
                transform.
            RobotModelError: If a joint of the chain is not usable, for example because it has no
                limits.
        """
        base, tips = choose_ends(tree, base, tip, offsets is not None)
        fixed = checked_offsets(tips, offsets)
        joint_names, chain = build_chain(tree, base, tips, fixed)
        return cls(base, tips, joint_names, chain, tree, fixed)

    @classmethod
    def from_urdf(
        cls,
        source: str | os.PathLike[str],
        base: str | None = None,
        tip: TipNames = None,
        *,
        mappings: Mapping[str, object] | None = None,
    ) -> RobotModel:
        """Read a robot from a URDF or xacro file, or from the text of a URDF.

        A URDF need not be trusted. A xacro file must be trusted, because it can run code.

        Args:
            source: Path of a URDF file, path of a xacro file that ends in ``.xacro``, or URDF text.
            base: Base link; see :meth:`from_tree`.
            tip: Tip link or tip links; see :meth:`from_tree`.
            mappings: Arguments of a xacro file by name, such as ``{"ur_type": "ur5e"}``.

        Raises:
            RobotModelError: If the file or text does not describe a usable robot; the message gives
                the joint or the line.
            ChainError: If the base or a tip is not valid; see :meth:`from_tree`.
        """
        return cls.from_tree(read_tree(source, mappings), base, tip)

    @classmethod
    def from_description(
        cls,
        name: str,
        base: str | None = None,
        tip: TipNames = None,
        *,
        mappings: Mapping[str, object] | None = None,
    ) -> RobotModel:
        """Load a robot from the library robot_descriptions.

        At the first use of a robot, the library clones the Git repository with its description.

        Args:
            name: Name of the robot, such as ``"so_arm101_description"`` or ``"ur5e_description"``.
            base: Base link; see :meth:`from_tree`.
            tip: Tip link or tip links; see :meth:`from_tree`.
            mappings: Values of xacro arguments by name, if the description is a xacro file.

        Raises:
            RobotModelError: If robot_descriptions is not installed, does not have the robot, or
                cannot clone the repository.
            ChainError: If the base or a tip is not valid; see :meth:`from_tree`.
        """
        return cls.from_tree(described_tree(name, mappings), base, tip)

    @classmethod
    def from_dh(
        cls,
        rows: Iterable[DhRow | Mapping[str, Any] | Sequence[Any]] | str | os.PathLike[str],
        name: str = "robot",
        base: str = "base",
        tip: str = "tip",
    ) -> RobotModel:
        """Build a robot from DH rows, or from a YAML file with DH rows.

        Args:
            rows: DH rows in order from base to tip, or the path of a YAML file. A row is a mapping,
                a :class:`DhRow`, or a list or tuple of its first values (a, alpha, d, theta, kind,
                lower, upper, velocity, name). If a path is given, the names are read from the file,
                and the other arguments are ignored.
            name: Name of the robot.
            base: Name of the base link.
            tip: Name of the tip link.

        Raises:
            RobotModelError: If the rows are not valid, or a joint is not usable; the message names
                the row or the joint.
        """
        if isinstance(rows, (str, os.PathLike)):
            return cls.from_tree(load_dh(rows))
        return cls.from_tree(tree_from_dh(rows, name, base, tip))

    @classmethod
    def from_name(cls, name: str, base: str | None = None, tip: TipNames = None) -> RobotModel:
        """Load a robot by name, from this package or from an installed library of robots.

        ``dls_ik.model.shipped_names()`` lists the robots of this package. The libraries are the
        Python packages example-robot-data and robot_descriptions, which must be installed
        separately. At the first use of a robot, robot_descriptions clones a Git repository.

        Args:
            name: Name of the robot, such as ``"wam"``, ``"panda"`` or ``"ur5e"``.
            base: Base link; see :meth:`from_tree`.
            tip: Tip link or tip links; see :meth:`from_tree`.

        Raises:
            RobotModelError: If the name is unknown; the message says what to install, or suggests
                names. If robot_descriptions cannot clone the repository.
            ChainError: If the base or a tip is not valid; see :meth:`from_tree`.
        """
        return cls.from_tree(named_tree(name), base, tip)

    @classmethod
    def wam(cls) -> RobotModel:
        """Load the robot Barrett WAM with 7 joints, which comes with the package."""
        return cls.from_name("wam")

    def with_tip(
        self, link: str, offset: ArrayLike | None = None, others: Mapping[str, float] | None = None
    ) -> RobotModel:
        """Return the robot with an additional tip, such as the elbow of an arm.

        Args:
            link: Link to which the additional tip is fixed. The chain must move this link; the link
                may already be a tip.
            offset: Pose ``T_link_tip`` (4, 4) [m] of the tip in the frame of the link; None if the
                frames are equal.
            others: Positions of joints outside the chain by name [rad or m]. If such joints are
                between the chain and the link, they are fixed at these positions;
                :meth:`link_pose` explains the positions of missing joints.

        Raises:
            ChainError: If the link is unknown, not below the base or not moved by the chain alone,
                or the offset is not a rigid transform.
            JointValueError: If a joint in `others` is unknown, or a position is not finite.
        """
        fixed = checked_offsets((*self.tips, link), (*self.offsets, offset))
        moved, T = moved_link(self.tree, self.base, self.joint_names, link, others)
        path = build_chain(self.tree, self.base, (moved,), (T @ fixed[-1])[None])
        _, chain = extend_chain(NamedChain(self.joint_names, self.chain), path)
        return replace(self, tips=(*self.tips, link), offsets=fixed, chain=chain)

    def narrowed(
        self, lower: JointValues, upper: JointValues, near: JointValues | None = None
    ) -> RobotModel:
        """Return the robot with narrower joint limits, the intersections of limits and intervals.

        The interval of a continuous joint may be shifted by full turns, and is ignored if it is a
        full turn or longer. If the shifted intervals overlap the limits in two ranges, the larger
        range is used. This method is fast, because the new robot shares all data except the limits.

        Args:
            lower: Lower ends of the intervals: (n,), one number for all joints, or a mapping by
                name [rad or m]; -inf for no limit.
            upper: Upper ends of the intervals: (n,), one number for all joints, or a mapping by
                name [rad or m]; inf for no limit.
            near: Joint positions (n,) such as a seed [rad or m]; None stands for 0. The interval of
                a continuous joint without limits is shifted by full turns to the place closest to
                the joint's position in `near`.

        Raises:
            LimitsError: If an intersection is empty, or the interval ends are not n numbers.
            JointValueError: If `near` is not valid (see :meth:`validated`), or is a batch.
        """
        whole = self.whole or self
        low, high = intersect_limits(
            self.joint_names, (self.lower, self.upper), whole.continuous, (lower, upper), near
        )
        return replace(self, chain=self.chain._replace(lower=low, upper=high), whole=whole)

    def locked(self, values: Mapping[str, float]) -> RobotModel:
        """Return a copy of the robot in which some joints are fixed at given positions.

        The new robot has fewer joints: its configurations have no entry for a locked joint. To keep
        all entries instead, solve with ``max_joint_change={"j3": 0.0}`` and a seed.

        Args:
            values: Position of each joint to lock, by joint name [rad or m].

        Raises:
            JointValueError: If a joint is not one of `joint_names`, or a position is not finite or
                outside the limits, or `values` is not a mapping.
            ChainError: If no joint remains.
        """
        if not isinstance(values, Mapping):
            raise JointValueError(
                "joints to lock must be a mapping of names to positions, such as "
                f"{{{self.joint_names[0]!r}: 0.0}}; got {quoted(values)}"
            )
        if set(self.joint_names) <= set(values):
            raise ChainError(f"all {self.n} joints are locked; leave at least one joint free")
        value: Any
        for name, value in values.items():
            if name not in self.joint_names:
                hint = did_you_mean(name, self.joint_names, "; {}")
                names = listing(self.joint_names)
                raise JointValueError(f"cannot lock joint {quoted(name)}: joints are {names}{hint}")
            i = self.joint_names.index(name)
            inside = isinstance(value, Real) and self.lower[i] <= value <= self.upper[i]
            if not inside or not np.isfinite(value):
                raise JointValueError(
                    f"joint {name!r} must be locked from {self.lower[i]:g} to {self.upper[i]:g} "
                    f"[{self.units[i]}]; got {quoted(value)}"
                )
        robot = RobotModel.from_tree(
            self.tree.locked(values), self.base, self.tips, list(self.offsets)
        )
        if self.whole is None:
            return robot
        kept = [self.joint_names.index(name) for name in robot.joint_names]
        return robot.narrowed(self.lower[kept], self.upper[kept])

    def fk(self, q: JointValues) -> Array:
        """Return the pose ``T_base_tip`` of each tip at joint positions (forward kinematics).

        Args:
            q: Joint positions (n,) or (b, n) [rad or m].

        Returns:
            Poses (4, 4) or (b, 4, 4) [m]; for several tips (k, 4, 4) or (b, k, 4, 4).

        Raises:
            JointValueError: If q is not valid, see :meth:`validated`.
        """
        q = self.validated(q)
        tips = () if len(self.tips) == 1 else (len(self.tips),)
        poses = tip_poses(self.chain, q.reshape(-1, self.n))
        return poses.reshape(*q.shape[:-1], *tips, 4, 4)

    def jacobian(self, q: JointValues, frame: Literal["base", "tip"] = "base") -> Array:
        """Return the geometric Jacobian of the tips, in the axes of the base or of the tips.

        The Jacobian has 3 linear rows followed by 3 angular rows for each tip. The linear rows are
        the velocity of the origin of the tip frame, with either frame.

        Args:
            q: Joint positions (n,) or (b, n) [rad or m].
            frame: Axes in which the rows are given: those of the base, or of each tip.

        Returns:
            Jacobian (6 k, n) or (b, 6 k, n). Linear rows are in [m/rad] and angular rows in
            [rad/rad]; in columns of prismatic joints, linear rows are in [m/m] and angular rows 0.

        Raises:
            JointValueError: If q is not valid, see :meth:`validated`.
            OptionError: If the frame is unknown.
        """
        if frame not in ("base", "tip"):
            raise OptionError(f"frame must be base or tip; got {quoted(frame)}")
        q = self.validated(q)
        rows = q.reshape(-1, self.n)
        jacobians = tip_jacobians(self.chain, rows)
        if frame == "tip":
            R = tip_poses(self.chain, rows).reshape(len(rows), -1, 1, 4, 4)[..., :3, :3]
            blocks = jacobians.reshape(len(rows), -1, 2, 3, self.n)  # linear and angular rows
            jacobians = R.swapaxes(-1, -2) @ blocks
        return jacobians.reshape(*q.shape[:-1], 6 * len(self.tips), self.n)

    def manipulability(self, q: JointValues, position_only: bool = False) -> Any:
        """Return the manipulability, the product of the singular values of the Jacobian.

        For arms with six joints or more and one tip, the product equals sqrt(det(J J^T)) (Yoshikawa
        1985); it is 0 at a singular configuration. Metres and radians are not weighted.

        Args:
            q: Joint positions (n,) or (b, n) [rad or m].
            position_only: Whether to use only the linear rows, as is usual for arms in a plane.

        Returns:
            A float, or an array (b,) for a batch.

        Raises:
            JointValueError: If q is not valid, see :meth:`validated`.
        """
        J = self.jacobian(q)
        if position_only:
            J = J[..., np.arange(J.shape[-2]) % 6 < 3, :]
        return np.prod(np.linalg.svd(J, compute_uv=False), axis=-1)[()]

    def link_pose(
        self, link: str, q: JointValues, others: Mapping[str, float] | None = None
    ) -> Array:
        """Return the pose ``T_base_link`` of any link, inside or outside the chain.

        The result is a matrix (4, 4) [m], or (b, 4, 4) for a batch of b configurations.

        Args:
            link: Name of the link.
            q: Joint positions (n,) or (b, n) of the chain [rad or m].
            others: Positions of joints outside the chain by name [rad or m]. A joint that is
                missing is at 0, or at its limit closest to 0. Mimic joints follow their master.

        Raises:
            ChainError: If the link is unknown.
            JointValueError: If q is not valid (see :meth:`validated`), a joint is unknown, or a
                position is not finite.
        """
        q = self.validated(q)
        if q.ndim == 2:
            poses = [self.link_pose(link, each, others) for each in q]
            return np.array(poses).reshape(-1, 4, 4)
        values = {**(others or {}), **self.named(q)}
        self.tree.require(link)
        return inverse(self.tree.pose(self.base, values)) @ self.tree.pose(link, values)

    def named(self, q: Array) -> dict[str, float]:
        """Return the joint positions q (n,) as a mapping from joint name to position."""
        return dict(zip(self.joint_names, q.tolist(), strict=True))

    def finite_limits(self) -> tuple[Array, Array]:
        """Return lower and upper limits that are finite for all joints, (n,) each [rad or m].

        A joint without limits gets the range -pi to pi. If one limit is missing, the range is 2 pi
        long. A limit with a magnitude above 1e7 counts as missing, because some robot descriptions
        use limits such as 1e16 for unlimited joints, and floating-point numbers of this magnitude
        are too coarse for angles.
        """
        has_lower, has_upper = self.lower > -WIDEST, self.upper < WIDEST
        lower = np.where(has_lower, self.lower, np.where(has_upper, self.upper - TURN, -TURN / 2))
        upper = np.where(has_upper, self.upper, lower + TURN)
        low, high = np.clip((lower, upper), self.lower, self.upper)
        return low + 0.0, high + 0.0  # 0.0 replaces -0.0: NumPy cannot draw from 0.0 to -0.0

    def random(
        self, size: int | None = None, rng: np.random.Generator | int | None = None
    ) -> Array:
        """Return random configurations, uniform within :meth:`finite_limits`.

        Args:
            size: Number of configurations; None stands for a single configuration.
            rng: Random generator, or the seed of a generator; None stands for a new seed at each
                call.

        Returns:
            (n,) if the size is None, otherwise (size, n) [rad or m].

        Raises:
            OptionError: If the size is not an integer of at least 0, or `rng` is neither a
                generator nor a seed.
        """
        first: Any = size
        if isinstance(first, np.random.Generator):  # the order of version 0.1
            warnings.warn(
                "a generator before the size is deprecated; use robot.random(size, rng)",
                DeprecationWarning,
                stacklevel=2,
            )
            size, rng = cast("int | None", rng), first
        if not isinstance(rng, np.random.Generator):
            seed = "rng must be a numpy.random.Generator, or a seed of at least 0"
            rng = np.random.default_rng(None if rng is None else _natural_number(rng, seed))
        valid_size = "size must be an integer of at least 0"
        shape = self.n if size is None else (_natural_number(size, valid_size), self.n)
        return rng.uniform(*self.finite_limits(), shape)

    def clip(self, q: JointValues) -> Array:
        """Return joint positions clipped to the limits, (n,) or (b, n) [rad or m]."""
        return np.clip(self.validated(q), self.lower, self.upper)

    def within_limits(self, q: JointValues, tolerance: float = 0.0) -> NDArray[np.bool_]:
        """Return whether all joints are within their limits.

        The result is a single bool, or an array (b,) for a batch of b configurations.

        Args:
            q: Joint positions (n,) or (b, n) [rad or m].
            tolerance: Allowed excess beyond a limit [rad or m].
        """
        q = self.validated(q)
        inside = (q >= self.lower - tolerance) & (q <= self.upper + tolerance)
        every: NDArray[np.bool_] = np.all(inside, axis=-1)
        return every

    def validated(self, q: JointValues) -> Array:
        """Validate joint positions, and return them as a contiguous float64 array (n,) or (b, n).

        The values are copied only if necessary.

        Raises:
            JointValueError: If the values are not numbers, not finite, or of a wrong length; the
                message gives the value and names the joint.
        """
        return checked_values(q, self.joint_names, self.tree.joint)

    def validated_one(self, q: JointValues) -> Array:
        """Validate the joint positions of a single configuration, and return them as array (n,).

        Raises:
            JointValueError: If the values are not valid (see :meth:`validated`), or are a batch of
                configurations.
        """
        return checked_configuration(q, self.joint_names, self.tree.joint)


def kinematics_digest(robot: RobotModel) -> str:
    """Return the hexadecimal SHA-256 digest of the kinematics and position limits of a chain."""
    chain = robot.chain
    digest = hashlib.sha256()
    joints = (chain.prismatic, chain.variable, chain.scale, chain.offset)
    for array in (chain.fixed, *joints, chain.lower, chain.upper):
        digest.update(repr((array.dtype.str, array.shape)).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def checked_robot(given: object) -> RobotModel:
    """Check that a value is a RobotModel, and return it unchanged.

    Raises:
        RobotModelError: If the value has another type, such as a name or a path.
    """
    if not isinstance(given, RobotModel):
        raise RobotModelError(
            "robot must be a RobotModel, such as RobotModel.from_urdf('arm.urdf') or "
            f"RobotModel.from_name('wam'); got {quoted(given)}"
        )
    return given


def _natural_number(value: Any, valid: str) -> int:
    """Check that a value is an integer of at least 0, and return it as an int.

    Args:
        value: Value to check.
        valid: Start of the error message, with the condition for a valid value.

    Raises:
        OptionError: If the value is not an integer of at least 0.
    """
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise OptionError(f"{valid}; got {quoted(value)}")
    return int(value)
