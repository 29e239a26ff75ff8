# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The packages that underlay/build.py installs are complete for programs that are not Python."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import moveit_msgs
import pytest
from robots import ROOT

PREFIX = Path(sys.prefix)
UNDERLAY = ROOT / "underlay"
PACKAGES = sorted(path.parent.name for path in UNDERLAY.glob("*/package.xml"))
KINDS = (
    "rosidl_generator_c",
    "rosidl_typesupport_c",
    "rosidl_typesupport_fastrtps_c",
    "rosidl_typesupport_introspection_c",
)
KINDS_OF_SOURCES = ("action", "msg", "srv")
INDEX = PREFIX / "share" / "ament_index" / "resource_index"
PROGRAM = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* Begins as rosidl_service_type_support_t and rosidl_message_type_support_t do. */
struct handle {
    const char *identifier;
    const void *data;
    const struct handle *(*find)(const struct handle *, const char *);
};

int main(int count, char **words)
{
    /* words: the kind of the handle that is wanted, a library, the function that returns one */
    void *library = dlopen(words[2], RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        return 1;
    }
    const struct handle *(*get)(void) = (const struct handle *(*)(void))dlsym(library, words[3]);
    const struct handle *found = get ? get() : NULL;
    found = found ? found->find(found, words[1]) : NULL;
    puts(found ? found->identifier : "no handle");
    return !found || strcmp(found->identifier, words[1]);
}
"""

pytestmark = pytest.mark.skipif(
    PREFIX not in Path(moveit_msgs.__file__).parents,
    reason="moveit_msgs comes from a ROS installation",
)


def sources(package: str) -> list[Path]:
    """The definitions of messages, services and actions of a package."""
    return [path for kind in KINDS_OF_SOURCES for path in UNDERLAY.glob(f"{package}/*/*.{kind}")]


def libraries() -> list[Path]:
    python = [next(Path(moveit_msgs.__file__).parents[1].glob(f"{p}/*.so")) for p in PACKAGES]
    shared = [PREFIX / "lib" / f"lib{package}__{kind}.so" for package in PACKAGES for kind in KINDS]
    py = [PREFIX / "lib" / f"lib{package}__rosidl_generator_py.so" for package in PACKAGES]
    return [*shared, *py, *python]


def bare_environment() -> dict[str, str]:
    """The variables of this process without those by which the wheels find their libraries."""
    return {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}


def test_each_library_resolves_its_ros_dependencies() -> None:
    assert len(libraries()) == 6 * len(PACKAGES)
    for library in libraries():
        told = subprocess.run(
            ["ldd", library], env=bare_environment(), capture_output=True, text=True, check=True
        ).stdout
        # Wheels keep what they were built with in folders of their own, for LD_LIBRARY_PATH.
        ours = [line for line in told.splitlines() if "rosidl" in line or "_msgs" in line]
        assert ours, told
        assert [line for line in ours if "not found" in line] == [], library


def test_soname_of_each_library_equals_its_file_name() -> None:
    readelf = shutil.which("readelf") or pytest.skip("needs readelf")
    for library in libraries():
        told = subprocess.run(
            [readelf, "-d", library], capture_output=True, text=True, check=True
        ).stdout
        (soname,) = re.findall(r"soname: \[(.*)\]", told)
        assert soname == library.name
        assert not library.is_symlink()


@pytest.fixture(scope="module")
def opener(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program in C that opens a library and asks for a type support."""
    compiler = shutil.which("gcc") or pytest.skip("needs gcc")
    folder = tmp_path_factory.mktemp("opener")
    (folder / "opener.c").write_text(PROGRAM)
    program = folder / "opener"
    subprocess.run([compiler, folder / "opener.c", "-o", program, "-ldl"], check=True)
    return program


@pytest.mark.parametrize(
    ("of", "kind", "name"),
    [
        ("service", "introspection_c", "moveit_msgs__srv__GetPositionIK"),
        ("service", "fastrtps_c", "moveit_msgs__srv__GetPositionIK"),
        ("message", "introspection_c", "moveit_msgs__msg__PlanningScene"),
        ("message", "introspection_c", "octomap_msgs__msg__OctomapWithPose"),
        ("message", "fastrtps_c", "object_recognition_msgs__msg__ObjectType"),
    ],
)
@pytest.mark.parametrize("dispatched", [False, True])
def test_type_supports_are_loaded_by_a_c_program(
    of: str, kind: str, name: str, dispatched: bool, opener: Path
) -> None:
    """Of the library itself, and of the one that chooses among all of them at run time."""
    package = name.partition("__")[0]
    opened = "rosidl_typesupport_c" if dispatched else f"rosidl_typesupport_{kind}"
    library = PREFIX / "lib" / f"lib{package}__{opened}.so"
    function = f"{opened}__get_{of}_type_support_handle__{name}"
    identifier = f"rosidl_typesupport_{kind}"
    done = subprocess.run(
        [opener, identifier, library, function],
        env=bare_environment(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_index_lists_the_packages_and_their_interfaces() -> None:
    assert PACKAGES == ["control_msgs", "moveit_msgs", "object_recognition_msgs", "octomap_msgs"]
    for package in PACKAGES:
        share = PREFIX / "share" / package
        assert (INDEX / "packages" / package).is_file()
        assert (share / "package.xml").read_bytes() == (
            UNDERLAY / package / "package.xml"
        ).read_bytes()
        listed = (INDEX / "rosidl_interfaces" / package).read_text().splitlines()
        written = sorted(str(path.relative_to(UNDERLAY / package)) for path in sources(package))
        assert [name for name in listed if not name.endswith(".idl")] == written
        assert [name for name in listed if not (share / name).is_file()] == []
        for name in written:
            described = (share / name).with_suffix(".json").read_text()
            assert f'"{package}/{name.rpartition(".")[0]}"' in described


def test_run_dependencies_are_packages_of_the_index() -> None:
    for package in PACKAGES:
        needed = (INDEX / "package_run_dependencies" / package).read_text().split(";")
        assert [name for name in needed if not (INDEX / "packages" / name).is_file()] == []
        used = {
            found
            for path in sources(package)
            for found in re.findall(r"^([a-z_]+)/\w+", path.read_text(), re.MULTILINE)
        }
        assert used - {package} <= set(needed)
