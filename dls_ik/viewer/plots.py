"""Live plots: what is measured over the last seconds, a line for each arm."""

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from dls_ik.core.types import Array
from dls_ik.viewer.colours import ARMS, css
from dls_ik.viewer.measures import Measures
from dls_ik.viewer.source import Sample

SECONDS, KEPT = 10.0, 250  # shown, and points of a line
HEIGHT = 128  # [px] of a plot
LARGEST = 1e6  # a condition number beyond it is drawn there


class Curve(NamedTuple):
    """A plot: what it is called, and its number at a time."""

    tab: str
    title: str
    value: Callable[[Sample, Measures], float]
    least: float = 1.0  # the top of the scale is not lower
    is_log: bool = False


MOTION, JACOBIAN = "Motion", "Conditioning"
CURVES = (
    Curve(MOTION, "position error [mm]", lambda s, m: 1e3 * s.position_error, 5.0),
    Curve(MOTION, "rotation error [deg]", lambda s, m: float(np.degrees(s.rotation_error))),
    Curve(MOTION, "fastest joint [rad/s or m/s]", lambda s, m: m.speed),
    Curve(JACOBIAN, "least singular value", lambda s, m: m.least_singular_value, 0.1),
    Curve(JACOBIAN, "condition number", lambda s, m: min(m.condition, LARGEST), is_log=True),
    Curve(JACOBIAN, "activation h of CTP, largest", lambda s, m: float(m.activation.max())),
)


class History:
    """The last seconds of all curves for some arms, on one time axis."""

    def __init__(self) -> None:
        self._rows: deque[list[float]] = deque(maxlen=KEPT)

    def add(self, time: float, arms: list[tuple[Sample, Measures]]) -> None:
        """Note the numbers of all arms at a time [s], at most every KEPT-th part of SECONDS."""
        if self._rows and time - self._rows[-1][0] < 0.9 * SECONDS / KEPT:
            return
        values = [curve.value(*arm) for curve in CURVES for arm in arms]
        if self._rows and len(self._rows[-1]) != 1 + len(values):
            self._rows.clear()
        self._rows.append([time, *values])

    def clear(self) -> None:
        """Forget all."""
        self._rows.clear()

    def data(self, curve: int, arms: int) -> tuple[Array, ...]:
        """Times [s] before now, and the lines of a curve, (k,) each."""
        if len(self._rows) < 2 or len(self._rows[-1]) != 1 + len(CURVES) * arms:
            return (np.array([-SECONDS, 0.0]), *np.full((arms, 2), np.nan))
        table = np.array(self._rows)
        first = 1 + curve * arms
        return (table[:, 0] - table[-1, 0], *table[:, first : first + arms].T)


class Plots:
    """The plots for one arm or two, in tabs by what they are about.

    Args:
        tabs: of viser, by the names in :data:`CURVES`.
    """

    def __init__(self, gui: Any, tabs: Mapping[str, Any], arms: int) -> None:
        self._arms = arms
        self._handles = []
        for i, curve in enumerate(CURVES):
            with tabs[curve.tab]:
                self._handles.append(_plot(gui, curve, History().data(i, arms)))

    def show(self, history: History) -> None:
        """Draw the lines anew."""
        for i, handle in enumerate(self._handles):
            handle.data = history.data(i, self._arms)

    def remove(self) -> None:
        """Take them off the page."""
        for handle in self._handles:
            handle.remove()


def _plot(gui: Any, curve: Curve, data: tuple[Array, ...]) -> Any:
    return gui.add_uplot(
        data,
        _series(len(data) - 1),
        title=curve.title,
        scales={"x": {"time": False, "range": [-SECONDS, 0.0]}, "y": _scale(curve)},
        axes=({"size": 26}, {"size": 46}),
        legend={"show": False},
        height=HEIGHT,
        padding=(8, 12, 0, 0),
    )


def _series(arms: int) -> tuple[dict[str, Any], ...]:
    lines = [
        {"label": name, "stroke": css(c), "width": 1.6} for name, c in zip("AB", ARMS, strict=True)
    ]
    return ({"label": "s"}, *lines[:arms])


def _scale(curve: Curve) -> dict[str, Any]:
    if curve.is_log:
        return {"distr": 3}
    top = {"pad": 0.1, "soft": curve.least, "mode": 1}
    return {"range": {"min": {"pad": 0.0, "soft": 0.0, "mode": 1}, "max": top}}
