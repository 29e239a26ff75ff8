# SPDX-FileCopyrightText: The dls_ik developers
# SPDX-License-Identifier: Apache-2.0
"""Kinds of runs of documented commands."""

import argparse
import doctest
import io
import os
import re
import runpy
import shlex
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import click
import docs_bench
from docs_pages import Command
from docs_table import PLACEHOLDERS, UNSEEN, Rule, Way
from prefork import ForkingPopen

LONG = 240.0  # [s] kernels may have to be compiled
SHELL = re.compile(r"[|<>$;&\n*]")  # characters that only a shell can interpret
ELLIPSIS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def follow(command: Command, rule: Rule, folder: Path) -> None:
    """Run or check a command according to its rule.

    Raises:
        AssertionError: If it fails.
    """
    text = command.text
    for placeholder, word in PLACEHOLDERS.items():
        text = text.replace(placeholder, word)
    if rule.way is Way.RUN or (rule.way is Way.ASK and not text.startswith("ros2 ")):
        shown = run(text, folder)
        if command.shows:
            fits = doctest.OutputChecker().check_output(command.shows, shown, ELLIPSIS)
            assert fits, f"shown:\n{shown}\nthe page has:\n{command.shows}"
    elif rule.way is Way.SERVE:
        text += next((words for start, words in UNSEEN.items() if text.startswith(start)), "")
        place = {} if "--ros " in text else {"ROS_DOMAIN_ID": domain_beside_the_stage()}
        with Server(text, folder, **place) as server:
            server.wait_for(rule.ready)
            server.end()
    elif rule.way is Way.ASK:
        import docs_ros2

        docs_ros2.ask(text)
    elif rule.way is Way.LAUNCH:
        import docs_launch

        docs_launch.check(text)
    elif rule.way is Way.PARSE:
        parse(text)
    elif rule.way is Way.NAME:
        name(text)


def domain_beside_the_stage() -> str:
    """Return a ROS domain for servers that must not meet the nodes of this or another worker."""
    return str(1 + (int(os.environ["ROS_DOMAIN_ID"]) + 49) % 100)


def run(text: str, folder: Path) -> str:
    """Run a command, and return its output."""
    if text.startswith("dls-ik ") and not SHELL.search(text):
        return run_here(shlex.split(text)[1:])
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", text],
        cwd=folder,
        env=docs_bench.environment(folder),
        capture_output=True,
        text=True,
        timeout=LONG,
    )
    assert ended.returncode == 0, f"exit code {ended.returncode}: {ended.stdout}{ended.stderr}"
    return ended.stdout


def run_here(words: list[str]) -> str:
    """Run ``dls-ik`` in this process, which has already loaded its modules.

    Commands that ask a node wait for it as long as necessary, since the machine may be busy.
    """
    from dls_ik.cli.main import main

    if words[0] in ("call", "stream") and "--patience" not in words:
        words = [*words, "--patience", str(LONG)]
    if words[0] == "call" and "--fk" not in words and "--timeout" not in words:
        words = [*words, "--timeout", "10"]
    out, err, handler = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGINT)
    code = 0
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(words, prog_name="dls-ik")
    except SystemExit as ended:
        code = ended.code
    finally:
        signal.signal(signal.SIGINT, handler)
    assert code in (0, None), f"exit code {code}: {out.getvalue()}{err.getvalue()}"
    return out.getvalue()


def name(text: str) -> None:
    """Whether the subcommand of ``dls-ik`` is there; nothing of other programs."""
    program, subcommand, *_ = text.split()
    if program == "dls-ik":
        from dls_ik.cli.main import main

        names = main.list_commands(click.Context(main))
        if subcommand == "COMMAND" or subcommand.startswith("-"):  # any of them, or none
            return
        assert subcommand in names, f"dls-ik has no {subcommand}, but {names}"


def parse(text: str) -> None:
    """Parse the arguments of a command with its own parser."""
    words = shlex.split(text)
    if words[0] == "dls-ik":
        parse_click(words[1:])
    else:
        parse_arguments(words[2], words[3:])


def parse_click(words: list[str]) -> None:
    from dls_ik.cli.main import main

    command, name, context = main, "dls-ik", None
    while True:
        context = command.make_context(name, words, parent=context)
        if not isinstance(command, click.Group):
            return
        rest = [*context._protected_args, *context.args]
        if not rest:
            return
        name, command, words = command.resolve_command(context, rest)


class Parsed(BaseException):
    """Exception that ends a run after the arguments were parsed."""


def parse_arguments(module: str, words: list[str]) -> None:
    """Run a module until its arguments are parsed."""
    real, argv = argparse.ArgumentParser.parse_args, sys.argv

    def stop(parser, args=None, namespace=None):
        real(parser, args, namespace)
        raise Parsed

    argparse.ArgumentParser.parse_args, sys.argv = stop, [module, *words]
    errors = io.StringIO()
    try:
        with redirect_stderr(errors):
            runpy.run_module(module, run_name="__main__")
    except Parsed:
        return
    except SystemExit as ended:
        raise AssertionError(f"exit code {ended.code}: {errors.getvalue()}") from None
    finally:
        argparse.ArgumentParser.parse_args, sys.argv = real, argv
    raise AssertionError(f"{module} read no arguments")


class Server:
    """Program of the package that runs until it is stopped, and its output."""

    def __init__(self, text: str, folder: Path, **environment: str) -> None:
        self.text, self.lines, self.news = text, [], threading.Condition()
        program, *words = shlex.split(text)
        module = docs_bench.PROGRAMS[Path(program).name]
        self.process = ForkingPopen(
            [sys.executable, "-m", module, *words],
            cwd=folder,
            env=docs_bench.environment_of_programs() | environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.reader.join()
        self.process.stdout.close()

    def wait_for(self, pattern: str) -> None:
        """Wait for a line."""
        with self.news:
            self.news.wait_for(lambda: self._has(pattern) or self.process.poll() is not None, LONG)
        assert self._has(pattern), f"no {pattern!r} of {self.text}:\n" + "\n".join(self.lines)

    def end(self) -> None:
        """Stop the program by Ctrl-C."""
        self.process.send_signal(signal.SIGINT)
        try:
            code = self.process.wait(LONG)
        except subprocess.TimeoutExpired:
            code = None
        assert code in (0, 130, -signal.SIGINT), f"exit code {code}:\n" + "\n".join(self.lines)

    def _has(self, pattern: str) -> bool:
        return any(re.search(pattern, line) for line in self.lines)

    def _read(self) -> None:
        for line in self.process.stdout:
            with self.news:
                self.lines.append(line.rstrip())
                self.news.notify_all()
        with self.news:
            self.news.notify_all()
