"""Plain values of options are taken as they are; pydantic would make the same of them, and be late."""

from __future__ import annotations

import os
import subprocess
import sys
from enum import StrEnum
from pathlib import Path  # noqa: TC003  # typer reads the annotations
from typing import Annotated, Any

import pytest
import typer
from typer.main import get_command

from amicrawl.cli.commands import spare_pydantic

_WORK = """
import atexit, sys
from amicrawl.cli import main

atexit.register(lambda: print("pydantic" in sys.modules))
sys.argv = ["amicrawl", *sys.argv[1:]]
main()
"""


class Choice(StrEnum):
    """What may be chosen."""

    ONE = "one"
    TWO = "two"


def command(
    paths: list[Path],
    *,
    names: Annotated[list[str] | None, typer.Option()] = None,
    root: Annotated[Path | None, typer.Option()] = None,
    text: Annotated[str, typer.Option()] = "",
    choice: Annotated[Choice, typer.Option()] = Choice.ONE,
    number: Annotated[int, typer.Option(min=2, max=9)] = 3,
    part: Annotated[float, typer.Option()] = 0.5,
    flag: Annotated[bool, typer.Option("--flag")] = False,
    made: Annotated[int, typer.Option(parser=len)] = 0,
) -> None:
    """Take values of every kind."""


def parsed(words: list[str], *, spared: bool) -> dict[str, Any] | str:
    """Return what typer makes of *words*, or what it says of them."""
    alone = typer.Typer(add_completion=False)
    alone.command()(command)
    made = get_command(alone)
    if spared:
        spare_pydantic(made.params)
    try:
        return made.make_context("command", list(words)).params
    except Exception as error:  # noqa: BLE001  # whatever it is, it is to be the same
        return f"{type(error).__name__}: {error}"


@pytest.mark.parametrize(
    "words",
    [
        *(["a", "b/c"], [], [""], [os.devnull, "/no/such/file"], ["a", "--flag"], ["a", "--text", "x"]),
        *(["a", "--text", ""], ["a", "--names", "x", "--names", "y"], ["a", "--root", "."]),
        *(["a", "--choice", "two"], ["a", "--choice", "three"], ["a", "--part", "0.25"]),
        *(["a", "--number", number] for number in ("2", "09", "1", "10", "-3", "x", " 4", "4_0", "٣")),
        *(["a", "--part", "x"], ["a", "--made", "four"], ["a", "--unknown"], ["\udcff", "--root", "~"]),
    ],
)
def test_what_is_plain_is_what_pydantic_makes_of_it(words: list[str]) -> None:
    by_typer = parsed(words, spared=False)
    assert parsed(words, spared=True) == by_typer
    if isinstance(by_typer, dict):
        spared = parsed(words, spared=True)
        assert isinstance(spared, dict)
        assert {name: type(value) for name, value in spared.items()} == {
            name: type(value) for name, value in by_typer.items()
        }


def test_a_file_that_cannot_be_read_is_left_to_typer(tmp_path: Path) -> None:
    directory = tmp_path / "closed"
    directory.mkdir(mode=0)
    assert parsed([str(directory)], spared=True) == parsed([str(directory)], spared=False)


@pytest.mark.slow
@pytest.mark.parametrize(
    "words", [["index", "-o", "lines", "-j", "1", "-q", "x.warc"], ["summary", "x.cdxj"]]
)
def test_an_index_and_a_summary_do_not_wait_for_pydantic(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "x.warc").write_bytes(b"")
    (tmp_path / "x.cdxj").write_text('org,a)/ 20121026215942 {"url": "http://a.org/"}\n')
    done = subprocess.run(
        [sys.executable, "-c", _WORK, *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines()[-1] == "False"
