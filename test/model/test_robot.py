# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The robot model: arrays, checks of values, narrowed limits, immutability."""

import dataclasses
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import urdf_pose
from robots import LIMIT, TEST_URDF, URDF, joint, urdf

from dls_ik import IkSolver, Pose, RobotModel
from dls_ik.errors import ChainError, DlsIkError, JointValueError, LimitsError, OptionError
from dls_ik.model import Joint

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
TURN = 2.0 * np.pi
WHEEL = RobotModel.from_urdf(
    urdf(
        "a b c d",
        joint("wheel", "continuous", "a", "b", "<origin xyz='0 0 0.3'/>"),
        joint("arm", "revolute", "b", "c", LIMIT, "0 1 0"),
        joint("slide", "prismatic", "c", "d", LIMIT, "1 0 0"),
    )
)
quick = settings(max_examples=100)


def test_batches_equal_loops_and_accept_arrays_of_any_number_type():
    q = WAM.random(20, np.random.default_rng(0))
    np.testing.assert_array_equal(WAM.fk(q), [WAM.fk(each) for each in q])
    np.testing.assert_array_equal(WAM.jacobian(q), [WAM.jacobian(each) for each in q])
    assert WAM.fk(q[:0]).shape == (0, 4, 4)
    assert WAM.jacobian(q[:0]).shape == (0, 6, 7)
    strided = np.arange(14.0).reshape(7, 2).T[1]
    expected = WAM.fk(np.ascontiguousarray(strided))
    np.testing.assert_array_equal(WAM.fk(strided), expected)
    np.testing.assert_array_equal(WAM.fk([int(value) for value in strided]), expected)
    strided.flags.writeable = False
    np.testing.assert_array_equal(WAM.fk(strided), expected)
    zeros = np.zeros(7)
    assert WAM.validated(zeros) is zeros, "copied only if needed"
    assert WAM.validated([0] * 7).dtype == np.float64
    zeros.flags.writeable = False
    assert WAM.validated(zeros).flags.writeable


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
        ({"wam_j1": 0}, ["need every joint", "missing: wam_j2, wam_j3", "wam_j7"]),
        ({"wam_j1": "up", **dict.fromkeys(WAM.joint_names[1:], 0)}, ["numbers", "up"]),
        ({**dict.fromkeys(WAM.joint_names, 0), "wam_j8": 0}, ["'wam_j8'", "did you mean"]),
        ([1j] * 7, ["numbers", "1j"]),
        (np.zeros(7, "M8[s]"), ["numbers", "datetime"]),
    ],
)
@pytest.mark.parametrize(
    "use",
    [WAM.fk, WAM.jacobian, WAM.clip, WAM.within_limits, lambda q: WAM.link_pose("wam_tip", q)],
    ids=["fk", "jacobian", "clip", "within_limits", "link_pose"],
)
def test_invalid_values_are_refused(q, words, use):
    if q is None:
        q = [None] * 7
    with pytest.raises(JointValueError) as caught:
        use(q)
    assert [word for word in words if word not in str(caught.value)] == []


def test_within_limits_and_clip_handle_values_beyond_the_limits():
    inside = np.zeros(7)
    beyond = WAM.upper + 1e-3
    np.testing.assert_array_equal(WAM.within_limits([inside, WAM.upper, beyond]), [1, 1, 0])
    assert not WAM.within_limits(WAM.lower - 1e-3)
    assert WAM.within_limits(beyond, tolerance=2e-3)
    np.testing.assert_array_equal(WAM.clip(beyond), WAM.upper)
    np.testing.assert_array_equal(WAM.clip([beyond, inside]), [WAM.upper, inside])


def test_random_values_cover_the_limits():
    q = HAND.random(2000, np.random.default_rng(0))
    np.testing.assert_allclose(q.min(axis=0), [-np.pi, -2.0], atol=0.02)
    np.testing.assert_allclose(q.max(axis=0), [np.pi, 2.0], atol=0.02)
    assert HAND.within_limits(q).all()
    assert HAND.random(rng=np.random.default_rng(0)).shape == (2,)
    again = HAND.random(2000, np.random.default_rng(0))
    np.testing.assert_array_equal(q, again)


