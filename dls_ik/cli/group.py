"""A group of commands whose errors are one line, with exit code 2."""

import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import click

from dls_ik.exceptions import DlsIkError

NO_SOLUTION, BAD_INPUT, INTERRUPTED = 1, 2, 130
MISSING = 3


class MissingPartError(click.ClickException):
    """Something has to be installed or started for what was asked; the message says what."""

    exit_code = MISSING


class OneLineGroup(click.Group):
    """Says what is wrong in a line on stderr; click would add usage and a hint."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **named: Any) -> NoReturn:
        """Run the command line and exit."""
        named["standalone_mode"] = False
        try:
            code = super().main(args, *rest, **named)
        except click.Abort:
            click.echo("dls-ik: interrupted", err=True)
            sys.exit(INTERRUPTED)
        except MissingPartError as error:
            _complain(error.format_message(), MISSING)
        except click.ClickException as error:
            _complain(error.format_message())
        except DlsIkError as error:
            _complain(str(error))
        sys.exit(code if isinstance(code, int) else 0)


def _complain(text: str, code: int = BAD_INPUT) -> NoReturn:
    click.echo("dls-ik: " + " ".join(text.split()), err=True)
    sys.exit(code)
