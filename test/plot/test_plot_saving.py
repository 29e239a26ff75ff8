# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Saved pictures, and docs/pictures.md: its lines make its pictures, with every function."""

import io
import pickle
import re
from itertools import cycle

import numpy as np
import pytest

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("PIL", reason="Pillow is not installed")
pytest.importorskip("coal", reason="coal is not installed")

from PIL import Image
from plot.plot_cases import PLANAR, SIGNATURES, swing
from programs import run_python
from robots import ROOT

from dls_ik import IkSolver, PlanningScene, RobotModel, Stepper, Task, plot
from dls_ik.errors import DlsIkError
from dls_ik.plot import check_picture, new_figure, save_picture, stroboscope
from dls_ik.solver.comparison import compare_on_path
from dls_ik.solver.hard_paths import PosePath

TIMES, Q = swing(PLANAR)
T = PLANAR.fk(Q)
RUN = Stepper(PLANAR, "jd", Q[0]).run(T[-1], 5)
SCENE = PlanningScene(RobotModel.wam(), srdf="<robot name='wam7'/>")
FIGURES = {
    "arm_among_obstacles": lambda: plot.arm_among_obstacles(SCENE, np.zeros(7)),
    "configurations": lambda: plot.configurations(PLANAR, Q[:2]),
    "compare_methods": lambda: plot.compare_methods({"jd": RUN}),
    "error_and_conditioning": lambda: plot.error_and_conditioning(PLANAR, TIMES, Q, T[0]),
    "joint_bands": lambda: plot.joint_bands(PLANAR, TIMES, Q),
    "joint_velocities": lambda: plot.joint_velocities(PLANAR, TIMES, Q),
    "path_comparison": lambda: plot.path_comparison(
        compare_on_path(PLANAR, ["jd"], PosePath("along a line", T, 0.1, Q[0]))
    ),
    "path_in_space": lambda: plot.path_in_space(
        IkSolver(PLANAR, task=Task("xy", "")).solve_path(T, Q[0]), T
    ),
    "stroboscope": lambda: plot.stroboscope(PLANAR, TIMES, Q),
    "tip_path": lambda: plot.tip_path(PLANAR, TIMES, Q, T[:, :3, 3]),
    "tip_planes": lambda: plot.tip_planes(PLANAR, TIMES, Q, T[:, :3, 3]),
}


PAGE = (ROOT / "docs" / "pictures.md").read_text()
SHOWN = re.findall(r"^!\[.+\]\(images/(plot_.+)\)$", PAGE, flags=re.MULTILINE)
MOST = 150_000  # bytes


def test_every_plot_function_is_tested_and_on_the_pictures_page():
    others = {
        "Slider",
        "SliderPicture",
        "check_picture",
        "new_figure",
        "path_title",
        "save_picture",
        "with_sliders",
    }
    drawing = set(plot.__all__) - others
    assert set(FIGURES) == drawing
    assert drawing <= set(re.findall(r"^figure = (\w+)\(", PAGE, flags=re.MULTILINE))
    for name in SHOWN:
        assert 5_000 < (ROOT / "docs" / "images" / name).stat().st_size < MOST


@pytest.mark.parametrize(("name", "suffix"), [*zip(FIGURES, cycle(SIGNATURES), strict=False)])
def test_pictures_are_saved_in_the_format_of_the_suffix(name, suffix, tmp_path):
    file = tmp_path / f"picture.{suffix}"
    save_picture(file, FIGURES[name](), dpi=40)
    assert file.read_bytes().startswith(SIGNATURES[suffix])


@pytest.mark.parametrize("suffix", SIGNATURES)
def test_the_same_picture_is_the_same_file(suffix, tmp_path):
    files = [tmp_path / f"{i}.{suffix}" for i in range(2)]
    for file in files:
        save_picture(file, FIGURES["joint_bands"]())
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.parametrize("name", ["picture", "picture.bmp", "picture.txt"])
def test_other_kinds_of_file_are_refused(name, tmp_path):
    with pytest.raises(DlsIkError, match=rf"\.svg.*got {name}"):
        check_picture(tmp_path / name)
    with pytest.raises(DlsIkError):
        save_picture(tmp_path / name, stroboscope(PLANAR, *swing(PLANAR)))
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_snippets_of_the_page_create_its_pictures(tmp_path):
    done = run_python(ROOT / "docs" / "make_pictures.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(SHOWN)
    for path in tmp_path.iterdir():
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size < MOST


def test_figure_has_a_notebook_png_and_can_be_pickled():
    """By its own method, as no backend of a notebook is asked."""
    figure = new_figure(4.0, 3.0)
    figure.subplots().plot([1, 2])
    shown = figure._repr_png_()
    assert shown == figure._repr_png_()
    with Image.open(io.BytesIO(shown)) as image:
        assert image.size == (360, 270)
    kept = pickle.loads(pickle.dumps(figure))
    assert kept._repr_png_() == shown
