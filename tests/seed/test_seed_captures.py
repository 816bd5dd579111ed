"""An earlier crawl's index as a seed list."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.seed import Seed, SeedFault

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]

SHA1 = "0a4d55a8d778e5022fab701977c5d840bbc486d0"
ROW: dict[str, Any] = {
    "url": "http://a.example/",
    "host": "a.example",
    "status": 200,
    "fetched_at": 1_700_000_000_500,
    "content_type": "text/html",
    "body_length": 5,
    "digest": SHA1,
    "unchanged": False,
    "warc_file": "ami-00000.warc.gz",
    "warc_offset": 600,
    "warc_length": 400,
    "error": "",
    "meta_json": '{"source":"sitemap", "kept":  "verbatim"}',
}
OURS: dict[str, Any] = {
    "etag": '"1"',
    "last_modified": "Mon, 01 Jan 2024 00:00:00 GMT",
    "final_url": "http://a.example/",
    "ip_address": "192.0.2.1",
    "protocol": "http/1.1",
    "ttfb_ms": 100,
    "duration_ms": 500,
    "truncated": "",
    "record_id": "<urn:uuid:00000000-0000-4000-8000-000000000000>",
    "attempts": 1,
}
LABEL = "sha1:" + "A" * 32
TYPES = {str: pa.string(), bool: pa.bool_()}
NUMBERS = {"status": pa.int32(), "attempts": pa.int32()}


def index(*rows: dict[str, Any]) -> bytes:
    """Return an index with *rows*, column by column in the order of the first."""
    fields = [
        pa.field(name, TYPES.get(type(value), NUMBERS.get(name, pa.int64())))
        for name, value in rows[0].items()
    ]
    out = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows), schema=pa.schema(fields)), out)
    return out.getvalue()


def test_a_row_becomes_a_conditional_request_with_its_meta_verbatim(read: Read) -> None:
    assert read(index(ROW | OURS), "captures.parquet") == (
        [
            Seed(
                "http://a.example/",
                SHA1,
                '"1"',
                "Mon, 01 Jan 2024 00:00:00 GMT",
                1_700_000_000_000,
                '{"source":"sitemap", "kept":  "verbatim"}',
            )
        ],
        [],
    )


def test_an_index_of_thirteen_columns_is_one_whatever_it_is_called_and_however_ordered(
    read: Read,
) -> None:
    backwards = dict(reversed(ROW.items())) | {"remark": "not ours"}
    expected = Seed("http://a.example/", SHA1, captured_at=1_700_000_000_500, meta_json=ROW["meta_json"])
    assert read(index(ROW), "captures.parquet") == ([expected], [])
    assert read(index(backwards), "anything.bin") == ([expected], [])


def test_a_table_that_lacks_one_of_the_columns_is_an_ordinary_one(read: Read) -> None:
    row = {name: value for name, value in ROW.items() if name != "warc_length"}
    (seed,), _ = read(index(row), "captures.parquet")
    assert seed.captured_at == 0
    assert seed.meta_json == row["meta_json"]


@pytest.mark.parametrize("status", [206, 301, 404, 500])
def test_of_an_error_page_the_payload_counts_and_no_validator(read: Read, status: int) -> None:
    ((seed,), _) = read(index(ROW | OURS | {"status": status}), "captures.parquet")
    assert (seed.etag, seed.last_modified) == ("", "")
    assert seed.digest == ROW["digest"]
    assert seed.captured_at > 0


@pytest.mark.parametrize(
    "changes",
    [
        {"status": 0, "digest": "", "error": "connect-timeout: 20 s"},
        {"error": "other: something"},
        {"truncated": "length"},
        {"digest": ""},
    ],
)
def test_a_row_that_is_no_whole_capture_is_requested_without_conditions(
    read: Read, changes: dict[str, Any]
) -> None:
    seeds, faults = read(index(ROW | OURS | changes), "captures.parquet")
    assert seeds == [Seed("http://a.example/", meta_json=ROW["meta_json"])]
    assert faults == []


@pytest.mark.parametrize("status", [200, 304])
def test_an_unchanged_row_is_requested_conditionally_but_is_no_original(read: Read, status: int) -> None:
    (seed,), _ = read(index(ROW | OURS | {"status": status, "unchanged": True}), "captures.parquet")
    assert (seed.digest, seed.etag, seed.captured_at) == (SHA1, '"1"', 0)


def test_a_revisit_names_the_record_with_the_payload(read: Read) -> None:
    of_another = {"payload_digest": LABEL, "original_url": "http://b.example/", "original_at": 5}
    (seed,), _ = read(index(ROW | OURS | of_another), "captures.parquet")
    assert (seed.original_url, seed.captured_at, seed.payload_digest) == ("http://b.example/", 5, LABEL)
    of_itself = of_another | {"original_url": ROW["url"], "original_at": 0, "unchanged": True}
    (seed,), _ = read(index(ROW | OURS | of_itself), "captures.parquet")
    assert (seed.original_url, seed.captured_at, seed.payload_digest) == ("", 0, LABEL)


@pytest.mark.parametrize(
    "changes",
    [
        {"payload_digest": LABEL + "\r\nWARC-Type: response"},
        {"payload_digest": "x" * 100_000},
        {"original_url": "http://b.example/\r\nx"},
        {"original_url": "javascript:x"},
        {"original_url": ROW["url"], "original_at": -1},
        {"original_url": ROW["url"], "original_at": 2**62},
    ],
)
def test_an_original_that_cannot_be_is_not_known(read: Read, changes: dict[str, Any]) -> None:
    nothing = {"payload_digest": "", "original_url": "", "original_at": 0, "unchanged": True}
    (seed,), faults = read(index(ROW | OURS | nothing | changes), "captures.parquet")
    assert (seed.original_url, seed.captured_at, seed.payload_digest) == ("", 0, "")
    assert seed.digest == SHA1
    assert not faults


def test_a_digest_that_is_none_is_reported_and_the_url_requested_without_conditions(read: Read) -> None:
    seeds, faults = read(
        index(ROW | OURS | {"digest": "d41d8cd98f00b204e9800998ecf8427e"}), "captures.parquet"
    )
    assert seeds == [Seed("http://a.example/", meta_json=ROW["meta_json"])]
    assert [(fault.line, fault.kept) for fault in faults] == [(1, True)]


@pytest.mark.parametrize("fetched_at", [0, -5, 499, 2**62, None])
def test_a_moment_that_no_date_can_name_is_unknown(read: Read, fetched_at: int | None) -> None:
    (_, seed), _ = read(index(ROW | OURS, ROW | OURS | {"fetched_at": fetched_at}), "captures.parquet")
    assert (seed.digest, seed.captured_at) == (SHA1, 0)


def test_every_row_of_a_url_is_yielded_in_the_order_of_the_table(read: Read) -> None:
    rows = [ROW | OURS | {"fetched_at": 1_700_000_000_500 + day * 86_400_000} for day in (1, 0, 2)]
    seeds, _ = read(index(*rows), "captures.parquet")
    assert [seed.captured_at for seed in seeds] == [
        1_700_086_400_000,
        1_700_000_000_000,
        1_700_172_800_000,
    ]


def test_rows_that_are_no_urls_are_reported(read: Read) -> None:
    seeds, faults = read(index(ROW, ROW | {"url": "dns:a.example"}), "captures.parquet")
    assert len(seeds) == 1
    assert [(fault.line, fault.reason) for fault in faults] == [
        (2, "'dns:a.example' is not an HTTP or HTTPS URL")
    ]
