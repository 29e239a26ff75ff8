"""Why rows of Table V differ from the printed ones, as far as it is known."""

from collections.abc import Sequence

from dls_ik.reproduce.chance import SIGMAS
from dls_ik.reproduce.report import Row

_ROTATION = (
    "rows without damping far from the goal take steps that depend on how a large rotation "
    "error is measured. Ours is the rotation vector; with twice the vector of the unit "
    "quaternion instead, JP takes the printed 12.2 iterations, JD 12.2, JF 12.2, SVF 11.9 "
    "(NumPy, 1000 pairs). What is left of the difference is not explained."
)
_ACTIVATION = (
    "the paper prints neither the margin in which a joint limit is active nor the gain mu of "
    "the push away from it. One margin, 0.05 of the range, and one gain, 0.2 as for GP, serve "
    "all rows here. With that gain no margin fits all five: TP and CTP ask for about 0.15, "
    "CTP+SD for 0.05. With mu = 0.05 and the margin as it is all five come near the printed "
    "ones, and SD helps CTP as the paper says (second table)."
)
_KNOWN = {
    **dict.fromkeys(("jp", "jd", "jf", "svf"), _ROTATION),
    **dict.fromkeys(("tp", "ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf"), _ACTIVATION),
    **dict.fromkeys(
        ("sd", "svf+sd"),
        "the published code bounds a direction by its largest signed component, max(w), where "
        "max|w| is meant: that takes fewer iterations, not more (second table). The rest is not "
        "explained.",
    ),
    "jt": "not known. It hangs on the step length, <e, JJ'e> / <JJ'e, JJ'e> here.",
    **dict.fromkeys(
        ("jw", "gp"),
        "the paper does not say what the gradient of the limit criterion is beyond a limit, where "
        "joints of these methods spend much of their time. Here it goes on by its formula. Taken "
        "as zero there, JW has 5 percent in limits and 13.6 iterations, GP 4 percent and 16.6 "
        "(NumPy, 1000 pairs), near the printed rows both.",
    ),
    "ta": "the paper does not say which row is added, nor what it asks for. Here it is the "
    "gradient of the distance from mid-range, asked not to change: of the readings tried "
    "(limit, centring, manipulability; target 0, -mu H, -mu |grad H|^2; NumPy, 300 pairs) only "
    "a target of 0 comes near the printed share solved and iterations. None gives 24 percent in "
    "limits: not known.",
    "jc": "a fifth of the printed rows is solved in limits and a third beyond, so that its joints "
    "are not stopped at the limits; ours are, and answers lie within. Held beyond the limit "
    "without being stopped, 3 to 16 percent are solved (eleven readings in NumPy, 200 pairs)."
    " Not known.",
}
_GENERAL = (
    f"More than chance is beyond {SIGMAS:.0f} standard deviations of the sampling of both, "
    "ours and the 1000 printed pairs. Times are not compared: printed ones are Matlab's, ours"
    " those of one thread with about 10 us of Python around each pose."
)
_ITERATIONS_OF_KDL = "KDL's solvers do not say how many iterations they took."


def notes(rows: Sequence[Row]) -> list[str]:
    """One note for each cause, with the rows that it is about."""
    found = [_GENERAL]
    causes: dict[str, list[str]] = {}
    for row in rows:
        if row.get("differs"):
            causes.setdefault(_KNOWN.get(row["method"], "not known."), []).append(row["method"])
    found += [f"{', '.join(methods)}: {cause}" for cause, methods in causes.items()]
    missing = [row for row in rows if "missing" in row]
    if missing:
        names = ", ".join(row["method"] for row in missing)
        found.append(f"{names}: not run, {missing[0]['missing']}")
    elif any(row["method"].startswith("kdl") for row in rows):
        found.append(_ITERATIONS_OF_KDL)
    return found
