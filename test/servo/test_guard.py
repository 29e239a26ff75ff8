# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A stream among obstacles: distances, speeds and messages."""

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("coal", reason="distances are compared with those of coal")

from benchmarks.avoidance import ARMS, MIN_DISTANCE, arm, clearance, run, slide, wall
from dls_ik import PlanningScene, RobotModel
from dls_ik.errors import OptionError, SceneError
from dls_ik.model.rotations import transform
from dls_ik.scene.shapes import Body, Sphere
from dls_ik.servo import Controller, ServoState
from dls_ik.servo.guard import Guard
from dls_ik.servo.limiter import stop_within
from dls_ik.servo.scene_state import SceneState
from dls_ik.servo.workspace import BoxBound, HalfSpace, SphereBound, guarded_pairs

DT = 0.005
ROUNDING = 1e-6  # [m]
SEEDS = st.integers(0, 2**32 - 1)
q0 = np.array([0.0, 0.6, 0.0, 1.6, 0.0, 0.4, 0.0])


@cache
def wam():
    return arm("wam7")


def with_box(*size, at):
    robot, alone = wam()
    scene = alone.copy()
    scene.add_box("box", size, transform(None, np.array(at, float)))
    return robot, scene


def controller(robot, scene=None, q=q0, **options):
    made = Controller(
        robot, scene=scene, **{"when_stuck": "hold", "acceleration": 5.0, "jerk": np.inf} | options
    )
    made.seed(q)
    return made


def cycles(made, count, start=0, dt=DT):
    for i in range(start, start + count):
        yield made.cycle((i + 1) * dt, dt)


@pytest.mark.parametrize("name", ARMS)
@settings(max_examples=3)
@given(seed=SEEDS)
def test_random_streams_keep_distance_and_limits(name, seed):
    found = run((name, seed, 300))
    assert found.least >= MIN_DISTANCE - ROUNDING
    assert found.excess <= 1e-6


@pytest.mark.parametrize(("name", "seed"), [("wam7", 276), ("two_wams", 91)])
def test_repeated_stops_do_not_reduce_the_distance(name, seed):
    # The smallest distances were once 3.7 and 1.5 mm.
    assert run((name, seed, 1500)).least >= MIN_DISTANCE - ROUNDING


@pytest.mark.parametrize(("rate", "jerk"), [(100.0, np.inf), (500.0, np.inf), (500.0, 100.0)])
def test_motion_toward_a_wall_stops_at_min_distance(rate, jerk):
    _, _, fastest, least, kept = wall(rate, jerk)
    assert fastest > 0.45
    assert -1e3 * ROUNDING <= least <= kept <= 1.0  # [mm]


def test_target_below_a_table_is_followed_smoothly_along_it():
    _, _, error, turns, turns_without, least = slide(0.1, True)
    assert error < 0.2  # [mm]
    assert turns <= turns_without
    assert 1e3 * MIN_DISTANCE <= least <= 1e3 * MIN_DISTANCE + 2.0


def test_cached_distances_give_the_same_step():
    robot, scene = with_box(0.1, 1.0, 1.0, at=(0.76, 0.0, 0.26))
    T = robot.fk(q0)
    T[:3, 3] += [0.1, 0.05, 0.0]
    steps = []
    for is_seen in (True, False):
        made = controller(robot, scene)
        local_ik, near = made._tracker.local_ik, made._tracker.guard.near
        assert near.watched[1].tolist() == q0.tolist()
        if not is_seen:
            near.watched[1].fill(np.nan)
            near.watched[2].fill(-1)
        local_ik.near = near
        steps.append((*local_ik.advance(T[None], DT).q, *near.known[0][near.known[0] < 0.1]))
    assert local_ik.limiting_pair >= 0
    assert steps[0] == steps[1]


