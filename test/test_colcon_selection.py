# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""What plain `colcon test` collects: it needs the dependencies of package.xml and no others."""

import os
import subprocess
import sys

import pytest
from robots import ROOT

# Modules of requirements/ that package.xml does not name, so that a ROS 2 workspace lacks them.
UNDECLARED = (
    "coal", "cosmic_ray", "coverage", "dask", "distributed", "hypothesis", "ipykernel",
    "ipywidgets", "msgspec", "mujoco", "nbclient", "nbformat", "playwright", "pytest_randomly",
    "robot_descriptions", "rosbags", "ruckig", "scipy", "sybil", "trimesh", "viser", "websockets",
    "xdist", "yourdfpy", "zarr",
)  # fmt: skip
BLOCK = f"""
from importlib.machinery import PathFinder

find_spec = PathFinder.find_spec

def find_declared(cls, name, path=None, target=None):
    return None if name.partition(".")[0] in {UNDECLARED!r} else find_spec(name, path, target)

PathFinder.find_spec = classmethod(find_declared)
"""


@pytest.fixture
def collect(tmp_path):
    """Runs pytest as colcon does, without undeclared modules; only its collection."""
    (tmp_path / "blocker.py").write_text(BLOCK)

    def run(*arguments):
        path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get("PYTHONPATH")]))
        environment = {
            **os.environ, "COLCON": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": path
        }  # fmt: skip
        command = [sys.executable, "-m", "pytest", "-p", "blocker", "-p", "no:cacheprovider"]
        return subprocess.run(
            [*command, "--collect-only", "-q", *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=ROOT,
            env=environment,
        )

    return run


def test_only_selected_files_are_imported(collect):
    collected = collect()
    assert collected.returncode == 0, collected.stdout[-4000:] + collected.stderr
    assert "test/test_package.py::test_an_installation_has_all_of_the_package" in collected.stdout
    assert "error" not in collected.stdout.splitlines()[-1]


def test_tests_that_are_asked_for_are_collected(collect):
    collected = collect("test/core/test_limits.py")
    assert "hypothesis" in collected.stdout, "that file needs it"
    assert collected.returncode != 0
