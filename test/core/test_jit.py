# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Tests of the cache of compiled kernels: kernels run for every content of the cache."""

import ast
import os
import pickle
import subprocess
import sys
import threading
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

from dls_ik.core import jit
from dls_ik.model.files import shipped_urdf

pytestmark = [
    pytest.mark.compiled,
    pytest.mark.skipif(jit.numba.config.DISABLE_JIT, reason="nothing is compiled"),
]
SOURCE = "from dls_ik.core.jit import kernel\n@kernel\ndef add(x): return x + {}\n"


@pytest.fixture(autouse=True)
def unshared(monkeypatch):
    """Compile and load as a process does that shares no kernels."""
    monkeypatch.setattr(jit, "_build", jit.KernelBuild())


@pytest.fixture
def said(monkeypatch):
    """Return the list of reports about the cache, as in a new process."""
    lines = []
    monkeypatch.setattr(jit, "cache_failures", {})
    monkeypatch.setattr(jit, "_report", lines.append)
    return lines


def new_process(folder, value=1):
    """Import the kernel of a file again, as another process would."""
    file = folder / "tiny.py"
    if not file.exists():
        file.write_text(SOURCE.format(value))
    spec = spec_from_file_location("tiny", file)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.add


def was_loaded(kernel):
    return sum(kernel.stats.cache_hits.values()) == 1


def kept(folder):
    (name,) = written(folder)
    return folder / "__pycache__" / name


def written(folder):
    return [path.name for path in (folder / "__pycache__").glob("tiny.add*")]


def filled(folder):
    """Return the cache file of a kernel that was compiled for an integer."""
    assert new_process(folder)(1) == 2
    return kept(folder)


def test_a_kernel_is_loaded_by_the_next_process(tmp_path, said):
    first, second = new_process(tmp_path), new_process(tmp_path)
    assert first(1) == second(1) == 2
    assert not was_loaded(first)
    assert was_loaded(second)
    assert jit.cache_folder(second) == str(tmp_path / "__pycache__")
    assert written(tmp_path) == [kept(tmp_path).name]
    assert not said


