"""The robot model: arrays, checks of values, and what one may rely on."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from oracle import urdf_pose
from robots import LIMIT, URDF, joint, urdf

from dls_ik.exceptions import ChainError, JointValueError
from dls_ik.model import RobotModel

WAM = RobotModel.from_urdf(URDF / "wam7.urdf")
GRIPPER = urdf(
    "base arm hand left right camera",
    joint("turn", "continuous", "base", "arm", '<origin xyz="0 0 1"/>', "0 1 0"),
    joint("slide", "prismatic", "arm", "hand", LIMIT, "1 0 0"),
    joint("open", "prismatic", "hand", "left", '<limit lower="0.1" upper="0.4"/>', "0 1 0"),
    joint("follow", "prismatic", "hand", "right", '<mimic joint="open" multiplier="-1"/>' + LIMIT),
    joint("mount", "fixed", "base", "camera", '<origin xyz="2 0 0"/>'),
)
HAND = RobotModel.from_urdf(GRIPPER, tip="hand")


def test_batch_equals_loop():
    q = WAM.random(np.random.default_rng(0), 20)
    np.testing.assert_array_equal(WAM.fk(q), [WAM.fk(each) for each in q])
    np.testing.assert_array_equal(WAM.jacobian(q), [WAM.jacobian(each) for each in q])
    assert WAM.fk(q[:0]).shape == (0, 4, 4)
    assert WAM.jacobian(q[:0]).shape == (0, 6, 7)


def test_lists_integers_and_strided_arrays_are_values_too():
    q = np.arange(14.0).reshape(7, 2).T[1]
    expected = WAM.fk(np.ascontiguousarray(q))
    np.testing.assert_array_equal(WAM.fk(q), expected)
    np.testing.assert_array_equal(WAM.fk([int(value) for value in q]), expected)
    q.flags.writeable = False
    np.testing.assert_array_equal(WAM.fk(q), expected)


@pytest.mark.parametrize(
    ("q", "words"),
    [
        (np.zeros(6), ["7", "wam_j1", "wam_j7", "(6,)"]),
        (np.zeros((3, 8)), ["7", "(3, 8)"]),
        (np.zeros((1, 1, 7)), ["(1, 1, 7)"]),
        (0.0, ["7", "()"]),
        ([], ["7", "(0,)"]),
        ([0, 0, np.nan, 0, 0, 0, 0], ["'wam_j3'", "nan"]),
        ([[0] * 7, [0, 0, 0, 0, 0, 0, -np.inf]], ["'wam_j7'", "-inf"]),
        (["up"] * 7, ["numbers", "up"]),
        (None, ["'wam_j1'"]),
        ([[0] * 7, [0] * 6], ["numbers"]),
        ({"wam_j1": 0}, ["numbers"]),
        ([1j] * 7, ["numbers", "complex"]),
        (np.zeros(7, "M8[s]"), ["numbers", "datetime"]),
    ],
)
@pytest.mark.parametrize(
    "use",
    [WAM.fk, WAM.jacobian, WAM.clip, WAM.within_limits, lambda q: WAM.link_pose("wam_tip", q)],
    ids=["fk", "jacobian", "clip", "within_limits", "link_pose"],
)
def test_bad_values_are_refused_with(q, words, use):
    if q is None:
        q = [None] * 7
    with pytest.raises(JointValueError) as caught:
        use(q)
    assert [word for word in words if word not in str(caught.value)] == []


def test_validated_hands_back_a_good_array_itself():
    q = np.zeros(7)
    assert WAM.validated(q) is q
    assert WAM.validated([0] * 7).dtype == np.float64


def test_validated_is_writable_so_that_kernels_see_one_type():
    q = np.zeros(7)
    q.flags.writeable = False
    assert WAM.validated(q).flags.writeable


def test_limits_of_values():
    inside = np.zeros(7)
    beyond = WAM.upper + 1e-3
    np.testing.assert_array_equal(WAM.within_limits([inside, WAM.upper, beyond]), [1, 1, 0])
    assert not WAM.within_limits(WAM.lower - 1e-3)
    assert WAM.within_limits(beyond, tolerance=2e-3)
    np.testing.assert_array_equal(WAM.clip(beyond), WAM.upper)
    np.testing.assert_array_equal(WAM.clip([beyond, inside]), [WAM.upper, inside])


def test_random_fills_the_limits():
    q = HAND.random(np.random.default_rng(0), 2000)
    np.testing.assert_allclose(q.min(axis=0), [-np.pi, -2.0], atol=0.02)
    np.testing.assert_allclose(q.max(axis=0), [np.pi, 2.0], atol=0.02)
    assert HAND.within_limits(q).all()
    assert HAND.random(np.random.default_rng(0)).shape == (2,)
    again = HAND.random(np.random.default_rng(0), 2000)
    np.testing.assert_array_equal(q, again)


def test_attributes():
    assert (HAND.name, HAND.base, HAND.tip, HAND.n) == ("test", "base", "hand", 2)
    assert HAND.joint_names == ("turn", "slide")
    assert HAND.link_names == ("base", "arm", "hand", "left", "right", "camera")
    np.testing.assert_array_equal(HAND.lower, [-np.inf, -2.0])
    np.testing.assert_array_equal(HAND.upper, [np.inf, 2.0])
    np.testing.assert_array_equal(HAND.velocity, [np.inf, 1.5])
    np.testing.assert_array_equal(HAND.continuous, [True, False])


def test_nothing_can_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        WAM.tip = "wam_base"
    with pytest.raises(dataclasses.FrozenInstanceError):
        WAM.tree.root = "wam_tip"
    only = WAM.tree.joints[0]
    for array in (WAM.lower, WAM.upper, WAM.velocity, WAM.continuous, *WAM.chain, only.origin):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert WAM.chain.lower is WAM.lower


def test_arrays_given_to_a_model_stay_the_callers():
    from dls_ik.model import Joint

    origin = np.eye(4)
    given = Joint("j", "continuous", "a", "b", origin)
    origin[0, 3] = 5.0
    assert given.origin[0, 3] == 0.0


@pytest.mark.parametrize("link", HAND.link_names)
def test_link_pose_of_any_link(link):
    values = {"turn": 0.7, "slide": -1.2, "open": 0.3}
    pose = HAND.link_pose(link, [0.7, -1.2], {"open": 0.3})
    np.testing.assert_allclose(pose, urdf_pose(GRIPPER, "base", link, values), atol=1e-12)


def test_link_pose_is_seen_from_the_base():
    robot = RobotModel.from_urdf(GRIPPER, base="arm", tip="hand")
    values = {"turn": 0.4, "slide": 0.5, "open": 0.1}
    pose = robot.link_pose("camera", [0.5], {"turn": 0.4})
    np.testing.assert_allclose(pose, urdf_pose(GRIPPER, "arm", "camera", values), atol=1e-12)


def test_joints_that_are_not_listed_stand_at_zero_or_at_the_limit_next_to_it():
    np.testing.assert_allclose(HAND.link_pose("left", [0, 0])[:3, 3], [0, 0.1, 1])
    np.testing.assert_allclose(HAND.link_pose("right", [0, 0])[:3, 3], [0, 0, 0.9])


def test_values_of_the_chain_win_and_mimics_follow():
    pose = HAND.link_pose("hand", [0.0, 1.0], {"slide": 2.0, "follow": 9.0})
    np.testing.assert_allclose(pose[:3, 3], [1, 0, 1])


def test_link_pose_of_the_tip_is_fk():
    q = WAM.random(np.random.default_rng(5))
    np.testing.assert_allclose(WAM.link_pose("wam_tip", q), WAM.fk(q), atol=1e-12)


def test_bad_link_pose():
    with pytest.raises(ChainError, match=r"'elbow'.*wam_base.*wam_tip"):
        WAM.link_pose("elbow", np.zeros(7))
    with pytest.raises(JointValueError, match=r"'grip'.*turn, slide, open"):
        HAND.link_pose("left", [0, 0], {"grip": 1.0})
    with pytest.raises(JointValueError, match=r"'open'.*nan"):
        HAND.link_pose("left", [0, 0], {"open": np.nan})
    with pytest.raises(JointValueError, match="one configuration"):
        HAND.link_pose("left", [[0, 0]])


def test_import_is_light():
    code = (
        "import sys, dls_ik.model as m; print({'numba', 'urdf_parser_py', 'yaml'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
