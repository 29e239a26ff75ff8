# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""``dls-ik reproduce`` in this process: tables, JSON, pictures and reports."""

import json

from cli_runner import BAD_INPUT, refusal, run

from dls_ik.reproduce.experiment import NoProgress, complete


def test_reproduce_prints_tables_and_writes_all_output_files(tmp_path):
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


def test_table_v_pairs_our_and_printed_values_and_warns_of_few_samples():
    shown = run("reproduce", "table-v", "--samples", 20, "--rows", "jp", columns=110).stdout
    row = next(line for line in shown.splitlines() if line.startswith("jp "))
    assert "100.0    100.0" in row  # ours and the printed one
    first = shown.index("As published: methods from")
    assert shown.index("20 pairs of start and goal are few") < first
    assert first < shown.index("Statistics: agreement") < shown.index("Statistics of chance")
    narrow = run("reproduce", "table-v", "--samples", 20, "--rows", "jp", columns=60).stdout
    assert "dim, below each figure" in narrow
    assert not any(line.split() == ["*", "*"] for line in shown.splitlines())


def test_tables_of_a_reading_that_was_not_run_are_left_out():
    words = ("reproduce", "table-v", "--samples", 20, "--rows", "jp", "--reading", "as meant")
    shown = run(*words, columns=110).stdout
    assert "As meant: the methods of this package, with one set" in shown
    for title in ("As published: methods from", "Times, as published", "one slip"):
        assert title not in shown


def test_an_experiment_of_a_similar_name_is_suggested():
    assert "did you mean table-v?" in refusal("reproduce", "tablev")
    assert "100 or more samples" in refusal("reproduce", "figure-3", "--samples", 5)
    shown = run("reproduce", "figure-3", "--samples", 100).stdout
    assert "no figure is marked" in " ".join(shown.split())
    assert "0*" not in shown


def test_existing_file_is_kept_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("old")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    words = ("reproduce", "figure-2", "--samples", 40, "--json", path)
    assert "No space left" in run(*words, code=BAD_INPUT).stderr
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_result_that_cannot_be_written_is_kept_elsewhere_and_named(tmp_path, monkeypatch):
    (tmp_path / "spare").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "spare"))
    report, latex = tmp_path / "there" / "out.md", tmp_path / "out.tex"
    report.parent.mkdir()

    def removed(*_, **__):  # removes the folder during the run
        report.parent.rmdir()
        return False

    monkeypatch.setattr("dls_ik.cli.reproduce._complete", removed)
    words = ("reproduce", "figure-2", "--samples", 20, "--report", report, "--latex", latex)
    run(*words, code=130)  # nothing was finished, so nothing is kept
    report.parent.mkdir()
    monkeypatch.setattr("dls_ik.cli.reproduce._complete", lambda run, quiet: finish(run, removed))
    found = run(*words, code=BAD_INPUT)
    assert f"cannot write {report}" in found.stderr
    (kept,) = (tmp_path / "spare").glob("*/out.md")
    assert str(kept.parent) in found.stderr
    assert (kept.parent / "out_files" / "figure-2.svg").is_file()
    assert latex.is_file()


def finish(run, then):
    for each, report in run:
        complete(each, report, NoProgress())
    then()
    return True


def test_a_folder_of_pictures_that_is_a_file_is_refused_before_the_run(tmp_path):
    (tmp_path / "out_files").touch()
    found = run("reproduce", "all", "--report", tmp_path / "out.md", code=BAD_INPUT)
    assert "would be out_files, which is a file" in found.stderr
