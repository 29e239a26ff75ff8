# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik methods``: names and sources of the methods."""

from __future__ import annotations

import click

from dls_ik.cli import output
from dls_ik.cli.options import plugin_option
from dls_ik.cli.terminal import stdout_console
from dls_ik.tables import print_note, print_pairs

EPILOG = (
    "A method has the name used in the papers, its parts joined by '+' in any order: ctp+sd+svf. "
    "Formulas: docs/methods.md; sources: docs/references.md."
)


@click.command(epilog=EPILOG)
@plugin_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--bibtex", "as_bibtex", is_flag=True, help="Print the papers as BibTeX.")
@click.option("--options", "as_options", is_flag=True, help="List the solver options.")
@output.json_option
def methods(names: tuple[str, ...], as_bibtex: bool, as_options: bool, as_json: bool) -> None:
    """List the methods with short name, long name, summary and source; NAME selects methods."""
    from dls_ik.solver.method import method_info, method_table
    from dls_ik.solver.plugins import plugin_names

    if as_options:
        if as_json or as_bibtex or names:
            raise click.UsageError("--options cannot be combined with NAME or other options")
        _print_options()
        return
    own = tuple(map(method_info, plugin_names()))
    found = tuple(map(method_info, names)) or (*method_table(), *own)
    if as_bibtex:
        from dls_ik.solver.references import bibtex

        click.echo(bibtex(each.name for each in found))
        return
    if as_json:
        output.print_json([each._asdict() for each in found])
        return
    pairs: list[tuple[str, str]] = []
    for each in found:
        pairs += [(each.name, each.long_name), ("", f"{each.summary} ({each.source})")]
    console = stdout_console()
    print_pairs(console, pairs)
    if not names:
        console.print()
        print_note(console, "Other combinations of the same parts also work, such as jc+svf.")


def _print_options() -> None:
    """Print meaning, unit, default and valid values of each solver option."""
    from dataclasses import fields

    from dls_ik.solver.options import SolverOptions

    rows = []
    for option in fields(SolverOptions):
        about = option.metadata
        if "choices" in about:
            valid = ", ".join(map(_shown, about["choices"]))
        elif "range" in about:
            valid = " to ".join(map(_shown, about["range"]))
        else:
            valid = "0 to inf" if "per_joint" in about else "numbers"
        unit = f" [{about['unit']}]" if about["unit"] else ""
        default = _shown(option.default)
        rows.append((option.name, f"{about['text']}{unit}; default {default}, values {valid}"))
    print_pairs(stdout_console(), rows)


def _shown(value: object) -> str:
    """Return the value of an option as text, as it is written on the command line."""
    if value is None or isinstance(value, bool):
        return {None: "none", True: "true", False: "false"}[value]
    return f"{value:.4g}" if isinstance(value, (int, float)) else str(value)
