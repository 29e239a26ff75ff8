# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""URDF: parsed values, and messages about invalid descriptions and absurd numbers."""

import math

import numpy as np
import pytest
from robots import LIMIT, URDF, joint, urdf

from dls_ik import RobotModel
from dls_ik.core import se3
from dls_ik.core.types import MAX_POSE_COORDINATE
from dls_ik.errors import ChainError, RobotModelError
from dls_ik.model import DhRow, load_urdf
from dls_ik.model.reach import tip_extent

ONE = urdf("a b", joint("j"))
ENDLESS = '<limit effort="1" velocity="1"/>'
NO_LIMITS = [1e7, 1e15, 1e16, 3.4e38, 8e307]  # written for joints without limits


def one_joint(detail=LIMIT, kind="revolute", axis="0 0 1"):
    return urdf("a b", joint("j", kind, detail=detail, axis=axis))


def limit(**values):
    given = {"lower": -1, "upper": 1, "effort": 1, "velocity": 1, **values}
    return "<limit " + " ".join(f'{key}="{value}"' for key, value in given.items()) + "/>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(one_joint(axis="0 0 0"), ["'j'", "zero length"], id="zero axis"),
        pytest.param(one_joint(axis="1e-12 0 0"), ["'j'", "zero length"], id="tiny axis"),
        pytest.param(one_joint(axis="0 nan 1"), ["'j'", "axis", "nan"], id="nan axis"),
        pytest.param(one_joint(axis="1.7e308 1.7e308 1.7e308"), ["'j'", "axis"], id="huge axis"),
        pytest.param(one_joint(axis="0 1"), ["'j'"], id="short axis"),
        pytest.param(one_joint(axis="0 zero 1"), ["'j'", "zero"], id="axis in words"),
        pytest.param(
            one_joint(limit(lower=1, upper=-1)), ["'j'", "-1", "below"], id="crossed limits"
        ),
        pytest.param(
            one_joint(limit(upper="inf")), ["'j'", "inf", "continuous"], id="infinite limit"
        ),
        pytest.param(one_joint(limit(lower="nan")), ["'j'", "nan"], id="nan limit"),
        pytest.param(
            one_joint(limit(velocity=-2)), ["'j'", "velocity", "-2"], id="negative velocity"
        ),
        pytest.param(
            one_joint(limit(velocity="nan")), ["'j'", "velocity", "nan"], id="nan velocity"
        ),
        pytest.param(one_joint(limit(lower="low")), ["'j'", "low"], id="limit in words"),
        pytest.param(one_joint(""), ["'j'", "<limit>"], id="revolute without limit"),
        pytest.param(one_joint("", "prismatic"), ["'j'", "<limit>"], id="prismatic without limit"),
        pytest.param(one_joint(ENDLESS), ["'j'", "lower and upper", "continuous"], id="no ends"),
        pytest.param(
            one_joint(ENDLESS, "prismatic"), ["'j'", "lower and upper"], id="slide, no ends"
        ),
        pytest.param(one_joint(kind="hinge"), ["'j'", "hinge", "revolute"], id="unknown type"),
        pytest.param(one_joint(kind="unknown"), ["'j'", "unknown", "revolute"], id="type unknown"),
        pytest.param(one_joint('<origin xyz="0 inf 0"/>' + LIMIT), ["'j'", "origin"], id="inf xyz"),
        pytest.param(one_joint('<origin rpy="0 inf 0"/>' + LIMIT), ["'j'", "rpy"], id="inf rpy"),
        pytest.param(one_joint('<origin xyz="0 0"/>' + LIMIT), ["'j'"], id="short xyz"),
        pytest.param(
            one_joint('<origin quat_xyzw="0 0 0 1"/>' + LIMIT), ["'j'", "quat"], id="quat"
        ),
        pytest.param(one_joint(LIMIT + LIMIT), ["'j'", "second", "limit"], id="two limits"),
        pytest.param(
            one_joint(LIMIT + '<mimic joint="x"/>'), ["'j'", "'x'"], id="mimic of unknown"
        ),
        pytest.param(
            one_joint(LIMIT + '<mimic joint="j"/>'), ["'j'", "cycle"], id="mimic of itself"
        ),
        pytest.param(one_joint(LIMIT + "<mimic/>"), ["'j'", "joint"], id="mimic of nothing"),
        pytest.param(
            one_joint(LIMIT + '<mimic joint="j" offset="nan"/>'), ["'j'", "finite"], id="nan mimic"
        ),
        pytest.param("", ["neither"], id="empty"),
        pytest.param("robot.urdf", ["robot.urdf", "neither"], id="missing file"),
        pytest.param("\0", ["URDF"], id="nul"),
        pytest.param("x" * 100_000, ["URDF"], id="long name"),
        pytest.param("/dev/zero", ["/dev/zero", "neither"], id="device"),
        pytest.param("<robot name='r'>\n<link name='a'>\n</robot>", ["line 3"], id="not XML"),
        pytest.param("\n\n<robot", ["line 3"], id="cut off"),
        pytest.param("<robot name='r'/>", ["no links"], id="no links"),
        pytest.param("<sdf/>", ["line 1", "<sdf>", "<robot>"], id="other root element"),
        pytest.param("<robot name='r'>\n<link/></robot>", ["line 2", "link"], id="nameless link"),
        pytest.param(urdf("a b c", joint("j")), ["one root link", "a, c"], id="two roots"),
        pytest.param(
            urdf("a b", joint("j"), joint("k", "fixed", "b", "a")),
            ["no root", "cycle", "j", "k"],
            id="cycle of all",
        ),
        pytest.param(
            urdf("r a b", joint("j"), joint("k", "fixed", "b", "a")),
            ["cycle", "j", "k"],
            id="cycle",
        ),
        pytest.param(urdf("r a", joint("j", child="a")), ["cycle", "j"], id="own parent"),
        pytest.param(urdf("a b", joint("j"), joint("k")), ["'k'", "'b'", "'j'"], id="two parents"),
        pytest.param(urdf("a", joint("j")), ["'j'", "'b'", "links: a"], id="unknown child"),
        pytest.param(urdf("b", joint("j")), ["'j'", "'a'", "links: b"], id="unknown parent"),
        pytest.param(urdf("a b b", joint("j")), ["links", "'b'"], id="two links of a name"),
        pytest.param(
            urdf("a b c", joint("j"), joint("j", child="c")), ["joints", "'j'"], id="same name"
        ),
        pytest.param(
            "<robot name='r'><link name='a'/><link name='b'/>\n<joint name='j'/></robot>",
            ["line 2", "type"],
            id="joint without type",
        ),
        pytest.param(
            urdf("a b", '<joint name="j" type="fixed"><parent link="a"/></joint>'),
            ["'j'", "child"],
            id="joint without child",
        ),
    ],
)
def test_invalid_urdf_is_refused(text, words, capfd):
    with pytest.raises(RobotModelError) as caught:
        RobotModel.from_urdf(text)
    assert [word for word in words if word not in str(caught.value)] == []
    assert len(str(caught.value)) < 400
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("source", [None, 3, b"<robot/>", ["<robot/>"]])
def test_load_urdf_accepts_only_text_and_existing_files(source, tmp_path):
    with pytest.raises(RobotModelError, match=type(source).__name__):
        load_urdf(source)
    for path in (tmp_path, tmp_path / "none.urdf"):
        with pytest.raises(RobotModelError, match="neither"):
            load_urdf(path)


