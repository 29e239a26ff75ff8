# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reader of URDF files and text from sources that need not be trusted.

A single pass of the XML parser rejects document types, entities and oversized documents. The pass
keeps only the elements that the kinematics need. All other elements (meshes, transmissions,
simulator and controller settings) are dropped before the URDF library converts the joints.
"""

import logging
import os
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np

from dls_ik.core.types import Array
from dls_ik.errors import RobotModelError
from dls_ik.model.joint import Joint, Mimic
from dls_ik.model.rotations import rotation_from_rpy, transform
from dls_ik.model.tree import Description, Tree
from dls_ik.model.xml import BoundedXml, read_document
from dls_ik.text import listing

LOG = logging.getLogger("dls_ik")

DEFAULT_NAME = "robot"  # name of a robot if a URDF text has no robot name
MAX_LINKS_AND_JOINTS = 5000  # maximum number of links and joints together
# For each element of a joint that is kept: the attributes that are kept, and their defaults. The
# effort is not used, but the URDF library requires the attribute.
KEPT: dict[str, dict[str, str | None]] = {
    "origin": {"xyz": "0 0 0", "rpy": "0 0 0"},
    "axis": {"xyz": "1 0 0"},
    "parent": {"link": None},
    "child": {"link": None},
    "limit": {"lower": "0", "upper": "0", "velocity": "0", "effort": "0"},
    "mimic": {"joint": None, "multiplier": "1", "offset": "0"},
}


def load_urdf(source: str | os.PathLike[str], folder: Path | None = None) -> Tree:
    """Read a URDF, and return the tree of its links and joints.

    Joints without limits, and mimic joints whose master does not move, are not usable: chains must
    not contain such joints. A warning in Python's log names these joints.

    Args:
        source: Path of a file, or the XML text, a string whose first visible character is ``<``.
            The source need not be trusted: entities and external files are not read, and sizes are
            bounded.
        folder: Folder to which relative paths of meshes refer. None stands for the folder of the
            file; if the source is a text, for an unknown folder.

    Raises:
        RobotModelError: If the description is not a usable robot; the message names the joint or
            the line.
    """
    description = read_description(source, folder)
    robot = sanitized_urdf(description.urdf)
    links = tuple(str(link.get("name")) for link in robot.iter("link"))
    joints = tuple(map(_joint, robot.iter("joint")))
    name = robot.get("name")
    if not name:
        name = _default_name(source)
        LOG.warning(f"the URDF has no robot name; using {name!r}")
    tree = Tree(name, links, joints, description)
    if tree.unusable:
        reasons = "; ".join(dict.fromkeys(list(tree.unusable.values())[:3]))
        LOG.warning(
            f"{tree.name}: joints {listing(tree.unusable)} are not usable and stay at 0; chains "
            f"without them are possible: {reasons}"
        )
    return tree


def _default_name(source: str | os.PathLike[str]) -> str:
    """Return the robot name for a URDF without robot name: the file's stem, or ``robot``."""
    text = os.fsdecode(source)
    name = "" if text.lstrip("\ufeff \t\r\n").startswith("<") else Path(text).name.partition(".")[0]
    return name if name.isprintable() and name else DEFAULT_NAME


def read_description(source: str | os.PathLike[str], folder: Path | None = None) -> Description:
    """Return the text of a URDF given as for :func:`load_urdf`, without validation.

    Raises:
        RobotModelError: If the source is neither text nor a readable file.
    """
    text, beside = read_document(source, "URDF")
    return Description(text, beside if folder is None else folder)


def _joint(element: ET.Element) -> Joint:
    """Return the joint that a ``<joint>`` element describes."""
    joint = _parsed(element)
    limit, mimic = joint.limit, joint.mimic
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
        mimic=None if mimic is None else Mimic(mimic.joint, mimic.multiplier, mimic.offset),
        defect=_defect(element),
    )


