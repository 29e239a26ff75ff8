# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Bounded reading of XML documents that need not be trusted: URDF, SRDF, COLLADA.

A document is parsed in one pass of the parser expat, without entities and external files. The size,
nesting depth and number of elements of a document, and the length of tags, are bounded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from dls_ik.errors import DlsIkError, RobotModelError
from dls_ik.model.files import read_file
from dls_ik.text import quoted

# A URDF within these bounds is read in approximately one second.
MAX_XML_BYTES = 4 * 1024 * 1024
MAX_ELEMENTS = 200_000
MAX_XML_DEPTH = 100
MAX_NAME_LENGTH = 256  # maximum number of characters of a name
MAX_TAG_BYTES = 16 * 1024  # approximate maximum size of a tag with its attributes
CHUNK_BYTES = 16 * 1024  # bytes per call of expat; other threads can run between the calls
MAX_SHOWN_TAG = 80  # maximum number of characters of a tag in a message


def read_document(
    source: str | os.PathLike[str], kind: str, error: type[DlsIkError] = RobotModelError
) -> tuple[str | bytes, Path | None]:
    """Return the text of a document, and the folder of the file, which is None for a given text.

    Args:
        source: Path of a file, or the XML text, a string whose first visible character is ``<``.
        kind: Name of the format for messages.
        error: Type of the errors raised.

    Raises:
        DlsIkError: If the source is neither text nor a readable file.
    """
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        raise error(
            f"the {kind} must be given as XML text or as the path of a file; got "
            f"{type(source).__name__}"
        )
    path, shown = Path(source), quoted(os.fspath(source))
    try:
        if not path.is_file():
            raise error(f"{shown} is neither {kind} text nor an existing file")
        return read_file(path, MAX_XML_BYTES), path.parent
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or type(failure).__name__
        raise error(f"cannot read the {kind} file {shown}: {reason}") from failure


