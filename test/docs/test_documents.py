# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Every page is followed as a reader would: its snippets and commands, in their order."""

import ast
import io
import re
from contextlib import ExitStack, redirect_stdout
from importlib.util import find_spec

import docs_bench
import pytest
import yaml
from docs_pages import ROOT, SESSION, SHELL, SHOWN, Command, blocks, code_in_column, commands, pages
from docs_table import ONLY_WITH_ROS, RULES, STAGES, Way, rule_of, stage_of
from docs_ways import Server, follow

pytest.importorskip("sybil", reason="needs sybil: requirements/test.txt")

from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser

PYTHON = "python"
SYBIL = Sybil([PythonCodeBlockParser()])


def is_followed(page):
    return bool(commands(page)) or any(block.language == PYTHON for block in blocks(page))


FOLLOWED = [page for page in pages() if is_followed(page)]
SERVED = (Way.ASK, Way.SERVE)


def rules(page):
    found = [rule_of(command.text, command.inline) for command in commands(page)]
    return [rule for rule in found if rule is not None]


def marks(page):
    served = stage_of(page, rules(page)) or any(rule.way in SERVED for rule in rules(page))
    return (pytest.mark.slow, pytest.mark.ros) if served else (pytest.mark.slow,)


def lacking(example):
    """The packages of ROS 2 that a snippet imports and that are not here."""
    imported = [
        name
        for node in ast.walk(ast.parse(example.parsed))
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module]
        )
    ]
    tops = {name.partition(".")[0] for name in imported}
    return [name for name in ONLY_WITH_ROS if name in tops and not _is_installed(name)]


def _is_installed(name):
    spec = find_spec(name)
    return spec is not None and spec.origin is not None  # a folder of this name is no package


@pytest.mark.parametrize("page", [pytest.param(page, marks=marks(page)) for page in FOLLOWED])
def test_snippets_and_commands_of_a_page_run(page, tmp_path, monkeypatch, count, own_plugins):
    folder = docs_bench.make(tmp_path, page)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("MPLBACKEND", "agg")
    steps = [(c.line, c) for c in commands(page)]
    steps += [(example.line, example) for example in SYBIL.parse(ROOT / page).examples()]
    wrong = []
    with ExitStack() as stage:
        for arguments in stage_of(page, rules(page)):
            server = stage.enter_context(Server(_node(arguments), folder))
            server.wait_for("ready")
        for line, step in sorted(steps, key=lambda each: each[0]):
            objection = attempt(step, folder, count)
            wrong += [f"{page}:{line}: {objection}"] if objection else []
    count("pages followed")
    assert not wrong, "\n".join(wrong)


def test_calls_beside_those_of_other_packages_work(tmp_path, monkeypatch, count):
    page = "docs/from_other_packages.md"
    monkeypatch.chdir(docs_bench.make(tmp_path, page))
    names, wrong = {}, []
    for block in blocks(page):
        exec(block.text, names)
    calls = code_in_column(page, 1)
    for line, code in calls:
        try:
            eval(code, names)
        except Exception as error:  # noqa: BLE001
            wrong.append(f"{page}:{line}: {code}: {error}")
        count("calls in tables run")
    assert len(calls) > 50
    assert not wrong, "\n".join(wrong)


def attempt(step, folder, count):
    """Run a snippet or a command; return what is wrong: the rest of the page is of interest too."""
    try:
        count(_command(step, folder) if isinstance(step, Command) else _snippet(step))
    except Exception as error:  # noqa: BLE001
        return f"{type(error).__name__}: {error}"
    return ""


def _node(arguments):
    return " ".join([arguments[0], "--ros-args", *arguments[1:]])


def _command(command, folder):
    rule = rule_of(command.text, command.inline)
    assert rule is not None, f"no rule in docs_table.py for: {command.text}"
    follow(command, rule, folder)
    return f"commands {rule.way.value}"


def _snippet(example):
    missing = lacking(example)
    if missing:
        return f"snippets compiled alone, without {', '.join(missing)}"
    with redirect_stdout(io.StringIO()):
        example.evaluate()
    return "snippets run"


@pytest.mark.parametrize("page", pages())
def test_every_code_block_has_a_known_language(page):
    """A language that is neither run nor known to be shown would go untested."""
    for block in blocks(page):
        where = f"{page}:{block.line}"
        known = {PYTHON, SESSION, "indented", *SHELL, *SHOWN}
        assert block.language in known or block.language.startswith("{"), where
        assert rule_of(block.text) is None or block.language != "indented", f"{where}: fence it"
        if block.language == "yaml":
            assert yaml.safe_load(block.text), where


def test_every_command_has_a_rule_and_every_rule_a_reason():
    every = [command for page in pages() for command in commands(page)]
    assert not [str(command) for command in every if rule_of(command.text) is None]
    for rule in RULES:
        assert bool(rule.reason) == (rule.way in (Way.LEAVE, Way.LAUNCH, Way.PARSE)), rule
        assert bool(rule.ready) == (rule.way is Way.SERVE), rule
        re.compile(rule.pattern)


def test_stages_are_of_pages_that_are_there():
    assert set(STAGES) <= set(pages())


def test_readme_shows_the_first_commands_within_40_lines():
    """What an integrator, an engineer and a teacher type first."""
    lines = (ROOT / "README.md").read_text().splitlines()
    for command in ("ros2 launch dls_ik wam.launch.py", "dls-ik solve", "dls-ik view"):
        assert any(command in line for line in lines[:40]), command
