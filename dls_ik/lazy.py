# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Lazy import: the modules with a package's public names are imported when first used."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def on_first_use(
    package: str, modules: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return the module functions `__getattr__` and `__dir__` of a package with lazy imports.

    The module of a public name is imported when the name is used for the first time.

    Args:
        package: Name of the package.
        modules: Module that defines each public name, relative to the package, by name.
    """

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{modules[name]}"), name)

    def names() -> list[str]:
        return sorted({*vars(import_module(package)), *modules})

    return find, names
