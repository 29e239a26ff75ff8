# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Hostile robot descriptions are refused quickly and without side effects."""

import time

import numpy as np
import pytest
from robots import joint, urdf

from dls_ik import RobotModel
from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model import load_urdf
from dls_ik.model import urdf as reader
from dls_ik.model.chain import MAX_JOINTS
from dls_ik.model.urdf import MAX_LINKS_AND_JOINTS
from dls_ik.model.xml import MAX_ELEMENTS, MAX_TAG_BYTES, MAX_XML_BYTES, MAX_XML_DEPTH

BODY = urdf("a b", joint("j"))
WORK = 10.0  # [s] CPU time; each of these takes less than a tenth of it
ENTITIES = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">\n' for i in range(12))
DOCTYPE = "document type and entity declarations are not supported"


@pytest.fixture(autouse=True)
def cpu_time_limit():
    """Fail a test that takes far too much CPU time, however busy the machine is."""
    load_urdf(BODY)  # imports
    start = time.process_time()
    yield
    assert time.process_time() - start < WORK


def assert_refused(source):
    with pytest.raises(RobotModelError) as caught:
        load_urdf(source)
    return str(caught.value)


def chain(count, kind="revolute", detail=None):
    """Return a robot description whose links l0, l1, ... form a chain."""
    given = {} if detail is None else {"detail": detail}
    joints = [joint(f"j{i}", kind, f"l{i}", f"l{i + 1}", **given) for i in range(count)]
    return urdf(" ".join(f"l{i}" for i in range(count + 1)), *joints)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f'<!DOCTYPE robot [\n<!ENTITY e0 "lol">\n{ENTITIES}]>\n<robot name="&e12;"/>',
         f"line 1: {DOCTYPE}"),
        (f'\n<!DOCTYPE robot [<!ENTITY e "{"x" * 100_000}">]><robot>{"&e;" * 10_000}</robot>',
         f"line 2: {DOCTYPE}"),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "file:///etc/hostname">]><robot name="&e;"/>', DOCTYPE),
        ('<!DOCTYPE r [<!ENTITY e SYSTEM "http://127.0.0.1:9/x">]><robot name="&e;"/>', DOCTYPE),
        ('<robot name="r">&e;</robot>', "line 1"),
        ('<robot name="r">' + "<a>" * 500_000 + "</a>" * 500_000 + "</robot>",
         f"deeper than {MAX_XML_DEPTH} levels"),
        (BODY + " " * MAX_XML_BYTES, "larger than"),
        ('<robot name="r">' + '<link name="l"/>' * (MAX_LINKS_AND_JOINTS + 1) + "</robot>",
         f"more than {MAX_LINKS_AND_JOINTS} links"),
        ('<robot name="r">' + "<a/>" * MAX_ELEMENTS + "</robot>",
         f"more than {MAX_ELEMENTS} elements"),
        (f"<{'x' * 1_000_000}/>", ""),
        (f'<robot name="r"><xacro:{"x" * 1_000_000}/></robot>', ""),
        (BODY.replace('type="revolute"', f'type="{"x" * 1_000_000}"'), ""),
        ('<robot name="r">\n<xacro:arm prefix="x"/></robot>', "line 2: <xacro:arm>"),
        ("<robot name='\ud800'/>", "line 1"),
    ],
    ids=["entity bomb", "quadratic bomb", "file", "network", "undeclared entity", "depth", "size",
         "parts", "elements", "long root", "long tag", "long attribute", "xacro", "surrogate"],
)  # fmt: skip
def test_hostile_urdf_text_is_refused_with_a_short_message(text, message):
    found = assert_refused(text)
    assert message in found
    assert len(found) < 400


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'<?xml version="1.0"?>\n<!DOCTYPE robot SYSTEM "file:///x.dtd">\n' + BODY.encode(),
         "line 2:"),
        (BODY.encode() + b" " * MAX_XML_BYTES, "larger than"),
        *((f'<?xml version="1.0" encoding="{name}"?>{BODY}'.encode(), "line 1")
          for name in ("utf-7", "no-such", "idna", "big5")),
        *((data, "not XML")
          for data in (b"<\x00", b"<robot name='\xff'/>", b"\xff\xfe<", b"\x7fELF")),
    ],
)  # fmt: skip
def test_hostile_urdf_file_is_refused(content, message, tmp_path):
    path = tmp_path / "hostile.urdf"
    path.write_bytes(content)
    assert message in assert_refused(path)


