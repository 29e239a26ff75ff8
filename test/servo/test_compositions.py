# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""All that a running node allows, interleaved: limits, distances and states hold all the same."""

import re

import numpy as np
import pytest

pytest.importorskip("coal", reason="distances are those of coal")
pytest.importorskip("rclpy", reason="the cycles are those of the node")

from geometry_msgs.msg import PoseStamped

from benchmarks.composition_events import EVENTS, LIVE, OF_JOINTS, draw_settings, draw_start
from benchmarks.composition_judges import (
    Figures,
    brakes_from,
    judge,
    pair_keys,
    paths_between,
)
from benchmarks.composition_motion import judge_points, motion_excess, tip_speeds
from benchmarks.composition_stream import ARMS, Stream, Surrounding, arm_model, close_node
from benchmarks.composition_wire import Row, Wire, stop_positions
from benchmarks.compositions import report, run
from benchmarks.exact_distances import link_poses, link_tree
from dls_ik.ros.frames import pose_from_matrix
from dls_ik.ros.params import DECLARED
from dls_ik.ros.servo.monitor import CycleReport
from dls_ik.servo import ServoState
from dls_ik.servo.limiter import stop_within

CAMPAIGN = 3  # number of runs of 1000 cycles for each arm

pytestmark = [pytest.mark.usefixtures("own_plugins"), pytest.mark.xdist_group("compositions")]


@pytest.fixture(autouse=True, scope="module")
def node_of_the_campaign():
    """Close the node that the campaign keeps."""
    yield
    close_node()


def failures(seed, name, count):
    """Runs in which a judge found a violation: of a limit, of a distance, or a false fault."""
    outcomes = [run((seed, number, name, ())) for number in range(count)]
    return [outcome for outcome in outcomes if outcome.figures.findings]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ARMS))
def test_a_thousand_cycles_keep_all_limits_and_distances(name):
    found = failures(1, name, 1)
    assert not found, report(found, 1, name)


@pytest.mark.campaign
@pytest.mark.parametrize("name", sorted(ARMS))
def test_many_cycles_keep_all_limits_and_distances(name):
    found = failures(2, name, CAMPAIGN)
    assert not found, report(found, 2, name)


def test_composition_events_change_every_live_parameter():
    live = {name for name, field in DECLARED.items() if not field.metadata.get("read_only")}
    # The arms of the compositions have one tip, for which a relative pose is refused.
    assert live == {*LIVE, *OF_JOINTS, "relative_pose"}


# The judges


@pytest.mark.parametrize("name", sorted(ARMS))
def test_kinematics_of_the_checker_equal_those_of_the_robot(name):
    robot, values = arm_model(name).robot, draw_start(name, np.random.default_rng(0), 0.0)[1]
    tree = link_tree(robot.tree.description.urdf)
    q = robot.random(20, np.random.default_rng(1))
    poses = np.empty((len(q), 3, 4))
    link = tree.links.index(robot.tip)
    link_poses(tree.for_joints(robot.joint_names, values), q, link, poses)
    np.testing.assert_allclose(poses, robot.fk(q)[:, :3], atol=1e-12)


def test_pairs_not_reported_as_near_keep_the_threshold_distance():
    rng, opened = np.random.default_rng(0), 0
    for name in ARMS:
        chosen = draw_settings(rng, name)
        stream = Stream(chosen, *draw_start(name, rng, 0.01), 0)
        for _ in range(5):
            EVENTS["appear"].act(stream, rng)
        world = stream.around.world()
        q = np.atleast_2d(stream.model.robot.random(20, rng))
        found = set(world.near(q, np.full(len(world.pairs), 0.05)))
        opened += len(found)
        for row in range(len(q)):
            for pair in range(len(world.pairs)):
                assert (row, pair) in found or world.distance(q[row], pair) >= 0.05
    assert opened > 100


def test_motion_checker_detects_each_exceeded_limit():
    dt, n = np.full(60, 0.01), 60
    lower, upper, fastest = np.full((n, 1), -1.0), np.full((n, 1), 1.0), np.full((n, 1), 1.0)
    t = 0.01 * np.arange(1, n + 1)[:, None]
    q, rests = 0.5 * 2.0 * t * t, np.arange(n) == 0
    start = np.zeros_like(q)
    args = (dt, start, rests, (lower, upper, fastest))
    v = motion_excess(q, *args, (2.0, np.inf, 0.0))[:, 1:3].max(axis=0)
    assert v == pytest.approx([1.19, 1.0], rel=1e-6)
    assert motion_excess(q, *args, (1.0, np.inf, 0.0))[:, 2].max() == pytest.approx(2.0)
    assert motion_excess(5.0 * q, *args, (10.0, np.inf, 0.0))[:, 0].max() > 0.01
    jerky = motion_excess(t**3, *args, (9.0, 3.0, 0.0))[:, 3]
    assert jerky[3:].max() == pytest.approx(2.0, rel=1e-6)


