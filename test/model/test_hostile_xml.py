"""A robot description that means harm is refused, at once and without touching anything."""

import time

import numpy as np
import pytest
from robots import joint, urdf

from dls_ik import RobotModel
from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model import load_urdf
from dls_ik.model import urdf as reader
from dls_ik.model.chain import MAX_JOINTS
from dls_ik.model.urdf import MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS, MAX_PARTS

BODY = urdf("a b", joint("j"))


WORK = 10.0  # [s] of CPU, of which none of these takes a tenth


@pytest.fixture(autouse=True)
def soon():
    """Fail what does far more work than it should, however busy the machine is."""
    load_urdf(BODY)  # imports
    start = time.process_time()
    yield
    assert time.process_time() - start < WORK


def refused(source):
    with pytest.raises(RobotModelError) as caught:
        load_urdf(source)
    return str(caught.value)


def test_entity_bomb():
    entities = "".join(f'<!ENTITY e{i + 1} "{f"&e{i};" * 10}">\n' for i in range(12))
    bomb = f'<!DOCTYPE robot [\n<!ENTITY e0 "lol">\n{entities}]>\n<robot name="&e12;"/>'
    assert refused(bomb).startswith("line 1: document type and entity")


def test_quadratic_bomb():
    text = f'\n<!DOCTYPE robot [<!ENTITY e "{"x" * 100_000}">]><robot>{"&e;" * 10_000}</robot>'
    assert refused(text).startswith("line 2: document type and entity")


@pytest.mark.parametrize("system", ["file:///etc/hostname", "http://127.0.0.1:9/x"])
def test_external_entity(system):
    text = f'<!DOCTYPE robot [<!ENTITY e SYSTEM "{system}">]><robot name="r">&e;</robot>'
    assert "entity declarations are not accepted" in refused(text)


def test_external_document_type(tmp_path):
    path = tmp_path / "dtd.urdf"
    path.write_text('<?xml version="1.0"?>\n<!DOCTYPE robot SYSTEM "file:///x.dtd">\n' + BODY)
    assert refused(path).startswith("line 2:")


def test_undeclared_entity():
    assert "line 1" in refused('<robot name="r">&e;</robot>')


def test_deep_nesting():
    text = '<robot name="r">' + "<a>" * 500_000 + "</a>" * 500_000 + "</robot>"
    assert f"more than {MAX_DEPTH} deep" in refused(text)


def test_nesting_as_deep_as_allowed():
    inside = MAX_DEPTH - 1
    load_urdf(BODY.replace("</robot>", "<a>" * inside + "</a>" * inside + "</robot>"))


def test_huge_text_and_file(tmp_path):
    text = BODY + " " * MAX_BYTES
    path = tmp_path / "huge.urdf"
    path.write_text(text)
    assert "larger than" in refused(text)
    assert "larger than" in refused(path)


def test_too_many_parts():
    many = "".join(f'<link name="l{i}"/>' for i in range(MAX_PARTS + 1))
    assert f"more than {MAX_PARTS} links" in refused(f'<robot name="r">{many}</robot>')


def test_too_many_elements():
    text = '<robot name="r">' + "<a/>" * MAX_ELEMENTS + "</robot>"
    assert f"more than {MAX_ELEMENTS} elements" in refused(text)


def test_as_many_parts_as_allowed():
    n = MAX_PARTS // 2
    links = " ".join(f"l{i}" for i in range(n))
    # A long chain whose end has many children: each is a tip that there could be.
    joints = [joint(f"j{i}", "fixed", f"l{min(i, n // 2)}", f"l{i + 1}") for i in range(n - 1)]
    with pytest.raises(ChainError, match="no link moves"):
        RobotModel.from_urdf(urdf(links, *joints))


def test_chain_of_too_many_joints():
    n = MAX_JOINTS + 1
    links = " ".join(f"l{i}" for i in range(n + 1))
    joints = [joint(f"j{i}", parent=f"l{i}", child=f"l{i + 1}") for i in range(n)]
    with pytest.raises(ChainError, match=f"a chain has {MAX_JOINTS} joints at most, this one {n}"):
        RobotModel.from_urdf(urdf(links, *joints))
    assert RobotModel.from_urdf(urdf(links, *joints), tip=f"l{n - 1}").n == MAX_JOINTS


@pytest.mark.parametrize("root", ["<{}/>", '<robot name="r"><xacro:{}/></robot>'])
def test_long_tag(root):
    assert len(refused(root.format("x" * 1_000_000))) < 400


