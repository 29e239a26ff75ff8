# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Presets: sets of parameter values for known arms with their usual drivers.

Each preset is a file in ``config/presets``. The files are ordinary ROS parameter files, which a
node also accepts with ``--params-file``.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.model.files import share_file
from dls_ik.ros.compatibility import SERVO_DEFAULTS, is_servo, servo_parameters
from dls_ik.ros.declare import read_names
from dls_ik.ros.params import Parameters
from dls_ik.text import did_you_mean, listing, quoted

KNOWN_PRESET_FILE = "wam.yaml"  # preset whose path gives the folder of all presets
MAX_SUGGESTIONS = 3  # maximum number of similar names in the message about an unknown preset
# A parameter of a preset (key) is ignored if the user gives one of the listed parameters (values).
SUPPRESSED_BY = {
    "robot": ("robot_description",),
    "base": ("groups", "stream_group"),
    "tip": ("groups", "stream_group"),
    "output_topic": ("output_type",),
}


def preset_names() -> tuple[str, ...]:
    """Return the names of all presets, sorted with numbers by value (``ur5`` before ``ur10``)."""
    names = (file.stem for file in preset_file(KNOWN_PRESET_FILE).parent.glob("*.yaml"))
    return tuple(sorted(names, key=_natural))


def preset_file(file_name: str) -> Path:
    """Return the path of a preset file.

    Raises:
        RobotModelError: If the file is missing because the installation is incomplete.
    """
    return share_file("config", "presets", file_name)


def preset_values(name: str) -> dict[str, Any]:
    """Return the parameter values of a preset by parameter name.

    Args:
        name: Name of the preset.

    Raises:
        OptionError: If the name is unknown; the message lists the known names.
    """
    known = preset_names()
    if name not in known:
        close = _of_same_series(name, known)
        hint = f" (did you mean {' or '.join(close)}?)" if close else ""
        hint = hint or did_you_mean(name, known, " ({})")
        raise OptionError(f"unknown preset {quoted(name)}{hint}; known: {listing(known, 40)}")
    import yaml

    document = yaml.safe_load(preset_file(f"{name}.yaml").read_text(encoding="utf-8"))
    values: dict[str, Any] = document["/**"]["ros__parameters"]
    return values


def with_preset(given: Mapping[str, Any]) -> Parameters:
    """Return the default parameters of a node; a preset replaces some of the defaults.

    Args:
        given: Parameter values by name with which the node was started. If they include ``preset``,
            the values of this preset replace defaults, except those that contradict a given value.
            If ``compatibility`` is ``moveit_servo``, the defaults of MoveIt Servo replace those of
            the node, and parameters of MoveIt Servo replace both.

    Raises:
        OptionError: If the preset is unknown, or a parameter of MoveIt Servo is not valid.
    """
    if not is_servo(given):
        return _with_preset(Parameters(), given)
    defaults = Parameters().changed(dict(SERVO_DEFAULTS))
    values = servo_parameters(given).values
    if "output_topic" in given or "output_type" in given:  # the two belong together
        values = {k: v for k, v in values.items() if k not in ("output_topic", "output_type")}
    return _with_preset(defaults, {**given, **values}).changed(values)


def _with_preset(defaults: Parameters, given: Mapping[str, Any]) -> Parameters:
    name = read_preset(given.get("preset", ""))
    if not name:
        return defaults
    values = {
        key: value
        for key, value in preset_values(name).items()
        if not any(given.get(other) for other in SUPPRESSED_BY.get(key, ()))
    }
    return defaults.changed({**values, "preset": name})


def is_of_preset(parameters: Parameters, name: str) -> bool:
    """Return whether the value of a parameter equals the value in the preset of the node.

    Args:
        parameters: Parameters of the node, including the name of the preset.
        name: Field name of the parameter.
    """
    preset = with_preset({"preset": parameters.preset})
    return bool(getattr(preset, name) == getattr(parameters, name))


def read_preset(value: Any) -> str:
    """Return the value of the parameter ``preset`` in lower case; empty if no preset is given.

    Raises:
        OptionError: If the value is not a single name.
    """
    try:
        (name,) = read_names(value) or ("",)
    except ValueError:
        raise OptionError(f"preset must be one name; got {quoted(value)}") from None
    return name.lower()


def summary() -> str:
    """Check the parameters of all presets, and return a text that lists the presets.

    Raises:
        DlsIkError: If a file is missing, or its parameters are not valid.
    """
    names = preset_names()
    for name in names:
        with_preset({"preset": name})
    return f"{len(names)} for -p preset:=NAME: {', '.join(names)}"


def _of_same_series(name: str, known: Iterable[str]) -> list[str]:
    """Return the presets that are most similar to an unknown name of the form ``SERIESnumber``.

    For ``ur6``, these are presets of the series ``ur``, those with the closest numbers first. For
    equal distances, names that end with ``e`` come first, because these arms are in production.

    Args:
        name: Unknown name.
        known: Names of all presets.
    """
    series, number = _series(name)
    if number is None:
        return []
    alike = [(each, given) for each in known for of, given in [_series(each)] if of == series]
    ranked = sorted(
        (abs(given - number), not each.endswith("e"), each)
        for each, given in alike
        if given is not None
    )
    return [each for _, _, each in ranked[:MAX_SUGGESTIONS]]


def _series(name: str) -> tuple[str, int | None]:
    """Return the letters before the first number of a name, and the number if there is one."""
    found = re.match(r"([a-z_]+)(\d{1,9})", name.lower())
    return (found[1], int(found[2])) if found else (name.lower(), None)


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
