# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Maps compared with closed forms and with KDL's kinematics."""

import pickle

import numpy as np
import pytest
from reach_maps import WAM, assert_same, gantry, planar_arm, wam_map

from dls_ik import PlanningScene
from dls_ik.model import RobotModel
from dls_ik.model.kdl import kdl_chain
from dls_ik.model.robot import kinematics_digest
from dls_ik.model.rotations import transform
from dls_ik.reachability import ReachabilityError, map_picture, reachability_map
from dls_ik.reachability.settings import MapJob, new_job
from dls_ik.reachability.voxels import Voxels, chunk_poses, solve_chunk
from dls_ik.solver.dexterity import dexterity, limit_margin
from dls_ik.solver.task import Task

FIRST, SECOND = 1.0, 0.45


@pytest.fixture(scope="module")
def ring():
    return reachability_map(
        planar_arm(FIRST, SECOND), 0.05, region=(-1.6, 1.6, -1.6, 1.6, 0, 0), task="position"
    )


@pytest.fixture(scope="module")
def job():
    options = {"region": None, "task": "pose", "tolerance": 1e-6, "random_seed": 3}
    return new_job(RobotModel.wam(), **WAM, **options)


def test_a_planar_arm_reaches_its_ring(ring):
    x, y = np.meshgrid(ring.grid.axis(0), ring.grid.axis(1), indexing="ij")
    r = np.hypot(x, y)
    inside = (r > FIRST - SECOND) & (r < FIRST + SECOND)
    assert np.abs(r - (FIRST - SECOND)).min() > 2e-4  # tolerance: 1e-4
    assert np.abs(r - (FIRST + SECOND)).min() > 2e-4
    np.testing.assert_array_equal(ring.voxels.reached[..., 0] == 1, inside)
    np.testing.assert_array_equal(ring.index[..., 0], inside)


def test_manipulability_of_a_planar_arm_matches_closed_form(ring):
    i, j = np.nonzero(ring.voxels.reached[..., 0])
    r2 = ring.grid.axis(0)[i] ** 2 + ring.grid.axis(1)[j] ** 2
    c = (r2 - FIRST**2 - SECOND**2) / (2.0 * FIRST * SECOND)
    expected = FIRST * SECOND * np.sqrt(1.0 - c**2)
    regular = expected > 0.05  # the tolerance is visible next to a singularity
    for found in (ring.voxels.manipulability_best, ring.voxels.manipulability_mean):
        np.testing.assert_allclose(found[i, j, 0][regular], expected[regular], atol=2e-3)
    np.testing.assert_allclose(ring.voxels.margin_best[i, j, 0], 1.0)  # no joint has limits


def test_map_of_a_gantry_is_exactly_its_box():
    arm = gantry((0.0, 1.0), (-0.5, 0.5), (0.2, 0.4))
    found = reachability_map(arm, 0.2, region=(-0.3, 1.5, -0.7, 0.7, -0.2, 0.8), task="position")
    x, y, z = np.meshgrid(*(found.grid.axis(i) for i in range(3)), indexing="ij")
    inside = (x > -1e-9) & (x < 1 + 1e-9) & (np.abs(y) < 0.5) & (z > 0.2) & (z < 0.4)
    np.testing.assert_array_equal(found.voxels.reached == 1, inside)


def test_every_reached_pose_is_confirmed_by_kdl(job):
    kdl = pytest.importorskip("PyKDL", reason="PyKDL is not installed")
    solver = job.solver()
    chain = kdl_chain(solver.robot)
    fk = kdl.ChainFkSolverPos_recursive(chain)
    checked = 0
    for chunk in (20, 21, 22, 23):
        first, last = job.settings.voxels(chunk)
        poses = chunk_poses(job, first, last)
        result = solver.solve_batch(poses)
        reached = np.zeros(len(poses), bool)
        for row in np.flatnonzero(result.success):
            frame, joints = kdl.Frame(), kdl.JntArray(solver.robot.n)
            for j, value in enumerate(result.q[row]):
                joints[j] = float(value)
            assert fk.JntToCart(joints, frame) == 0
            p = np.array(list(frame.p))
            R = np.array([[frame.M[i, j] for j in range(3)] for i in range(3)])
            reached[row] = (
                np.linalg.norm(p - poses[row, :3, 3]) < 1.1e-6
                and np.linalg.norm(R - poses[row, :3, :3]) < 1.1e-6 * np.sqrt(2.0)
                and solver.robot.within_limits(result.q[row])
            )
        counts = reached.reshape(-1, job.settings.orientations).sum(axis=1)
        np.testing.assert_array_equal(solve_chunk(job, chunk).reached, counts)
        checked += counts.sum()
    assert checked > 100


def test_chunk_of_a_pickled_job_has_the_same_result(job):
    there = pickle.loads(pickle.dumps(job))
    assert there == job
    for one, other in zip(solve_chunk(job, 22), solve_chunk(there, 22), strict=True):
        np.testing.assert_array_equal(one, other)


