"""``dls-ik methods``: the methods by name, with sources."""

from __future__ import annotations

import click

from dls_ik.cli import output
from dls_ik.cli.options import plugin_option
from dls_ik.cli.terminal import print_note, print_pairs, stdout_console

EPILOG = (
    "A method is named as in the papers, its parts joined by '+' in any order: ctp+sd+svf. "
    "docs/methods.md has formulas and options, docs/references.md the sources in full."
)


@click.command(epilog=EPILOG)
@plugin_option
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--bibtex", "as_bibtex", is_flag=True, help="Print the papers, for BibTeX.")
@output.json_option
def methods(names: tuple[str, ...], as_bibtex: bool, as_json: bool) -> None:
    """List methods: short and long name, source, use. Without NAME all that have a name."""
    from dls_ik.solver.method import method_info, method_table
    from dls_ik.solver.plugins import plugin_names

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
        print_note(console, "Other combinations of the same parts work too, such as jc+svf.")