@pytest.mark.parametrize("character", ["&#10;", "&#9;", "\x9b", "\u2028", "\x7f"])
@pytest.mark.parametrize("name", ["test", "a", "j"])
def test_a_name_that_would_be_another_line_of_a_log(name, character):
    message = refused(BODY.replace(f'name="{name}"', f'name="{character}[INFO] all is well"'))
    assert "control characters" in message
    assert message.isprintable()


@pytest.mark.parametrize("number", ["1e400", "-1e400", "nan", "inf", "1e308 0 0", "x", ""])
@pytest.mark.parametrize("key", ["xyz", "rpy", "lower", "upper", "velocity"])
def test_numbers_that_are_none(key, number):
    words = number if " " in number or key not in ("xyz", "rpy") else f"{number} {number} 0"
    detail = {"lower": "-1", "upper": "1", "velocity": "1", "xyz": "0 0 0", "rpy": "0 0 0"}
    detail[key] = words
    text = '<origin xyz="{xyz}" rpy="{rpy}"/><limit lower="{lower}" upper="{upper}" '
    text += 'velocity="{velocity}" effort="1"/>'
    text = urdf("a b", joint("j", detail=text.format(**detail)))
    if (key, number) in {("velocity", "1e400"), ("velocity", "inf")}:
        assert np.isfinite(RobotModel.from_urdf(text).fk([0.0])).all()  # no limit
    elif (key, number) != ("rpy", "1e308 0 0"):
        assert refused(text).isprintable()


def test_long_attribute():
    message = refused(BODY.replace('type="revolute"', f'type="{"x" * 1_000_000}"'))
    assert len(message) < 400


def test_long_chain_needs_no_recursion():
    links = " ".join(f"l{i}" for i in range(1501))
    joints = [joint(f"j{i}", "fixed", f"l{i}", f"l{i + 1}") for i in range(1500)]
    assert load_urdf(urdf(links, *joints)).leaves == ("l1500",)


def test_long_mimic_chain_needs_no_recursion():
    links = " ".join(f"l{i}" for i in range(1501))
    joints = [
        joint(f"j{i}", "continuous", f"l{i}", f"l{i + 1}", f'<mimic joint="j{i + 1}"/>')
        for i in range(1499)
    ]
    joints.append(joint("j1499", "continuous", "l1499", "l1500"))
    drives = load_urdf(urdf(links, *joints)).mimic_of
    assert {drive.master for drive in drives.values()} == {"j1499"}


@pytest.mark.parametrize("value", ["1", ">", "'"])
def test_a_tag_of_many_attributes_is_refused_before_it_is_parsed(value, monkeypatch):
    seen, start = [], reader._Sanitizer.start

    def counted(reader, tag, attributes):
        seen.append(len(attributes))
        start(reader, tag, attributes)

    monkeypatch.setattr(reader._Sanitizer, "start", counted)
    many = " ".join(f'a{i}="{value}"' for i in range(250_000))
    text = BODY.replace("</robot>", f"<gazebo {many}/></robot>")
    assert f"a tag of more than {reader.MAX_TAG_BYTES} bytes" in refused(text)
    few = " ".join(f'a{i}="{value}"' for i in range(500))
    load_urdf(BODY.replace("</robot>", f"<gazebo {few}/></robot>"))
    assert max(seen) == 500


@pytest.mark.parametrize("piece", ["<!--{}-->", "<![CDATA[{}]]>", "<?x {}?>", "<a>{}</a>"])
def test_much_text_is_passed_over(piece):
    assert load_urdf(BODY.replace("</robot>", f"{piece.format('x' * 3_000_000)}</robot>")).links


def test_unexpanded_xacro():
    text = '<robot name="r">\n<xacro:arm prefix="x"/></robot>'
    assert refused(text).startswith("line 2: <xacro:arm>")


@pytest.mark.parametrize("encoding", ["utf-7", "no-such", "idna", "big5"])
def test_odd_encodings(encoding, tmp_path):
    path = tmp_path / "odd.urdf"
    path.write_text(f'<?xml version="1.0" encoding="{encoding}"?>' + BODY)
    assert "line 1" in refused(path)


@pytest.mark.parametrize("raw", [b"<\x00", b"<robot name='\xff'/>", b"\xff\xfe<", b"\x7fELF"])
def test_binary_file(raw, tmp_path):
    path = tmp_path / "binary.urdf"
    path.write_bytes(raw)
    assert "not XML" in refused(path)


def test_lone_surrogate():
    assert "line 1" in refused("<robot name='\ud800'/>")
