# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Maps on disk: one file, chunks that survive a kill, and refusals of other settings."""

import json
import os
import signal
import subprocess
import sys
from functools import partial

import numpy as np
import pytest
from reach_maps import assert_same, chunks_of, start, wait_for_chunks, wam_map

from dls_ik.errors import ChunkError
from dls_ik.reachability import ReachabilityError, ReachabilityMap
from dls_ik.reachability.compute import open_map_parts


@pytest.mark.parametrize("suffix", [".npz", ".zarr"])
def test_a_map_is_read_as_it_was_written(wam, tmp_path, suffix):
    if suffix == ".zarr":
        pytest.importorskip("zarr", reason="zarr is not installed")
    path = tmp_path / f"map{suffix}"
    for _ in range(2):  # the second time replaces the first
        wam.save(path)
    found = ReachabilityMap.load(path)
    assert_same(found, wam)
    assert (found.shoulder, found.versions) == (wam.shoulder, wam.versions)
    assert os.listdir(tmp_path) == [path.name]


def test_arrays_are_there_for_numpy_alone(wam, tmp_path):
    wam.save(tmp_path / "map.npz")
    with np.load(tmp_path / "map.npz") as file:
        np.testing.assert_array_equal(file["reached"], wam.voxels.reached)
        about = json.loads(str(file["about"]))
    assert about["settings"]["robot"] == "wam7"
    assert len(about["settings"]["kinematics"]) == 64
    assert set(about["versions"]) == {"dls_ik", "numba", "numpy", "python"}


def test_loading_a_file_without_a_map_raises_an_error(tmp_path):
    path = tmp_path / "map.npz"
    for content in (b"", b"not a zip", b"PK\x03\x04 torn", None):
        if content is None:
            np.savez(path, x=np.zeros(3))
        else:
            path.write_bytes(content)
        with pytest.raises(ReachabilityError, match="holds no map"):
            ReachabilityMap.load(path)
    with pytest.raises(ReachabilityError, match="there is no map"):
        ReachabilityMap.load(tmp_path / "other.npz")


@pytest.mark.parametrize(
    ("name", "said"), [("map.csv", r"\.npz or \.zarr"), ("none/map.npz", "no directory")]
)
def test_unwritable_map_path_is_refused(tmp_path, name, said):
    with pytest.raises(ReachabilityError, match=said):
        wam_map(out=tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_map_computed_into_a_file_is_the_same_and_is_reused(wam, tmp_path):
    out, seen = tmp_path / "map.npz", []
    assert_same(wam_map(out=out, progress=lambda done, total: seen.append((done, total))), wam)
    assert seen == [(i, wam.settings.chunks) for i in range(wam.settings.chunks + 1)]
    assert os.listdir(tmp_path) == [out.name]
    assert_same(ReachabilityMap.load(out), wam)
    before = out.stat().st_mtime_ns
    assert_same(wam_map(out=out, progress=lambda *_: pytest.fail("it worked again")), wam)
    assert out.stat().st_mtime_ns == before


def test_a_map_of_other_settings_is_not_written_over(wam, tmp_path):
    out = tmp_path / "map.npz"
    wam.save(out)
    with pytest.raises(ReachabilityError, match="max_restarts 5, now 6"):
        wam_map(out=out, max_restarts=6)
    assert_same(ReachabilityMap.load(out), wam)


class StopError(Exception):
    pass


def stop_after(count):
    def progress(done, total):
        if done == count:
            raise StopError

    return progress


def test_interrupt_before_the_first_chunk_leaves_no_files(tmp_path):
    with pytest.raises(StopError):
        wam_map(out=tmp_path / "map.npz", progress=stop_after(0))
    assert not list(tmp_path.iterdir())


def test_damaged_parts_are_computed_anew(wam, tmp_path, caplog):
    out = tmp_path / "map.npz"
    with pytest.raises(StopError):
        wam_map(out=out, progress=stop_after(4))
    folder = out.with_name("map.npz.parts")
    kept = len(chunks_of(out))
    torn, changed, other = (folder / name for name in chunks_of(out)[:3])
    torn.write_bytes(torn.read_bytes()[:100])
    content = bytearray(changed.read_bytes())
    content[content.index(b"PK\x01\x02") + 10] = 99  # unknown compression method
    changed.write_bytes(content)
    np.savez(other, **{name: np.zeros(3) for name in wam.voxels._fields})
    (folder / "chunk-0000000.part").write_bytes(b"what a kill left")
    seen = []
    assert_same(wam_map(out=out, progress=lambda done, total: seen.append(done)), wam)
    assert seen[0] == kept - 3
    (line,) = caplog.messages
    assert line == f"3 chunks were damaged in {folder}: computed again"
    assert os.listdir(tmp_path) == [out.name]


@pytest.mark.parametrize("most", [20, 1000, 3000], ids=["settings", "chunks", "map"])
def test_a_disk_that_is_full_keeps_what_was_finished(wam, tmp_path, no_room, most):
    out = tmp_path / "map.npz"
    with no_room(most), pytest.raises(ChunkError, match=r"cannot write .*File too large"):
        wam_map(out=out)
    if most < 3000:
        assert not list(tmp_path.iterdir())
    else:
        assert os.listdir(tmp_path) == [f"{out.name}.parts"]
        assert len(chunks_of(out)) == wam.settings.chunks
        assert_same(wam_map(out=out), wam)


def test_two_processes_do_not_share_a_map(wam, tmp_path):
    out = tmp_path / "map.npz"
    there = pytest.raises(ChunkError, match="another process is computing")
    with open_map_parts(out, wam.settings), there:
        wam_map(out=out)


def test_a_killed_run_goes_on_to_the_same_map(wam, tmp_path):
    out = tmp_path / "map.npz"
    with start("--out", out) as process:
        wait_for_chunks(process, out, 4)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    assert not out.exists()
    kept = len(chunks_of(out))
    assert 4 <= kept < wam.settings.chunks
    with start("--out", out) as process:
        _, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert f"{kept} of them finished earlier" in said
    assert_same(ReachabilityMap.load(out), wam)
    assert os.listdir(tmp_path) == [out.name]


def test_ctrl_c_keeps_what_is_finished(wam, tmp_path):
    """Includes a background job of a script, which shells start without SIGINT."""
    out = tmp_path / "map.npz"
    ignoring = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with start("--out", out, preexec_fn=ignoring) as process:
        wait_for_chunks(process, out, 3)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=300)
    assert process.returncode == 130, said
    kept = len(chunks_of(out))
    assert kept >= 3
    assert f"interrupted; {kept} of {wam.settings.chunks} chunks are kept" in said
    assert "Traceback" not in said
    assert_same(wam_map(out=out), wam)


def test_parts_left_next_to_a_complete_map_are_removed_by_the_next_run(wam, tmp_path):
    out = tmp_path / "map.npz"
    with pytest.raises(StopError):
        wam_map(out=out, progress=stop_after(2))
    with pytest.raises(ChunkError, match="random_seed 0, now 7"):
        wam_map(out=out, random_seed=7)
    assert len(chunks_of(out)) >= 2
    wam.save(out)
    assert_same(wam_map(out=out), wam)
    assert os.listdir(tmp_path) == [out.name]


def test_importing_reachability_does_not_import_numba():
    code = "import sys, dls_ik.reachability; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
