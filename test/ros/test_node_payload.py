"""Messages of megabytes: refused or served in bounded time, and others are served meanwhile."""

import pytest
from geometry_msgs.msg import PoseArray
from moveit_msgs.msg import JointConstraint
from moveit_msgs.srv import GetPositionIK
from ros_client import READY
from ros_streamer import HOME
from ros_wam import WAM, stamped
from ros_watched import Watched, shifted, trajectory, twist

from dls_ik.ros.servo.targets import MOST_POSES

pytestmark = [pytest.mark.ros, pytest.mark.slow]
INVALID_GOAL_CONSTRAINTS = -16
MOST_MEMORY = 200.0  # [MiB] more than before


@pytest.fixture(scope="module")
def arm():
    with Watched("payload", feedback_mode="none") as arm:
        yield arm
        assert "Traceback" not in arm.node.output, arm.node.output
        assert arm.node.end() == 0


def test_a_trajectory_that_is_too_long_is_refused_unread_and_the_longest_is_followed(arm):
    before = arm.node.figures.rss
    poses = trajectory([shifted()]).poses * (10 * MOST_POSES)
    arm.send(twist((0.0, 0.05, 0.0)))
    arm.send(PoseArray(poses=poses))
    words = ("not valid", f"at most {MOST_POSES} poses", f"about {10 * MOST_POSES}")
    arm.says(*words, within=READY)
    arm.stands()
    assert arm.node.figures.rss < before + MOST_MEMORY
    poses = trajectory([shifted(0.0, 0.05, 0.0)]).poses * MOST_POSES
    arm.send_alone(PoseArray(poses=poses))
    arm.client.spin_until(
        lambda: arm.error(shifted(0.0, 0.05, 0.0)) < 1e-4, READY, "its first pose"
    )
    arm.goes(WAM.fk(HOME))
    arm.assert_calm()


def test_a_request_with_ten_thousand_constraints_is_refused_and_others_are_served(arm):
    many = GetPositionIK.Request()
    many.ik_request.pose_stamped = stamped()
    many.ik_request.timeout.sec = 60
    constraint = JointConstraint(joint_name="wam_j1", tolerance_above=1.0, tolerance_below=1.0)
    many.ik_request.constraints.joint_constraints = [constraint] * 10_000
    one = GetPositionIK.Request()
    one.ik_request.pose_stamped = stamped()
    one.ik_request.timeout.sec = 60
    before = arm.node.figures.rss
    asker = arm.client.node.create_client(GetPositionIK, "compute_ik")
    arm.client.spin_until(asker.service_is_ready, READY, "the service")
    refused, served = [], []
    for _ in range(3):
        refused.append(asker.call_async(many))
        served.append(asker.call_async(one))
    arm.client.spin_until(lambda: all(f.done() for f in refused + served), READY, "all answers")
    for answer in refused:
        assert answer.result().error_code.val == INVALID_GOAL_CONSTRAINTS
        assert "not 0 and 10000" in answer.result().error_code.message
    assert all(answer.result().error_code.val == 1 for answer in served)
    assert arm.node.figures.rss < before + MOST_MEMORY
    arm.assert_calm()
