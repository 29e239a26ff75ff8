# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The package that tests import, the tests that colcon runs, a private ROS domain, and Ctrl-C."""

import hashlib
import os
import random
import re
import resource
import shutil
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from isolation import (  # noqa: F401  fixtures
    add_options,
    leaves_no_state,
    module_leaves_no_state,
    own_plugins,
)
from schedule import order_tests

with suppress(ImportError):  # colcon's default run needs this fixture in few files
    from hypothesis import HealthCheck, settings

    # The same examples every time, however slow the machine is; fuzz/ looks for new ones.
    slow = [HealthCheck.too_slow]
    settings.register_profile(
        "any_machine", deadline=None, derandomize=True, database=None, suppress_health_check=slow
    )
    settings.load_profile("any_machine")

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parent)
CORE = HERE.parent / "dls_ik" / "core"
BY_COLCON = "COLCON" in os.environ  # colcon sets it for all that it runs
INSTALLED = "installed and not slow"  # tests of plain `colcon test`
MARK = re.compile(r"\bmark\.installed\b")
collect_ignore: list[str] = []  # files and folders that pytest does not import


def find_package():
    """Import the package of this folder; under colcon the installed one, also in child processes.

    Not by `pythonpath` in pyproject.toml, which pytest of ROS 2 Humble does not know.
    """
    others = [path for path in sys.path if path not in ("", ROOT)]
    sys.path[:] = [*others, ROOT] if BY_COLCON else [ROOT, *others]
    if BY_COLCON:
        known = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [known, ROOT]))


find_package()


def pytest_addoption(parser):
    """Add the option that `scripts/test --all` gives, and those of isolation.py."""
    add_options(parser)
    parser.addoption("--all", action="store_true", help="run also the tests marked campaign")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Deselect campaigns unless --all or -m asks for them; order the tests of xdist's workers."""
    if not (config.option.all or "campaign" in config.option.markexpr):
        campaigns = [item for item in items if item.get_closest_marker("campaign")]
        if campaigns:
            config.hook.pytest_deselected(items=campaigns)
            items[:] = [item for item in items if not item.get_closest_marker("campaign")]
    order_tests(items, getattr(config, "workerinput", {}))


def pytest_collection_finish():
    """Share the kernels that only tests call with other checkouts of this user."""
    if "dls_ik.core.jit" in sys.modules:
        from dls_ik.core.jit import KernelBuild, compile_in_advance
        from dls_ik.shared_kernels import open_shared_kernels

        compile_in_advance(KernelBuild(shared=open_shared_kernels()))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node):
    """Tell a worker of pytest-xdist how the tests are distributed."""
    node.workerinput["dist"] = node.config.option.dist


def pytest_configure(config):
    """Choose what colcon runs unless its user did; keep its options from pytest runs of tests."""
    os.environ.pop("PYTEST_ADDOPTS", None)  # colcon's name its result file
    option = config.option
    option.randomly_reset_seed = False  # pytest-randomly shuffles, but seeds no random generator
    is_chosen = option.markexpr or option.keyword or config.args != config.getini("testpaths")
    if BY_COLCON and not is_chosen:
        option.markexpr = INSTALLED
        collect_ignore.extend(map(str, not_installed()))
    if BY_COLCON:
        os.chdir(HERE)  # `python -m dls_ik` in ROOT would run the package of that folder


def not_installed():
    """Return files without a test of `colcon test`, and folders without such a file.

    They may import modules that package.xml does not name.
    """
    files = set(HERE.rglob("test_*.py"))
    selected = {file for file in files if MARK.search(file.read_text(encoding="utf-8"))}
    needed = {folder for file in selected for folder in file.parents}
    folders = {file.parent for file in files} - needed
    return sorted(folders | {file for file in files - selected if file.parent not in folders})


@pytest.fixture(scope="session", autouse=True)
def private_domain():
    """Never meet a robot, nor the nodes of another run, or of another worker, on this machine."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker:
        number = 8 * os.getppid() + int(worker.removeprefix("gw"))
    else:
        number = random.SystemRandom().randrange(100)
    os.environ["ROS_DOMAIN_ID"] = str(1 + number % 100)
    os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
    if os.environ.get("ROS_DISTRO") == "humble":
        os.environ["ROS_LOCALHOST_ONLY"] = "1"
    forget_killed_nodes(1 + number % 100)


def forget_killed_nodes(domain):
    """Remove the ports of nodes that other runs killed: they may crash the next node there."""
    from dls_ik.cli.doctor_checks import SHARED, abandoned_ports  # once the package is found

    first = 7400 + 250 * domain
    for name in abandoned_ports():
        if first <= int(name.rpartition("port")[2]) < first + 250:
            (SHARED / name).unlink(missing_ok=True)


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """A shell's background job ignores Ctrl-C, and so would all that tests start and interrupt."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def no_room():
    """As on a full disk: inside it no file becomes larger than so many bytes."""

    @contextmanager
    def limited(most):
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        # Python would keep the part of a compiled module that fits, and fail to import it later.
        written, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, before[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
            sys.dont_write_bytecode = written

    return limited


@pytest.fixture
def kernel_cache(tmp_path):
    """A copy of the compiled kernels for NUMBA_CACHE_DIR, to be damaged."""
    folder = tmp_path / "kernels"
    for file in CORE.rglob("__pycache__/*.nbc"):
        sources = file.parents[1]
        name = f"{sources.name}_{hashlib.sha1(str(sources).encode()).hexdigest()}"
        (folder / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / name)
    return folder
