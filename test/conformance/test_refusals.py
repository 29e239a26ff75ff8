"""What cannot be made sense of is refused when a solver is made, and the message says why."""

import numpy as np
import pytest
from arms import random_arm
from cases import ARMS, PUMA, WAM

from dls_ik import IkSolver, Task
from dls_ik.core import damping_policies, objectives
from dls_ik.errors import MethodError, OptionError

ENDLESS = random_arm(np.random.default_rng(1), *["continuous"] * 8)
WITHOUT_FACTOR = ["jp", "jt", "tpinv", "jf", "nf", "ed", "ied", "svf", "svf+ed", "ctp+sd+svf"]


def refusal(error, robot, name, **options):
    with pytest.raises(error) as caught:
        IkSolver(robot, name, **options)
    return str(caught.value)


@pytest.mark.parametrize("robot", [PUMA, ARMS["5 with a slide"], ARMS["6 and a follower"]])
@pytest.mark.parametrize("name", ["ta", "ta+dls", "ta+sdls"])
def test_augmentation_needs_redundancy(robot, name):
    assert "redundan" in refusal(MethodError, robot, name, objective="posture")


def test_augmentation_counts_the_rows_of_the_task():
    IkSolver(PUMA, "ta", task=Task.position_only())
    IkSolver(WAM, "ta")
    assert "redundan" in refusal(MethodError, ARMS["3"], "ta", task=Task.position_only())


@pytest.mark.parametrize("name", ["jw", "jw+dls", "jc", "jc+ed", "tp", "ctp", "ctp+sd+svf"])
def test_strategies_of_limits_need_limits(name):
    assert "limit" in refusal(MethodError, ENDLESS, name)
    IkSolver(ARMS["7 turning"], name)


@pytest.mark.parametrize("name", ["gp", "gp+dls", "ta"])
@pytest.mark.parametrize("objective", ["limits", "centring"])
def test_objectives_of_limits_need_limits(name, objective):
    assert "limit" in refusal(MethodError, ENDLESS, name, objective=objective)
    IkSolver(ENDLESS, name, objective="manipulability")
    IkSolver(ENDLESS, name, objective="posture")


@pytest.mark.parametrize("length", [1, 6, 8])
def test_a_reference_has_a_number_for_each_joint(length):
    options = {"objective": "posture", "reference": np.zeros(length)}
    message = refusal((MethodError, OptionError), WAM, "gp", **options)
    assert "reference" in message
    assert "7" in message
    IkSolver(WAM, "gp", objective="posture", reference=np.zeros(7))


@pytest.mark.parametrize("length", [1, 6, 8])
def test_joint_weights_are_one_for_each_joint(length):
    options = {"form": 22, "joint_weights": np.ones(length)}
    assert "joint_weights" in refusal((MethodError, OptionError), WAM, "gp+dls", **options)


@pytest.mark.parametrize("name", ["gp", "ta"])
def test_an_obstacle_has_to_be_somewhere(name):
    assert "obstacle" in refusal((MethodError, OptionError), WAM, name, objective="obstacle")
    for obstacle in ((0.1, 0.2), (1.0, 2.0, 3.0, 4.0)):
        options = {"objective": "obstacle", "obstacle": obstacle}
        assert "obstacle" in refusal((MethodError, OptionError), WAM, name, **options)
    IkSolver(WAM, name, objective="obstacle", obstacle=(0.1, 0.2, 0.3))


@pytest.mark.parametrize("length", [1, 5, 7])
def test_a_direction_has_a_number_for_each_row(length):
    options = {"policy": "accuracy", "direction": np.ones(length)}
    assert "direction" in refusal((MethodError, OptionError), WAM, "jd", **options)
    IkSolver(WAM, "jd", policy="accuracy", direction=np.ones(6))


@pytest.mark.parametrize("name", WITHOUT_FACTOR)
@pytest.mark.parametrize("chosen", [name for name in damping_policies.IDS if name != "constant"])
def test_policies_need_a_law_with_a_factor(name, chosen):
    message = refusal(MethodError, WAM, name, policy=chosen)
    assert chosen in message
    assert "jd" in message


@pytest.mark.parametrize("strategy", ["jw", "tp", "ctp"])
def test_the_optimal_factor_does_not_go_with_every_strategy(strategy):
    for name, options in ((f"{strategy}+jd", {"policy": "optimal"}), (f"{strategy}+odls", {})):
        message = refusal(MethodError, WAM, name, **options)
        assert "optimal" in message
        assert strategy in message


@pytest.mark.parametrize("name", ["svf", "svf+ed", "ctp+svf", "svf+sdls"])
@pytest.mark.parametrize(("nu", "sigma0"), [(0.01, 0.01), (0.005, 0.01), (10.0, 0.2), (10.0, 1.0)])
def test_the_filter_has_to_rise(name, nu, sigma0):
    message = refusal(MethodError, WAM, name, nu=nu, sigma0=sigma0)
    assert "nu > sigma0" in message
    assert "2 > nu * sigma0" in message
    IkSolver(WAM, "jp", nu=nu, sigma0=sigma0)


@pytest.mark.parametrize(
    ("option", "known"), [("policy", damping_policies.IDS), ("objective", objectives.IDS)]
)
@pytest.mark.parametrize("given", ["", "none", "Optimal", 3, None])
def test_unknown_names_list_the_known_ones(option, known, given):
    message = refusal(OptionError, WAM, "gp+dls", **{option: given})
    assert repr(given) in message
    assert [name for name in known if name not in message] == []


@pytest.mark.parametrize("name", ["gp", "gp+ed", "dls", "gp+svf"])
@pytest.mark.parametrize("form", [22, 23])
def test_forms_are_of_projection_with_a_damping_factor(name, form):
    assert "gp+dls" in refusal(MethodError, WAM, name, form=form)
    IkSolver(WAM, "gp+dls", form=form)


@pytest.mark.parametrize("given", [21, 25, 23.5, "23", True])
def test_other_forms_there_are_none(given):
    assert "22, 23, 24" in refusal(OptionError, WAM, "gp+dls", form=given)
