"""A path of which nobody can say what is there: a name too long, a directory that is not ours."""

from __future__ import annotations

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
