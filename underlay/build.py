#!/usr/bin/env python3
"""Build the message packages of this folder into the virtual environment that runs this script.

A machine with ROS 2 has these packages already. Elsewhere the wheels that bring rclpy also bring
the rosidl generators, headers and libraries; this script generates the C and Python sources of
each package, compiles them into one extension module and puts the result into site-packages::

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
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGES = (
    "object_recognition_msgs",
    "octomap_msgs",
    "moveit_msgs",
)  # a package follows those it uses
PREFIX = Path(sys.prefix)
SITE_PACKAGES = Path(sysconfig.get_path("platlib"))
TYPE_SUPPORTS = ("rosidl_typesupport_fastrtps_c", "rosidl_typesupport_introspection_c")
APART = "introspection"  # folder of the sources that go by names already taken
# Ends of the names of sources that can be compiled together; others define the same names.
JOINED = ("__type_support_c.cpp", "_s.c", "__functions.c", "__type_support.c", "__type_support.cpp")
DEPENDENCY_LIBRARIES = (
    "lib*__rosidl_generator_c.so",
    "lib*__rosidl_generator_py.so",
    "lib*__rosidl_typesupport_c.so",
    "lib*__rosidl_typesupport_fastrtps_c.so",
    "lib*__rosidl_typesupport_introspection_c.so",
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


def generate_sources(package: str, build: Path) -> None:
    """Write the IDL, type description, C and Python sources of a package into build/package."""
    try:
        from rosidl_cli.command.translate.api import translate
        from rosidl_generator_c.cli import GenerateC
        from rosidl_generator_py.cli import GeneratePython
        from rosidl_parser import parser
        from rosidl_typesupport_c.cli import GenerateCTypesupport
        from rosidl_typesupport_fastrtps_c.cli import GenerateFastRTPSCTypesupport
        from rosidl_typesupport_introspection_c.cli import GenerateIntrospectionCTypesupport
    except ImportError as error:
        raise BuildError(
            f"no rosidl generators here ({error}): pip install -r requirements/ros.txt"
        ) from error
    # Every generator parses every file, which takes as long as all else that they do.
    parser.parse_idl_string = functools.cache(parser.parse_idl_string)
    output = build / package
    definitions = sorted((HERE / package).glob("[ms][sr][gv]/*.[ms][sr][gv]"))
    include_paths = [str(PREFIX / "share"), str(build)]
    idl_files = translate(
        package_name=package,
        interface_files=[f"{HERE / package}:{d.relative_to(HERE / package)}" for d in definitions],
        include_paths=include_paths,
        output_format="idl",
        output_path=output,
    )
    for generator in (
        GenerateC("c"),
        GenerateCTypesupport("c", typesupport_implementations=list(TYPE_SUPPORTS)),
        GenerateFastRTPSCTypesupport("fastrtps_c"),
        GeneratePython("py", typesupport_implementations=["rosidl_typesupport_c"]),
    ):
        generator.generate(package, list(idl_files), include_paths, output)
    # This one names its files as the first one does.
    apart = build / APART / package
    GenerateIntrospectionCTypesupport("introspection_c").generate(
        package, list(idl_files), include_paths, apart
    )


def include_flags(build: Path) -> list[str]:
    """Return the compiler flags that find the headers of Python, numpy and every package."""
    import numpy as np

    include = PREFIX / "include"
    folders = [build, build / APART, include, *(p for p in sorted(include.iterdir()) if p.is_dir())]
    folders += [Path(sysconfig.get_path("include")), Path(np.get_include())]
    return [f"-I{folder}" for folder in folders]


def run(command: list[str]) -> None:
    """Run a compiler, and on failure report the first line in which it names an error."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["(it said nothing)"]
        first = next((line for line in lines if "error" in line), lines[-1])
        raise BuildError(f"{command[0]} failed: {first}")


def join_sources(sources: list[Path], build: Path) -> list[Path]:
    """Replace the sources of each kind by one: the compiler reads their headers once."""
    rest = list(sources)
    joined = []
    for kind in JOINED:
        alike = [path for path in rest if path.name.endswith(kind)]
        rest = [path for path in rest if path not in alike]
        joined.append(build / f"joined{kind}")
        joined[-1].write_text("".join(f'#include "{path}"\n' for path in alike))
    return [*joined, *rest]


def compile_sources(sources: list[Path], build: Path, jobs: int) -> list[Path]:
    """Compile each source beside itself, `jobs` at a time, and return the object files."""
    compilers = find_compilers()
    flags = ["-O1", "-g0", "-w", "-fPIC", *include_flags(build)]

    def compile_one(source: Path) -> Path:
        target = source.with_suffix(source.suffix + ".o")
        run([compilers[source.suffix], *flags, "-c", str(source), "-o", str(target)])
        return target

    with ThreadPoolExecutor(jobs) as pool:
        return list(pool.map(compile_one, sources))


def link(package: str, objects: list[Path], build: Path) -> None:
    """Link a package's objects into the extension module that its Python sources import."""
    libraries = [
        p for pattern in DEPENDENCY_LIBRARIES for p in sorted(PREFIX.glob(f"lib/{pattern}"))
    ]
    earlier = [build / p / extension_name(p) for p in PACKAGES[: PACKAGES.index(package)]]
    rpaths = ["$ORIGIN/../../..", *(f"$ORIGIN/../{path.parent.name}" for path in earlier)]
    name = extension_name(package)
    run(
        [
            find_compilers()[".cpp"],
            "-shared",
            "-Wl,--as-needed",
            f"-Wl,-soname,{name}",
            *(f"-Wl,-rpath,{rpath}" for rpath in rpaths),
            *map(str, [*objects, *earlier, *libraries]),
            "-o",
            str(build / package / name),
        ]
    )


def install(package: str, build: Path) -> None:
    """Put a built package's Python files and extension module into site-packages."""
    target = SITE_PACKAGES / package
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    (target / "__init__.py").touch()
    for path in sorted((build / package).rglob("*")):
        if path.suffix in {".py", ".pyi"} or path.name == extension_name(package):
            copy = target / path.relative_to(build / package)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)


def link_type_supports(package: str) -> None:
    """Let rosidl find a package's type supports, which it opens by the names of libraries.

    All of them are in the extension module. Without the one for introspection everything works,
    but rmw_fastrtps leaves an error message behind at each publisher.
    """
    for name in TYPE_SUPPORTS:
        library = PREFIX / "lib" / f"lib{package}__{name}.so"
        library.unlink(missing_ok=True)
        library.symlink_to(
            os.path.relpath(SITE_PACKAGES / package / extension_name(package), library.parent)
        )


def build_package(package: str, build: Path, jobs: int) -> None:
    """Generate, compile and link one package."""
    start = time.monotonic()
    with contextlib.redirect_stdout(io.StringIO()):  # the generators name every file they read
        generate_sources(package, build)
    folders = (build / package, build / APART / package)
    sources = [p for folder in folders for p in folder.rglob("*") if p.suffix in {".c", ".cpp"}]
    sources = join_sources(sorted(sources), build)
    print(f"{package}: compiling {len(sources)} files, {jobs} at a time", flush=True)
    link(package, compile_sources(sources, build, jobs), build)
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
                link_type_supports(package)
    except BuildError as error:
        print(f"underlay: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
