# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Scenario files of chains: forms, iterations against the reproduction, refusals, the command."""

import json
from math import pi, sqrt

import numpy as np
import pytest
from cli_runner import NO_SOLUTION, document, refusal, run

from dls_ik.errors import DlsIkError
from dls_ik.reproduce.tabaczynski import SCENARIOS, TABLE_4_METHODS, follow
from dls_ik.solver.scenario import read_scenario, run_scenario, scenario_of

FIVE = SCENARIOS[3]
GIVEN = {
    "translate": [[length, 0.0, 0.0] for length in FIVE.links],
    "theta": list(FIVE.start),
    "end_goal": [*FIVE.goal, 0.0],
    "tolerance": 0.01,
}


@pytest.mark.parametrize("method", TABLE_4_METHODS)
def test_iterations_are_those_of_table_4_4(method):
    name, options = TABLE_4_METHODS[method]
    trace = run_scenario(scenario_of(GIVEN), name, 200, **options)
    q, distance = follow(FIVE, TABLE_4_METHODS[method], len(trace.q))
    np.testing.assert_allclose(trace.q, q, atol=1e-9)
    np.testing.assert_allclose(trace.distance, distance, atol=1e-9)
    assert trace.is_solved
    assert len(trace.q) == FIVE.printed[list(TABLE_4_METHODS).index(method)][0]
    assert set(trace.rank) == {2}


def test_ends_of_links_are_another_form_of_the_same_chain():
    angles = np.cumsum(FIVE.start)
    ends = np.cumsum(
        [[r * np.cos(a), r * np.sin(a), 0.0] for r, a in zip(FIVE.links, angles, strict=True)],
        axis=0,
    )
    given = {"position": ends.tolist(), "end_goal": list(FIVE.goal), "tolerance": 0.01}
    other = scenario_of(given)
    T = other.robot.fk(other.start)
    np.testing.assert_allclose(T[:3, 3], ends[-1], atol=1e-12)
    np.testing.assert_allclose(T, scenario_of(GIVEN).robot.fk(np.array(FIVE.start)), atol=1e-12)


def test_rank_of_a_straight_chain_is_one():
    given = {**GIVEN, "theta": [0.3, 0.0, 0.0, 0.0, 0.0]}
    assert run_scenario(scenario_of(given), "dls", 2).rank[0] == 1


def test_files_of_all_kinds_are_the_same(tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(GIVEN))
    (tmp_path / "s.yaml").write_text("\n".join(f"{k}: {v}" for k, v in GIVEN.items()))
    files = ["s.json", "s.yaml"]
    scipy_io = pytest.importorskip("scipy.io", reason="scipy is not installed")
    matrices = {**GIVEN, "translate": np.transpose(GIVEN["translate"])}
    scipy_io.savemat(tmp_path / "s.mat", matrices)
    for file in (*files, "s.mat"):
        found = read_scenario(tmp_path / file)
        np.testing.assert_allclose(found.start, FIVE.start)
        np.testing.assert_allclose(found.goal, GIVEN["end_goal"])
        assert found.tolerance == 0.01
        assert found.robot.n == 5


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"end_gaol": [0, 0, 0]}, "did you mean end_goal"),
        ({"position": [[1, 0, 0]]}, "either translate and theta, or position"),
        ({"theta": [0.0]}, "theta must be 5 finite numbers"),
        ({"theta": [[0.0], [1.0, 2.0]]}, "theta must be 5 finite numbers"),
        ({"tolerance": 10**400}, "tolerance must be a finite number"),
        ({"translate": [[1.0, 0.0]]}, "translate must be n by 3 finite numbers"),
        ({"end_goal": None}, "end_goal must be 3 finite numbers"),
        ({"tolerance": 0.0}, "tolerance must be positive"),
        ({"tolerance": "x"}, "tolerance must be a finite number"),
    ],
)
def test_scenarios_that_are_not_valid_are_refused(changes, words):
    with pytest.raises(DlsIkError, match=words):
        scenario_of({**GIVEN, **changes})


def test_command_prints_rank_distance_and_steps(tmp_path):
    file = tmp_path / "five.json"
    file.write_text(json.dumps(GIVEN))
    cap = ("--set", f"largest_change={pi / 4}")
    words = ("scenario", file, "--method", "dls+clamp+max", "--set", f"lambda={sqrt(1.1)}", *cap)
    printed = run(*words, "--set", "D_max=0.7", columns=120).stdout
    assert "goal reached within 0.01 in 16 iterations" in printed
    found = document("scenario", file, "--method", "tpinv+max", "--set", "truncation=5e-5", *cap)
    assert (found["iterations"], found["rank"]) == (6, [2] * 6)
    run("scenario", file, "--iterations", 3, code=NO_SOLUTION)
    assert "cannot read the scenario" in refusal("scenario", tmp_path / "none.yaml")