@settings(max_examples=25)
@given(SEEDS)
def test_certified_step_and_stop_keep_all_distances(seed):
    rng = np.random.default_rng(seed)
    robot, scene = with_box(*rng.uniform(0.05, 0.6, 3), at=rng.uniform(-0.8, 0.8, 3))
    pairs = guarded_pairs(robot, scene.snapshot, (), MIN_DISTANCE)
    state, q = SceneState(pairs, robot.n), robot.random(rng=rng)
    state.restart(q, 0.1)
    v, a = rng.normal(0.0, 0.7, robot.n), rng.normal(0.0, 1.0, robot.n)
    limits = robot.lower, robot.upper, np.full(robot.n, 5.0), np.full(robot.n, 50.0)
    stop, _ = stop_within(q + 0.01 * v, v, a, limits)
    k = state.failing(q, stop)
    path = [*np.linspace(q, stop.q, 4), *stop.at(np.linspace(0.0, stop.duration, 40))[0]]
    found = [state.distances(each, 0.1) for each in path]
    kept = np.array(found).min(axis=0) >= np.minimum(MIN_DISTANCE, found[0]) - 3e-7
    kept |= ~pairs.leverage[0].any(axis=1)
    assert kept.all() or k >= 0  # a certified stop keeps all distances
    if (np.array(found).min(axis=0) > MIN_DISTANCE + 1e-4)[pairs.leverage[0].any(axis=1)].all():
        assert k < 0  # a stop with clear distances is certified


def test_certificate_covers_curved_paths():
    robot = RobotModel.from_urdf(
        """<robot name="bar"><link name="base"/><link name="bar"/><link name="ball"/>
        <joint name="turn" type="revolute"><parent link="base"/><child link="bar"/>
        <axis xyz="0 0 1"/><limit lower="-1" upper="1" velocity="9" effort="1"/></joint>
        <joint name="slide" type="prismatic"><parent link="bar"/><child link="ball"/>
        <axis xyz="1 0 0"/><limit lower="-0.05" upper="0.05" velocity="9" effort="1"/></joint>
        </robot>"""
    )
    scene = PlanningScene(robot, bodies={"ball": Body("ball", ((Sphere(0.01), np.eye(4)),))})
    scene.add_plane("floor", normal=(0.0, 1.0, 0.0), offset=-0.03)
    q, end = np.array([-0.15, -0.05]), np.array([0.15, 0.05])  # the ball moves down and up again
    least = clearance(scene, 0.5 * (q + end))
    assert min(clearance(scene, q), clearance(scene, end)) > least + 0.007
    state = SceneState(guarded_pairs(robot, scene.snapshot, (), least + 0.002), robot.n)
    state.restart(q, 0.1)
    rest = stop_within(end, 0.0 * q, 0.0 * q, (robot.lower, robot.upper, q + 9.0, q + 9.0))[0]
    assert state.failing(q, rest) >= 0
    state.least -= 0.003
    assert state.failing(q, rest) < 0


def test_start_below_min_distance_comes_no_closer():
    robot, scene = with_box(0.1, 1.0, 1.0, at=(0.7412, 0.0, 0.26))
    start = clearance(scene, q0)
    assert 0.0 < start < MIN_DISTANCE
    inward, outward = robot.fk(q0), robot.fk(q0)
    inward[0, 3] += 0.1
    outward[0, 3] -= 0.1
    made = controller(robot, scene)
    made.follow_pose(inward, 0.0)
    for out in cycles(made, 100):
        assert clearance(scene, out.q) >= start - ROUNDING
    assert out.state in (ServoState.BLOCKED, ServoState.NEAR_COLLISION)
    assert "'box' and 'wam_link7'" in out.message
    made.follow_pose(outward, 100 * DT)
    *_, out = cycles(made, 300, 100)
    assert out.state is ServoState.REACHED
    assert clearance(scene, out.q) > 0.05


def test_two_overlapping_links_leave_both_obstacles():
    robot, alone = wam()
    scene = alone.copy()
    elbow, wrist = (robot.link_pose(f"wam_link{i}", q0)[:3, 3] for i in (4, 7))
    scene.add_box("side", [0.3, 0.1, 0.3], transform(None, elbow + np.array([0.0, 0.06, 0.0])))
    scene.add_box("below", [0.3, 0.3, 0.1], transform(None, wrist - np.array([0.0, 0.0, 0.1])))
    start = clearance(scene, q0)
    assert start < -0.05
    T = robot.fk(q0)
    T[:3, 3] += [0.05, 0.1, -0.1]
    made = controller(robot, scene)
    made.follow_pose(T, 0.0)
    for i, out in enumerate(cycles(made, 800)):
        assert i % 20 or clearance(scene, out.q) >= start - ROUNDING
    assert clearance(scene, out.q) >= MIN_DISTANCE - ROUNDING


