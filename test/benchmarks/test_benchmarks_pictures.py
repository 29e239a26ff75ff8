"""Pictures of the benchmarks: what they draw, and which files they refuse."""

import argparse

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")

from plot.plot_cases import assert_good, texts

from benchmarks.common import Column, Table
from benchmarks.pictures import add_plot, draw_shares, facets
from dls_ik.plot.canvas import new_figure


def test_shares_rise_to_what_came():
    figure = new_figure(6.0, 4.0)
    axes = figure.subplots()
    draw_shares(axes, {"all": [3.0, 1.0], "half": [2.0, np.nan]}, "time [s]", "how many")
    lines = [line.get_xydata().tolist() for line in axes.lines]
    assert lines[0] == [[0.0, 0.0], [1.0, 50.0], [3.0, 100.0], [3.0, 100.0]]
    assert lines[1] == [[0.0, 0.0], [2.0, 50.0], [3.0, 50.0]]
    assert_good(figure)


def test_facets_have_a_panel_for_each_pair_and_a_line_for_the_rest():
    columns = [
        Column(name) for name in ("path", "speed [m/s]", "loop [Hz]", "limits", "error [mm]")
    ]
    rows = [
        [path, speed, hz, limits, speed * hz]
        for path in ("circle", "line")
        for speed in (0.1, 0.5)
        for hz in (100.0, 500.0)
        for limits in ("velocity", "jerk")
    ]
    figure = facets(Table("", columns, rows), "path", "limits", "speed [m/s]", "error [mm]")
    assert len(figure.axes) == 4
    for axes in figure.axes:
        assert [line.get_ydata().tolist() for line in axes.lines] == [[10.0, 50.0], [50.0, 250.0]]
    assert "loop 500 Hz" in texts(figure)
    assert "line, limits jerk" in texts(figure)
    assert_good(figure)


def test_a_file_that_is_no_picture_is_refused_before_anything_is_measured(capsys):
    options = argparse.ArgumentParser()
    add_plot(options, "it")
    with pytest.raises(SystemExit):
        options.parse_args(["--plot", "figures.csv"])
    assert "one of .png, .svg, .pdf, not figures.csv" in capsys.readouterr().err
