"""One collection of other projects' archive files: each is done or named, and no loss is silent.

All of them go through one run of the command, as somebody would start it who has a heap of files and
does not know what state they are in. What is true of a file is in `expectations.jsonl` beside it; what
was made of it is read by warcio, fastwarc and pyarrow.
"""

from __future__ import annotations

import gzip
import io
import json
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow.parquet as pq
import pytest
import warm_processes
from archive_reading import TOOLS
from fastwarc.warc import ArchiveIterator as FastArchiveIterator
from index.archive_files import parse_cdxj
from typer.testing import CliRunner
from urls.vectors import CORPORA
from warcio.archiveiterator import ArchiveIterator

from amicrawl.archive.index.derivatives.page import page_of
from amicrawl.archive.index.sidecar.subject import subject_of
from amicrawl.cli import app
from amicrawl.reading.records import Record, read_records
from amicrawl.record import block_digest

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator

    from amicrawl.archive.lines.cdxj import CdxjLine

WARCS = CORPORA / "warc"
LISTED = WARCS / "expectations.jsonl"

if not LISTED.is_file():
    pytest.skip(f"the collection of archive files is not here: {WARCS}", allow_module_level=True)

CASES: list[dict[str, Any]] = [json.loads(line) for line in LISTED.read_text().splitlines()]
WARC_CASES = [case for case in CASES if case.get("format") != "gzip"]
SOURCES = {Path(case["file"]).name: WARCS / case["file"] for case in CASES}

TELLS_OF_NOTHING = {"warcio/example-digest.warc", "gowarc-nlnwa/wrong-block-digest.warc"}
"""Sound records with a digest in them that is wrong: digests are not checked."""
TOLD_THOUGH_NOT_CALLED_INVALID = {
    # A block that is shorter or longer than its header says, and line ends that are missing.
    "gowarc-nlnwa/valid-response-record.warc": None,
    "warcio/bad.arc": [0, 134, 262],
    "warcio/example-space-in-url.arc": [151],
    "webarchive-commons/html/link-extraction-test.warc": [1690],
    # Of no use to replay: all records in one gzip member.
    "gowarc-internetarchive/good.warc.gz.open": [0],
    "gowarc-internetarchive/skip-non-open.warc.gz": [0],
    # Nothing in it.
    "gowarc-internetarchive/empty.warc.gz.open": [0],
}
FOUND_AT = {
    "gowarc-internetarchive/corrupted-mid-record.warc.gz.open": 1219,
    "gowarc-internetarchive/corrupted-trailing-bytes.warc.gz.open": 2362,
    "gowarc-nlnwa/trailing-garbage.warc": 386,
    "warcio/example-trunc.warc": 1197,
}
"""Where the damage begins, as the projects say that the files come from."""
PRODUCTS = {"meta": "sidecar", "wat": "wat", "wet": "wet"}
NOT_SOUGHT = "records cannot be sought"


class Made(NamedTuple):
    """What the command left."""

    out: Path
    done: subprocess.CompletedProcess[str]
    report: dict[str, Any]

    @property
    def losses(self) -> dict[str, list[dict[str, Any]]]:
        """What was lost of each file, by the name that the corpus has for it."""
        return {
            str(Path(loss["file"]).relative_to(WARCS)): loss["listed"] for loss in self.report["losses"]
        }

    def mark(self, name: str) -> dict[str, Any]:
        """Return what is written down of the file called *name*."""
        (found,) = (
            mark
            for mark in map(read_object, (self.out / "done").glob("*.json"))
            if Path(mark["source"]).name == name
        )
        return found

    def lines(self, product: str) -> Iterator[tuple[bytes, CdxjLine]]:
        """Yield the lines of an index, and what they say."""
        for path in sorted((self.out / product).iterdir()):
            for line in path.read_bytes().splitlines(keepends=True):
                yield line, parse_cdxj(line)


def read_object(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_bytes())
    return found


def collect_everything(out: Path) -> Made:
    sources = map(str, SOURCES.values())
    command = [str(TOOLS / "amicrawl"), "collection", *sources, "-o", str(out), "-j", "2"]
    done = warm_processes.run(command, capture_output=True, text=True, check=False, timeout=150)
    return Made(out, done, read_object(out / "report.json"))


