# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Run the command in this process."""

import json

from click.testing import CliRunner

from dls_ik.cli.main import main

DONE, NO_SOLUTION, BAD_INPUT, MISSING = 0, 1, 2, 3


def run(*arguments, code=DONE, columns=None, stdin=None):
    """The result of ``dls-ik ARGUMENTS``, which must end with that code."""
    env = {"COLUMNS": str(columns)} if columns else {}
    result = CliRunner(env=env).invoke(main, list(map(str, arguments)), input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def document(*arguments, code=DONE):
    """The one JSON document that it prints."""
    return json.loads(run(*arguments, "--json", code=code).stdout)


def refusal(*arguments, code=BAD_INPUT, stdin=None):
    """The one line that says what is wrong."""
    result = run(*arguments, code=code, stdin=stdin)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("dls-ik: ")
    return result.stderr