def test_maximum_nesting_is_accepted():
    inside = MAX_XML_DEPTH - 1
    load_urdf(BODY.replace("</robot>", "<a>" * inside + "</a>" * inside + "</robot>"))


def test_maximum_number_of_elements_is_accepted():
    n = MAX_LINKS_AND_JOINTS // 2
    links = " ".join(f"l{i}" for i in range(n))
    # A long chain whose end has many children: each could be the tip.
    joints = [joint(f"j{i}", "fixed", f"l{min(i, n // 2)}", f"l{i + 1}") for i in range(n - 1)]
    with pytest.raises(ChainError, match="no link moves"):
        RobotModel.from_urdf(urdf(links, *joints))


def test_chains_with_too_many_joints_are_refused():
    n = MAX_JOINTS + 1
    with pytest.raises(ChainError, match=f"at most {MAX_JOINTS} joints"):
        RobotModel.from_urdf(chain(n))
    assert RobotModel.from_urdf(chain(n), tip=f"l{n - 1}").n == MAX_JOINTS


def test_long_chains_need_no_recursion():
    assert load_urdf(chain(1500, "fixed")).leaves == ("l1500",)
    mimics = [f'<mimic joint="j{i + 1}"/>' for i in range(1499)]
    joints = [joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}", m) for i, m in enumerate(mimics)]
    joints.append(joint("j1499", "continuous", "l1499", "l1500"))
    mimic_of = load_urdf(urdf(" ".join(f"l{i}" for i in range(1501)), *joints)).mimic_of
    assert {mimic.master for mimic in mimic_of.values()} == {"j1499"}


@pytest.mark.parametrize("character", ["&#10;", "&#9;", "\x9b", "\u2028", "\x7f"])
@pytest.mark.parametrize("name", ["test", "a", "j"])
def test_names_with_control_characters_are_refused(name, character):
    message = assert_refused(
        BODY.replace(f'name="{name}"', f'name="{character}[INFO] all is well"')
    )
    assert "non-printable characters" in message
    assert message.isprintable()


@pytest.mark.parametrize("number", ["1e400", "-1e400", "nan", "inf", "1e308 0 0", "x", ""])
@pytest.mark.parametrize("key", ["xyz", "rpy", "lower", "upper", "velocity"])
def test_invalid_numbers_are_refused(key, number):
    words = number if " " in number or key not in ("xyz", "rpy") else f"{number} {number} 0"
    detail = {"lower": "-1", "upper": "1", "velocity": "1", "xyz": "0 0 0", "rpy": "0 0 0"}
    detail[key] = words
    text = '<origin xyz="{xyz}" rpy="{rpy}"/><limit lower="{lower}" upper="{upper}" '
    text += 'velocity="{velocity}" effort="1"/>'
    text = urdf("a b", joint("j", detail=text.format(**detail)))
    if (key, number) in {("velocity", "1e400"), ("velocity", "inf")}:
        assert np.isfinite(RobotModel.from_urdf(text).fk([0.0])).all()  # no limit
    elif (key, number) != ("rpy", "1e308 0 0"):
        assert assert_refused(text).isprintable()


@pytest.mark.parametrize("value", ["1", ">", "'"])
def test_tags_with_many_attributes_are_refused_early(value, monkeypatch):
    seen, start = [], reader._Sanitizer.start

    def counted(reader, tag, attributes):
        seen.append(len(attributes))
        start(reader, tag, attributes)

    monkeypatch.setattr(reader._Sanitizer, "start", counted)
    many = " ".join(f'a{i}="{value}"' for i in range(250_000))
    text = BODY.replace("</robot>", f"<gazebo {many}/></robot>")
    assert f"a tag has more than {MAX_TAG_BYTES} bytes" in assert_refused(text)
    few = " ".join(f'a{i}="{value}"' for i in range(500))
    load_urdf(BODY.replace("</robot>", f"<gazebo {few}/></robot>"))
    assert max(seen) == 500


@pytest.mark.parametrize("piece", ["<!--{}-->", "<![CDATA[{}]]>", "<?x {}?>", "<a>{}</a>"])
def test_long_content_is_ignored(piece):
    assert load_urdf(BODY.replace("</robot>", f"{piece.format('x' * 3_000_000)}</robot>")).links
