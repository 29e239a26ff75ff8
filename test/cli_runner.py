# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Calls of the command line in this process."""

import json

from click.testing import CliRunner

from dls_ik.cli.main import main

DONE, NO_SOLUTION, BAD_INPUT, MISSING = 0, 1, 2, 3


def run(*arguments, code=DONE, columns=None, stdin=None):
    """Return the result of ``dls-ik ARGUMENTS``, and check its exit code."""
    env = {"COLUMNS": str(columns)} if columns else {}
    result = CliRunner(env=env).invoke(main, list(map(str, arguments)), input=stdin)
    assert result.exit_code == code, (result.output, result.exception)
    return result


def document(*arguments, code=DONE):
    """Return the JSON document that the command prints."""
    return json.loads(run(*arguments, "--json", code=code).stdout)


def refusal(*arguments, code=BAD_INPUT, stdin=None):
    """Return the error message, a single line."""
    result = run(*arguments, code=code, stdin=stdin)
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith("dls-ik: ")
    return result.stderr
