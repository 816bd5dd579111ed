"""`amicrawl sidecar`: many files over processes, none done twice, what is lost named, exit codes."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest
import warm_processes
from sidecar_material import ENGLISH, html, http, warc, write_packed
from typer.testing import CliRunner
from urls.vectors import CORPORA

from amicrawl.archive.index.collection.collecting import collect
from amicrawl.archive.index.collection.file import collect_file
from amicrawl.archive.index.collection.products import jobs_for
from amicrawl.archive.index.merging.sides import sidecar_fields
from amicrawl.cli import app
from amicrawl.errors import InputError, UsageError
from amicrawl.reading.records import read_records

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from typer.testing import Result

CORPUS = CORPORA / "warc"
PAGE = html(ENGLISH).encode()


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "amicrawl", "sidecar", *map(str, words)]
    return warm_processes.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_files_are_done_once_and_damage_is_named_each_time(tmp_path: Path) -> None:
    whole = write_packed(tmp_path / "whole.warc.gz", [warc(http(PAGE), number=n) for n in range(3)])
    cut = write_packed(tmp_path / "cut.warc.gz", [warc(http(PAGE), number=n) for n in range(2)])
    cut.write_bytes(cut.read_bytes()[:-30])
    out = tmp_path / "meta"

    first = run(whole, cut, "-o", out, "-j", "2", "--operator", "Ann")
    assert first.returncode == 5, first.stderr
    assert "whole.warc.meta.gz: 3 of 3 records" in first.stdout
    assert "cut.warc.meta.gz: 1 of " in first.stdout
    assert f"{cut}, byte " in first.stderr
    assert "Detectors: fido" in first.stderr
    made = out / "whole.warc.meta.gz"
    before = made.read_bytes()
    warcinfo, *metadata = read_records(made, on_broken=lambda broken: pytest.fail(str(broken)))
    assert b"operator: Ann\r\n" in warcinfo.block
    assert {"Identified-Payload-Type", "Charset-Detected"} <= set(sidecar_fields(metadata[0]))

    again = requested(whole, cut, "-o", out, "--operator", "Ann")
    assert again.exit_code == 5  # what was lost is lost still
    assert "2 files, 2 of them before: 4 metadata records of " in again.output
    assert made.read_bytes() == before

    write_packed(whole, [warc(http(PAGE), number=9)])
    jobs = jobs_for([tmp_path / "gone.warc.gz", whole], out, products=["sidecar"], in_directories=False)
    report = collect(jobs, processes=1)
    (failed,) = report.failed
    assert (failed.source.name, failed.offset) == ("gone.warc.gz", 0)
    assert "cannot be read" in failed.reason
    assert not jobs[0].path.exists()
    (changed,) = report.outcomes.values()
    assert changed.products["sidecar"].entries == 1
    assert made.read_bytes() != before
    assert not list(out.glob("*.open"))


def test_wrong_usage_and_missing_files_have_codes_of_their_own(tmp_path: Path) -> None:
    missing = requested(tmp_path / "none.warc.gz", "-o", tmp_path / "meta").exception
    assert isinstance(missing, InputError)
    assert "does not exist" in str(missing)
    source = write_packed(tmp_path / "x.warc.gz", [warc(http(PAGE))])
    wrong = requested(source, "-o", tmp_path / "meta", "--without", "nothing").exception
    assert isinstance(wrong, UsageError)
    assert "There is no detector nothing to leave out" in str(wrong)
    assert not (tmp_path / "meta").exists()


def requested(*words: str | Path) -> Result:
    """Return what the command ends with, run without a process of its own."""
    return CliRunner().invoke(app, ["sidecar", *map(str, words)])


@pytest.mark.skipif(not CORPUS.is_dir(), reason=f"needs the files of other archives in {CORPUS}")
def test_files_of_other_archives_go_through_and_every_loss_is_told(tmp_path: Path) -> None:
    (tmp_path / "done").mkdir()
    sources = [path for path in sorted(CORPUS.rglob("*")) if path.is_file() and path.suffix != ".jsonl"]
    for job in jobs_for(sources, tmp_path, products=["sidecar"], in_directories=False):
        outcome = collect_file(job, lambda _: None)
        assert outcome.records or outcome.lost
        assert not any("left out" in loss.reason or "detector" in loss.reason for loss in outcome.losses)
        for record in read_records(job.path, on_broken=lambda broken: pytest.fail(str(broken))):
            assert record.type in ("warcinfo", "metadata")
