#!/usr/bin/env python3
# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Build the message packages of this folder into the virtual environment that runs this script.

A machine with ROS 2 has these packages already. Elsewhere the wheels that install rclpy also
contain the rosidl generators, headers and libraries. This script generates the C and Python
sources of each package, compiles them and installs what an installation of ROS 2 has for C and
Python: one library for each kind of generated code, the Python package, the interface files,
package.xml and the entries of the ament index. C++ headers and type supports are left out::

    .venv/bin/python underlay/build.py
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import logging
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
PACKAGES = (
    "object_recognition_msgs",
    "octomap_msgs",
    "moveit_msgs",
    "control_msgs",
)  # each package follows those that it depends on
INTERFACE_KINDS = ("action", "msg", "srv")
PREFIX = Path(sys.prefix)
SITE_PACKAGES = Path(sysconfig.get_path("platlib"))
TYPE_SUPPORTS = ("rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c")
DISPATCH, PYTHON = "rosidl_typesupport_c", "rosidl_generator_py"
# A library of each package for each kind of generated code. A library uses those before it.
KINDS = ("rosidl_generator_c", *TYPE_SUPPORTS, DISPATCH, PYTHON)
EXTENSION = "extension"  # the module that Python imports; its source is generated with PYTHON
# Sources that can be compiled together, by the end of their names; others define equal names.
JOINED = ("__type_support_c.cpp", "_s.c", "__functions.c", "__type_support.c", "__type_support.cpp")
DEPENDENCY_LIBRARIES = (
    *(f"lib*__{kind}.so" for kind in KINDS),
    "librosidl_*.so",
    "libfastcdr.so",
    "librcutils.so",
    "librmw.so",
)


class BuildError(Exception):
    """Something on this machine keeps the packages from being built."""


def find_compilers() -> dict[str, str]:
    """Return the compiler for each source suffix."""
    compilers = {".c": shutil.which("gcc"), ".cpp": shutil.which("g++")}
    header = Path(sysconfig.get_path("include"), "Python.h")
    if None in compilers.values() or not header.is_file():
        raise BuildError("no C and C++ compiler or no Python.h: apt-get install -y g++ python3-dev")
    return {suffix: str(path) for suffix, path in compilers.items()}


def extension_name(package: str) -> str:
    """Return the file name under which rosidl looks for a package's extension module."""
    return f"{package}_s__rosidl_typesupport_c{sysconfig.get_config_var('EXT_SUFFIX')}"


def library_name(package: str, kind: str) -> str:
    """Return the file name and soname under which rosidl opens a package's library."""
    return f"lib{package}__{kind}.so"


def generators() -> dict[str, Any]:
    """Return the generator of each kind of code.

    Raises:
        BuildError: If the wheels with the generators are not installed.
    """
    try:
        from rosidl_generator_c.cli import GenerateC
        from rosidl_generator_py.cli import GeneratePython
        from rosidl_typesupport_c.cli import GenerateCTypesupport
        from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport
        from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport
    except ImportError as error:
        raise BuildError(
            f"no rosidl generators here ({error}): pip install -r requirements/ros.txt"
        ) from error
    by_kind = (
        GenerateC("c"),
        GenerateFastRTPSCTypesupport("fastrtps_c"),
        GenerateIntrospectionCTypesupport("introspection_c"),
        GenerateCTypesupport("c", typesupport_implementations=list(TYPE_SUPPORTS)),
        GeneratePython("py", typesupport_implementations=[DISPATCH]),
    )
    return dict(zip(KINDS, by_kind, strict=True))


