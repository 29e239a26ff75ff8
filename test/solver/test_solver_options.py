# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Options: defaults, ranges, types; error messages name the option and its range."""

import re
from dataclasses import FrozenInstanceError, fields
from fractions import Fraction
from typing import Literal, get_type_hints

import numpy as np
import pytest

from dls_ik import IkSolver, RobotModel, Stepper, method_names
from dls_ik.errors import DlsIkError, MethodError, OptionError, RobotModelError
from dls_ik.servo import Controller
from dls_ik.servo.options import ControllerKeywords, ControllerOptions
from dls_ik.solver.options import USUAL_NAMES, SolverKeywords, SolverOptions, Vector
from dls_ik.solver.solver import CLEARANCE_SOLVE_TYPE

WAM = RobotModel.wam()
FIELDS = {f.name: f for f in fields(SolverOptions)}
RANGES = {name: f.metadata["range"] for name, f in FIELDS.items() if "range" in f.metadata}
CHOICES = {name: f.metadata["choices"] for name, f in FIELDS.items() if "choices" in f.metadata}
VECTORS = [name for name, f in FIELDS.items() if "vector" in f.metadata]
PER_JOINT = [name for name, f in FIELDS.items() if "per_joint" in f.metadata]
WHOLE = [
    "long_attempt_every", "max_iterations", "max_restarts", "num_candidates", "prove_after",
    "random_seed", "stall_count",
]  # fmt: skip
REAL = [name for name in RANGES if name not in WHOLE]


def solver_options(method="ed", **options):
    if "num_candidates" in options:  # published methods make one attempt
        options.setdefault("max_restarts", None)
    return IkSolver(WAM, method, **options).options


def test_every_option_has_one_kind():
    assert sorted([*RANGES, *CHOICES, *VECTORS, *PER_JOINT]) == sorted(FIELDS)


@pytest.mark.parametrize("name", CHOICES)
def test_choice_options_accept_only_their_choices(name):
    method = {"policy": "dls", "form": "gp+dls", "optimal_saturation": "sns"}.get(name, "ed")
    for value in CHOICES[name]:
        if value == CLEARANCE_SOLVE_TYPE:
            with pytest.raises(OptionError, match="needs a scene"):
                solver_options(method, **{name: value})
        else:
            assert getattr(solver_options(method, **{name: value}), name) == value
    for value in ["nothing", 99, None, [], 1.5]:
        with pytest.raises(OptionError) as caught:
            solver_options(method, **{name: value})
        assert str(caught.value).startswith(name)
        assert [c for c in CHOICES[name] if str(c) not in str(caught.value)] == []


@pytest.mark.parametrize("name", VECTORS)
def test_vector_options_refuse_invalid_values(name):
    assert solver_options(**{name: None}) == solver_options()
    huge = [10**5000, [Fraction(10**5000, 3)], [1.0, -(10**5000)]]
    for value in [*huge, "123", 1.0, [], [np.nan], ["a"], [[1.0, 2.0]]]:
        with pytest.raises(OptionError, match=name):
            solver_options(**{name: value})


@pytest.mark.parametrize("name", PER_JOINT)
def test_per_joint_options_accept_one_number_or_one_per_joint(name):
    assert getattr(solver_options(**{name: 1}), name) == 1.0
    assert getattr(solver_options(**{name: np.inf}), name) == np.inf
    assert getattr(solver_options(**{name: range(7)}), name) == tuple(map(float, range(7)))
    huge = [10**5000, [Fraction(10**5000, 3)]]  # too large for a float
    for value in [*huge, "123", "1", -1.0, np.nan, [], [1.0, -1.0], ["a"], [[1.0]], None, True,
                  range(6)]:  # fmt: skip
        with pytest.raises(OptionError, match=name):
            solver_options(**{name: value})


@pytest.mark.parametrize("name", RANGES)
def test_ranges_include_their_ends(name):
    for value in RANGES[name]:
        assert getattr(solver_options(**{name: value}), name) == value
    low, high = RANGES[name]
    outside = [low - 1, high + 1] if name in WHOLE else [low - 1e-3 * (low or 1), high * 1.001]
    infinite = [] if high == np.inf else [np.inf]
    outside = [x for x in outside if not low <= x <= high]
    for value in [*outside, *infinite, -np.inf, np.nan]:
        with pytest.raises(OptionError) as caught:
            solver_options(**{name: value})
        assert isinstance(caught.value, DlsIkError)
        assert str(caught.value).startswith(name)
        assert f"from {low:g} to {high:g}" in str(caught.value)
        assert repr(value) in str(caught.value)


@pytest.mark.parametrize(
    "value", [True, False, np.True_, "0.5", b"1", 1j, [1], (1,), {}, np.array([1.0]), object(),
              10**5000, -(10**5000), Fraction(10**5000, 3)],
    ids=["True", "False", "numpy bool", "text", "bytes", "complex", "list", "tuple", "dict",
         "array", "object", "huge", "-huge", "huge fraction"],
)  # fmt: skip
def test_values_that_are_not_numbers_are_refused(value):
    for name in RANGES:
        with pytest.raises(OptionError, match=name):
            solver_options(**{name: value})


