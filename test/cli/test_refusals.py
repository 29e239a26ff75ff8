"""Bad input of every command: exit code 2, nothing on stdout, one line on stderr."""

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
    ("fk wam --q 1,2", "7 joint values are expected"),
    ("fk wam --q 1,x", "'x'"),
    ("fk wam --q nan,0,0,0,0,0,0", "'nan'"),
    ("fk wam --q elbow=1", "unknown joint elbow; joints: wam_j1"),
    ("fk wam --q wamj1=1", "unknown joint wamj1; did you mean wam_j1?"),
    ("fk wam --q wam_j1=1,wam_j1=2", "joint 'wam_j1' is given twice"),
    ("fk wam --q wam_j1=1 --q wam_j1=1", "joint 'wam_j1' is given twice"),
    ("fk wam --q wam_j1=", "NAME=VALUE"),
    ("fk wam --q 0,0,0,0,0,0,0 --link hand", "unknown link 'hand'"),
    ("fk wam --random 0", "0"),
    # a pose
    ("solve wam", "--xyz"),
    ("solve wam --rpy 0 0 0", "--rpy goes with --xyz"),
    ("solve wam --quat 0 0 0 1", "--quat goes with --xyz"),
    ("solve wam --xyz 1 2", "--xyz"),
    ("solve wam --xyz 1 2 x", "'x'"),
    ("solve wam --xyz 1 2 nan", "finite"),
    ("solve wam --xyz 1 2 inf", "finite"),
    ("solve wam --xyz 1 2 1e300", "within"),
    ("solve wam --xyz 1 2 3 --quat 0 0 0 0", "no direction"),
    ("solve wam --xyz 1 2 3 --rpy 0 0 0 --quat 0 0 0 1", "not both"),
    ("solve wam --xyz 1 2 3 --matrix 1", "12 or 16 numbers"),
    ("solve wam --matrix '1 0 0 0 0 1 0 0 0 0 1 x'", "'x'"),
    ("solve wam --matrix '2 0 0 0 0 1 0 0 0 0 1 0'", "rotation"),
    ("solve wam --matrix '1 0 0 0 0 1 0 0 0 0 1 0 1 1 1 1'", "last row"),
    # options of the solver, pictures
    (f"{POSE} --method foo", "unknown method 'foo'"),
    (f"{POSE} --method ,", "--method"),
    (f"{POSE} --method auto,svf --all 2", "with --all one"),
    (f"{POSE} --seed 1,2", "--seed: 7 joint values are expected"),
    (f"{POSE} --seed j=1", "unknown joint j"),
    (f"{POSE} --timeout -1", "timeout"),
    (f"{POSE} --solve-type best", "distance"),
    (f"{POSE} --task half", "pointing"),
    (f"{POSE} --set x", "NAME=VALUE"),
    (f"{POSE} --set foo=1", "unknown option foo"),
    (f"{POSE} --set nu=-1", "nu is"),
    (f"{POSE} --plot x.bmp", ".png, .svg, .pdf"),
    (f"{POSE} --plot -", "not standard output"),
    (f"{POSE} --plot no/such/folder/x.png", "no directory"),
    # a path
    ("path wam poses.csv", "--out"),
    ("path wam poses.csv --out x.txt", ".csv, .json"),
    ("path wam poses.csv --out no/such/folder/x.csv", "no directory"),
    ("path wam poses.csv --out no/such/folder/x.bag", "no directory"),
    ("path wam poses.csv --out - --json", "--out a file"),
    ("path wam poses.csv --out - --format bag", "standard output"),
    ("path wam poses.csv --out x.csv --plot x.gif", ".png, .svg, .pdf"),
    ("path wam poses.csv --out x.csv --plot x.png", "two poses or more"),
    ("path wam poses.csv --out x.csv --rate 0", "0"),
    ("path wam poses.csv --out x.csv --method foo", "unknown method"),
    ("path wam poses.csv --out x.csv --max-joint-step 0", "0"),
    ("path wam none.csv --out x.csv", "No such file"),
    # methods
    ("bench nobody", "unknown robot 'nobody'"),
    ("bench wam --method newton", "unknown method 'newton'"),
    ("bench wam --method ' , '", "one method or more"),
    ("bench wam --reference newton", "unknown method 'newton'"),
    ("bench wam --samples 0", "samples"),
    ("bench wam --timeout -1", "timeout"),
    ("bench wam --set max_restarts=-1", "max_restarts"),
    ("bench wam --set speed=1", "speed"),
    ("bench wam --plot x.bmp", ".png"),
    ("bench planar_2r --method kdl_lma", "kdl_lma"),
    ("reproduce", "WHAT"),
    ("reproduce table-vi", "figures-4-5"),
    ("reproduce figure-2 --samples 0", "20 or more samples"),
    ("reproduce table-v --samples 0", "1 or more samples"),
    ("reproduce figure-2 --samples -3", "not -3"),
    ("reproduce figure-2 --samples many", "many"),
    ("reproduce figure-2 --seed x", "'x'"),
    ("reproduce figure-2 --seed -1", "-1"),
    ("reproduce figure-2 --json no/such/folder/x.json", "no directory"),
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
    ("stream", "give one of"),
    ("stream --xyz 1 2 3 --circle 0.1", "give one of"),
    (FIVE, "--twist"),
    (f"{FIVE} nan", "six numbers"),
    (f"{FIVE} 6 --for 0", "--for"),
    (f"{FIVE} 6 --for inf", "inf s"),
    ("stream --circle 0", "--circle"),
    (f"{CIRCLE} --frame tool", "without --frame"),
    (f"{CIRCLE} --period 1e9", "more than"),
    (f"{CIRCLE} --rate 0", "--rate"),
    ("stream --file no/such.csv", "cannot read no/such.csv"),
    (f"{CIRCLE} --plot x.bmp", ".png"),
    (f"{CIRCLE} --record no/such/x.csv", "no directory"),
    (f"{CIRCLE} --record -", "takes a file"),
]


@pytest.mark.parametrize(("line", "said"), REFUSALS)
def test_bad_input_is_one_line(line, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "poses.csv").write_text(POSES)
    assert said in refusal(*shlex.split(line))
    assert [file.name for file in tmp_path.iterdir()] == ["poses.csv"]
