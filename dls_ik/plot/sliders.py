# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""A picture with sliders for notebooks, which is a static picture where no kernel runs."""

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

NUM_SLIDER_STEPS = 200  # number of positions of a slider between its two ends
PNG, TEXT = "image/png", "text/plain"
SLIDER_WIDTH, SLIDER_NAME_WIDTH = "480px", "130px"


class Slider(NamedTuple):
    """Range and first value of a slider.

    The slider is logarithmic if `is_log` is true.
    """

    lowest: float
    start: float
    highest: float
    is_log: bool = False
    label: str = ""  # text before the slider; by default the name of the argument


class SliderPicture:
    """Picture of a drawing function, with a slider for each of its arguments.

    A notebook shows the sliders if it is the last expression of a cell and ipywidgets is installed.
    Otherwise, and where no kernel runs, the notebook shows the picture of the start values.

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
        """Return the names and values of the arguments."""
        values = ", ".join(f"{name}={value:.4g}" for name, value in self.values.items())
        return f"SliderPicture({values})"

    def png(self) -> bytes:
        """Return the picture of the current values as a PNG file."""
        return notebook_png(self.draw(**self.values))

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the picture, and the sliders if ipywidgets is installed.

        Jupyter shows the sliders, and other readers of a notebook file show the picture.
        """
        picture = self.png()
        bundle = {TEXT: repr(self), PNG: base64.b64encode(picture).decode()}
        if importlib.util.find_spec("ipywidgets") is not None:
            bundle.update(self.widget(picture)._repr_mimebundle_())
            bundle[TEXT] = repr(self)
        return bundle

    def widget(self, picture: bytes | None = None) -> Any:
        """Return the ipywidgets box of the sliders and the picture.

        Args:
            picture: PNG file that is shown first; None stands for the picture of the values.

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
        """Return the ipywidgets slider of an argument."""
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
        """Return the callback that draws the picture anew when a slider has moved.

        If the drawing function refuses the values, the note says why, and the picture stays.
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
    """Return a picture with a slider for each argument of a drawing function.

    As the last expression of a notebook cell, the picture shows itself with its sliders. Where
    ipywidgets is not installed or no kernel runs, the notebook shows the picture of the start
    values.

    Args:
        draw: Function of the arguments in `sliders` that returns a figure of :func:`new_figure`.
        **sliders: Range and first value of each argument.

    Raises:
        OptionError: If there is no slider, a start value is not within its range, or a logarithmic
            range does not start above 0.
    """
    if not sliders:
        raise OptionError("sliders is empty; give at least one argument of the drawing function")
    for name, slider in sliders.items():
        if not slider.lowest <= slider.start <= slider.highest or slider.lowest >= slider.highest:
            raise OptionError(
                f"slider {name} must have lowest <= start <= highest and lowest < highest; got "
                f"{slider.lowest:g}, {slider.start:g}, {slider.highest:g}"
            )
        if slider.is_log and slider.lowest <= 0.0:
            raise OptionError(
                f"slider {name} is logarithmic, so lowest must be above 0; got {slider.lowest:g}"
            )
    return SliderPicture(draw, sliders)
