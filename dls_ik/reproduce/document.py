"""The report as a file: Markdown with its pictures in a folder beside it, or one HTML file."""

import base64
import io
from collections.abc import Sequence
from pathlib import Path

from dls_ik.reproduce import html, markdown
from dls_ik.reproduce.experiment import Experiment, ReproductionError
from dls_ik.reproduce.report import Reproduction

WRITERS = {".md": markdown, ".html": html, ".htm": html}
TITLE = "The published experiments, run again by dls_ik"

Run = Sequence[tuple[Experiment, Reproduction]]


def check_suffix(path: Path) -> None:
    """Refuse a kind of file that no report can be written as.

    Raises:
        ReproductionError: the ones that there are.
    """
    if path.suffix.lower() not in WRITERS:
        raise ReproductionError(f"a report is one of {', '.join(WRITERS)}, not {path.name}")


def document_files(path: Path, run: Run) -> dict[Path, bytes]:
    """The files of a report, the one at `path` last, so that it refers to what is there."""
    check_suffix(path)
    pictures = {each.what: _png(each, report) for each, report in run}
    if path.suffix.lower() != ".md":
        links = {what: _embedded(picture) for what, picture in pictures.items()}
        return {path: html.document(TITLE, run, links).encode()}
    folder = path.with_name(f"{path.stem}_files")
    links = {what: f"{folder.name}/{what}.png".replace(" ", "%20") for what in pictures}
    files = {folder / f"{what}.png": picture for what, picture in pictures.items()}
    return {**files, path: markdown.document(TITLE, run, links).encode()}


def _png(each: Experiment, report: Reproduction) -> bytes:
    buffer = io.BytesIO()
    each.plot(report).savefig(buffer, format="png")
    return buffer.getvalue()


def _embedded(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()
