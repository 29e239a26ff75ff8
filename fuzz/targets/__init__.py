"""Targets of the campaigns: ``build_NAME`` in a module here makes a function of a Source.

Such a function takes any input, lets errors of ours pass, and raises where a promise is broken.
"""

from collections.abc import Iterable
from importlib import import_module
from types import ModuleType

from fuzz.guard import Run

# Share of the inputs of a campaign, by what an input costs and how much there is to find.
SHARES = {
    "xml": 0.06,
    "urdf": 0.02,
    "dh": 0.03,
    "options": 0.26,
    "poses": 0.12,
    "values": 0.22,
    "tasks": 0.2,
    "parameters": 0.04,
    "requests": 0.02,
    "stream": 0.015,
    "controller": 0.012,
    "commands": 0.003,
}
MODULES = {
    "robots": ("xml", "urdf", "dh"),
    "solving": ("options", "poses", "values", "tasks"),
    "node": ("parameters", "requests", "stream"),
    "controller": ("controller",),
    "commands": ("commands",),
}


def build(name: str) -> Run:
    """Return the function of a target, with robots and kernels loaded."""
    run: Run = getattr(_module(name), f"build_{name}")()
    return run


def seeds(name: str) -> Iterable[bytes]:
    """Return the first inputs of a target."""
    found = getattr(_module(name), f"seeds_{name}", None)
    return [bytes(64), bytes(range(256))] if found is None else found()


def _module(name: str) -> ModuleType:
    (module,) = (each for each, targets in MODULES.items() if name in targets)
    return import_module(f"fuzz.targets.{module}")
