"""The command ``dls-ik`` and its subcommands, each in its file."""

import click

from dls_ik import __version__
from dls_ik.cli.call import call
from dls_ik.cli.group import OneLineGroup
from dls_ik.cli.reachability import reachability
from dls_ik.cli.reproduce import reproduce
from dls_ik.cli.view import view


@click.group(cls=OneLineGroup, invoke_without_command=True)
@click.version_option(__version__, prog_name="dls-ik")
@click.pass_context
def main(context: click.Context) -> None:
    """Inverse kinematics by the Jacobian: maps, published experiments, requests to a node."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


main.add_command(call)
main.add_command(reachability)
main.add_command(reproduce)
main.add_command(view)
