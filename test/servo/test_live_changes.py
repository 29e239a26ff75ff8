# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Parameters, robots and scenes that change while the arm moves: its stop stays as it was."""

from itertools import cycle, islice

import numpy as np
import pytest

pytest.importorskip("coal", reason="distances are compared with those of coal")
pytest.importorskip("ruckig", reason="needs ruckig")

from benchmarks.avoidance import arm, clearance
from benchmarks.live_changes import CASES, leave_sphere, simulate
from dls_ik import PlanningScene
from dls_ik.model.rotations import transform
from dls_ik.scene.shapes import Sphere
from dls_ik.servo import Controller, ServoState

DT = 0.01
STRAIGHT = np.array([0.0, 0.0, 0.0, 2.3, 0.0, 0.4, 0.0])
FORWARD = np.array([0.5, 0.0, 0.0, 0.0, 0.0, 0.0])
PLAIN, JERKY = {"acceleration": 5.0}, {"acceleration": 5.0, "jerk": 50.0}
# Seeds of runs in which the motion of an object 6 m away was reported as a contact.
FALSE_FAULTS = (23, 24, 32, 33, 40, 41, 46)


def alone(q=STRAIGHT):
    robot, scene = arm("wam7")
    return robot, scene.copy(), q


def wall_at(x):
    return [0.1, 2.0, 2.0], transform(translation=np.array([x, 0.0, 0.3]))


def made(robot, scene, **options):
    controller = Controller(robot, scene=scene, when_stuck="hold", **options)
    controller.seed(STRAIGHT)
    return controller


def run(controller, first, count):
    return [controller.cycle((i + 1) * DT, DT) for i in range(first, first + count)]


def moving_forward(robot, scene, count=45, **options):
    controller = made(robot, scene, **options)
    controller.follow_twist(FORWARD, 0.0, R=np.eye(3))
    for i in range(count):
        controller.follow_twist(FORWARD, i * DT, R=np.eye(3))
        run(controller, i, 1)
    return controller


@pytest.mark.parametrize(
    ("case", "rate", "changes"),
    [
        ("equal", 100.0, 60.0),
        ("equal", 100.0, 0.0),
        ("equal", 30.0, 10.0),
        ("scale 1 and 0.5", 100.0, 0.0),
        ("with and without a jerk limit", 100.0, 60.0),
        ("jerk 60 and 20", 30.0, 10.0),
        ("acceleration 1 and 0.3", 100.0, 10.0),
        ("tip speed", 100.0, 0.0),
        ("min_distance 10 and 20 mm", 100.0, 60.0),
    ],
)
def test_live_changes_next_to_a_wall_keep_distance_and_acceleration(case, rate, changes):
    found = simulate(CASES[case], rate, changes, runs=3)
    assert found.smallest < 0.02, "the wall was approached"
    assert found.closer == found.contacts == found.faults == 0
    assert found.acceleration <= 1.0 + 1e-6


@pytest.mark.campaign
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("rate", "changes"), [(100.0, 10.0), (100.0, 60.0), (30.0, 10.0)])
def test_campaign_of_live_changes_keeps_distance_and_acceleration(case, rate, changes):
    found = simulate(CASES[case], rate, changes, runs=8)
    assert found.closer == found.contacts == found.faults == 0
    assert found.acceleration <= 1.0 + 1e-6


@pytest.mark.parametrize("has_scene", [True, False])
@pytest.mark.parametrize(
    "given",
    [
        (PLAIN, PLAIN),
        (JERKY, JERKY),
        (PLAIN, JERKY),
        (JERKY, {"acceleration": 2.0}, {"acceleration": 1.0, "jerk": 5.0}),
        (PLAIN, {**PLAIN, "scale": 0.0}, {**PLAIN, "scale": 0.3}),
        (JERKY, {**JERKY, "max_linear_speed": 0.05}),
        ({}, {"acceleration": 8.0}),
    ],
)
def test_changes_in_every_cycle_leave_a_stop_as_it_is(given, has_scene):
    robot, scene, _ = alone()
    scene = scene if has_scene else None
    active = moving_forward(robot, scene, **given[0])
    assert np.abs(active.velocity).max() > 0.5
    active.pause()
    run(active, 45, 1)
    stop = active.stop_path(DT)
    others = [made(robot, scene, **options) for options in given]
    for k, other in enumerate(islice(cycle(others), 1, 60)):
        other.take_over(active)
        active = other
        active.cycle((46 + k) * DT, DT)
        if has_scene or "jerk" in given[0]:
            expected = stop.at(np.array([(k + 1) * DT]))[0][0]
            np.testing.assert_allclose(active.command, expected, atol=1e-9)
    assert not active.moves
    way = np.abs(stop.end - stop.q)
    assert (np.abs(active.command - stop.q) <= way + 1e-9).all()


