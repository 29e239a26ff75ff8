"""What Table V of Colome & Torras 2012 prints, its settings, and what is known of differences."""

from typing import Any

from dls_ik.reproduce.report import Row

PAIRS = 1000  # of start and goal, in the paper
KEYS = (
    "solved_percent", "in_limits_percent", "time_ms", "time_solved_ms", "time_in_limits_ms",
    "residual", "iterations", "iterations_solved",
)  # fmt: skip
_FIGURES: dict[str, tuple[float | None, ...]] = {
    "jp": (100.0, 6.8, 42.6, 42.6, 19.4, None, 12.2, 12.2),
    "jt": (40.7, 12.7, 710.6, 504.8, 527.0, 0.302, 209.4, 148.7),
    "sd": (98.4, 33.9, 165.2, 154.3, 140.6, 0.042, 46.9, 43.5),
    "jd": (100.0, 6.9, 39.4, 39.4, 18.9, None, 11.6, 11.6),
    "jf": (100.0, 7.4, 38.6, 38.6, 19.9, None, 11.2, 11.2),
    "ed": (100.0, 32.3, 36.9, 36.9, 32.2, None, 10.6, 10.6),
    "ied": (100.0, 32.4, 38.7, 38.7, 33.3, None, 11.1, 11.1),
    "svf": (100.0, 8.7, 37.1, 37.1, 22.1, None, 10.7, 10.7),
    "svf+ed": (100.0, 32.3, 35.8, 35.8, 30.9, None, 10.3, 10.3),
    "svf+sd": (99.7, 34.4, 147.4, 145.2, 133.7, 0.041, 41.9, 41.1),
    "jw": (100.0, 7.0, 45.7, 45.7, 20.5, None, 13.0, 13.0),
    "gp": (100.0, 2.0, 55.8, 55.8, 18.7, None, 15.9, 15.9),
    "ta": (99.2, 24.5, 21.3, 17.5, 16.3, 0.135, 43.6, 35.9),
    "jc": (52.6, 20.0, 476.3, 115.7, 93.8, 0.601, 136.4, 33.0),
    "tp": (0.5, 0.5, 934.8, 22.3, 22.3, 1.163, 249.8, 6.0),
    "ctp": (34.6, 34.6, 7007.0, 2242.0, 2242.0, 0.440, 184.6, 59.2),
    "ctp+svf": (34.6, 34.6, 7042.6, 2267.0, 2267.0, 0.395, 184.8, 59.7),
    "ctp+sd": (48.2, 48.2, 6876.9, 2027.3, 2027.3, 0.286, 151.7, 45.1),
    "ctp+sd+svf": (48.5, 48.5, 6830.5, 1867.9, 1867.9, 0.276, 149.2, 41.1),
}
KDL = ("kdl_nr", "kdl_nr_jl", "kdl_lma")  # the paper tried KDL too, and prints no figures of it
METHODS = (*_FIGURES, *KDL)

# One set for all rows: each method reads what it has. None is bent to make a row fit.
ACTIVATION = {"margin": 0.05, "mu": 0.2}
SETTINGS: dict[str, dict[str, Any]] = {
    "sd": {"gamma_max": 0.5},
    "jd": {"lambda_": 0.005},
    "jf": {"lambda_max": 0.02},
    "ed": {"error_gain": 0.5},
    "ied": {"error_gain": 0.5, "omega": 0.01},
    "svf": {"nu": 10.0, "sigma0": 0.01},
    "svf+ed": {"nu": 10.0, "sigma0": 0.01, "error_gain": 0.5},
    "svf+sd": {"nu": 10.0, "sigma0": 0.01, "gamma_max": 0.5},
    "gp": {"mu": 0.2},
    "tp": ACTIVATION,
    "ctp": ACTIVATION,
    "ctp+svf": {**ACTIVATION, "nu": 10.0, "sigma0": 0.01},
    "ctp+sd": {**ACTIVATION, "gamma_max": 0.5},
    "ctp+sd+svf": {**ACTIVATION, "nu": 10.0, "sigma0": 0.01, "gamma_max": 0.5},
}

# Readings of what the paper leaves open, run on the same pairs.
_CTP = ("ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf")
READINGS: list[tuple[str, str, dict[str, Any]]] = [
    ("ied", "omega^2 = 0.01", {"omega": 0.01**0.5}),
    ("ied", "omega^2 = 0.001", {"omega": 0.001**0.5}),
    ("ta", "a fall of limits", {"objective": "limits", "mu": 0.2}),
    *((m, "bound on max(w)", {"published": True}) for m in ("sd", "svf+sd")),
    *((m, "margin 0.1", {"margin": 0.1}) for m in ("tp", *_CTP)),
    *((m, "margin 0.2", {"margin": 0.2}) for m in ("tp", *_CTP)),
    *((m, "mu = 0.05", {"mu": 0.05}) for m in ("tp", *_CTP)),
]


def printed_rows() -> list[Row]:
    """The rows of the paper, keyed as the measured ones."""
    return [{"method": m, **dict(zip(KEYS, f, strict=True))} for m, f in _FIGURES.items()]
