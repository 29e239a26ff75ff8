# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The same problem by several methods."""

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import PLANAR, WAM, assert_good, texts

from dls_ik import IkSolver, Stepper, Task
from dls_ik.errors import OptionError
from dls_ik.plot import compare_methods

GOALS = WAM.fk(WAM.random(20, np.random.default_rng(0)))


def traces(names, steps=12):
    """Traces to a target out of reach."""
    T = np.eye(4)
    T[0, 3] = 2.1
    plane = Task("xy", "")
    return {name: Stepper(PLANAR, name, [0.2, 1.2], task=plane).run(T, steps) for name in names}


def test_compare_methods_draws_error_and_step_norms():
    found = traces(["jd", "svf"])
    figure = compare_methods(found)
    assert_good(figure)
    error, step = figure.axes
    for i, trace in enumerate(found.values()):
        np.testing.assert_allclose(error.lines[i].get_ydata(), np.linalg.norm(trace.error, axis=1))
        moved = np.linalg.norm(np.diff(trace.q, axis=0), axis=1)
        np.testing.assert_allclose(step.lines[i].get_ydata(), np.where(moved > 0.0, moved, np.nan))
    assert error.get_yscale() == step.get_yscale() == "log"


def test_ten_methods_have_distinct_line_styles():
    names = ["jp", "jt", "jd", "jf", "svf", "ed", "sd", "sdls", "dls", "odls"]
    figure = compare_methods(traces(names, 3))
    looks = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines}
    assert len(looks) == len(names)
    assert_good(figure)


def test_bars_of_batches_are_shares_times_and_iterations():
    results = {name: IkSolver(WAM, name).solve_batch(GOALS) for name in ("auto", "jd")}
    figure = compare_methods(results=results)
    assert_good(figure, units=False)
    solved, time, iterations = figure.axes
    for bars, expected in (
        (solved, [100.0 * r.success.mean() for r in results.values()]),
        (time, [1e3 * r.duration / 20 for r in results.values()]),
        (iterations, [r.iterations.mean() for r in results.values()]),
    ):
        np.testing.assert_allclose([bar.get_width() for bar in bars.patches], expected)
    assert [label.get_text() for label in solved.get_yticklabels()] == ["auto", "jd"]


def test_single_poses_show_the_error_that_is_left():
    far = GOALS[0] + 5.0 * np.eye(4, k=3)
    results = {
        "near": IkSolver(WAM).solve(GOALS[0]),
        "far": IkSolver(WAM).solve(far),
        "no pose": IkSolver(WAM).solve_batch(np.full((1, 4, 4), np.nan))[0],
    }
    figure = compare_methods(results=results)
    assert_good(figure, units=False)
    assert figure.axes[0].get_xlabel() == "position [m]"
    assert texts(figure).count("not reached") == 2


def test_solution_outside_the_limits_is_labelled():
    T = np.eye(4)
    T[:2, 3] = 1.2, 0.5
    beyond = IkSolver(PLANAR, "jp").solve(T, task=Task.position_only())
    assert str(beyond.status) == "OUTSIDE_LIMITS"
    figure = compare_methods(results={"jp": beyond, "auto": IkSolver(WAM).solve(GOALS[0])})
    assert_good(figure, units=False)
    assert texts(figure).count("outside the limits") == 1


def test_lines_and_bars_share_their_colours():
    results = {"jd": IkSolver(WAM, "jd").solve(GOALS[0])}
    figure = compare_methods(traces(["svf", "jd"]), results, title="what it says")
    assert_good(figure, units=False)
    assert "what it says" in texts(figure)
    from matplotlib.colors import to_rgba

    line, bar = figure.axes[0].lines[1], figure.axes[2].patches[0]
    assert to_rgba(line.get_color()) == bar.get_facecolor()


def test_nothing_to_compare_is_refused():
    with pytest.raises(OptionError, match="at least one method"):
        compare_methods({}, {})
    with pytest.raises(OptionError, match="trace of jd has no step"):
        compare_methods(traces(["jd"], 0))
