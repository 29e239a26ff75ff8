# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kernels that installations share: copied if they fit, compiled again in all other cases."""

import os
import stat
import subprocess
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest
from programs import environment

from dls_ik import shared_kernels
from dls_ik.core import jit
from dls_ik.shared_kernels import SharedKernels, open_shared_kernels

needs_compiler = pytest.mark.skipif(jit.numba.config.DISABLE_JIT, reason="nothing is compiled")
SOURCE = "from dls_ik.core.jit import kernel\n@kernel\ndef add(x): return x + 1\n"
EVERYBODY = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO


def compiled(test):
    return pytest.mark.compiled(needs_compiler(test))


@pytest.fixture
def shared(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    return SharedKernels(folder)


@pytest.fixture
def install(tmp_path, shared, monkeypatch):
    """Return a function that installs a kernel and tells whether the kernel was compiled for it."""
    monkeypatch.setattr(jit, "cache_failures", {})
    monkeypatch.setattr(jit, "_report", pytest.fail)

    def installed(name):
        folder = tmp_path / name
        folder.mkdir()
        monkeypatch.setattr(jit, "_build", jit.KernelBuild(str(folder), shared=shared))
        file = folder / "tiny.py"
        file.write_text(SOURCE)
        spec = spec_from_file_location("tiny", file)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        assert module.add(1) == 2
        assert len(list(folder.glob("*.nbc"))) == 1
        return not module.add.stats.cache_hits

    return installed


def only_file(folder):
    (path,) = folder.glob("*.nbc")
    return path


@compiled
def test_the_second_one_copies_the_kernel(install, shared, tmp_path):
    assert install("first")
    assert not install("second")
    contents = {only_file(tmp_path / name).read_bytes() for name in ("first", "second")}
    assert contents == {only_file(shared.folder).read_bytes()}


@compiled
@pytest.mark.parametrize(
    "damage",
    [
        lambda content: b"",
        lambda content: content[: len(content) // 2],
        lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:],
        lambda content: b"machine code of somebody else",
    ],
    ids=["empty", "torn", "a bit", "foreign"],
)
def test_a_damaged_file_is_compiled_again_and_replaced(install, shared, damage):
    install("first")
    path = only_file(shared.folder)
    path.write_bytes(damage(path.read_bytes()))
    assert install("second")
    assert not install("third")


@compiled
def test_a_file_of_another_kernel_is_not_copied(install, shared):
    install("first")
    path = only_file(shared.folder)
    path.write_bytes(path.read_bytes())
    other = jit.KernelFiles(str(shared.folder), "k")
    other.save(("a signature", ("a triple", "a processor"), "code"), 1)
    content = Path(next(iter(shared.folder.glob("k.*")))).read_bytes()
    path.write_bytes(content)
    assert install("second")


@compiled
@pytest.mark.parametrize("what", ["sources", "numpy"])
def test_kernels_of_other_versions_are_kept_beside_each_other(install, shared, monkeypatch, what):
    install("first")
    with monkeypatch.context() as changed:
        if what == "numpy":
            changed.setattr(jit.np, "__version__", "0.0.1")
        else:
            changed.setattr(jit._sources, "_hash", lambda module: bytes(jit.DIGEST))
        assert install("second")
        assert not install("third")
    assert not install("fourth")
    assert len(list(shared.folder.glob("*.nbc"))) == 2


@compiled
def test_a_folder_that_has_vanished_is_no_obstacle(install, shared):
    shared.folder.rmdir()
    assert install("first")
    shared.folder.write_text("a file")
    assert install("second")


@compiled
def test_one_of_two_at_once_compiles(tmp_path, shared):
    code = """
import sys
from dls_ik.core.jit import KernelBuild, compile_in_advance
from dls_ik.shared_kernels import open_shared_kernels
import tiny
compile_in_advance(KernelBuild(sys.argv[1], shared=open_shared_kernels()))
assert tiny.add(1) == 2
print(sum(tiny.add.stats.cache_hits.values()))
"""
    (tmp_path / "tiny.py").write_text(SOURCE)
    processes = []
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        own = {"NUMBA_CACHE_DIR": str(folder / "none"), "XDG_CACHE_HOME": str(tmp_path)}
        processes.append(
            subprocess.Popen(
                [sys.executable, "-c", code, str(folder)],
                cwd=tmp_path, env=environment(**own), stdout=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    outputs = [process.communicate()[0] for process in processes]
    assert sorted(outputs) == ["0\n", "1\n"]


def test_the_folder_is_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    kernels = open_shared_kernels()
    assert kernels.folder == tmp_path / "cache" / "dls_ik" / "kernels"
    assert kernels.read("k", b"stamp") is None
    kernels.write("k", b"stamp", b"content")
    assert open_shared_kernels().read("k", b"stamp") == b"content"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert shared_kernels.shared_folder() == tmp_path / ".cache" / "dls_ik" / "kernels"


def test_a_folder_that_cannot_be_trusted_or_made_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = open_shared_kernels().folder
    folder.chmod(EVERYBODY)
    assert open_shared_kernels() is None
    folder.rmdir()
    folder.write_text("a file")
    assert open_shared_kernels() is None
    folder.unlink()
    folder.symlink_to(folder)
    assert open_shared_kernels() is None


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root to give it away")
def test_a_folder_of_another_user_is_not_used(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    os.chown(open_shared_kernels().folder, 12345, -1)
    assert open_shared_kernels() is None


def test_files_that_were_not_used_for_the_longest_time_are_removed(shared):
    for number in range(5):
        shared.write("k", bytes([number]), bytes(100))
        os.utime(shared.path("k", bytes([number])), (number, number))
    (shared.folder / "notes.txt").write_text("not a kernel")
    assert shared.read("k", bytes([0])) == bytes(100)  # now used
    shared.trim(300)
    kept = [number for number in range(5) if shared.read("k", bytes([number])) is not None]
    assert kept == [0, 3, 4]
    assert (shared.folder / "notes.txt").exists()