def test_increased_min_distance_comes_no_closer_than_the_previous_stop():
    robot, scene, _ = alone()
    scene.add_box("wall", *wall_at(0.85))
    active = moving_forward(robot, scene, 73, **PLAIN)
    at_end = clearance(scene, active.stop_path(DT).end)
    assert at_end < 0.05 < clearance(scene, active.command), "it is to stop inside of 50 mm"
    strict = made(robot, scene, min_distance=0.05, influence_distance=0.15, **PLAIN)
    strict.take_over(active)
    before, smallest = active.velocity, np.inf
    for i in range(73, 160):
        strict.follow_twist(FORWARD, i * DT, R=np.eye(3))
        (out,) = run(strict, i, 1)
        assert (np.abs(out.velocity - before) <= 5.0 * DT * (1.0 + 1e-6)).all()
        before, smallest = out.velocity, min(smallest, clearance(scene, out.q))
    assert smallest >= at_end - 1e-6
    assert out.state is not ServoState.FAULT
    strict.follow_twist(-FORWARD, 1.6, R=np.eye(3))
    run(strict, 160, 20)
    assert clearance(scene, strict.command) > smallest + 0.01


def test_the_same_robot_from_another_description_continues_the_motion():
    robot, scene, _ = alone()
    scene.add_box("wall", *wall_at(0.85))
    active = moving_forward(robot, scene, 78, **PLAIN)
    other = type(robot).from_urdf(robot.tree.description.urdf)
    assert other.tree is not robot.tree
    again = PlanningScene(other)
    again.take_over(scene)
    assert set(again.objects) == {"wall"}
    new = made(other, again, **PLAIN)
    new.take_over(active)
    assert new.stop_path(DT) is active.stop_path(DT)
    for i in range(78, 160):
        new.follow_twist(FORWARD, i * DT, R=np.eye(3))
        (out,) = run(new, i, 1)
        assert clearance(scene, out.q) >= 0.01 - 1e-6
    assert out.nearest.names == ("wall", "wam_link7")


@pytest.mark.parametrize("seed", FALSE_FAULTS)
def test_distant_moving_object_causes_no_fault_while_leaving_a_contact(seed):
    assert not leave_sphere(seed, moves=True, cycles=150)


@pytest.mark.parametrize("seed", FALSE_FAULTS)
def test_rolled_back_command_causes_no_fault_while_leaving_a_contact(seed):
    assert not leave_sphere(seed, moves=False, cycles=150, is_taken_back=True)


@pytest.mark.campaign
def test_distant_moving_objects_cause_no_fault_in_twenty_runs():
    assert not any(leave_sphere(seed, moves=True) for seed in range(20))


def test_deepening_contact_is_a_fault_while_another_contact_is_left():
    robot, scene, _ = alone()
    controller = moving_forward(robot, scene, **PLAIN)
    tip = robot.fk(controller.command)[:3, 3]
    behind = robot.link_pose("wam_link4", controller.command)[:3, 3] - np.array([0.1, 0.0, 0.0])
    scene.add_sphere("behind", 0.03, transform(translation=behind))
    assert clearance(scene, controller.command) < 0.0
    (out,) = run(controller, 45, 1)
    assert out.state is not ServoState.FAULT
    scene.add_box("wall", *wall_at(tip[0] + 0.055))
    (out,) = run(controller, 46, 1)
    assert out.state is ServoState.FAULT
    assert "a contact cannot be avoided: 'wall' and 'wam_link" in out.message


def test_roll_back_keeps_the_certified_distances_of_the_stop():
    robot, scene, _ = alone()
    scene.add_box("wall", *wall_at(0.85))
    controller = moving_forward(robot, scene, 78, **PLAIN)
    guard = controller._tracker.guard
    stop, promised = controller.stop_path(DT), guard._kept.promised
    for steps in (1, 2, 3):
        run(controller, 78, steps)
        controller.go_back(stop)
        assert controller.stop_path(DT) is stop
        assert guard._kept.is_certified
        np.testing.assert_array_equal(guard._kept.promised, promised)
        np.testing.assert_array_equal(controller.command, stop.q)


def test_pair_keys_change_only_if_a_shape_moves_or_changes():
    _, scene, _ = alone()
    scene.add_box("wall", *wall_at(0.85))
    scene.add_sphere("ball", 0.1, transform(translation=np.array([0.0, 2.0, 0.0])))
    before = dict(zip(scene.snapshot.pair_keys, scene.snapshot.names, strict=True))
    assert len(before) == len(scene.snapshot.names)

    def changed():
        keys = scene.snapshot.pair_keys
        pairs = zip(keys, scene.snapshot.names, strict=True)
        return {name for key, pair in pairs if key not in before for name in pair} - {
            *scene.snapshot.links
        }

    scene.add_box("wall", *wall_at(0.85))
    assert changed() == set()
    scene.move("ball", transform(translation=np.array([0.0, 2.1, 0.0])))
    assert changed() == {"ball"}
    scene.add("ball", Sphere(0.2), transform(translation=np.array([0.0, 2.0, 0.0])))
    assert changed() == {"ball"}
    scene.set_padding({"wam_link7": 0.01})
    assert changed() == {"ball", "wall"}
