# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Methods along a path: lines, labels beside them, statements that the figures bear out."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from matplotlib.text import Annotation
from plot.plot_cases import PLANAR, ROBOTS, WAM, assert_good, texts

from dls_ik import Task
from dls_ik.plot import path_comparison
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import PosePath, reach_path, singular_path
from dls_ik.text import short


@pytest.fixture(scope="module")
def wam():
    """A comparison of three methods, and its picture."""
    compared = compare_on_path(WAM, ["jp", "sd", "ctp+sd+svf"], singular_path(WAM))
    return compared, path_comparison(compared)


def test_path_comparison_lines_and_titles_match_the_runs(wam):
    compared, figure = wam
    assert_good(figure)
    panels = np.reshape(figure.axes, (4, 2))
    for i, (name, run) in enumerate(compared.along.items()):
        speed = panels[1, 1].lines[i]
        np.testing.assert_allclose(speed.get_ydata()[:-1], run.step / compared.path.dt)
        np.testing.assert_allclose(panels[0, 1].lines[i].get_ydata(), 1e3 * run.position_error)
        np.testing.assert_allclose(panels[2, 1].lines[i].get_ydata(), run.condition)
        np.testing.assert_allclose(
            panels[3, 0].lines[i].get_ydata(), compared.at_target[name].margin
        )
    words = texts(figure)
    for said in (
        "3 methods take wam7 through a singularity",
        "jp commands up to 14.7 rad/s, ctp+sd+svf 2.6",
        "jp reaches the target after 5 steps, sd after 69",
        "sd is off by up to 17 mm, jp by 2.7 mm",
        "limit 2",
    ):
        assert said in words, words


def test_every_panel_names_every_method_in_the_colour_of_its_line(wam):
    compared, figure = wam
    for axes in figure.axes:
        named = {each.get_text().split()[0]: each for each in axes.findobj(Annotation)}
        for line, name in zip(axes.lines, compared.along, strict=False):
            assert named[name].get_color() == line.get_color()


def test_path_comparison_marks_limit_violations_and_joint_units():
    task = Task.position_only()
    figure = path_comparison(compare_on_path(PLANAR, ["jp", "sd"], reach_path(PLANAR, task), task))
    assert_good(figure)
    assert "beyond a limit" in texts(figure)
    robot = ROBOTS["mixed"].narrowed([-1, 0, -1], [1, 0.4, 1])
    Ts = robot.fk(np.linspace([0.1, 0.1, 0.1], [0.3, 0.3, 0.3], 9))
    path = PosePath("along a line", Ts, 0.05, np.array([0.1, 0.1, 0.1]))
    figure = path_comparison(compare_on_path(robot, ["dls"], path, task), "Rail")
    assert_good(figure)
    assert "fastest joint [rad/s or m/s]" in texts(figure)


def test_path_comparison_labels_match_the_peaks_and_show_every_step(wam):
    found, figure = wam
    peaks = found.peaks()
    labels = [text.get_text() for text in figure.axes[1].texts]
    assert f"sd  {1e3 * peaks['sd'].largest_error:.1f}" in labels
    assert figure.axes[0].get_xlim()[1] == max(peak.iterations for peak in peaks.values()) > 60
    inside = figure.axes[0].get_lines()[3:]  # ends of the lines: dots, no lines across the data
    assert all(len(line.get_xdata()) == 1 for line in inside)


def test_titles_give_extremes_of_the_shown_iterations_only():
    """A former title gave the largest step of all iterations, also of those not shown."""
    path = PosePath("out of reach", WAM.fk(np.full((9, 7), 0.4)), 0.05, np.zeros(7))
    path.Ts[:, 0, 3] += np.linspace(0.0, 3.0, 9)
    compared = compare_on_path(WAM, ["jp"], path)
    panels = np.reshape(path_comparison(compared).axes, (4, 2))
    shown = int(panels[0, 0].get_xlim()[1])
    run = compared.at_target["jp"]
    assert shown < len(run.step)
    assert run.step[:shown].max() < run.step.max()  # otherwise this test proves nothing
    assert (
        panels[1, 0]
        .get_title(loc="left")
        .startswith(f"jp steps by up to {short(float(run.step[:shown].max()), 3)} rad")
    )
    assert len(panels[3, 0].lines[0].get_ydata()) == shown + 1
