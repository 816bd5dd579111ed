"""A collection from archive files: everything made of one reading, whatever the files are like."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
import warm_processes
from archive_reading import TOOLS, check_sealed
from index.archive_files import gzip_member, http, parse_cdxj, unexpected, warc
from index.page_making import DATE, record, records, write_pages
from typer.testing import CliRunner
from warcio.archiveiterator import ArchiveIterator

from amicrawl.archive.index.collection.collecting import Collected, do_waiting
from amicrawl.archive.index.collection.file import FileOutcome, ReadProgress
from amicrawl.archive.index.collection.products import FileJob, LineMaker, SeenRecord, jobs_for
from amicrawl.archive.index.derivatives.file import LeftOutError, Maker
from amicrawl.archive.index.sidecar.detectors import Characteriser, Detectors
from amicrawl.archive.index.sidecar.file import MergedIndex, Sidecar
from amicrawl.archive.index.sidecar.media_type import Signatures
from amicrawl.archive.index.sidecar.subject import subject_of
from amicrawl.archive.workers import JobDone, JobProgress
from amicrawl.cli import app
from amicrawl.errors import AmicrawlError
from amicrawl.reading.records import read_records

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from typer.testing import Result

    from amicrawl.archive.index.collection.collecting import RunState
    from amicrawl.archive.index.collection.products import Product
    from amicrawl.archive.index.sidecar.findings import TypeIdentity

    Made = tuple[Path, Result]

ALONE = """
import sys
from pathlib import Path
from amicrawl.archive.index.collection.collecting import collect
from amicrawl.archive.index.collection.products import jobs_for
source, out, products = sys.argv[1:]
sources = sorted(Path(source).iterdir())
jobs = jobs_for(sources, Path(out), products=products.split(","))
collected = collect(jobs, processes=1)
print(*(f"{failed.source.name}: {failed.reason}" for failed in collected.failed), sep="\\n")
"""
"""The same without the command around it, whose imports every process would go through."""


def run(*arguments: str | Path) -> Result:
    """Run the command in this process; its workers are processes of their own all the same."""
    return CliRunner().invoke(app, ["collection", *map(str, arguments)])


def report(out: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((out / "report.json").read_bytes())
    return told


def products(out: Path) -> dict[str, tuple[int, int]]:
    """Return inode and size of every product by name: what is made again has another inode."""
    files = [path for kind in ("cdxj", "meta", "merged", "wat", "wet") for path in out.glob(f"{kind}/*")]
    return {str(path.relative_to(out)): (path.stat().st_ino, path.stat().st_size) for path in files}


def pages(number: int, *, of: int = 3) -> dict[str, bytes]:
    return {
        f"http://site{number}.example/{page}": b"<title>%d</title><p>The text of page %d." % (page, page)
        for page in range(of)
    }


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("sources")
    for number in range(3):
        write_pages(directory / f"{number}.warc.gz", pages(number))
    write_pages(directory / "plain.warc", pages(9))
    whole = (directory / "0.warc.gz").read_bytes()
    (directory / "cut.warc.gz").write_bytes(whole[:-20])
    (directory / "text.warc.gz").write_bytes(gzip.compress(b"no archive at all"))
    return directory


@pytest.fixture(scope="module")
def made(sources: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    out = tmp_path_factory.mktemp("made") / "collection"
    return out, run(sources, "-o", out, "-j", "2")


def test_what_is_damaged_is_named_and_the_rest_is_made(made: Made) -> None:
    out, done = made
    assert done.exit_code == 5, done.stderr
    told = report(out)
    assert told["files"] == told["made"] == 6
    assert told["damaged"] == 2
    assert told["failed"] == 0
    lost = {Path(loss["file"]).name: loss for loss in told["losses"]}
    assert set(lost) == {"cut.warc.gz", "text.warc.gz"}
    assert lost["cut.warc.gz"]["kept"] == "6 records"
    assert lost["cut.warc.gz"]["listed"][0]["offset"] > 0
    assert lost["text.warc.gz"]["kept"] == "0 records"
    text = (out / "report.txt").read_text()
    assert text.strip() == done.stdout.strip()
    assert text.startswith("6 files: 6 done, 0 done before, 2 damaged, 0 failed; ")
    assert "table: 15 lines, 15 rows, 0 rejects, 1 file\n" in text
    assert done.stderr.startswith("Detectors: fido ")
    assert "cut.warc.gz, byte " in text


def test_every_file_has_every_product_and_all_are_whole(made: Made) -> None:
    out, _ = made
    names = {"0.warc", "1.warc", "2.warc", "plain.warc", "cut.warc", "text.warc"}
    endings = {
        "cdxj": ".cdxj",
        "wat": ".wat.gz",
        "wet": ".wet.gz",
        "meta": ".meta.gz",
        "merged": ".cdxj",
    }
    for kind, ending in endings.items():
        assert {path.name for path in (out / kind).iterdir()} == {name + ending for name in names}, kind
    check_sealed(out / "wat" / "cut.warc.wat.gz")
    check_sealed(out / "wet" / "0.warc.wet.gz")
    assert not list(out.rglob("*.open"))
    totals = report(out)["products"]
    assert totals["wat"]["entries"] == sum(len(records(path)) - 1 for path in out.glob("wat/*"))
    assert totals["cdxj"]["entries"] == sum(
        path.read_bytes().count(b"\n") for path in out.glob("cdxj/*")
    )


def test_index_lines_are_in_byte_order_and_lead_to_their_records(made: Made, sources: Path) -> None:
    out, _ = made
    lines = (out / "cdxj" / "1.warc.cdxj").read_bytes().splitlines(keepends=True)
    assert lines == sorted(lines)
    assert len(lines) == 3
    for line in lines:
        fields = json.loads(line.split(b" ", 2)[2])
        raw = (sources / fields["filename"]).read_bytes()
        member = raw[int(fields["offset"]) :][: int(fields["length"])]
        assert f"WARC-Target-URI: {fields['url']}\r\n".encode() in gzip.decompress(member)


def test_the_derivatives_are_those_of_the_single_commands(
    made: Made, sources: Path, tmp_path: Path
) -> None:
    out, _ = made
    for kind in ("wat", "wet"):
        assert (
            CliRunner().invoke(app, [kind, str(sources / "1.warc.gz"), "-o", str(tmp_path)]).exit_code
            == 0
        )
        ours, single = (records(where / f"1.warc.{kind}.gz") for where in (out / kind, tmp_path))
        assert [block for _, block in ours[1:]] == [block for _, block in single[1:]]


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("http://bücher.example/ü?q=é", "http://bücher.example/ü?q=é"),
        ("http://a.example/ü b\x1b", "http://a.example/ü%20b%1B"),
        ("http://a.example/%C3%BC", "http://a.example/%C3%BC"),
        ("<http://a.example/ü>", "http://a.example/ü"),
    ],
)
def test_a_record_has_one_url_in_all_products(tmp_path: Path, written: str, url: str) -> None:
    """As the source has it, so that a text is found by the URL of its line; warcio writes it so."""
    (tmp_path / "a.warc").write_bytes(
        warc("response", written, http(b"A page", Content_Type="text/html"))
    )
    out = tmp_path / "out"
    assert run(tmp_path / "a.warc", "-o", out, "--products", "cdxj,sidecar,wat,wet").exit_code == 0
    line = parse_cdxj((out / "cdxj" / "a.warc.cdxj").read_bytes())
    assert line.fields["url"] == url
    for product in ("meta/a.warc.meta.gz", "wat/a.warc.wat.gz", "wet/a.warc.wet.gz"):
        with (out / product).open("rb") as stream:
            _, made_of = (each.rec_headers for each in ArchiveIterator(stream))
            assert made_of.get_header("WARC-Target-URI") == url, product


def test_no_character_of_a_url_ends_its_field(tmp_path: Path) -> None:
    url = "http://a.example/\u2028x\u00a0\u0085\u202e" + "ü" * 40_000
    (tmp_path / "a.warc").write_bytes(warc("response", url, http(b"A page", Content_Type="text/html")))
    assert run(tmp_path / "a.warc", "-o", tmp_path, "--products", "wet").exit_code == 0
    with (tmp_path / "wet" / "a.warc.wet.gz").open("rb") as stream:
        _, made_of = (each.rec_headers for each in ArchiveIterator(stream))
        found = made_of.get_header("WARC-Target-URI")
    assert found.startswith("http://a.example/%E2%80%A8x%C2%A0%C2%85%E2%80%AEüü")
    assert len(found.encode()) <= 30_000


def test_the_merged_index_is_that_of_merging_the_two(made: Made, tmp_path: Path) -> None:
    out, _ = made
    done = CliRunner().invoke(app, ["merge", str(out / "cdxj"), str(out / "meta"), "-o", str(tmp_path)])
    assert done.exit_code == 0, done.output
    for path in (out / "merged").iterdir():
        merged = (tmp_path / path.name).read_bytes()
        assert path.read_bytes() == merged
    assert b"mime-detected" in (out / "merged" / "1.warc.cdxj").read_bytes()


def test_the_index_names_a_file_by_its_path_below_the_root_and_elsewhere_by_its_name() -> None:
    sources = [Path("/a/b/c/x.warc.gz"), Path("/other/y.warc.gz")]
    named = [
        job.filename for job in jobs_for(sources, Path("/out"), products=["cdxj"], root=Path("/a/b"))
    ]
    assert named == ["c/x.warc.gz", "y.warc.gz"]


def test_what_is_done_is_not_done_again(sources: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    source = tmp_path / "x.warc.gz"
    source.write_bytes((sources / "1.warc.gz").read_bytes())
    few = ("-o", out, "-j", "1", "--products")
    assert run(source, *few, "cdxj,wet").exit_code == 0
    first = products(out)
    assert run(source, *few, "cdxj").exit_code == 0
    assert products(out) == first
    assert report(out)["made_before"] == 1

    assert run(source, *few, "cdxj,wat").exit_code == 0
    second = products(out)
    assert second.items() > first.items(), "what is requested besides is made besides"

    (out / "wat" / "x.warc.wat.gz").write_bytes(b"spoilt")
    assert run(source, *few, "cdxj,wat,wet").exit_code == 0
    third = products(out)
    assert third.items() > first.items()
    check_sealed(out / "wat" / "x.warc.wat.gz")

    source.write_bytes((sources / "2.warc.gz").read_bytes())
    assert run(source, *few, "cdxj").exit_code == 0
    assert set(products(out)) == {"cdxj/x.warc.cdxj"}, "what was made of the old file is gone"
    assert b"site2" in (out / "cdxj" / "x.warc.cdxj").read_bytes()

    index, size = out / "cdxj" / "x.warc.cdxj", source.stat().st_size
    lines = index.read_bytes().splitlines()
    source.write_bytes(source.read_bytes()[: size // 2].ljust(size, b"\0"))
    assert run(source, *few, "cdxj").exit_code == 5
    assert len(index.read_bytes().splitlines()) < len(lines), "changed at equal size, it is read again"
    source.write_bytes((sources / "2.warc.gz").read_bytes())

    (out / "done" / "x.warc.json").write_bytes(b'{"version": 1, "products": [[[')
    assert run(source, *few, "cdxj,wat").exit_code == 0
    assert len(products(out)) == 2


def test_a_collection_that_is_killed_again_and_again_comes_out_the_same(tmp_path: Path) -> None:
    source = tmp_path / "sources"
    source.mkdir()
    for number in range(4):
        write_pages(source / f"{number}.warc.gz", pages(number, of=150))
    requested = "cdxj,wat,wet"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(source, "-o", whole, "-j", "1", "--products", requested).exit_code == 0
    deaths = 0
    for grace in (0.0, 0.1, 0.02):
        process = subprocess.Popen([sys.executable, "-c", ALONE, source, killed, requested])
        while process.poll() is None:
            if list(killed.glob("*/*.open")):
                time.sleep(grace)
                process.send_signal(signal.SIGKILL)
                break
            time.sleep(0.002)
        deaths += process.wait() == -signal.SIGKILL
        for path in killed.glob("w*/*.gz"):
            check_gzip(path)
    assert deaths
    done = run(source, "-o", killed, "-j", "1", "--products", requested)
    assert done.exit_code == 0, done.output
    assert not list(killed.rglob("*.open"))
    for path in whole.glob("cdxj/*"):
        assert (killed / "cdxj" / path.name).read_bytes() == path.read_bytes()
    for path in [*whole.glob("wat/*"), *whole.glob("wet/*")]:
        ours = records(killed / path.parent.name / path.name)
        assert [block for _, block in ours[1:]] == [block for _, block in records(path)[1:]]


def check_gzip(path: Path) -> None:
    """Fail unless *path* is whole; what a new run has just removed counts as that."""
    with suppress(FileNotFoundError):
        gzip.decompress(path.read_bytes())


def test_a_worker_that_is_killed_costs_its_file_only(tmp_path: Path) -> None:
    source = tmp_path / "sources"
    source.mkdir()
    write_pages(source / "0.warc.gz", pages(0))
    large = {f"http://b.example/{number}": b"<p>x" * 20_000 for number in range(12)}
    write_pages(source / "1.warc.gz", large)
    write_pages(source / "2.warc.gz", pages(2))
    out = tmp_path / "out"
    process = subprocess.Popen(
        [sys.executable, "-c", ALONE, source, out, "wat,wet"], stdout=subprocess.PIPE, text=True
    )
    while not (worker := _worker_at(process.pid, out / "wat" / "1.warc.wat.gz.open")):
        assert process.poll() is None
        time.sleep(0.002)
    os.kill(worker, signal.SIGKILL)
    told, _ = process.communicate()
    assert told == "1.warc.gz: its process was ended by SIGKILL\n"
    assert {path.name for path in out.glob("wat/*.gz")} == {"0.warc.wat.gz", "2.warc.wat.gz"}
    assert run(source, "-o", out, "-j", "1", "--products", "wat,wet").exit_code == 0
    assert report(out)["made_before"] == 2
    assert {path.name for path in out.glob("wat/*")} == {f"{number}.warc.wat.gz" for number in range(3)}


def _worker_at(parent: int, path: Path) -> int:
    """Return the process below *parent* that has *path* open; 0 if there is none."""
    for directory in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            if int((directory / "stat").read_text().rpartition(")")[2].split()[1]) == parent and any(
                link.readlink() == path for link in (directory / "fd").iterdir()
            ):
                return int(directory.name)
    return 0


def test_ctrl_c_stops_and_says_how_to_go_on(tmp_path: Path) -> None:
    source = tmp_path / "x.warc.gz"
    write_pages(source, pages(0, of=1500))
    command = [
        str(TOOLS / "amicrawl"),
        "collection",
        str(source),
        "-o",
        str(tmp_path / "out"),
        "--products",
        "wat",
    ]
    process = warm_processes.Popen(command, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "out").glob("wat/*.open")):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(signal.SIGINT)
    _, told = process.communicate()
    assert process.returncode == 6, told
    assert "Run the same command again" in told
    assert not (tmp_path / "out/wat/x.warc.wat.gz").exists()


def test_a_record_without_a_date_is_told_once(tmp_path: Path) -> None:
    block = b"HTTP/1.1 200 OK\r\n\r\nx"
    undated = record(
        "response",
        1,
        block,
        {"WARC-Target-URI": "http://a.example/", "Content-Type": "application/http"},
    )
    source = tmp_path / "x.warc"
    source.write_bytes(undated.replace(b"WARC-Date: " + DATE.encode() + b"\r\n", b""))
    assert run(source, "-o", tmp_path, "-j", "1", "--products", "cdxj,merged").exit_code == 5
    losses = report(tmp_path)["losses"]
    assert [loss["listed"] for loss in losses] == [
        [{"offset": 0, "reason": "a record has no date, so it has no line"}]
    ]

    # That it has none is found out by making the index, and not by making others besides.
    assert run(source, "-o", tmp_path, "-j", "1", "--products", "cdxj,wat").exit_code == 5
    assert report(tmp_path)["products"]["wat"]["entries"] == 1
    assert report(tmp_path)["losses"] == losses

    (tmp_path / "elsewhere").mkdir()
    moved = source.rename(tmp_path / "elsewhere" / "x.warc")
    assert run(moved, "-o", tmp_path, "-j", "1", "--products", "cdxj").exit_code == 5
    told = report(tmp_path)
    assert told["made_before"] == 1
    assert told["losses"] == [{**losses[0], "file": str(moved)}]


@pytest.mark.parametrize("command", ["wat", "wet", "collection"])
def test_a_file_without_any_record_is_a_loss(tmp_path: Path, command: str) -> None:
    source, out = tmp_path / "x.warc", tmp_path / "out"
    source.touch()
    only = ["-j", "1", "--products", "wat"] if command == "collection" else []
    done = CliRunner().invoke(app, [command, str(source), "-o", str(out), *only])
    assert done.exit_code == 5, done.output
    assert f"{source}, byte 0: no record was found in it\n" in done.output
    (made,) = out.rglob("*.gz")
    assert len(records(made)) == 1, "a file that is made of nothing is whole too"


def test_a_detector_that_fails_is_told_and_what_others_find_is_kept(tmp_path: Path) -> None:
    source = tmp_path / "x.warc"
    write_pages(source, pages(0, of=1))
    job = FileJob(source, "x.warc", tmp_path, ("sidecar", "merged"), source.name)
    detectors = Characteriser(Detectors(types=(_Failing(), Signatures())))
    sidecar = Sidecar(tmp_path / "x.meta.gz", job, Maker())
    merged = MergedIndex(tmp_path / "x.cdxj", job, Maker())
    for one in read_records(source, on_broken=unexpected):
        seen = SeenRecord(one, None, LineMaker(job))
        subject = subject_of(one)
        seen.findings = None if subject is None else detectors.findings(subject)
        told = "a detector failed at this record: failing" if one.type == "response" else None
        for product in (sidecar, merged):
            assert _loss_at(product, seen) == told
    assert (sidecar.seal()[0], merged.seal()[0]) == (1, 1)
    _, (_, block) = records(tmp_path / "x.meta.gz")
    assert block.startswith(b'Identified-Payload-Type: {"amicrawl": "text/html"}\n')
    assert block.endswith(b'\nDetection-Error: {"failing": "RuntimeError"}')


class _Failing:
    """A detector that no payload is right for."""

    name = "failing"
    version = "1"

    def identify(self, content: bytes, *, is_whole: bool) -> TypeIdentity:
        raise RuntimeError("of no use to anybody")


def _loss_at(product: Product, seen: SeenRecord) -> str | None:
    try:
        product.add(seen)
    except LeftOutError as error:
        return str(error)
    return None


def test_files_of_one_name_do_not_share_products(tmp_path: Path) -> None:
    for number, name in enumerate(("a/x.warc.gz", "b/x.warc.gz", "a/x.warc", "a/y.warc")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        write_pages(tmp_path / name, pages(number))
    out = tmp_path / "out"
    done = run(
        tmp_path / "a",
        tmp_path / "b",
        "-o",
        out,
        "-j",
        "1",
        "--products",
        "cdxj",
        "--dir-root",
        tmp_path,
    )
    assert done.exit_code == 0, done.stderr
    files = sorted(out.glob("cdxj/*"))
    assert len(files) == 4
    lines = [line for path in files for line in path.read_bytes().splitlines()]
    named = {json.loads(line.split(b" ", 2)[2])["filename"] for line in lines}
    assert named == {"a/x.warc.gz", "b/x.warc.gz", "a/x.warc", "a/y.warc"}
    assert report(out)["same_names"] == {}
    alike = run(tmp_path / "a", tmp_path / "b", "-o", out, "-j", "1", "--products", "cdxj")
    assert report(out)["same_names"] == {"x.warc.gz": 2}
    assert "2 files are called x.warc.gz in the index: --dir-root DIR" in alike.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["nowhere.warc.gz", "-o", "out"], 3, "nowhere.warc.gz does not exist."),
        (["empty", "-o", "out"], 3, "empty: no file that ends in .warc, .warc.gz, "),
        (
            ["a.warc", "-o", "out", "--products", "cdxj,toast"],
            2,
            "There is no product toast. Choose from cdxj,",
        ),
        (["a.warc", "-o", "a.warc"], 4, "a.warc cannot be created: File exists"),
    ],
)
def test_what_cannot_be_followed_is_said(
    tmp_path: Path, arguments: list[str], code: int, sentence: str
) -> None:
    write_pages(tmp_path / "a.warc", pages(0))
    (tmp_path / "empty").mkdir()
    done = run(*(tmp_path / name if name in ("a.warc", "empty", "out") else name for name in arguments))
    assert isinstance(done.exception, AmicrawlError)
    assert done.exception.exit_code == code
    assert sentence in str(done.exception)


def test_why_lines_are_not_in_table_or_summary_is_in_the_report(tmp_path: Path) -> None:
    source, out = tmp_path / "x.warc.gz", tmp_path / "out"
    source.write_bytes(gzip_member(warc("response", block=http(), WARC_Date="2024-13-01T00:00:00Z")))
    done = run(source, "-o", out, "-j", "1", "--products", "cdxj,table,summary")
    assert done.exit_code == 5
    reason = "the timestamp is not a moment of the calendar"
    assert done.stdout.splitlines() == [
        "1 file: 1 done, 0 done before, 0 damaged, 0 failed; 1 record",
        f"  cdxj: 1 entry, {(out / 'cdxj/x.warc.cdxj').stat().st_size} bytes",
        "  table: 1 line, 0 rows, 1 reject, 0 files",
        f"    1 line in table.rejects.txt: {reason}",
        "  summary: 0 captures, 1 skipped",
        "    1 line not in the summary: a time that is not a date",
    ]
    assert not [*out.glob("*.open")]
    mark = out / "done/steps/table.json"
    for spoilt in ("null", "[]", "3", '{"rows": "x"}', '{"rows_by_reason": 3}', '{"damaged": 7}'):
        mark.write_text(json.dumps({**json.loads(mark.read_text()), "said": json.loads(spoilt)}))
        again = run(source, "-o", out, "-j", "1", "--products", "cdxj,table,summary")
        assert (again.exit_code, again.exception.__class__) == (5, SystemExit), spoilt
        assert reason in again.stdout
    mark.write_text("[" * 100_000)
    again = run(source, "-o", out, "-j", "1", "--products", "cdxj,table,summary")
    assert (again.exit_code, again.exception.__class__) == (5, SystemExit)


@pytest.mark.parametrize("scheme", ["", "file://"])
def test_files_of_earlier_runs_that_are_not_named_are_counted(tmp_path: Path, scheme: str) -> None:
    out = tmp_path / "out"
    for name in ("x.warc.gz", "y.warc.gz"):
        write_pages(tmp_path / name, pages(0))
    arguments = ("-o", f"{scheme}{out}", "-j", "1", "--products", "cdxj,table")
    alone = run(tmp_path / "x.warc.gz", *arguments)
    assert (report(out)["not_named"], "earlier runs" in alone.stdout) == (0, False)
    other = run(tmp_path / "y.warc.gz", *arguments)
    assert report(out)["not_named"] == 1
    assert "\n1 file of earlier runs not named in this one: " in other.stdout
    both = run(tmp_path / "x.warc.gz", tmp_path / "y.warc.gz", *arguments)
    assert (report(out)["not_named"], "earlier runs" in both.stdout) == (0, False)


def test_a_file_does_not_take_the_place_of_another_with_its_name(tmp_path: Path) -> None:
    first, second, moved = (tmp_path / name / "x.warc.gz" for name in ("a", "b", "c"))
    for number, path in enumerate((first, second)):
        path.parent.mkdir()
        write_pages(path, pages(number, of=3 + number))
    out = tmp_path / "out"
    requested = ("-o", out, "-j", "1", "--products", "cdxj")
    assert run(first, *requested).exit_code == 0
    index = (out / "cdxj" / "x.warc.cdxj").read_bytes()
    refused = run(second, *requested)
    assert isinstance(refused.exception, AmicrawlError)
    assert str(refused.exception).startswith(f"{second} has the name of {first}, and would take the ")
    assert (out / "cdxj" / "x.warc.cdxj").read_bytes() == index
    write_pages(first, pages(0, of=5))
    assert run(first, *requested).exit_code == 0, "a file that has changed is done again"
    moved.parent.mkdir()
    first.rename(moved)
    write_pages(moved, pages(0, of=6))
    assert run(moved, *requested).exit_code == 0, "so is one that was moved"
    assert report(out)["products"]["cdxj"]["entries"] == 6
    (out / "done" / "x.warc.json").unlink()
    assert run(second, *requested).exit_code == 0
    assert report(out)["products"]["cdxj"]["entries"] == 4


def test_a_step_that_fails_is_told_and_taken_again(tmp_path: Path) -> None:
    source, out = tmp_path / "x.warc.gz", tmp_path / "out"
    write_pages(source, pages(0))
    (out / "summary.json").mkdir(parents=True)
    (out / "summary.json" / "in the way").touch()
    requested = ("-o", out, "-j", "1", "--products", "cdxj,table,summary")
    done = run(source, *requested)
    assert "Detectors" not in done.stderr
    assert isinstance(done.exception, AmicrawlError)
    assert report(out)["made"] == 1, "what was made of the files is told before the steps"
    (out / "summary.json" / "in the way").unlink()
    (out / "summary.json").rmdir()
    assert run(source, *requested).exit_code == 0
    table = {path: path.stat().st_ino for path in (out / "table").rglob("*.parquet")}
    assert run(source, *requested).exit_code == 0
    assert {path: path.stat().st_ino for path in (out / "table").rglob("*.parquet")} == table
    assert json.loads((out / "summary.json").read_bytes())["captures"] == 3
    index = out / "cdxj" / "x.warc.cdxj"
    index.write_bytes(index.read_bytes().replace(b'"status": "200"', b'"status": "404"'))
    assert run(source, *requested).exit_code == 0
    rows = pq.read_table(out / "table", columns=["fetch_status"])["fetch_status"].to_pylist()
    assert rows == [404] * 3, "the steps are taken again for an index changed at equal size"
    write_pages(source, pages(0, of=5))
    assert run(source, *requested).exit_code == 0
    assert json.loads((out / "summary.json").read_bytes())["captures"] == 5
    assert report(out)["steps"]["table"]["rows"] == 5


@pytest.mark.parametrize("step", ["table", "summary"])
def test_a_step_that_fails_leaves_no_mark_of_an_earlier_one(tmp_path: Path, step: str) -> None:
    out = tmp_path / "out"
    for number, name in enumerate(("x.warc.gz", "y.warc.gz")):
        write_pages(tmp_path / name, pages(number))
    requested = ("-o", out, "-j", "1", "--products", f"cdxj,{step}")
    assert run(tmp_path / "x.warc.gz", *requested).exit_code == 0
    in_the_way = out / "done" / "steps" / f"{step}.json.open"
    in_the_way.mkdir()
    failed = run(tmp_path, *requested)
    assert isinstance(failed.exception, AmicrawlError), "the result is there, and its mark is not"
    in_the_way.rmdir()
    assert run(tmp_path / "x.warc.gz", *requested).exit_code == 0
    if step == "table":
        assert report(out)["steps"][step]["rows"] == pq.read_table(out / "table").num_rows == 3
    else:
        made = json.loads((out / "summary.json").read_bytes())
        assert report(out)["steps"][step]["captures"] == made["captures"] == 3


def test_a_patience_that_no_clock_can_count_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "-o", tmp_path / "out", "--patience", "99999999999999")
    assert (done.exit_code, done.exception.__class__) == (2, SystemExit)


def test_progress_costs_no_more_per_file_however_many_there_are(tmp_path: Path) -> None:
    def shown(files: int) -> tuple[list[RunState], float]:
        jobs = [FileJob(Path(f"{n}"), f"{n}", tmp_path, ("cdxj",), f"{n}") for n in range(files)]
        states: list[RunState] = []

        def run(waiting: Sequence[FileJob]) -> Generator[JobProgress[Any] | JobDone[Any, FileOutcome]]:
            for job in waiting:
                yield JobProgress(job, ReadProgress(0, 1))
                yield JobProgress(job, ReadProgress(0, 2))
                yield JobDone(job, FileOutcome(str(job.source), 0, 0, records=3, lost=0))

        began = time.process_time()
        do_waiting(run, jobs, Collected(), show=states.append, came=lambda *_: None)
        return states, time.process_time() - began

    few, took = shown(500)
    assert [state.records for state in few[:6]] == [0, 1, 2, 3, 4, 5]
    assert (few[-1].records, few[-1].done) == (1500, 500)
    many, took_many = shown(5000)
    assert many[-1].records == 15_000
    assert took_many < 30 * max(took, 0.01)