def test_new_obstacle_stops_the_arm_in_front_of_it():
    robot, scene = with_box(0.1, 0.1, 0.1, at=(0.0, 0.0, -0.9))
    made = controller(robot, scene, np.array([0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0]), acceleration=8.0)
    T = robot.fk(made.command)
    T[0, 3] += 0.3
    made.follow_pose(T, 0.0)
    *_, out = cycles(made, 40)
    assert robot.fk(out.q)[0, 3] < 0.6
    scene.add_box("wall", [0.1, 2.0, 2.0], transform(translation=np.array([0.7, 0.0, 0.3])))
    for out in cycles(made, 300, 40):
        assert clearance(scene, out.q) >= MIN_DISTANCE - ROUNDING
    assert out.state is ServoState.BLOCKED
    scene.remove("wall")
    *_, out = cycles(made, 400, 340)
    assert out.state is ServoState.REACHED


@pytest.mark.parametrize("jerk", [np.inf, 50.0])
def test_motion_continues_after_roll_back_to_earlier_command(jerk):
    robot, scene = with_box(0.1, 0.1, 0.1, at=(0.0, 0.0, -0.9))
    made = controller(robot, scene, np.array([0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0]), jerk=jerk)
    T = robot.fk(made.command)
    T[0, 3] += 0.3
    made.follow_pose(T, 0.0)
    list(cycles(made, 40))
    stop = made.stop_path(DT)
    list(cycles(made, 3, 40))
    made.go_back(stop)
    np.testing.assert_array_equal(made.command, stop.q)
    scene.add_box("wall", [0.1, 2.0, 2.0], transform(translation=np.array([0.7, 0.0, 0.3])))
    made.resume_at(2.0 * DT, DT)
    np.testing.assert_allclose(made.command, stop.at(np.array([2.0 * DT]))[0][0], atol=1e-12)
    for out in cycles(made, 300, 43):
        assert clearance(scene, out.q) >= MIN_DISTANCE - ROUNDING
    assert clearance(scene, out.q) < MIN_DISTANCE + 5e-3


def test_unavoidable_contact_is_a_fault_with_its_pair():
    robot, scene = with_box(0.1, 0.1, 0.1, at=(0.0, 0.0, -0.9))
    made = controller(robot, scene, np.array([0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0]))
    made.follow_twist([0.6, 0.0, 0.0, 0.0, 0.0, 0.0], 0.0, R=np.eye(3))
    *_, out = cycles(made, 45)
    speed = np.abs(out.velocity).max()
    x = robot.fk(out.q)[0, 3]
    scene.add_box("wall", [0.1, 2.0, 2.0], transform(translation=np.array([x + 0.055, 0.0, 0.3])))
    before = out.velocity
    for out in cycles(made, 200, 45):
        assert (np.abs(out.velocity - before) <= 5.0 * DT * (1.0 + 1e-6)).all()
        before = out.velocity
    assert speed > 0.5
    assert out.state is ServoState.FAULT
    assert "a contact cannot be avoided: 'wall' and 'wam_link" in out.message


def test_take_over_in_motion_keeps_the_distance():
    robot, scene = with_box(0.1, 2.0, 2.0, at=(0.85, 0.0, 0.3))
    q = np.array([0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0])
    old, new = controller(robot, None, q), controller(robot, scene, q)
    T = robot.fk(q)
    T[0, 3] += 0.6
    old.follow_pose(T, 0.0)
    *_, out = cycles(old, 60)
    new.take_over(old)
    before = out.velocity
    for out in cycles(new, 300, 60):
        assert clearance(scene, out.q) >= MIN_DISTANCE - ROUNDING
        assert (np.abs(out.velocity - before) <= 5.0 * DT * (1.0 + 1e-6)).all()
        before = out.velocity
    assert out.nearest.names == ("box", "wam_link7")
    assert abs(out.nearest.distance - MIN_DISTANCE) < 1e-3
    back = controller(robot, None, q)
    back.take_over(new)
    assert back.command.tolist() == new.command.tolist()


