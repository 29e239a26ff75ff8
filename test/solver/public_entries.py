# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Calls of all public entries: ``python public_entries.py GROUP``.

The process first uses the kernels of set-up. It then prints each kernel that a call of the group
compiles, and each kernel that it finds on disk only because an earlier process compiled it.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from click.testing import CliRunner

from dls_ik import IkSolver, PlanningScene, RobotKinematics, RobotModel, Stepper, Task, method_names
from dls_ik.cli.main import main
from dls_ik.compat import on_numba_compilation
from dls_ik.model.analysis import conditioning, ready_configuration, singularities
from dls_ik.model.reach import tip_extent
from dls_ik.reachability import reachability_map
from dls_ik.servo import Controller, LocalIk
from dls_ik.servo.workspace import HalfSpace, SphereBound
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import reach_path, singular_path
from dls_ik.solver.plugins import register_method
from dls_ik.viewer.session import local_session
from dls_ik.warm_up import USES, use_kernels

URDF = Path(__file__).resolve().parents[2] / "urdf"
TEST_URDF = URDF.parent / "test" / "urdf"
WAM, RNG = RobotModel.wam(), np.random.default_rng(0)
TIPS = RobotModel.from_tree(WAM.tree, WAM.base, ["wam_link4", WAM.tip])
Q = WAM.random(rng=RNG)
T, AWAY = WAM.fk(Q), WAM.fk(WAM.random(rng=RNG))
FAR = 5.0 * np.eye(4, k=3)  # added to a pose: out of reach
TASKS = (
    None,
    Task.position_only(),
    Task.pointing(),
    Task.ball(0.01),
    Task.cylinder(0.01, 0.1),
    Task(rotation_tolerance=0.1),
    Task(rotation_tolerance=0.1, angles="euler"),
    Task(position="z", rotation="x", frame="target"),
)
ARM_TIPS = ["left_wam_tip", "right_wam_tip"]
TASKS_OF_TIPS = (None, Task.position_only(), [Task.position_only(), Task()])
KINDS_OF_METHODS = (None, "svf", "odls", "ctp", "own")  # one of each kind of kernel arguments
METHODS = (
    None, "dls", "svf", "sdls", "ctp", "odls", "gp", "gwln", "jt", "jw", "tp", "quik", "idv", "cns",
    "nfd", "own",
)  # fmt: skip


def transposed_step(J, e, state):
    """A plug-in: damped least squares."""
    return J.T @ np.linalg.solve(J @ J.T + 0.01 * np.eye(len(e)), e)


