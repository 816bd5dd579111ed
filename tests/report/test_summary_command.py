"""`amicrawl summary` from outside: what it prints, writes and ends with."""

from __future__ import annotations

import bz2
import gzip
import json
import random
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import warm_processes
from report.summary_lines import cdx11
from typer.testing import CliRunner

import amicrawl
from amicrawl.archive.report import counts_to_json
from amicrawl.cli import app
from amicrawl.errors import AmicrawlError, ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Command = Callable[..., "Done"]


class Done(NamedTuple):
    """What a command left behind."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture
def summary(tmp_path: Path) -> Command:
    """Run the command in this process: a new one takes two seconds to start."""

    def run(*arguments: str) -> Done:
        paths = [str(tmp_path / one) if (tmp_path / one).exists() else one for one in arguments]
        result = CliRunner().invoke(app, ["summary", *paths])
        if isinstance(result.exception, AmicrawlError):
            return Done(result.exception.exit_code, result.stdout, str(result.exception))
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return Done(result.exit_code, result.stdout, result.stderr)

    (tmp_path / "lines.cdx").write_text(LINES)
    return run


LINES = f"{cdx11()}\n{cdx11(key='org,example)/b', size='-')}\nno line\n"


def test_standard_input_becomes_text_that_says_what_was_skipped() -> None:
    command = [sys.executable, "-m", "amicrawl", "summary", "-"]
    done = warm_processes.run(
        command, capture_output=True, text=True, input=LINES, timeout=90, check=False
    )

    assert (done.returncode, done.stderr) == (ExitCode.DONE, "")
    assert " Total WARC Records Size  1.2 kB or more \n" in done.stdout
    assert " a number of columns that no layout has     1 \n" in done.stdout


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress])
def test_packed_standard_input_that_breaks_off_is_counted_up_to_there(
    packed: Callable[[bytes], bytes],
) -> None:
    lines = "".join(f"{cdx11(key=f'com,example)/{random.random()}')}\n" for _ in range(60_000)).encode()
    whole = packed(lines)
    command = [sys.executable, "-m", "amicrawl", "summary", "-"]
    done = warm_processes.run(
        command, capture_output=True, input=whole[: len(whole) * 3 // 4], timeout=90, check=False
    )
    assert done.returncode == ExitCode.DAMAGED, done.stderr
    assert b"-, byte " in done.stderr
    assert b"it cannot be unpacked any further" in done.stderr
    assert b" Total Captures in CDX " in done.stdout


def test_ctrl_c_ends_it_with_the_code_of_what_was_stopped() -> None:
    command = [sys.executable, "-m", "amicrawl", "summary", "-"]
    with warm_processes.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdin is not None
        # More than a pipe holds: when all of it has gone in, the command is reading.
        running.stdin.write(LINES.encode() * 20_000)
        running.send_signal(signal.SIGINT)
        _, told = running.communicate(timeout=90)

    assert running.returncode == ExitCode.STOPPED
    assert told.startswith(b"\namicrawl: Stopped. ")
    assert told.count(b"\n") == 2, "no traceback"


def test_a_summary_loads_nothing_that_it_can_do_without(tmp_path: Path) -> None:
    """Starting is most of a short run, and pandas, where it is installed, would be half of that."""
    lines, table = tmp_path / "lines.cdx", tmp_path / "table.parquet"
    lines.write_text(LINES)
    pq.write_table(
        pa.table(
            {
                "url_surtkey": ["com,a)/"],
                "fetch_time": pa.array([0], pa.timestamp("ms")),
                "fetch_status": pa.array([200], pa.int16()),
                "warc_record_length": pa.array([None], pa.int32()),
                "content_mime_type": pa.array([None], pa.string()),
            }
        ),
        table,
    )
    program = (
        "import sys; from amicrawl.cli.summary import counted_summary\n"
        "for path in sys.argv[1:]:\n"
        "    print(counted_summary([path]).counts.captures,"
        " *sorted({'duckdb', 'pandas', 'pyarrow.csv', 'pyarrow.dataset'} & {*sys.modules}))"
    )
    command = [sys.executable, "-c", program, str(lines), str(table)]

    done = warm_processes.run(command, capture_output=True, text=True, timeout=90, check=True)

    assert done.stdout.split("\n") == ["2", "1", ""]


def test_summaries_in_json_add_up_and_a_page_is_written_beside(summary: Command, tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.json").write_text(summary("--json", "lines.cdx").stdout)

    done = summary(
        "--json", "--html", str(tmp_path / "page.html"), "--overlap", "a.json", "a.json", "b.json"
    )

    whole = json.loads(done.stdout)
    assert done.returncode == ExitCode.DONE
    assert "skipped 2 lines" in done.stderr
    assert (whole["captures"], whole["tophosts"]) == (4, {"example.com": 2, "example.org": 2})
    assert whole["overlap"]["urls"]["both"] == {"value": 2, "error": 0}
    assert (tmp_path / "page.html").read_text("utf-8").startswith('<!DOCTYPE html>\n<html lang="en">')
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.json",
        "b.json",
        "lines.cdx",
        "page.html",
    ]


def test_the_modes_of_both_tools_print_what_they_print(summary: Command, tmp_path: Path) -> None:
    (tmp_path / "legend.cdx").write_text(f" CDX N b a m s k r M S V g\n{LINES}")
    text = summary("--compat", "cdx-summary", "lines.cdx")
    years = summary("--compat", "cdx-summarize", "--compact", "legend.cdx")

    assert text.stdout.startswith("\nCDX Overview\n ─")
    assert "skipped 1 line," in text.stderr
    assert years.stdout.startswith('example.com {"2012": {"n_html": 1, ')


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["gone.cdx"], ExitCode.INPUT, "gone.cdx cannot be read"),
        (["--from", "cdx12", "lines.cdx"], ExitCode.USAGE, "cdx12"),
        (["--compat", "wget", "lines.cdx"], ExitCode.USAGE, "cdx-summarize'"),
        (["--compat", "cdx-summarize", "--fold", "x", "lines.cdx"], ExitCode.USAGE, "'none'"),
        (["counted.json", "lines.cdx"], ExitCode.USAGE, "by the same rules. --compat sets them."),
        (["--html", "gone/page.html", "lines.cdx"], ExitCode.OUTPUT, "cannot be written"),
    ],
)
def test_what_cannot_be_done_ends_with_its_code_and_a_sentence(
    summary: Command, tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    of_tool = amicrawl.summary(tmp_path / "lines.cdx", rules="cdx-summary")
    (tmp_path / "counted.json").write_text(counts_to_json(of_tool.counts))
    done = summary(*arguments)

    assert done.returncode == code
    assert sentence in done.stderr


def test_a_file_that_breaks_off_ends_with_damaged_after_the_figures(
    summary: Command, tmp_path: Path
) -> None:
    whole = gzip.compress("".join(cdx11(key=f"com,example)/{n}") + "\n" for n in range(5000)).encode())
    (tmp_path / "broken.cdx.gz").write_bytes(whole[: len(whole) // 2])

    done = summary("broken.cdx.gz")

    assert done.returncode == ExitCode.DAMAGED
    assert "CDX Overview" in done.stdout
    assert "broken.cdx.gz, byte" in done.stderr


@pytest.mark.parametrize(
    "garbage", [b"no line\nnor this\n", b"\x00\x01\xff" * 5000 + b"\n", b"<html>\n"]
)
@pytest.mark.parametrize("options", [(), ("--json",), ("--from", "cdx11"), ("--compat", "cdx-summary")])
def test_a_file_without_one_capture_is_refused_and_named(
    summary: Command, tmp_path: Path, garbage: bytes, options: tuple[str, ...]
) -> None:
    (tmp_path / "garbage.txt").write_bytes(garbage)

    done = summary(*options, "garbage.txt")

    assert done.returncode == ExitCode.INPUT
    assert "garbage.txt: no line of it is a capture" in done.stderr
    assert done.stdout == ""


def test_garbage_beside_an_index_costs_the_code_and_not_the_figures(
    summary: Command, tmp_path: Path
) -> None:
    (tmp_path / "garbage.txt").write_bytes(b"no line\n")
    (tmp_path / "empty.cdx").touch()

    done = summary("lines.cdx", "garbage.txt", "empty.cdx")

    assert done.returncode == ExitCode.DAMAGED
    assert "garbage.txt: no line of it is a capture (1 skipped). Name a" in done.stderr
    assert "lines.cdx:" not in done.stderr
    assert "empty.cdx:" not in done.stderr
    assert summary("empty.cdx").returncode == ExitCode.DONE
