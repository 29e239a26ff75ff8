"""The DASL arm of Matos: tool vertical, ticks of its servos."""

import numpy as np
import pytest

from dls_ik.reproduce import matos
from dls_ik.reproduce.experiment import reproduce

LONGEST = 50.0  # [cm] from the waist to the tip


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
    assert (np.abs(off) <= 0.5 * matos.RESOLUTION + 1e-12).all()


MOST = 10.0 * LONGEST * np.radians(0.5 * matos.RESOLUTION).sum()  # [mm] half a tick of each joint


@pytest.mark.parametrize("way", matos.WAYS)
def test_every_way_reaches_every_point_with_the_tool_vertical_but_for_rounding(report, way):
    rows = path(report, way)
    assert len(rows) == 6
    assert np.max([row["before"] for row in rows]) <= 10.0 * matos.TOLERANCE
    assert np.max([row["lean"] for row in rows]) < 0.01
    for row in rows:
        assert all(isinstance(row[joint], int) for joint in matos.JOINTS)
        assert row["after"] <= MOST
        assert row["tilt"] <= 0.5 * (0.088 + 0.088 + 0.29) + 0.01


def test_the_ways_agree_with_each_other_and_the_example_of_the_text(report):
    for rows in zip(*(path(report, way) for way in matos.WAYS), strict=True):
        for joint in matos.JOINTS:
            sent = [row[joint] for row in rows]
            assert max(sent) - min(sent) <= 1
    assert report.rows[0]["ticks"] == report.printed[0]["ticks"]
    points = matos.waypoints(7)
    np.testing.assert_allclose(points[[0, -1]], matos.CORNERS[[0, -1]])
    assert len(matos.plot(report).axes) == 3


def test_coupling_in_the_model_takes_fewer_steps(report):
    written, coupled, _ = ([r["iterations"] for r in path(report, way)] for way in matos.WAYS)
    assert sum(coupled) < sum(written)
