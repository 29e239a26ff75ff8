"""URDF as bytes and as text that may be anything: loads, or is refused in a line."""

from collections.abc import Iterable
from pathlib import Path

from dls_ik import RobotModel
from dls_ik.errors import DlsIkError
from dls_ik.model.urdf import sanitized_urdf
from fuzz.guard import Run
from fuzz.source import Source
from fuzz.targets.checks import require_line

HERE = Path(__file__).resolve().parents[2]
TOKENS = (
    b"<robot name='r'>", b"<link name='a'/>", b"<link name='b'/>", b"</robot>", b"</joint>",
    b"<joint name='j' type='revolute'>", b"<parent link='a'/>", b"<child link='b'/>",
    b"<axis xyz='0 0 1'/>", b"<origin xyz='0 0 1' rpy='0 0 0'/>", b"<!DOCTYPE robot [", b"]>",
    b"<limit lower='-1' upper='1' velocity='1'/>", b"<!ENTITY e 'x'>", b"&e;", b"&#10;", b"&#0;",
    b"<mimic joint='k'/>", b"type='continuous'", b"type='floating'", b"<?xml version='1.0'?>",
    b"<?xml version='1.0' encoding='utf-16'?>", b"<![CDATA[", b"]]>", b"<!--", b"-->", b"<?x ?>",
    b"<xacro:if/>", b"xmlns:x='y'", b"1e400", b"nan", b"quat_xyzw='0 0 0 1'", b"\xef\xbb\xbf",
)  # fmt: skip


def build() -> Run:
    """Make the target."""
    return run


def run(source: Source) -> None:
    """Load the bytes, some of which stand for tokens."""
    data = text_of(source.rest())
    try:
        sanitized_urdf(data)
    except DlsIkError as error:
        require_line(error)
    text = data.decode("utf-8", "surrogateescape")
    if not text.lstrip("\ufeff \t\r\n").startswith("<"):
        return  # a path
    try:
        RobotModel.from_urdf(text)
    except DlsIkError as error:
        require_line(error)


def text_of(data: bytes) -> bytes:
    """The bytes, with tokens for those below 32 that are no white space, and those above 239."""
    parts = [TOKENS[_token(byte)] if _token(byte) >= 0 else bytes([byte]) for byte in data]
    return b"".join(parts)


def _token(byte: int) -> int:
    if byte < 32 and byte not in b"\t\n\r":
        return byte
    return byte - 240 + 16 if byte >= 240 else -1


def seeds() -> Iterable[bytes]:
    """Robots that there are, and a small one of tokens."""
    for name in ("planar_2r", "y_shape"):
        yield (HERE / "urdf" / f"{name}.urdf").read_bytes()[:4000]
    yield bytes([0, 1, 2, 5, 6, 7, 8, 12, 4, 3])
