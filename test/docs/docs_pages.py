# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Pages as a reader sees them: their commands, and the blocks that show something."""

import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parents[2]
SHELL, SESSION = ("bash", "sh", "shell"), "console"
# Languages whose blocks are not run: output, formulas, files (YAML is read), Sphinx's directives.
SHOWN = ("", "math", "text", "yaml", "xml", "ini", "json", "csv", "cmake", "mermaid")
PROGRAMS = re.compile(
    r"(?:\$ )?(?:\.venv/bin/|scripts/|python3? |pip |dls-ik\b|ik_node\b|ik_sim_arm\b|ros2 |colcon |"
    r"rosdep |dask |sudo |ssh |docker |source |cd |git |export |curl |xacro )"
)
JOINED = re.compile(r"\s+&&\s+")
COMMENT = re.compile(r"(^|\s)#(?=\s).*$")


class Command(NamedTuple):
    """One command of a page."""

    page: str
    line: int
    text: str
    inline: bool = False  # inline code, which may lack its arguments
    shows: str = ""  # the output that the page has below it; ... stands for anything

    def __str__(self) -> str:
        return f"{self.page}:{self.line}: {self.text}"


class Block(NamedTuple):
    page: str
    line: int
    language: str
    text: str


def pages() -> list[str]:
    """Every hand-written page, by its path in the repository."""
    site = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]
    paths = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *site]
    return [path.relative_to(ROOT).as_posix() for path in paths]


@cache
def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page; an indented one has the language "indented"."""
    found = []
    for token in _tokens(page):
        line = token.map[0] + 1 if token.map else 0
        if token.type == "fence":
            found.append(Block(page, line, (token.info.split() or [""])[0], token.content))
        elif token.type == "code_block":
            found.append(Block(page, line, "indented", token.content))
    return found


def code_in_column(page: str, column: int) -> list[tuple[int, str]]:
    """The inline code in one column of all tables of a page, without the headings, by line."""
    found, cell = [], -1
    for token in _tokens(page):
        if token.type == "tr_open":
            cell = -1
        elif token.type == "td_open":
            cell += 1
        elif token.type == "table_close":
            cell = -1
        elif token.type == "inline" and cell == column:
            codes = (child.content for child in token.children if child.type == "code_inline")
            found += [(token.map[0] + 1, code) for code in codes]
    return found


@cache
def commands(page: str) -> list[Command]:
    """The commands of a page in their order, those in sentences among them."""
    found = []
    for block in blocks(page):
        if block.language in SHELL:
            found += _of_script(block)
        elif block.language == SESSION:
            found += _of_session(block)
    for token in _tokens(page):
        for child in token.children or [] if token.type == "inline" else []:
            text = " ".join(child.content.split())
            if child.type == "code_inline" and PROGRAMS.match(text) and " " in text:
                found.append(Command(page, token.map[0] + 1, text, inline=True))
    return sorted(found, key=lambda command: command.line)


@cache
def _tokens(page: str):
    return MarkdownIt("commonmark").enable("table").parse((ROOT / page).read_text())


def _of_script(block: Block) -> list[Command]:
    if "<<" in block.text:  # a document for a command: the shell alone can read it
        return [Command(block.page, block.line, block.text.rstrip("\n"))]
    return [
        Command(block.page, line, part)
        for line, text in _logical_lines(block)
        for part in JOINED.split(text)
    ]


def _logical_lines(block: Block) -> list[tuple[int, str]]:
    """Lines without comments, those that end in a backslash together with the next."""
    found, begun, first = [], "", 0
    for number, text in enumerate(block.text.splitlines(), start=block.line + 1):
        first = first if begun else number
        plain = COMMENT.sub("", text).strip()
        if plain.endswith("\\"):
            begun += plain[:-1]
        elif begun + plain:
            found.append((first, begun + plain))
            begun = ""
    return found


def _of_session(block: Block) -> list[Command]:
    """Commands behind a prompt, each with what it prints."""
    parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]
    found, line = [], block.line + 1
    for part in parts:
        text, _, output = part.partition("\n")
        found.append(Command(block.page, line, COMMENT.sub("", text).strip(), shows=output))
        line += part.count("\n")
    return found