def test_random_takes_a_size_and_a_seed():
    drawn = WAM.random(10, rng=3)
    assert drawn.shape == (10, 7)
    for again in (WAM.random(10, 3), WAM.random(10, np.random.default_rng(3))):
        np.testing.assert_array_equal(again, drawn)
    assert (WAM.random(10) != WAM.random(10)).all(), "others at each call"
    for bad in ((-1,), (2.5,), (True,), (3, -1), (3, "seed")):
        with pytest.raises(OptionError, match=r"integer|Generator"):
            WAM.random(*bad)


def test_equal_robots_have_equal_hashes_in_other_processes():
    again = RobotModel.from_urdf(URDF / "wam7.urdf")
    others = [
        WAM.narrowed(-1.0, 1.0),
        RobotModel.from_urdf(URDF / "wam7.urdf", tip="wam_link4"),
        RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[Pose((0.0, 0.0, 0.1))]),
        RobotModel.from_urdf((URDF / "wam7.urdf").read_text().replace("0.045", "0.046")),
        RobotModel.from_urdf((URDF / "wam7.urdf").read_text().replace("wam_tip", "tip")),
    ]
    assert again is not WAM
    assert again == WAM
    assert again.narrowed(-1.0, 1.0) == others[0]
    assert len({WAM, again, *others}) == 1 + len(others)
    assert WAM != "wam"
    assert hash(WAM) == hash(again)  # now kept in the object, and pickled with it
    code = "import pickle, sys; from dls_ik import RobotModel; "
    code += "assert pickle.load(sys.stdin.buffer) in {RobotModel.wam()}"
    command = [sys.executable, "-c", code]
    subprocess.run(command, input=pickle.dumps(WAM), check=True, timeout=60)


def test_joint_values_by_name_are_accepted_in_any_order():
    q = WAM.random(5, rng=0)
    named = dict(zip(WAM.joint_names[::-1], q.T[::-1], strict=True))
    np.testing.assert_array_equal(WAM.fk(named), WAM.fk(q))
    np.testing.assert_array_equal(WAM.jacobian(WAM.named(q[0])), WAM.jacobian(q[0]))
    with_gripper = {"open": 0.3, "slide": 0.1, "turn": 0.2, "follow": 9.0}
    np.testing.assert_array_equal(HAND.fk(with_gripper), HAND.fk([0.2, 0.1]))
    narrow = WAM.narrowed({"wam_j2": -0.5}, {"wam_j4": 1.0})
    assert (narrow.lower != WAM.lower).tolist() == [0, 1, 0, 0, 0, 0, 0]
    assert (narrow.upper != WAM.upper).tolist() == [0, 0, 0, 1, 0, 0, 0]
    with pytest.raises(LimitsError, match=r"'wam_j9'.*did you mean"):
        WAM.narrowed({"wam_j9": 0.0}, 1.0)


def test_attributes_match_the_urdf():
    assert (HAND.name, HAND.base, HAND.tip, HAND.n) == ("test", "base", "hand", 2)
    assert HAND.joint_names == ("turn", "slide")
    assert HAND.link_names == ("base", "arm", "hand", "left", "right", "camera")
    np.testing.assert_array_equal(HAND.lower, [-np.inf, -2.0])
    np.testing.assert_array_equal(HAND.upper, [np.inf, 2.0])
    np.testing.assert_array_equal(HAND.velocity, [np.inf, 1.5])
    np.testing.assert_array_equal(HAND.continuous, [True, False])


def test_robots_are_immutable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        WAM.tip = "wam_base"
    with pytest.raises(dataclasses.FrozenInstanceError):
        WAM.tree.root = "wam_tip"
    only = WAM.tree.joints[0]
    for array in (WAM.lower, WAM.upper, WAM.velocity, WAM.continuous, *WAM.chain, only.origin):
        with pytest.raises(ValueError, match="read-only"):
            array[...] = 0
    assert WAM.chain.lower is WAM.lower
    origin = np.eye(4)
    given = Joint("j", "continuous", "a", "b", origin)
    origin[0, 3] = 5.0  # the caller's
    assert given.origin[0, 3] == 0.0