def test_point_checker_interpolates_like_joint_trajectory_controller():
    offsets = np.array([[0.1, 0.2]] * 2)
    q, v = np.array([[[0.0], [0.1]]] * 2), np.zeros((2, 2, 1))
    ratio = judge_points(np.array([0.0, 0.1]), offsets, q, v, np.zeros((2, 0, 1)), 1.0, 1.0)
    assert ratio[0] == pytest.approx([1.5, 60.0])  # 3/2 d/h and 6 d/h^2 of a cubic at rest
    quintic = judge_points(np.array([0.0, 0.1]), offsets, q, v, np.zeros((2, 2, 1)), 1.0, 1.0)
    assert quintic[0] == pytest.approx([1.875, 57.7], rel=0.03)


def streamed(name="ur", **settings):
    """A stream that goes to a configuration, its settings drawn and then changed."""
    rng = np.random.default_rng(0)
    chosen = draw_settings(rng, name)._replace(**settings)
    q, values = draw_start(name, rng, 0.01)
    stream = Stream(chosen, q, values, 0)
    T = stream.robot.fk(stream.robot.clip(q + 0.3))
    stream.message = PoseStamped(pose=pose_from_matrix(T))
    return stream


def figures_of(stream):
    """What the judges say of a stream."""
    figures = Figures()
    judge(stream.wire, stream.truths, figures)
    return figures


def test_trajectory_points_are_checked_at_their_exact_times():
    given = {"rate": 500.0, "acceleration": 5.0, "jerk": 0.0, "feedback_mode": "none"}
    stream = streamed(output_types=("joint_trajectory",), trajectory_points=10, **given)
    for k in range(300):
        stream.step(0.9985 if k % 2 else 1.0, 0.0, False)
    figures = figures_of(stream)
    assert stream.wire.now.messages
    assert not figures.findings
    assert figures.ratios["acceleration between points"] == pytest.approx(1.0, abs=0.01)


def test_checker_accepts_a_measured_start_only_after_a_deviation():
    stream = streamed(feedback_mode="auto", noise=0.0, output_types=("position_array",))
    for _ in range(5):
        stream.step(1.0, 0.0, False)
    q, stop, period = stream.q, stream.controller.stop_path(stream.period), stream.period
    still = np.zeros_like(q)
    for offset in (1e-3, 2e-2):
        for elapsed in (0.0, 0.1 * period):
            wire, start = Wire(stream.settings), q + offset
            wire.chapter(stream.model, stream.around.world(), q)
            wire.command(1, q, still, period, 0.0, False, start, stop)
            wire.command(2, start, still, period, elapsed, False, start, stop)
            assert wire.now.rows[-1].is_measured is (offset > 0.01)


def test_checker_accepts_a_measured_start_after_a_push():
    stream = streamed(feedback_mode="auto", noise=0.0, output_types=("position_array",))
    q, stop, period = stream.q, stream.controller.stop_path(stream.period), stream.period
    for push in (0.0, 1e-3):
        wire, still = Wire(stream.settings), np.zeros_like(q)
        wire.chapter(stream.model, stream.around.world(), q)
        wire.command(1, q, still, period, 0.0, False, q, stop)
        wire.silence(q + push)
        wire.command(3, q + push, still, period, 0.0, False, q + push, stop)
        assert wire.now.rows[-1].is_measured is (push > 0.0)


def test_checker_changes_keys_of_pairs_moved_by_another_arm():
    stream = Stream(
        draw_settings(np.random.default_rng(0), "two_arms"),
        *draw_start("two_arms", np.random.default_rng(0), 0.01),
        0,
    )
    before = stream.around.world()
    around = stream.around
    around.values = {name: value + 0.01 for name, value in around.values.items()}
    after = around.world()
    for pair, (old, new) in enumerate(zip(pair_keys(before), pair_keys(after), strict=True)):
        names = before.name(pair)
        is_moved = any(re.fullmatch(r"right_wam_link[1-7]", name) for name in names)
        assert (old != new) == is_moved


