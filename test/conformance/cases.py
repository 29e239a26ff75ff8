# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Methods, robots, configurations and targets for the conformance suite."""

from functools import cache
from itertools import combinations, product
from random import Random

import numpy as np
from arms import random_arm
from kernels import WAM, WHOLE
from laws import LAWS, is_legal
from oracle_ik import BOUNDS, REACHES, STRATEGIES, Oracle, parts_of
from ours import options_of

from dls_ik import RobotModel, method_names

# Methods with parts, of which the oracle makes the steps; test_whole_methods.py has the others.
NAMES = [name for name in method_names() if not name.startswith("kdl") and name not in WHOLE]

RNG = np.random.default_rng(17)
ARMS = {
    "wam": WAM,
    "3": random_arm(RNG, "prismatic", "revolute", "revolute"),
    "4": random_arm(RNG, *["revolute"] * 4),
    "5 with a slide": random_arm(RNG, "revolute", "prismatic", *["revolute"] * 3),
    "6 and a follower": random_arm(RNG, *["revolute"] * 3, "mimic", *["revolute"] * 3),
    "7 turning": random_arm(RNG, *["continuous", "revolute"] * 3, "continuous"),
    "8 with slides": random_arm(RNG, "prismatic", *["revolute"] * 6, "prismatic"),
    "9": random_arm(RNG, "prismatic", *["continuous"] * 2, *["revolute"] * 6),
}
PLACES = ("inside", "in margins", "at limits", "beyond")


def combination(law, strategy, reach, bound):
    return "+".join(part for part in (law, strategy, reach, bound) if part)


LEGAL = [
    combination(law, *others)
    for law, *others in product(LAWS, ("", *STRATEGIES), ("", *REACHES), ("", *BOUNDS))
    if (law or any(others)) and is_legal(law, others[0], others[2]) and others[0] != "avoid"
]
SAMPLE = sorted(set(Random(20).sample(LEGAL, 75)) - set(NAMES))

