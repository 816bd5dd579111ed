"""A path that cannot be read: a name too long, a directory that is not ours, a pipe without a writer."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
import warm_processes
from loopback import environment

from amicrawl.errors import ExitCode

if TYPE_CHECKING:
    from pathlib import Path

NAME = "x" * 300


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("crawl", "http://127.0.0.1:9/", "-o", NAME), ExitCode.OUTPUT),
        (("crawl", f"{NAME}.txt", "-o", "out"), ExitCode.INPUT),
        (("recrawl", NAME), ExitCode.INPUT),
        (("report", NAME), ExitCode.INPUT),
        (("inspect", NAME), ExitCode.INPUT),
        (("repair", NAME), ExitCode.INPUT),
        (("explain", "http://a.example/", "--dir", NAME), ExitCode.INPUT),
        (("index", f"{NAME}.warc.gz"), ExitCode.INPUT),
    ],
)
def test_a_path_that_cannot_be_looked_at_is_said_in_one_sentence(
    tmp_path: Path, arguments: tuple[str, ...], code: ExitCode
) -> None:
    line = [sys.executable, "-m", "amicrawl", *arguments]
    done = warm_processes.run(
        line, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "File name too long" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "index a.warc.gz -o out",
        "sidecar a.warc.gz -o out",
        "collection a.warc.gz -o out",
        "wat a.warc.gz -o out",
        "wet a.warc.gz -o out",
        "wacz a.warc.gz -o out.wacz",
        "inspect a.warc.gz",
        "inspect captures.parquet",
        "inspect captures-00000.open",
        "merge a.cdxj a.warc.meta.gz -o out.cdxj",
        "table a.cdxj -o out",
        "query captures.parquet captures_failures",
        "summary a.warc.gz",
        "summary a.cdxj",
        "summary captures.parquet",
        "summary --quick captures.parquet",
        "cdx query a.cdxj --url http://a.example/",
        "cdx query . --url http://a.example/",
        "cdx query a.idx --url http://a.example/",
        "cdx zipnum a.cdxj -o out",
        "frontier verify a.meguri",
    ],
)
def test_a_pipe_is_refused_by_name_and_not_waited_for(tmp_path: Path, arguments: str) -> None:
    for name in ("warc.gz", "cdxj", "warc.meta.gz", "meguri", "idx"):
        os.mkfifo(tmp_path / f"a.{name}")
    for name in ("captures.parquet", "captures-00000.open"):
        os.mkfifo(tmp_path / name)
    done = warm_processes.run(
        [sys.executable, "-m", "amicrawl", *arguments.split()],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    # A step of many that loses a file goes on to the others.
    assert done.returncode in {ExitCode.INPUT, ExitCode.DAMAGED}, done.stderr
    assert "is a pipe, and may be read more than once" in done.stderr + done.stdout
    assert "Error" not in done.stderr + done.stdout