def a_stop():
    """The stop of a joint that passes zero."""
    limits = np.array([-9.0]), np.array([9.0]), np.array([2.0]), np.array([20.0])
    return stop_within(np.array([0.0]), np.array([1.0]), np.array([0.5]), limits)[0]


def test_tip_checker_follows_stops_and_otherwise_straight_lines():
    stop, times = a_stop(), np.array([0.05, 0.1])
    on_stop = stop_positions(stop, times)
    given = [(stop.q, 0.1, stop), (on_stop[0], 0.05, None), (on_stop[1], 0.05, stop)]
    rows = [Row(k, q, dt, None, False, path, 0) for k, (q, dt, path) in enumerate(given)]
    expected = stop_positions(stop, np.linspace(0.0, 0.1, 9))
    paths = paths_between(rows)
    np.testing.assert_allclose(
        paths[1:, :, 0].ravel(), expected[[0, 1, 2, 3, 4, 4, 5, 6, 7, 8], 0], atol=1e-12
    )
    elsewhere = [*rows[:2], rows[2]._replace(q=on_stop[1] + 1e-3)]
    line = np.linspace(on_stop[0, 0], on_stop[1, 0] + 1e-3, 5)
    np.testing.assert_allclose(paths_between(elsewhere)[2, :, 0], line, atol=1e-12)


def test_tip_checker_finds_the_stop_in_flight_at_a_stricter_limit():
    stop, n = a_stop(), 7
    q = stop_positions(stop, 0.02 * np.arange(n))
    rows = [Row(k, q[k], 0.02, None, False, stop.after(0.02 * k), 0) for k in range(n)]
    speeds = np.array([[2.0], [2.0], [1.0], [1.0], [1.5], [1.0], [1.0]])
    assert brakes_from(rows, speeds).tolist() == [False, False, *[True] * 5]
    assert not brakes_from(rows, np.full((n, 1), np.inf)).any()
    elsewhere = [*rows[:3], rows[3]._replace(q=q[3] + 1e-6), *rows[4:]]
    assert np.flatnonzero(brakes_from(elsewhere, speeds)).tolist() == [2, 5, 6]
    at_rest = [*rows[:3], rows[3]._replace(start=q[2]), *rows[4:]]
    assert np.flatnonzero(brakes_from(at_rest, speeds)).tolist() == [2, 5, 6]


def test_tip_checker_allows_an_excess_only_on_the_stop_in_flight():
    """Joints that stop one after the other can turn the tip faster before they are at rest."""
    model = arm_model("ur")
    kinematics = Surrounding(model, {}).world().kinematics
    speed, n, h = np.array([1.5, 0.5, 1.5, 0.9, 1.2]), len(model.robot.joint_names), 0.01
    ends = np.cumsum(np.append(0.0, h * speed))
    paths = np.zeros((len(speed), 3, n))
    paths[:, :, 0] = np.linspace(ends[:-1], ends[1:], 3, axis=1)
    limits = np.column_stack([np.full(5, np.inf), [2.0, 1.0, 1.0, 1.0, 1.0]])
    brakes = np.array([False, True, True, False, False])
    link, dt = model.links[model.robot.tip], np.full(5, h)
    ratio, allowed = tip_speeds(kinematics, link, paths, dt, limits, brakes)
    assert allowed[:, 1].tolist() == [2.0, 2.0, 2.0, 1.0, 1.0]
    assert ratio == pytest.approx([0.75, 0.25, 0.75, 0.9, 1.2], rel=1e-6)


def test_fault_checker_knows_the_scene_before_all_changes_of_a_cycle():
    stream = streamed()
    first, second, third = (stream.around.world() for _ in range(3))
    wire, report = Wire(stream.settings), CycleReport(ServoState.PAUSED, "paused")
    wire.chapter(stream.model, first, stream.q)
    wire.state(report, 1)
    wire.scene(second)
    wire.scene(third)
    fault = CycleReport(ServoState.FAULT, "a contact cannot be avoided")
    wire.state(fault, 2)
    wire.state(report, 3)
    wire.state(fault, 4)
    assert [each.worlds for each in wire.now.faults] == [(third, first), (third, None)]


def test_stop_positions_of_the_checker_equal_the_stop_path():
    stop = a_stop()
    times = np.linspace(0.0, stop.duration, 30)
    np.testing.assert_allclose(stop_positions(stop, times), stop.at(times)[0], atol=1e-12)
