"""Numbers that are finite and absurd: refused where lengths would be lost, windows where not."""

import numpy as np
import pytest
from robots import LIMIT, joint, urdf

from dls_ik import RobotModel
from dls_ik.core import se3
from dls_ik.exceptions import ChainError, RobotModelError
from dls_ik.model import DhRow, load_urdf
from dls_ik.model.joint import FARTHEST
from dls_ik.model.reach.bounds import tip_extent

NO_LIMITS = [1e7, 1e15, 1e16, 3.4e38, 8e307]  # what descriptions say of joints without any


def test_it_is_as_far_as_a_pose_may_be():
    assert se3.FARTHEST == FARTHEST


def turning(lower, upper, kind="revolute"):
    return RobotModel.from_dh([DhRow(a=0.3, alpha=1.0, kind=kind, lower=lower, upper=upper)] * 7)


@pytest.mark.parametrize("far", [1.1e9, -1e12, 1e160, 1e300])
def test_an_origin_too_far_away_is_refused(far):
    text = urdf("a b", joint("elbow", detail=f'<origin xyz="0 {far} 0"/>{LIMIT}'))
    with pytest.raises(RobotModelError, match=r"'elbow'.*1e\+09 m"):
        load_urdf(text)
    with pytest.raises(RobotModelError, match=r"1e\+09 m"):
        RobotModel.from_dh([DhRow(a=far, lower=-1.0, upper=1.0)])


@pytest.mark.parametrize("far", [1e9, -1e9, 1e-300, 5e-324])
def test_an_origin_that_is_not_too_far_is_none_of_our_business(far):
    robot = RobotModel.from_dh([DhRow(a=far, lower=-1.0, upper=1.0)] * 2)
    assert np.isfinite(robot.fk([0.5, 0.5])).all()


@pytest.mark.parametrize("far", [1e10, -1e200, 1.7e308])
def test_a_tip_too_far_away_is_refused(far):
    with pytest.raises(ChainError, match=r"within 1e\+09 m"):
        RobotModel.wam().with_tip("wam_link4", np.eye(4) + far * np.eye(4, k=3))


@pytest.mark.parametrize(("multiplier", "offset"), [(1e10, 0.0), (1e300, 0.0), (1.0, -1e10)])
def test_a_follower_that_goes_too_far_is_refused(multiplier, offset):
    mimic = f'<mimic joint="m" multiplier="{multiplier}" offset="{offset}"/>'
    text = urdf("a b c", joint("m"), joint("f", "revolute", "b", "c", LIMIT + mimic))
    with pytest.raises(RobotModelError, match=r"'f'.*beyond 1e\+09"):
        RobotModel.from_urdf(text)


@pytest.mark.parametrize("far", NO_LIMITS)
@pytest.mark.parametrize("kind", ["revolute", "prismatic"])
def test_limits_that_are_none_leave_a_range_of_a_turn(kind, far):
    robot = turning(-far, far, kind)
    lower, upper = robot.finite_limits()
    np.testing.assert_allclose(lower, -np.pi)
    np.testing.assert_allclose(upper, np.pi)
    q = robot.random(np.random.default_rng(0), 100)
    assert ((q >= lower) & (q <= upper)).all()
    assert (robot.lower == -far).all()


@pytest.mark.parametrize(
    ("lower", "upper", "expected"),
    [(-1e16, 2.0, (2.0 - 2.0 * np.pi, 2.0)), (0.5, 1e16, (0.5, 0.5 + 2.0 * np.pi)),
     (1e15, 2e15, (1e15, 1e15)), (-9e6, 9e6, (-9e6, 9e6)), (-1.0, -1.0, (-1.0, -1.0))],
)  # fmt: skip
def test_the_range_lies_within_the_limits(lower, upper, expected):
    low, high = turning(lower, upper).finite_limits()
    np.testing.assert_allclose(low, expected[0])
    np.testing.assert_allclose(high, expected[1])
    assert ((low >= lower) & (high <= upper)).all()


@pytest.mark.parametrize("far", NO_LIMITS)
def test_how_far_the_tip_gets_is_a_number(far):
    extent = tip_extent(turning(-far, far))
    assert 0.0 <= extent.least <= extent.seen[0] <= extent.seen[1] <= extent.most <= 2.2
