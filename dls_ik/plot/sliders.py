# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pictures with sliders for Jupyter notebooks.

Without a running Jupyter kernel, such as on a web page, the notebook shows a static picture.
"""

from __future__ import annotations

import base64
import html
import importlib.util
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from dls_ik.errors import DlsIkError, OptionError
from dls_ik.plot.canvas import notebook_png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NUM_SLIDER_STEPS = 200  # number of steps from the lowest to the highest value of a slider
PNG, TEXT = "image/png", "text/plain"
SLIDER_WIDTH, SLIDER_NAME_WIDTH = "480px", "130px"


class Slider(NamedTuple):
    """Range and start value of a slider."""

    lowest: float
    start: float
    highest: float
    is_log: bool = False  # whether the scale is logarithmic; `lowest` must then be above 0
    label: str = ""  # text before the slider; if empty, the name of the argument is shown


class SliderPicture:
    """Picture that a function draws, with a slider for each argument of the function.

    As the last expression of a notebook cell, a SliderPicture is shown with its sliders. If
    ipywidgets is not installed or no Jupyter kernel runs, only the picture for the start values is
    shown.

    Args:
        draw: Function of the arguments in `sliders` that returns a figure.
        sliders: Slider of each argument, by the name of the argument.
    """

    def __init__(self, draw: Callable[..., Figure], sliders: dict[str, Slider]) -> None:
        self.draw = draw
        self.sliders = sliders
        self.values = {name: float(slider.start) for name, slider in sliders.items()}
        self._box: Any = None

    def __repr__(self) -> str:
        """Return a text with the names and current values of the drawing function's arguments."""
        values = ", ".join(f"{name}={value:.4g}" for name, value in self.values.items())
        return f"SliderPicture({values})"

    def png(self) -> bytes:
        """Draw the picture for the current slider values, and return it as PNG data."""
        return notebook_png(self.draw(**self.values))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the representations of the picture for Jupyter, by MIME type.

        They are a text, a PNG picture and, if ipywidgets is installed, the widget with the sliders.
        Jupyter shows the widget; programs that cannot run widgets show the PNG picture.
        """
        picture = self.png()
        bundle = {TEXT: repr(self), PNG: base64.b64encode(picture).decode()}
        if importlib.util.find_spec("ipywidgets") is not None:
            bundle.update(self.widget(picture)._repr_mimebundle_())
            bundle[TEXT] = repr(self)
        return bundle

    def widget(self, picture: bytes | None = None) -> Any:
        """Return the ipywidgets widget that contains the sliders and the picture.

        The widget is created by the first call.

        Args:
            picture: PNG data of the picture to show first; None draws it for the current values.

        Raises:
            DlsIkError: If ipywidgets is not installed.
        """
        try:
            import ipywidgets
        except ImportError as error:
            raise DlsIkError("sliders need ipywidgets: pip install 'dls-ik[notebook]'") from error
        if self._box is None:
            own_size = {"align_self": "flex-start", "width": "auto", "max_width": "100%"}
            image = ipywidgets.Image(value=picture or self.png(), format="png", layout=own_size)
            note = ipywidgets.HTML()
            controls = [self._control(ipywidgets, name) for name in self.sliders]
            for name, control in zip(self.sliders, controls, strict=True):
                control.observe(self._on_change(name, image, note), names="value")
            self._box = ipywidgets.VBox([*controls, note, image])
        return self._box

    def _control(self, ipywidgets: Any, name: str) -> Any:
        """Return an ipywidgets slider for the argument `name` of the drawing function.

        `ipywidgets` is the imported module.
        """
        slider = self.sliders[name]
        look = {
            "description": slider.label or name,
            "layout": {"width": SLIDER_WIDTH},
            "style": {"description_width": SLIDER_NAME_WIDTH},
            "readout_format": ".3g",
        }
        if slider.is_log:
            low, high = math.log10(slider.lowest), math.log10(slider.highest)
            step = (high - low) / NUM_SLIDER_STEPS
            return ipywidgets.FloatLogSlider(slider.start, min=low, max=high, step=step, **look)
        step = (slider.highest - slider.lowest) / NUM_SLIDER_STEPS
        return ipywidgets.FloatSlider(
            slider.start, min=slider.lowest, max=slider.highest, step=step, **look
        )

    def _on_change(self, name: str, image: Any, note: Any) -> Callable[[Any], None]:
        """Return a callback that draws the picture again when the slider of an argument has moved.

        If the drawing function raises :class:`DlsIkError`, the picture stays unchanged, and the
        error message is shown.

        Args:
            name: Name of the argument.
            image: Widget that shows the picture.
            note: Widget that shows the error message.
        """

        def redraw(change: Any) -> None:
            self.values[name] = float(change["new"])
            try:
                image.value = self.png()
                note.value = ""
            except DlsIkError as error:
                note.value = html.escape(str(error))

        return redraw


def with_sliders(draw: Callable[..., Figure], **sliders: Slider) -> SliderPicture:
    """Return a picture for a notebook, with a slider for each argument of a drawing function.

    As the last expression of a notebook cell, the picture is shown with its sliders. If ipywidgets
    is not installed or no Jupyter kernel runs, only the picture for the start values is shown.

    Args:
        draw: Function of the arguments in `sliders` that returns a figure of :func:`new_figure`.
        **sliders: Range and first value of each argument.

    Raises:
        OptionError: If no slider is given, if a slider's range is empty or does not contain the
            start value, or if a logarithmic slider's range does not start above 0.
    """
    if not sliders:
        raise OptionError(
            "no slider was given; give at least one Slider, named like an argument of the drawing "
            "function"
        )
    for name, slider in sliders.items():
        if not slider.lowest <= slider.start <= slider.highest or slider.lowest >= slider.highest:
            raise OptionError(
                f"slider {name} must have lowest <= start <= highest and lowest < highest; got "
                f"{slider.lowest:g}, {slider.start:g}, {slider.highest:g}"
            )
        if slider.is_log and slider.lowest <= 0.0:
            raise OptionError(
                f"the slider {name!r} is logarithmic, so its lowest value must be above 0; got "
                f"{slider.lowest:g}"
            )
    return SliderPicture(draw, sliders)
