# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Definitions of message types, as recordings contain them, and their comparison.

Definitions are built from the generated Python classes, because the .msg files are not installed
everywhere.
"""

import re
from importlib import import_module
from typing import Any

SEPARATOR = "=" * 80
NAMES = {"double": "float64", "float": "float32", "boolean": "bool", "octet": "byte"}
SEQUENCE = re.compile(r"sequence<(.+?)(?:, (\d+))?>$")
ARRAY = re.compile(r"(.+)\[(\d+)\]$")
BOUNDED_TEXT = re.compile(r"(w?string)<(\d+)>$")


def message_class(name: str) -> Any:
    """Return the Python class of a message type.

    Args:
        name: Name of the type, such as ``sensor_msgs/msg/JointState``.

    Raises:
        ImportError: If the package of the type is not installed, or does not have the type.
    """
    package, _, kind = name.replace("/msg/", "/").partition("/")
    try:
        return getattr(import_module(f"{package}.msg"), kind)
    except AttributeError as error:
        raise ImportError(f"{package} has no message type {kind}", name=package) from error


def message_definition(name: str) -> str:
    """Return the definition of a message type in the format ``ros2msg``.

    The definition has the fields of the type, then the fields of each contained type. Constants,
    comments and default values are left out.

    Args:
        name: Name of the type, such as ``sensor_msgs/msg/JointState``.

    Raises:
        ImportError: If a package is not installed.
    """
    known: dict[str, list[str]] = {}
    waiting = [name.replace("/msg/", "/")]
    while waiting:
        each = waiting.pop(0)
        if each in known:
            continue
        fields = message_class(each).get_fields_and_field_types()
        known[each] = [f"{_msg_type(kind)} {field}" for field, kind in fields.items()]
        types = (_msg_type(kind).partition("[")[0] for kind in fields.values())
        waiting += [kind for kind in types if "/" in kind]
    (_, own), *others = known.items()
    parts = ["\n".join(own), *("\n".join([f"MSG: {n}", *lines]) for n, lines in others)]
    return f"\n{SEPARATOR}\n".join(parts) + "\n"


def _msg_type(kind: str) -> str:
    """Convert the name of a type from IDL, such as ``sequence<double>``, to .msg: ``float64[]``."""
    if found := SEQUENCE.match(kind):
        bound = f"<={found[2]}" if found[2] else ""
        return f"{_msg_type(found[1])}[{bound}]"
    if found := ARRAY.match(kind):
        return f"{_msg_type(found[1])}[{found[2]}]"
    if found := BOUNDED_TEXT.match(kind):
        return f"{found[1]}<={found[2]}"
    return NAMES.get(kind, kind)


def definition_difference(name: str, recorded: str) -> str:
    """Return how a recorded definition differs from the installed message type.

    Args:
        name: Name of the type, such as ``sensor_msgs/msg/JointState``.
        recorded: Recorded definition in the format ``ros2msg``. An empty definition, or one in the
            format IDL, is not compared.

    Returns:
        Text that names the first type with other fields; empty if all fields agree.

    Raises:
        ImportError: If a package is not installed.
    """
    if not recorded.strip() or recorded.lstrip("=\n ").startswith("IDL:"):
        return ""
    given = definition_fields(name, recorded)
    for kind, fields in definition_fields(name, message_definition(name)).items():
        if given.get(kind) != fields:
            ours, theirs = ", ".join(fields), ", ".join(given.get(kind, ("nothing",)))
            return f"{kind} is recorded with the fields {theirs}; the installed type has {ours}"
    return ""


def definition_fields(name: str, text: str) -> dict[str, tuple[str, ...]]:
    """Return the fields of each message type in a definition, such as ``float64[] position``."""
    found: dict[str, tuple[str, ...]] = {}
    for i, part in enumerate(re.split(r"^=+\s*$", text, flags=re.MULTILINE)):
        lines = [line.partition("#")[0].split() for line in part.strip().splitlines()]
        if i == 0:
            kind, package = name.replace("/msg/", "/"), name.partition("/")[0]
        elif lines and lines[0][:1] == ["MSG:"]:
            kind = lines.pop(0)[1].replace("/msg/", "/")
            package = kind.partition("/")[0]
        else:
            continue
        fields = [words for words in lines if len(words) >= 2 and "=" not in "".join(words[1:2])]
        fields = [words for words in fields if words[2:3] != ["="]]
        found[kind] = tuple(f"{_full_type(words[0], package)} {words[1]}" for words in fields)
    return found


def _full_type(kind: str, package: str) -> str:
    """Return a type with its package, and without the optional part ``/msg/``."""
    if kind.partition("[")[0] in ("Header",):
        return f"std_msgs/{kind}"
    if kind[:1].isupper():
        return f"{package}/{kind}"
    return kind.replace("/msg/", "/")
