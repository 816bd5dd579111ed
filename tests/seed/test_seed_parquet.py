"""Parquet tables as seed lists."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from amicrawl.errors import InputError
from amicrawl.seed import Seed, SeedFault
from amicrawl.seed.parquet import is_bulk

if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[..., tuple[list[Seed], list[SeedFault]]]

CORPUS = Path(__file__).parents[1] / "data" / "corpora" / "parquet"
SHA1 = "0a4d55a8d778e5022fab701977c5d840bbc486d0"


def packed(table: pa.Table, **options: Any) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def test_columns_become_meta_in_their_order(read: Read) -> None:
    table = pa.table(
        {
            "source": ["sitemap", "list"],
            "url": ["http://a.example/", " http://b.example/ "],
            "rank": [1, 2],
            "Größe": pa.array(["", "klein"]).dictionary_encode(),
            "seen": pa.array([True, None]),
            "note": pa.array([None, "x\ny"], pa.large_string()),
            "tags": [["a"], ["b"]],
        }
    )
    seeds, faults = read(packed(table), "seeds.parquet")
    assert seeds == [
        Seed(
            "http://a.example/",
            meta_json='{"source":"sitemap","rank":"1","Größe":"","seen":"true","tags":"[\\"a\\"]"}',
        ),
        Seed(
            "http://b.example/",
            meta_json='{"source":"list","rank":"2","Größe":"klein","note":"x\\ny","tags":"[\\"b\\"]"}',
        ),
    ]
    assert faults == []


def test_a_table_of_urls_alone_gives_no_meta(read: Read) -> None:
    table = pa.table({"url": ["http://a.example/"], "raw": [b"1"], "bytes": [b"1"]})
    assert read(packed(table), "seeds.pq") == ([Seed("http://a.example/")], [])


def test_digest_and_validators_are_read_and_are_no_meta(read: Read) -> None:
    table = pa.table(
        {
            "url": ["http://a.example/", "http://b.example/"],
            "digest": ["sha1:BJGVLKGXPDSQEL5LOAMXPROYIC54JBWQ", "nonsense"],
            "etag": ['"1"', None],
            "last_modified": ["Mon, 01 Jan 2024 00:00:00 GMT", "a\r\nb: c"],
        }
    )
    seeds, faults = read(packed(table), "seeds.parquet")
    assert seeds == [
        Seed("http://a.example/", SHA1, '"1"', "Mon, 01 Jan 2024 00:00:00 GMT"),
        Seed("http://b.example/"),
    ]
    assert [(fault.line, fault.kept, fault.reason.split()[0]) for fault in faults] == [
        (2, True, "digest"),
        (2, True, "last_modified"),
    ]


@pytest.mark.parametrize(
    "name", ["body", "BODY", "html", "content", "headers", "response_headers", "raw_html", "text"]
)
def test_bodies_and_headers_are_not_carried_along(read: Read, name: str) -> None:
    assert is_bulk(name)
    table = pa.table({"url": ["http://a.example/"], name: ["x" * 100], "title": ["t"]})
    assert read(packed(table), "seeds.parquet") == (
        [Seed("http://a.example/", meta_json='{"title":"t"}')],
        [],
    )


@pytest.mark.parametrize(
    "name", ["content_type", "source", "language", "context", "textile", "title", "warc_file"]
)
def test_what_is_known_of_a_url_is_no_bulk(name: str) -> None:
    assert not is_bulk(name)


def test_rows_without_a_url_to_request_are_reported_with_their_number(read: Read) -> None:
    urls = ["http://a.example/", None, "", "gopher://a.example/", "http://b.example/"]
    seeds, faults = read(packed(pa.table({"url": urls})), "seeds.parquet")
    assert [seed.url for seed in seeds] == ["http://a.example/", "http://b.example/"]
    assert [(fault.line, fault.reason) for fault in faults] == [
        (2, "the field url is missing"),
        (3, "the URL is empty"),
        (4, "'gopher://a.example/' is not an HTTP or HTTPS URL"),
    ]


def test_bytes_that_are_no_utf_8_cost_the_cell_and_not_the_table(read: Read) -> None:
    def text(*values: bytes) -> pa.Array[Any]:
        return pa.Array.from_buffers(pa.string(), len(values), pa.array(values, pa.binary()).buffers())

    table = pa.table(
        {
            "url": text(b"http://a.example/", b"http://\xff.example/", b"http://b.example/"),
            "etag": text(b"\xff", b"", b'"1"'),
            "note": text(b"fine", b"\xff", b"\xfe"),
        }
    )
    seeds, faults = read(packed(table), "seeds.parquet")
    assert seeds == [
        Seed("http://a.example/", meta_json='{"note":"fine"}'),
        Seed("http://b.example/", etag='"1"'),
    ]
    assert [(fault.line, fault.kept) for fault in faults] == [(1, True), (2, False), (3, True)]
    assert faults[2].reason == "column 'note' is not UTF-8; it is left out"


@pytest.mark.parametrize(
    "moments",
    [
        pa.array([1 << 62, 5_000], pa.timestamp("ms")),
        pa.array([(1 << 31) - 1, 5], pa.date32()),
        pa.array([1 << 62, 5], pa.duration("s")),
        pa.array([5, 5], pa.timestamp("us", "Nowhere/At_All")),
    ],
)
def test_a_moment_that_cannot_be_written_costs_the_cell_and_not_the_table(
    read: Read, moments: pa.Array[Any]
) -> None:
    table = pa.table({"url": ["http://a.example/", "http://b.example/"], "made": moments})
    seeds, faults = read(packed(table), "seeds.parquet")
    assert [seed.url for seed in seeds] == ["http://a.example/", "http://b.example/"]
    assert seeds[0].meta_json == ""
    assert faults[0].kept
    assert faults[0].reason == "column 'made' is not a value that can be read; it is left out"


def test_a_column_name_that_is_no_utf_8_is_damage(read: Read) -> None:
    content = packed(pa.table({"url": ["http://a.example/"], "remarkable": ["x"]}), store_schema=False)
    with pytest.raises(InputError, match="is not a complete Parquet file: 'utf-8' codec can't decode"):
        read(content.replace(b"remarkable", b"remark\xffble"), "seeds.parquet")


def test_rows_of_many_row_groups_come_in_order(read: Read) -> None:
    urls = [f"http://host-{number}.example/" for number in range(5000)]
    seeds, faults = read(packed(pa.table({"url": urls}), row_group_size=700), "seeds.parquet")
    assert [seed.url for seed in seeds] == urls
    assert faults == []


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (pa.table({"URL": ["http://a.example/"]}), "has no column url"),
        (pa.table({"url": [1]}), "has a column url, but not of text"),
        (pa.table({"url": [{"url": "http://a.example/"}]}), "has a column url, but not of text"),
        (pa.table({}), "has no column url"),
    ],
)
def test_a_table_without_urls_says_so(read: Read, table: pa.Table, reason: str) -> None:
    with pytest.raises(InputError, match=rf"seeds\.parquet {reason}\. Rename the column"):
        read(packed(table), "seeds.parquet")


@pytest.mark.parametrize("content", [b"", b"http://a.example/\n", b"PAR1" * 20, b"{}" * 500])
def test_what_is_no_parquet_is_said_not_to_be_a_whole_one(read: Read, content: bytes) -> None:
    with pytest.raises(
        InputError, match=r"seeds\.parquet is not a complete Parquet file: .*Get a complete copy"
    ):
        read(content, "seeds.parquet")


def test_every_cut_of_a_table_is_an_error(read: Read) -> None:
    content = packed(pa.table({"url": ["http://a.example/"]}), compression="none")
    for cut in range(0, len(content), 7):
        with pytest.raises(InputError, match="is not a complete Parquet file"):
            read(content[:cut], "seeds.parquet")


def test_of_a_table_that_is_damaged_further_on_the_rows_before_are_seeds(read: Read) -> None:
    urls = [f"http://host-{number}.example/" for number in range(3000)]
    content = bytearray(
        packed(pa.table({"url": urls}), row_group_size=1000, compression="gzip", use_dictionary=False)
    )
    third = pq.ParquetFile(io.BytesIO(bytes(content))).metadata.row_group(2).column(0).data_page_offset
    content[third : third + 40] = bytes(40)
    seeds, faults = read(bytes(content), "seeds.parquet")
    assert [seed.url for seed in seeds] == urls[:2000]
    assert [(fault.line, fault.kept) for fault in faults] == [(2001, False)]
    assert "is not a complete Parquet file" in faults[0].reason


def test_damaged_tables_of_the_corpus_raise_nothing_but_input_errors(read: Read) -> None:
    rows = [json.loads(line) for line in (CORPUS / "expectations.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    for row in rows:
        with pytest.raises(InputError):
            read((CORPUS / row["file"]).read_bytes(), "seeds.parquet")


def test_a_footer_that_ends_arrow_by_a_signal_is_refused_with_a_sentence(read: Read) -> None:
    with pytest.raises(InputError, match=r"seeds\.parquet"):
        read((CORPUS / "footer" / "definition-levels.parquet").read_bytes(), "seeds.parquet")
