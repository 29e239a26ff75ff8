"""Names of methods: every combination, in any order and case, and nothing else."""

from itertools import permutations, product

import pytest

from dls_ik import IkSolver, RobotModel, method_names
from dls_ik.core import damping, limits, step
from dls_ik.exceptions import DlsIkError, MethodError
from dls_ik.solver.method import parse_method

WAM = RobotModel.wam()
LAWS, STRATEGIES, BOUNDS = ("jp", "jd", "ed", "svf"), ("", "jc", "ctp"), ("", "sd")


def test_every_combination_has_one_name():
    names = method_names()
    assert len(names) == len(set(names)) == 1 + len(LAWS) * len(STRATEGIES) * len(BOUNDS)
    ids = {parse_method(name)[1:] for name in names}
    assert len(ids) == len(names)


@pytest.mark.parametrize(
    "name", ["auto", "jp", "jd", "ed", "svf", "sd", "svf+sd", "jc", "ctp", "ctp+svf", "ctp+sd",
             "ctp+sd+svf", "ed+sd", "jc+sd+jd"],
)  # fmt: skip
def test_the_papers_names_are_the_canonical_ones(name):
    assert name in method_names()


@pytest.mark.parametrize("name", method_names())
def test_round_trip(name):
    choice = parse_method(name)
    assert choice.name == name
    assert IkSolver(WAM, name).method == name
    for parts in permutations(name.split("+")):
        assert parse_method("+".join(parts)) == choice
        assert parse_method(" + ".join(parts).upper()) == choice


@pytest.mark.parametrize(("law", "strategy", "bound"), list(product(LAWS, STRATEGIES, BOUNDS)))
def test_a_name_means_its_parts(law, strategy, bound):
    choice = parse_method("+".join(part for part in (bound, law, strategy) if part))
    assert choice.damping == damping.IDS[law]
    assert choice.limits == limits.IDS[strategy or "none"]
    assert choice.step == step.IDS[bound or "none"]


def test_default_is_auto():
    assert IkSolver(WAM).method == "auto"


UNKNOWN = ["", "+", "jq", "jd+", "+jd", "jd++sd", "jd sd", "none", "active", "jd+none", "sd+xyz",
           "auto+sd", "auto+jp", "ctp+auto", None, 3, ["jd"]]  # fmt: skip
TWICE = ["jd+jd", "jp+jp", "sd+sd", "ctp+ctp+sd", "auto+auto"]
TWO_OF_A_KIND = ["jd+ed", "jd+svf", "jp+jd", "svf+jp", "ctp+jc", "jp+ed+sd", "ctp+sd+jd+svf"]


@pytest.mark.parametrize("name", [*UNKNOWN, *TWICE, *TWO_OF_A_KIND])
def test_refused_with_what_was_given_and_what_there_is(name):
    with pytest.raises(MethodError) as caught:
        IkSolver(WAM, name)
    assert isinstance(caught.value, DlsIkError)
    assert repr(name) in str(caught.value)
    listed = str(caught.value).replace(":", ",").split(", ")
    assert [known for known in method_names() if known not in listed] == []
