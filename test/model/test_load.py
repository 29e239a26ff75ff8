# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Robots by name, file and package path, and data files, in the source tree and installed."""

import os
import subprocess
import sys

import pytest

from dls_ik.errors import RobotModelError
from dls_ik.model import RobotModel, files
from dls_ik.model.dh import load_dh
from dls_ik.model.files import share_file, shipped_names, shipped_urdf
from dls_ik.model.load import find_tree, find_urdf, robot_file

pytestmark = pytest.mark.installed

XACRO = """<robot name="two" xmlns:xacro="http://www.ros.org/wiki/xacro">
  <xacro:property name="length" value="0.5"/>
  <link name="a"/><link name="b"/>
  <joint name="j" type="continuous">
    <origin xyz="${2 * length} 0 0"/><parent link="a"/><child link="b"/>
  </joint>
</robot>"""


@pytest.mark.parametrize("name", shipped_names())
def test_names_and_files_give_the_same_robot(name, monkeypatch):
    for variable in ("AMENT_PREFIX_PATH", "ROS_PACKAGE_PATH"):  # an installation comes first
        monkeypatch.delenv(variable, raising=False)
    assert robot_file(name) == shipped_urdf(name)
    assert robot_file(str(shipped_urdf(name))) == shipped_urdf(name)
    assert robot_file(f"package://dls_ik/urdf/{shipped_urdf(name).name}") == shipped_urdf(name)
    assert RobotModel.from_name(name).n == {"wam": 7, "planar_2r": 2, "puma560": 6}[name]
    with pytest.raises(RobotModelError, match=r"'kuka'.*wam, planar_2r, puma560"):
        RobotModel.from_name("kuka")


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """Create one package in an ament prefix and one in ROS_PACKAGE_PATH."""
    for folder in ("install/share/new_arm", "src/old_arm"):
        (tmp_path / folder / "urdf").mkdir(parents=True)
        (tmp_path / folder / "package.xml").touch()
        (tmp_path / folder / "urdf" / "arm.urdf").write_text(shipped_urdf("wam").read_text())
    monkeypatch.setenv("AMENT_PREFIX_PATH", f"/nowhere:{tmp_path / 'install'}")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "src"))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "folder"), [("new_arm", "install/share/new_arm"), ("old_arm", "src/old_arm")]
)
def test_package_urls_are_found_in_both_ros_path_variables(packages, name, folder, monkeypatch):
    address = f"package://{name}/urdf/arm.urdf"
    assert robot_file(address) == packages / folder / "urdf" / "arm.urdf"
    assert find_tree(address).name == "wam7"
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(packages / folder))  # may be the package itself
    assert robot_file(address) == packages / folder / "urdf" / "arm.urdf"


MISSING = [
    ("wan", "did you mean wam?"),
    ("~nobody-there/x.urdf", "there is no file '~nobody-there/x.urdf'"),
    ("~nobody-there", "~nobody-there"),
    ("puma", "puma560"),
    ("", "wam, "),
    ("no/such.urdf", "no file 'no/such.urdf'"),
    ("such.xacro", "no file"),
    ("package://old_arn/urdf/arm.urdf", "did you mean old_arm?"),
    ("package://new_arn/urdf/arm.urdf", "AMENT_PREFIX_PATH"),
    ("package://old_arm/urdf/leg.urdf", "no file 'urdf/leg.urdf'"),
    ("package://dls_ik/urdf/leg.urdf", "urdf/leg.urdf"),
    ("package://old_arm", "package://NAME/PATH"),
    ("x\0y", "unknown robot"),
    ("{}/src/old_arm/urdf/arn.urdf", "did you mean arm.urdf"),
]


def test_missing_files_are_reported_with_suggestions(packages):
    for given, said in MISSING:
        with pytest.raises(RobotModelError) as caught:
            robot_file(given.format(packages))
        assert said in str(caught.value)
        assert "\n" not in str(caught.value)