def state_of(out: Path) -> dict[str, tuple[int, int]]:
    """Return inode and time of change of what was made: what is made again has others."""
    reports = ("report.json", "report.txt")
    return {
        str(path.relative_to(out)): (path.stat().st_ino, path.stat().st_mtime_ns)
        for path in out.rglob("*")
        if path.is_file() and path.name not in reports
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return collect_everything(tmp_path_factory.mktemp("foreign") / "collection")


def test_the_names_in_the_corpus_tell_its_files_apart() -> None:
    assert len(SOURCES) == len(CASES)


def test_every_file_is_done_and_the_exit_code_says_that_some_are_damaged(made: Made) -> None:
    assert made.done.returncode == 5, made.done.stderr
    assert "Traceback" not in made.done.stderr
    assert made.report["files"] == made.report["made"] == len(CASES)
    assert (made.report["failed"], made.report["failures"]) == (0, [])
    marks = [read_object(path) for path in (made.out / "done").glob("*.json")]
    assert sorted(mark["source"] for mark in marks) == sorted(map(str, SOURCES.values()))
    assert not list(made.out.rglob("*.open"))


def test_what_people_are_told_names_every_loss(made: Made) -> None:
    written = (made.out / "report.txt").read_text()
    for file, listed in made.losses.items():
        for loss in listed:
            assert f"damaged: {WARCS / file}, byte {loss['offset']}: {loss['reason']}\n" in written
    shown = made.done.stdout.splitlines()
    assert written.startswith("\n".join(shown[:-1]))
    assert shown[-1].endswith(f"more lines: {made.out / 'report.txt'}")
    damaged = len(made.losses)
    assert f"{len(CASES)} files: {len(CASES)} done, 0 done before, {damaged} damaged" in shown[0]


def test_what_is_invalid_is_named_and_what_is_valid_is_not(made: Made) -> None:
    for case in WARC_CASES:
        file, listed = case["file"], made.losses.get(case["file"], [])
        if case["valid"] is True:
            assert not listed, file
        elif case["valid"] is False:
            assert bool(listed) is (file not in TELLS_OF_NOTHING), file
    told = {case["file"] for case in WARC_CASES if case["valid"] == "unknown"} & made.losses.keys()
    assert told == {file for file, where in TOLD_THOUGH_NOT_CALLED_INVALID.items() if where is not None}


def test_files_without_any_record_are_named(made: Made) -> None:
    for case in CASES:
        if case.get("format") == "gzip":
            assert made.losses[case["file"]][0]["offset"] == 0
            assert made.mark(Path(case["file"]).name)["records"] == 0


def test_losses_are_where_the_damage_is(made: Made) -> None:
    for file, listed in made.losses.items():
        size = (WARCS / file).stat().st_size
        assert all(0 <= loss["offset"] <= size and loss["reason"] for loss in listed)
    for file, offset in FOUND_AT.items():
        assert offset in [loss["offset"] for loss in made.losses[file]]
    for file, offsets in TOLD_THOUGH_NOT_CALLED_INVALID.items():
        if offsets is not None:
            assert [loss["offset"] for loss in made.losses[file]] == offsets


@pytest.mark.parametrize("file", sorted(TELLS_OF_NOTHING))
def test_what_is_wrong_where_nothing_is_told_is_a_digest(file: str) -> None:
    (record, *_) = kept_of(WARCS / file)
    contents = {"warc-block-digest": record.block, "warc-payload-digest": record.body}
    declared = {
        record.fields[name]: content for name, content in contents.items() if name in record.fields
    }
    assert not all(written == block_digest(content) for written, content in declared.items())


def test_every_record_that_others_find_is_counted(made: Made) -> None:
    for case in WARC_CASES:
        if "records" in case:
            assert made.mark(Path(case["file"]).name)["records"] == case["records"], case["file"]
    assert made.report["records"] == sum(len(kept_of(path)) for path in SOURCES.values())


def kept_of(path: Path) -> list[Record]:
    return list(read_records(path, on_broken=lambda _: None))


@pytest.mark.parametrize("product", ["cdxj", "merged"])
def test_every_line_leads_to_the_record_of_its_url(made: Made, product: str) -> None:
    unsought: Counter[str] = Counter()
    for line, said in made.lines(product):
        fields = said.fields
        raw = SOURCES[fields["filename"]].read_bytes()
        if "offset" not in fields:
            assert "length" not in fields
            unsought[fields["filename"]] += 1
            continue
        offset, length = int(fields["offset"]), int(fields["length"])
        assert 0 <= offset < offset + length <= len(raw), line
        assert url_at(raw[offset : offset + length]) == fields.get("url"), line
    told = {
        Path(file).name
        for file, listed in made.losses.items()
        if any(loss["reason"].startswith(NOT_SOUGHT) for loss in listed)
    }
    assert set(unsought) == told, "a line has no place only where that was told"
    assert made.report["products"][product]["entries"] == sum(1 for _ in made.lines(product))


def url_at(stored: bytes) -> str | None:
    """Return the URL of the record that *stored* is, as warcio reads it."""
    (record,) = ArchiveIterator(io.BytesIO(stored), no_record_parse=True)
    headers = record.rec_headers
    url = headers.get_header("WARC-Target-URI") or headers.get_header("uri")
    # Warcio mends spaces in the URLs of WARC files, not in those of ARC files.
    return url.replace(" ", "%20") if url else None


def test_each_index_is_in_byte_order_and_the_merged_one_has_the_same_lines(made: Made) -> None:
    for path in (made.out / "cdxj").iterdir():
        lines = path.read_bytes().splitlines()
        merged = (made.out / "merged" / path.name).read_bytes().splitlines()
        assert lines == sorted(lines)
        assert merged == sorted(merged)
        for line, other in zip(map(parse_cdxj, lines), map(parse_cdxj, merged), strict=True):
            assert (line.key, line.timestamp) == (other.key, other.timestamp)
            assert line.fields.items() <= other.fields.items()


def test_each_line_of_the_index_is_a_row_of_the_table_or_a_reject(made: Made) -> None:
    lines = Counter(place_of(said) for _, said in made.lines("merged"))
    found: Counter[tuple[str, int, str | None]] = Counter()
    for path in (made.out / "table").rglob("*.parquet"):
        for row in pq.ParquetFile(path).read().to_pylist():
            found[row["warc_filename"], row["warc_record_offset"], row["url"]] += 1
    assert found.total() == made.report["steps"]["table"]["rows"]
    rejects = (made.out / "table.rejects.txt").read_bytes().splitlines()
    for reject in rejects:
        reason, _, line = reject.partition(b"\t")
        assert reason
        found[place_of(parse_cdxj(line))] += 1
    assert found == lines
    assert len(rejects) == made.report["steps"]["table"]["rejects"]


def place_of(said: CdxjLine) -> tuple[str, int, str | None]:
    """Return what tells a line from all others; the table has -1 for an offset that is not known."""
    fields = said.fields
    return fields["filename"], int(fields.get("offset", -1)), fields.get("url")


def test_each_line_of_the_index_is_summed_up_or_counted_as_skipped(made: Made) -> None:
    said = made.report["steps"]["summary"]
    assert said["captures"] + said["skipped"] == made.report["products"]["merged"]["entries"]
    assert read_object(made.out / "summary.json")["captures"] == said["captures"]


def test_every_derivative_is_read_by_others_with_as_many_records_as_it_should_have(made: Made) -> None:
    expected = {name: dict(expected_records(path)) for name, path in SOURCES.items()}
    for directory, product in PRODUCTS.items():
        for name in SOURCES:
            one = made.mark(name)["products"][product]
            path = made.out / one["file"]
            assert path.parent.name == directory
            kinds = [kind for kind, _ in read_by_warcio(path)]
            assert kinds[0] == "warcinfo"
            assert "warcinfo" not in kinds[1:]
            assert len(kinds) - 1 == one["entries"] == expected[name][product], (path, kinds)
            assert read_by_fastwarc(path) == kinds


def expected_records(path: Path) -> Iterator[tuple[str, int]]:
    """Yield how many records each derivative of *path* has, by the kind of derivative."""
    records = kept_of(path)
    pages = [page for page in map(page_of, records) if page is not None and page.text]
    yield "wat", len(records)
    yield "wet", len(pages)
    yield "sidecar", sum(subject_of(record) is not None for record in records)


def read_by_warcio(path: Path) -> list[tuple[str, str | None]]:
    """Return type and URL of each record; fails where a digest is wrong."""
    found = []
    with path.open("rb") as stream:
        for record in ArchiveIterator(stream, check_digests="raise"):
            record.content_stream().read()
            found.append((record.rec_type, record.rec_headers.get_header("WARC-Target-URI")))
    return found


def read_by_fastwarc(path: Path) -> list[str]:
    found = []
    with path.open("rb") as stream:
        for record in FastArchiveIterator(stream, parse_http=False):
            assert "WARC-Block-Digest" not in record.headers or record.verify_block_digest()
            found.append(record.headers["WARC-Type"])
    return found


def test_a_second_run_makes_nothing_and_tells_the_same(made: Made) -> None:
    before = state_of(made.out)
    again = collect_everything(made.out)
    assert again.done.returncode == 5, again.done.stderr
    assert state_of(made.out) == before
    assert (again.report["made"], again.report["made_before"]) == (0, len(CASES))
    for told in ("damaged", "records", "bytes", "products", "steps", "losses"):
        assert again.report[told] == made.report[told], told


class Cut(NamedTuple):
    """A file of which only the beginning is there."""

    name: str
    at: int
    """Bytes that are there."""
    whole: int
    """Records that lie within them."""
    offset: int
    """Where that record begins which does not."""
    keeps: int
    """How many records are kept: one that is cut and not packed is kept as far as it goes."""


CUTS = (
    Cut("example.warc.gz", 3000, whole=4, offset=2621, keeps=4),
    Cut("example.warc.gz", 786, whole=2, offset=784, keeps=2),
    Cut("example.warc.gz", 3, whole=0, offset=0, keeps=0),
    Cut("example.warc", 1220, whole=2, offset=1197, keeps=2),
    Cut("example.warc", 2000, whole=2, offset=1197, keeps=3),
    Cut("example.arc.gz", 600, whole=1, offset=171, keeps=1),
    Cut("example.arc", 900, whole=1, offset=151, keeps=2),
    Cut("test.warc.gz", 22349, whole=2, offset=711, keeps=2),
)


@pytest.fixture(scope="module")
def cut(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Return the collection that was made of files that are cut, and its report."""
    sources, out = tmp_path_factory.mktemp("cut"), tmp_path_factory.mktemp("made of cut ones")
    for number, one in enumerate(CUTS):
        (sources / f"{number}").mkdir()
        (sources / f"{number}" / one.name).write_bytes(SOURCES[one.name].read_bytes()[: one.at])
    requested = ["-o", str(out), "-j", "1", "--products", "cdxj,wat,wet", "--dir-root", str(sources)]
    done = CliRunner().invoke(app, ["collection", str(sources), *requested])
    assert done.exit_code == 5, done.output
    return out, read_object(out / "report.json")


def test_a_file_that_is_cut_is_named_with_the_offset_of_what_is_lost(
    cut: tuple[Path, dict[str, Any]],
) -> None:
    _, report = cut
    assert (report["files"], report["failed"], report["damaged"]) == (len(CUTS), 0, len(CUTS))
    for number, one in enumerate(CUTS):
        (told,) = (loss for loss in report["losses"] if Path(loss["file"]).parts[-2] == str(number))
        assert {loss["offset"] for loss in told["listed"]} == {one.offset}, told
        assert told["kept"] == f"{one.keeps} records"


def test_what_is_readable_of_a_file_that_is_cut_is_kept(
    cut: tuple[Path, dict[str, Any]], made: Made
) -> None:
    out, report = cut
    marks = [read_object(path) for path in (out / "done").glob("*.json")]
    for number, one in enumerate(CUTS):
        (mark,) = (m for m in marks if Path(m["source"]).parts[-2] == str(number))
        whole = [record.offset for record in kept_of(SOURCES[one.name])][: one.whole]
        assert one.offset not in whole
        uncut = {
            said.fields["offset"]: said
            for _, said in made.lines("cdxj")
            if said.fields["filename"] == one.name
        }
        lines = (out / mark["products"]["cdxj"]["file"]).read_bytes().splitlines()
        kept = {said.fields["offset"]: said for said in map(parse_cdxj, lines)}
        for offset in uncut.keys() & map(str, whole):
            renamed = uncut[offset].fields | {"filename": f"{number}/{one.name}"}
            assert kept[offset].fields == renamed
        assert kept.keys() <= {*map(str, whole), str(one.offset)}
        for product in ("wat", "wet"):
            found = read_by_warcio(out / mark["products"][product]["file"])
            assert len(found) - 1 == mark["products"][product]["entries"]
        assert mark["products"]["wat"]["entries"] == one.keeps
    assert report["products"]["wat"]["entries"] == sum(one.keeps for one in CUTS)


def test_a_file_that_loses_its_middle_keeps_both_ends(tmp_path: Path) -> None:
    raw = SOURCES["example.warc.gz"].read_bytes()
    offsets = [record.offset for record in kept_of(SOURCES["example.warc.gz"])]
    source = tmp_path / "x.warc.gz"
    # The third and fourth record are half there.
    source.write_bytes(raw[: offsets[2] + 300] + raw[offsets[3] + 300 :])
    out = tmp_path / "out"
    requested = ["-o", str(out), "-j", "1", "--products", "wat"]
    assert CliRunner().invoke(app, ["collection", str(source), *requested]).exit_code == 5
    (told,) = read_object(out / "report.json")["losses"]
    assert {loss["offset"] for loss in told["listed"]} == {offsets[2]}
    whole = gzip.decompress((out / "wat" / "x.warc.wat.gz").read_bytes())
    assert whole.count(b"WARC-Type: metadata\r\n") == 4
