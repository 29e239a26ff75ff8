# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Names of methods: valid combinations of parts, in any order and case."""

import math
import re
from itertools import product
from random import Random

import pytest
from laws import LAWS, is_legal

from dls_ik import IkSolver, RobotModel, method_names, method_table
from dls_ik.core import error_clamping, limits, step_bounds
from dls_ik.errors import DlsIkError, MethodError
from dls_ik.solver.method import KDL_METHODS, long_name, method_info, parse_method
from dls_ik.solver.options import solver_options

WAM = RobotModel.wam()
STRATEGIES = (
    *("", "jw", "gp", "jc", "ta", "gwln", "tp", "ctp", "sns", "hqp"),
    *("srtp", "avoid", "idv", "cns"),
)
REACHES = ("", "clamp", "halve")
BOUNDS = ("", "max", "norm", "sd", "sdls", "sdls_near", "jp_near")
PARTS = [part for room in (LAWS, STRATEGIES, REACHES, BOUNDS) for part in room if part != "svf+ed"]
PAPERS = [
    "auto", "jp", "jt", "tpinv", "jd", "jf", "nf", "ed", "ied", "svf", "svf+ed", "sd", "svf+sd",
    "dls", "odls", "dls+clamp", "dls+max", "jt+max", "tpinv+max", "sdls", "sdls+clamp", "jw", "gp",
    "gp+dls", "gp+odls", "ta", "gwln", "jc", "tp", "ctp", "ctp+svf", "ctp+sd", "ctp+sd+svf",
]  # fmt: skip


def part_combinations():
    """Return (law, strategy, reach, bound, words) of every nonempty combination."""
    for law, strategy, error, bound in product(LAWS, STRATEGIES, REACHES, BOUNDS):
        words = [word for part in (law, strategy, error, bound) for word in part.split("+") if word]
        if words:
            yield law, strategy, error, bound, words


def test_combinations_have_one_name_in_any_order_and_case_or_are_refused():
    random, named = Random(1), {}
    for law, strategy, error, bound, words in part_combinations():
        name = "+".join(words)
        if not is_legal(law, strategy, bound):
            is_by_bound = law not in ("jt", "odls")
            reason = bound if is_by_bound else "jt" if law == "jt" else "optimal|bound each joint"
            with pytest.raises(MethodError, match=reason) as caught:
                parse_method(name)
            assert strategy in str(caught.value)
            continue
        choice = parse_method(name)
        assert choice.damping == LAWS[law]
        assert choice.limits == limits.LIMIT_IDS[strategy or "none"]
        assert choice.reach == error_clamping.CLAMPING_IDS[error or "none"]
        kind = {"": "none", "jp_near": "sdls_near"}.get(bound, bound)
        assert choice.step == step_bounds.STEP_BOUND_IDS[kind]
        brought = {"objective": "centring", "mu": 0.0} if strategy == "ta" else {}
        brought |= {"alpha": 0.2} if strategy == "gwln" else {}
        largest = {"sdls": math.pi / 4, "sdls_near": math.pi / 4, "jp_near": 1e6}
        brought |= {"gamma_max": largest[bound]} if bound in largest else {}
        brought |= {"objective": "centring"} if strategy == "srtp" else {}
        brought |= {"dls": {"lambda_": 0.1}, "odls": {"policy": "optimal"}}.get(law, {})
        assert dict(choice.defaults) == brought
        mixed = random.sample(words, len(words))
        assert parse_method("+".join(mixed)) == choice
        assert parse_method(" + ".join(mixed).upper()) == choice
        assert parse_method(choice.name) == choice
        assert named.setdefault(choice.name, choice) == choice
    meanings = {(choice.damping, *choice[2:]) for choice in named.values()}
    assert len(meanings) == len(set(named.values())) == len(named)


@pytest.mark.parametrize("name", ["wln", "WLN+jd", "wln+svf+sd"])
def test_the_former_name_of_a_method_is_refused_with_the_new_one(name):
    with pytest.raises(MethodError, match="'wln' is now 'gwln'"):
        parse_method(name)


def test_the_names_of_the_papers_are_listed():
    assert set(PAPERS) <= set(method_names())


def test_listed_names_round_trip():
    for name in set(method_names()) - set(KDL_METHODS):
        assert parse_method(name).name == name
        assert IkSolver(WAM, name).method == name


