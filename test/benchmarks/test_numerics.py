"""The campaign on numerics, in small: every method, and what its cases are."""

import numpy as np
import pytest

from benchmarks.numerics import Variant, cases, row, variants
from benchmarks.numerics_checks import bound_of
from dls_ik import IkSolver, RobotModel

PUMA, WAM = RobotModel.from_name("puma560"), RobotModel.wam()
COUNT = 400
NAMES = [variant for variant in variants(None) if not variant.name.startswith("kdl")]


@pytest.fixture(scope="module")
def known():
    return {robot: cases(robot, COUNT, 1) for robot in (WAM, PUMA)}


@pytest.mark.parametrize("variant", NAMES, ids=lambda variant: variant.label)
def test_nothing_breaks(variant, known):
    _, steps, longest, _, share, *broken, solves, _, violations, exceptions, _ = row(
        variant, known, COUNT
    )
    assert steps >= COUNT
    assert solves >= COUNT // 20
    assert np.isfinite(longest)
    assert share is None or share <= 1.0 + 1e-9
    assert broken == [0, 0, 0, 0]
    assert (violations, exceptions) == (0, 0)


def test_the_cases_are_what_they_are_said_to_be(known):
    for robot, (case,) in known.items():
        q, Ts = case
        assert (np.abs(q) > 1e3).any()
        assert ((q != 0.0) & (np.abs(q) < 1e-300)).any()
        assert (np.signbit(q) & (q == 0.0)).any()
        assert ((q == robot.lower) | (q == robot.upper)).any(axis=0).all()
        assert (q > robot.upper).any(axis=0).all()
        assert (q == np.nextafter(robot.upper, np.inf)).any()
        s = np.linalg.svd(robot.jacobian(robot.clip(q)), compute_uv=False)
        singular = (s[:, -1] < 1e-9 * s[:, 0]).mean()
        assert singular > 0.1
        assert (Ts == robot.fk(q)).all(axis=(1, 2)).any()
        assert np.linalg.norm(Ts[:, :3, 3], axis=1).max() > 1e6


def test_a_longer_step_than_the_bound_is_seen(known, monkeypatch):
    bound = bound_of("sd", OPTIONS, 7)
    monkeypatch.setattr("benchmarks.numerics_checks.bound_of", lambda *_: bound)
    found = row(Variant("sd", {}), {WAM: known[WAM]}, COUNT)
    assert found[6] > 0  # too long


OPTIONS = IkSolver(WAM, "sd", gamma_max=0.1).options
