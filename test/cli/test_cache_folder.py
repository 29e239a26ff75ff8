"""``dls-ik doctor`` tells where others could put machine code that is then run."""

import os
import stat

import pytest

from dls_ik.cli.doctor.cache_folder import others_can_write
from dls_ik.cli.doctor.finding import BROKEN
from dls_ik.cli.doctor.trial import tried

EVERYBODY = stat.S_IRWXU | stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture
def folder(tmp_path):
    inside = tmp_path / "cache" / "inside"
    inside.mkdir(parents=True, mode=0o755)
    return inside


def test_a_folder_of_ones_own_is_fine(folder):
    assert others_can_write(folder) == ""


def test_one_that_everybody_can_write_is_not(folder):
    folder.chmod(EVERYBODY)
    assert others_can_write(folder) == f"all users can write {folder}"
    folder.chmod(EVERYBODY | stat.S_ISVTX)  # files can still be added
    assert others_can_write(folder) == f"all users can write {folder}"


def test_nor_is_one_below_such_a_folder_unless_it_keeps_owners(folder):
    folder.parent.chmod(EVERYBODY)
    assert others_can_write(folder) == f"all users can write {folder.parent}"
    folder.parent.chmod(EVERYBODY | stat.S_ISVTX)  # as /tmp
    assert others_can_write(folder) == ""


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="needs root to give it away")
def test_nor_one_of_another_user(folder):
    os.chown(folder, 12345, -1)
    assert others_can_write(folder) == f"{folder} belongs to another user"


def test_the_doctor_says_so_before_it_runs_what_is_there(tmp_path, monkeypatch):
    tmp_path.chmod(EVERYBODY)
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    state, words = tried(["kernels"], lambda name: None)["kernels"]
    assert state == BROKEN
    assert "others could put code of theirs among the kernels" in words
    assert "all users can write" in words
    assert not list(tmp_path.rglob("*.nbc"))
