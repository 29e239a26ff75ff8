# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures with sliders: the static picture, the sliders, and what they do."""

import base64
import io
import sys

import pytest

from dls_ik import DlsIkError, RobotModel, Stepper, Task
from dls_ik.plot import Slider, new_figure, with_sliders

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from PIL import Image

WIDGET = "application/vnd.jupyter.widget-view+json"


def draw(width, lambda_):
    figure = new_figure(width, 2.0)
    figure.subplots().plot([0.0, lambda_])
    return figure


def picture(**sliders):
    given = {"width": Slider(2.0, 3.0, 4.0), "lambda_": Slider(0.01, 0.1, 1.0, is_log=True)}
    return with_sliders(draw, **{**given, **sliders})


def width_of(png):
    with Image.open(io.BytesIO(png)) as image:
        return image.width


def test_without_ipywidgets_a_notebook_shows_the_picture_of_the_start_values(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    shown = picture()
    bundle = shown._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain"}
    assert bundle["text/plain"] == "SliderPicture(width=3, lambda_=0.1)"
    assert width_of(base64.b64decode(bundle["image/png"])) == 270
    with pytest.raises(DlsIkError, match=r"pip install 'dls-ik\[notebook\]'"):
        shown.widget()


def test_with_ipywidgets_the_sliders_come_beside_the_picture():
    pytest.importorskip("ipywidgets", reason="needs the extra notebook")
    bundle = picture()._repr_mimebundle_()
    assert set(bundle) == {"image/png", "text/plain", WIDGET}
    assert bundle[WIDGET]["model_id"]


def test_a_moved_slider_draws_the_picture_anew():
    pytest.importorskip("ipywidgets", reason="needs the extra notebook")
    shown = picture()
    width, lambda_, note, image = shown.widget().children
    assert (width.value, width.min, width.max) == (3.0, 2.0, 4.0)
    assert lambda_.value == pytest.approx(0.1)
    assert (lambda_.min, lambda_.max) == (-2.0, 0.0)  # powers of 10
    first = image.value
    width.value = 4.0
    assert width_of(image.value) == 360
    assert shown.values["width"] == 4.0
    width.value = 3.0
    assert image.value == first
    assert note.value == ""
    assert shown.widget() is shown.widget()


def test_values_that_are_refused_leave_the_picture_and_say_why():
    pytest.importorskip("ipywidgets", reason="needs the extra notebook")
    robot = RobotModel.from_name("planar_2r")

    def svf(sigma0):
        Stepper(robot, "svf", task=Task("xy", ""), sigma0=sigma0)
        return new_figure(2.0, 2.0 + sigma0)

    sigma0, note, image = with_sliders(svf, sigma0=Slider(0.01, 0.1, 1.0)).widget().children
    first = image.value
    sigma0.value = 0.5
    assert "2 &gt; nu * sigma0; got nu=10.0, sigma0=0.5" in note.value
    assert image.value == first
    sigma0.value = 0.15
    assert note.value == ""


@pytest.mark.parametrize(
    ("slider", "message"),
    [
        (Slider(1.0, 0.5, 2.0), "width must have lowest <= start <= highest .* got 1, 0.5, 2"),
        (Slider(1.0, 1.0, 1.0), "lowest < highest; got 1, 1, 1"),
        (Slider(0.0, 0.5, 1.0, is_log=True), "lowest value must be above 0; got 0"),
    ],
)
def test_a_slider_whose_range_is_wrong_is_refused(slider, message):
    with pytest.raises(DlsIkError, match=message):
        picture(width=slider)


def test_a_picture_needs_a_slider():
    with pytest.raises(DlsIkError, match="at least one Slider"):
        with_sliders(draw)
