"""Where the arm goes: to the target, along its path, or as near as it can, and then it is still."""

import numpy as np
import pytest
from drive import BENT, DT, WAM, reversals

from dls_ik.servo import LocalIk


def run(servo, T, cycles, dt=DT):
    """The commands of some cycles toward one target, and the last output."""
    outputs = [servo.step(T, dt) for _ in range(cycles)]
    return np.array([out.q for out in outputs]), outputs[-1]


def servo_at(q, *method, **options):
    servo = LocalIk(WAM, *method, **options)
    servo.reset(q)
    return servo


def near_target(q, rng):
    return WAM.fk(WAM.clip(q + rng.uniform(-0.3, 0.3, WAM.n)))


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto", "svf", "ed", "jc+jd"])
def test_static_target_nearby_is_reached_and_held(method):
    rng = np.random.default_rng(21)
    for _ in range(10):
        servo = servo_at(BENT, method)
        commands, out = run(servo, near_target(BENT, rng), 200)
        assert out.position_error <= 1e-6
        assert out.rotation_error <= 1e-6
        assert np.ptp(commands[-50:], axis=0).max() == 0.0


def test_errors_are_those_of_the_command():
    servo = servo_at(BENT)
    T = near_target(BENT, np.random.default_rng(22))
    out = servo.step(T, DT)
    actual = WAM.fk(out.q)
    cosine = (np.trace(T[:3, :3] @ actual[:3, :3].T) - 1) / 2
    assert out.position_error == pytest.approx(np.linalg.norm(T[:3, 3] - actual[:3, 3]), abs=1e-12)
    assert out.rotation_error == pytest.approx(np.arccos(cosine), abs=1e-7)


@pytest.mark.parametrize("method", ["ctp+sd+svf", "auto"])
def test_error_never_rises_toward_a_static_target(method):
    rng = np.random.default_rng(23)
    for T in WAM.fk(WAM.random(rng, 20)):
        servo = servo_at(WAM.random(rng), method)
        outputs = [servo.step(T, DT) for _ in range(200)]
        error = np.array([np.hypot(o.position_error, 0.5 * o.rotation_error) for o in outputs])
        assert (np.diff(error) <= 1e-12).all()


def test_unreachable_target_is_approached_and_the_arm_is_still():
    direction = np.array([0.6, 0.3, 0.5])
    T = WAM.fk(BENT)
    T[:3, 3] = 3.0 * direction
    servo = servo_at(BENT)
    commands, _ = run(servo, T, 3000)
    assert np.ptp(commands[-100:], axis=0).max() < 1e-4
    assert WAM.within_limits(servo.q)
    reach = np.linalg.norm(WAM.fk(servo.q)[:3, 3])
    assert reach > 0.8, "0.9 m is the whole arm"


def test_no_back_and_forth_on_the_way_to_a_target_out_of_reach():
    rng = np.random.default_rng(25)
    counts = []
    for T in WAM.fk(WAM.random(rng, 15)):
        T[:3, 3] *= 1.6 / np.linalg.norm(T[:3, 3])
        counts.append(reversals(run(servo_at(WAM.random(rng)), T, 600)[0]))
    assert np.median(counts) <= 5
    assert max(counts) <= 30, "undamped, the worst turn round in every cycle"


def test_arm_reaching_forward_goes_straight_out():
    T = np.diag([1.0, -1.0, -1.0, 1.0])
    T[:3, 3] = 1.5, 0.0, 0.2
    assert reversals(run(servo_at([0, 0.5, 0, 1.5, 0, 0.5, 0]), T, 1000)[0]) <= 2


def test_leaves_as_soon_as_the_target_comes_back():
    T_far = WAM.fk(BENT)
    T_near = T_far.copy()
    T_far[:3, 3] *= 3.0
    servo = servo_at(BENT)
    run(servo, T_far, 1000)
    error = servo.step(T_near, DT).position_error
    assert servo.step(T_near, DT).position_error < error
    assert run(servo, T_near, 400)[1].position_error <= 1e-6


def test_follows_a_moving_target_closely():
    servo = servo_at(BENT)
    T = WAM.fk(BENT)
    errors = []
    for k in range(1000):
        phase = 2 * np.pi * k * DT / 5.0
        T_d = T.copy()
        T_d[1:3, 3] += 0.15 * np.sin(phase), 0.1 * np.sin(2 * phase)
        errors.append(servo.step(T_d, DT).position_error)
    assert np.max(errors) < 1e-3


def test_through_the_stretched_elbow_and_back():
    stretched = BENT.copy()
    stretched[3] = 0.2313  # with its offset of 45 mm the arm is longest here
    there = np.linspace(BENT, stretched, 300)
    servo = servo_at(BENT)
    least = min(servo.step(WAM.fk(q), DT).least_singular_value for q in there)
    assert least < 0.02, "0.26 where it began"
    for q in there[::-1]:
        servo.step(WAM.fk(q), DT)
    assert run(servo, WAM.fk(BENT), 300)[1].position_error <= 1e-6


def test_a_joint_held_at_its_limit_is_told():
    q = BENT.copy()
    q[0] = 2.55
    T = WAM.fk(q)
    turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    T[:3, :3], T[:3, 3] = turn @ T[:3, :3], turn @ T[:3, 3]  # a quarter turn past the limit
    servo = servo_at(q)
    assert max(servo.step(T, DT).limit_activation[0] for _ in range(500)) > 0.99


def test_half_a_turn_is_made():
    servo = servo_at(BENT * [1, 1, 1, 1, 1, 1, 0] + [0, 0, 0, 0, 0, 0, -np.pi / 2])
    T = WAM.fk(servo.q)
    T[:3, :3] = T[:3, :3] @ np.diag([-1.0, -1.0, 1.0])
    assert run(servo, T, 400)[1].rotation_error <= 1e-6


def test_same_target_and_start_give_the_same_motion():
    T = WAM.fk(WAM.random(np.random.default_rng(24)))
    first, _ = run(servo_at(BENT), T, 100)
    second, _ = run(servo_at(BENT), T, 100)
    np.testing.assert_array_equal(first, second)
