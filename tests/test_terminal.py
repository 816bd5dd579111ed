"""The terminal: figures that people read, and lines that are written over."""

from __future__ import annotations

import io

import pytest

from amicrawl.terminal import LiveLines, ProgressBar, bar, counted


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    encoding = "utf-8"

    def __init__(self) -> None:
        super().__init__()
        self.colours: list[str] = []
        """The colours that were requested, when the screen was looked at last."""

    def isatty(self) -> bool:
        return True

    def screen(self) -> list[str]:
        """Return the lines that stand there, with the few sequences followed that are sent."""
        lines, row, text = [""], 0, self.getvalue()
        self.colours.clear()
        while text:
            if text.startswith("\x1b["):
                end = next(at for at, sign in enumerate(text) if sign.isalpha())
                if text[end] == "A":
                    row -= int(text[2:end])
                elif text[end] == "m":
                    self.colours.append(text[2:end])
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


FIGURES = "PAUSED by file | 100/400 | ETA 30s | 25 pages/s | in flight 7/64 | ok 90 4xx 3 5xx 1 failed 2"


@pytest.mark.parametrize("columns", [60, 80, 100, 200])
def test_a_line_of_figures_is_broken_between_two_of_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    lines = LiveLines(terminal)
    lines.show(FIGURES, "below")
    shown = terminal.screen()
    assert " | ".join(part.strip() for part in shown[:-1]) == FIGURES
    assert max(map(len, shown)) < columns
    lines.clear()
    assert terminal.screen() == [""]


def test_a_terminal_that_has_become_narrower_keeps_no_old_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    lines = LiveLines(terminal)
    lines.show("x" * 90, "y")
    monkeypatch.setenv("COLUMNS", "40")
    lines.clear()
    assert "\x1b[3A" in terminal.getvalue(), "the first takes three lines by now"


@pytest.mark.parametrize(("no_color", "colours"), [("", {"1;33", "32", "33", "31"}), ("1", set())])
def test_figures_have_colours_where_a_terminal_has_them(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch, no_color: str, colours: set[str]
) -> None:
    """https://no-color.org"""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("NO_COLOR", no_color)
    LiveLines(terminal).show(FIGURES)
    assert terminal.screen() == [FIGURES]
    assert set(terminal.colours) - {"0"} == colours


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
