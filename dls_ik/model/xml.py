# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Reader of XML documents (URDF, SRDF, COLLADA) that need not be trusted.

The parser expat reads a document in one pass, without entities and external files. The size, the
nesting depth, the number of elements and the length of tags are bounded.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn
from xml.parsers import expat

from dls_ik.errors import DlsIkError, RobotModelError
from dls_ik.model.files import read_file
from dls_ik.text import quoted

# Reading the largest URDF that these bounds permit takes approximately one second.
MAX_XML_BYTES = 4 * 1024 * 1024
MAX_ELEMENTS = 200_000
MAX_XML_DEPTH = 100
MAX_NAME_LENGTH = 256  # maximum number of characters of a name
MAX_TAG_BYTES = 16 * 1024  # approximate maximum size of a tag with its attributes
CHUNK_BYTES = 16 * 1024  # size of the pieces given to expat; other threads run between the pieces
MAX_SHOWN_TAG = 80  # maximum number of characters of a tag in a message


def read_document(
    source: str | os.PathLike[str], kind: str, error: type[DlsIkError] = RobotModelError
) -> tuple[str | bytes, Path | None]:
    """Return the text of an XML document and the folder of its file.

    Args:
        source: Path of a file, or XML text. A string whose first character after white space is
            ``<`` is a text.
        kind: Name of the document format, such as ``URDF``, for error messages.
        error: Type of error to raise.

    Returns:
        Text of the document, and the folder of the file; the folder is None if the source is a
        text.

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
            raise error(f"{shown} is neither {kind} text nor an existing file; give one of them")
        return read_file(path, MAX_XML_BYTES), path.parent
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or type(failure).__name__
        raise error(f"cannot read the {kind} file {shown}: {reason}") from failure


class BoundedXml(ABC):
    """Base class of XML parsers that bound the size, depth and number of elements of a document.

    Subclasses process the elements by the methods :meth:`started`, :meth:`ended` and :meth:`text`.

    Args:
        kind: Name of the document format, such as ``URDF``, for error messages.
        root: Required tag of the root element.
        error: Type of error to raise.
        max_bytes: Maximum size of the document [bytes].
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

    @abstractmethod
    def started(self, tag: str, attributes: dict[str, str]) -> None:
        """Process the start tag of an element; subclasses override this method.

        During the call, `self.depth` is the nesting depth of the element, 1 for the root element.

        Args:
            tag: Tag of the element.
            attributes: Values of the attributes by name.
        """

    @abstractmethod
    def ended(self, tag: str) -> None:
        """Process the end tag of an element; subclasses override this method.

        During the call, `self.depth` is the nesting depth of the parent element, 0 if the element
        is the root element.
        """

    def text(self, text: str) -> None:  # noqa: B027  optional
        """Process text between tags; by default, text is ignored.

        The parser may split a text, and call this method with each piece.
        """

    def parse(self, given: str | bytes) -> None:
        """Parse a document given as text or bytes.

        Raises:
            DlsIkError: If the document is not well-formed XML, has a document type or entity
                declaration, is too large, is nested too deep, has too many elements, or has a root
                element with another tag than required. The message gives the line.
        """
        if isinstance(given, str):
            stripped = given.lstrip("\ufeff \t\r\n")
            self.line_before = given.count("\n") - stripped.count("\n")
            data, parser = stripped.encode("utf-8", "surrogatepass"), expat.ParserCreate("utf-8")
        else:
            data, parser = given, expat.ParserCreate()
        if max(len(given), len(data)) > self.max_bytes:
            raise self.error(f"the {self.kind} is larger than {self.max_bytes} bytes")
        if hasattr(parser, "SetReparseDeferralEnabled"):  # else check_tag would see tags too late
            parser.SetReparseDeferralEnabled(False)
        parser.StartDoctypeDeclHandler = self.doctype
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        if type(self).text is not BoundedXml.text:
            parser.CharacterDataHandler = self.text
        self.parser = parser
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Parse the bytes of a document in pieces of `CHUNK_BYTES`.

        Raises:
            DlsIkError: If the bytes are not XML, or the parser methods reject the document.
        """
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
        """Check the length of an incomplete tag at the end of the bytes that the parser has read.

        The parser reports a tag only when it is complete. This check rejects a tag that is too long
        before the parser reads all of it.

        Args:
            data: All bytes of the document.
            end: Number of bytes given to the parser so far.

        Raises:
            DlsIkError: If the tag is too long.
        """
        begin = self.parser.CurrentByteIndex
        is_tag = data[begin : begin + 1] == b"<" and data[begin + 1 : begin + 2] not in (b"!", b"?")
        if is_tag and end - begin > MAX_TAG_BYTES:
            self.refuse(f"a tag has more than {MAX_TAG_BYTES} bytes")

    @property
    def line(self) -> int:
        """Number, from 1, of the line of the document that the parser is reading."""
        return int(self.parser.CurrentLineNumber) + self.line_before

    def refuse(self, message: str) -> NoReturn:
        """Raise an error with a message and the number of the line that the parser is reading."""
        raise self.error(f"line {self.line}: {message}")

    def doctype(self, *_: object) -> None:
        """Raise an error, because the document contains a document type declaration."""
        self.refuse(f"document type and entity declarations are not supported in {self.kind}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Check depth, number and tag of an element at its start tag, and call :meth:`started`.

        The parser calls this method for each start tag, with the attributes by name.

        Raises:
            DlsIkError: If the document has too many elements, is nested too deep, has a root
                element with another tag than required, or contains a xacro element.
        """
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
        """Decrease the depth at an end tag, and call :meth:`ended`."""
        self.depth -= 1
        self.ended(tag)

    def required(self, tag: str, attributes: Mapping[str, str], key: str) -> str:
        """Return the value of a required attribute whose value is a name.

        Args:
            tag: Tag of the element, for the error message.
            attributes: Values of the attributes of the element by name.
            key: Name of the attribute.

        Raises:
            DlsIkError: If the attribute is missing or empty, too long, or not printable.
        """
        value = attributes.get(key)
        if not value:
            self.refuse(f"<{tag}> has no attribute {key!r}")
        if not value.isprintable():
            self.refuse(f"{key} contains non-printable characters: {quoted(value)}")
        return self.brief(value)

    def brief(self, value: str) -> str:
        """Check the length of the value of an attribute, and return the value unchanged.

        Raises:
            DlsIkError: If the value is longer than `MAX_NAME_LENGTH`.
        """
        if len(value) > MAX_NAME_LENGTH:
            self.refuse(f"an attribute has more than {MAX_NAME_LENGTH} characters")
        return value


