# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reader of URDF files and URDF texts, which need not be trusted.

A single pass of the XML parser rejects document types, entities and oversized documents, and copies
only the elements that the kinematics need. All other elements (meshes, transmissions, simulator and
controller settings) are dropped before the library urdf_parser_py converts the joints.
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

DEFAULT_NAME = "robot"  # name of a robot if its URDF text has no robot name
MAX_LINKS_AND_JOINTS = 5000  # maximum number of links and joints together
# Child elements of a <joint> that are copied, with the attributes that are copied and the default
# value of each attribute; None if the attribute is required. The effort is not used, but
# urdf_parser_py requires this attribute.
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

    A revolute or prismatic joint without limits, and a mimic joint whose master does not move, are
    not usable: a chain must not contain these joints. A warning in Python's log names them.

    Args:
        source: Path of a URDF file, or URDF text. A string whose first character after white space
            is ``<`` is a text. The source need not be trusted: entities and external files are not
            read, and sizes are bounded.
        folder: Folder to which relative paths of meshes refer. None stands for the folder of the
            URDF file; if the source is a text, the folder is unknown in this case.

    Raises:
        RobotModelError: If the URDF cannot be read or does not describe a robot. The message gives
            the joint or the line.
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
    """Return the name of a robot whose URDF contains no robot name.

    The name is the part of the file name before the first dot, or ``robot`` if the source is a text
    or the file name is not printable.

    Args:
        source: Path of the URDF file, or URDF text.
    """
    text = os.fsdecode(source)
    name = "" if text.lstrip("\ufeff \t\r\n").startswith("<") else Path(text).name.partition(".")[0]
    return name if name.isprintable() and name else DEFAULT_NAME


def read_description(source: str | os.PathLike[str], folder: Path | None = None) -> Description:
    """Return the text and the folder of a URDF, without validation.

    The arguments are those of :func:`load_urdf`.

    Raises:
        RobotModelError: If the source is neither text nor a readable file.
    """
    text, beside = read_document(source, "URDF")
    return Description(text, beside if folder is None else folder)


def read_masses(description: Description) -> dict[str, tuple[float, Array]]:
    """Return the mass [kg] and the centre of mass (3,) in the link's frame [m] of each link.

    Links without a mass are missing.

    Raises:
        RobotModelError: If a mass or a position is not a finite number.
    """
    reader = _MassReader("URDF")
    reader.parse(description.urdf)
    masses: dict[str, tuple[float, Array]] = {}
    for name, found in reader.inertials.items():
        try:
            value = float(found.get("mass", "0"))
            position = np.array(found.get("origin", "0 0 0").split(), float)
        except ValueError:
            value, position = np.nan, np.zeros(3)
        if not np.isfinite([value, *position]).all() or position.shape != (3,):
            raise RobotModelError(
                f"link {name!r}: the mass and the centre of mass must be finite numbers"
            )
        if value > 0.0:
            masses[name] = value, position
    return masses


class _MassReader(BoundedXml):
    """Parser that copies the masses and centres of mass of links."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        # The texts "mass" and "origin" of each link
        self.inertials: dict[str, dict[str, str]] = {}
        self._link = ""  # link that the parser is reading
        self._is_inertial = False

    def started(self, tag: str, attributes: dict[str, str]) -> None:
        if self.depth == 2:
            self._link = attributes.get("name", "") if tag == "link" else ""
        elif self.depth == 3:
            self._is_inertial = tag == "inertial"
        elif self.depth == 4 and self._link and self._is_inertial and tag in ("mass", "origin"):
            given = attributes.get("value" if tag == "mass" else "xyz")
            if given is not None:
                self.inertials.setdefault(self._link, {})[tag] = given

    def ended(self, _: str) -> None:
        """Nothing is left to do at the end of an element."""


def _joint(element: ET.Element) -> Joint:
    """Convert a ``<joint>`` element of a URDF to a :class:`Joint`."""
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
    """Convert a ``<joint>`` element to a joint object of the library urdf_parser_py.

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
    """Return the origin T_parent_child (4, 4) [m] of a joint object of urdf_parser_py.

    Raises:
        RobotModelError: If a roll, pitch or yaw angle is not finite.
    """
    if joint.origin is None:
        return np.eye(4)
    rpy = joint.origin.rpy
    if not np.isfinite(rpy).all():
        raise RobotModelError(f"joint {joint.name!r}: rpy must be finite; got {rpy}")
    return transform(rotation_from_rpy(*rpy), np.array(joint.origin.xyz))


def _defect(joint: ET.Element) -> str:
    """Return the reason why a ``<joint>`` element is not usable, or "" if it is usable.

    A revolute or prismatic joint is not usable if it has neither a lower nor an upper limit. URDF
    defines 0 as the default of both limits, but with these limits the joint could not move.
    """
    kind, limit = joint.get("type"), joint.find("limit")
    is_limited = limit is not None and not {"lower", "upper"}.isdisjoint(limit.attrib)
    if is_limited or kind not in ("revolute", "prismatic"):
        return ""
    hint = ", or the type 'continuous'" if kind == "revolute" else ""
    return f"a {kind} joint needs a <limit> with lower and upper{hint}"


def sanitized_urdf(text: str | bytes) -> ET.Element:
    """Return the ``<robot>`` element of a URDF, reduced to the data that the kinematics need.

    The element contains the names of links, and the joints with their kinematic data. Missing
    optional attributes have their default values.

    Raises:
        RobotModelError: If the text is not well-formed XML, has a document type or entity
            declaration, is too large, is nested too deep, has another root element than
            ``<robot>``, or has an element without a required attribute. The message gives the line.
    """
    sanitizer = _Sanitizer("URDF")
    sanitizer.parse(text)
    return sanitizer.robot


class _Sanitizer(BoundedXml):
    """Parser that copies links, joints and the kinematic data of joints to the element `robot`."""

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.parts = 0  # number of links and joints so far
        self.robot = ET.Element("robot")
        self.joint: ET.Element | None = None  # joint that the parser is reading

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
        """Add a link or a joint to the element `robot`.

        Args:
            tag: ``link`` or ``joint``.
            attributes: Attributes of the element by name.
        """
        part = ET.SubElement(self.robot, tag)
        part.set("name", self.required(tag, attributes, "name"))
        if tag == "joint":
            part.set("type", self.required(tag, attributes, "type"))
            self.joint = part
        self.parts += 1
        if self.parts > MAX_LINKS_AND_JOINTS:
            self.refuse(f"more than {MAX_LINKS_AND_JOINTS} links and joints")

    def start_detail(self, joint: ET.Element, tag: str, attributes: dict[str, str]) -> None:
        """Add a child element with kinematic data, such as ``<origin>``, to a joint.

        Args:
            joint: Element of the joint, which is extended.
            tag: Tag of the child element, a key of `KEPT`.
            attributes: Attributes of the child element by name.
        """
        name = joint.get("name")
        if joint.find(tag) is not None:
            self.refuse(f"joint {name!r} has a second <{tag}>")
        if "quat_xyzw" in attributes:
            self.refuse(f"joint {name!r}: quat_xyzw is not supported; write the rotation as rpy")
        detail = ET.SubElement(joint, tag)
        for key, default in KEPT[tag].items():
            if key in ("lower", "upper") and key not in attributes:
                continue  # _defect needs to know which limits are missing
            given = "0" if key == "effort" else attributes.get(key, default)
            if given is None:
                self.refuse(f"joint {name!r}: <{tag}> has no {key!r}")
            detail.set(key, self.brief(given))
