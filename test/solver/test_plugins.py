# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Plugin methods: a damped inverse compared with the library's, and steps that fail."""

import threading

import numba
import numpy as np
import pytest
from scenes import bodies_of

from dls_ik import IkSolver, PlanningScene, RobotModel, Status, Stepper, Task
from dls_ik.errors import MethodError
from dls_ik.model.rotations import transform
from dls_ik.reproduce.colome_torras_readings import MEANT_READING_NAME
from dls_ik.reproduce.experiment import begin, complete, experiment
from dls_ik.servo import Controller, ServoState, plugin_step
from dls_ik.servo.local_ik import LocalIk
from dls_ik.solver import plugins
from dls_ik.solver.method import method_info
from dls_ik.solver.plugins import load_plugin, plugin_names, register_method

WAM = RobotModel.wam()


@pytest.fixture(autouse=True)
def _registered_plugins_only(monkeypatch, own_plugins):
    monkeypatch.setattr(plugins, "STEP_TIMEOUT", 0.4)


def damped(J, e, state):
    return J.T @ np.linalg.solve(J @ J.T + 0.5 * (e @ e) * np.eye(len(e)), e)


@numba.njit
def transposed(J, e, state):
    state.memory[0] += 1.0
    return 0.1 * (J.T @ e) + 0.0 * state.q * state.memory[0]


def poses_and_seeds(count):
    rng = np.random.default_rng(4)
    return WAM.fk(WAM.random(count, rng)), WAM.random(count, rng)


@pytest.mark.parametrize("task", [None, Task.position_only(), Task.pointing()])
def test_a_damped_inverse_plugin_equals_ed(task):
    register_method("mine", damped)
    T, q = poses_and_seeds(12)
    ours, own = (IkSolver(WAM, name, task=task).solve_batch(T, q) for name in ("ed", "mine"))
    np.testing.assert_array_equal(own.iterations, ours.iterations)
    np.testing.assert_array_equal(own.status, ours.status)
    np.testing.assert_allclose(own.q, ours.q, atol=1e-7)
    one, other = (Stepper(WAM, name, q[0], task=task).run(T[0], 5) for name in ("ed", "mine"))
    np.testing.assert_allclose(other.q, one.q, atol=1e-9)
    np.testing.assert_allclose(other.error, one.error, atol=1e-9)


def test_plugins_restart_like_other_methods():
    register_method("mine", damped)
    T, q = poses_and_seeds(6)
    found = IkSolver(WAM, "mine", max_restarts=40, max_iterations=8).solve_batch(T, q)
    assert found.iterations.max() > 8


def test_numba_kernel_works_as_step_function():
    register_method("kernel", transposed)
    T, q = poses_and_seeds(1)
    trace = Stepper(WAM, "kernel", q[0]).run(T[0], 30)
    assert np.linalg.norm(trace.error[-1]) < np.linalg.norm(trace.error[0])


def never_ends(J, e, state):
    while True:
        pass


def raises(J, e, state):
    return np.zeros(7)[9]