# Options that activate features which are inactive by default.
POLICIES = {
    "constant": {"lambda_": 0.05},
    "error": {"error_gain": 0.2},
    "manipulability": {"w_t": 10.0},
    "rate": {},
    "velocity": {"velocity_bound": 2.0},
    "tracking": {"tracking_bound": 0.2},
    "condition": {"condition_bound": 5.0},
    "accuracy": {"epsilon": 1.0, "lambda_max": 0.1},
    "mayorga-condition": {"lambda0": 1e-8},
    "mayorga-rank": {},
}
OBJECTIVES = {
    "limits": {},
    "centring": {},
    "manipulability": {"mu": 5.0},
    "posture": {},
    "obstacle": {"obstacle": (0.1, 0.2, 0.3), "influence": 0.9},
}
VARIANTS = [
    *(("jd", {"policy": policy, **more}) for policy, more in POLICIES.items()),
    *(("jc+jd+sd", {"policy": policy, **more}) for policy, more in POLICIES.items()
      if policy != "accuracy"),
    *(("jd+sdls", {"policy": policy, **more}) for policy, more in POLICIES.items()
      if policy != "accuracy"),
    *(("ctp+jd", {"policy": policy, **more}) for policy, more in POLICIES.items()),
    *(("gp+jd", {"policy": policy, **more}) for policy, more in POLICIES.items()),
    *(("gp", {"objective": objective, **more}) for objective, more in OBJECTIVES.items()),
    *(("gp+ed", {"objective": objective, **more}) for objective, more in OBJECTIVES.items()),
    *(("ta+dls", {"objective": objective, **more}) for objective, more in OBJECTIVES.items()),
    *(("gp+dls", {"objective": "centring", "form": form}) for form in (22, 23, 24)),
    *(("srtp", {"objective": objective, **more}) for objective, more in OBJECTIVES.items()),
    ("srtp+nfd", {"objective": "posture", "epsilon": 10.0, "lambda_max": 0.3}),
    ("srtp+nfd+sdls", {"objective": "posture", "gamma_max": 0.1}),
    *((f"avoid+{law}", {"obstacle": (0.1, 0.2, 0.3), "influence": influence})
      for law, influence in (("jp", 0.9), ("jp", 0.3), ("dls", 0.9), ("svf", 0.9), ("lm", 2.0))),
    ("avoid+nfd+max", {"obstacle": (0.1, 0.2, 0.3), "influence": 2.0, "epsilon": 3.0,
                       "lambda_max": 0.3, "largest_change": 0.05}),
    *((name, {"margin": 0.24, "mu": 0.5})
      for name in ("idv", "idv+dls", "idv+svf", "cns", "cns+dls", "cns+svf", "cns+jt")),
    ("nfd", {"lambda_": 0.1, "epsilon": 1.0, "lambda_max": 0.3}),
    ("gp+jd+max", {"form": 22, "objective": "posture", "alpha1": 0.3, "alpha2": 0.2}),
    ("gp+jd", {"form": 23, "objective": "posture", "policy": "velocity", "velocity_bound": 2.0}),
    ("ta+ied", {"objective": "centring", "w_c": 0.3}),
    ("sd", {"bug_compatible": True}),
    ("ctp+sd+svf", {"bug_compatible": True, "gamma_max": 0.1}),
    *((name, {"bug_compatible": True, "margin": 0.2}) for name in ("tp", "ctp", "gp", "ctp+sd")),
    ("gwln+jd", {"alpha": 1.0}),
    ("gwln+svf+sd", {"gamma_max": 0.1}),
    ("gwln+dls+sdls", {"gamma_max": 0.1}),
    ("odls+ta", {"objective": "centring", "Delta": 0.1}),
    ("odls+jc+sd", {"Delta": 0.3, "gamma_max": 0.2}),
    ("odls+sdls", {"Delta": 0.3, "gamma_max": 0.1}),
    ("jw+sd", {"gamma_max": 0.1}),
    ("jw+dls+sdls", {"gamma_max": 0.1}),
    ("jw+jd", {"policy": "manipulability", "w_t": 10.0}),
    ("gp+dls+sd", {"form": 22, "objective": "centring"}),
    ("gp+dls+sdls", {"form": 22, "objective": "posture", "gamma_max": 0.1}),
    ("jd+sd", {"policy": "accuracy", "epsilon": 1.0, "lambda_max": 0.1}),
    ("jd+sdls", {"policy": "accuracy", "epsilon": 1.0, "lambda_max": 0.1, "w_min": 0.5}),
    ("ta+jd+sdls", {"policy": "accuracy", "objective": "centring", "epsilon": 1.0}),
    ("gp+jd+sd", {"policy": "accuracy", "objective": "centring", "epsilon": 1.0}),
    ("sdls", {"soft": True}),
    ("sdls+dls", {"soft": True, "gamma_max": 0.1}),
    ("sdls+jc", {"gamma_max": 0.7854}),
    ("jd+max", {"largest_change": 0.05, "alpha": 0.3}),
    ("jp+norm", {"Delta": 0.05}),
    ("clamp+dls", {"D_max": 0.1}),
    ("clamp+ctp+sdls", {"D_max": 0.1}),
    ("tp+jd", {"margin": 0.2, "mu": 0.5}),
    ("ctp+jt", {"margin": 0.2, "mu": 0.5}),
    ("svf+ed", {"nu": 5.0, "sigma0": 0.05, "error_gain": 2.0}),
    ("jf", {"epsilon": 1.0, "lambda_max": 0.3}),
    ("nf", {"velocity_bound": 2.0}),
    ("tpinv", {"truncation": 0.2}),
    ("lm", {"bias": 0.05, "error_gain": 2.0}),
    ("gdls", {"gauss_width": 0.3, "lambda_max": 0.3}),
    ("gdls+sd", {"gauss_width": 0.3, "lambda_max": 0.3, "gamma_max": 0.1}),
    *(("dls+sdls_near", {"switch_distance": d, "gamma_max": 0.1}) for d in (0.01, 10.0)),
    ("ctp+svf+sdls_near", {"switch_distance": 10.0, "gamma_max": 0.1}),
    ("jp", {"rotation_weight": 2.0}),
    ("sns", {"largest_change": 0.05}),
    ("sns", {"largest_change": 0.05, "optimal_saturation": True}),
    ("sns", {"optimal_saturation": True}),
    ("sns+dls", {"largest_change": 0.05}),
    ("sns+svf+norm", {"largest_change": 0.05, "Delta": 0.1}),
    *((f"hqp+{law}", {"largest_change": 0.05})
      for law in ("jp", "dls", "ed", "svf", "svf+ed", "tpinv", "jf", "nf")),
    *((f"{strategy}+jd", {"policy": policy, "largest_change": 0.1, **more})
      for strategy in ("sns", "hqp") for policy, more in POLICIES.items() if policy != "accuracy"),
]  # fmt: skip
CASES = [*((name, {}) for name in [*NAMES, *SAMPLE]), *VARIANTS]


