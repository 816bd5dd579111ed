"""Every kind of input is found out by looking, and gives the same figures."""

from __future__ import annotations

import bz2
import gzip
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from index.archive_files import exchange, packed
from report.summary_lines import DIGEST, cdx11, counts_of
from typer.testing import CliRunner

from amicrawl.archive.arrow_texts import texts_from
from amicrawl.archive.lines import archive_files, files_in
from amicrawl.archive.report.counts import CDX_SUMMARY
from amicrawl.archive.report.counts_json import counts_to_json, report_to_json, summary_to_json
from amicrawl.archive.report.figures import (
    by_domain,
    by_tld,
    different_urls,
    duplicates,
    largest_hosts,
    overlap_of,
    summary_of,
)
from amicrawl.archive.report.inputs import files_of
from amicrawl.archive.report.parquet import in_base32
from amicrawl.archive.report.reading import read_counts
from amicrawl.archive.table.query import table_files
from amicrawl.capture import Failure
from amicrawl.cli import app
from amicrawl.errors import InputError
from amicrawl.record.table import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.archive.report.counts import Counts

LINES = [
    cdx11(),
    cdx11(time="20121126215942", mime="warc/revisit", status="-", size="400"),
    cdx11(key="com,example)/a?b&c", url="http://example.com/a?b&c", status="404"),
    cdx11(key="dns:example.com", url="dns:example.com", mime="text/dns", status="-"),
    cdx11(
        key="org,example:8080)/b/", url="http://example.org:8080/b/", mime="image/png", digest="OTHER"
    ),
]
TEXT = "".join(f"{line}\n" for line in LINES)


def cdxj_of(line: str) -> str:
    key, time, url, mime, status, digest, _, _, size, offset, name = line.split()
    fields = {
        "url": url,
        "mime": mime,
        "digest": digest,
        "length": size,
        "offset": offset,
        "filename": name,
    }
    return f"{key} {time} {json.dumps(fields | ({} if status == '-' else {'status': status}))}\n"


