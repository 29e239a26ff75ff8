"""How the damping laws are drawn in Figures 1 and 2 of Colome & Torras 2012."""

from typing import Any

from dls_ik.plot.canvas import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY

LINES: dict[str, dict[str, Any]] = {
    "jp": {"color": GREY, "linewidth": 3.5, "alpha": 0.5},
    "jt": {"color": "black", "linestyle": ":", "linewidth": 2.0},
    "jd": {"color": ORANGE, "linewidth": 1.8},
    "jf": {"color": RED, "linewidth": 1.8, "linestyle": "--"},
    "ed": {"color": GREEN, "linewidth": 1.8},
    "ied": {"color": PURPLE, "linewidth": 1.8, "linestyle": "-."},
    "svf": {"color": BLUE, "linewidth": 2.4},
    "svf+ed": {"color": SKY, "linewidth": 2.0, "linestyle": "--"},
}