@pytest.mark.parametrize("jerk", [np.inf, 100.0])
@pytest.mark.parametrize(
    "bound",
    [
        BoxBound((1.5, 0.4, 1.8), name="cell"),
        SphereBound(0.75, name="cell"),
        HalfSpace((-1.0, 0.0, 0.0), -0.7, name="cell"),
        HalfSpace((0.0, 0.0, 1.0), 0.4, links=("wam_link4",), name="cell"),
    ],
)
def test_tip_and_links_stay_in_workspace(bound, jerk):
    robot, links = wam()[0], getattr(bound, "links", ())
    made = controller(robot, None, workspace=[bound], jerk=jerk)
    T = robot.fk(q0)
    T[:3, 3] += [0.15, 0.4, 0.1] if not links else [0.1, 0.0, -0.5]
    made.follow_pose(T, 0.0)
    least = np.inf
    for out in cycles(made, 300):
        point = (robot.link_pose(links[0], out.q) if links else robot.fk(out.q))[:3, 3]
        if isinstance(bound, BoxBound):
            inside = np.min(np.array([0.75, 0.2, 0.9]) - abs(point))
        elif isinstance(bound, SphereBound):
            inside = 0.75 - np.linalg.norm(point)
        else:
            inside = bound.normal @ point - bound.offset
        least = min(least, inside)
    assert -ROUNDING <= least < 2e-3
    assert out.nearest.names == ("cell", links[0] if links else "wam_tip")


def test_tip_outside_workspace_only_moves_inward():
    robot = wam()[0]
    x = robot.fk(q0)[0, 3]
    made = controller(robot, workspace=[HalfSpace((-1.0, 0.0, 0.0), -(x - 0.1))])
    T = robot.fk(q0)
    T[0, 3] += 0.1
    made.follow_pose(T, 0.0)
    for out in cycles(made, 100):
        assert robot.fk(out.q)[0, 3] <= x + ROUNDING
    T[0, 3] = x - 0.2
    made.follow_pose(T, 100 * DT)
    *_, out = cycles(made, 300, 100)
    assert out.state is ServoState.REACHED


def test_invalid_distances_scenes_and_bounds_raise():
    robot, scene = wam()
    with pytest.raises(OptionError, match=r"min_distance = 0.3 m: '\w+' and '\w+' are never"):
        controller(robot, scene, min_distance=0.3, influence_distance=0.5)
    with pytest.raises(OptionError, match="influence_distance"):
        controller(robot, scene, influence_distance=0.01)
    with pytest.raises(SceneError, match="the scene belongs to robot"):
        controller(RobotModel.from_name("puma560"), scene, np.zeros(6))
    with pytest.raises(SceneError, match=r"wam_ling4.*wam_link4"):
        controller(robot, workspace=[BoxBound((1.0, 1.0, 1.0), links=("wam_ling4",))])
    with pytest.raises(SceneError, match="BoxBound"):
        controller(robot, workspace=["box"])


def test_pairs_that_another_arm_can_separate_are_neither_refused_nor_reported():
    """Link 4 of the right arm stands 6 mm beside link 1 of the left arm, which only turns."""
    robot, alone = arm("two_wams")
    scene, angles = alone.copy(), (1.5, 1.5, -1.0, 1.1, -1.2, 0.7, -1.6)
    scene.set_joints({f"right_wam_j{k + 1}": q for k, q in enumerate(angles)})
    made = controller(robot, scene, min_distance=0.03, influence_distance=0.1)
    assert all("right" not in name for pair in made.tight_pairs for name in pair.names)


def test_no_guard_without_a_scene():
    robot = wam()[0]
    made = controller(robot)
    made.follow_pose(robot.fk(q0 + 0.1), 0.0)
    *_, out = cycles(made, 10)
    assert out.nearest is None
    assert made._tracker.guard is None
    assert isinstance(controller(robot, PlanningScene(robot))._tracker.guard, Guard)


def test_tight_pairs_are_reported():
    """Two balls, whose distance of 8 to 40 mm depends on the joint between them."""
    robot = RobotModel.from_dh([{"a": 0.1, "lower": -3.0, "upper": 3.0}] * 2)
    base, _, tip = robot.tree.links[:3]
    offset = robot.link_pose(tip, np.zeros(2))[:3, 3]
    place = transform(None, offset + np.array([0.0, 0.0, 0.12]))
    balls = {
        base: Body(base, ((Sphere(0.05), place),)),
        tip: Body(tip, ((Sphere(0.05), np.eye(4)),)),
    }
    scene = PlanningScene(robot, bodies=balls)
    scene.allow(base, tip, allowed=False)
    wide = controller(robot, scene, np.zeros(2), min_distance=0.05, influence_distance=0.1)
    (pair,) = wide.tight_pairs
    assert set(pair.names) == {base, tip}
    assert pair.share >= 0.25
    assert 0.019 <= pair.usual < 0.05
    narrow = controller(robot, scene, np.zeros(2), min_distance=0.005, influence_distance=0.1)
    assert narrow.tight_pairs == ()