@pytest.mark.parametrize("link", HAND.link_names)
def test_link_poses_are_in_the_base_frame(link):
    values = {"turn": 0.7, "slide": -1.2, "open": 0.3}
    pose = HAND.link_pose(link, [0.7, -1.2], {"open": 0.3})
    np.testing.assert_allclose(pose, urdf_pose(GRIPPER, "base", link, values), atol=1e-12)
    other = RobotModel.from_urdf(GRIPPER, base="arm", tip="hand")
    pose = other.link_pose(link, [-1.2], {"turn": 0.7, "open": 0.3})
    np.testing.assert_allclose(pose, urdf_pose(GRIPPER, "arm", link, values), atol=1e-12)


def test_link_poses_of_a_batch_are_those_of_its_rows():
    q = WAM.random(3, 7)
    poses = WAM.link_pose("wam_link4", q)
    np.testing.assert_array_equal(poses, [WAM.link_pose("wam_link4", each) for each in q])
    assert WAM.link_pose("wam_link4", q[:0]).shape == (0, 4, 4)


def test_joints_off_the_chain_are_at_the_value_closest_to_zero():
    pose = HAND.link_pose("hand", [0.0, 1.0], {"slide": 2.0, "follow": 9.0})
    np.testing.assert_allclose(pose[:3, 3], [1, 0, 1])
    np.testing.assert_allclose(HAND.link_pose("left", [0, 0])[:3, 3], [0, 0.1, 1])
    np.testing.assert_allclose(HAND.link_pose("right", [0, 0])[:3, 3], [0, 0, 0.9])


def test_invalid_link_poses_are_refused():
    with pytest.raises(ChainError, match=r"'elbow'.*wam_base.*wam_tip"):
        WAM.link_pose("elbow", np.zeros(7))
    with pytest.raises(JointValueError, match=r"'grip'.*turn, slide, open"):
        HAND.link_pose("left", [0, 0], {"grip": 1.0})
    with pytest.raises(JointValueError, match=r"'open'.*nan"):
        HAND.link_pose("left", [0, 0], {"open": np.nan})
    with pytest.raises(JointValueError, match="shape"):
        HAND.link_pose("left", [[0, 0, 0]])