FAULTS = {
    "nan": (lambda J, e, state: np.full(7, np.nan), "not finite in step 0"),
    "short": (
        lambda J, e, state: np.zeros(6),
        r"array of shape \(6,\) in step 0; a step must be 7",
    ),
    "words": (lambda J, e, state: "seven", "returns 'seven'"),
    "raises": (raises, "raises IndexError: index 9"),
    "never": (never_ends, "takes more than 0.4 s"),
    "later": (lambda J, e, state: J.T @ e if state.iteration < 2 else None, "in step 2"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_failing_steps_are_reported_with_the_reason(name):
    step, reason = FAULTS[name]
    register_method(name, step, "mine.py")
    T, q = poses_and_seeds(1)
    with pytest.raises(MethodError, match=rf"'{name}' \(mine.py\).*{reason}"):
        IkSolver(WAM, name).solve(T[0], q[0])


def test_an_endless_step_is_stopped_in_any_thread():
    register_method("never", never_ends)
    T, q = poses_and_seeds(1)
    found = []

    def run():
        try:
            IkSolver(WAM, "never").solve(T[0], q[0])
        except MethodError as error:
            found.append(str(error))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(20.0)
    assert "takes more than" in found[0]


def test_table_v_continues_without_a_failing_plugin():
    register_method("nan", FAULTS["nan"][0])
    register_method("mine", damped)
    report = begin(experiment("table-v"), 8, 0, ["ed", "nan", "mine"], MEANT_READING_NAME)
    complete(experiment("table-v"), report, Silent())
    rows = {row["method"]: row for row in report.rows}
    assert rows["mine"]["iterations"] == rows["ed"]["iterations"]
    assert "not finite" in rows["nan"]["missing"]
    assert any(note.startswith("nan: not run") for note in report.notes)
    experiment("table-v").plot(report)


def sliding(J, e, state):
    return J.T @ np.linalg.solve(J @ J.T + 0.02 * np.eye(len(e)), e)


@pytest.fixture(scope="module")
def wam_with_wall():
    """Return a WAM, its pose, a target behind a wall, and the scene with the wall."""
    q = np.array([0.1, 0.6, 0.0, 1.6, 0.0, 0.5, 0.2])
    T, place = WAM.fk(q), np.eye(4)
    place[:3, 3] = T[:3, 3] + [0.35, 0.0, 0.0]
    scene = PlanningScene(WAM)
    scene.add_box("wall", (0.2, 1.2, 1.2), place)
    goal = T.copy()
    goal[:3, 3] += [0.4, 0.1, 0.0]
    return q, goal, scene


def controller_outputs(controller, goal, cycles, dt=0.01, start=0):
    """Return the outputs of a controller that receives a target in each cycle."""
    for k in range(start, start + cycles):
        if not controller.hold_reason:
            controller.follow_pose(goal, k * dt)
        yield controller.cycle(k * dt, dt)


def test_with_a_scene_a_plugin_slides_along_a_wall(wam_with_wall):
    q, goal, scene = wam_with_wall
    register_method("mine", sliding)
    controller = Controller(WAM, "mine", scene=scene, when_stuck="hold", min_distance=0.01)
    controller.seed(q)
    calls = []
    out = [
        (o.q, o.state, calls.append(o.state)) for o in controller_outputs(controller, goal, 250)
    ][-1]
    distances = scene.distance(out[0]).distance
    assert 0.01 <= distances < 0.015
    tip = WAM.fk(out[0])[:3, 3] - WAM.fk(q)[:3, 3]
    assert tip[0] > 0.15
    assert tip[1] > 0.05  # slides along the wall towards the goal
    assert ServoState.NEAR_COLLISION in calls


@pytest.mark.parametrize("name", ["nan", "short", "raises", "never", "later"])
def test_a_plugin_that_fails_near_obstacles_stops_the_arm_with_a_fault(
    wam_with_wall, name, monkeypatch
):
    monkeypatch.setattr(plugin_step, "PLUGIN_TIMEOUT", 0.2)
    q, goal, scene = wam_with_wall
    step = FAULTS[name][0]
    register_method(
        "mine",
        lambda J, e, state: (sliding if state.iteration < 20 else step)(
            J, e, state._replace(iteration=9)
        ),
    )
    controller = Controller(WAM, "mine", scene=scene, acceleration=4.0)
    controller.seed(q)
    outputs = list(controller_outputs(controller, goal, 150))
    states = [o.state for o in outputs]
    assert states.count(ServoState.FAULT) == 130
    assert "'mine'" in outputs[-1].message
    velocities = np.array([np.zeros(7), *(o.velocity for o in outputs)])
    assert np.abs(np.diff(velocities, axis=0)).max() <= 4.0 * 0.01 * (1.0 + 1e-6)
    assert not velocities[-1].any()
    assert np.abs(velocities[21]).max() > 0.01
    assert min(scene.distance(o.q).distance for o in outputs[::10]) > 0.01
    register_method("mine", sliding)
    controller.reset()
    assert next(controller_outputs(controller, goal, 1, start=150)).state is ServoState.FOLLOWING


class Silent:
    def track(self, items, title):
        yield from items


def test_plugins_have_lines_in_figures_1_and_2():
    register_method("mine", damped)
    register_method("nan", FAULTS["nan"][0])
    for what in ("figure-1", "figure-2"):
        report = begin(experiment(what), 30)
        complete(experiment(what), report, Silent())
        rows = {row["method"]: row for row in report.rows}
        key = "last" if what == "figure-1" else "peak"
        assert rows["mine"][key] == pytest.approx(rows["ed"][key], rel=1e-3)
        assert any(note.startswith("nan: not run") for note in report.notes)
        experiment(what).plot(report)


@pytest.mark.parametrize(("what", "key"), [("section-5", "distance"), ("figure-4", "excess")])
def test_plugins_follow_moving_targets_and_reach_fixed_ones(what, key):
    register_method("mine", lambda J, e, state: 0.3 * np.linalg.pinv(J, 0.1) @ e)
    register_method("short", lambda J, e, state: np.zeros(3))
    report = begin(experiment(what), 3)
    complete(experiment(what), report, Silent())
    rows = [row for row in report.rows if row.get("method") in ("mine", "short")]
    assert all(np.isfinite(row[key]) for row in rows if row["method"] == "mine")
    failed = [row for row in rows if row["method"] == "short"]
    assert failed
    assert len(failed) < len(rows)
    assert all(
        "a step must be 25 numbers" in r["missing"] or "7 numbers" in r["missing"] for r in failed
    )
    assert any(note.startswith("short: not run") for note in report.notes)
    experiment(what).plot(report)


def test_plugin_files_are_loaded_or_refused_with_a_reason(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text("def step(J, e, state):\n    return J.T @ e\n")
    assert load_plugin(file) == ("mine",)
    assert "mine" in plugin_names()
    assert method_info("mine").source == "mine.py"
    for text, reason in [
        ("x = 1\n", "neither a function step"),
        ("1 / 0\n", "ZeroDivisionError"),
        ("METHODS = {'jp': print}\n", "'jp' is a built-in method"),
        ("METHODS = {'My One': print}\n", "lower-case letters"),
        ("METHODS = {'one': 3}\n", "step must be a function"),
    ]:
        file.write_text(text)
        with pytest.raises(MethodError, match=reason):
            load_plugin(file)
    with pytest.raises(MethodError, match="there is no plug-in"):
        load_plugin(tmp_path / "none.py")
    with pytest.raises(MethodError, match="did you mean mine"):
        IkSolver(WAM, "mime")


@pytest.mark.parametrize("make", [lambda: LocalIk(WAM, "mine"), lambda: Controller(WAM, "mine")])
def test_a_controller_with_a_plugin_keeps_the_limits(make):
    register_method("mine", lambda J, e, state: 5.0 * damped(J, e, state))
    follower, q = make(), np.array([0.1, 0.5, 0.2, 1.4, 0.0, -0.6, 0.3])
    goal = np.array([0.4, 0.9, 0.1, 1.9, 0.3, -0.2, 0.1])
    T, dt = WAM.fk(goal), 0.01
    follower.seed(q) if isinstance(follower, Controller) else follower.reset(q)
    for k in range(300):
        if isinstance(follower, Controller):
            follower.follow_pose(T, k * dt)
            after = follower.cycle(k * dt, dt).q
        else:
            after = follower.step(T, dt).q
        assert np.all(np.abs(after - q) <= WAM.velocity * dt * (1.0 + 1e-9))
        assert WAM.within_limits(after)
        q = after
    np.testing.assert_allclose(WAM.fk(q), T, atol=2e-3)


def test_diverging_steps_are_replaced_and_failing_steps_do_not_move():
    register_method("away", lambda J, e, state: -J.T @ e)
    follower, goal = LocalIk(WAM, "away"), WAM.fk(np.full(7, 0.4))
    follower.reset(np.full(7, 0.2))
    errors = [follower.step(goal, 0.01).position_error for _ in range(200)]
    assert errors[-1] < 1e-3
    register_method("nan", FAULTS["nan"][0])
    follower = LocalIk(WAM, "nan")
    follower.reset(np.full(7, 0.2))
    with pytest.raises(MethodError, match="not finite"):
        follower.step(goal, 0.01)
    np.testing.assert_array_equal(follower.q, np.full(7, 0.2))


def test_the_approximate_answer_of_a_plugin_is_found_next_to_an_obstacle():
    """All solutions collide; as for other methods, a search finds a close free configuration."""
    register_method("mine", damped)
    scene = PlanningScene(WAM, bodies=bodies_of(WAM.tree))
    q = np.array([0.0, 0.7, 0.0, 1.6, 0.0, 0.5, 0.0])
    T = scene.robot.fk(q)
    scene.add_box("crate", [0.4, 0.4, 0.4], transform(None, T[:3, 3]))
    given = {"scene": scene, "max_restarts": 20, "approximate": True}
    own, other = (IkSolver(scene.robot, name, **given).solve(T, q) for name in ("mine", "ed"))
    assert own.status is other.status is Status.IN_COLLISION
    assert own.success
    assert not scene.in_collision(own.q)
    errors = [np.hypot(each.position_error, 0.2 * each.rotation_error) for each in (own, other)]
    assert errors[0] < 1.5 * errors[1]
    there = scene.robot.fk(own.q)[:3, 3]
    assert np.linalg.norm(there - T[:3, 3]) == pytest.approx(own.position_error)