DAMAGE = {
    "empty": lambda content: b"",
    "torn": lambda content: content[: len(content) // 2],
    "short": lambda content: content[:10],
    "a bit": lambda content: content[:-99] + bytes([content[-99] ^ 1]) + content[-98:],
    "numba's own": lambda content: pickle.dumps(("0.59.0", {})),
}


def test_a_system_without_locks_solves_and_maps(tmp_path):
    """Simulate Windows, which lacks fcntl, O_NONBLOCK and O_CLOEXEC."""
    without = """
import os, sys
sys.modules["fcntl"] = None
del os.O_NONBLOCK, os.O_CLOEXEC
from dls_ik import IkSolver, RobotModel
from dls_ik.reachability import reachability_map
robot = RobotModel.from_urdf(sys.argv[1])
q = (robot.lower + robot.upper) / 2
print(IkSolver(robot).solve(robot.fk(q)).status)
reachability_map(robot, 0.5, orientations=1, out=sys.argv[2])
"""
    arguments = [str(shipped_urdf("planar_2r")), str(tmp_path / "map.npz")]
    command = [sys.executable, "-c", without, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert ended.stdout == "SUCCESS\n", ended.stderr


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_damaged_cache_file_is_reported_and_recompiled(tmp_path, said, damage):
    path = filled(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    kernel = new_process(tmp_path)
    assert kernel(1) == 2
    assert not was_loaded(kernel)
    (line,) = said
    assert str(path) in line
    assert "damaged" in line
    kernel = new_process(tmp_path)
    assert kernel(1) == 2
    assert was_loaded(kernel), "it was mended"


class OtherSources(jit.KernelSources):
    """The sources of another version of the package."""

    def hash(self, module):
        return bytes(jit.DIGEST)


def test_hash_of_a_kernel_covers_all_modules_that_its_module_imports():
    core = Path(jit.__file__).parent
    files = {".".join(p.relative_to(core).with_suffix("").parts): p for p in core.rglob("*.py")}
    for name, path in files.items():
        covered = jit._sources.imported(name)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                assert not any(each.name.startswith("dls_ik") for each in node.names), name
            elif isinstance(node, ast.ImportFrom) and node.level:
                pytest.fail(f"{name}: relative imports are not followed")
            elif isinstance(node, ast.ImportFrom) and f"{node.module}.".startswith("dls_ik.core."):
                package = f"{node.module}.".removeprefix("dls_ik.core.")
                modules = {package[:-1], *(package + each.name for each in node.names)}
                assert modules & files.keys() <= covered, f"{name}: {ast.unparse(node)}"


def test_hash_changes_with_an_imported_file_and_with_no_other():
    before = jit.KernelSources()
    after = jit.KernelSources()
    after._texts = {**after._texts, "near_pairs": after._texts["near_pairs"] + "# changed"}
    changed = {
        name
        for name in before._texts
        if before.hash(f"dls_ik.core.{name}") != after.hash(f"dls_ik.core.{name}")
    }
    assert {"near_pairs", "avoidance"} <= changed
    assert not changed & {"se3", "kinematics", "search", "fast.step"}
    outside = "a_plug_in.kernels"
    assert before.hash(outside) != after.hash(outside), "a plug-in may use any file"


@pytest.mark.parametrize("what", ["sources", "numba"])
def test_outdated_cache_file_is_replaced_silently(tmp_path, said, monkeypatch, what):
    path = filled(tmp_path)
    if what == "numba":
        monkeypatch.setattr(jit.numba, "__version__", "0.0.1")
    monkeypatch.setattr(jit, "_sources", jit.KernelSources() if what == "numba" else OtherSources())
    for is_there in (False, True):
        kernel = new_process(tmp_path)
        assert kernel(1) == 2
        assert was_loaded(kernel) == is_there
    assert kept(tmp_path) == path
    assert not said


def test_machine_code_for_other_types_is_not_run(tmp_path, said):
    """Give a signature the machine code of another one, as a wrong index of Numba may do."""
    path = filled(tmp_path)
    assert new_process(tmp_path)(1.5) == 2.5
    (other,) = set((tmp_path / "__pycache__").glob("*.nbc")) - {path}
    other.write_bytes(path.read_bytes())
    kernel = new_process(tmp_path)
    assert kernel(1.5) == 2.5
    assert not was_loaded(kernel)


def test_folder_in_place_of_a_cache_file_is_reported(tmp_path, said):
    path = filled(tmp_path)
    path.unlink()
    path.mkdir()
    for _ in range(2):
        assert new_process(tmp_path)(1) == 2
    read, unwritten = said
    assert "Is a directory" in read
    assert "cannot be kept" in unwritten
    assert "NUMBA_CACHE_DIR" in unwritten
    assert written(tmp_path) == [path.name], "no parts are left"


def test_kernels_run_on_a_full_disk_with_one_report(tmp_path, said, no_room):
    kernel = new_process(tmp_path)
    with no_room(100):
        assert kernel(1) == 2
        assert kernel(1.5) == 2.5
    (line,) = said
    assert "File too large" in line
    assert str(tmp_path) in line
    assert not written(tmp_path)


def test_kernel_runs_without_any_cache_folder(tmp_path, said, monkeypatch):
    (tmp_path / "__pycache__").write_text("a file")
    monkeypatch.setenv("HOME", str(tmp_path / "tiny.py"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "tiny.py"))
    kernel = new_process(tmp_path)
    assert kernel(1) == 2
    assert jit.cache_folder(kernel) is None
    assert not said


@pytest.mark.skipif(jit.numba.config.CACHE_DIR != "", reason="another folder is asked for")
def test_kernels_of_an_image_are_used_where_no_folder_can_be_written(tmp_path, said, monkeypatch):
    filled(tmp_path)
    *writable, installed = jit.KernelCache._impl_class._locator_classes

    def refuse(locator):
        raise PermissionError

    monkeypatch.setattr(installed, "ensure_cache_path", installed.ensure_cache_path)
    for locator in writable:
        monkeypatch.setattr(locator, "ensure_cache_path", refuse)
    kernel = new_process(tmp_path)
    assert kernel(1) == 2
    assert was_loaded(kernel)


def key(signature, processor="a processor"):
    """Return a key in the format of the index of Numba."""
    return signature, ("x86_64-linux", processor, ""), ("code", "closure")


def test_kernels_of_an_image_are_used_before_a_user_has_any(tmp_path):
    user, image = tmp_path / "user", tmp_path / "image"
    user.mkdir()
    image.mkdir()
    files = jit.KernelFiles(str(user), "k", str(image))
    assert files.load(key("a")) is None
    jit.KernelFiles(str(image), "k").save(key("a"), 1)
    assert files.load(key("a")) == 1
    (path,) = image.iterdir()
    path.write_bytes(b"damaged")
    assert files.load(key("a")) is None
    files.save(key("a"), 2)
    assert files.load(key("a")) == 2


def test_kernels_saved_by_two_writers_are_both_kept(tmp_path):
    one, other = (jit.KernelFiles(str(tmp_path), "k") for _ in range(2))
    assert one.load(key("a")) is other.load(key("b")) is None
    one.save(key("a"), 1)
    other.save(key("b"), 2)
    assert (one.load(key("b")), other.load(key("a"))) == (2, 1)


@pytest.mark.parametrize("runs", [True, False], ids=["this processor", "a lesser one"])
def test_packaged_kernels_load_on_processors_that_support_them(tmp_path, monkeypatch, runs):
    ahead = tmp_path / "ahead"
    ahead.mkdir()
    files = jit.KernelFiles(str(tmp_path), "k", ahead=str(ahead))
    monkeypatch.setattr(jit, "runs_portable", lambda: runs)
    monkeypatch.setattr(jit, "_build", jit.KernelBuild(str(ahead), is_portable=True))
    files.save(key("a", "common"), 1)
    monkeypatch.setattr(jit, "_build", jit.KernelBuild())
    assert files.load(key("a", "of the user")) == (1 if runs else None)
    assert files.load(key("b", "of the user")) is None
    files.save(key("a", "of the user"), 2)
    assert files.load(key("a", "of the user")) == 2, "the user's own comes first"
    monkeypatch.setattr(jit, "_sources", OtherSources())
    assert files.load(key("a", "another")) is None, "of other sources"


def test_numba_compiles_a_kernel_ahead_of_time_and_loads_it(tmp_path, said, monkeypatch):
    if (portable := jit.portable_environment()) is None or not jit.runs_portable():
        pytest.skip("nothing is compiled ahead of time for this processor")
    ahead = tmp_path / "ahead"
    ahead.mkdir()
    code = """
import sys, tiny
from dls_ik.core.jit import KernelBuild, compile_in_advance
compile_in_advance(KernelBuild(sys.argv[1], is_portable=True))
print(tiny.add(1))
"""
    (tmp_path / "tiny.py").write_text(SOURCE.format(1))
    environment = {**os.environ, **portable, "NUMBA_CACHE_DIR": str(tmp_path / "none")}
    path = os.pathsep.join([str(tmp_path), *sys.path])
    subprocess.run(
        [sys.executable, "-c", code, str(ahead)],
        env={**environment, "PYTHONPATH": path},
        check=True,
    )
    assert len(list(ahead.iterdir())) == 1
    monkeypatch.setattr(jit, "PACKAGED_KERNEL_FOLDER", str(ahead))
    monkeypatch.syspath_prepend(tmp_path)  # numba imports the module of a kernel that it loads
    kernel = new_process(tmp_path)
    assert kernel(1) == 2
    assert was_loaded(kernel)
    assert not said


LOCKER = """
import sys, time
from dls_ik.core.jit import CompileLocks
locks = CompileLocks()
locks.acquire(sys.argv[1], "k")
print("taken", flush=True)
time.sleep(600)
"""


def test_compile_lock_of_a_killed_process_is_released(tmp_path, monkeypatch):
    command = [sys.executable, "-c", LOCKER, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "taken\n"
        locks = jit.CompileLocks()
        locks.acquire(str(tmp_path), "another kernel")
        assert locks._held
        monkeypatch.setattr(jit.CompileLocks, "WAIT", 0.1)
        locks.acquire(str(tmp_path), "k")
        assert not locks._held, "a process that does not end holds nobody up for ever"
        monkeypatch.setattr(jit.CompileLocks, "WAIT", 600.0)
        threading.Timer(0.2, other.kill).start()
        locks.acquire(str(tmp_path), "k")
        assert locks._held
    locks.release()
    assert not locks._held


def test_compile_lock_without_a_folder_does_not_wait(tmp_path):
    locks = jit.CompileLocks()
    locks.acquire(str(tmp_path / "no such folder"), "k")
    assert not locks._held


@pytest.mark.parametrize("value", ["0", "many"])
def test_invalid_numba_num_threads_gives_a_one_line_error(value):
    code = "try: import dls_ik.core.jit\nexcept RuntimeError as error: print(error)"
    environment = {**os.environ, "NUMBA_NUM_THREADS": value}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    (line,) = (result.stdout + result.stderr).splitlines()
    assert "NUMBA_NUM_THREADS" in line
    assert value in line