class BoundedXml:
    """Parser handlers for one pass over a document; subclasses handle the elements.

    Args:
        kind: Name of the format for messages.
        root: Tag of the root element.
        error: Type of the errors raised.
        max_bytes: Maximum size of the document.
    """

    def __init__(
        self,
        kind: str,
        root: str = "robot",
        error: type[DlsIkError] = RobotModelError,
        max_bytes: int = MAX_XML_BYTES,
    ) -> None:
        self.kind, self.root_tag, self.error, self.max_bytes = kind, root, error, max_bytes
        self.depth = self.elements = self.line_before = 0

    def started(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element; `self.depth` is 1 for the root element."""
        raise NotImplementedError

    def ended(self, tag: str) -> None:
        """Handle the end of an element; `self.depth` is the depth of the parent element."""
        raise NotImplementedError

    def text(self, text: str) -> None:
        """Handle a piece of text; not called unless a subclass overrides this method."""

    def parse(self, given: str | bytes) -> None:
        """Parse a document.

        Raises:
            DlsIkError: If the text is not well-formed XML, has a document type or entity
                declaration, is too large, is nested too deep, or has another root element. The
                message gives the line.
        """
        if isinstance(given, str):
            stripped = given.lstrip("\ufeff \t\r\n")
            self.line_before = given.count("\n") - stripped.count("\n")
            data, parser = stripped.encode("utf-8", "surrogatepass"), expat.ParserCreate("utf-8")
        else:
            data, parser = given, expat.ParserCreate()
        if max(len(given), len(data)) > self.max_bytes:
            raise self.error(f"the {self.kind} is larger than {self.max_bytes} bytes")
        if hasattr(parser, "SetReparseDeferralEnabled"):  # check_tag needs to see each tag
            parser.SetReparseDeferralEnabled(False)
        parser.StartDoctypeDeclHandler = self.doctype
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        if type(self).text is not BoundedXml.text:
            parser.CharacterDataHandler = self.text
        self.parser = parser
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Parse the bytes of a document piece by piece."""
        try:
            for begin in range(0, len(data), CHUNK_BYTES):
                self.parser.Parse(data[begin : begin + CHUNK_BYTES], False)
                self.check_tag(data, begin + CHUNK_BYTES)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            line = error.lineno + self.line_before
            reason = expat.errors.messages.get(error.code, str(error))
            raise self.error(f"line {line}: not XML: {reason}") from error
        except (ValueError, LookupError) as error:  # an encoding that expat does not support
            raise self.error(f"line {self.line}: not XML: {error}") from error

    def check_tag(self, data: bytes, end: int) -> None:
        """Reject a tag that is too long before all its bytes are read; expat parses whole tags.

        Args:
            data: The document.
            end: Number of bytes given to the parser so far.
        """
        begin = self.parser.CurrentByteIndex
        is_tag = data[begin : begin + 1] == b"<" and data[begin + 1 : begin + 2] not in (b"!", b"?")
        if is_tag and end - begin > MAX_TAG_BYTES:
            self.refuse(f"a tag has more than {MAX_TAG_BYTES} bytes")

    @property
    def line(self) -> int:
        """Number of the line that is being read, from 1."""
        return int(self.parser.CurrentLineNumber) + self.line_before

    def refuse(self, message: str) -> NoReturn:
        """Raise an error with the number of the line that is being read."""
        raise self.error(f"line {self.line}: {message}")

    def doctype(self, *_: object) -> None:
        """Reject a document type declaration."""
        self.refuse(f"document type and entity declarations are not supported in {self.kind}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Check the start of an element against the bounds, and call :meth:`started`."""
        self.depth += 1
        self.elements += 1
        if self.elements > MAX_ELEMENTS:
            self.refuse(f"the document has more than {MAX_ELEMENTS} elements")
        if self.depth > MAX_XML_DEPTH:
            self.refuse(f"elements are nested deeper than {MAX_XML_DEPTH} levels")
        if tag.startswith("xacro:"):
            self.refuse(f"<{brief_tag(tag)}> is a xacro element; expand the file with xacro first")
        if self.depth == 1 and tag != self.root_tag:
            self.refuse(f"the root element must be <{self.root_tag}>; got <{brief_tag(tag)}>")
        self.started(tag, attributes)

    def end(self, tag: str) -> None:
        """Decrease the depth at the end of an element, and call :meth:`ended`."""
        self.depth -= 1
        self.ended(tag)

    def required(self, tag: str, attributes: Mapping[str, str], key: str) -> str:
        """Return the value of a required attribute that is a name.

        Args:
            tag: Tag of the element, for the message.
            attributes: Attributes of the element.
            key: Name of the attribute.

        Raises:
            DlsIkError: If the attribute is missing, too long, or not printable.
        """
        value = attributes.get(key)
        if not value:
            self.refuse(f"<{tag}> has no attribute {key!r}")
        if not value.isprintable():
            self.refuse(f"{key} contains non-printable characters: {quoted(value)}")
        return self.brief(value)

    def brief(self, value: str) -> str:
        """Return the value of an attribute after checking its length.

        Raises:
            DlsIkError: If the attribute is too long.
        """
        if len(value) > MAX_NAME_LENGTH:
            self.refuse(f"an attribute has more than {MAX_NAME_LENGTH} characters")
        return value


def brief_tag(tag: str) -> str:
    """Return the tag of an element, shortened for a message."""
    return tag if len(tag) <= MAX_SHOWN_TAG else f"{tag[:MAX_SHOWN_TAG]}..."


# Documents as trees of the elements that a format uses

Schema = Mapping[str, Any]  # schema of each child element, by tag; * stands for any other tag
MAX_ATTRIBUTE_LENGTH = 1024  # maximum number of characters of an attribute, such as a file path


@dataclass(eq=False)
class XmlElement:
    """An XML element with the children that are in the schema of the format."""

    tag: str
    attributes: dict[str, str]
    line: int  # line number in the document
    error: type[DlsIkError]  # type of the errors raised
    children: list[XmlElement] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # pieces of the text between the tags

    @property
    def text(self) -> str:
        """Text between the tags of the element."""
        return "".join(self.pieces)

    def all(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the children with one of the given tags, in document order."""
        return (child for child in self.children if child.tag in tags)

    def first(self, tag: str) -> XmlElement | None:
        """Return the first child with a tag, or None."""
        return next(self.all(tag), None)

    def name(self, key: str = "name") -> str:
        """Return the value of a required attribute that is a name.

        Raises:
            DlsIkError: If the attribute is missing, or not printable.
        """
        value = self.attributes.get(key, "").strip()
        if not value:
            self.refuse(f"<{self.tag}> has no attribute {key!r}")
        if not value.isprintable():
            self.refuse(f"{key} contains non-printable characters: {quoted(value)}")
        return value

    def numbers(self, key: str, count: int, default: str | None = None) -> list[float]:
        """Return the numbers of an attribute that is a list of numbers.

        Args:
            key: Name of the attribute.
            count: Required number of numbers.
            default: Value of a missing attribute; None if the attribute is required.

        Raises:
            DlsIkError: If the attribute is missing and has no default, or is not `count` numbers.
        """
        text = self.attributes.get(key, default)
        if text is None:
            self.refuse(f"<{self.tag}> has no attribute {key!r}")
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            values = []
        if len(values) != count:
            expected = "a number" if count == 1 else f"{count} numbers"
            self.refuse(f"{key} of <{self.tag}> must be {expected}; got {quoted(text)}")
        return values

    def refuse(self, message: str) -> NoReturn:
        """Raise an error with the line number of the element."""
        raise self.error(f"line {self.line}: {message}")


class _TreeReader(BoundedXml):
    """Parser handlers that build the tree of the elements in a schema."""

    def __init__(self, schema: Schema, *about: Any) -> None:
        super().__init__(*about)
        self.root: XmlElement | None = None
        self.open: list[tuple[XmlElement | None, Schema]] = []  # None for an ignored element
        self.schema = schema

    def started(self, tag: str, attributes: dict[str, str]) -> None:
        above, schema = self.open[-1] if self.open else (None, {self.root_tag: self.schema})
        tag = tag.rpartition(":")[2]
        below = schema.get(tag, schema.get("*"))
        if below is None or (self.open and above is None):
            self.open.append((None, {}))
            return
        if any(len(value) > MAX_ATTRIBUTE_LENGTH for value in attributes.values()):
            self.refuse(f"an attribute has more than {MAX_ATTRIBUTE_LENGTH} characters")
        element = XmlElement(tag, attributes, self.line, self.error)
        if above is None:
            self.root = element
        else:
            above.children.append(element)
        self.open.append((element, below))

    def ended(self, _: str) -> None:
        self.open.pop()

    def text(self, text: str) -> None:
        element = self.open[-1][0] if self.open else None
        if element is not None:
            element.pieces.append(text)


def read_elements(
    given: str | bytes,
    schema: Schema,
    kind: str,
    root: str,
    error: type[DlsIkError],
    max_bytes: int = MAX_XML_BYTES,
) -> XmlElement:
    """Return the root element of a document, with the elements that a schema lists.

    Elements that are not in the schema are ignored.

    Args:
        given: The document.
        schema: Schema of the root element: a mapping from the tag of each child to the schema of
            the child. The tag ``*`` stands for all other tags. Prefixes of tags are ignored.
        kind: Name of the format for messages.
        root: Tag of the root element.
        error: Type of the errors raised.
        max_bytes: Maximum size of the document.

    Raises:
        DlsIkError: If the document is not valid (see :meth:`BoundedXml.parse`), or an attribute is
            too long.
    """
    reader = _TreeReader(schema, kind, root, error, max_bytes)
    reader.parse(given)
    assert reader.root is not None  # noqa: S101  parse raises if there is no root
    return reader.root