def test_none_is_refused_as_a_number():
    for name in set(RANGES) - {"max_restarts", "D_max"}:
        with pytest.raises(OptionError, match=name):
            solver_options(**{name: None})
    assert solver_options(max_restarts=None).max_restarts is None


@pytest.mark.parametrize("name", WHOLE)
def test_integer_options_accept_whole_numbers_only(name):
    for value in (3, 3.0, np.int32(3), np.int64(3), np.uint8(3), np.float64(3.0)):
        taken = getattr(solver_options(**{name: value}), name)
        assert (taken, type(taken)) == (3, int)
    for value in (2.5, np.float64(3.0000001)):
        with pytest.raises(OptionError, match="an integer"):
            solver_options(**{name: value})


def test_more_candidates_than_attempts_are_refused():
    assert solver_options("auto", max_restarts=20).num_candidates == 150, "the default gives way"
    assert solver_options("auto", max_restarts=20, num_candidates=21).num_candidates == 21
    with pytest.raises(OptionError, match="max_restarts to 21"):
        solver_options("auto", max_restarts=20, num_candidates=22)
    with pytest.raises(OptionError, match=r"is 1 for method 'ed'; got 2"):
        IkSolver(WAM, "ed", num_candidates=2)


@pytest.mark.parametrize("name", REAL)
def test_numbers_of_other_types_are_accepted(name):
    for value in (1, 1.0, np.float32(1.0), np.int64(1), np.float64(1.0)):
        low, high = RANGES[name]
        if not low <= value <= high:
            value = type(value)(2) if high >= 2 else value / 2
        taken = getattr(solver_options(**{name: value}), name)
        assert (taken, type(taken)) == (float(value), float)


def test_random_seeds_are_exact():
    for seed in (2**53 + 1, 2**62 + 1, 2**63 - 1):
        assert solver_options(random_seed=seed).random_seed == seed
        assert solver_options(random_seed=np.int64(seed)).random_seed == seed


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"timout": 1.0}, "unknown option timout; did you mean timeout?"),
        ({"lambda_": 0.1, "error_gian": 1, "xy": 2},
         "unknown option error_gian, xy; error_gian: did you mean error_gain?"),
        ({"xy": 2}, "unknown option xy; known are position_tolerance, rotation_tolerance"),
    ],
)  # fmt: skip
def test_unknown_options_are_refused_with_suggestions(given, words):
    with pytest.raises(OptionError, match=re.escape(words)) as caught:
        solver_options(**given)
    assert len(str(caught.value)) < 500


def accepted_type(option):
    """Return the type hint of a declared option."""
    about = option.metadata
    if "choices" in about:
        return (
            bool
            if about["choices"] == (False, True)
            else Literal[(*about["choices"], *about["aliases"])]
        )
    if "vector" in about:
        return Vector | None
    if "per_joint" in about:
        return float | Vector
    if option.default is None:
        return float | None if about.get("real") else int | None
    return type(option.default)


@pytest.mark.parametrize(
    ("keywords", "options"),
    [
        (SolverKeywords, [SolverOptions]),
        (ControllerKeywords, [SolverOptions, ControllerOptions]),
    ],
)
def test_keywords_are_the_declared_options(keywords, options):
    declared = {f.name: accepted_type(f) for each in options for f in fields(each)}
    assert get_type_hints(keywords) == declared
    assert keywords.__required_keys__ == frozenset()


def test_default_options_are_the_published_values():
    published = {"alpha": 1.0, "lambda_": 0.005, "nu": 10.0, "sigma0": 0.01, "gamma_max": 0.5,
                 "mu": 0.2}  # fmt: skip
    for method in method_names():
        options = solver_options(method)
        assert options.position_tolerance == options.rotation_tolerance == 1e-6
        assert options.rotation_weight == 0.5  # 2 rad = 1 m
        assert options.max_restarts == (None if method in ("auto", "dual") else 0)
        if {"ta", "gwln", "dls", "quik", "sdls"} & set(method.split("+")):
            continue  # tested in test_method_names
        assert {name: getattr(options, name) for name in published} == published
        assert options.error_gain == (0.1 if method == "auto" else 0.5)


OF_A_CALL = {
    "approximate": [1.5, "yes", 2, [True]],
    "solve_type": ["closest", "", 1, True, ["speed"]],
    "max_joint_change": [-0.1, np.nan, "much", [0.1] * 6, [0.1] * 8, [], [-1.0] * 7, True,
                         [[0.1] * 7]],
}  # fmt: skip