def generate_sources(package: str, build: Path) -> None:
    """Write a package's interface files into build/share, and sources into build/KIND."""
    by_kind = generators()
    from rosidl_cli.command.hash.api import generate_type_hashes
    from rosidl_cli.command.translate.api import translate
    from rosidl_parser import parser

    # Every generator parses every file, which takes as long as everything else that it does.
    parser.parse_idl_string = functools.cache(parser.parse_idl_string)
    definitions = sorted(
        path for kind in INTERFACE_KINDS for path in (HERE / package).glob(f"{kind}/*.{kind}")
    )
    include_paths = [str(PREFIX / "share"), str(build / "share")]
    idl_files = translate(
        package_name=package,
        interface_files=[f"{HERE / package}:{d.relative_to(HERE / package)}" for d in definitions],
        include_paths=include_paths,
        output_format="idl",
        output_path=build / "share" / package,
    )
    # The generator of C would write the type descriptions where later packages do not find them.
    hashes = generate_type_hashes(
        package_name=package,
        interface_files=idl_files,
        include_paths=include_paths,
        output_path=build / "share" / package,
    )
    for kind, generator in by_kind.items():
        if kind != KINDS[0]:
            generator.generate(package, list(idl_files), include_paths, build / kind / package)
            continue
        # The generator of C finds a type description by the name of the file without its folder,
        # and an action may have the name of a message.
        for folder in INTERFACE_KINDS:
            files = [path for path in idl_files if in_folder(path, folder)]
            known = [path for path in hashes if in_folder(path, folder)]
            if files:
                output = build / kind / package
                generator.generate(
                    package, files, include_paths, output, type_description_files=known
                )


def in_folder(path: str | Path, folder: str) -> bool:
    """Return whether a file, named as PATH or as PREFIX:PATH, is directly in a folder."""
    return Path(str(path).replace(":", "/")).parent.name == folder


def include_flags(build: Path) -> list[str]:
    """Return the compiler flags that find the headers of Python, numpy and every package."""
    import numpy as np

    include = PREFIX / "include"
    folders = [*(build / kind for kind in KINDS), include]
    folders += [path for path in sorted(include.iterdir()) if path.is_dir()]
    folders += [Path(sysconfig.get_path("include")), Path(np.get_include())]
    return [f"-I{folder}" for folder in folders]


def run(command: list[str]) -> None:
    """Run a compiler.

    Raises:
        BuildError: If the compiler fails; with the first line in which it names an error.
    """
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["(no output)"]
        first = next((line for line in lines if "error" in line), lines[-1])
        raise BuildError(f"{command[0]} failed: {first}")


def sources_by_target(package: str, build: Path) -> dict[str, list[Path]]:
    """Return the sources of each library, and of the extension module."""
    found = {}
    for kind in KINDS:
        sources = [p for p in (build / kind / package).rglob("*") if p.suffix in {".c", ".cpp"}]
        found[kind] = sorted(sources)
    entries = [path for path in found[PYTHON] if f".ep.{DISPATCH}" in path.name]
    found[PYTHON] = [path for path in found[PYTHON] if path not in entries]
    return {
        **{kind: join_sources(paths, build / kind / package) for kind, paths in found.items()},
        EXTENSION: entries,
    }


def join_sources(sources: list[Path], folder: Path) -> list[Path]:
    """Replace sources of equal ends by one file, so that the compiler reads their headers once."""
    rest = list(sources)
    joined = []
    for end in JOINED:
        alike = [path for path in rest if path.name.endswith(end)]
        if not alike:
            continue
        rest = [path for path in rest if path not in alike]
        joined.append(folder / f"joined{end}")
        joined[-1].write_text("".join(f'#include "{path}"\n' for path in alike))
    return [*joined, *rest]


def object_of(source: Path) -> Path:
    """Return the object file of a source."""
    return source.with_suffix(source.suffix + ".o")


def compile_sources(sources: list[Path], build: Path, jobs: int) -> None:
    """Compile each source to the object file next to it, `jobs` at a time."""
    compilers = find_compilers()
    flags = ["-O1", "-g0", "-w", "-fPIC", *include_flags(build)]

    def compile_one(source: Path) -> None:
        run([compilers[source.suffix], *flags, "-c", str(source), "-o", str(object_of(source))])

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(compile_one, sources))


def link(target: Path, objects: list[Path], libraries: list[Path], rpath: str) -> None:
    """Link objects into a shared library that finds its dependencies without LD_LIBRARY_PATH.

    The libraries of the wheels have no search path of their own. The old kind of rpath also counts
    for them when they are loaded as dependencies of the target, and for what they open by name.
    """
    run(
        [
            find_compilers()[".cpp"],
            "-shared",
            "-Wl,--as-needed",
            "-Wl,--disable-new-dtags",
            "-Wl,--strip-all",
            f"-Wl,-soname,{target.name}",
            f"-Wl,-rpath,{rpath}",
            *map(str, [*objects, *libraries]),
            "-o",
            str(target),
        ]
    )


