"""The command in this process: what it says, writes and refuses."""

import json

import click
import pytest
from click.testing import CliRunner

import dls_ik
from dls_ik.cli.main import main
from dls_ik.reproduce.experiment import EXPERIMENTS


def invoke(*arguments):
    return CliRunner().invoke(main, [str(argument) for argument in arguments])


def refusal(*arguments):
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert result.stderr.count("\n") == 1
    return result.stderr


def test_the_version_and_help():
    assert dls_ik.__version__ in invoke("--version").output
    assert "reproduce" in invoke("--help").output
    assert "reproduce" in invoke().output
    assert all(what in invoke("reproduce", "--help").output for what in EXPERIMENTS)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["frobnicate"], "frobnicate"),
        (["reproduce"], "WHAT"),
        (["reproduce", "table-vi"], "figures-4-5"),
        (["reproduce", "figure-2", "--samples", 0], "20 or more samples"),
        (["reproduce", "table-v", "--samples", 0], "1 or more samples"),
        (["reproduce", "figure-2", "--samples", -3], "not -3"),
        (["reproduce", "figure-2", "--samples", "many"], "many"),
        (["reproduce", "figure-2", "--seed", "x"], "'x'"),
        (["reproduce", "figure-2", "--seed", -1], "-1"),
        (["reproduce", "figure-2", "--json", "/no/such/folder/x.json"], "no directory"),
        (["reproduce", "figure-2", "--plot", "x.bmp"], ".png, .svg, .pdf"),
        (["reproduce", "figure-2", "--plot", "-"], "standard output"),
        (["reproduce", "figure-2", "--report", "x.docx"], ".md, .html"),
        (["reproduce", "all", "--plot", "x.png"], "--report"),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments, said):
    assert said in refusal(*arguments)


def test_an_output_is_refused_before_the_work_begins(tmp_path, monkeypatch):
    monkeypatch.setattr("dls_ik.cli.reproduce.complete", lambda *_: pytest.fail("it ran"))
    assert "a directory" in refusal("reproduce", "figure-2", "--json", tmp_path)
    same = tmp_path / "x.png"
    assert "two outputs" in refusal("reproduce", "figure-2", "--json", same, "--plot", same)


def test_tables_are_shown_and_files_written(tmp_path):
    paths = {kind: tmp_path / f"out.{kind}" for kind in ("json", "png", "html", "md")}
    result = invoke(
        "reproduce", "figure-2", "--samples", 40, "--json", paths["json"], "--plot", paths["png"],
        "--report", paths["html"],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    assert "svf+ed" in result.stdout
    found = json.loads(paths["json"].read_text())
    assert found["samples"] == 40
    assert found["complete"]
    assert paths["png"].read_bytes().startswith(b"\x89PNG")
    assert "data:image/png;base64," in paths["html"].read_text()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["out.html", "out.json", "out.png"]


def test_markdown_has_its_pictures_beside_it(tmp_path):
    result = invoke("reproduce", "figure-2", "--samples", 40, "--report", tmp_path / "a b.md")
    assert result.exit_code == 0, result.output
    assert "(a%20b_files/figure-2.png)" in (tmp_path / "a b.md").read_text()
    assert (tmp_path / "a b_files" / "figure-2.png").is_file()


def test_json_alone_on_standard_output():
    result = invoke("reproduce", "figure-2", "--samples", 40, "--json", "-")
    found = json.loads(result.stdout)
    assert set(found) >= {"what", "samples", "seed", "settings", "rows", "printed", "notes"}
    assert found["what"] == "figure-2"
    assert result.stderr == ""


def test_what_was_there_stays_when_writing_fails(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    path.write_text("old")

    def fail(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.write_text", fail)
    assert "No space left" in refusal_after_work("--json", path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def refusal_after_work(*arguments):
    result = invoke("reproduce", "figure-2", "--samples", 40, *arguments)
    assert result.exit_code == 2
    return result.stderr


def test_a_subcommand_may_be_added():
    @click.command()
    def extra():
        raise click.UsageError("two\nlines")

    main.add_command(extra)
    try:
        assert refusal("extra") == "dls-ik: two lines\n"
    finally:
        main.commands.pop("extra")
