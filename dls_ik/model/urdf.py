"""URDF, as a file or as text, to a :class:`dls_ik.model.Tree`."""

import logging
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from dls_ik.core.types import Array
from dls_ik.exceptions import RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.names import listing, quoted
from dls_ik.model.packages import read_file
from dls_ik.model.rigid import rotation_from_rpy, transform
from dls_ik.model.skeleton import ENDS, MAX_BYTES, kinematic_skeleton
from dls_ik.model.tree import Tree

LOG = logging.getLogger("dls_ik")


def load_urdf(source: str | os.PathLike[str]) -> Tree:
    """Read a URDF.

    Args:
        source: The XML itself, a string whose first visible character is ``<``, or the path of a
            file. It need not be trusted: no entities, nothing else is opened, and sizes are bounded
            (:mod:`dls_ik.model.skeleton`).

    Raises:
        RobotModelError: not a usable robot; the message names the joint or the line. Joints
            without limits, and mimic joints that follow nothing that moves, are told to Python's
            log, and refused by chains.
    """
    skeleton = kinematic_skeleton(_text(source))
    flaws = {str(each.get("name")): _flaw(each) for each in skeleton.iter("joint")}
    robot = _parsed(skeleton)
    links = tuple(str(link.name) for link in robot.links)
    joints = tuple(_joint(joint, flaws[joint.name]) for joint in robot.joints)
    tree = Tree(str(robot.name), links, joints)
    if tree.broken:
        reasons = "; ".join(dict.fromkeys(list(tree.broken.values())[:3]))
        LOG.warning(
            f"{tree.name}: {listing(tree.broken)} cannot be used, and stand at 0; chains that do "
            f"not lead over them can: {reasons}"
        )
    return tree


def _text(source: str | os.PathLike[str]) -> str | bytes:
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source
    if not isinstance(source, (str, os.PathLike)):
        raise RobotModelError(
            f"a URDF is given as XML text or as the path of a file, not as {type(source).__name__}"
        )
    return _file(Path(source), quoted(os.fspath(source)))


def _file(path: Path, shown: str) -> bytes:
    try:
        if not path.is_file():
            raise RobotModelError(f"{shown} is neither URDF text nor an existing file")
        return read_file(path, MAX_BYTES)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise RobotModelError(f"cannot read the URDF file {shown}: {reason}") from error


def _parsed(skeleton: ET.Element) -> Any:
    """The robot as the URDF library reads it; its errors name the joint that it stumbled on."""
    from urdf_parser_py import urdf

    try:
        return urdf.URDF.from_xml_string(_xml(skeleton))
    except Exception as error:  # the library raises whatever it meets
        for joint in skeleton.iter("joint"):
            _try_joint(joint)
        raise RobotModelError(f"not a usable URDF: {error}") from error


def _try_joint(element: ET.Element) -> None:
    from urdf_parser_py import urdf

    try:
        urdf.Joint.from_xml_string(_xml(element))
    except Exception as error:
        reason = str(error).rpartition("\n")[2] or type(error).__name__
        if "joint type" in reason:
            reason += f"; known: {', '.join(urdf.Joint.TYPES[1:])}"
        raise RobotModelError(f"joint {element.get('name')!r}: {reason}") from error


def _xml(element: ET.Element) -> str:
    return ET.tostring(element, encoding="unicode")


def _flaw(joint: ET.Element) -> str:
    """Words for a joint that cannot be used for want of limits; else nothing.

    By the letter of the format what is left out is 0: such a joint would stand still.
    """
    kind, limit = joint.get("type"), joint.find("limit")
    if kind not in ("revolute", "prismatic") or (
        limit is not None and set(ENDS) & set(limit.keys())
    ):
        return ""
    hint = ", or is 'continuous'" if kind == "revolute" else ""
    return f"a {kind} joint needs a <limit> with lower and upper{hint}"


def _joint(joint: Any, flaw: str) -> Joint:
    """One joint of the library as ours, which is where it is checked."""
    limit = joint.limit
    return Joint(
        name=joint.name,
        kind=joint.type,
        parent=joint.parent,
        child=joint.child,
        origin=_origin(joint),
        axis=np.array([1.0, 0.0, 0.0] if joint.axis is None else joint.axis),
        lower=-np.inf if limit is None else limit.lower,
        upper=np.inf if limit is None else limit.upper,
        velocity=np.inf if limit is None else limit.velocity,
        mimic=_mimic(joint),
        flaw=flaw,
    )


def _origin(joint: Any) -> Array:
    if joint.origin is None:
        return np.eye(4)
    rpy = joint.origin.rpy
    if not np.isfinite(rpy).all():
        raise RobotModelError(f"joint {joint.name!r}: rpy must be finite, given {rpy}")
    return transform(rotation_from_rpy(*rpy), np.array(joint.origin.xyz))


def _mimic(joint: Any) -> Mimic | None:
    if joint.mimic is None:
        return None
    return Mimic(joint.mimic.joint, joint.mimic.multiplier, joint.mimic.offset)