def link_package(package: str, targets: dict[str, list[Path]], build: Path) -> None:
    """Link the libraries of a package into build/lib, and its extension module into build."""
    wheels = [p for pattern in DEPENDENCY_LIBRARIES for p in sorted(PREFIX.glob(f"lib/{pattern}"))]
    own = {library_name(each, kind) for each in PACKAGES for kind in KINDS}
    wheels = [path for path in wheels if path.name not in own]  # an earlier build's
    folder = build / "lib"
    folder.mkdir(exist_ok=True)
    to_libraries = os.path.relpath(PREFIX / "lib", SITE_PACKAGES / package)
    for kind, sources in targets.items():
        built = sorted(folder.glob("*.so"))
        objects = [object_of(source) for source in sources]
        if kind == EXTENSION:
            module = build / extension_name(package)
            link(module, objects, [*built, *wheels], f"$ORIGIN/{to_libraries}")
        else:
            library = folder / library_name(package, kind)
            link(library, objects, [*built, *wheels], "$ORIGIN")


def replace(source: Path, target: Path) -> None:
    """Copy a file, to a new file even if the old one is a link or in use."""
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    shutil.copyfile(source, target)


def install(package: str, build: Path) -> None:
    """Install a package's libraries, Python files, interface files and index entries."""
    target = SITE_PACKAGES / package
    shutil.rmtree(target, ignore_errors=True)
    generated = build / PYTHON / package
    for path in sorted(generated.rglob("*.py*")):
        if path.suffix in {".py", ".pyi"}:
            replace(path, target / path.relative_to(generated))
    (target / "__init__.py").touch()
    replace(build / extension_name(package), target / extension_name(package))
    for kind in KINDS:
        name = library_name(package, kind)
        replace(build / "lib" / name, PREFIX / "lib" / name)
    install_share(package, build)


def install_share(package: str, build: Path) -> None:
    """Install the interface files and package.xml, and list them in the ament index."""
    share = PREFIX / "share" / package
    shutil.rmtree(share, ignore_errors=True)
    interfaces = set()
    for folder in (HERE / package, build / "share" / package):
        for path in sorted(folder.glob("*/*")):
            if path.suffix in {".msg", ".srv", ".action", ".idl", ".json"}:
                interfaces.add(path.relative_to(folder))
                replace(path, share / path.relative_to(folder))
    replace(HERE / package / "package.xml", share / "package.xml")
    listed = sorted(str(path) for path in interfaces if path.suffix != ".json")
    for resource, content in (
        ("packages", ""),
        ("package_run_dependencies", ";".join(run_dependencies(package))),
        ("rosidl_interfaces", "\n".join(listed)),
    ):
        entry = PREFIX / "share" / "ament_index" / "resource_index" / resource / package
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.unlink(missing_ok=True)
        entry.write_text(content)


def run_dependencies(package: str) -> list[str]:
    """Return the packages that package.xml declares as needed at run time."""
    root = ET.parse(HERE / package / "package.xml").getroot()  # noqa: S314  our own file
    return [str(each.text) for tag in ("depend", "exec_depend") for each in root.iter(tag)]


def build_package(package: str, build: Path, jobs: int) -> None:
    """Generate, compile and link one package."""
    start = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):  # the generators name every file they read
        generate_sources(package, build)
    targets = sources_by_target(package, build)
    sources = [source for each in targets.values() for source in each]
    print(f"{package}: compiling {len(sources)} files, {jobs} at a time", flush=True)
    compile_sources(sources, build, jobs)
    link_package(package, targets, build)
    print(f"{package}: built in {time.monotonic() - start:.0f} s", flush=True)


def main() -> int:
    """Build and install all packages; return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    cores = len(os.sched_getaffinity(0))
    parser.add_argument("--jobs", type=int, default=cores, help="compilers at a time")
    jobs = parser.parse_args().jobs
    os.environ["AMENT_PREFIX_PATH"] = str(PREFIX)  # where the generators look for their templates
    logging.disable(logging.WARNING)  # the wheels register each generator twice, and say so
    try:
        if sys.prefix == sys.base_prefix:
            raise BuildError(f"{sys.executable} is not a virtual environment's: run scripts/setup")
        find_compilers()
        with tempfile.TemporaryDirectory() as folder:
            for package in PACKAGES:
                build_package(package, Path(folder), jobs)
            for package in PACKAGES:
                install(package, Path(folder))
    except BuildError as error:
        print(f"underlay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
