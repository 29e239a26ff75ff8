# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""What the package says about itself agrees with itself, and imports keep to their layer."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from isolation import CONFTEST_FILES

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "dls_ik"
SOURCES = sorted(PACKAGE.rglob("*.py"))
SELECTED = """
import os
import pytest

@pytest.mark.installed
def test_installed():
    assert "PYTEST_ADDOPTS" not in os.environ  # nor in a pytest that it starts

@pytest.mark.installed
@pytest.mark.slow
def test_installed_but_slow(): ...

def test_other(): ...
"""
ROS_PACKAGES = {"rclpy", "launch", "launch_ros", "tf2_ros", "ament_index_python"}


def imported_packages(source: Path) -> Iterator[str]:
    """Yield the top-level name of everything that a file imports."""
    for node in ast.walk(ast.parse(source.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.module.partition(".")[0]


def test_package_xml_is_an_ament_python_package() -> None:
    package = ET.parse(ROOT / "package.xml").getroot()
    assert package.get("format") == "3"
    assert package.findtext("export/build_type") == "ament_python"
    assert (ROOT / "resource" / str(package.findtext("name"))).is_file()


def test_sources_are_ascii() -> None:
    assert [source for source in SOURCES if not source.read_bytes().isascii()] == []


def test_core_imports_numpy_and_numba_only_and_only_ros_imports_ros() -> None:
    allowed = {"numpy", "numba", "dls_ik"} | set(sys.stdlib_module_names)
    for source in SOURCES:
        names = set(imported_packages(source))
        if PACKAGE / "core" in source.parents:
            assert names <= allowed, source
        if PACKAGE / "ros" not in source.parents:
            ros = {name for name in names if name in ROS_PACKAGES or name.endswith("_msgs")}
            assert not ros, source


SHAPE = {
    "a": "from dls_ik.b import inner",
    "b/__init__": "",
    "b/inner": "import dls_ik.b.other\nclass Twice: ...",
    "b/other": "if TYPE_CHECKING:\n    from dls_ik.b.inner import Twice\nclass Twice: ...",
    "c": "from dls_ik.b import other\nclass Once: ...",
    "b/back": "from dls_ik.c import Once",
    "d": "def use():\n    from dls_ik.e import used",
    "e": "import dls_ik.d",
    "f": "def use():\n    return importlib.import_module('dls_ik.g').used",
    "g": "from importlib import import_module\ndef use():\n    return import_module('dls_ik.f')",
}
PAGE = """# Files
`of/no_walk.py`
## A target
1. `a.py` hands it to `b/inner.py`,
   `other.py` and `lost.py`.

`behind_it.py`
"""
SHAPE_FOUND = {
    "import circle: b.inner b.other",
    "import circle: b c",
    "import circle: d e",
    "import circle: f g",
    "twice: Twice",
    "architecture.md: dls_ik/lost.py",
}


def test_shape_check_finds_import_circles_and_missing_files(tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "architecture.md").write_text(PAGE)
    shutil.copy(ROOT / "scripts" / "shape", tmp_path / "scripts")
    for module, text in {"__init__": "", **SHAPE}.items():
        file = tmp_path / "dls_ik" / f"{module}.py"
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
    check = [sys.executable, str(tmp_path / "scripts" / "shape"), "--check"]
    done = subprocess.run(check, capture_output=True, text=True, check=False)
    new = [line for line in done.stdout.splitlines() if "no longer" not in line]
    assert done.returncode == 1, done.stderr
    assert len(new) == len(SHAPE_FOUND)
    assert all(any(each in line for line in new) for each in SHAPE_FOUND), new


def test_build_contains_type_information_and_all_modules(tmp_path: Path) -> None:
    """The step that pip's wheel and colcon's install have in common.

    Compiling the kernels takes minutes: `.ci/run` tests the kernels of an installation by colcon.
    """
    build = [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path)]
    egg = ["egg_info", "--egg-base", str(tmp_path)]
    done = subprocess.run(
        [*build, *egg], cwd=ROOT, capture_output=True, text=True, check=False,
        env={**os.environ, "DLS_IK_COMPILE_AHEAD": "0"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    built = tmp_path / "lib" / "dls_ik"
    assert (built / "py.typed").is_file()
    assert {file.relative_to(PACKAGE) for file in SOURCES} == {
        file.relative_to(built) for file in built.rglob("*.py")
    }
    assert not (built / "core" / "ahead").exists()


PROGRAM = """
from dls_ik import IkSolver, RobotModel
from dls_ik.servo import Controller

robot = RobotModel.wam()
solver = IkSolver(robot, timeout=0.1, max_joint_change=[0.1] * 7, starts="random")
controller = Controller(robot, acceleration=8.0, lambda_=0.1)
reveal_type(solver.solve(robot.fk([0.0] * 7)).success)
IkSolver(robot, timout=0.1)
IkSolver(robot, timeout="long")
IkSolver(robot, starts="anywhere")
Controller(robot, acceleraton=8.0)
solver.solve(robot.fk([0.0] * 7), solve_type="closest")
"""
FOUND = {
    8: 'Revealed type is "bool"',
    9: 'Unexpected keyword argument "timout" for "IkSolver"; did you mean "timeout"?',
    10: 'Argument "timeout" to "IkSolver" has incompatible type "str"; expected "float"',
    11: 'Argument "starts" to "IkSolver" has incompatible type',
    12: 'Unexpected keyword argument "acceleraton" for "Controller"; did you mean "acceleration"?',
    13: 'Argument "solve_type" to "solve" of "IkSolver" has incompatible type',
}


@pytest.mark.slow
def test_mypy_checks_the_options_of_a_user_program(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    # With the options of the linter, whose cache has the types of the package.
    check = [sys.executable, "-m", "mypy", "--config-file", "pyproject.toml", str(program)]
    output = subprocess.run(check, cwd=ROOT, capture_output=True, text=True, check=False).stdout
    lines = [line for line in output.splitlines() if '" defined in "' not in line]
    told = {int(line.split(":")[1]): line for line in lines if "program.py" in line}
    assert sorted(told) == sorted(FOUND), output
    assert [words for number, words in FOUND.items() if words not in told[number]] == [], output


@pytest.mark.parametrize(
    ("environment", "options", "passed"),
    [
        ({}, "", 3),
        ({"COLCON": "1"}, "", 1),
        ({"COLCON": "1"}, "-k other", 1),
        ({"COLCON": "1"}, "test/test_it.py", 3),
    ],
)
def test_colcon_runs_installed_tests_or_the_users_selection(
    environment: dict[str, str], options: str, passed: int, tmp_path: Path
) -> None:
    (tmp_path / "test").mkdir()
    for file in CONFTEST_FILES:
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / "test" / "test_it.py").write_text(SELECTED)
    result = tmp_path / "result.xml"
    ours = {
        "PYTEST_ADDOPTS": f"--junit-xml={result} -p no:cacheprovider {options}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    outer = {name: value for name, value in os.environ.items() if name != "COLCON"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q"],
        cwd=tmp_path, env=outer | environment | ours,
        stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout
    suite = ET.parse(result).find("testsuite")
    assert suite is not None
    assert int(str(suite.get("tests"))) == passed, done.stdout


@pytest.mark.installed
@pytest.mark.skipif("COLCON" not in os.environ, reason="of an installation by colcon")
def test_an_installation_has_all_of_the_package_and_its_commands_run() -> None:
    import dls_ik

    folder = Path(str(dls_ik.__file__)).parent
    assert {str(file.relative_to(PACKAGE)) for file in SOURCES} <= {
        str(file.relative_to(folder)) for file in folder.rglob("*.py")
    }
    assert (folder / "py.typed").is_file()
    index = "share/ament_index/resource_index/packages/dls_ik"
    prefixes = map(Path, os.environ["AMENT_PREFIX_PATH"].split(os.pathsep))
    prefix = next(each for each in prefixes if (each / index).is_file())
    share = prefix / "share" / "dls_ik"
    assert folder.is_relative_to(prefix) or (share / "package.xml").is_symlink()
    assert (share / "package.xml").is_file()
    for name in ("launch", "config", "urdf"):
        for file in (ROOT / name).rglob("*.*"):
            assert file.suffix == ".pyc" or (share / file.relative_to(ROOT)).is_file(), file
    for name in ("ik_node", "ik_sim_arm", "dls-ik"):
        assert os.access(prefix / "lib" / "dls_ik" / name, os.X_OK)
    command = [str(prefix / "lib" / "dls_ik" / "dls-ik"), "--version"]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    assert dls_ik.__version__ in done.stdout


USE_ALL = "from dls_ik.warm_up import USES, use_kernels; use_kernels(USES)"


@pytest.mark.installed
@pytest.mark.skipif("COLCON" not in os.environ, reason="of an installation by colcon")
def test_an_installation_uses_kernels_that_were_compiled_by_its_build(tmp_path: Path) -> None:
    import dls_ik
    from dls_ik.core import jit

    if (Path(str(dls_ik.__file__)).parent / "py.typed").resolve() == PACKAGE / "py.typed":
        pytest.skip("linked to the sources: kernels are compiled at their first use")
    if os.environ.get("DLS_IK_COMPILE_AHEAD") == "0":
        pytest.skip("built without kernels")
    if not jit.runs_portable():
        pytest.skip("this processor has less than what kernels are compiled for ahead of time")
    cache = tmp_path / "cache"
    used = subprocess.run(
        [sys.executable, "-c", USE_ALL],
        cwd=tmp_path,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "compiling" not in used.stderr
    assert not list(cache.rglob("*.nbc"))