def test_xacro_files_are_expanded_with_arguments(tmp_path):
    pytest.importorskip("xacro", reason="needs xacro")
    path = tmp_path / "an arm.urdf.xacro"
    path.write_text(XACRO)
    assert find_tree(str(path)).joint["j"].origin[0, 3] == 1.0
    path.write_text(XACRO.replace("length}", "breadth}"))
    with pytest.raises(RobotModelError, match="xacro cannot expand"):
        find_tree(str(path))
    declared = '<xacro:arg name="reach" default="1"/><xacro:arg name="title" default=""/>'
    used = XACRO.replace("${2 * length}", "$(arg reach)")
    path.write_text(used.replace('<link name="a"/>', f'{declared}<link name="a"/>'))
    assert find_tree(str(path)).joint["j"].origin[0, 3] == 1.0
    assert find_tree(f"{path} reach:=2.5 title:='my arm'").joint["j"].origin[0, 3] == 2.5
    assert "2.5" in find_urdf(f"{path} reach:=2.5")
    for given, said in [
        (f"{path} raech:=2.5", "has no argument 'raech'; valid arguments: reach, title"),
        ("wam reach:=2.5", r"need a xacro file; got"),
        (f"{path} title:=my arm", r"NAME:=VALUE, with quotes .* got 'arm'"),
    ]:
        with pytest.raises(RobotModelError, match=said):
            find_tree(given)
    path.write_text(used)
    with pytest.raises(RobotModelError, match=r"an arm\.urdf\.xacro NAME:="):
        find_tree(str(path))


def test_a_missing_xacro_is_reported_with_the_package(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "xacro", None)
    path = tmp_path / "two.urdf.xacro"
    path.write_text(XACRO)
    with pytest.raises(RobotModelError, match="pip install xacro"):
        find_tree(str(path))


def test_from_urdf_expands_xacro_files_with_mappings(tmp_path):
    pytest.importorskip("xacro", reason="needs xacro")
    path = tmp_path / "arm.urdf.xacro"
    declared = '<xacro:arg name="reach" default="1"/><link name="a"/>'
    used = XACRO.replace("${2 * length}", "$(arg reach)").replace('<link name="a"/>', declared)
    path.write_text(used)
    robot = RobotModel.from_urdf(path, mappings={"reach": 2.5})
    assert robot.fk([0.0])[0, 3] == 2.5
    assert RobotModel.from_urdf(str(path)).fk([0.0])[0, 3] == 1.0
    with pytest.raises(RobotModelError, match=r"raech.*reach"):
        RobotModel.from_urdf(path, mappings={"raech": 2.5})
    for other in (shipped_urdf("wam"), shipped_urdf("wam").read_text(), tmp_path / "no.xacro"):
        with pytest.raises(RobotModelError, match="need a file"):
            RobotModel.from_urdf(other, mappings={"reach": 2.5})


def test_xacro_finds_packages_outside_the_ros_index(tmp_path):
    pytest.importorskip("xacro", reason="needs xacro")
    for folder, name in (("arm_checkout", "arm_description"), ("grippers", "grippers")):
        (tmp_path / folder / "urdf").mkdir(parents=True)
        (tmp_path / folder / "package.xml").write_text(f"<package><name>{name}</name></package>")
    included = '<xacro:include filename="$(find {})/urdf/{}"/>'
    top = XACRO[: XACRO.index("<xacro:property")]
    for folder, file, included_file in (
        ("arm_checkout", "arm.xacro", included.format("arm_description", "links.xacro")),
        ("arm_checkout", "links.xacro", included.format("grippers", "hand.xacro")),
    ):
        (tmp_path / folder / "urdf" / file).write_text(f"{top}{included_file}</robot>")
    (tmp_path / "grippers/urdf/hand.xacro").write_text(XACRO)
    path = tmp_path / "arm_checkout/urdf/arm.xacro"
    assert RobotModel.from_urdf(path).joint_names == ("j",)
    path.write_text(f"{top}{included.format('nowhere', 'x.xacro')}</robot>")
    with pytest.raises(RobotModelError, match="package 'nowhere'"):
        RobotModel.from_urdf(path)


@pytest.fixture
def so_arm101(tmp_path, monkeypatch):
    """Create a clone that robot_descriptions accepts without network access."""
    pytest.importorskip("robot_descriptions", reason="needs robot_descriptions")
    clone = tmp_path / "new"
    (clone / "Simulation/SO101").mkdir(parents=True)
    text = shipped_urdf("wam").read_text().replace('name="wam7"', 'name="so101"')
    (clone / "Simulation/SO101/so101_new_calib.urdf").write_text(text)
    git = ["git", "-C", str(clone), "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "arm"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True)
    commit = head.stdout.strip()
    (tmp_path / f"SO-ARM100-{commit}").mkdir()
    clone.rename(tmp_path / f"SO-ARM100-{commit}" / "SO-ARM100")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path))
    monkeypatch.setenv("ROBOT_DESCRIPTION_COMMIT", commit)
    monkeypatch.delitem(sys.modules, "robot_descriptions.so_arm101_description", raising=False)
    return "so_arm101_description"