def label(case):
    name, options = case
    return name + "".join(f" {key}={value}" for key, value in options.items())


def slack(name, options, oracle, dq):
    """Return the tolerance of a step: 1e-10 of the oracle's dq, or more because of rounding.

    With weights at a limit (JW, TA, GWLN) the inverse is ill-conditioned, and the motion of an
    objective (GP) mostly cancels. Objectives by differences are accurate to 1e-8, and optimal
    damping factors to 1e-3.
    """
    o = options_of(name, **options)
    close = min(max(1e-10, 1e-16 * np.linalg.cond(oracle.last_J) ** 2), 1e-6)
    by_differences = o.objective in ("manipulability", "obstacle")
    if oracle.parts.strategy == "avoid" or (
        oracle.parts.strategy in ("gp", "ta", "srtp") and by_differences
    ):
        close = max(close, 1e-7 if oracle.parts.strategy in ("avoid", "srtp") else 1e-8)
    close = 5e-3 if o.policy == "optimal" else close
    return close * max(1e-3, np.abs(dq).max(), oracle.size)


def suits(name, options, robot, rows=6):
    """Return whether a robot has the redundancy or the limits that the method needs."""
    strategy = parts_of(name).strategy
    limited = np.isfinite(robot.upper - robot.lower).any()
    by_limits = options.get("objective", "limits") in ("limits", "centring")
    if strategy == "ta" and robot.n <= rows:
        return False
    needs = strategy in ("jw", "jc", "tp", "ctp", "gwln", "idv", "cns") or (
        strategy in ("gp", "ta", "srtp") and by_limits
    )
    return limited or not needs


def placed(robot, place, rng):
    """Return q inside, or with some joints close to, at or beyond a limit, and these joints."""
    lower, upper = robot.finite_limits()
    size = upper - lower
    q = rng.uniform(lower + 0.25 * size, upper - 0.25 * size)
    near = (rng.random(robot.n) < 0.4) & (place != "inside")
    high = rng.random(robot.n) < 0.5
    depth = {"in margins": rng.uniform(0.001, 0.049), "beyond": -0.02}.get(place, 0.0)
    inward = np.where(high, -depth, depth) * size
    return np.where(near, np.where(high, upper, lower) + inward, q), np.flatnonzero(near)


def is_regular(J, near):
    """Return whether no singular value is small for any set of held joints close to limits."""
    for count in range(len(near) + 1):
        for held in combinations(near, count):
            s = np.linalg.svd(np.delete(J, held, axis=1))[1]
            if len(s) and not s[-1] > 0.03 * s[0]:
                return False
    return True


@cache
def draws(arm, place, count=3, seed=5, weight=0.5):
    """Return (q, J, e, T_d) away from singularities, with close and distant targets."""
    robot = ARMS[arm]
    oracle = Oracle("jp", robot, options_of("jp", rotation_weight=weight))
    rng = np.random.default_rng([seed, PLACES.index(place)])
    found = []
    while len(found) < count:
        q, near = placed(robot, place, rng)
        reach = (0.02, 0.3, 1.0)[len(found) % 3]
        T_d = robot.fk(q + reach * (robot.random(rng=rng) - q))
        e, J = oracle.error_and_jacobian(q, T_d)
        if is_regular(J, near):
            found.append((q, J, e, T_d))
    return found


def generic(robot, rng):
    """Return q, J, e, T_d for a configuration away from limits and singularities."""
    oracle = Oracle("jp", robot, options_of("jp"))
    while True:
        q, _ = placed(robot, "inside", rng)
        T_d = robot.fk(robot.random(rng=rng))
        e, J = oracle.error_and_jacobian(q, T_d)
        if np.linalg.svd(J)[1][-1] > 0.05:
            return q, J, e, T_d


def jacobian_with(s, n, rng):
    """Return J = U diag(s) V^T (6, n) with these singular values, U and V."""
    U = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    V = np.linalg.qr(rng.normal(size=(n, n)))[0][:, :6]
    return U @ np.diag(s) @ V.T, U, V


PUMA, PLANAR = RobotModel.from_name("puma560"), RobotModel.from_name("planar_2r")
