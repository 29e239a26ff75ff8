"""Any tree: the chain's arrays and the tree's own kinematics against the oracle."""

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from oracle import difference_jacobian, urdf_pose
from robots import random_robots

from dls_ik.exceptions import ChainError
from dls_ik.model import RobotModel, load_urdf

quick = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


def chain_of(drawn, base, tip):
    """The robot and the values of its variables; discards chains that cannot move."""
    try:
        robot = RobotModel.from_urdf(drawn.text, base, tip)
    except ChainError:
        assume(False)
    return robot, np.array([drawn.values[name] for name in robot.joint_names])


def frozen(drawn, tip):
    """Whether all joints above a link follow others with the multiplier 0."""
    tree = load_urdf(drawn.text)
    path = [joint for joint in tree.path("l0", tip) if joint.is_driven]
    return all(tree.drives[joint.name].multiplier == 0.0 for joint in path)


@quick
@given(random_robots(), st.data())
def test_fk_and_jacobian(drawn, data):
    tip = data.draw(st.integers(1, len(drawn.links) - 1))
    above = [0, *drawn.above(tip)]
    base = f"l{data.draw(st.sampled_from(above))}"
    robot, q = chain_of(drawn, base, f"l{tip}")
    expected = urdf_pose(drawn.text, base, f"l{tip}", drawn.values)
    np.testing.assert_allclose(robot.fk(q), expected, atol=1e-11)
    differences = difference_jacobian(robot.fk, q)
    scale = 1.0 + np.abs(differences).max()
    np.testing.assert_allclose(robot.jacobian(q), differences, atol=1e-7 * scale)


@quick
@given(random_robots())
def test_pose_of_every_link(drawn):
    tree = load_urdf(drawn.text)
    for link in drawn.links:
        expected = urdf_pose(drawn.text, "l0", link, drawn.values)
        np.testing.assert_allclose(tree.pose(link, drawn.values), expected, atol=1e-11)


@quick
@given(random_robots(), st.data())
def test_link_pose_off_the_chain(drawn, data):
    robot, q = chain_of(drawn, None, drawn.links[-1])
    link = data.draw(st.sampled_from(drawn.links))
    others = {k: v for k, v in drawn.values.items() if k not in robot.joint_names}
    expected = urdf_pose(drawn.text, "l0", link, drawn.values)
    np.testing.assert_allclose(robot.link_pose(link, q, others), expected, atol=1e-11)


@quick
@given(random_robots(), st.data())
def test_rigidly_attached_links(drawn, data):
    a, b = (data.draw(st.sampled_from(range(len(drawn.links)))) for _ in range(2))
    between = set(drawn.above(a)) ^ set(drawn.above(b))
    rigid = all(drawn.kinds[i - 1] == "fixed" for i in between)
    offset = load_urdf(drawn.text).fixed_offset(f"l{a}", f"l{b}")
    assert (offset is not None) == rigid
    if rigid:
        expected = urdf_pose(drawn.text, f"l{a}", f"l{b}", drawn.values)
        np.testing.assert_allclose(offset, expected, atol=1e-11)


@quick
@given(random_robots())
def test_only_tip_is_found_or_candidates_are_listed(drawn):
    inner = {f"l{i}" for i in drawn.parents}
    moving = [x for i, x in enumerate(drawn.links) if x not in inner and drawn.moves(i)]
    if len(moving) == 1 and not frozen(drawn, moving[0]):
        assert RobotModel.from_urdf(drawn.text).tip == moving[0]
        return
    with pytest.raises(ChainError) as caught:
        RobotModel.from_urdf(drawn.text)
    assert all(link in str(caught.value) for link in moving)


@quick
@given(random_robots())
def test_within_the_limits_no_element_is_beyond_its_own(drawn):
    robot, _ = chain_of(drawn, None, drawn.links[-1])
    path = robot.tree.path(robot.base, robot.tip)
    for q in robot.random(np.random.default_rng(0), 20):
        values = robot.tree.values(dict(zip(robot.joint_names, q, strict=True)))
        for joint in path:
            if joint.is_driven and robot.tree.drives[joint.name].multiplier:
                assert joint.lower - 1e-9 <= values[joint.name] <= joint.upper + 1e-9
    fastest = np.abs(robot.chain.scale) * robot.velocity[robot.chain.variable]
    assert (fastest <= 1.0 + 1e-9).all()
