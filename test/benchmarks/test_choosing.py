"""The tool behind docs/choosing_a_method.md, run for real at the smallest size."""

import json
import re
import subprocess
import sys

from robots import ROOT

from benchmarks.choosing import CASES, METHODS, WISHES

PAGE = (ROOT / "docs" / "choosing_a_method.md").read_text()


def test_every_method_has_its_figures(tmp_path):
    target = tmp_path / "figures.json"
    command = [sys.executable, "-m", "benchmarks.choosing", "--json", str(target)]
    command += ["--samples", "3", "--methods", "svf", "odls"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    shares, times, which, streamed = json.loads(target.read_text())["tables"]
    for table in (shares, times, streamed):
        assert [row["method"] for row in table["rows"]] == ["auto", "svf", "odls"]
    assert [row["solve_type"] for row in which["rows"]] == list(WISHES)
    assert shares["rows"][0] == {"method": "auto", **dict.fromkeys(CASES, 100.0)}


def test_page_has_a_row_for_every_method():
    rows = re.findall(r"^\| `([\w+]+)` \| [\d.]+ \(", PAGE, re.MULTILINE)
    assert rows == list(METHODS)
