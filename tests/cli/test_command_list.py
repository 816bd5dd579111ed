"""The list of commands says of each what the command says of itself, and calls it."""

from __future__ import annotations

import re
import string
import sys

import pytest
import warm_processes
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.cli.commands import COMMANDS, loaded


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_has_the_first_sentence_of_each_command(name: str) -> None:
    command = loaded(name)
    assert command.name == name
    assert COMMANDS[name].sentence == command.help.partition("\n\n")[0].replace("\n", " ").strip()


def test_a_command_that_is_called_is_the_whole_one() -> None:
    shown = CliRunner().invoke(app, ["url", "--help"])
    assert (shown.exit_code, "--full-host" in shown.output) == (0, True)


def test_a_misspelt_command_gets_the_nearest_one() -> None:
    result = CliRunner().invoke(app, ["inspekt"])
    assert result.exit_code == 2
    assert "Did you mean inspect?" in result.output


def test_a_second_name_is_not_listed_and_works() -> None:
    listed = CliRunner().invoke(app, ["--help"]).output
    assert "  job  " in listed
    assert "  jobs " not in listed
    assert "submit" in CliRunner().invoke(app, ["jobs", "--help"]).output


@pytest.mark.parametrize("name", COMMANDS)
def test_nothing_of_a_help_text_is_taken_for_markup(name: str) -> None:
    """Typer hands the texts to Rich, which eats words in brackets."""
    command = loaded(name)
    for each in (command, *getattr(command, "commands", {}).values()):
        texts = [each.help or "", *(getattr(option, "help", "") or "" for option in each.params)]
        assert not [text for text in texts if re.search(r"\[/?[a-z#@]", text)]


def test_a_default_that_is_everything_is_said_in_a_word() -> None:
    shown = CliRunner().invoke(app, ["collection", "--help"]).output
    assert "[default: all]" in shown


@pytest.mark.parametrize("name", COMMANDS)
def test_a_paragraph_of_help_is_one_line_and_the_example_another_paragraph(name: str) -> None:
    """Rich keeps line breaks within a paragraph, which then end a line anywhere."""
    command = loaded(name)
    for each in (command, *getattr(command, "commands", {}).values()):
        assert not re.search(r"[^\n]\n[^\n]", each.help)
        assert not re.search(r"[^\n]Example: ", each.help)


@pytest.mark.slow
def test_help_names_what_is_taken_by_a_word_and_not_by_a_type_of_python() -> None:
    for name in COMMANDS:
        command = loaded(name)
        for each in (command, *getattr(command, "commands", {}).values()):
            output = CliRunner().invoke(app, [*{name: None, each.name: None}, "--help"]).output
            assert "Usage:" in output
            shown = "".join(line for line in output.splitlines() if "--help" not in line)
            assert not re.search(r"<(?:str|int|float|path|Path|bool|list)|OPTIONS\] \{", shown), (
                name,
                each.name,
            )


@pytest.mark.parametrize(
    "line",
    [
        "frontier import dump.json -o file.meguri --codec lz4",
        "dashboard user add anna --role king --users users.json",
    ],
)
def test_a_word_that_is_no_choice_is_refused_with_those_there_are(line: str) -> None:
    refused = CliRunner().invoke(app, line.split())
    assert refused.exit_code == 2
    assert "is not one of '" in refused.stderr


@pytest.mark.parametrize(
    "line",
    [
        "crawl http://a.example/ --depth deep",
        "explain http://a.example/ --start http://a.example/ --depth deep",
        "share create name --seeds seeds.txt --depth -1",
    ],
)
def test_a_depth_is_the_same_words_or_a_number_everywhere(line: str) -> None:
    refused = CliRunner().invoke(app, line.split())
    assert refused.exit_code == 2
    assert "is neither 'inf' nor 'shallow' nor a number of links" in refused.stderr


@pytest.mark.parametrize("line", [(), ("crawl",), ("frontier", "retry"), ("job", "submit")])
def test_help_that_no_terminal_shows_has_no_frames_and_no_colours(line: tuple[str, ...]) -> None:
    """In a pipe, in a log and read aloud, lines that are drawn are in the way."""
    done = warm_processes.run(
        [sys.executable, "-m", "amicrawl", *line, "--help"], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("Usage: ")
    assert not set(done.stdout) - set(string.printable)
