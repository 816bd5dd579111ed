"""The terminal: figures that people read, and lines that are written over."""

from __future__ import annotations

import io

import pytest

from amicrawl.terminal import LiveLines, ProgressBar, bar, counted


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """Return the lines that stand there, with the few sequences followed that are sent."""
        lines, row, text = [""], 0, self.getvalue()
        while text:
            if text.startswith("\x1b["):
                end = next(at for at, sign in enumerate(text) if sign.isalpha())
                if text[end] == "A":
                    row -= int(text[2:end])
                else:
                    assert text[: end + 1] == "\x1b[J"
                    lines = [*lines[:row], ""]
                text = text[end + 1 :]
                continue
            sign, text = text[0], text[1:]
            if sign == "\n":
                row += 1
                lines += [""] * (row + 1 - len(lines))
            elif sign != "\r":
                lines[row] += sign
        return lines


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "5")
    return Terminal()


def test_lines_take_the_place_of_those_before_them(terminal: Terminal) -> None:
    lines = LiveLines(terminal)
    lines.show("one", "two", "three")
    lines.show("four", "five")
    assert terminal.screen() == ["four", "five"]
    lines.show("six")
    assert terminal.screen() == ["six"]


def test_what_is_printed_after_a_clear_stands_above_them(terminal: Terminal) -> None:
    lines = LiveLines(terminal)
    lines.show("one", "two")
    lines.clear()
    terminal.write("a log line\n")
    lines.show("three", "four")
    assert terminal.screen() == ["a log line", "three", "four"]


def test_lines_are_cut_to_the_size_of_the_terminal(terminal: Terminal) -> None:
    LiveLines(terminal).show(*["x" * 50] * 9)
    assert terminal.screen() == ["x" * 19] * 4


def test_a_file_and_a_dumb_terminal_get_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    for stream in (Terminal(), io.StringIO()):
        lines = LiveLines(stream)
        lines.show("one")
        lines.clear()
        assert (stream.getvalue(), lines.is_watched) == ("", False)


def test_a_progress_bar_is_drawn_at_once_and_gone_at_the_end(terminal: Terminal) -> None:
    with ProgressBar(terminal) as progress:
        progress.show(1, 2, "a")
        assert terminal.screen() == ["[████████████░░░░░░"]
    assert terminal.screen() == [""]


def test_a_progress_bar_of_an_unknown_total_is_the_text_alone(terminal: Terminal) -> None:
    with ProgressBar(terminal) as progress:
        progress.show(1, 0, "1 line")
        assert terminal.screen() == ["1 line"]


def test_a_progress_bar_in_a_file_is_nothing() -> None:
    stream = io.StringIO()
    with ProgressBar(stream) as progress:
        progress.show(1, 2, "a")
    assert stream.getvalue() == ""


@pytest.mark.parametrize(
    ("done", "total", "text"),
    [(0, 8, "[----]   0 %"), (4, 8, "[##--]  50 %"), (9, 8, "[####] 100 %"), (0, 0, "[----]   0 %")],
)
def test_a_bar_shows_the_share_that_is_done(done: int, total: int, text: str) -> None:
    assert bar(done, total, width=4, ascii_only=True) == text


def test_things_are_counted_in_the_singular_or_plural() -> None:
    counts = (counted(1, "URL"), counted(2000, "URL"), counted(0, "fetch"))
    assert counts == ("1 URL", "2,000 URLs", "0 fetches")
    assert (counted(2, "entry"), counted(1, "entry"), counted(2, "key")) == (
        "2 entries",
        "1 entry",
        "2 keys",
    )
