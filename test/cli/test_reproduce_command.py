"""``dls-ik reproduce`` in this process: tables, JSON, pictures and reports."""

import json

from cli_runner import BAD_INPUT, run


def test_tables_are_shown_and_files_written(tmp_path):
    paths = {kind: tmp_path / f"out.{kind}" for kind in ("json", "png", "html", "md")}
    result = run(
        "reproduce", "figure-2", "--samples", 40, "--json", paths["json"], "--plot", paths["png"],
        "--report", paths["html"],
    )  # fmt: skip
    assert "svf+ed" in result.stdout
    found = json.loads(paths["json"].read_text())
    assert found["samples"] == 40
    assert found["complete"]
    assert paths["png"].read_bytes().startswith(b"\x89PNG")
    assert "data:image/svg+xml;base64," in paths["html"].read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "out.json", "out.png"]
    report = tmp_path / "a b.md"
    result = run("reproduce", "figure-2", "--samples", 20, "--json", "-", "--report", report)
    assert "(a%20b_files/figure-2.svg)" in report.read_text()
    assert (tmp_path / "a b_files" / "figure-2.svg").is_file()
    found = json.loads(result.stdout)
    assert set(found) >= {"what", "samples", "seed", "settings", "rows", "printed", "notes"}
    assert found["what"] == "figure-2"
    assert result.stderr == f"report: {report}\n"


def test_what_was_there_stays_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("old")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    words = ("reproduce", "figure-2", "--samples", 40, "--json", path)
    assert "No space left" in run(*words, code=BAD_INPUT).stderr
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
