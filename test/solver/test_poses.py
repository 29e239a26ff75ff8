# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Poses, seeds and timeouts of a solve: accepted forms and refused values."""

import numpy as np
import pytest
from oracle import rigid, rotation

from dls_ik import IkSolver, RobotModel, Status
from dls_ik.errors import DlsIkError, JointValueError, OptionError, PoseError
from dls_ik.model.pose import validated_pose
from dls_ik.solver.poses import checked_poses

WAM = RobotModel.wam()
SOLVER = IkSolver(WAM, max_restarts=200)
GOOD = WAM.fk([0.3, -0.5, 0.7, 1.2, -0.4, 0.6, 1.0])
START = np.full(7, 0.1)


def solve(T):
    return SOLVER.solve(T, START, timeout=3600.0)


def pose_with_rotation(R):
    return rigid(R, GOOD[:3, 3])


def changed_pose(*entries):
    T = GOOD.copy()
    for i, j, value in entries:
        T[i, j] = value
    return T


R = GOOD[:3, :3]
MIRRORED, SCALED = pose_with_rotation(R @ np.diag([1.0, 1.0, -1.0])), pose_with_rotation(1.01 * R)
BAD = {  # values, and words of the message
    "none": (None, ["4x4"]),
    "text": ("pose", ["4x4", "'pose'"]),
    "words": ([["a"] * 4] * 4, ["4x4"]),
    "ragged": ([[1.0, 0.0], [0.0]], ["4x4"]),
    "a dict": ({"x": 1}, ["4x4"]),
    "3x4": (GOOD[:3], ["4x4", "(3, 4)"]),
    "one number": (1.0, ["4x4"]),
    "a list of poses": ([GOOD, GOOD], ["4x4"]),
    "16 numbers": (GOOD.ravel(), ["4x4"]),
    "empty": (np.empty((0, 4, 4)), ["4x4"]),
    "nan": (changed_pose((0, 3, np.nan)), ["finite", "nan"]),
    "nan in the rotation": (changed_pose((1, 1, np.nan)), ["finite", "nan"]),
    "nan in the last row": (changed_pose((3, 2, np.nan)), ["finite", "nan"]),
    "minus inf": (changed_pose((0, 0, -np.inf)), ["finite", "inf"]),
    "last row": (changed_pose((3, 0, 0.1)), ["(0, 0, 0, 1)", "0.1"]),
    "last entry": (changed_pose((3, 3, 2.0)), ["(0, 0, 0, 1)"]),
    "transposed": (GOOD.T.copy(), ["last row", "use T.T"]),
    "zero": (np.zeros((4, 4)), ["last row"]),
    "scaled": (
        SCALED,
        ["rotation", "differs by 0.02", "0.001 is allowed", "scaled by 1.01"],
    ),
    "shrunk": (pose_with_rotation(0.99 * R), ["rotation"]),
    "mirrored": (MIRRORED, ["rotation", "reflection", "sign of one column"]),
    "point reflection": (pose_with_rotation(-R), ["rotation"]),
    "sheared": (pose_with_rotation(R @ (np.eye(3) + 0.01 * np.eye(3, k=1))), ["rotation"]),
    "flat": (pose_with_rotation(R @ np.diag([1.0, 1.0, 0.0])), ["rotation"]),
    "rough": (pose_with_rotation(R + 0.01), ["differs by 0.", "U @ Vt", "numpy.linalg.svd"]),
    **{
        f"{far:g} m": (changed_pose((1, 3, far)), ["1e+09 m"])
        for far in (1.1e9, -1e10, 1e200, 1e305)
    },
}


@pytest.mark.parametrize("kind", BAD)
def test_invalid_poses_are_refused_with_value_and_remedy(kind):
    T, words = BAD[kind]
    for check in (validated_pose, solve):
        with pytest.raises(PoseError) as caught:
            check(T)
        assert isinstance(caught.value, DlsIkError)
        assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("kind", [np.float32, np.float16, np.longdouble])
def test_poses_of_other_float_types_are_solved(kind):
    T = GOOD.astype(kind)
    result = solve(T)
    assert result.success
    np.testing.assert_allclose(WAM.fk(result.q), GOOD, atol=2e-3 if kind is np.float16 else 2e-6)


def test_integer_poses_are_converted_to_float64():
    assert validated_pose(np.eye(4, dtype=int)).dtype == np.float64