def test_from_description_loads_robot_descriptions_modules(so_arm101, monkeypatch, capsys):
    robot = RobotModel.from_description(so_arm101, tip="wam_link4")
    assert (robot.name, robot.n) == ("so101", 4)
    assert find_tree(so_arm101) == robot.tree
    assert find_urdf(so_arm101).name == "so101_new_calib.urdf"
    assert capsys.readouterr().out == ""
    for name, mappings, said in [
        (so_arm101, {"x": 1}, "has no arguments; omit the argument 'x'"),
        ("so_arm_101_description", None, "did you mean .*so_arm101_description"),
    ]:
        with pytest.raises(RobotModelError, match=said):
            RobotModel.from_description(name, mappings=mappings)
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(RobotModelError, match=r"pip install 'dls-ik\[descriptions\]'"):
        RobotModel.from_description(so_arm101)


def test_names_of_robots_in_robot_descriptions(so_arm101, monkeypatch):
    for name in ("so_arm101", "so-arm101", so_arm101):
        assert RobotModel.from_name(name, tip="wam_link4").name == "so101"
        assert find_tree(name).name == "so101"
        assert find_urdf(name).name == "so101_new_calib.urdf"
    with pytest.raises(RobotModelError, match=r"'so_arm_101'.*did you mean .*so_arm101"):
        RobotModel.from_name("so_arm_101")
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(RobotModelError, match=r"pip install 'dls-ik\[descriptions\]' .*or example"):
        RobotModel.from_name("so_arm101")


@pytest.fixture
def example_data(tmp_path, monkeypatch):
    """Install a distribution with the files of two robots, as example-robot-data has them."""
    (tmp_path / "example_robot_data-6.0.0.dist-info").mkdir()
    text = "Metadata-Version: 2.1\nName: example-robot-data\nVersion: 6.0.0\n"
    (tmp_path / "example_robot_data-6.0.0.dist-info" / "METADATA").write_text(text)
    robots = tmp_path / "cmeel.prefix/share/example-robot-data/robots"
    for file in ("panda_description/urdf/panda.urdf", "ur_description/urdf/ur5_robot.urdf"):
        (robots / file).parent.mkdir(parents=True)
        (robots / file).write_text(shipped_urdf("wam").read_text())
    monkeypatch.syspath_prepend(tmp_path)
    return robots


def test_names_of_robots_in_example_robot_data(example_data, monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    assert RobotModel.from_name("panda").n == 7
    assert RobotModel.from_name("ur5", tip="wam_link4").n == 4
    assert find_urdf("ur5") == example_data / "ur_description/urdf/ur5_robot.urdf"
    said = r"'ur5e' \(did you mean ur5\?\).* 3 robots .*pip install 'dls-ik\[descriptions\]' [^:]*$"
    with pytest.raises(RobotModelError, match=said):
        RobotModel.from_name("ur5e")


def test_files_are_preferred_to_robots_of_libraries(example_data, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "panda").write_text(shipped_urdf("planar_2r").read_text())
    assert find_tree("panda").name == "planar_2r"


def test_a_failed_clone_is_reported_in_one_line(tmp_path, monkeypatch):
    pytest.importorskip("robot_descriptions", reason="needs robot_descriptions")
    monkeypatch.setenv("ROBOT_DESCRIPTIONS_CACHE", str(tmp_path / "file" / "no"))
    (tmp_path / "file").touch()
    monkeypatch.delitem(sys.modules, "robot_descriptions.so_arm101_description", raising=False)
    with pytest.raises(RobotModelError, match=r"cannot clone so_arm101_desc\w+: .+") as caught:
        RobotModel.from_description("so_arm101_description")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["arm.urdf", "arm.xacro", "arm.yaml"])
@pytest.mark.parametrize("load", [find_tree, RobotModel.from_urdf, load_dh])
def test_named_pipes_are_refused_without_waiting(tmp_path, name, load):
    os.mkfifo(tmp_path / name)
    with pytest.raises(RobotModelError, match=name):
        load(str(tmp_path / name))


def test_data_files_of_the_source_tree_precede_the_installed(tmp_path, monkeypatch):
    for file in ("package.xml", "urdf/x.urdf", "share/dls_ik/urdf/x.urdf"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.setattr(files, "PACKAGE_FOLDER", tmp_path / "dls_ik")
    assert share_file("urdf", "x.urdf") == tmp_path / "urdf/x.urdf"
    (tmp_path / "package.xml").unlink()
    for above in (".", "lib/python3.11/site-packages", "local/lib/python3"):
        monkeypatch.setattr(files, "PACKAGE_FOLDER", (tmp_path / above / "dls_ik").resolve())
        assert share_file("urdf", "x.urdf") == tmp_path / "share/dls_ik/urdf/x.urdf"
    with pytest.raises(RobotModelError, match=rf"urdf/none.*{tmp_path}/share/dls_ik/urdf/none"):
        share_file("urdf", "none")