def test_listed_names_are_different_methods():
    names = method_names()
    assert len({parse_method(name) for name in names}) == len(set(names)) == len(names)


def test_every_method_has_a_long_name_and_a_purpose():
    table = method_table()
    assert [info.name for info in table] == [*method_names()]
    assert len({info.long_name for info in table}) == len(table)
    for info in table:
        assert info.source
        assert info.summary
        assert method_info(info.name.upper()) == info
    assert {long_name(part) for part in PARTS if part}.isdisjoint({""})
    combined = method_info("svf+jc+max")
    assert combined.name == "jc+max+svf"
    assert combined.long_name == "joint clamping + bounded joint steps + singular value filtering"
    assert combined.source.count(";") == 2
    with pytest.raises(MethodError):
        method_info("jc+")


@pytest.mark.parametrize("name", KDL_METHODS)
def test_kdl_names_have_no_further_parts(name):
    assert parse_method(name).is_kdl
    assert parse_method(name.upper()).name == name
    with pytest.raises(MethodError):
        parse_method(f"{name}+sd")


def test_default_is_auto():
    assert IkSolver(WAM).method == "auto"


def test_given_options_replace_those_of_the_name():
    assert solver_options(parse_method("dls"), {}).lambda_ == 0.1
    assert solver_options(parse_method("gp+dls+clamp"), {"lambda_": 0.2}).lambda_ == 0.2
    assert solver_options(parse_method("odls"), {}).policy == "optimal"
    assert solver_options(parse_method("jd"), {}).lambda_ == 0.005
    assert solver_options(parse_method("jd"), {}).policy == "constant"


UNKNOWN = ["", "+", "jd+", "+jd", "jd++sd", "jd sd", "none", "active", "jd+none", "sd+xyz",
           "optimal", None, 3]  # fmt: skip
MEANT = {"ctp+sd+swf": "svf", "auot": "auto", "dsl": "dls", "kdl": "dls or kdl_nr",
         "sdsl+clamp": "sdls", "ctp+svd": "sd"}  # fmt: skip
ALONE = ["auto+sd", "auto+jp", "ctp+auto", "auto+auto", "kdl_lma+sd"]
TWICE = ["jd+jd", "jp+jp", "sd+sd", "ctp+ctp+sd", "svf+svf"]


@pytest.mark.parametrize("name", [*UNKNOWN, *TWICE, *MEANT, *ALONE])
def test_unknown_names_suggest_similar_or_list_all(name):
    with pytest.raises(MethodError) as caught:
        IkSolver(WAM, name)
    assert isinstance(caught.value, DlsIkError)
    words = str(caught.value)
    assert words.startswith(f"unknown method {name!r}; ")
    if name in TWICE:
        assert words.endswith(f"; {name.partition('+')[0]} is given twice")
    elif name in ALONE:
        assert words.endswith(" cannot be combined with other parts")
    elif name in MEANT:
        assert words.endswith(f"did you mean {MEANT[name]}?")
        assert len(words) < 100
    else:
        listed = re.split(r"[^\w+]+", words)
        assert [part for part in ("auto", *PARTS) if part and part not in listed] == []


TWO_OF_A_KIND = {
    "damping law": ["jd+ed", "jd+svf", "jp+jd", "svf+jp", "jp+ed+sd", "dls+odls", "dls+jd", "jt+nf",
                    "svf+ied", "ctp+sd+jd+svf"],
    "limit strategy": ["ctp+jc", "gp+ta", "jw+tp+ed", "tp+ctp+sdls"],
    "error bound": ["clamp+halve", "dls+clamp+halve+max"],
    "step bound": ["sd+sdls", "max+norm+dls", "ctp+max+sd"],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in TWO_OF_A_KIND.items() for name in names]
)
def test_two_parts_of_one_kind_are_refused(kind, name):
    with pytest.raises(MethodError) as caught:
        parse_method(name)
    assert repr(name) in str(caught.value)
    assert kind in str(caught.value)
    rooms = {"damping law": LAWS, "limit strategy": STRATEGIES, "error bound": REACHES,
             "step bound": BOUNDS}  # fmt: skip
    both = [word for word in name.split("+") if word in rooms[kind]]
    assert [word for word in both if not re.search(rf"\b{word}\b", str(caught.value))] == []