def test_map_is_reproducible_and_matches_its_summary(wam):
    again = wam_map()
    assert_same(wam, again)
    some = wam.voxels.reached > 0
    for name in Voxels._fields[3:]:
        np.testing.assert_array_equal(np.isfinite(getattr(wam.voxels, name)), some, err_msg=name)
    assert 0.0 < wam.index.max() <= 1.0
    assert (wam.voxels.reached + wam.voxels.undecided <= wam.settings.orientations).all()
    assert (wam.voxels.manipulability_mean[some] <= wam.voxels.manipulability_best[some]).all()
    summary = wam.summary()
    assert summary["volume"] == pytest.approx(some.sum() * 0.25**3)
    assert summary["poses"] == 729 * 128 == wam.settings.poses
    assert summary["poses_reached"] == wam.voxels.reached.sum()


def test_reachable_positions_are_in_or_next_to_reached_voxels(wam):
    robot = RobotModel.wam()
    positions = robot.fk(robot.random(2000, np.random.default_rng(5)))[:, :3, 3]
    reached = np.pad(wam.voxels.reached > 0, 1)
    for position in positions:  # only the centre of a voxel is solved, so its neighbours count too
        i, j, k = wam.at(position)
        assert reached[i : i + 3, j : j + 3, k : k + 3].any()


def test_dexterity_measures_match_their_definitions():
    robot = RobotModel.wam()
    q = robot.random(50, np.random.default_rng(1))
    J = robot.jacobian(q)
    measured = dexterity(robot, Task.pose(), 0.5, q)
    expected = np.sqrt(np.linalg.det(J @ J.swapaxes(1, 2)))
    np.testing.assert_allclose(measured.manipulability, expected, rtol=1e-9)
    scaled = J * np.array([1, 1, 1, 0.5, 0.5, 0.5])[:, None]
    np.testing.assert_allclose(1.0 / measured.isotropy, np.linalg.cond(scaled), rtol=1e-6)
    assert limit_margin(robot, robot.lower[None]) == 0.0
    assert limit_margin(robot, (0.5 * (robot.lower + robot.upper))[None]) == pytest.approx(1.0)
    # Rotation of the tool about its own axis does not change its direction.
    turned = q.copy()
    turned[:, -1] = robot.random(50, np.random.default_rng(2))[:, -1]
    one, other = (dexterity(robot, Task.pointing("z"), 0.5, each) for each in (q, turned))
    np.testing.assert_allclose(one.manipulability, other.manipulability, rtol=1e-9)


def test_kinematics_digest_ignores_visual_geometry():
    text = "<robot name='r'><link name='a'>{}</link><link name='b'/>{}</robot>"
    arm = "<joint name='j' type='continuous'><parent link='a'/><child link='b'/></joint>"
    shape = "<visual><geometry><sphere radius='1'/></geometry></visual>"
    plain, dressed = (RobotModel.from_urdf(text.format(each, arm)) for each in ("", shape))
    assert kinematics_digest(plain) == kinematics_digest(dressed)
    assert kinematics_digest(plain) != kinematics_digest(planar_arm(1.0, 1.0))


def test_several_tips_are_refused():
    from robots import URDF

    two = RobotModel.from_urdf(URDF / "y_shape.urdf", tip=("E0", "E1"))
    with pytest.raises(ReachabilityError, match="one tip, not of 2"):
        reachability_map(two, 0.5)


def test_map_with_a_scene_counts_only_collision_free_poses(tmp_path):
    pytest.importorskip("coal")
    robot = RobotModel.wam()
    scene = PlanningScene(robot)
    scene.add_box("board", [0.4, 1.0, 0.02], transform(translation=[0.5, 0.0, 0.4]))
    region = [0.3, 0.7, -0.2, 0.2, 0.2, 0.6]
    options = {"resolution": 0.2, "orientations": 24, "region": region, "max_restarts": 20}
    alone = reachability_map(robot, **options)
    found = reachability_map(robot, **options, scene=scene, out=tmp_path / "map.npz")
    before = alone.voxels.reached
    assert (found.voxels.reached <= before).all()
    assert (found.voxels.reached + found.voxels.in_collision <= before + 1).all()
    lost = found.summary()["poses_only_in_collision"]
    assert lost == found.voxels.in_collision.sum() > 0.1 * before.sum()
    assert alone.summary()["poses_only_in_collision"] == 0
    assert found.lost.max() > 0.2
    same = MapJob(found.settings, robot.tree, pickle.loads(pickle.dumps(scene)))
    np.testing.assert_array_equal(solve_chunk(same, 0).reached, found.voxels.reached.ravel())
    scene.move("board", transform(translation=[0.5, 0.0, 0.5]))
    with pytest.raises(ReachabilityError, match="other settings"):
        reachability_map(robot, **options, scene=scene, out=tmp_path / "map.npz")
    with pytest.raises(ReachabilityError, match="without a scene"):
        map_picture(alone, "collisions")
    map_picture(found, "collisions")