def scene_of(robot):
    """Return a scene with an object of every kind."""
    scene = PlanningScene(robot)
    scene.add_box("box", (0.1, 0.2, 0.3), np.eye(4) + 1.5 * np.eye(4, k=3))
    scene.add_sphere("sphere", 0.1, np.eye(4) - 1.5 * np.eye(4, k=3))
    scene.add_cylinder("cylinder", 0.1, 0.2, np.eye(4) + 2.5 * np.eye(4, k=3))
    scene.add_capsule("capsule", 0.1, 0.2, np.eye(4) - 2.5 * np.eye(4, k=3))
    scene.add_plane("floor", offset=-2.0)
    triangles = [[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]
    scene.add_mesh("tetrahedron", np.vstack([np.zeros(3), np.eye(3)]) + 3.0, triangles)
    return scene


def frozen(array):
    """Return a read-only copy, whose type differs for a compiler."""
    found = np.array(array)
    found.flags.writeable = False
    return found


def solve_each_task():
    """Pose, position, pointing, axes and tolerances of one and two tips, with and without scene."""
    for robot, tasks in ((WAM, TASKS), (TIPS, TASKS_OF_TIPS)):
        Ts = robot.fk(robot.random(3, RNG))
        for world in (None, scene_of(WAM)):
            for task in tasks:
                solver = IkSolver(robot, task=task, scene=world)
                for options in (
                    {},
                    {"solve_type": "distance"},
                    {"solve_type": "nearest"},
                    {"solve_type": "manipulability"},
                    {"approximate": True},
                    {"max_joint_change": 0.5},
                ):
                    solver.solve(Ts[0], robot.random(rng=RNG), **options)
                result = solver.solve(Ts[0] + FAR)
                solver.explain(result, T=Ts[0] + FAR)
                solver.solve_batch(Ts)
                solver.solve_path(Ts)
                solver.solve_all(Ts[0], 2)


def solve_by_each_method():
    for method in (*method_names(), "own"):
        for world in (None, scene_of(WAM)):
            if world is not None and method.startswith("kdl"):  # KDL ignores scenes
                continue
            solver = IkSolver(WAM, method, scene=world)
            solver.solve(T, Q + 0.1)
            solver.solve_batch(np.array([T, AWAY]))


def solve_for_other_inputs():
    """Arrays of other types and layouts, and arms with other joints."""
    batch = WAM.fk(WAM.random(6, RNG))
    solver = IkSolver(WAM)
    for given in (frozen(T), T.astype(np.float32), np.asfortranarray(T), T.tolist()):
        solver.solve(given, frozen(Q))
        WAM.fk(frozen(Q)), WAM.jacobian(frozen(Q)), WAM.jacobian(Q, "tip")
    for given in (frozen(batch), batch[::2], np.asfortranarray(batch), batch.tolist()):
        solver.solve_batch(given)
        solver.solve_path(given)
    for name in ("column_lwr", "youbot", "stanford", "ur5e"):  # prismatic joints, 5 and 6 joints
        robot = RobotModel.from_urdf(TEST_URDF / f"{name}.urdf")
        for task in (None, Task.position_only()):
            solver = IkSolver(robot, task=task)
            Ts = robot.fk(robot.random(3, RNG))
            solver.solve(Ts[0]), solver.solve(Ts[0] + FAR), solver.solve_batch(Ts)
            solver.solve_path(Ts), solver.solve_all(Ts[0], 2)
    planar = RobotModel.from_name("planar_2r")
    IkSolver(planar, task=Task.position_only()).solve(planar.fk([0.3, 0.4]))
    for name, tips in (("y_shape", ["E0", "E1"]), ("two_wams", ARM_TIPS)):
        robot = RobotModel.from_urdf(URDF / f"{name}.urdf", tip=tips)
        IkSolver(robot).solve(robot.fk(robot.random(rng=RNG)))
    scipy_like = RobotKinematics(URDF / "wam7.urdf", WAM.tip)
    pose = scipy_like.forward_kinematics(np.full(7, 10.0))
    scipy_like.inverse_kinematics(np.full(7, 20.0), pose)
    scipy_like.inverse_kinematics(np.full(7, 20.0), pose, orientation_weight=0.0)


def query_scenes():
    arms = RobotModel.from_urdf(URDF / "two_wams.urdf", tip=ARM_TIPS)
    left = RobotModel.from_urdf(URDF / "two_wams.urdf", tip=ARM_TIPS[0])
    for robot in (WAM, TIPS, left, arms):
        scene = scene_of(robot)
        q = robot.random(rng=RNG)
        for query in (scene.in_collision, scene.clearance, scene.contacts, scene.distance):
            query(q)
            query(frozen(q))
        scene.in_collision(robot.random(4, RNG))
        scene.path_in_collision(q, q + 0.1)
        scene.attach("sphere", robot.tips[0], q=q)
        scene.in_collision(q)
        scene.detach("sphere", q=q)
        scene.move("box", np.eye(4) + 1.4 * np.eye(4, k=3))
        scene.set_padding(0.01)
        scene.distance(q)
        scene.plan(np.zeros(robot.n), np.full(robot.n, 0.1))
        IkSolver(robot, scene=scene).solve(robot.fk(q))
    PlanningScene(WAM, exact=False).in_collision(Q)
    IkSolver(WAM, scene=scene_of(WAM), solve_type="clearance").solve(T)


def follow(robot, method, options):
    """Follow a pose, a twist and a trajectory, pause and stop."""
    controller = Controller(robot, method, **options)
    q = np.clip(Q, robot.lower + 0.2, robot.upper - 0.2)
    T_d, away = robot.fk(q + 0.02), robot.fk(q + 0.05)
    controller.seed(q)
    for k in range(12):
        if k == 0:
            controller.follow_pose(frozen(T_d), 0.0)
        elif k == 4:
            controller.follow_twist(np.full(6, 0.1), 0.04)
        elif k == 8:
            controller.follow_trajectory([T_d, away], 0.5, 0.08)
        controller.cycle(0.01 * k, 0.01, controller.command)
    controller.pause()
    controller.cycle(0.12, 0.01)
    controller.stop_path(0.01)
    controller.trajectory(0.01, 5)
    controller.resume_at(0.01, 0.01)
    _ = controller.tight_pairs
    other = Controller(robot, method, **options)
    other.take_over(controller)
    other.cycle(0.13, 0.01)


def control():
    """Follow targets by all methods.

    Methods in KINDS_OF_METHODS have all combinations of limits, scene and workspace of this
    function, the other methods only the common ones.
    """
    workspace = [HalfSpace((0.0, 0.0, 1.0), -0.5), SphereBound(2.0)]
    near = scene_of(WAM)  # an obstacle within the influence distance of the tip
    tip = WAM.fk(np.clip(Q, WAM.lower + 0.2, WAM.upper - 0.2))
    near.add_sphere("near", 0.02, tip + 0.06 * np.eye(4, k=3))
    limits = {"acceleration": 8.0, "jerk": 80.0}
    common = ({}, {"max_linear_speed": 0.2, "scene": near, **limits})
    others = (
        {"acceleration": 8.0},
        limits,
        {"max_linear_speed": 0.2, "max_angular_speed": 1.0},
        {"scene": near},
        {"scene": near, "workspace": workspace, "acceleration": 8.0},
        {"workspace": workspace},
        {"supervised": True, "scale": 0.5, "feed_forward": True},
    )
    for method in METHODS:
        for options in (*common, *others) if method in KINDS_OF_METHODS else common:
            follow(WAM, method, options)


def follow_locally():
    for robot, tasks in ((WAM, TASKS), (TIPS, TASKS_OF_TIPS)):
        for task in tasks:
            for method in ("dls", "own"):
                local_ik = LocalIk(robot, method, task=task)
                local_ik.reset(np.clip(Q, robot.lower + 0.2, robot.upper - 0.2))
                local_ik.step(robot.fk(Q), 0.01)
    left = RobotModel.from_urdf(URDF / "two_wams.urdf", tip=ARM_TIPS[0])
    for method in (None, "own"):
        controller = Controller(left, method, scene=PlanningScene(left))
        controller.follow_pose(left.fk(np.full(left.n, 0.2)), 0.0)
        for k in range(50):
            controller.cycle(0.01 * k, 0.01)


def step():
    """Single steps, rates and inverses of every method."""
    methods = [name for name in method_names() if not name.startswith("kdl")]
    for robot, names in ((WAM, [*methods, *METHODS[1:]]), (TIPS, ["dls", "odls", "own"])):
        for method in names:
            stepper = Stepper(robot, method, Q + 0.1)
            T_d = robot.fk(Q)
            J = stepper.jacobian(T_d)
            stepper.step(T_d), stepper.step(T_d, J), stepper.run(T_d, 3)
            stepper.rate(np.full(stepper.rows, 0.1), 0.01)
            stepper.inverse(T_d)
    Stepper(WAM, "dls", Q, policy="accuracy").inverse(AWAY)


def show():
    """The page: presets, gains, a comparison, a replay, a recording, with and without scene."""
    for scene in (None, scene_of(WAM)):
        for methods in ((), ("dls", "own", "sdls")):
            session, presets = local_session(WAM, methods, scene=scene)
            for k, preset in enumerate([None, *presets]):
                if preset is not None:
                    session.play(preset)
                for i in range(10):
                    views = session.step(k + 0.01 * i)
                session.gains(views[0])
            session.stop_preset()
            session.start_recording()
            for bare in (True, False):
                session.set_bare(bare)
                session.drag_target(T)
                views = session.step(20.0 + bare)
                session.gains(views[0])
            session.stop_recording()
            session.close()
    session, _ = local_session(TIPS)
    session.gains(session.step(0.0)[0])
    session.close()


def map_reach():
    for task in ("pose", "pointing", "position"):
        reachability_map(WAM, 0.5, 1, task=task, max_restarts=2)
    reachability_map(WAM, 0.5, 1, max_restarts=2, scene=scene_of(WAM))
    compare_on_path(WAM, ["dls", "svf+sd", "own"], singular_path(WAM))
    reach_path(WAM)
    conditioning(WAM), singularities(WAM), ready_configuration(WAM), tip_extent(WAM)


def run_commands():
    xyz = ("--xyz", "0.3", "0.2", "0.5")
    with tempfile.TemporaryDirectory() as folder:
        poses = Path(folder) / "poses.csv"
        poses.write_text("x,y,z,roll,pitch,yaw\n0.3,0.2,0.5,0,0,0\n0.31,0.2,0.5,0,0,0\n")
        for words in (
            ("info", "wam"),
            ("info", "wam", "--srdf", "auto"),
            ("fk", "wam", "--random", "3"),
            ("solve", "wam", *xyz, "--method", "auto,dls,sdls"),
            ("solve", "wam", *xyz, "--all", "3"),
            ("solve", "wam", *xyz, "--task", "position", "--plot", f"{folder}/solve.png"),
            ("solve", "wam", "--xyz", "3", "0", "0"),
            ("path", "wam", str(poses), "--out", f"{folder}/path.csv"),
            ("reachability", "wam", "--resolution", "0.5", "--orientations", "1", "--restarts", "2",
             "--out", f"{folder}/map.npz"),
            ("collisions", "wam", "--samples", "50"),
            ("compare", "wam", "--plot", f"{folder}/compare.png"),
            ("compare", "wam", "--path", "reach", "--method", "dls,odls"),
            ("study", "wam", "--method", "auto,svf", "--pairs", "5"),
            ("methods",),
            ("reproduce", "figure-6"),
        ):  # fmt: skip
            result = CliRunner().invoke(main, words)
            if result.exit_code not in (0, 1):
                raise RuntimeError(f"{' '.join(words)}: {result.output}") from result.exception


GROUPS = {
    "tasks": (solve_each_task,),
    "solvers": (solve_by_each_method, solve_for_other_inputs, query_scenes),
    "control": (control, follow_locally),
    "steps": (step, show, map_reach, run_commands),
}


def loaded_kernels():
    """Return name and signature of each kernel of which this process has machine code."""
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("dls_ik")]
    kernels = {id(v): v for m in modules for v in vars(m).values() if hasattr(v, "overloads")}
    return {
        (f"{kernel.py_func.__module__}.{kernel.py_func.__name__}", str(signature))
        for kernel in kernels.values()
        for signature in kernel.overloads
    }


if __name__ == "__main__":
    use_kernels(USES)
    register_method("own", transposed_step)
    compiled = []
    on_numba_compilation(lambda kernel: compiled.append(kernel.py_func.__name__))
    known = loaded_kernels()
    for entry in GROUPS[sys.argv[1]]:
        entry()
        for name, signature in sorted(loaded_kernels() - known):
            print(f"{entry.__name__}: {name} {signature}")
        known |= loaded_kernels()
        if compiled:
            print(f"{entry.__name__} compiles {', '.join(compiled[:3])}")
        compiled.clear()