def test_the_import_loads_no_heavy_modules():
    code = (
        "import sys, dls_ik.model as m; print({'numba', 'urdf_parser_py', 'yaml'} & {*sys.modules})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


def test_limits_are_intersected_with_intervals():
    lower, upper = np.full(7, -np.inf), np.full(7, np.inf)
    lower[1], upper[3] = 0.2, 1.0
    robot = WAM.narrowed(lower, upper)
    np.testing.assert_array_equal(robot.lower, np.maximum(WAM.lower, lower))
    np.testing.assert_array_equal(robot.upper, np.minimum(WAM.upper, upper))
    assert robot.joint_names == WAM.joint_names
    q = np.full(7, 0.3)
    np.testing.assert_array_equal(robot.fk(q), WAM.fk(q))
    assert robot.whole is WAM
    assert robot.narrowed(-1.0, 1.0).whole is WAM
    assert not robot.lower.flags.writeable


def test_empty_intersections_are_reported_with_joint_and_intervals():
    with pytest.raises(LimitsError, match=r"'arm'.*\[-2.0, 2.0\].*\[2.5, 3.0\]"):
        WHEEL.narrowed([-np.inf, 2.5, -np.inf], [np.inf, 3.0, np.inf])
    with pytest.raises(LimitsError, match="'wheel'"):
        WHEEL.narrowed([0.0, -9, -9], [0.5, 9, 9]).narrowed([1.0, -9, -9], [1.5, 9, 9])
    with pytest.raises(LimitsError, match="'arm'"):
        WHEEL.narrowed(-9.0, [9.0, -10.0, 9.0])


@pytest.mark.parametrize("bad", ["low", np.nan, [1.0, 2.0], None, np.inf, [[0.0] * 3] * 2])
def test_invalid_intervals_are_refused(bad):
    with pytest.raises(LimitsError, match="wheel"):
        WHEEL.narrowed(bad, np.inf)
    with pytest.raises(JointValueError):
        WHEEL.narrowed(-1.0, 1.0, near=[0.0])
    for batch in (np.zeros((0, 3)), np.zeros((2, 3))):
        with pytest.raises(JointValueError, match="one configuration"):
            WHEEL.narrowed(-1.0, 1.0, near=batch)


def test_large_angles_are_refused_and_whole_turns_ignored():
    for far in (1.0000001e9, 1e16, 1.7976931348623157e308):
        with pytest.raises(LimitsError, match=r"'wheel'.*too coarse"):
            WHEEL.narrowed([far, -1.0, -1.0], [far, 1.0, 1.0])
    for lower, upper in ((-1e308, 1e308), (-np.pi, np.pi), (1.0, 9.0), (-np.inf, 0.0)):
        robot = WHEEL.narrowed([lower, -9, -9], [upper, 9, 9])
        assert robot.continuous[0]
        assert np.isinf(robot.lower[0])


@quick
@given(st.floats(-20.0, 20.0), st.floats(0.0, 3.1), st.floats(-20.0, 20.0))
def test_intervals_of_angles_are_modulo_two_pi(middle, reach, near):
    bounds = np.array([reach, np.inf, np.inf])
    center = np.array([middle, 0.0, 0.0])
    robot = WHEEL.narrowed(center - bounds, center + bounds, near=[near, 0.0, 0.0])
    moved = 0.5 * (robot.lower[0] + robot.upper[0])
    assert abs(moved - near) <= np.pi + 1e-9
    assert np.cos(moved - middle) == pytest.approx(1.0, abs=1e-9)
    assert robot.upper[0] - robot.lower[0] == pytest.approx(2.0 * reach, abs=1e-9)
    assert not robot.continuous[0]


@quick
@given(st.floats(-9.0, 9.0), st.floats(0.1, 3.0), st.floats(-9.0, 9.0), st.floats(0.1, 3.0))
def test_two_intervals_of_an_angle_are_intersected(first, a, second, b):
    """The intersection is within both intervals, and is found unless empty."""
    apart = abs((first - second + np.pi) % TURN - np.pi)
    ends = [np.array([x, -9.0, -9.0]) for x in (first - a, second - b)]
    tops = [np.array([x, 9.0, 9.0]) for x in (first + a, second + b)]
    once = WHEEL.narrowed(ends[0], tops[0])
    if apart > a + b + 1e-9:
        with pytest.raises(LimitsError):
            once.narrowed(ends[1], tops[1])
    elif apart < a + b - 1e-9:
        both = once.narrowed(ends[1], tops[1])
        for angle in np.linspace(both.lower[0], both.upper[0], 5):
            for middle, reach in ((first, a), (second, b)):
                assert abs((angle - middle + np.pi) % TURN - np.pi) <= reach + 1e-9


@settings(max_examples=30)
@given(st.integers(0, 10**6), st.floats(0.01, 0.5))
def test_answers_are_within_narrowed_limits(seed, reach):
    """Solutions from any seed are within narrowed limits, and reachable poses are solved."""
    rng = np.random.default_rng(seed)
    q = WAM.random(rng=rng)
    middle = q + rng.uniform(-reach, reach, 7)
    robot = WAM.narrowed(middle - reach, middle + reach)
    found = IkSolver(robot, max_restarts=500, random_seed=1).solve(
        WAM.fk(q), WAM.random(rng=rng), 10.0
    )
    assert found.success
    assert (np.abs(found.q - middle) <= reach + 1e-15).all()
    assert WAM.within_limits(found.q)
    np.testing.assert_allclose(WAM.fk(found.q), WAM.fk(q), atol=5e-6)


def test_limits_of_zero_width_are_valid_and_far_poses_unreachable():
    narrow = WHEEL.narrowed(0.0, -0.0)
    assert not narrow.random(3, np.random.default_rng(0)).any()
    assert len(IkSolver(narrow).solve_all(narrow.fk(np.zeros(3)), 2)) == 1
    far = WAM.fk(np.full(7, 0.3))
    far[:3, 3] += 5.0
    found = IkSolver(WAM.narrowed(-0.5, 0.9)).solve(far)
    assert found.status.name == "UNREACHABLE"


def test_manipulability_is_the_product_of_the_singular_values():
    robot = RobotModel.wam()
    q = robot.random(5, rng=3)
    J = robot.jacobian(q)
    found = robot.manipulability(q)
    np.testing.assert_allclose(found, np.sqrt(np.linalg.det(J @ J.transpose(0, 2, 1))))
    assert robot.manipulability(q[0]) == pytest.approx(found[0])
    planar = RobotModel.from_name("planar_2r")
    assert planar.manipulability([0.3, 0.0]) > 0.5  # the rotation still moves
    assert planar.manipulability([0.3, 0.0], position_only=True) == pytest.approx(0.0, abs=1e-12)
    assert planar.manipulability([0.3, 0.7], position_only=True) == pytest.approx(np.sin(0.7))


@pytest.mark.parametrize("tips", [1, 2])
def test_tip_frame_jacobian_is_the_rotated_base_frame_jacobian(tips):
    robot = RobotModel.wam() if tips == 1 else RobotModel.wam().with_tip("wam_link4")
    q = robot.random(rng=1)
    base, tip = robot.jacobian(q), robot.jacobian(q, frame="tip")
    for k, T in enumerate(robot.fk(q).reshape(-1, 4, 4)):
        for rows in (slice(6 * k, 6 * k + 3), slice(6 * k + 3, 6 * k + 6)):
            np.testing.assert_allclose(T[:3, :3] @ tip[rows], base[rows], atol=1e-14)
    np.testing.assert_array_equal(robot.jacobian(q[None], frame="tip")[0], tip)
    np.testing.assert_array_equal(robot.jacobian(q, frame="base"), base)
    with pytest.raises(OptionError, match="base or tip"):
        robot.jacobian(q, frame="world")


def test_locked_joint_is_fixed_and_no_longer_a_variable():
    robot = RobotModel.wam()
    locked = robot.locked({"wam_j3": 0.5})
    assert locked.joint_names == tuple(name for name in robot.joint_names if name != "wam_j3")
    q = robot.random(4, rng=2)
    q[:, 2] = 0.5
    np.testing.assert_allclose(locked.fk(np.delete(q, 2, 1)), robot.fk(q), atol=1e-14)
    J = np.delete(robot.jacobian(q), 2, 2)
    np.testing.assert_allclose(locked.jacobian(np.delete(q, 2, 1)), J, atol=1e-14)
    narrow = robot.narrowed(-0.9, 0.9).locked({"wam_j3": 0.5})
    np.testing.assert_array_equal(narrow.upper, np.delete(robot.narrowed(-0.9, 0.9).upper, 2))
    result = IkSolver(locked, timeout=5.0).solve(locked.fk(locked.random(rng=3)))
    assert result.success
    with pytest.raises(JointValueError, match=r"did you mean wam_j3\?"):
        robot.locked({"wam_j33": 0.5})
    with pytest.raises(JointValueError, match=r"from -2\.8 to 2\.8"):
        robot.locked({"wam_j3": 9.0})


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (
            [1.0],
            r"mapping of names to positions, such as \{'wam_j1': 0\.0\}; got \[1\.0\]",
        ),
        ({"wam_j3": "up"}, r"locked from -2\.8 to 2\.8 \[rad\]; got 'up'"),
        (dict.fromkeys(WAM.joint_names, 0.0), "leave at least one joint free"),
    ],
)
def test_joints_that_cannot_be_locked(values, said):
    with pytest.raises(DlsIkError, match=said):
        WAM.locked(values)


def test_followers_of_a_locked_joint_are_locked():
    text = (TEST_URDF.parent.parent / "urdf" / "planar_2r.urdf").read_text()
    text = text.replace(
        '<joint name="joint2" type="revolute">',
        '<joint name="joint2" type="revolute"><mimic joint="joint1" multiplier="0.5"/>',
    )
    robot = RobotModel.from_urdf(text)
    assert robot.joint_names == ("joint1",)
    tree = robot.tree.locked({"joint1": 0.4})
    np.testing.assert_allclose(tree.pose("tip", {}), robot.tree.pose("tip", {"joint1": 0.4}))


def test_random_warns_about_the_former_argument_order():
    robot, rng = RobotModel.wam(), np.random.default_rng(4)
    expected = robot.random(3, np.random.default_rng(4))
    with pytest.warns(DeprecationWarning, match=r"use robot\.random\(size, rng\)"):
        np.testing.assert_array_equal(robot.random(rng, 3), expected)
