"""The robot as everything above the kernels sees it: names, limits, poses."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from hashlib import sha256
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dls_ik.core.types import WIDEST, Array, Chain
from dls_ik.errors import OptionError, RobotModelError
from dls_ik.model.chain import (
    NamedChain,
    build_chain,
    continuous_variables,
    extend_chain,
    tip_jacobians,
    tip_poses,
)
from dls_ik.model.dh import DhRow, load_dh, tree_from_dh
from dls_ik.model.ends import (
    Offsets,
    TipNames,
    checked_offsets,
    choose_ends,
    moved_link,
)
from dls_ik.model.files import shipped_urdf
from dls_ik.model.joint import (
    TURN,
    JointValues,
    checked_configuration,
    checked_values,
    intersect_limits,
)
from dls_ik.model.load import described_tree, read_tree
from dls_ik.model.rotations import inverse
from dls_ik.model.tree import Tree
from dls_ik.text import listing, quoted


@dataclass(frozen=True, eq=False, repr=False)
class RobotModel:
    """The n joint variables between a base and one tip or several; immutable, arrays read-only.

    Joint values are in [rad], or [m] for prismatic joints; poses are 4x4, in the base frame. With
    k tips, given as a sequence of more than one, poses are (k, 4, 4) and Jacobians (6 k, n).

    Joint values are taken in the order of `joint_names`, or by name: a mapping, of arrays for a
    batch, or a message such as ``sensor_msgs/msg/JointState``. Values of other joints of the robot
    are then passed over.

    Robots are equal if all that is in them is: names, joints, limits, base and tips.
    """

    base: str  # link
    tips: tuple[str, ...]  # (k,) links
    joint_names: tuple[str, ...]  # (n,)
    chain: Chain
    tree: Tree
    offsets: Array  # (k, 4, 4) T_link_tip, the identity where the tip is a link
    whole: RobotModel | None = None  # before its limits were narrowed

    @property
    def name(self) -> str:
        """Name of the robot."""
        return self.tree.name

    @property
    def tip(self) -> str:
        """The tip link, the first one of several."""
        return self.tips[0]

    @property
    def n(self) -> int:
        """Number of joint variables."""
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
        """(n,) joints without limits, of which a full turn changes nothing."""
        return continuous_variables(self.chain)

    @property
    def limited(self) -> NDArray[np.bool_]:
        """(n,) joints with both limits."""
        both: NDArray[np.bool_] = np.isfinite(self.lower) & np.isfinite(self.upper)
        return both

    @cached_property
    def units(self) -> tuple[str, ...]:
        """(n,) "rad", or "m" of prismatic joints."""
        kinds = (self.tree.joint[name].kind for name in self.joint_names)
        return tuple("m" if kind == "prismatic" else "rad" for kind in kinds)

    @property
    def link_names(self) -> tuple[str, ...]:
        """All links of the robot, on the chain or not."""
        return self.tree.links

    def __eq__(self, other: object) -> bool:
        """Compare all names and numbers."""
        if self is other or not isinstance(other, RobotModel):
            return self is other
        return self._digest == other._digest

    def __hash__(self) -> int:
        """Return the hash of all names and numbers."""
        return hash(self._digest)

    @cached_property
    def _digest(self) -> bytes:
        """Digest of the content; the same in every process, so that it may be pickled."""
        whole = b"" if self.whole is None else self.whole._digest
        names = repr((self.base, self.tips, self.joint_names)).encode()
        arrays = ((array + 0.0).tobytes() for array in (*self.chain, self.offsets))  # no -0.0
        return sha256(b"".join((self.tree.digest, names, whole, *arrays))).digest()

    def __repr__(self) -> str:
        """Return the name, the ends and the number of joints."""
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
        """Build the chain between two links of a tree; by default from the root to the only tip.

        A gripper is passed over (links or joints named finger, jaw, knuckle, claw), and of several
        frames on one link that for tools is taken (tool0, tcp, grasp, tool, ee, gripper).

        Args:
            tip: A link; or several, such as both hands of a torso, that are solved together.
            offsets: For each tip (4, 4) ``T_link_tip`` [m], where it is on the link, or None. A
                link may then have several tips.

        Raises:
            ChainError: If a link is unknown, a tip is given twice, several links could be the tip,
                no joint of the chain moves, or an offset is not a rigid transform.
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

        A URDF need not be trusted; a xacro file is a program.

        Args:
            source: A path, which ends in ``.xacro`` for xacro, or the text of a URDF.
            base, tip: as :meth:`from_tree`.
            mappings: Arguments of a xacro file, such as ``{"ur_type": "ur5e"}``.

        Raises:
            RobotModelError: If the description is not a usable robot; the message names the joint
                or the line.
            ChainError: If :meth:`from_tree` raises it.
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
        """Load a robot of the library robot_descriptions, which clones it at its first use.

        Args:
            name: Such as ``"so_arm101_description"`` or ``"ur5e_description"``.
            base, tip: as :meth:`from_tree`.
            mappings: Arguments of its xacro file.

        Raises:
            RobotModelError: If robot_descriptions is not installed, has no such robot, or cannot
                clone it.
            ChainError: If :meth:`from_tree` raises it.
        """
        return cls.from_tree(described_tree(name, mappings), base, tip)

    @classmethod
    def from_dh(
        cls,
        rows: Iterable[DhRow | Mapping[str, Any]] | str | os.PathLike[str],
        name: str = "robot",
        base: str = "base",
        tip: str = "tip",
    ) -> RobotModel:
        """Build a robot from DH rows; or from a YAML file, which names the robot and its ends.

        Raises:
            RobotModelError: If the rows are not a usable robot; the message names the row or the
                joint.
        """
        if isinstance(rows, (str, os.PathLike)):
            return cls.from_tree(load_dh(rows))
        return cls.from_tree(tree_from_dh(rows, name, base, tip))

    @classmethod
    def from_name(cls, name: str, base: str | None = None, tip: TipNames = None) -> RobotModel:
        """Load a robot that comes with the package, see ``dls_ik.model.shipped_names()``."""
        return cls.from_urdf(shipped_urdf(name), base, tip)

    @classmethod
    def wam(cls) -> RobotModel:
        """Load the Barrett WAM with 7 joints."""
        return cls.from_name("wam")

    def with_tip(
        self, link: str, offset: ArrayLike | None = None, others: Mapping[str, float] | None = None
    ) -> RobotModel:
        """Return the same chain with one more tip at the end, such as an elbow to constrain.

        Args:
            link: Any link that the chain moves, also one that is a tip already.
            offset: (4, 4) ``T_link_tip`` [m], a frame fixed to the link; default: the link's.
            others: Values of joints between the chain and the link that are not the chain's, as
                for :meth:`link_pose`; they stay where they are.

        Raises:
            ChainError: If a link is unknown, is not below the base or not moved by the chain, or an
                offset is not a rigid transform.
            JointValueError: If :meth:`link_pose` raises it.
        """
        fixed = checked_offsets((*self.tips, link), (*self.offsets, offset))
        moved, T = moved_link(self.tree, self.base, self.joint_names, link, others)
        path = build_chain(self.tree, self.base, (moved,), (T @ fixed[-1])[None])
        _, chain = extend_chain(NamedChain(self.joint_names, self.chain), path)
        return replace(self, tips=(*self.tips, link), offsets=fixed, chain=chain)

    def narrowed(
        self, lower: JointValues, upper: JointValues, near: JointValues | None = None
    ) -> RobotModel:
        """Return the same robot with its limits intersected with intervals.

        For continuous joints the interval is taken modulo 2 pi, and ignored if it is a turn or
        longer. If two arcs overlap in two parts, the larger part is taken. Everything except the
        limits is shared, so that this is cheap.

        Args:
            lower: (n,), one for all, or some by name [rad or m]; -inf for unlimited.
            upper: (n,), one for all, or some by name [rad or m]; inf for unlimited.
            near: (n,) such as a seed: for continuous joints the interval nearest to it is taken;
                default: nearest to 0.

        Raises:
            LimitsError: If a joint has no value inside the limits, or the limits are not n numbers.
            JointValueError: If `near` is not valid, as for :meth:`validated`, or is a batch.
        """
        whole = self.whole or self
        low, high = intersect_limits(
            self.joint_names, (self.lower, self.upper), whole.continuous, (lower, upper), near
        )
        return replace(self, chain=self.chain._replace(lower=low, upper=high), whole=whole)

    def fk(self, q: JointValues) -> Array:
        """Compute the forward kinematics ``T_base_tip``.

        Args:
            q: (n,) or (b, n).

        Returns:
            (4, 4) or (b, 4, 4); of several tips (k, 4, 4) or (b, k, 4, 4).

        Raises:
            JointValueError: If :meth:`validated` raises it.
        """
        q = self.validated(q)
        tips = () if len(self.tips) == 1 else (len(self.tips),)
        poses = tip_poses(self.chain, q.reshape(-1, self.n))
        return poses.reshape(*q.shape[:-1], *tips, 4, 4)

    def jacobian(self, q: JointValues) -> Array:
        """Compute the geometric Jacobian in the base frame, six rows a tip, linear rows first.

        Args:
            q: (n,) or (b, n).

        Returns:
            (6 k, n) or (b, 6 k, n), in [m/rad, rad/rad] or [m/m, 0] by joint.

        Raises:
            JointValueError: If :meth:`validated` raises it.
        """
        q = self.validated(q)
        jacobians = tip_jacobians(self.chain, q.reshape(-1, self.n))
        return jacobians.reshape(*q.shape[:-1], 6 * len(self.tips), self.n)

    def link_pose(
        self, link: str, q: JointValues, others: Mapping[str, float] | None = None
    ) -> Array:
        """Compute the pose ``T_base_link`` of any link of the robot, on the chain or not.

        Args:
            link: Name of the link.
            q: (n,) values of the chain.
            others: Values of further joints by name; those not given stand at 0, or at the limit
                next to 0. Mimic joints follow their master.

        Raises:
            ChainError: If a link is unknown.
            JointValueError: If :meth:`validated` raises it, a joint is unknown, or a value is not
                finite.
        """
        q = self.validated_one(q)
        values = {**(others or {}), **self.named(q)}
        self.tree.require(link)
        return inverse(self.tree.pose(self.base, values)) @ self.tree.pose(link, values)

    def named(self, q: Array) -> dict[str, float]:
        """Return values (n,) by the names of the joints."""
        return dict(zip(self.joint_names, q.tolist(), strict=True))

    def finite_limits(self) -> tuple[Array, Array]:
        """Return the limits, (n,) each, with a range of 2 pi [rad or m] for unlimited joints.

        Limits beyond 1e7 count as unlimited: descriptions use such as 1e16 for joints without
        limits, and values of that size have no digits left for an angle.
        """
        has_lower, has_upper = self.lower > -WIDEST, self.upper < WIDEST
        lower = np.where(has_lower, self.lower, np.where(has_upper, self.upper - TURN, -TURN / 2))
        upper = np.where(has_upper, self.upper, lower + TURN)
        low, high = np.clip((lower, upper), self.lower, self.upper)
        return low + 0.0, high + 0.0  # NumPy draws nothing between 0.0 and -0.0

    def random(
        self,
        size: int | np.random.Generator | None = None,
        rng: np.random.Generator | int | None = None,
    ) -> Array:
        """Draw configurations uniform within :meth:`finite_limits`.

        Args:
            size: How many; default: one, (n,).
            rng: A generator, or the seed of one; default: others at each call. Both arguments are
                taken in either order.

        Returns:
            (n,), or (size, n).

        Raises:
            OptionError: If the size is not an integer of at least 0, or neither a generator nor a
                seed is given.
        """
        if isinstance(size, np.random.Generator):
            size, rng = rng, size
        if not isinstance(rng, np.random.Generator):
            seed = "rng is a numpy.random.Generator, or its seed from 0"
            rng = np.random.default_rng(None if rng is None else _whole(rng, seed))
        whole = "the size is a whole number from 0"
        shape = self.n if size is None else (_whole(size, whole), self.n)
        return rng.uniform(*self.finite_limits(), shape)

    def clip(self, q: JointValues) -> Array:
        """Return the nearest values within the limits, (n,) or (b, n)."""
        return np.clip(self.validated(q), self.lower, self.upper)

    def within_limits(self, q: JointValues, tolerance: float = 0.0) -> NDArray[np.bool_]:
        """Check that no joint is beyond a limit by more than ``tolerance``: a bool, or (b,)."""
        q = self.validated(q)
        inside = (q >= self.lower - tolerance) & (q <= self.upper + tolerance)
        every: NDArray[np.bool_] = np.all(inside, axis=-1)
        return every

    def validated(self, q: JointValues) -> Array:
        """Return joint values as contiguous float64, (n,) or (b, n); such an array as it is.

        Raises:
            JointValueError: If the values are not numbers, not finite, or of the wrong length; the
                message gives the value and names the joint.
        """
        return checked_values(q, self.joint_names, self.tree.joint)

    def validated_one(self, q: JointValues) -> Array:
        """Return one configuration (n,) as :meth:`validated`, and refuse a batch.

        Raises:
            JointValueError: If :meth:`validated` raises it, or the array is a batch.
        """
        return checked_configuration(q, self.joint_names, self.tree.joint)


def checked_robot(given: object) -> RobotModel:
    """Return a robot that is one.

    Raises:
        RobotModelError: If the value is not a RobotModel, such as a name or a file.
    """
    if not isinstance(given, RobotModel):
        raise RobotModelError(
            "a robot is a RobotModel, as of RobotModel.from_urdf('arm.urdf') or "
            f"RobotModel.from_name('wam'), not {quoted(given)}"
        )
    return given


def _whole(value: Any, valid: str) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise OptionError(f"{valid}, not {quoted(value)}")
    return int(value)