def test_given_arrays_are_not_changed():
    T, seed = pose_with_rotation(R + 1e-5), START.copy()
    kept = T.copy()
    SOLVER.solve(T, seed, timeout=3600.0)
    np.testing.assert_array_equal(T, kept)
    np.testing.assert_array_equal(seed, START)


@pytest.mark.parametrize("size", [1e-13, 1e-10, 1e-7, 1e-4])
def test_inexact_rotations_are_corrected(size):
    noise = np.random.default_rng(1).uniform(-size, size, (3, 3))
    polished = validated_pose(pose_with_rotation(R + noise))
    S = polished[:3, :3]
    np.testing.assert_allclose(S @ S.T, np.eye(3), atol=1e-12)
    np.testing.assert_allclose(S, R, atol=3 * size)
    result = solve(pose_with_rotation(R + noise))
    assert result.success
    np.testing.assert_allclose(WAM.fk(result.q)[:3, :3], S, atol=2e-6)


def test_the_closest_rotation_is_used():
    # The closest rotation in the Frobenius norm is R
    R_stretched = R @ np.diag([1.0002, 0.9999, 1.0])
    np.testing.assert_allclose(
        validated_pose(pose_with_rotation(R_stretched))[:3, :3], R, atol=1e-12
    )


def test_rotations_rounded_to_four_digits_are_accepted():
    T = pose_with_rotation(np.round(rotation([1, 2, 3], 0.7) @ R, 4))
    assert np.linalg.norm(validated_pose(T)[:3, :3] - T[:3, :3]) < 2e-4


@pytest.mark.parametrize("far", [1e3, 1e6, 1e9, -1e9])
def test_far_positions_give_finite_answers(far):
    T = changed_pose((0, 3, far))
    result = SOLVER.solve(T, START, timeout=3600.0)
    assert result.status is Status.UNREACHABLE
    assert WAM.within_limits(result.q)
    assert result.position_error == pytest.approx(abs(far), rel=0.01)


def test_the_remedy_in_the_message_corrects_a_rotation():
    rough = R + 0.01
    U, _, Vt = np.linalg.svd(rough)
    assert solve(pose_with_rotation(U @ Vt))


def test_poses_for_one_and_several_tips_become_contiguous_arrays():
    two = np.array([GOOD, np.eye(4)])
    assert checked_poses(two, 2) is two
    ones = [(Ts, two[:1]) for Ts in (GOOD, GOOD[None], [GOOD], GOOD.tolist(), [GOOD.tolist()])]
    twos = [(Ts, two) for Ts in ([GOOD, np.eye(4)], two.tolist(), np.asfortranarray(two))]
    for Ts, expected in ones + twos:
        poses = checked_poses(Ts, len(expected))
        assert (poses.dtype, poses.flags.carray) == (np.float64, True)
        np.testing.assert_array_equal(poses, expected)
    two[1, :3, :3] += 1e-5
    kept = two.copy()
    rotation = checked_poses(two, 2)[1, :3, :3]  # made exact in a copy
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(3), atol=1e-12)
    np.testing.assert_array_equal(two, kept)


@pytest.mark.parametrize(
    ("Ts", "k", "words"),
    [
        ([GOOD, GOOD], 1, ["4x4", "(2, 4, 4)"]),
        ([], 1, ["4x4"]),
        (np.array(1.0), 1, ["4x4"]),
        ([[1.0, 0.0], [0.0]], 1, ["4x4"]),
        (GOOD, 2, ["2 tips", "2 poses", "(4, 4)"]),
        ([GOOD], 2, ["2 tips", "got 1"]),
        (np.array([GOOD] * 3), 2, ["2 tips", "(3, 4, 4)"]),
        (3.0, 2, ["2 tips", "3.0"]),
        (None, 2, ["2 tips", "None"]),
        ([GOOD, np.zeros((4, 4))], 2, ["pose 2 of 2", "last row"]),
        ([GOOD * np.nan, GOOD], 2, ["pose 1 of 2", "finite"]),
        ([GOOD, "home"], 2, ["pose 2 of 2", "'home'"]),
    ],
)
def test_invalid_poses_for_several_tips_are_refused(Ts, k, words):
    with pytest.raises(PoseError) as caught:
        checked_poses(Ts, k)
    assert [word for word in words if word not in str(caught.value)] == []


