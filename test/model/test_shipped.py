"""Data files, in the source tree and installed."""

import pytest

from dls_ik.exceptions import RobotModelError
from dls_ik.model import RobotModel, files, share_file, shipped_names

pytestmark = pytest.mark.installed


@pytest.mark.parametrize("name", shipped_names())
def test_shipped_robots_load(name):
    assert RobotModel.from_name(name).n in (2, 6, 7)


def test_wam():
    assert RobotModel.wam().n == 7


def test_unknown_name_lists_the_known():
    with pytest.raises(RobotModelError, match=r"'kuka'.*wam, planar_2r, puma560"):
        RobotModel.from_name("kuka")


@pytest.mark.parametrize("above", ["lib/python3.11/site-packages", "local/lib/python3", "."])
def test_installed(above, tmp_path, monkeypatch):
    file = tmp_path / "share/dls_ik/urdf/wam7.urdf"
    file.parent.mkdir(parents=True)
    file.write_text("")
    monkeypatch.setattr(files, "PACKAGE", (tmp_path / above / "dls_ik").resolve())
    assert share_file("urdf", "wam7.urdf") == file


def test_source_tree_comes_first(tmp_path, monkeypatch):
    for file in ("package.xml", "urdf/x.urdf", "share/dls_ik/urdf/x.urdf"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    monkeypatch.setattr(files, "PACKAGE", tmp_path / "dls_ik")
    assert share_file("urdf", "x.urdf") == tmp_path / "urdf/x.urdf"
    (tmp_path / "package.xml").unlink()
    assert share_file("urdf", "x.urdf") == tmp_path / "share/dls_ik/urdf/x.urdf"


def test_missing_file_says_where_it_was_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "PACKAGE", tmp_path / "dls_ik")
    with pytest.raises(RobotModelError, match=rf"urdf/none.*{tmp_path}/share/dls_ik/urdf/none"):
        share_file("urdf", "none")
