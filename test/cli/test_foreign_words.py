"""Names and words of others in a terminal: they steer nothing, and begin no line."""

import json
from types import SimpleNamespace

import pytest
from robots import joint, urdf

from dls_ik import RobotModel
from dls_ik.cli import call
from dls_ik.cli.main import main
from dls_ik.errors import RobotModelError
from dls_ik.model.dh import tree_from_dh

STEERS = "x\x1b]0;title\x07\x9b2J\r\n[FATAL] forged\u202e\x00"


@pytest.mark.parametrize("character", ["&#10;", "&#9;", "&#x9b;", "&#x202e;"])
@pytest.mark.parametrize("name", ["test", "a", "j"])
def test_a_robot_has_no_such_names(name, character):
    text = urdf("a b", joint("j")).replace(f'"{name}"', f'"{name}{character}"')
    with pytest.raises(RobotModelError, match="control characters") as refused:
        RobotModel.from_urdf(text)
    assert str(refused.value).isprintable()


def test_nor_one_of_dh_rows():
    with pytest.raises(RobotModelError, match="cannot be printed"):
        tree_from_dh([{"a": 1.0, "lower": -1, "upper": 1, "name": "j\x1b[2J"}])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("robot.urdf", f'<robot name="r"><link name="&#10;{chr(0x9B)}"/></robot>'),
        ("robot.urdf", STEERS),
        ("rows.yaml", json.dumps({"rows": [{"name": STEERS}], STEERS: 1})),
        ("rows.yaml", json.dumps({"rows": [{"lower": -1, "upper": 1}], "name": STEERS})),
    ],
)
def test_a_hostile_robot_is_one_line(name, content, tmp_path, capsys):
    file = tmp_path / name
    file.write_text(content)
    with pytest.raises(SystemExit):
        main(["info", str(file)])
    one_line(capsys)


def test_a_hostile_file_of_poses_is_one_line(tmp_path, capsys):
    file = tmp_path / "poses.csv"
    file.write_text(f"x,y,{STEERS}\n1,2,3\n", newline="")
    with pytest.raises(SystemExit):
        main(["path", "wam", str(file), "--out", str(tmp_path / "q.csv")])
    one_line(capsys)


def test_a_hostile_node_writes_one_line_an_answer(capsys):
    answer = SimpleNamespace(success=True, q={STEERS: 1.0}, message=STEERS, code=1)
    call._print_ik(answer, False)
    shown = capsys.readouterr()
    for stream in (shown.out, shown.err):
        assert stream.count("\n") == 1
        assert stream.rstrip("\n").isprintable()


def one_line(capsys):
    complaint = capsys.readouterr().err
    assert complaint.count("\n") == 1
    assert complaint.startswith("dls-ik: ")
    assert complaint.rstrip("\n").isprintable()
