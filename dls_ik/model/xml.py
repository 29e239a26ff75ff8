"""Bounded reading of XML that need not be trusted: URDF, SRDF, COLLADA.

There is one pass of expat, without entities and external files. Documents are bounded in size,
depth and number of elements, tags in length.
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

# A URDF within these bounds is read in about a second.
MAX_BYTES = 4 * 1024 * 1024
MAX_ELEMENTS = 200_000
MAX_DEPTH = 100
MAX_VALUE = 256  # characters of a name
MAX_TAG_BYTES = 16 * 1024  # of a tag with its attributes, about, which the parser takes as one
CHUNK = 16 * 1024  # bytes that are parsed without letting other threads run
MAX_TAG = 80  # characters of a tag in messages


def read_document(
    source: str | os.PathLike[str], kind: str, error: type[DlsIkError] = RobotModelError
) -> tuple[str | bytes, Path | None]:
    """Return the text of a document, and the folder of its file.

    Args:
        source: The XML itself, a string whose first visible character is ``<``, or the path of a
            file.
        kind: Name of the format, for messages.
        error: Exception that is raised.

    Raises:
        DlsIkError: If the source is neither text nor a readable file.
    """
    if isinstance(source, str) and source.lstrip("\ufeff \t\r\n").startswith("<"):
        return source, None
    if not isinstance(source, (str, os.PathLike)):
        raise error(
            f"the {kind} is given as XML text or as the path of a file, not as "
            f"{type(source).__name__}"
        )
    path, shown = Path(source), quoted(os.fspath(source))
    try:
        if not path.is_file():
            raise error(f"{shown} is neither {kind} text nor an existing file")
        return read_file(path, MAX_BYTES), path.parent
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or type(failure).__name__
        raise error(f"cannot read the {kind} file {shown}: {reason}") from failure


class BoundedXml:
    """Handlers of one pass over a document; subclasses see its elements.

    Args:
        kind: Name of the format, for messages.
        root: Tag of the root element.
        error: Exception that is raised.
        most: Greatest size [bytes].
    """

    def __init__(
        self,
        kind: str,
        root: str = "robot",
        error: type[DlsIkError] = RobotModelError,
        most: int = MAX_BYTES,
    ) -> None:
        self.kind, self.root_tag, self.error, self.most = kind, root, error, most
        self.depth = self.elements = self.line_before = 0

    def started(self, tag: str, attributes: dict[str, str]) -> None:
        """Take an element; ``self.depth`` of the root is 1."""
        raise NotImplementedError

    def ended(self, tag: str) -> None:
        """Take the end of an element, after which ``self.depth`` is that of its parent."""
        raise NotImplementedError

    def text(self, text: str) -> None:
        """Take a piece of text; subclasses that have no use for it do not override this."""

    def parse(self, given: str | bytes) -> None:
        """Read a document.

        Raises:
            DlsIkError: If the text is not well-formed XML, has a document type or entity
                declaration, is too large or too deep, or has another root element. The message
                gives the line.
        """
        if isinstance(given, str):
            stripped = given.lstrip("\ufeff \t\r\n")
            self.line_before = given.count("\n") - stripped.count("\n")
            data, parser = stripped.encode("utf-8", "surrogatepass"), expat.ParserCreate("utf-8")
        else:
            data, parser = given, expat.ParserCreate()
        if max(len(given), len(data)) > self.most:
            raise self.error(f"the {self.kind} is larger than {self.most} bytes")
        if hasattr(parser, "SetReparseDeferralEnabled"):  # so that check_tag sees each tag
            parser.SetReparseDeferralEnabled(False)
        parser.StartDoctypeDeclHandler = self.doctype
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        if type(self).text is not BoundedXml.text:
            parser.CharacterDataHandler = self.text
        self.parser = parser
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        try:
            for begin in range(0, len(data), CHUNK):
                self.parser.Parse(data[begin : begin + CHUNK], False)
                self.check_tag(data, begin + CHUNK)
            self.parser.Parse(b"", True)
        except expat.ExpatError as error:
            line = error.lineno + self.line_before
            reason = expat.errors.messages.get(error.code, str(error))
            raise self.error(f"line {line}: not XML: {reason}") from error
        except (ValueError, LookupError) as error:  # an encoding that expat does not support
            raise self.error(f"line {self.line}: not XML: {error}") from error

    def check_tag(self, data: bytes, end: int) -> None:
        """Refuse a long tag before its end: expat parses a tag of megabytes in one piece."""
        begin = self.parser.CurrentByteIndex
        is_tag = data[begin : begin + 1] == b"<" and data[begin + 1 : begin + 2] not in (b"!", b"?")
        if is_tag and end - begin > MAX_TAG_BYTES:
            self.refuse(f"a tag of more than {MAX_TAG_BYTES} bytes")

    @property
    def line(self) -> int:
        """The line that is being read, from 1."""
        return int(self.parser.CurrentLineNumber) + self.line_before

    def refuse(self, message: str) -> NoReturn:
        """Raise an error with the line."""
        raise self.error(f"line {self.line}: {message}")

    def doctype(self, *_: object) -> None:
        """Refuse a document type."""
        self.refuse(f"document type and entity declarations are not accepted in {self.kind}")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Count an element and pass it on."""
        self.depth += 1
        self.elements += 1
        if self.elements > MAX_ELEMENTS:
            self.refuse(f"more than {MAX_ELEMENTS} elements")
        if self.depth > MAX_DEPTH:
            self.refuse(f"elements nested more than {MAX_DEPTH} deep")
        if tag.startswith("xacro:"):
            self.refuse(f"<{brief_tag(tag)}> is not expanded yet: run xacro first")
        if self.depth == 1 and tag != self.root_tag:
            self.refuse(f"the root element is <{brief_tag(tag)}>, expected <{self.root_tag}>")
        self.started(tag, attributes)

    def end(self, tag: str) -> None:
        """Count the end of an element and pass it on."""
        self.depth -= 1
        self.ended(tag)

    def required(self, tag: str, attributes: Mapping[str, str], key: str) -> str:
        """Return an attribute that is a name.

        Raises:
            DlsIkError: If the attribute is missing, too long, or not printable.
        """
        value = attributes.get(key)
        if not value:
            self.refuse(f"<{tag}> has no {key!r}")
        if not value.isprintable():
            self.refuse(f"a {key} with control characters: {quoted(value)}")
        return self.brief(value)

    def brief(self, value: str) -> str:
        """Return an attribute that is not too long."""
        if len(value) > MAX_VALUE:
            self.refuse(f"an attribute of more than {MAX_VALUE} characters")
        return value


