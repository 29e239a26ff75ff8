# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The command ``dls-ik``: a group whose subcommands are imported when used."""

import os
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

import click

from dls_ik import __version__
from dls_ik.cli import output
from dls_ik.core import NumbaStartError
from dls_ik.errors import DlsIkError
from dls_ik.text import did_you_mean, escape

# Help lines of the commands by section. A command is a function in a module of the same name.
SECTIONS: dict[str, dict[str, str]] = {
    "Robots": {
        "info": "Show joints, limits and reach of a robot.",
        "fk": "Show the pose of the tip at joint positions.",
        "solve": "Find joint positions for a pose.",
        "path": "Turn a file of poses into a trajectory.",
        "episode": "Convert poses of a data set to joints.",
        "reachability": "Map what an arm reaches.",
        "collisions": "Show collision pairs and statistics.",
    },
    "Methods": {
        "methods": "List the methods: names, sources, use.",
        "compare": "Compare methods at a singularity.",
        "reproduce": "Run a published experiment again.",
        "study": "Compare methods, with statistics.",
        "tune": "Find the best value of an option.",
        "scenario": "Run a method on the chain of a file.",
    },
    "View": {"view": "Show an arm in the browser, and drag it."},
    "Node": {
        "call": "Send a request to a node.",
        "stream": "Send targets to a node.",
        "record": "Record targets and motion of a node.",
        "replay": "Replay a recording to a node.",
        "waypoint": "Save positions of an arm, and go there.",
        "teleop": "Move the arm of a node by a device.",
    },
    "Setup": {"doctor": "Check the installation."},
}

COMMAND_SUMMARIES: dict[str, str] = {
    name: line for part in SECTIONS.values() for name, line in part.items()
}


class OneLineGroup(click.Group):
    """Click group that reports errors in one line on stderr, and imports a command when it is used.

    Help and completion read the names in SECTIONS and import no command, so that they are fast.
    """

    def main(self, args: Sequence[str] | None = None, *rest: Any, **named: Any) -> NoReturn:
        """Run the command line and exit; an error is printed in one line and sets the exit code."""
        named["standalone_mode"] = False
        if threading.current_thread() is threading.main_thread():
            # Background jobs of shell scripts start with SIGINT ignored; make Ctrl-C work there.
            signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            code = super().main(args, *rest, **named)
            sys.stdout.flush()
        except click.Abort as error:
            if isinstance(error.__cause__, EOFError):  # click converts any EOFError to Abort
                output.exit_with(f"a file is truncated: {error.__cause__}", output.EXIT_BAD_INPUT)
            output.exit_with("interrupted", output.EXIT_INTERRUPTED)
        except (output.MissingPartError, NumbaStartError) as error:
            output.exit_with(str(error), output.EXIT_MISSING)
        except click.ClickException as error:
            output.exit_with(_message(error), output.EXIT_BAD_INPUT)
        except DlsIkError as error:
            output.exit_with(str(error), output.EXIT_BAD_INPUT)
        except BrokenPipeError:  # the reader of the output has exited
            _discard_output()
            sys.exit(1)
        except OSError as error:  # the disk may be full
            _discard_output()
            subject = escape(error.filename) if error.filename else "cannot write the output"
            output.exit_with(f"{subject}: {error.strerror or error}", output.EXIT_BAD_INPUT)
        sys.exit(code if isinstance(code, int) else 0)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; exit with a one-line message if it does not handle a KeyboardInterrupt."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            output.exit_interrupted()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands: those of COMMAND_SUMMARIES first, in order."""
        return [*COMMAND_SUMMARIES, *self.commands]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with a name; import a command of COMMAND_SUMMARIES from its module."""
        if cmd_name not in COMMAND_SUMMARIES:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(f"dls_ik.cli.{cmd_name}"), cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command called `args[0]`; suggest a similar name if the command is unknown."""
        known = self.list_commands(ctx)
        if args[0] not in known and args[0].isidentifier() and not ctx.resilient_parsing:
            hint = did_you_mean(args[0], known) or f"commands: {', '.join(known)}"
            raise click.UsageError(f"unknown command {args[0]!r}; {hint}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the help lines of all commands, one block per section."""
        width = max(map(len, COMMAND_SUMMARIES))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", line) for name, line in commands.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[Any]:
        """Return shell completions for `incomplete`: names of commands and options of the group."""
        from click.shell_completion import CompletionItem

        names = [name for name in self.list_commands(ctx) if name.startswith(incomplete)]
        found = [CompletionItem(name, help=COMMAND_SUMMARIES.get(name)) for name in names]
        return found + click.Command.shell_complete(self, ctx, incomplete)


def _discard_output() -> None:
    """Redirect stdout to /dev/null, because Python would write buffered output again at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _message(error: click.ClickException) -> str:
    """Return the message of an error of the library click, with a hint to correct the command.

    An unknown option is followed by a similar option, and an unexpected argument by the format of
    joint positions.
    """
    message = error.format_message()
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return message
    params = error.ctx.command.get_params(error.ctx)
    if isinstance(error, click.NoSuchOption):
        words = [word for param in params for word in param.opts if word.startswith("--")]
        hint = did_you_mean(error.option_name, words) or f"see {error.ctx.command_path} --help"
        return f"unknown option {error.option_name}; {hint}"
    lists = [param.opts[0] for param in params if getattr(param, "metavar", "") == "VALUES"]
    if lists and "unexpected extra argument" in message:
        hint = ", ".join(f"{option} 0.1,0.2" for option in lists)
        return f"{message}; joint positions are separated by commas: {hint}"
    return message


@click.group(
    cls=OneLineGroup,
    invoke_without_command=True,
    context_settings={"show_default": True},
    epilog="dls-ik COMMAND --help lists the options of a command.",
)
@click.version_option(__version__, prog_name="dls-ik")
@click.pass_context
def main(context: click.Context) -> None:
    """Inverse kinematics by the Jacobian: solve, compare, view, and talk to a node."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
