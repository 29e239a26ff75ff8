"""The command ``dls-ik``; its subcommands are each in a file of their name."""

import click

from dls_ik import __version__
from dls_ik.cli.group import OneLineGroup


@click.group(
    cls=OneLineGroup,
    invoke_without_command=True,
    epilog="dls-ik COMMAND --help says what each takes.",
)
@click.version_option(__version__, prog_name="dls-ik")
@click.pass_context
def main(context: click.Context) -> None:
    """Inverse kinematics by the Jacobian: solve, compare, look, and talk to a node."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