def brief_tag(tag: str) -> str:
    """Shorten the name of an element for a message."""
    return tag if len(tag) <= MAX_TAG else f"{tag[:MAX_TAG]}..."


# Documents as trees of the elements that a format uses

Schema = Mapping[str, Any]  # by tag, or * for any other: the schema of the children
MAX_TEXT = 1024  # characters of an attribute, such as the path of a file


@dataclass(eq=False)
class XmlElement:
    """An element with the children that the schema of its format has."""

    tag: str
    attributes: dict[str, str]
    line: int
    error: type[DlsIkError]
    children: list[XmlElement] = field(default_factory=list)
    pieces: list[str] = field(default_factory=list)  # of its text

    @property
    def text(self) -> str:
        """The text between its tags."""
        return "".join(self.pieces)

    def all(self, *tags: str) -> Iterator[XmlElement]:
        """Yield the children with one of some tags, in order."""
        return (child for child in self.children if child.tag in tags)

    def first(self, tag: str) -> XmlElement | None:
        """Return the first child with a tag, or None."""
        return next(self.all(tag), None)

    def name(self, key: str = "name") -> str:
        """Return an attribute that is a name.

        Raises:
            DlsIkError: If the attribute is missing, or not printable.
        """
        value = self.attributes.get(key, "").strip()
        if not value:
            self.refuse(f"<{self.tag}> has no {key!r}")
        if not value.isprintable():
            self.refuse(f"a {key} with control characters: {quoted(value)}")
        return value

    def numbers(self, key: str, count: int, default: str | None = None) -> list[float]:
        """Return an attribute that is numbers.

        Raises:
            DlsIkError: If the attribute is missing without a default, or is not the right number of
                numbers.
        """
        text = self.attributes.get(key, default)
        if text is None:
            self.refuse(f"<{self.tag}> has no {key!r}")
        try:
            values = [float(word) for word in text.split()]
        except ValueError:
            values = []
        if len(values) != count:
            expected = "a number" if count == 1 else f"{count} numbers"
            self.refuse(f"{key} of <{self.tag}> is {expected}, not {quoted(text)}")
        return values

    def refuse(self, message: str) -> NoReturn:
        """Raise an error with the line."""
        raise self.error(f"line {self.line}: {message}")


class _TreeReader(BoundedXml):
    """Builds the tree of the elements in a schema."""

    def __init__(self, schema: Schema, *about: Any) -> None:
        super().__init__(*about)
        self.root: XmlElement | None = None
        self.open: list[tuple[XmlElement | None, Schema]] = []  # None: not in the schema
        self.schema = schema

    def started(self, tag: str, attributes: dict[str, str]) -> None:
        above, schema = self.open[-1] if self.open else (None, {self.root_tag: self.schema})
        tag = tag.rpartition(":")[2]
        below = schema.get(tag, schema.get("*"))
        if below is None or (self.open and above is None):
            self.open.append((None, {}))
            return
        if any(len(value) > MAX_TEXT for value in attributes.values()):
            self.refuse(f"an attribute of more than {MAX_TEXT} characters")
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
    most: int = MAX_BYTES,
) -> XmlElement:
    """Read a document as a tree of the elements in a schema; all others are left out.

    Args:
        schema: By tag below the root, the schema of its children; ``*`` stands for all others.
            Prefixes of tags are ignored.
        kind: Name of the format, for messages.
        root: Tag of the root element.
        error: Exception that is raised.
        most: Greatest size [bytes].

    Raises:
        DlsIkError: If :meth:`BoundedXml.parse` raises it, or an attribute is too long.
    """
    reader = _TreeReader(schema, kind, root, error, most)
    reader.parse(given)
    assert reader.root is not None  # noqa: S101  else the parser has refused
    return reader.root
