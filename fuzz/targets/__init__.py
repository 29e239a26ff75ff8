# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Targets of the campaigns: functions ``fuzz_NAME`` of a Source, in the modules here.

A target accepts any input, ignores errors of the package, and raises if a promise is broken.
"""

from importlib import import_module

from fuzz.guard import Run

# By module: the share of the inputs, by what an input costs and how much there is to find.
TARGETS = {
    "robots": {"xml": 0.06, "urdf": 0.02, "dh": 0.03},
    "scenes": {"meshes": 0.05, "fits": 0.01, "geometry": 0.03, "srdf": 0.04, "scenes": 0.06},
    "solving": {"options": 0.26, "poses": 0.12, "values": 0.22, "tasks": 0.2, "controller": 0.012},
    "node": {"parameters": 0.04, "requests": 0.02, "stream": 0.015},
    "commands": {"commands": 0.003},
}
SHARES = {name: share for shares in TARGETS.values() for name, share in shares.items()}


def build(name: str) -> Run:
    """Return a target; its first inputs may load or compile kernels."""
    (module,) = (each for each, shares in TARGETS.items() if name in shares)
    run: Run = getattr(import_module(f"fuzz.targets.{module}"), f"fuzz_{name}")
    return run
