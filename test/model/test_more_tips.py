"""Further tips of a chain: any link that it moves, with an offset."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracle import difference_jacobian, rigid, rotation
from robots import LIMIT, joint, urdf

from dls_ik import IkSolver, RobotModel, Task
from dls_ik.errors import ChainError, JointValueError, RobotModelError
from dls_ik.model import Joint

WAM = RobotModel.wam()
AT = "<origin xyz='0.1 0.2 0.3' rpy='0.3 -0.2 0.5'/>"
HAND = urdf(
    "base arm hand finger tip other",
    joint("j1", "revolute", "base", "arm", AT + LIMIT),
    joint("j2", "revolute", "arm", "hand", AT + LIMIT, "0 1 0"),
    joint("f1", "revolute", "hand", "finger", AT + LIMIT, "1 0 0"),
    joint("f2", "revolute", "finger", "tip", AT + LIMIT + "<mimic joint='j1' multiplier='0.5'/>"),
    joint("o", "revolute", "base", "other", AT + LIMIT),
)
OFFSET = rigid(rotation([1, 2, 3], 0.7), [0.03, -0.1, 0.2])
quick = settings(deadline=None, max_examples=100, derandomize=True)


@quick
@given(st.integers(0, 10**6), st.sampled_from(WAM.tree.links[1:]))
def test_a_further_tip_is_where_its_link_is(seed, link):
    robot = WAM.with_tip(link, OFFSET)
    q = WAM.random(np.random.default_rng(seed))
    poses, J = robot.fk(q), robot.jacobian(q)
    np.testing.assert_array_equal(poses[0], WAM.fk(q))
    np.testing.assert_allclose(poses[1], WAM.link_pose(link, q) @ OFFSET, atol=1e-13)
    expected = difference_jacobian(lambda q: robot.fk(q)[1], q)
    np.testing.assert_allclose(J[6:], expected, atol=1e-7)
    assert robot.joint_names == WAM.joint_names
    assert robot.tips == (WAM.tip, link)
    np.testing.assert_array_equal(robot.offsets, [np.eye(4), OFFSET])


def test_offsets_from_the_start_allow_a_link_twice():
    robot = RobotModel.from_tree(WAM.tree, WAM.base, (WAM.tip, WAM.tip), (None, OFFSET))
    q = np.full(7, 0.4)
    np.testing.assert_allclose(robot.fk(q)[1], WAM.fk(q) @ OFFSET, atol=1e-14)
    one = RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[OFFSET])
    np.testing.assert_allclose(one.fk(q), WAM.fk(q) @ OFFSET, atol=1e-14)
    found = IkSolver(one).solve(one.fk(q), np.zeros(7), 5.0)
    assert found.success
    np.testing.assert_allclose(one.fk(found.q), one.fk(q), atol=5e-6)


def test_joints_off_the_chain_stand_where_they_are():
    arm = RobotModel.from_urdf(HAND, "base", "hand")
    q, others = np.array([0.3, -0.4]), {"f1": 0.8}
    finger = arm.with_tip("finger", OFFSET, others)
    expected = arm.link_pose("finger", q, others) @ OFFSET
    np.testing.assert_allclose(finger.fk(q)[1], expected, atol=1e-14)
    np.testing.assert_allclose(
        arm.with_tip("finger").fk(q)[1], arm.link_pose("finger", q), atol=1e-14
    )
    with pytest.raises(JointValueError):
        arm.with_tip("finger", others={"f9": 0.0})


def test_limits_stay_narrowed():
    narrow = WAM.narrowed(-0.3, 0.4).with_tip("wam_link3")
    np.testing.assert_array_equal(narrow.lower, WAM.narrowed(-0.3, 0.4).lower)
    again = narrow.narrowed(-0.1, 1.0)
    np.testing.assert_array_equal(again.upper, narrow.upper)
    assert again.fk(np.zeros(7)).shape == (2, 4, 4)


def test_what_the_chain_does_not_move_alone_is_refused():
    arm = RobotModel.from_urdf(HAND, "base", "hand")
    with pytest.raises(ChainError, match="no joint of the chain moves it"):
        arm.with_tip("other")
    with pytest.raises(ChainError, match="no joint of the chain moves it"):
        arm.with_tip("base")
    with pytest.raises(ChainError, match="f1"):
        arm.with_tip("tip")
    with pytest.raises(ChainError, match="no chain leads"):
        RobotModel.from_urdf(HAND, "arm", "hand").with_tip("other")
    with pytest.raises(ChainError, match="nowhere"):
        arm.with_tip("nowhere")


@pytest.mark.parametrize("bad", [np.eye(3), 2.0 * np.eye(4), np.full((4, 4), np.nan), "x", 1.0])
def test_an_offset_is_a_rigid_transform(bad):
    with pytest.raises(ChainError, match="offset of tip 'wam_link3'"):
        WAM.with_tip("wam_link3", bad)
    with pytest.raises(ChainError, match="one offset each"):
        RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[None, None])


def test_an_offset_that_is_nearly_rigid_is_made_exact():
    """Else the kinematics of the quick path, which take rotations for exact, are not the arm's."""
    rng = np.random.default_rng(8)
    rough = OFFSET + np.pad(2e-7 * rng.uniform(-1.0, 1.0, (3, 3)), (0, 1))
    robot = RobotModel.from_tree(WAM.tree, tip=WAM.tip, offsets=[rough])
    exact = robot.offsets[0, :3, :3]
    np.testing.assert_allclose(exact @ exact.T, np.eye(3), rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(robot.offsets[0], rough, rtol=0.0, atol=1e-6)
    q = robot.random(rng)
    solver = IkSolver(robot, position_tolerance=1e-10, rotation_tolerance=1e-10)
    found = solver.solve(robot.fk(q), robot.random(rng), 5.0)
    assert found.success
    np.testing.assert_allclose(robot.fk(found.q), robot.fk(q), rtol=0.0, atol=4e-10)


def test_the_origin_of_a_joint_is_rigid_too():
    rough = OFFSET + np.pad(2e-7 * np.ones((3, 3)), (0, 1))
    exact = Joint("j", "fixed", "a", "b", rough).origin[:3, :3]
    np.testing.assert_allclose(exact @ exact.T, np.eye(3), rtol=0.0, atol=1e-15)
    for bad, words in ((1.1 * np.diag([1, 1, 1, 1 / 1.1]), "scaled by 1.1"), (OFFSET.T, "rigid")):
        with pytest.raises(RobotModelError, match=f"'j'.*{words}"):
            Joint("j", "fixed", "a", "b", bad)


def test_an_elbow_in_a_box_and_the_hand_in_its_place():
    robot = WAM.with_tip("wam_link3", OFFSET)
    solver = IkSolver(robot, task=[Task(), Task.box(0.05, 0.1, 0.2)], max_restarts=500)
    rng = np.random.default_rng(2)
    goals = robot.fk(robot.random(rng, 50))
    found = solver.solve_batch(goals, robot.random(rng, 50))
    assert found.success.all()
    reached = robot.fk(found.q)
    np.testing.assert_allclose(reached[:, 0], goals[:, 0], atol=5e-6)
    away = reached[:, 1, :3, 3] - goals[:, 1, :3, 3]
    local = np.einsum("bij,bi->bj", goals[:, 1, :3, :3], away)
    assert (np.abs(local) <= [0.05 + 1e-12, 0.1 + 1e-12, 0.2 + 1e-12]).all()