def test_file_text_and_path_give_the_same_robot(tmp_path):
    path = tmp_path / "one.urdf"
    path.write_text(ONE)
    trees = [load_urdf(source) for source in (path, str(path), ONE, "\ufeff \n" + ONE)]
    assert {(tree.name, tree.root, tree.links) for tree in trees} == {("test", "a", ("a", "b"))}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_encodings_of_urdf_files_are_read(encoding, tmp_path):
    head = f'<?xml version="1.0" encoding="{encoding}"?>'
    text = head + urdf("a b", joint("k\u00f6rper"))
    path = tmp_path / "coded.urdf"
    path.write_bytes(text.encode(encoding))
    assert load_urdf(path).joints[0].name == "k\u00f6rper"
    assert load_urdf("\n" + text).joints[0].name == "k\u00f6rper"


def test_missing_urdf_elements_get_the_defaults_of_the_format():
    text = ONE.replace('<axis xyz="0 0 1"/>', "").replace(LIMIT, '<limit upper="1"/>')
    (only,) = load_urdf(text).joints
    np.testing.assert_array_equal(only.axis, [1, 0, 0])
    np.testing.assert_array_equal(only.origin, np.eye(4))
    assert (only.lower, only.upper, only.velocity) == (0.0, 1.0, math.inf)


def test_joint_axes_are_normalised():
    np.testing.assert_allclose(load_urdf(one_joint(axis="0 3 -4")).joints[0].axis, [0, 0.6, -0.8])
    assert load_urdf(one_joint(limit(velocity=0))).joints[0].velocity == math.inf
    (only,) = load_urdf(one_joint(kind="continuous")).joints
    assert (only.lower, only.upper, only.velocity) == (-math.inf, math.inf, 1.5)
    assert load_urdf(one_joint(kind="fixed", axis="0 0 0")).joints[0].kind == "fixed"


def test_robots_without_a_name_are_named_after_their_file(tmp_path, caplog):
    nameless = (URDF / "wam7.urdf").read_text().replace('<robot name="wam7">', "<robot>")
    file = tmp_path / "arm.left.urdf"
    file.write_text(nameless)
    assert RobotModel.from_urdf(file).name == "arm"
    assert caplog.text.count("the URDF has no robot name; using 'arm'") == 1
    assert RobotModel.from_urdf(nameless).name == "robot"


