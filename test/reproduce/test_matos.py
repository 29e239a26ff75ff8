# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The DASL arm of Matos: vertical tool, ticks of its servos."""

from itertools import pairwise

import numpy as np
import pytest

from dls_ik.reproduce import matos
from dls_ik.reproduce.experiment import reproduce

LONGEST = 50.0  # maximum distance from the waist to the tip [cm]


@pytest.fixture(scope="module")
def report():
    return reproduce(matos.DASL, samples=6)


def path(report, way):
    return [row for row in report.rows if row.get("way") == way]


def test_coupling_keeps_the_tool_vertical():
    rng = np.random.default_rng(3)
    robot, coupled = matos.arm(), matos.coupled_arm()
    for q in rng.uniform(-3.0, 3.0, (20, 4)):
        T = robot.fk(matos.with_wrist(q))
        np.testing.assert_allclose(T[:3, 2], [0.0, 0.0, -1.0], atol=1e-12)
        np.testing.assert_allclose(coupled.fk(q), T, atol=1e-12)


def test_ticks_are_the_nearest():
    q = np.radians([50.0, -50.0, 0.05, 50.0, -0.1])
    assert matos.ticks(q).tolist() == [568, -568, 1, 172, 0]
    q = np.linspace(-2.0, 2.0, 5)
    off = np.degrees(matos.angles(matos.ticks(q)) - q)
    assert (np.abs(off) <= 0.5 * matos.TICK_ANGLES + 1e-12).all()


MOST = 10.0 * LONGEST * np.radians(0.5 * matos.TICK_ANGLES).sum()  # [mm] half a tick of each joint


@pytest.mark.parametrize("way", matos.POINTING_METHODS)
def test_every_method_reaches_all_points_with_a_vertical_tool(report, way):
    rows = path(report, way)
    assert len(rows) == 6
    assert np.max([row["before"] for row in rows]) <= 10.0 * matos.SOLVE_TOLERANCE
    assert np.max([row["lean"] for row in rows]) < 0.01
    for row in rows:
        assert all(isinstance(row[joint], int) for joint in matos.JOINTS)
        assert row["after"] <= MOST
        assert row["tilt"] <= 0.5 * (0.088 + 0.088 + 0.29) + 0.01


def test_methods_agree_with_each_other_and_the_printed_example(report):
    for rows in zip(*(path(report, way) for way in matos.POINTING_METHODS), strict=True):
        for joint in matos.JOINTS:
            sent = [row[joint] for row in rows]
            assert max(sent) - min(sent) <= 1
    assert report.rows[0]["ticks"] == report.printed[0]["ticks"]
    points = matos.waypoints(7)
    np.testing.assert_allclose(points[[0, -1]], matos.PATH_CORNERS[[0, -1]])
    assert len(matos.plot(report).axes) == 4


def test_coupling_in_the_model_takes_fewer_steps(report):
    written, coupled, _ = (
        [r["iterations"] for r in path(report, way)] for way in matos.POINTING_METHODS
    )
    assert sum(coupled) < sum(written)


def as_his_code(q, point, to_radians):
    """Return q after one iteration: 6 rows by cross products, rotation error 0."""
    A, axes, places = np.eye(4), [], []
    for angle, row in zip(q, matos.DH_ROWS, strict=True):
        axes.append(A[:3, 2])
        places.append(A[:3, 3])
        c, s, ca, sa = np.cos(angle), np.sin(angle), np.cos(row.alpha), np.sin(row.alpha)
        A = A @ [
            [c, -s * ca, s * sa, row.a * c],
            [s, c * ca, -c * sa, row.a * s],
            [0.0, sa, ca, row.d],
            [0.0, 0.0, 0.0, 1.0],
        ]
    J = np.vstack([np.cross(axes, A[:3, 3] - places).T, np.array(axes).T])
    e = np.concatenate([point - A[:3, 3], np.zeros(3)])
    t = J.T @ np.linalg.inv(J @ J.T + np.eye(6)) @ e * to_radians
    th1, th2, th3, _, th5 = q + t
    return np.array([th1, th2, th3, th2 - th3, th5])


@pytest.mark.parametrize("form", [matos.Form(), matos.Form(converts=False)])
def test_his_loop_matches_a_direct_version_of_the_published_code(form):
    found = matos.his_loop(matos.PATH_CORNERS[0], matos.SERVO_HOME, form)
    to_radians = np.pi / 180.0 if form.converts else 1.0
    for q, following in pairwise(found):
        expected = as_his_code(q, matos.PATH_CORNERS[0], to_radians)
        np.testing.assert_allclose(following, expected, atol=1e-12)
    off = np.abs(matos.arm().fk(found[-2:])[:, :3, 3] - matos.PATH_CORNERS[0])
    # Reached one step earlier; his code tests after the step
    assert (off < matos.MAX_AXIS_ERROR).all()


def test_only_the_unit_conversion_makes_a_move_take_100_iterations(report):
    rows = {row["form"]: row for row in report.series["his code"]}
    moves = [f"move {i}" for i in (1, 2, 3)]
    assert all(100 <= rows[matos.AS_WRITTEN][move] <= 200 for move in moves)
    assert all(rows["as in the text"][move] <= 5 for move in moves)
    assert rows[matos.AS_WRITTEN]["longest"] <= 10 < rows["as in the text"]["longest"]
    sent = [np.asarray(move["ticks"]) for move in report.series["gradual motion"]]
    for before, after in pairwise(sent):
        np.testing.assert_array_equal(before[-1], after[0])
    assert [len(each) - 1 for each in sent] == [rows[matos.AS_WRITTEN][move] for move in moves]
