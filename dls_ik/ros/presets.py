"""Presets: parameters of known arms with their usual drivers, a file each in ``config/presets``.

The files are ordinary files of ROS parameters: ``--params-file`` takes them too.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from dls_ik.errors import OptionError
from dls_ik.model.files import share_file
from dls_ik.ros.declare import read_names
from dls_ik.ros.params import Parameters
from dls_ik.text import did_you_mean, listing, quoted

ANCHOR = "wam.yaml"  # a file of the folder
MAX_SUGGESTED = 3  # presets that are suggested for an unknown name
# Parameters of a preset that give way to others, besides giving way to themselves.
GIVES_WAY = {
    "robot": ("robot_description",),
    "base": ("groups", "stream_group"),
    "tip": ("groups", "stream_group"),
    "output_topic": ("output_type",),
}


def preset_names() -> tuple[str, ...]:
    """List the presets, sorted with their numbers as numbers."""
    names = (file.stem for file in preset_file(ANCHOR).parent.glob("*.yaml"))
    return tuple(sorted(names, key=_natural))


def preset_file(file_name: str) -> Path:
    """Find a file of the folder.

    Raises:
        RobotModelError: it is missing, the installation is incomplete.
    """
    return share_file("config", "presets", file_name)


def preset_values(name: str) -> dict[str, Any]:
    """Read the parameters of a preset by name.

    Raises:
        OptionError: an unknown name; the message lists the known ones.
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
    """Return the defaults of a node: those of its preset, if it was given one.

    Args:
        given: the values that the node was started with, by name; ``preset`` may be among them.
            Values of the preset that contradict them are left out.

    Raises:
        OptionError: an unknown preset.
    """
    defaults = Parameters()
    name = read_preset(given.get("preset", ""))
    if not name:
        return defaults
    values = {
        key: value
        for key, value in preset_values(name).items()
        if not any(given.get(other) for other in GIVES_WAY.get(key, ()))
    }
    return defaults.changed({**values, "preset": name})


def is_of_preset(parameters: Parameters, name: str) -> bool:
    """Return whether a parameter has the value that its preset gives it."""
    preset = with_preset({"preset": parameters.preset})
    return bool(getattr(preset, name) == getattr(parameters, name))


def read_preset(value: Any) -> str:
    """Read the name of a preset, as it is or in capitals.

    Raises:
        OptionError: not one name.
    """
    try:
        (name,) = read_names(value) or ("",)
    except ValueError:
        raise OptionError(f"preset takes one name, not {quoted(value)}") from None
    return name.lower()


def summary() -> str:
    """Check all presets; return a sentence about them.

    Raises:
        DlsIkError: a file is missing, or its parameters are not valid.
    """
    names = preset_names()
    for name in names:
        with_preset({"preset": name})
    return f"{len(names)} for -p preset:=NAME: {', '.join(names)}"


def _of_same_series(name: str, known: Iterable[str]) -> list[str]:
    """Return the presets of the series of a name, such as ``ur``, with the closest numbers first.

    Of arms with the same number the e-Series comes first, as the one in production.
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
    return [each for _, _, each in ranked[:MAX_SUGGESTED]]


def _series(name: str) -> tuple[str, int | None]:
    """Return the letters before the first number of a name, and that number; None: no number."""
    found = re.match(r"([a-z_]+)(\d{1,9})", name.lower())
    return (found[1], int(found[2])) if found else (name.lower(), None)


def _natural(name: str) -> list[Any]:
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]