def brief_tag(tag: str) -> str:
    """Return the tag of an element, shortened to `MAX_SHOWN_TAG` characters for a message."""
    return tag if len(tag) <= MAX_SHOWN_TAG else f"{tag[:MAX_SHOWN_TAG]}..."


# Reader of a document as a tree of its elements

# Tags of the elements to read: the schema of each child element by its tag. The tag * stands for
# all tags that are not listed.
Schema = Mapping[str, Any]
MAX_ATTRIBUTE_LENGTH = 1024  # maximum number of characters of an attribute, such as a file path


@dataclass(eq=False)
class XmlElement:
    """An element of an XML document, with the child elements that the reader's schema lists."""

    tag: str
    attributes: dict[str, str]  # values by name
    line: int  # line number of the start tag in the document, from 1
    error: type[DlsIkError]  # type of error to raise
    children: list[XmlElement] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # pieces of the text between the tags

    @property
    def text(self) -> str:
        """Text between the start tag and the end tag, without the text in child elements."""
        return "".join(self.pieces)

    def all(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the child elements that have one of the given tags, in document order."""
        return (child for child in self.children if child.tag in tags)

    def first(self, tag: str) -> XmlElement | None:
        """Return the first child element with a given tag, or None if there is none."""
        return next(self.all(tag), None)

    def name(self, key: str = "name") -> str:
        """Return the value of a required attribute whose value is a name.

        Args:
            key: Name of the attribute.

        Raises:
            DlsIkError: If the attribute is missing or empty, or its value is not printable.
        """
        value = self.attributes.get(key, "").strip()
        if not value:
            self.refuse(f"<{self.tag}> has no attribute {key!r}")
        if not value.isprintable():
            self.refuse(f"{key} contains non-printable characters: {quoted(value)}")
        return value

    def numbers(self, key: str, count: int, default: str | None = None) -> list[float]:
        """Return the numbers of an attribute whose value is a list of numbers, such as "0 0 1".

        Args:
            key: Name of the attribute.
            count: Required length of the list.
            default: Text to use if the attribute is missing; None if the attribute is required.

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
        """Raise an error with a message and the line number of the element."""
        raise self.error(f"line {self.line}: {message}")


class _TreeReader(BoundedXml):
    """Parser that builds a tree of the elements that a schema lists.

    Args:
        schema: Schema of the root element.
        *about: Arguments of :class:`BoundedXml`.
    """

    def __init__(self, schema: Schema, *about: Any) -> None:
        super().__init__(*about)
        self.root: XmlElement | None = None
        # Elements whose end tag has not been read, from the root inward, with their schemas; None
        # stands for an element that is not in the schema
        self.open: list[tuple[XmlElement | None, Schema]] = []
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
    """Parse an XML document, and return its root element with the elements that a schema lists.

    All other elements are ignored.

    Args:
        given: Text or bytes of the document.
        schema: Schema of the root element: a mapping from the tag of each child element to the
            schema of the child element. The tag ``*`` stands for all tags that are not listed. Tags
            are compared without their namespace prefixes.
        kind: Name of the document format, such as ``SRDF``, for error messages.
        root: Required tag of the root element.
        error: Type of error to raise.
        max_bytes: Maximum size of the document [bytes].

    Raises:
        DlsIkError: If the document is not valid (see :meth:`BoundedXml.parse`), or an attribute is
            too long.
    """
    reader = _TreeReader(schema, kind, root, error, max_bytes)
    reader.parse(given)
    assert reader.root is not None  # noqa: S101  parse raises if there is no root
    return reader.root