def test_joints_without_limits_off_the_chain_are_fixed(caplog):
    wheel = joint("wheel", parent="a", child="w", detail=ENDLESS)
    mimic = joint("spoke", parent="w", child="s", detail='<mimic joint="wheel"/>' + LIMIT)
    robot = RobotModel.from_urdf(urdf("a b w s", joint("j"), wheel, mimic))
    assert (robot.tip, robot.joint_names) == ("b", ("j",))
    assert [name in caplog.text for name in ("wheel", "spoke", "lower and upper")] == [True] * 3
    np.testing.assert_array_equal(robot.link_pose("s", [0.3]), np.eye(4))
    for tip in ("w", "s"):
        with pytest.raises(RobotModelError, match=r"'wheel'.*lower and upper"):
            RobotModel.from_tree(robot.tree, tip=tip)


def test_other_elements_are_dropped_silently(capfd):
    text = ONE.replace(
        "</robot>",
        """<transmission name="t"><joint name="j"/><type>x</type></transmission>
        <ros2_control name="c" type="system"><joint name="j"><state_interface name="p"/></joint>
        </ros2_control><gazebo reference="b"><link name="z"/></gazebo><!-- note -->
        <material name="m"><color rgba="1 0"/></material><link name="c"><visual><geometry><mesh/>
        </geometry></visual></link><joint name="k" type="fixed" unknown="1"><parent link="b"/>
        <child link="c"/><odd/><dynamics damping="x"/></joint></robot>""",
    )
    assert load_urdf(text).links == ("a", "b", "c")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("path", sorted(URDF.glob("*.urdf")), ids=lambda path: path.stem)
def test_shipped_urdfs_are_parsed_silently_and_have_valid_inertias(path, capfd):
    import urdf_parser_py.urdf as library

    robot = library.URDF.from_xml_string(path.read_text().partition("?>")[2])
    assert capfd.readouterr().err == ""
    root = robot.get_root()
    still = {root} | {j.child for j in robot.joints if (j.type, j.parent) == ("fixed", root)}
    assert all(link.inertial for link in robot.links if link.visuals and link.name not in still)
    for link in robot.links:
        if link.inertial:
            principal = np.linalg.eigvalsh(link.inertial.inertia.to_matrix())
            assert 0.0 < principal[2] <= principal[0] + principal[1] + 1e-9
            assert link.inertial.mass > 0.0


def turning(lower, upper, kind="revolute"):
    return RobotModel.from_dh([DhRow(a=0.3, alpha=1.0, kind=kind, lower=lower, upper=upper)] * 7)


@pytest.mark.parametrize("far", [1.1e9, -1e12, 1e160, 1e300])
def test_origins_too_far_away_are_refused(far):
    text = urdf("a b", joint("elbow", detail=f'<origin xyz="0 {far} 0"/>{LIMIT}'))
    with pytest.raises(RobotModelError, match=r"'elbow'.*1e\+09 m"):
        load_urdf(text)
    with pytest.raises(RobotModelError, match=r"1e\+09 m"):
        RobotModel.from_dh([DhRow(a=far, lower=-1.0, upper=1.0)])
    with pytest.raises(ChainError, match=r"within 1e\+09 m"):
        RobotModel.wam().with_tip("wam_link4", np.eye(4) + far * np.eye(4, k=3))
    for multiplier, offset in ((far, 0.0), (1.0, far)):
        mimic = f'<mimic joint="m" multiplier="{multiplier}" offset="{offset}"/>'
        text = urdf("a b c", joint("m"), joint("f", "revolute", "b", "c", LIMIT + mimic))
        with pytest.raises(RobotModelError, match=r"'f'.*within \+-1e\+09"):
            RobotModel.from_urdf(text)


def test_far_and_near_origins_are_accepted():
    for far in (1e9, -1e9, 1e-300, 5e-324):
        robot = RobotModel.from_dh([DhRow(a=far, lower=-1.0, upper=1.0)] * 2)
        assert np.isfinite(robot.fk([0.5, 0.5])).all()
    assert se3.MAX_POSE_COORDINATE == MAX_POSE_COORDINATE  # poses


@pytest.mark.parametrize("far", NO_LIMITS)
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_huge_limits_mean_unlimited(kind, far):
    robot = turning(-far, far, kind)
    lower, upper = robot.finite_limits()
    np.testing.assert_allclose(lower, -np.pi)
    np.testing.assert_allclose(upper, np.pi)
    q = robot.random(100, np.random.default_rng(0))
    assert ((q >= lower) & (q <= upper)).all()
    assert (robot.lower == -far).all()
    if kind == "revolute" and far in (1e16, 8e307):  # how far the tip gets is a number
        extent = tip_extent(robot)
        assert 0.0 <= extent.least <= extent.seen[0] <= extent.seen[1] <= extent.most <= 2.2


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(-1e16, 2.0, (2.0 - 2.0 * np.pi, 2.0)), (0.5, 1e16, (0.5, 0.5 + 2.0 * np.pi)),
     (1e15, 2e15, (1e15, 1e15)), (-9e6, 9e6, (-9e6, 9e6)), (-1.0, -1.0, (-1.0, -1.0))],
)  # fmt: skip
def test_finite_limits_lie_within_the_given_limits(lower, upper, expected):
    low, high = turning(lower, upper).finite_limits()
    np.testing.assert_allclose(low, expected[0])
    np.testing.assert_allclose(high, expected[1])
    assert ((low >= lower) & (high <= upper)).all()