def _parsed(element: ET.Element) -> Any:
    """Return the joint object of the URDF library for a ``<joint>`` element.

    Raises:
        RobotModelError: If the library rejects the element; the message names the joint.
    """
    from urdf_parser_py import urdf
    from urdf_parser_py.xml_reflection.core import Path as XmlPath

    try:
        return urdf.Joint.from_xml(element, XmlPath("joint", tree=ET.ElementTree(element)))
    except Exception as error:  # the library raises errors of many types
        reason = str(error).rpartition("\n")[2] or type(error).__name__
        if "joint type" in reason:
            reason += f"; known: {', '.join(urdf.Joint.TYPES[1:])}"
        raise RobotModelError(f"joint {element.get('name')!r}: {reason}") from error


def _origin(joint: Any) -> Array:
    """Return the origin T_parent_child (4, 4) [m] of a joint of the URDF library.

    Raises:
        RobotModelError: If the rotation is not finite.
    """
    if joint.origin is None:
        return np.eye(4)
    rpy = joint.origin.rpy
    if not np.isfinite(rpy).all():
        raise RobotModelError(f"joint {joint.name!r}: rpy must be finite; got {rpy}")
    return transform(rotation_from_rpy(*rpy), np.array(joint.origin.xyz))


def _defect(joint: ET.Element) -> str:
    """Return the reason why a joint without position limits is not usable, or "" if it is usable.

    The default of missing limits in URDF is 0, with which the joint could not move.
    """
    kind, limit = joint.get("type"), joint.find("limit")
    is_limited = limit is not None and not {"lower", "upper"}.isdisjoint(limit.attrib)
    if is_limited or kind not in ("revolute", "prismatic"):
        return ""
    hint = ", or the type 'continuous'" if kind == "revolute" else ""
    return f"a {kind} joint needs a <limit> with lower and upper{hint}"


def sanitized_urdf(text: str | bytes) -> ET.Element:
    """Return the ``<robot>`` element of a URDF with only the links and joints, and with defaults.

    Raises:
        RobotModelError: If the text is not well-formed XML, has a document type or entity
            declaration, is too large, is nested too deep, has another root element than
            ``<robot>``, or has an element without a required attribute. The message gives the line.
    """
    sanitizer = _Sanitizer("URDF")
    sanitizer.parse(text)
    return sanitizer.robot


class _Sanitizer(BoundedXml):
    """Parser handlers that keep links, joints, and the kinematic data of joints."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.parts = 0
        self.robot = ET.Element("robot")
        self.joint: ET.Element | None = None  # joint that is being read

    def started(self, tag: str, attributes: dict[str, str]) -> None:
        if self.depth == 1:
            if attributes.get("name"):
                self.robot.set("name", self.required(tag, attributes, "name"))
        elif self.depth == 2 and tag in ("link", "joint"):
            self.start_part(tag, attributes)
        elif self.depth == 3 and self.joint is not None and tag in KEPT:
            self.start_detail(self.joint, tag, attributes)

    def ended(self, _: str) -> None:
        if self.depth == 1:
            self.joint = None

    def start_part(self, tag: str, attributes: dict[str, str]) -> None:
        """Add a link or a joint."""
        part = ET.SubElement(self.robot, tag)
        part.set("name", self.required(tag, attributes, "name"))
        if tag == "joint":
            part.set("type", self.required(tag, attributes, "type"))
            self.joint = part
        self.parts += 1
        if self.parts > MAX_LINKS_AND_JOINTS:
            self.refuse(f"more than {MAX_LINKS_AND_JOINTS} links and joints")

    def start_detail(self, joint: ET.Element, tag: str, attributes: dict[str, str]) -> None:
        """Add an element with kinematic data to a joint."""
        name = joint.get("name")
        if joint.find(tag) is not None:
            self.refuse(f"joint {name!r} has a second <{tag}>")
        if "quat_xyzw" in attributes:
            self.refuse(f"joint {name!r}: quat_xyzw is not supported; write the rotation as rpy")
        detail = ET.SubElement(joint, tag)
        for key, default in KEPT[tag].items():
            if key in ("lower", "upper") and key not in attributes:
                continue  # a joint without both attributes gets a defect
            given = "0" if key == "effort" else attributes.get(key, default)
            if given is None:
                self.refuse(f"joint {name!r}: <{tag}> has no {key!r}")
            detail.set(key, self.brief(given))
