"""How the damping laws are drawn in Figures 1 and 2 of Colome & Torras 2012."""

from typing import Any

from dls_ik.plot.canvas import BLUE, GREY, ORANGE, RED

_GREEN, _PURPLE, _SKY = "#009E73", "#CC79A7", "#56B4E9"  # Okabe and Ito, as in plot/canvas.py
LINES: dict[str, dict[str, Any]] = {
    "jp": {"color": GREY, "linewidth": 3.5, "alpha": 0.5},
    "jt": {"color": "black", "linestyle": ":", "linewidth": 2.0},
    "jd": {"color": ORANGE, "linewidth": 1.8},
    "jf": {"color": RED, "linewidth": 1.8, "linestyle": "--"},
    "ed": {"color": _GREEN, "linewidth": 1.8},
    "ied": {"color": _PURPLE, "linewidth": 1.8, "linestyle": "-."},
    "svf": {"color": BLUE, "linewidth": 2.4},
    "svf+ed": {"color": _SKY, "linewidth": 2.0, "linestyle": "--"},
}
