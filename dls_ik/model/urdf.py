"""Reader of URDF files and text, which need not be trusted.

A single pass of the XML parser refuses what is not plain XML, and keeps only the elements that the
kinematics need. Everything else (meshes, transmissions, simulator and controller settings) never
reaches the URDF library, which converts the joints.
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

NAMELESS = "robot"
MAX_PARTS = 5000  # links and joints
# Attributes and defaults by element of a joint; the library requires an effort.
KEPT: dict[str, dict[str, str | None]] = {
    "origin": {"xyz": "0 0 0", "rpy": "0 0 0"},
    "axis": {"xyz": "1 0 0"},
    "parent": {"link": None},
    "child": {"link": None},
    "limit": {"lower": "0", "upper": "0", "velocity": "0", "effort": "0"},
    "mimic": {"joint": None, "multiplier": "1", "offset": "0"},
}


def load_urdf(source: str | os.PathLike[str], folder: Path | None = None) -> Tree:
    """Read a URDF.

    Joints without limits, and mimic joints whose master does not move, are reported to Python's
    log; chains refuse them.

    Args:
        source: The XML itself, a string whose first visible character is ``<``, or the path of a
            file. It need not be trusted: no entities, nothing else is opened, and sizes are
            bounded.
        folder: Where the description comes from, for the meshes that it names; default: the folder
            of the file, unknown for text.

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
        name = _name_of_file(source)
        LOG.warning(f"the robot has no name in its URDF: it is called {name!r}")
    tree = Tree(name, links, joints, description)
    if tree.unusable:
        reasons = "; ".join(dict.fromkeys(list(tree.unusable.values())[:3]))
        LOG.warning(
            f"{tree.name}: {listing(tree.unusable)} cannot be used, and stand at 0; chains that do "
            f"not lead over them can: {reasons}"
        )
    return tree


def _name_of_file(source: str | os.PathLike[str]) -> str:
    """Return a name for a robot that has none: that of the file, ``robot`` of a text."""
    text = os.fsdecode(source)
    name = "" if text.lstrip("\ufeff \t\r\n").startswith("<") else Path(text).name.partition(".")[0]
    return name if name.isprintable() and name else NAMELESS


def read_description(source: str | os.PathLike[str], folder: Path | None = None) -> Description:
    """Read the text of a URDF, given as for :func:`load_urdf`, which checks it.

    Raises:
        RobotModelError: If the source is neither text nor a readable file.
    """
    text, beside = read_document(source, "URDF")
    return Description(text, beside if folder is None else folder)


def _joint(element: ET.Element) -> Joint:
    """Convert a joint element, which names its links."""
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
    """Read a joint by the URDF library."""
    from urdf_parser_py import urdf
    from urdf_parser_py.xml_reflection.core import Path as XmlPath

    try:
        return urdf.Joint.from_xml(element, XmlPath("joint", tree=ET.ElementTree(element)))
    except Exception as error:  # the library raises many types
        reason = str(error).rpartition("\n")[2] or type(error).__name__
        if "joint type" in reason:
            reason += f"; known: {', '.join(urdf.Joint.TYPES[1:])}"
        raise RobotModelError(f"joint {element.get('name')!r}: {reason}") from error


def _origin(joint: Any) -> Array:
    if joint.origin is None:
        return np.eye(4)
    rpy = joint.origin.rpy
    if not np.isfinite(rpy).all():
        raise RobotModelError(f"joint {joint.name!r}: rpy must be finite, given {rpy}")
    return transform(rotation_from_rpy(*rpy), np.array(joint.origin.xyz))


def _defect(joint: ET.Element) -> str:
    """Explain why a joint without position limits is unusable; empty if it is usable.

    The format has 0 for limits that are left out, by which such a joint could not move.
    """
    kind, limit = joint.get("type"), joint.find("limit")
    is_limited = limit is not None and not {"lower", "upper"}.isdisjoint(limit.attrib)
    if is_limited or kind not in ("revolute", "prismatic"):
        return ""
    hint = ", or is 'continuous'" if kind == "revolute" else ""
    return f"a {kind} joint needs a <limit> with lower and upper{hint}"


def sanitized_urdf(text: str | bytes) -> ET.Element:
    """Parse a ``<robot>`` with its links and joints; defaults filled in, all else dropped.

    Raises:
        RobotModelError: If the text is not well-formed XML, has a document type or entity
            declaration, is too large or too deep, is not a robot, or an element has no name. The
            message gives the line.
    """
    sanitizer = _Sanitizer("URDF")
    sanitizer.parse(text)
    return sanitizer.robot


class _Sanitizer(BoundedXml):
    """Keeps links, joints and their details."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.parts = 0
        self.robot = ET.Element("robot")
        self.joint: ET.Element | None = None  # the open one

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
        part = ET.SubElement(self.robot, tag)
        part.set("name", self.required(tag, attributes, "name"))
        if tag == "joint":
            part.set("type", self.required(tag, attributes, "type"))
            self.joint = part
        self.parts += 1
        if self.parts > MAX_PARTS:
            self.refuse(f"more than {MAX_PARTS} links and joints")

    def start_detail(self, joint: ET.Element, tag: str, attributes: dict[str, str]) -> None:
        name = joint.get("name")
        if joint.find(tag) is not None:
            self.refuse(f"joint {name!r} has a second <{tag}>")
        if "quat_xyzw" in attributes:
            self.refuse(f"joint {name!r}: quat_xyzw is not supported, write the rotation as rpy")
        detail = ET.SubElement(joint, tag)
        for key, default in KEPT[tag].items():
            if key in ("lower", "upper") and key not in attributes:
                continue  # a joint without either is unusable
            given = "0" if key == "effort" else attributes.get(key, default)
            if given is None:
                self.refuse(f"joint {name!r}: <{tag}> has no {key!r}")
            detail.set(key, self.brief(given))
