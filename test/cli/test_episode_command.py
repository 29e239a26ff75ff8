# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik episode``: data sets of LeRobot to poses and back, with grippers and statistics."""

import json

import numpy as np
import pytest
from cli_runner import BAD_INPUT, NO_SOLUTION, document, refusal, run

from dls_ik import RobotModel

pa = pytest.importorskip("pyarrow", reason="needs pyarrow")
pq = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")

PUMA = RobotModel.from_name("puma560")
LENGTHS = (60, 40)
START = np.array([0.3, 0.8, -0.6, 0.4, 0.9, 0.2])
NAMES = [f"motor_{i}.pos" for i in range(1, 7)]
MAP = ",".join(
    f"{joint}={name.removesuffix('.pos')}"
    for joint, name in zip(PUMA.joint_names, NAMES, strict=True)
)
WITH_MAP = ("--map", MAP, "--deg")
SEED = ("--seed", ",".join(map(str, np.degrees(START))))


def motion():
    """Return the joint positions (100, 6) [rad] of two episodes, both from START, and a gripper."""
    rows = []
    for k, length in enumerate(LENGTHS):
        t = np.linspace(0.0, 3.0, length)[:, None]
        rows.append(START + 0.2 * np.sin(t * np.linspace(0.5, 1.0 + k, 6)))
    gripper = np.linspace(0.0, 100.0, sum(LENGTHS))
    return np.vstack(rows), gripper


def lists(values, kind, fixed):
    flat = pa.array(values.ravel(), kind)
    column = pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return column if fixed else column.cast(pa.list_(kind))


