"""What commands print for programs: one JSON document."""

import json
from typing import Any

import click
import numpy as np

json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document, numbers in full."
)


def print_json(document: Any) -> None:
    """Print a document of dicts, lists, arrays and numbers; what is not finite becomes null."""
    click.echo(json_text(document))


def json_text(document: Any) -> str:
    """The document as strict JSON, as everything reads it."""
    return json.dumps(_plain(document), indent=2, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, np.generic):
        return _plain(value.item())
    return None if isinstance(value, float) and not np.isfinite(value) else value
