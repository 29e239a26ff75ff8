"""Mutants that no test can tell from the program, and why."""

from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

EXPLAINED = Path(__file__).with_name("equivalent.toml")


def explained() -> dict[tuple[str, str, str], str]:
    """Reasons by file, old line and new line."""
    rows = tomllib.loads(EXPLAINED.read_text()).get("mutant", [])
    return {(row["file"], row["old"], row["new"]): row["why"] for row in rows}
