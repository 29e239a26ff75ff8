"""The robot of a node is what somebody in the domain says: it opens no file, and runs nothing."""

import pytest

pytest.importorskip("rclpy", reason="needs rclpy")

from robots import joint, urdf

from dls_ik.errors import RobotModelError
from dls_ik.model.files import shipped_urdf
from dls_ik.model.load import find_tree
from dls_ik.ros.client.connection import NoAnswerError, ServiceMissingError
from dls_ik.ros.client.robot import ForeignFileError, named_robot, served_robot
from dls_ik.ros.params.robot import RobotParameters

ARM = urdf("a b", joint("j"))
# What xacro lets an expression reach: the class of anything, and from there every other one.
WRITES = (
    '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="a"/><link name="b"/>'
    "<xacro:property name=\"x\" value=\"${{[[c.__init__.__globals__['sys'].modules['os']"
    ".mkdir('{}') for c in ().__class__.__base__.__subclasses__()"
    " if c.__name__ == '_wrap_close'] for _ in (1,)]}}\"/>"
    '<joint name="j${{x}}" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
)


def missing():
    raise ServiceMissingError("there is no service")


@pytest.fixture
def files(tmp_path, monkeypatch):
    """A URDF and a xacro file in a package, and beside all packages."""
    share = tmp_path / "prefix" / "share" / "arm"
    share.mkdir(parents=True)
    for folder in (share, tmp_path):
        (folder / "arm.urdf").write_text(ARM)
        (folder / "arm.xacro").write_text(WRITES.format(tmp_path / "written"))
    monkeypatch.setenv("AMENT_PREFIX_PATH", str(tmp_path / "prefix"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_robots_that_are_installed_are_taken_by_name(files):
    found = named_robot(RobotParameters(robot="wam"))
    assert found.urdf == shipped_urdf("wam")
    assert named_robot(RobotParameters(robot="package://arm/arm.urdf")).robot.joint_names == ("j",)
    assert named_robot(RobotParameters()) is None


@pytest.mark.parametrize(
    "name",
    [
        "arm.urdf",
        "{}/arm.urdf",
        "~/arm.urdf",
        "arm.xacro",
        "{}/arm.xacro",
        "package://arm/arm.xacro",
        "package://arm/ARM.XACRO",
        "package://arm/arm.xacro name:=r",
        "package://arm/arm.urdf name:=r",
        "package://arm/arm.xacro  x:=.urdf",
        "package://arm/../../../arm.urdf",
        "package://../../arm.urdf",
        "/dev/zero",
        "/proc/self/environ",
    ],
)
def test_a_file_that_a_node_names_is_not_opened(files, name):
    with pytest.raises(ForeignFileError, match="files are not opened because a node names them"):
        named_robot(RobotParameters(robot=name.format(files)))
    assert not (files / "written").exists()


def test_a_xacro_file_is_a_program(files):
    """Why one that somebody else names is never expanded."""
    pytest.importorskip("xacro", reason="needs xacro")
    find_tree(str(files / "arm.xacro"))
    assert (files / "written").exists()


def test_a_description_is_text_and_never_the_name_of_a_file(files):
    for text in ("arm.urdf", f"{files}/arm.urdf", "file://arm.urdf"):
        with pytest.raises(RobotModelError, match="a robot description is XML"):
            named_robot(RobotParameters(robot_description=text))
    assert named_robot(RobotParameters(robot_description=ARM)).urdf == ARM


def test_the_topic_counts_where_the_parameters_name_none():
    assert served_robot(RobotParameters, lambda: ARM).robot.joint_names == ("j",)
    assert served_robot(lambda: RobotParameters(robot="wam"), lambda: ARM).robot.n == 7
    assert served_robot(missing, lambda: ARM).urdf == ARM
    with pytest.raises(RobotModelError, match="'nobody'"):
        served_robot(lambda: RobotParameters(tip="nobody"), lambda: ARM)


def test_who_says_nothing_has_no_robot(monkeypatch):
    monkeypatch.setattr("dls_ik.ros.client.robot.DESCRIPTION_TIMEOUT", 0.0)
    with pytest.raises(NoAnswerError, match="no robot yet"):
        served_robot(RobotParameters, lambda: "")
    with pytest.raises(ServiceMissingError):
        served_robot(missing, lambda: "")
