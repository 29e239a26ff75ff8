"""What is fuzzed: a module for each target, which builds a function of a source of values.

Such a function takes whatever comes, lets pass what is refused by an error of ours, and raises
where a promise is broken.
"""

from collections.abc import Iterable
from importlib import import_module

from fuzz.guard import Run

# Inputs of a campaign of a million, by what they cost and how much there is to find.
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


def built(name: str) -> Run:
    """The function of a target, ready: robots loaded, kernels compiled."""
    run: Run = import_module(f"fuzz.targets.{name}").build()
    return run


def seeds(name: str) -> Iterable[bytes]:
    """Inputs to begin with, where a target has some."""
    found = getattr(import_module(f"fuzz.targets.{name}"), "seeds", None)
    return [bytes(64), bytes(range(256))] if found is None else found()
