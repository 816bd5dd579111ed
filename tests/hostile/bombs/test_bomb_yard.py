"""Every bomb goes through every command that reads its format, within 640 MiB, or what its format says.

A command has 20 s of a processor. It ends by itself, with a code that is documented, and with a sentence
or its work done.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hostile.bombs.confined import MEMORY
from hostile.bombs.readers import OUR_OWN, READERS, reading_modules
from hostile.bombs.web_bombs import WEB
from hostile.bombs.yard import COVERED_COMMANDS, NOT_OF_FILES, YARD, directories

from amicrawl.archive.lines import ARCHIVE_ENDINGS
from amicrawl.archive.report.reading import KINDS
from amicrawl.cli.commands import COMMANDS
from amicrawl.errors import ExitCode
from amicrawl.seed.formats import SeedFormat
from amicrawl.seed.source import Packing

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from hostile.bombs.confined import Confinement, Ended

pytestmark = pytest.mark.timeout(600)

CODES = frozenset(int(code) for code in ExitCode) - {ExitCode.OUR_ERROR, ExitCode.STOPPED}
BOMBS = [(format_, name) for format_ in YARD for name in YARD[format_].bombs]
DIRECTORIES = list(directories())


PROGRAMS = {"seeds": "read_seeds:main", "bucket": "read_bucket:main"}
"""What is run in place of a command."""


def complaint(command: str, ended: Ended, memory: int = MEMORY) -> str:
    """What is wrong with how *command* ended within *memory* bytes; empty where nothing is."""
    said = ended.errors.strip() or ended.output.strip()
    if ended.is_orderly(memory) and ended.code in CODES and (ended.code == 0 or said):
        return ""
    return (
        f"{command}: code {ended.code}, {ended.memory >> 20} MiB, {ended.seconds:.1f} s: {said[-1500:]}"
    )


def complaints(
    commands: Sequence[str], name: str, where: Path, confined: Confinement, memory: int = MEMORY
) -> list[str]:
    found = []
    (where / "bucket").mkdir(exist_ok=True)
    (where / "out").mkdir(exist_ok=True)
    for command in commands:
        words = [
            word.replace("{bucket}", (where / "bucket").as_uri()).replace("{}", name).replace("+", " ")
            for word in command.split(" ")
        ]
        if words[0] in PROGRAMS:
            ended = confined.run(words[1:], where=where, program=PROGRAMS[words[0]])
        else:
            ended = confined.run(words, where=where)
        found.append(complaint(" ".join(words), ended, memory))
    return [each for each in found if each]


@pytest.mark.parametrize(("format_", "name"), BOMBS)
def test_a_bomb_costs_no_command_that_reads_it_much(
    format_: str, name: str, tmp_path: Path, confined: Confinement
) -> None:
    tried = YARD[format_]
    content = tried.bombs[name]()
    assert len(content) < 9 * 1024**2, "a bomb is small"
    (tmp_path / name).write_bytes(content)
    assert complaints(tried.commands, name, tmp_path, confined, tried.memory) == []


@pytest.mark.parametrize(
    ("make", "commands"),
    [(make, commands) for _, make, commands in DIRECTORIES],
    ids=[name for name, _, _ in DIRECTORIES],
)
def test_a_directory_that_is_a_bomb_costs_no_command_much(
    make: Callable[[Path], None], commands: Sequence[str], tmp_path: Path, confined: Confinement
) -> None:
    make(tmp_path)
    assert complaints(commands, "", tmp_path, confined) == []


def test_every_format_that_a_reader_knows_has_bombs() -> None:
    known = {*map(str, SeedFormat), *map(str, Packing), *ARCHIVE_ENDINGS, *KINDS}
    covered = {name for format_ in YARD.values() for name in format_.covers} | {"zipnum"}
    assert known - covered == set()
    assert covered - known == set()


def test_every_module_that_reads_has_bombs_or_reads_nothing_of_strangers() -> None:
    listed = [module for modules in READERS.values() for module in modules]
    assert reading_modules() == {*listed, *OUR_OWN}, "put a new one where its bombs are, or make some"
    assert len(listed) == len(set(listed))
    assert OUR_OWN.isdisjoint(listed)
    tried = {name.partition(":")[0] for name, _, _ in DIRECTORIES}
    assert READERS.keys() <= {*YARD, *WEB, *tried, "Redis", "a directory of a crawl"}


def test_every_command_reads_bombs_or_says_where_what_it_reads_is_tried() -> None:
    assert set(COMMANDS) == COVERED_COMMANDS - PROGRAMS.keys() | NOT_OF_FILES.keys()
    assert COVERED_COMMANDS & NOT_OF_FILES.keys() == set()
