# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Each example runs in a process of its own, says what it should, and writes its pictures."""

import re
from pathlib import Path

import pytest
from programs import run_python
from robots import ROOT

EXAMPLES = ROOT / "examples"
FILES = sorted(path.name for path in EXAMPLES.glob("*.py"))
SAID = {
    "01_minimal_clik.py": [r"\|e\| = \d\.\d+e-(0[7-9]|1\d) m", "inside the joint limits"],
    "02_solve.py": [
        r"off by \d\.\de-\d+ m",
        r"12 solutions in \d families",
        r"family 0: elbow \d\.\d+ rad",
        r"100\.0% of 1000 poses",
        "out of reach: UNREACHABLE",
        r"as near as it comes: [1-2]\.\d+ m",
    ],
    "03_compare_methods.py": [r"dls +error at the end 0\.1000 m", "nearest there is: 0.1000 m"],
    "04_follow_a_path.py": ["300 of 300 poses solved, 0 jumps", r"position error \d\.\de-0[6-9] m"],
    "05_stream_through_ros.py": [r"at the target, 0\.0\d\d mm away"],
    "06_two_arms.py": ["14 joints", "120 of 120 poses solved, 0 jumps", r"0\.800 m apart"],
    "07_own_robot_from_dh.py": [
        "SUCCESS",
        r"by the law of cosines: ([\d.]+) or (-[\d.]+) rad\n.* elbows at \[\2, \1\] rad",
        "80 of 80 poses solved, 0 jumps",
    ],
    "08_reachability.py": [r"12\.\d\d m2", r"\(1\.9, .*: reached", r"\(2\.0, .*: not reached"],
    "10_shelf.py": [
        r"without the scene [1-9]\d? of 10 answers collide",
        "with it 10 of 10 poses are reached",
        r"most often 'board2' and 'wam_link\d' collide",
    ],
    "11_task_stack.py": [
        r"-1\.0 rad: \[0\.394 0\.224",
        r"joints move by 1\.\d\d rad and the tip by \d\.\d um",
        r"lifted by 0\.10 of 0\.1 m",
        r"lifted by 0\.\d\d of 2\.0 m, grip exact to \de-(09|1\d)",
    ],
    "12_shapes_through_ros.py": [
        r"ik_node: mean distances \d\.\d+ \d\.\d+",
        r"reproduction: mean distances 0\.37\d 0\.04\d",
    ],
    "13_kinds_of_tasks.py": [
        r"swivel angle of the elbow +0\.5000 +0\.0000",
        r"coupled joints +0\.4000 +0\.0000",
        r"objective centring +2\.067\d +1\.\d+",
    ],
    "09_jog_through_ros.py": [r"the tip is [1-9]\d+ mm from where it was"],
}
SAVES = {
    "03_compare_methods.py": ["compare_methods.png"],
    "04_follow_a_path.py": ["path.csv", "tip_path.png", "joint_bands.png", "joint_velocities.png"],
    "06_two_arms.py": ["two_arms.png", "two_arms_errors.png"],
    "07_own_robot_from_dh.py": ["scara.png", "scara_joints.png"],
    "08_reachability.py": ["reachability.png"],
    "10_shelf.py": ["shelf.png"],
    "12_shapes_through_ros.py": ["shapes.png"],
}


def check(example, folder, *arguments, **variables):
    """That it printed what it should, and wrote its files into the folder of pictures alone."""
    if example in SAVES:
        pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    if "shelf" in example:
        pytest.importorskip("coal", reason="coal is not installed")
    current = folder / "current"
    current.mkdir()
    files = set(EXAMPLES.rglob("*"))
    done = run_python(EXAMPLES / example, *arguments, cwd=current, **variables)
    assert done.returncode == 0, done.stderr
    for words in SAID[example]:
        assert re.search(words, done.stdout), f"{words!r} is not in:\n{done.stdout}"
    saved = [Path(name) for name in re.findall(r"^saved (.+)$", done.stdout, flags=re.MULTILINE)]
    assert [path.name for path in saved] == SAVES.get(example, [])
    for path in saved:
        start = b"\x89PNG" if path.suffix == ".png" else b"# time,"
        assert path.read_bytes().startswith(start)
    assert list(current.iterdir()) == []
    new = {path for path in set(EXAMPLES.rglob("*")) - files if "__pycache__" not in path.parts}
    assert not new
    return {path.parent for path in saved}


@pytest.mark.parametrize("example", [name for name in FILES if "ros" not in name])
def test_example_prints_and_saves_the_expected_results(example, tmp_path):
    pictures = tmp_path / "new" / "pictures"
    folders = check(example, tmp_path, *([pictures] if example in SAVES else []))
    assert folders == ({pictures} if example in SAVES else set())


def test_pictures_go_to_a_new_temporary_folder_by_default(tmp_path):
    (folder,) = check("03_compare_methods.py", tmp_path, TMPDIR=str(tmp_path))
    assert folder.parent == tmp_path


@pytest.mark.ros
@pytest.mark.slow
@pytest.mark.parametrize("example", [name for name in FILES if "ros" in name])
def test_example_through_ros_brings_the_arm_to_its_target(example, tmp_path):
    pytest.importorskip("rclpy", reason="needs rclpy")
    pytest.importorskip("moveit_msgs", reason="needs moveit_msgs")
    check(example, tmp_path)


def test_each_example_is_numbered_short_listed_and_says_what_it_teaches():
    listed = re.findall(r"^\| \[(.+?)\]\((.+?)\) \|", (EXAMPLES / "README.md").read_text(), re.M)
    assert listed == [(name, name) for name in FILES]
    assert sorted(SAID) == FILES
    for i, name in enumerate(FILES, start=1):
        lines = (
            (EXAMPLES / name).read_text().splitlines()[2:]
        )  # the text below copyright and license
        assert name.startswith(f"{i:02d}_")
        assert len(lines) < 60, name
        assert lines[0].startswith('"""')
        assert lines[0].endswith((".", ":")), lines[0]


def test_the_first_example_is_very_short():
    text = (EXAMPLES / "01_minimal_clik.py").read_text()
    assert sum(bool(each.strip()) for each in text.splitlines()) <= 40
