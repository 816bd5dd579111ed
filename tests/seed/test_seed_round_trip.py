"""What an earlier crawl left comes back as seeds: nothing lost, nested or requested twice."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from amicrawl.seed import open_seed

if TYPE_CHECKING:
    from pathlib import Path

    from amicrawl.seed import Seed, SeedFault

URL = "https://a.example/"


def read(path: Path) -> list[Seed]:
    faults: list[object] = []
    seeds = list(open_seed(str(path), on_fault=faults.append))
    assert not faults
    return seeds


def test_columns_of_every_type_go_to_meta_json(tmp_path: Path) -> None:
    row = {
        "url": URL,
        "name": "text",
        "depth": 7,
        "score": 0.25,
        "wanted": True,
        "nothing": None,
        "place": {"lat": 1.5, "tags": ["a", "b"]},
        "tags": [1, 2],
        "seen": datetime(2027, 1, 31, 18, 30, tzinfo=UTC),
        "day": date(2027, 1, 31),
        "price": Decimal("1.20"),
        "raw_bytes": b"\x00",
    }
    path = tmp_path / "seeds.parquet"
    pq.write_table(pa.Table.from_pylist([row]), path)
    (seed,) = read(path)
    assert json.loads(seed.meta_json) == {
        "name": "text",
        "depth": "7",
        "score": "0.25",
        "wanted": "true",
        "place": '{"lat":1.5,"tags":["a","b"]}',
        "tags": "[1,2]",
        "seen": "2027-01-31T18:30:00+00:00",
        "day": "2027-01-31",
        "price": "1.20",
    }


def test_parquet_and_json_lines_of_the_same_rows_give_the_same_seeds(tmp_path: Path) -> None:
    fields = [{"url": f"{URL}{n}", "depth": n, "score": n / 4, "tags": ["x"]} for n in range(3)]
    pq.write_table(pa.Table.from_pylist(fields), tmp_path / "seeds.parquet")
    (tmp_path / "seeds.jsonl").write_text("".join(json.dumps(row) + "\n" for row in fields))
    assert read(tmp_path / "seeds.parquet") == read(tmp_path / "seeds.jsonl")


ROWS = [
    {"url": f"{URL}{n}", "status": 503, "error": "", "meta_json": '{"source":"list"}'} for n in range(3)
]


def test_a_response_about_an_index_keeps_meta_json_as_it_stands(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    lines = ",\n".join(json.dumps(row) for row in ROWS)
    (tmp_path / "a.json").write_text(f"[\n{lines}\n]\n")
    pq.write_table(pa.Table.from_pylist(ROWS), tmp_path / "a.parquet")
    for name in ("a.jsonl", "a.json", "a.parquet"):
        seeds = read(tmp_path / name)
        assert [seed.url for seed in seeds] == [row["url"] for row in ROWS], name
        assert {seed.meta_json for seed in seeds} == {'{"source":"list"}'}, name


def test_what_a_producer_adds_to_meta_json_joins_it(tmp_path: Path) -> None:
    row = {"url": URL, "status": 200, "meta_json": '{"source":"list"}', "why": "again"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    (seed,) = read(tmp_path / "a.jsonl")
    assert json.loads(seed.meta_json) == {"source": "list", "why": "again"}


def test_a_field_of_that_name_that_is_no_such_object_is_a_field_like_any_other(tmp_path: Path) -> None:
    for value in ("free text", '{"n":1}', "[1]"):
        (tmp_path / "a.jsonl").write_text(json.dumps({"url": URL, "meta_json": value}) + "\n")
        (seed,) = read(tmp_path / "a.jsonl")
        assert json.loads(seed.meta_json) == {"meta_json": value}


def test_a_column_of_lists_that_would_fill_memory_is_left_out_with_a_word(tmp_path: Path) -> None:
    path = tmp_path / "seeds.parquet"
    pq.write_table(pa.table({"url": [URL], "tags": [[7] * 3_000_000], "n": [1]}), path)
    faults: list[SeedFault] = []
    (seed,) = open_seed(str(path), on_fault=faults.append)
    assert seed.meta_json == '{"n":"1"}'
    assert [fault.kept for fault in faults] == [True]
    assert "'tags' holds lists or records of too many bytes" in faults[0].reason


def test_robots_txt_of_an_earlier_crawl_is_no_seed_unless_its_list_named_it(tmp_path: Path) -> None:
    numbers = ("status", "fetched_at", "body_length", "warc_offset", "warc_length")
    row: dict[str, object] = dict.fromkeys(numbers, 0)
    row |= dict.fromkeys(("host", "content_type", "digest", "warc_file", "error", "meta_json"), "")
    urls = [f"{URL}robots.txt", f"{URL}page", f"{URL}sub/robots.txt"]
    index = [row | {"url": url, "unchanged": False} for url in urls]
    index.append(index[0] | {"meta_json": '{"source":"list"}'})
    pq.write_table(pa.Table.from_pylist(index), tmp_path / "captures.parquet")
    assert [seed.url for seed in read(tmp_path / "captures.parquet")] == [*urls[1:], urls[0]]
