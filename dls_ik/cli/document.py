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
    """The document as strict JSON that people can read too: lists of numbers in a line."""
    return _written(_plain(document), "")


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


def _written(value: Any, indent: str) -> str:
    deeper = indent + "  "
    if isinstance(value, dict) and value:
        inside = [f"{json.dumps(key)}: {_written(each, deeper)}" for key, each in value.items()]
        opening, closing = "{", "}"
    elif isinstance(value, list) and any(isinstance(each, (dict, list)) for each in value):
        inside = [_written(each, deeper) for each in value]
        opening, closing = "[", "]"
    else:
        return json.dumps(value, allow_nan=False)
    lines = f",\n{deeper}".join(inside)
    return f"{opening}\n{deeper}{lines}\n{indent}{closing}"