@pytest.mark.parametrize("name", OF_A_CALL)
def test_options_of_a_call_are_checked(name):
    solver = IkSolver(WAM)
    for value in OF_A_CALL[name]:
        for make in (IkSolver, lambda _, **given: solver.solve(np.eye(4), **given),
                     lambda _, **given: solver.solve_batch(np.eye(4)[None], **given)):  # fmt: skip
            with pytest.raises(OptionError, match=name):
                make(WAM, **{name: value})


def test_options_are_immutable():
    with pytest.raises(FrozenInstanceError):
        solver_options().alpha = 0.5


def test_every_option_has_a_description():
    for option in FIELDS.values():
        assert option.metadata["text"], option.name
        assert isinstance(option.metadata["unit"], str)
        if option.name in RANGES:
            low, high = RANGES[option.name]
            assert option.default is None or low <= option.default <= high
        if option.name in CHOICES:
            assert option.default in CHOICES[option.name]


@pytest.mark.parametrize("method", [name for name in method_names() if "svf" in name])
def test_svf_refuses_a_decreasing_filter(method):
    for nu, sigma0 in ((0.01, 0.01), (0.005, 0.01), (200.0, 0.01), (10.0, 0.2), (1.0, 2.0)):
        with pytest.raises(MethodError, match=f"nu={nu}, sigma0={sigma0}") as caught:
            solver_options(method, nu=nu, sigma0=sigma0)
        assert "nu > sigma0" in str(caught.value)
        assert "2 > nu * sigma0" in str(caught.value)
        assert solver_options("jd", nu=nu, sigma0=sigma0).nu == nu
    for nu, sigma0 in ((0.011, 0.01), (199.0, 0.01), (10.0, 0.199)):
        assert solver_options(method, nu=nu, sigma0=sigma0).sigma0 == sigma0


@pytest.mark.parametrize(
    ("name", "least"),
    [("max_iterations", 1), ("prove_after", 1), ("max_restarts", 0), ("long_attempt_every", 0),
     ("stall_count", 0)],
)  # fmt: skip
def test_count_options_below_their_minimum_are_refused(name, least):
    assert getattr(solver_options(**{name: least}), name) == least
    with pytest.raises(OptionError, match=name):
        solver_options(**{name: least - 1})


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("damping", "lambda_"), ("tol", "position_tolerance"), ("max_iter", "max_iterations"),
        ("orientation_weight", "rotation_weight"), ("step_size", "alpha"), ("eps", "position_tol"),
    ],
)  # fmt: skip
def test_option_names_of_other_libraries_suggest_the_right_name(given, meant):
    with pytest.raises(OptionError) as caught:
        IkSolver(RobotModel.wam(), **{given: 0.1})
    assert f"did you mean {meant}" in str(caught.value)
    assert len(str(caught.value)) < 120  # no list of all options
    with pytest.raises(OptionError, match=f"did you mean {meant}"):
        Controller(RobotModel.wam(), **{given: 0.1})


def test_every_foreign_option_name_maps_to_an_existing_option():
    known = {each.name for each in fields(SolverOptions)}
    assert set(USUAL_NAMES.values()) <= known
    assert not set(USUAL_NAMES) & known


def test_nearest_is_another_name_of_distance():
    robot = RobotModel.wam()
    T, seed = robot.fk([0.3, 0.7, 0.1, 1.6, 0.0, 0.5, 0.2]), [0.4, 0.6, 0.2, 1.5, 0.1, 0.6, 0.1]
    solver = IkSolver(robot, solve_type="nearest", timeout=5.0)
    assert solver.options.solve_type == "distance"
    same = IkSolver(robot, timeout=5.0).solve(T, seed, solve_type="nearest")
    np.testing.assert_array_equal(solver.solve(T, seed).q, same.q)
    with pytest.raises(OptionError, match=r"speed, distance, .*nearest") as e:
        IkSolver(robot, solve_type="nearst")
    assert "did you mean nearest?" in str(e.value)


def test_a_refused_choice_names_the_option_its_meaning_and_a_similar_choice():
    with pytest.raises(OptionError) as caught:
        IkSolver(WAM, solve_type="neerest")
    said = str(caught.value)
    assert said.startswith("solve_type (solution to return: ")
    assert said.endswith("got 'neerest'; did you mean nearest?")
    with pytest.raises(MethodError, match=r"sigma0=0\.3: with this nu, sigma0 must be below 0\.2$"):
        IkSolver(WAM, "svf", sigma0=0.3)


@pytest.mark.parametrize("make", [IkSolver, Stepper, Controller])
def test_the_name_of_a_robot_is_no_robot(make):
    given = ("wam", "dls") if make is Stepper else ("wam",)
    with pytest.raises(RobotModelError, match=r"such as RobotModel\.from_urdf.*got 'wam'"):
        make(*given)


def test_the_usual_name_of_the_speed_limit_of_a_controller():
    with pytest.raises(OptionError, match=r"option max_speed; did you mean max_linear_speed"):
        Controller(WAM, max_speed=1.0)
