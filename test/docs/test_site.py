# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""The site that ``scripts/docs`` builds: without warnings, every link leads somewhere, it shows."""

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from urllib.parse import unquote, urlsplit

import pytest
from docs_pages import ROOT, pages

pytest.importorskip("furo", reason="needs Sphinx: requirements/docs.txt")
pytest.importorskip("myst_parser", reason="needs Sphinx: requirements/docs.txt")

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("site")]


class Page(HTMLParser):
    """The anchors of a page, and what it refers to."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.targets, self.images = set(), [], []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.ids.update(filter(None, (given.get("id"), given.get("name"))))
        if tag == "a" and given.get("href"):
            self.targets.append(given["href"])
        if tag == "img":
            self.images.append(given["src"])
        if tag in ("link", "script") and given.get("src", given.get("href")):
            self.images.append(given.get("src", given.get("href")))


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """The site, and what Sphinx said."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-W", "--keep-going"]
    ended = subprocess.run(
        [*command, "-j", "2", str(ROOT / "docs"), str(folder)], capture_output=True, text=True
    )
    return folder, ended


@pytest.fixture(scope="session")
def site(built):
    """Every page by its path in the site."""
    folder, _ = built
    names = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*.html")}
    return {name: Page(path) for name, path in names.items() if not name.startswith("_static")}


def is_internal(target):
    parts = urlsplit(target)
    return not parts.scheme and not parts.netloc


def test_site_builds_without_warnings_or_broken_links(built, site, count):
    (folder, ended), broken = built, []
    assert ended.returncode == 0, ended.stderr
    names = [page.removeprefix("docs/") for page in pages() if page.startswith("docs/")]
    assert {name.removesuffix(".md") + ".html" for name in names} <= set(site)
    count("pages of the site", len(names))
    for name, page in site.items():
        for target in filter(is_internal, page.targets):
            parts = urlsplit(target)
            file = (folder / name).parent / unquote(parts.path) if parts.path else folder / name
            there = file.resolve().relative_to(folder.resolve()).as_posix()
            anchor = unquote(parts.fragment)
            missing = anchor and there in site and anchor not in site[there].ids
            if not file.is_file() or missing:
                broken.append(f"{name}: {target}")
            count("links of the site", 1)
        broken += [f"{name} loads from elsewhere"] * (not all(map(is_internal, page.images)))
        for source in page.images:
            path = (folder / name).parent / unquote(urlsplit(source).path)
            if not path.is_file() and source != "#":  # # is the page itself
                broken.append(f"{name}: {source}")
    assert not broken, "\n".join(sorted(set(broken)))


def test_api_pages_show_signatures_and_wide_tables_scroll(built):
    text = re.sub(r"<[^>]+>", "", (built[0] / "api" / "solving.html").read_text())
    plain = re.sub(r"\s+", "", text)
    assert "solve(T:PoseLike,seed:JointValues|None=None,timeout:float|None=None" in plain
    assert "_SupportsArray" not in plain
    assert re.search(r"position_tolerance.{,40}maximumpositionerror\[m\];from1e-12", plain)
    style = (built[0] / "_static" / "site.css").read_text()
    assert re.search(r"\.table-wrapper \{[^}]*overflow-x: auto", style)
    text = (built[0] / "lab/benchmarks.html").read_text()
    assert text.count("<table") == text.count('class="table-wrapper')
    assert "docs/_build/html" in (ROOT / "scripts" / "docs").read_text()
    assert "/docs/_build/" in (ROOT / ".gitignore").read_text()


FORMULA = re.compile(r"(?<![\\`$])\$[^$`\n]+\$")


def test_formulas_are_set_and_none_is_left_as_text(built):
    pages = {name: (ROOT / "docs" / f"{name}.md").read_text() for name in ("methods", "concepts")}
    for name, source in pages.items():
        text = (built[0] / f"{name}.html").read_text()
        count = len(FORMULA.findall(source)) + source.count("```math")
        assert count > 20
        assert text.count("<math ") >= count
        shown = re.sub(r"<(math|pre|code)\b.*?</\1>", "", text, flags=re.DOTALL)
        assert not re.search(r"\$|\\(frac|sum|lambda|Delta)", shown)
        assert 'class="formula"' in text
    assert (built[0] / "_static" / "STIXTwoMath-Regular.ttf").stat().st_size > 100_000


CUT = """selector => [...document.querySelectorAll(selector)]
    .filter(each => each.scrollWidth > each.clientWidth + 1)
    .map(each => each.innerText.slice(0, 60))"""
PAGES = ("methods", "concepts", "topics_and_services", "lab/libraries", "lab/reproduction")


@pytest.mark.parametrize("width", [1400, 390])
def test_no_table_or_formula_is_cut_off(built, width):
    """On a phone tables of figures scroll; all others become blocks of lines."""
    browser = pytest.importorskip("viewer.browser")
    tables = ".table-wrapper" if width > 1000 else ".table-wrapper:not(:has(.figures))"
    with browser.chromium() as chromium:
        page = chromium.new_page(viewport={"width": width, "height": 900})
        for name in PAGES:
            page.goto((built[0] / f"{name}.html").as_uri())
            assert page.evaluate(CUT, tables) == [], name
            assert page.evaluate(CUT, ".formula") == [], name
            assert page.evaluate("document.documentElement.scrollWidth") <= width, name


@pytest.mark.parametrize("width", [1280, 420])
def test_the_front_page_shows_in_a_browser(built, width, tmp_path):
    browser = pytest.importorskip("viewer.browser")
    with browser.chromium() as chromium:
        page = chromium.new_page(viewport={"width": width, "height": 900})
        errors = []
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((built[0] / "index.html").as_uri())
        assert page.title() == "dls_ik"
        picture = page.get_by_alt_text("The WAM follows a figure of eight")
        assert picture.evaluate("image => image.complete && image.naturalWidth") > 500
        # Nothing is wider than the window, so that nobody scrolls sideways.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.screenshot(path=tmp_path / f"front-{width}.png", full_page=True)
        page.locator(".cards").get_by_role("link", name="Start with Python").click()
        assert "Start with Python" in page.title()
    assert not errors
    assert (tmp_path / f"front-{width}.png").stat().st_size > 10_000


@pytest.mark.parametrize("words", ["lock joint", "redundancy", "elbow"])
def test_a_search_finds_a_page_for_users_first(built, words):
    """Sphinx ranks first what has a title that contains the words and is at most twice as long."""
    folder, _ = built
    text = (folder / "searchindex.js").read_text()
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    first = [
        index["docnames"][page]
        for title, places in index["alltitles"].items()
        if words in title.lower() and 2 * len(words) >= len(title)
        for page, _ in places
    ]
    assert first, "no title"
    assert not any(page.startswith(("lab/", "api/", "project/", "architecture")) for page in first)
