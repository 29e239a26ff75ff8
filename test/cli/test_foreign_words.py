# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Foreign names and words in a terminal: they contain no control codes and start no line."""

import json
from types import SimpleNamespace

import pytest
from robots import joint, urdf

from dls_ik.cli import call
from dls_ik.cli.main import main

STEERS = "x\x1b]0;title\x07\x9b2J\r\n[FATAL] forged\u202e\x00"
ONE = urdf("a b", joint("j"))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("robot.urdf", f'<robot name="r"><link name="&#10;{chr(0x9B)}"/></robot>'),
        ("robot.urdf", STEERS),
        ("robot.urdf", ONE.replace('"j"', '"j&#x202e;"')),
        ("rows.yaml", json.dumps({"rows": [{"name": STEERS}], STEERS: 1})),
        ("rows.yaml", json.dumps({"rows": [{"lower": -1, "upper": 1}], "name": STEERS})),
        ("rows.yaml", json.dumps({"rows": [{"lower": -1, "upper": 1, "name": "j\x1b[2J"}]})),
        ("poses.csv", f"x,y,{STEERS}\n1,2,3\n"),
    ],
)
def test_hostile_robot_or_pose_file_gives_one_printable_line(name, content, tmp_path, capsys):
    file = tmp_path / name
    file.write_text(content, newline="")
    words = ["path", "wam", str(file), "--out", "q.csv"] if name == "poses.csv" else ["info", file]
    with pytest.raises(SystemExit):
        main([str(word) for word in words])
    one_line(capsys)


def test_hostile_node_answer_prints_one_printable_line(capsys):
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
