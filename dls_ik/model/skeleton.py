"""First pass over a robot description that nobody vouches for.

Refuses what is not plain XML, and keeps only what the kinematics need. Whatever else the file holds
(meshes, transmissions, simulator and controller settings) never reaches the URDF reader.
"""

from typing import NoReturn
from xml.etree import ElementTree as ET
from xml.parsers import expat

from dls_ik.exceptions import RobotModelError
from dls_ik.model.names import quoted

# Within these bounds a file is read in about a second.
MAX_BYTES = 4 * 1024 * 1024
MAX_ELEMENTS = 200_000
MAX_DEPTH = 100
MAX_VALUE = 256  # characters of an attribute
MAX_TAG_BYTES = 16 * 1024  # of a tag with its attributes, about; a parser takes it as one
CHUNK = 16 * 1024  # bytes that are parsed without letting other threads run
MAX_TAG = 80  # characters of a tag in messages
MAX_PARTS = 5000  # links and joints
KEPT: dict[
    str, dict[str, str | None]
] = {  # attributes by element of a joint; the reader wants an effort, which moves nothing
    "origin": {"xyz": "0 0 0", "rpy": "0 0 0"},
    "axis": {"xyz": "1 0 0"},
    "parent": {"link": None},
    "child": {"link": None},
    "limit": {"lower": "0", "upper": "0", "velocity": "0", "effort": "0"},
    "mimic": {"joint": None, "multiplier": "1", "offset": "0"},
}

ENDS = ("lower", "upper")  # of a joint's range


def kinematic_skeleton(text: str | bytes) -> ET.Element:
    """The ``<robot>`` with its links and joints, with defaults filled in and all else dropped.

    Raises:
        RobotModelError: not well-formed XML, a document type or entity declaration, too large, too
            deep, not a robot, or an element that lacks its name. The message gives the line.
    """
    if len(text) > MAX_BYTES:
        raise RobotModelError(f"the URDF is larger than {MAX_BYTES} bytes")
    line_before = 0
    if isinstance(text, str):
        stripped = text.lstrip("\ufeff \t\r\n")
        line_before = text.count("\n") - stripped.count("\n")
        text = stripped.encode("utf-8", errors="surrogatepass")
        reader = _Reader(expat.ParserCreate("utf-8"), line_before)
    else:
        reader = _Reader(expat.ParserCreate(), line_before)
    if len(text) > MAX_BYTES:
        raise RobotModelError(f"the URDF is larger than {MAX_BYTES} bytes")
    return reader.read(text)


class _Reader:
    """The handlers of one parse, and where it stands."""

    def __init__(self, parser: expat.XMLParserType, line_before: int) -> None:
        self.parser = parser
        self.line_before = line_before
        self.path: list[str] = []  # tags of the open elements
        self.robot = ET.Element("robot")
        self.joint: ET.Element | None = None  # the open one
        self.elements = self.parts = 0
        if hasattr(parser, "SetReparseDeferralEnabled"):  # so that the check of tags sees each
            parser.SetReparseDeferralEnabled(False)
        parser.StartDoctypeDeclHandler = self.doctype
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end

    def read(self, data: bytes) -> ET.Element:
        try:
            for begin in range(0, len(data), CHUNK):
                self.parser.Parse(data[begin : begin + CHUNK], False)
                self.check_tag(data, begin + CHUNK)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            line = error.lineno + self.line_before
            what = expat.errors.messages.get(error.code, str(error))
            raise RobotModelError(f"line {line}: not XML: {what}") from error
        except (ValueError, LookupError) as error:  # an encoding that expat cannot use
            raise RobotModelError(f"line {self.line}: not XML: {error}") from error
        return self.robot

    def check_tag(self, data: bytes, end: int) -> None:
        """Refuse a tag that is long and not yet over: one of megabytes is parsed in one piece."""
        begin = self.parser.CurrentByteIndex
        is_tag = data[begin : begin + 1] == b"<" and data[begin + 1 : begin + 2] not in (b"!", b"?")
        if is_tag and end - begin > MAX_TAG_BYTES:
            self.refuse(f"a tag of more than {MAX_TAG_BYTES} bytes")

    @property
    def line(self) -> int:
        return int(self.parser.CurrentLineNumber) + self.line_before

    def refuse(self, message: str) -> NoReturn:
        raise RobotModelError(f"line {self.line}: {message}")

    def doctype(self, *_: object) -> None:
        self.refuse("document type and entity declarations are not accepted in a URDF")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.path.append(tag)
        self.elements += 1
        if self.elements > MAX_ELEMENTS:
            self.refuse(f"more than {MAX_ELEMENTS} elements")
        if len(self.path) > MAX_DEPTH:
            self.refuse(f"elements nested more than {MAX_DEPTH} deep")
        if tag.startswith("xacro:"):
            self.refuse(f"<{brief_tag(tag)}> is not expanded yet: run xacro first")
        if len(self.path) == 1:
            self.start_robot(tag, attributes)
        elif len(self.path) == 2 and tag in ("link", "joint"):
            self.start_part(tag, attributes)
        elif len(self.path) == 3 and self.joint is not None and tag in KEPT:
            self.start_detail(self.joint, tag, attributes)

    def end(self, _: str) -> None:
        self.path.pop()
        if len(self.path) == 1:
            self.joint = None

    def start_robot(self, tag: str, attributes: dict[str, str]) -> None:
        if tag != "robot":
            self.refuse(f"the root element is <{brief_tag(tag)}>, expected <robot>")
        self.robot.set("name", self.required(tag, attributes, "name"))

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
            if key in ENDS and key not in attributes:
                continue  # a joint without either is not one that stands still
            given = "0" if key == "effort" else attributes.get(key, default)
            if given is None:
                self.refuse(f"joint {name!r}: <{tag}> has no {key!r}")
            detail.set(key, self.brief(given))

    def required(self, tag: str, attributes: dict[str, str], key: str) -> str:
        value = attributes.get(key)
        if not value:
            self.refuse(f"<{tag}> has no {key!r}")
        if not value.isprintable():  # as the tree would say, which does not know the line
            self.refuse(f"a {key} with control characters: {quoted(value)}")
        return self.brief(value)

    def brief(self, value: str) -> str:
        if len(value) > MAX_VALUE:
            self.refuse(f"an attribute of more than {MAX_VALUE} characters")
        return value


def brief_tag(tag: str) -> str:
    """The name of an element for a message: one may be as long as the file."""
    return tag if len(tag) <= MAX_TAG else f"{tag[:MAX_TAG]}..."
