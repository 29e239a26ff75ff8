# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the rejection of invalid methods and options by the solver, with messages."""

import numpy as np
import pytest
from arms import random_arm
from cases import ARMS, PUMA, WAM

from dls_ik import IkSolver, Task
from dls_ik.core import damping_policies
from dls_ik.errors import MethodError, OptionError

ENDLESS = random_arm(np.random.default_rng(1), *["continuous"] * 8)
POSTURE, POSITION = {"objective": "posture"}, {"task": Task.position_only()}
OBSTACLE = {"objective": "obstacle"}
WITHOUT_FACTOR = ["jp", "jt", "tpinv", "jf", "nf", "ed", "ied", "svf", "svf+ed", "ctp+sd+svf"]

REFUSED = [  # words of the message, robot, name, options
    *((["redundan"], robot, name, POSTURE) for robot, name in [
        (PUMA, "ta"), (ARMS["5 with a slide"], "ta+dls"), (ARMS["6 and a follower"], "ta+sdls")]),
    (["redundan"], ARMS["3"], "ta", POSITION),
    *((["limit"], ENDLESS, name, {})
      for name in ("jw", "jw+dls", "jc", "jc+ed", "tp", "ctp", "ctp+sd+svf")),
    *((["limit"], ENDLESS, name, {"objective": objective})
      for name in ("gp", "gp+dls", "ta") for objective in ("limits", "centring")),
    *((["reference", "7"], WAM, "gp", {**POSTURE, "reference": np.zeros(n)}) for n in (1, 6, 8)),
    *((["joint_weights"], WAM, "gp+dls", {"form": 22, "joint_weights": np.ones(n)})
      for n in (1, 6, 8)),
    *((["obstacle"], WAM, name, {**OBSTACLE, **where}) for name in ("gp", "ta")
      for where in ({}, {"obstacle": (0.1, 0.2)}, {"obstacle": (1.0, 2.0, 3.0, 4.0)})),
    *((["direction"], WAM, "jd", {"policy": "accuracy", "direction": np.ones(n)})
      for n in (1, 5, 7)),
    *((["gp+dls"], WAM, name, {"form": form})
      for name in ("gp", "gp+ed", "dls", "gp+svf") for form in (22, 23)),
    *((["optimal", strategy], WAM, f"{strategy}+{law}", options)
      for strategy in ("jw", "tp", "ctp")
      for law, options in (("jd", {"policy": "optimal"}), ("odls", {}))),
]  # fmt: skip
TAKEN = [
    (PUMA, "ta", POSITION),
    (WAM, "ta", {}),
    *((ARMS["7 turning"], name, {}) for name in ("jw+dls", "jc+ed", "tp", "ctp+sd+svf")),
    *((ENDLESS, name, {"objective": objective})
      for name in ("gp", "gp+dls", "ta") for objective in ("manipulability", "posture")),
    (WAM, "gp", {**POSTURE, "reference": np.zeros(7)}),
    *((WAM, name, {**OBSTACLE, "obstacle": (0.1, 0.2, 0.3)}) for name in ("gp", "ta")),
    (WAM, "jd", {"policy": "accuracy", "direction": np.ones(6)}),
    *((WAM, "gp+dls", {"form": form}) for form in (22, 23)),
]  # fmt: skip


@pytest.mark.parametrize(("words", "robot", "name", "options"), REFUSED)
def test_invalid_methods_and_options_are_refused_with_the_reason(words, robot, name, options):
    with pytest.raises((MethodError, OptionError)) as caught:
        IkSolver(robot, name, **options)
    assert [word for word in words if word not in str(caught.value)] == []


@pytest.mark.parametrize("name", WITHOUT_FACTOR)
def test_policies_need_a_law_with_a_factor(name):
    for policy in set(damping_policies.POLICY_IDS) - {"constant"}:
        with pytest.raises(MethodError, match=rf"{policy}(.|\n)*jd|jd(.|\n)*{policy}"):
            IkSolver(WAM, name, policy=policy)


def test_valid_methods_and_options_are_accepted():
    for robot, name, options in TAKEN:
        assert IkSolver(robot, name, **options).method == name
