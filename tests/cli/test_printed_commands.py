"""Commands that are printed for people to type are commands with these options; examples too."""

from __future__ import annotations

import ast
import re
import shlex
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import amicrawl
from amicrawl.cli.commands import COMMANDS, loaded

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE = Path(amicrawl.__file__).parent
_PRINTED = re.compile(r"`amicrawl ([^`]+)`|: amicrawl ([a-z][^`\n]+)")


def leaves(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", {})
    if not below:
        yield name, command
    for word, each in below.items():
        yield from leaves(each, f"{name} {word}")


LEAVES = [leaf for name in COMMANDS for leaf in leaves(loaded(name), name)]


def text_of(node: ast.expr) -> str | None:
    """Return the text of a string; what it is filled with is `X`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
        return "".join(map(str, parts))
    return None


@cache
def printed() -> list[tuple[str, str]]:
    """Return every command line in a string of the package, with its place."""
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        # Most modules name no command, and parsing all takes seconds.
        for node in ast.walk(ast.parse(source)) if "amicrawl " in source else ():
            text = text_of(node) if isinstance(node, (ast.Constant, ast.JoinedStr)) else None
            place = f"{path.relative_to(PACKAGE)}:{getattr(node, 'lineno', 0)}"
            found += [(place, one or other) for one, other in _PRINTED.findall(text or "")]
    return found


def complaint(line: str) -> str:
    """Return what keeps *line* from being a command; empty for nothing."""
    words = [word.rstrip(".,;:") for word in shlex.split(line.replace("'", ""))]
    if words[0] not in COMMANDS:
        return f"no command {words[0]}"
    command, at = loaded(words[0]), 1
    # A word in capitals stands for any; a command with others below it may have options of its own.
    while getattr(command, "commands", {}) and at < len(words) and not words[at].startswith("-"):
        if words[at] not in command.commands:
            return "" if words[at].isupper() else f"no subcommand {words[at]}"
        command, at = command.commands[words[at]], at + 1
    known = {option for parameter in command.params for option in parameter.opts}
    wrong = [word for word in words[at:] if word.startswith("-") and word.partition("=")[0] not in known]
    return f"no option {wrong[0]}" if wrong and wrong[0] != "-" else ""


@pytest.mark.slow
def test_every_command_that_is_printed_is_one() -> None:
    lines = printed()
    assert len(lines) > 40
    assert not [f"{place}: {line}: {said}" for place, line in lines if (said := complaint(line))]


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("recrawl X --all", ""),
        ("recrawl X --every", "no option --every"),
        ("job show", ""),
        ("job tell", "no subcommand tell"),
        ("crowl X", "no command crowl"),
    ],
)
def test_a_command_that_is_none_would_be_found(line: str, says: str) -> None:
    assert complaint(line) == says


@pytest.mark.parametrize(("name", "command"), LEAVES, ids=[name for name, _ in LEAVES])
def test_every_command_shows_an_example_of_itself(name: str, command: Any) -> None:
    examples = re.findall(r"Examples?: amicrawl (.*)", command.help or "")
    assert examples
    for example in examples:
        words = example.split(" | ")[0]
        assert words.startswith((f"{name} ", name.replace("jobs", "job", 1))), example
        assert not complaint(words), example