@pytest.fixture
def dataset(tmp_path):
    """A data set in the format v3.0, as LeRobot writes it, with joint positions in degrees."""
    q, gripper = motion()
    values = np.hstack([np.degrees(q), gripper[:, None]])
    episodes = np.repeat([0, 1], LENGTHS)
    features = {
        name: {"dtype": "float64", "shape": [7], "names": [*NAMES, "gripper.pos"]}
        for name in ("observation.state", "action")
    }
    folder = tmp_path / "set"
    (folder / "data" / "chunk-000").mkdir(parents=True)
    (folder / "meta" / "episodes" / "chunk-000").mkdir(parents=True)
    (folder / "videos").mkdir()
    (folder / "videos" / "file-000.mp4").write_bytes(b"video")
    info = {"codebase_version": "v3.0", "fps": 30, "total_episodes": 2, "features": features}
    (folder / "meta" / "info.json").write_text(json.dumps(info))
    stats = {
        "action": {"min": [0.0] * 7, "max": [0.0] * 7, "count": [1]},
        "timestamp": {"min": [0]},
    }
    (folder / "meta" / "stats.json").write_text(json.dumps(stats))
    hf = {"info": {"features": {"action": {"length": 7}, "observation.state": {"length": 7}}}}
    table = pa.table(
        {
            "observation.state": lists(values, pa.float64(), fixed=True),
            "action": lists(values, pa.float64(), fixed=False),
            "timestamp": pa.array(np.arange(100) / 30.0, pa.float32()),
            "episode_index": pa.array(episodes),
        }
    ).replace_schema_metadata({"huggingface": json.dumps(hf)})
    pq.write_table(table, folder / "data" / "chunk-000" / "file-000.parquet")
    rows = {"episode_index": [0, 1], "stats/action/max": [[0.0] * 7] * 2, "length": list(LENGTHS)}
    pq.write_table(pa.table(rows), folder / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
    return folder


def read(folder):
    return pq.read_table(folder / "data" / "chunk-000" / "file-000.parquet")


def column(table, name):
    return np.array(table.column(name).to_pylist())


def test_joints_become_poses_and_come_back_within_1e_6_rad(dataset, tmp_path):
    poses, back = tmp_path / "poses", tmp_path / "back"
    found = document("episode", "puma560", dataset, "--to", "poses", "--out", poses, *WITH_MAP)
    assert (found["episodes"], found["frames"], found["gaps"]) == (2, 200, [])
    table = read(poses)
    q, gripper = motion()
    np.testing.assert_allclose(column(table, "action")[:, :3], PUMA.fk(q)[:, :3, 3], atol=1e-12)
    np.testing.assert_array_equal(column(table, "action")[:, 6], gripper)
    assert table.schema.field("observation.state").type == pa.list_(pa.float64(), 7)
    assert json.loads(table.schema.metadata[b"huggingface"])["info"]["features"]["action"] == {
        "length": 7
    }
    info = json.loads((poses / "meta" / "info.json").read_text())
    assert info["features"]["action"]["names"][:4] == ["ee.x", "ee.y", "ee.z", "ee.wx"]
    assert info["features"]["action"]["names"][6] == "gripper.pos"
    stats = json.loads((poses / "meta" / "stats.json").read_text())
    assert stats["action"]["max"] == column(table, "action").max(axis=0).tolist()
    assert (stats["action"]["count"], stats["timestamp"]) == ([100], {"min": [0]})
    episodes = pq.read_table(poses / "meta" / "episodes" / "chunk-000" / "file-000.parquet")
    assert episodes.column("stats/action/max")[1].as_py()[6] == 100.0
    assert (poses / "videos" / "file-000.mp4").read_bytes() == b"video"

    words = ("--to", "joints", "--out", back, *WITH_MAP, *SEED)
    found = document("episode", "puma560", poses, *words)
    assert found["gaps"] == []
    for name in ("observation.state", "action"):
        returned = column(read(back), name)
        assert np.abs(np.radians(returned[:, :6]) - q).max() < 1e-6
        np.testing.assert_array_equal(returned[:, 6], gripper)
    info = json.loads((back / "meta" / "info.json").read_text())
    assert info["features"]["action"]["names"] == [*NAMES, "gripper.pos"]
    original = json.loads((dataset / "meta" / "info.json").read_text())
    assert original["features"]["action"]["names"] == [*NAMES, "gripper.pos"], "source is unchanged"


def test_gaps_are_reported_and_nothing_is_written_without_approximate(tmp_path):
    q, gripper = motion()
    T = PUMA.fk(q)
    T[20:24, 2, 3] += 5.0
    quaternion = np.tile([0.0, 0.0, 0.0, 1.0], (100, 1))
    values = np.hstack([T[:, :3, 3], quaternion, gripper[:, None]])
    values[70, 0] = np.nan
    file, out = tmp_path / "set.parquet", tmp_path / "out.parquet"
    pq.write_table(pa.table({"pose": lists(values, pa.float32(), fixed=False)}), file)
    words = ("episode", "puma560", file, "--to", "joints", "--out", out, "--feature", "pose",
             "--names", "x,y,z,qx,qy,qz,qw,gripper")  # fmt: skip
    result = run(*words, code=NO_SOLUTION)
    assert "pose, episode 0, frames 20 to 23: not reached" in result.stderr
    assert "frame 70: the pose is not a finite" in result.stderr
    assert not out.exists()
    found = document(*words, "--approximate")
    assert {(gap["first"], gap["last"]) for gap in found["gaps"]} >= {(20, 23), (70, 70)}
    written = column(pq.read_table(out), "pose")
    assert written.shape == (100, 7)
    assert np.isfinite(written).all()


def test_bad_data_sets_are_refused(dataset, tmp_path):
    out = ("--out", tmp_path / "new")
    words = ("episode", "puma560", dataset, "--to", "poses", *out)
    assert "no column for" in refusal(*words)
    assert "motor_1.pos" in refusal(*words)
    assert "'gone'" in refusal(*words, "--feature", "gone") or "gone" in refusal(
        *words, "--feature", "gone"
    )
    assert "JOINT=COLUMN" in refusal(*words, "--map", "elbow=motor_1")
    assert "has no pose" in refusal("episode", "puma560", dataset, "--to", "joints", *out)
    assert "7 columns, but 2 names" in refusal(*words, "--names", "a,b")
    file = tmp_path / "cut.parquet"
    file.write_bytes((dataset / "data/chunk-000/file-000.parquet").read_bytes()[:-100])
    words = ("episode", "puma560", file, "--to", "poses", *out)
    assert "not a Parquet file, or is cut off" in refusal(*words, code=BAD_INPUT)
    (dataset / "meta" / "info.json").unlink()
    assert "no data set of LeRobot" in refusal("episode", "puma560", dataset, "--to", "poses", *out)
    assert not (tmp_path / "new").exists()