Q = np.array([0.3, -0.5, 0.7, 1.2, -0.4, 0.6, 1.0])
SEED = np.linspace(-0.5, 0.5, 7)
BAD_SEEDS = {
    "short": np.zeros(6),
    "long": np.zeros(8),
    "nan": np.where(np.arange(7) == 3, np.nan, 0.0),
    "inf": np.where(np.arange(7) == 3, -np.inf, 0.0),
    "a row": np.zeros((1, 7)),
    "a column": np.zeros((7, 1)),
    "one number": 0.0,
    "empty": [],
    "text": "zero",
    "words": ["a"] * 7,
    "none inside": [None] * 7,
    "ragged": [[0.0], 1.0],
    "a dict": {},
}


@pytest.mark.parametrize("kind", BAD_SEEDS)
def test_invalid_seeds_are_refused(kind):
    with pytest.raises(JointValueError) as caught:
        SOLVER.solve(GOOD, BAD_SEEDS[kind])
    assert isinstance(caught.value, DlsIkError)


def test_messages_about_seeds_name_the_joint():
    with pytest.raises(JointValueError, match=r"wam_j4.*nan"):
        SOLVER.solve(GOOD, BAD_SEEDS["nan"])
    with pytest.raises(JointValueError, match=r"7.*\(6,\)"):
        SOLVER.solve(GOOD, BAD_SEEDS["short"])


@pytest.mark.parametrize("name", ["ed", "ctp+sd+svf"])
def test_without_a_seed_a_published_method_starts_mid_range(name):
    solver = IkSolver(WAM, name)
    expected = solver.solve(GOOD, 0.5 * (WAM.lower + WAM.upper), timeout=3600.0)
    np.testing.assert_array_equal(solver.solve(GOOD, timeout=3600.0).q, expected.q)


def test_without_a_seed_auto_starts_near_the_pose():
    Ts = WAM.fk(WAM.random(200, np.random.default_rng(5)))
    near, middle = SOLVER.solve_batch(Ts), SOLVER.solve_batch(Ts, 0.5 * (WAM.lower + WAM.upper))
    assert near.success.all()
    assert near.iterations.mean() < 0.8 * middle.iterations.mean()


@pytest.mark.parametrize("far", [0.1, 1.0, 10.0, 1e3, 1e9, 1e300])
def test_seeds_outside_the_limits_give_answers_within(far):
    rng = np.random.default_rng(1)
    for _ in range(10):
        seed = np.where(rng.random(7) < 0.5, WAM.lower - far, WAM.upper + far)
        result = SOLVER.solve(WAM.fk(WAM.random(rng=rng)), seed, timeout=3600.0)
        assert result.success
        assert (result.q >= WAM.lower).all()
        assert (result.q <= WAM.upper).all()


@pytest.mark.parametrize("seed", [WAM.lower, WAM.upper, Q])
def test_seeds_at_the_solution_are_returned_unchanged(seed):
    result = SOLVER.solve(WAM.fk(seed), seed, timeout=3600.0)
    assert (result.success, result.iterations, result.restarts) == (True, 0, 0)
    np.testing.assert_array_equal(result.q, seed)


@pytest.mark.parametrize("timeout", [-1.0, -1e-9, np.nan, np.inf, 1e9, "soon", [1.0], 1j])
def test_invalid_timeouts_are_refused(timeout):
    with pytest.raises(OptionError, match="timeout"):
        SOLVER.solve(GOOD, SEED, timeout=timeout)


@pytest.mark.parametrize("timeout", [0, 0.0, 1e-9, 1, np.float64(0.5), np.float32(0.5), 3600])
def test_valid_timeouts_are_accepted(timeout):
    result = SOLVER.solve(WAM.fk(SEED), SEED, timeout)
    assert result.success


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda solver, T: solver.solve(None), "got None"),
        (lambda solver, T: solver.solve([T, T]), "use solve_batch for several poses"),
        (lambda solver, T: solver.solve_batch(T), "use solve for a single pose"),
        (lambda solver, T: solver.solve(T, "home"), "or a mapping by name; got 'home'"),
        (lambda solver, T: solver.solve(T, np.zeros((2, 7))), "give one of its rows"),
    ],
)
def test_refusals_of_common_mistakes_say_how_to_correct_them(call, said):
    with pytest.raises(DlsIkError) as caught:
        call(IkSolver(WAM), GOOD)
    assert said in str(caught.value)