def table_of(lines: list[str]) -> pa.Table:
    rows = [line.split() for line in lines]
    return pa.table(
        {
            "url_surtkey": [row[0] for row in rows],
            "url": [row[2] for row in rows],
            "fetch_time": pa.array(
                [datetime.strptime(row[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC) for row in rows],
                pa.timestamp("ms"),
            ),
            "fetch_status": pa.array([-1 if row[4] == "-" else int(row[4]) for row in rows], pa.int16()),
            "content_digest": [row[5] for row in rows],
            "content_mime_type": [row[3] for row in rows],
            "content_languages": ["eng,deu", None, "eng", None, None],
            "content_puid": ["fmt/96", None, "fmt/96", None, "fmt/11"],
            "warc_record_length": pa.array([int(row[8]) for row in rows], pa.int64()),
            "crawl": ["C"] * len(rows),
        }
    )


@pytest.fixture
def inputs(tmp_path: Path) -> Path:
    """The same captures in every form."""
    (tmp_path / "plain").write_text(TEXT)
    (tmp_path / "legend").write_text(f" CDX N b a m s k r M S V g\n{TEXT}")
    (tmp_path / "crlf").write_bytes(TEXT.replace("\n", "\r\n").encode())
    (tmp_path / "gzip").write_bytes(b"".join(gzip.compress(f"{line}\n".encode()) for line in LINES))
    (tmp_path / "bzip2").write_bytes(bz2.compress(TEXT.encode()))
    (tmp_path / "cdxj").write_text('!meta 0 {"format": "cdxj"}\n' + "".join(map(cdxj_of, LINES)))
    cluster = tmp_path / "zipnum"
    cluster.mkdir()
    idx = []
    for number, part in enumerate((LINES[:2], LINES[2:])):
        name = f"cdx-{number:05d}.gz"
        (cluster / name).write_bytes(gzip.compress("".join(map(cdxj_of, part)).encode()))
        idx.append(f"{' '.join(part[0].split()[:2])}\t{name}\t0\t99\t1\n")
    (cluster / "cluster.idx").write_text("".join(idx))
    pq.write_table(table_of(LINES), tmp_path / "table", row_group_size=2)
    (tmp_path / "part-1.json").write_text(counts_to_json(counts_of(*LINES)))
    return tmp_path


@pytest.mark.parametrize(
    "name", ["plain", "legend", "crlf", "gzip", "bzip2", "cdxj", "zipnum", "table", "part-1.json"]
)
def test_the_same_captures_have_the_same_figures_in_every_form(inputs: Path, name: str) -> None:
    reading = read_counts([str(inputs / name)])

    assert summary_of(reading.counts, hosts=10, samples=10) == summary_of(
        counts_of(*LINES), hosts=10, samples=10
    )
    assert reading.counts.different_urls == counts_of(*LINES).different_urls
    assert (reading.damage, reading.counts.skipped.total()) == ([], 0)


@pytest.mark.parametrize("name", ["cdxj", "zipnum", "table"])
def test_the_rules_of_cdx_summary_hold_for_what_that_tool_cannot_read(inputs: Path, name: str) -> None:
    """Its users convert to CDX-11 first."""
    reading = read_counts([str(inputs / name)], rules=CDX_SUMMARY)

    assert summary_of(reading.counts, hosts=10, samples=10) == summary_of(
        counts_of(*LINES, rules=CDX_SUMMARY), hosts=10, samples=10
    )


def test_several_inputs_are_one_after_the_other(inputs: Path) -> None:
    twice = read_counts([str(inputs / "plain"), str(inputs / "table")]).counts

    assert twice.captures == 2 * len(LINES)
    assert twice.ordered is False
    assert str(different_urls(twice)) == "4"


@pytest.mark.parametrize("status", ["0", "20", "1000", "-1", "http", 7, None])
def test_a_status_of_cdxj_that_is_none_costs_no_capture(tmp_path: Path, status: object) -> None:
    """The table has a row of such a line, too."""
    fields = {"url": "http://a.org/", "mime": "text/html", "status": status}
    (tmp_path / "a.cdxj").write_text(f"org,a)/ 20121026215942 {json.dumps(fields)}\n")

    counts = read_counts([str(tmp_path / "a.cdxj")]).counts

    assert (counts.captures, counts.skipped.total()) == (1, 0)


def test_an_empty_path_is_the_current_directory(inputs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Elsewhere it is, too; here its files were looked for below the root of the file system."""
    monkeypatch.chdir(inputs / "zipnum")
    assert [file.size for file in files_of("")] == [file.size for file in files_of(inputs / "zipnum")]


def test_what_lies_beyond_is_counted(inputs: Path) -> None:
    counts = read_counts([str(inputs / "table")]).counts

    assert {name: dict(tally) for name, tally in counts.facets.items()} == {
        "languages": {"eng": (2, 2438), "deu": (1, 1219)},
        "puid": {"fmt/96": (2, 2438), "fmt/11": (1, 1219)},
        "crawl": {"C": (5, 5276)},
    }
    assert str(duplicates(counts)) == "3"
    assert dict(by_tld(counts)) == {"com": (3, 2838), "dns:": (1, 1219), "org": (1, 1219)}
    assert list(by_domain(counts)) == ["example.com", "dns:", "example.org"]
    assert largest_hosts(counts, 1) == [("example.com", 3, 2838)]


def test_a_host_without_periods_is_its_own_top_level_domain_whatever_its_port() -> None:
    keys = [
        "localhost:8790)/",
        "localhost)/",
        "192.0.2.1:80)/",
        "[2001:db8::1]:80)/",
        "com,a:81)/",
        "dns:x",
    ]
    counts = counts_of(*(cdx11(key=key) for key in keys))

    assert {name: captures for name, (captures, _) in by_tld(counts).items()} == {
        "localhost": 2,
        "(address)": 2,
        "com": 1,
        "dns:": 1,
    }
    assert "localhost" in dict(by_domain(counts))
    assert not any(":8" in name for name in by_domain(counts))


def test_partitions_stand_for_the_columns_that_they_replace(tmp_path: Path) -> None:
    directory = tmp_path / "crawl=C" / "subset=warc"
    directory.mkdir(parents=True)
    pq.write_table(table_of(LINES).drop_columns(["crawl"]), directory / "part-0.parquet")

    facets = read_counts([str(tmp_path)]).counts.facets

    assert (facets["crawl"], facets["subset"]) == ({"C": (5, 5276)}, {"warc": (5, 5276)})


def test_partitions_are_spelled_as_hive_spells_them(tmp_path: Path) -> None:
    directory = tmp_path / "crawl=A%2FB" / "subset=__HIVE_DEFAULT_PARTITION__" / "mycrawl=D"
    directory.mkdir(parents=True)
    pq.write_table(table_of(LINES).drop_columns(["crawl"]), directory / "crawl=E.parquet")

    facets = read_counts([str(tmp_path)]).counts.facets

    assert facets["crawl"] == {"A/B": (5, 5276)}
    assert "subset" not in facets


def test_soft_404_probabilities_and_truncations_of_cdxj_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "x.cdxj"
    fields = [
        {"soft-404-detected": "0.93"},
        {"soft-404-detected": 0.97, "truncated": "length"},
        {"soft-404-detected": "x"},
    ]
    path.write_text("".join(f"org,a)/ 20121026215942 {json.dumps(one)}\n" for one in fields))

    facets = read_counts([str(path)]).counts.facets

    assert facets == {
        "soft-404": {"0.9-1.0": (2, 0), "unreadable": (1, 0)},
        "truncated": {"length": (1, 0)},
    }


def test_a_capture_index_of_a_crawl_is_read(tmp_path: Path) -> None:
    empty = {
        field.name: "" if field.type == pa.string() else False if field.type == pa.bool_() else 0
        for field in CAPTURES
    }
    began = int(datetime(2026, 11, 21, 12, 0, 1, tzinfo=UTC).timestamp() * 1000)
    rows = [
        empty
        | {
            "url": "http://WWW.example.org/A?b",
            "status": 200,
            "fetched_at": began + 5000,
            "duration_ms": 5000,
            "content_type": "text/HTML; charset=utf-8",
            "warc_length": 700,
            "digest": "aa",
        },
        empty
        | {
            "url": "http://example.org/b",
            "status": 304,
            "fetched_at": began,
            "unchanged": True,
            "warc_length": 300,
            "truncated": "length",
        },
        empty
        | {"url": "http://gone.example.org/", "fetched_at": began, "error": f"{Failure.OTHER.value}: x"},
        *[
            empty | {"url": "http://denied.example.org/", "fetched_at": began, "error": error}
            for error in (str(Failure.ROBOTS_DENIED), f"{Failure.REFUSED_BY_CRAWL}: a rule")
        ],
    ]
    path = tmp_path / "captures.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema=CAPTURES), path)

    counts = read_counts([str(path)]).counts

    assert dict(counts.by_mime_status) == {
        ("text/html", "200"): (1, 700),
        ("warc/revisit", "304"): (1, 300),
    }
    assert (counts.first, counts.first_key) == ("20261121120001", b"org,example)/a?b")
    assert counts.skipped == {
        "a fetch that failed, so that there is no record": 1,
        "a URL that was not requested": 2,
    }
    assert counts.facets["truncated"] == {"length": (1, 300)}


def test_a_url_of_an_index_that_is_not_utf8_is_counted(tmp_path: Path) -> None:
    columns = {
        "url": pa.array([b"http://example.org/\xe9"], pa.binary()).view(pa.string()),
        "fetched_at": pa.array([1_790_000_000_000], pa.int64()),
        "warc_length": pa.array([7], pa.int64()),
    }
    pq.write_table(pa.table(columns), tmp_path / "captures.parquet")
    counts = read_counts([str(tmp_path)]).counts
    assert (counts.captures, counts.first_key) == (1, b"org,example)/%e9")


@pytest.mark.parametrize("at", [0, -(2**62), 2**62, 253_402_300_800_000])
def test_a_row_whose_time_is_not_a_date_is_skipped_with_its_reason(at: int, tmp_path: Path) -> None:
    columns = {
        "url": ["http://example.org/a", "http://example.org/b"],
        "fetched_at": [at, 1_790_000_000_000],
        "warc_length": [7, 7],
    }
    pq.write_table(pa.table(columns), tmp_path / "captures.parquet")
    counts = read_counts([str(tmp_path)]).counts
    assert (counts.captures, counts.skipped) == (1, {"a time that is not a date": 1})
    assert (counts.first[:4], counts.last[:4]) == ("2026", "2026")


def test_an_index_of_failures_alone_is_a_collection_without_captures(tmp_path: Path) -> None:
    columns = {"url": ["http://example.org/a"], "fetched_at": [1_790_000_000_000], "warc_length": [0]}
    pq.write_table(pa.table(columns), tmp_path / "captures.parquet")
    done = CliRunner().invoke(app, ["summary", str(tmp_path)], catch_exceptions=False)
    assert done.exit_code == 0
    assert "a fetch that failed, so that there is no record" in done.output


def test_a_key_of_old_with_a_port_has_a_host(tmp_path: Path) -> None:
    lines = [cdx11(key=key) for key in ("example.com:8080/a/b", "example.com/a", "urn:1:x")]
    path = tmp_path / "a.cdx"
    path.write_text("".join(f"{line}\n" for line in lines))
    counts = read_counts([str(path)]).counts
    assert list(counts.by_host) == ["com,example:8080", "com,example", "urn:"]
    assert (2, 0) in counts.by_path_query


@pytest.mark.parametrize("name", ["plain", "gzip", "bzip2", "table"])
def test_progress_ends_with_all_bytes_read(name: str, inputs: Path) -> None:
    seen: list[tuple[int, int]] = []

    read_counts([str(inputs / name)] * 2, progress=lambda done, total, _: seen.append((done, total)))

    sizes = sum(file.size for file in files_of(str(inputs / name)))
    assert sizes == (inputs / name).stat().st_size
    done, total = seen[-1]
    # Of a table, bytes are counted by its rows, rounded down for each batch.
    assert 2 * sizes - 10 < done <= total == 2 * sizes
    assert sorted(seen) == seen


def test_a_file_that_breaks_off_is_counted_up_to_there_and_named(tmp_path: Path) -> None:
    path = tmp_path / "broken.cdx.gz"
    whole = gzip.compress("".join(cdx11(key=f"com,example)/{n}") + "\n" for n in range(5000)).encode())
    path.write_bytes(whole[: len(whole) // 2])

    reading = read_counts([str(path)])

    assert 0 < reading.counts.captures < 5000
    assert "broken.cdx.gz" in reading.damage[0]
    assert "cannot be unpacked any further" in reading.damage[0]


# Not in the order of their keys.
RECORDS = [exchange(f"http://site{n * 7 % 5}.org/{n}")[0] for n in range(5)]


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.warc.gz", gzip.compress), ("a.warc.zst", zstandard.compress), ("a.warc", bytes)],
)
def test_an_archive_file_has_the_summary_of_its_index(
    tmp_path: Path, name: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / name
    path.write_bytes(b"".join(map(pack, RECORDS)))
    index = tmp_path.with_name(f"{tmp_path.name}-index")
    assert CliRunner().invoke(app, ["index", str(path), "-o", str(index)]).exit_code == 0
    (lines,) = index.glob("*.cdxj")
    seen: list[tuple[int, int]] = []

    reading = read_counts(
        [str(tmp_path)],
        progress=lambda done, total, _: seen.append((done, total)),
    )

    assert reading.counts.captures == 5
    assert reading.counts.ordered
    assert reading.counts == read_counts([str(lines)]).counts
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_of_a_damaged_archive_file_each_lost_part_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(packed(RECORDS)[:-40])

    reading = read_counts([str(path)])

    assert reading.counts.captures == 4
    assert [sentence for sentence in reading.damage if sentence.startswith(f"{path}, byte ")]


def test_a_damaged_table_is_named(tmp_path: Path) -> None:
    pq.write_table(table_of(LINES), tmp_path / "table")
    (tmp_path / "cut").write_bytes((tmp_path / "table").read_bytes()[:-9])

    assert "not a readable Parquet file" in read_counts([str(tmp_path / "cut")]).damage[0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"a": 1}', "begins like the JSON of a summary"),
        (None, "cannot be read"),
        (b"PAR", None),
        (b"", None),
        (b"\x00\xff" * 99, None),
    ],
)
def test_what_is_no_index_is_refused_or_skipped_in_a_sentence(
    tmp_path: Path, content: bytes | None, message: str | None
) -> None:
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    if message:
        with pytest.raises(InputError, match=message):
            read_counts([str(path)])
    else:
        assert read_counts([str(path)]).counts.captures == 0


def test_a_table_of_something_else_is_refused_with_its_columns(tmp_path: Path) -> None:
    pq.write_table(pa.table({"price": [1]}), tmp_path / "x")

    with pytest.raises(InputError, match="Its columns are: price"):
        read_counts([str(tmp_path / "x")])


def test_directories_without_an_index_and_clusters_without_their_parts_are_refused(
    tmp_path: Path,
) -> None:
    with pytest.raises(InputError, match="no Parquet files"):
        read_counts([str(tmp_path)])
    (tmp_path / "cluster.idx").write_text("a 2\tcdx-0.gz\t0\t1\t1\n")
    with pytest.raises(InputError, match=r"cdx-0\.gz"):
        read_counts([str(tmp_path)])


def test_what_a_killed_command_left_in_a_directory_does_not_count(inputs: Path) -> None:
    made = inputs / "made"
    for name in ("table", "table.open"):
        (made / name).mkdir(parents=True)
        (made / name / "part.parquet").write_bytes((inputs / "table").read_bytes())
    assert [file.location.name for file in files_of(made)] == [str(made / "table" / "part.parquet")]
    assert table_files(made) == [made / "table" / "part.parquet"]
    for name in ("a", "b.open"):
        (made / name).mkdir(parents=True)
        for ending in ("cdxj", "warc.gz"):
            (made / name / f"x.{ending}").write_bytes(b"")
    assert files_in([made]) == [made / "a" / "x.cdxj"]
    assert archive_files([made]) == [made / "a" / "x.warc.gz"]
    assert archive_files([made / "b.open"]) == [made / "b.open" / "x.warc.gz"]


@pytest.mark.parametrize("named", [".", "crawl"])
def test_tables_of_a_crawl_that_was_killed_while_they_were_joined_are_not_added_up(
    named: str, inputs: Path
) -> None:
    """The rows of earlier crawls are in two of them then, and soon those of its processes."""
    crawl = inputs / "crawls" / "crawl"
    (crawl / "processes" / "0").mkdir(parents=True)
    (crawl / "processes" / "plan.json").write_text("{}")
    for name in (
        "captures.parquet",
        "processes/captures-before.parquet",
        "processes/0/captures.parquet",
    ):
        (crawl / name).write_bytes((inputs / "table").read_bytes())
    for read in (files_of, table_files):
        with pytest.raises(InputError, match=r"crawl has a crawl in 1 processes .* Start its command"):
            read(inputs / "crawls" / named)
    (crawl / "processes" / "plan.json").unlink()
    assert len(files_of(inputs / "crawls" / named)) == 3


def test_a_kind_can_be_said_where_looking_misleads(inputs: Path) -> None:
    assert read_counts([str(inputs / "plain")], kind="cdx11").counts == counts_of(*LINES)
    assert read_counts([str(inputs / "cdxj")], kind="cdx11").counts.captures == 0


@pytest.mark.parametrize("write", [summary_to_json, report_to_json])
def test_what_cdx_summary_wrote_is_read_again(tmp_path: Path, write: Callable[[Counts], str]) -> None:
    lines = [LINES[0], LINES[2], LINES[4], cdx11(key="org,z)/1", mime="text/plain")]
    counts = counts_of(*lines, rules=CDX_SUMMARY)
    (tmp_path / "x.json").write_text(write(counts))

    read = read_counts([str(tmp_path / "x.json")], rules=CDX_SUMMARY).counts

    assert summary_of(read, hosts=9, samples=9) == summary_of(counts, hosts=9, samples=9)


def test_two_collections_share_hosts_urls_and_payloads() -> None:
    overlap = overlap_of(counts_of(*LINES), counts_of(LINES[0], cdx11(key="net,x)/"))).as_dict()

    assert overlap == {
        "hosts": {"first": 3, "both": 1, "second": 2},
        "captures_of_shared_hosts": {"first": 3, "second": 1},
        "urls": {
            side: {"value": n, "error": 0} for side, n in {"first": 4, "both": 1, "second": 2}.items()
        },
        "digests": {
            side: {"value": n, "error": 0} for side, n in {"first": 2, "both": 1, "second": 1}.items()
        },
    }


def test_a_payload_is_known_by_its_digest_however_that_is_written(tmp_path: Path) -> None:
    """Indexers write it with and without `sha1:`, an index of a crawl in hexadecimal digits."""
    labelled = counts_of(cdx11(), cdx11(digest="sha1:SUYN7XTFAOFZ7RB6PQSUDVXZV6DPKAS3"))

    sha1 = "9530dfde65038b9fc43e7c2541d6f9af86f5025b"
    others = ["", sha1[1:], f"{sha1[1:]} ", f"{sha1}\n", "\u00e9" * 20, DIGEST]
    written = in_base32(texts_from([others[0], sha1, None, *others[1:], sha1.upper()]).cast(pa.binary()))
    expected = [others[0], DIGEST, "", *others[1:], DIGEST]
    assert [each.decode() for each in written.to_pylist()] == expected
    assert in_base32(texts_from([]).cast(pa.binary())).to_pylist() == []
    assert str(duplicates(labelled)) == "1"


def test_blocks_may_end_anywhere(tmp_path: Path) -> None:
    """A file larger than a block gives what its lines give."""
    lines = [cdx11(key=f"com,example)/{n:06d}", size=str(n)) for n in range(60_000)]
    path = tmp_path / "large.cdx"
    path.write_text("".join(f"{line}\n" for line in lines))
    assert path.stat().st_size > 4 * 1024**2

    counts = read_counts([str(path)]).counts

    assert (counts.captures, counts.urls, counts.bytes) == (60_000, 60_000, sum(range(60_000)))
