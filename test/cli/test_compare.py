# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik compare``: figures of the library, files of poses, pictures."""

import numpy as np
import pytest
from cli_runner import document, refusal, run

from dls_ik import RobotModel
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import singular_path

HEADER = "x,y,z,qx,qy,qz,qw"
LINE = [f"{0.4 + 0.002 * i},0.2,0.5,0,1,0,0" for i in range(20)]


def test_compare_output_matches_the_library_and_fits_the_width(tmp_path):
    picture = tmp_path / "x.png"
    found = document("compare", "wam", "--method", "jp,svf+sd", "--plot", picture)
    robot = RobotModel.wam()
    peaks = compare_on_path(robot, ["jp", "svf+sd"], singular_path(robot)).peaks()
    assert [each["method"] for each in found["methods"]] == list(peaks)
    assert found["methods"][0]["fastest_joint"] == peaks["jp"].fastest_joint
    assert found["path"] == "through a singularity"
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = run("compare", "wam", "--method", "jp,svf+sd", columns=60).stdout
    assert "singular value filtering + selective damping" in shown
    assert max(map(len, shown.splitlines())) <= 60


def test_a_file_of_poses_is_followed_from_its_first_pose(tmp_path):
    path = tmp_path / "poses.csv"
    path.write_text("\n".join([HEADER, *LINE]))
    found = document("compare", "wam", "--path", path, "--rate", 10, "--method", "dls")
    assert (found["targets"], found["dt"]) == (20, 0.1)
    start = list(found["start"].values())
    np.testing.assert_allclose(RobotModel.wam().fk(start)[:3, 3], [0.4, 0.2, 0.5], atol=1e-5)
    seeded = document("compare", "wam", "--path", path, "--seed", "0,0.6,0,1.6,0,0.5,0")
    assert list(seeded["start"].values()) == [0, 0.6, 0, 1.6, 0, 0.5, 0]
    times = [f"{0.02 * i},{line}" for i, line in enumerate(LINE)]
    path.write_text("\n".join([f"t,{HEADER}", *times]))
    assert document("compare", "wam", "--path", path)["dt"] == pytest.approx(0.02)
    path.write_text("\n".join([f"t,{HEADER}", *times[:4], *times[7:]]))
    assert "not evenly spaced; give --rate" in refusal("compare", "wam", "--path", path)
    path.write_text(f"{HEADER}\n9,9,9,0,0,0,1\n8,9,9,0,0,0,1\n")
    assert "the first pose is not reached" in refusal("compare", "planar_2r", "--path", path)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("wam --path singularty", "did you mean singularity?"),
        ("wam --path circle", "give singularity, reach or a file of poses"),
        ("wam --path no.csv", "No such file"),
        ("wam --rate 5", "need a file of poses as --path"),
        ("wam --seed 0", "need a file of poses as --path"),
        ("wam --method ,", "--method"),
        ("wam --method KDL_lma", "no single steps; use dls-ik solve or study"),
        ("wam --method svg", "did you mean svf"),
        ("wam --set nu=-1", "nu (SVF: shape factor) must be"),
        ("puma560 --method ta", "needs a redundant arm"),
        ("planar_2r --task pose", "no configuration at the boundary of the workspace was found"),
        ("wam --plot x.gif", ".png"),
    ],
)
def test_invalid_arguments_give_a_one_line_error(words, said):
    assert said in refusal("compare", *words.split())
