# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Invalid input of every command: exit code 2, nothing on stdout, one line on stderr."""

import shlex

import pytest
from cli_runner import refusal

POSES = "x,y,z,roll,pitch,yaw\n0.5,0,0.3,0,3,0\n"
POSE = "solve wam --xyz 0.4 0.2 0.5"
FIVE = "stream --twist 1 2 3 4 5"
CIRCLE = "stream --circle 0.1"

REFUSALS = [
    ("frobnicate", "frobnicate"),
    # a robot, its chain, joint values
    ("info", "ROBOT"),
    ("info wan", "did you mean wam?"),
    ("info no/such.urdf", "no/such.urdf"),
    ("info wam --tip x", "wam_tip"),
    ("info wam --base x", "wam_base"),
    (f"{POSE} --tip hand", "wam_tip"),
    ("fk wam", "either --q or --random"),
    ("fk wam --q 0 --random 1", "either --q or --random"),
    ("fk wam --q 1,2", "expected 7 joint positions"),
    ("fk wam --q 1,x", "'x'"),
    ("fk wam --q nan,0,0,0,0,0,0", "'nan'"),
    ("fk wam --q elbow=1", "unknown joint elbow; joints: wam_j1"),
    ("fk wam --q wamj1=1", "unknown joint wamj1; did you mean wam_j1?"),
    ("fk wam --q wam_j1=1,wam_j1=2", "joint 'wam_j1' is given twice"),
    ("fk wam --q wam_j1=1 --q wam_j1=1", "joint 'wam_j1' is given twice"),
    ("fk wam --q wam_j1=", "NAME=VALUE"),
    ("fk wam --q 0,0,0,0,0,0,0 --link hand", "unknown link 'hand'; links: wam_base"),
    ("fk wam --q 0,0,0,0,0,0,0 --link wam_lnk4", "unknown link 'wam_lnk4'; did you mean wam_link4"),
    ("fk wam --random 0", "0"),
    # a pose
    ("solve wam", "--xyz"),
    ("solve wam --rpy 0 0 0", "--rpy needs --xyz"),
    ("solve wam --quat 0 0 0 1", "--quat needs --xyz"),
    ("solve wam --xyz 1 2", "--xyz"),
    ("solve wam --xyz 1 2 x", "'x'"),
    ("solve wam --xyz 1 2 nan", "finite"),
    ("solve wam --xyz 1 2 inf", "finite"),
    ("solve wam --xyz 1 2 1e300", "within"),
    ("solve wam --xyz 1 2 3 --quat 0 0 0 0", "cannot be normalised"),
    ("solve wam --xyz 1 2 3 --rpy 0 0 0 --quat 0 0 0 1", "either --rpy or --quat"),
    ("solve wam --xyz 1 2 3 --matrix 1", "12 or 16 numbers"),
    ("solve wam --matrix '1 0 0 0 0 1 0 0 0 0 1 x'", "'x'"),
    ("solve wam --matrix '2 0 0 0 0 1 0 0 0 0 1 0'", "rotation"),
    ("solve wam --matrix '1 0 0 0 0 1 0 0 0 0 1 0 1 1 1 1'", "last row"),
    # options of the solver, pictures
    (f"{POSE} --method foo", "unknown method 'foo'"),
    (f"{POSE} --method ,", "--method"),
    (f"{POSE} --method auto,svf --all 2", "exactly one with --all"),
    (f"{POSE} --seed 1,2", "--seed: expected 7 joint positions"),
    (f"{POSE} --seed j=1", "unknown joint j"),
    (f"{POSE} --timeout -1", "timeout"),
    (f"{POSE} --solve-type best", "distance"),
    (f"{POSE} --solve-type clearance", "--srdf auto or --scene FILE"),
    (f"{POSE} --task half", "pointing"),
    (f"{POSE} --set x", "NAME=VALUE"),
    (f"{POSE} --set foo=1", "unknown option foo"),
    (f"{POSE} --set nu=-1", "nu ("),
    (f"{POSE} --plot x.bmp", ".png, .svg, .pdf"),
    (f"{POSE} --plot -", "standard output is not supported"),
    (f"{POSE} --plot no/such/folder/x.png", "does not exist"),
    # the page: refused before its address is printed
    ("view wam --method kdl_lma", "follows no target"),
    ("view wam --method jp,dls,sd,svf,ctp", "at most 4 methods; got 5"),
    ("view wam --method jq", "unknown method 'jq'"),
    ("view wam --replay none.csv", "cannot read none.csv: No such file or directory"),
    ("view --ros --task position", "--task cannot be combined with --ros"),
    # a path
    ("path wam poses.csv", "--out"),
    ("path wam poses.csv --out x.txt", ".csv, .json"),
    ("path wam poses.csv --out no/such/folder/x.csv", "does not exist"),
    ("path wam poses.csv --out no/such/folder/x.bag", "does not exist"),
    ("path wam poses.csv --out - --json", "give a file as --out"),
    ("path wam poses.csv --out - --format bag", "standard output"),
    ("path wam poses.csv --out x.csv --plot x.gif", ".png, .svg, .pdf"),
    ("path wam poses.csv --out x.csv --plot x.png", "at least 2 poses"),
    ("path wam poses.csv --out x.csv --rate 0", "0"),
    ("path wam poses.csv --out x.csv --method foo", "unknown method"),
    ("path wam poses.csv --out x.csv --max-joint-step 0", "0"),
    ("path wam none.csv --out x.csv", "No such file"),
    # a map
    ("reachability", "ROBOT"),
    ("reachability nosuch", "wam, planar_2r, puma560"),
    ("reachability no/such.urdf", "there is no file"),
    ("reachability wam --tip hand", "unknown tip link 'hand'"),
    ("reachability wam --resolution 0", "edge of a voxel"),
    ("reachability wam --resolution -0.1", "not -0.1"),
    ("reachability wam --resolution wide", "wide"),
    ("reachability wam --resolution 0.0001", "at most"),
    ("reachability wam --orientations 0", "not 0"),
    ("reachability wam --orientations -3", "not -3"),
    ("reachability wam --task position --orientations 3", "orientation free"),
    ("reachability wam --task grasp", "grasp"),
    ("reachability wam --tolerance 0", "tolerance"),
    ("reachability wam --restarts -1", "max_restarts"),
    ("reachability wam --seed -1", "random_seed"),
    ("reachability wam --region 1 0 0 1 0 1", "x0 x1 y0 y1 z0 z1"),
    ("reachability wam --region 1 0", "--region"),
    ("reachability wam --out map.csv", ".npz or .zarr"),
    ("reachability wam --out no/such/folder/map.npz", "no directory"),
    ("reachability wam --plot map.bmp", ".png, .svg, .pdf"),
    ("reachability wam --plot no/such/folder/map.png", "does not exist"),
    ("reachability wam --json no/such/folder/x.json", "does not exist"),
    # methods
    ("study nobody --method auto", "unknown robot 'nobody'"),
    ("study wam --method newton", "unknown method 'newton'"),
    ("study wam --method ' , '", "method"),
    ("study wam --pairs 0", "pairs"),
    ("study wam --set max_restarts=-1", "max_restarts"),
    ("study wam --set speed=1", "speed"),
    ("study wam --case nearby", "nearby"),
    ("study planar_2r --method kdl_lma", "kdl_lma"),
    ("reproduce", "WHAT"),
    ("reproduce table-vi", "figures-4-5"),
    ("reproduce figure-2 --samples 0", "20 or more samples"),
    ("reproduce table-v --samples 0", "1 or more samples"),
    ("reproduce figure-2 --samples -3", "got -3"),
    ("reproduce figure-2 --samples many", "many"),
    ("reproduce figure-2 --seed x", "'x'"),
    ("reproduce figure-2 --seed -1", "-1"),
    ("reproduce figure-2 --json no/such/folder/x.json", "does not exist"),
    ("reproduce figure-2 --plot x.bmp", ".png, .svg, .pdf"),
    ("reproduce figure-2 --plot -", "standard output"),
    ("reproduce figure-2 --report x.docx", ".md, .html"),
    ("reproduce figure-2 --report -", "standard output"),
    ("reproduce figure-2 --json .", "a directory"),
    ("reproduce figure-2 --json x.png --plot x.png", "two outputs"),
    ("reproduce all --plot x.png", "--report"),
    # a node
    ("call", "either --xyz"),
    ("call --xyz 1 2 3 --fk a=1", "either --xyz"),
    ("call --xyz 1 2 3 --seed 0.1", "NAME=VALUE"),
    ("call --xyz 1 2 3 --seed a=b", "'a=b'"),
    ("call --xyz 1 2 3 --seed a=nan", "'a=nan'"),
    ("call --xyz 1 2 3 --timeout -1", "timeout"),
    ("stream", "give exactly one of"),
    ("stream --xyz 1 2 3 --circle 0.1", "give exactly one of"),
    (FIVE, "--twist"),
    (f"{FIVE} nan", "six numbers"),
    (f"{FIVE} 6 --for 0", "--for"),
    (f"{FIVE} 6 --for inf", "inf s"),
    ("stream --circle 0", "--circle"),
    (f"{CIRCLE} --frame tool", "omit --frame"),
    (f"{CIRCLE} --period 1e9", "exceed the maximum of"),
    (f"{CIRCLE} --rate 0", "--rate"),
    ("stream --file no/such.csv", "cannot read no/such.csv"),
    (f"{CIRCLE} --plot x.bmp", ".png"),
    (f"{CIRCLE} --record no/such/x.csv", "does not exist"),
    (f"{CIRCLE} --record -", "needs a file"),
]


@pytest.mark.parametrize(("line", "said"), REFUSALS)
def test_invalid_input_gives_a_one_line_error_and_no_file(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poses.csv").write_text(POSES)
    assert said in refusal(*shlex.split(line))
    assert [file.name for file in tmp_path.iterdir()] == ["poses.csv"]
