"""A Parquet file of a few hundred bytes costs no more memory than any other, whatever it stands for."""

from __future__ import annotations

import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hostile.bombs import parquet_bombs
from hostile.bombs.parquet_bombs import MIB

from amicrawl.errors import InputError
from amicrawl.parquet import BATCH_BYTES, ParquetTable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from hostile.bombs.confined import Confinement

SEEDS: dict[str, Callable[[Path], None]] = {
    "a long URL, repeated": partial(parquet_bombs.seeds, length=5 * MIB, rows=20_000),
    "a longer URL, repeated": partial(parquet_bombs.seeds, length=16 * MIB, rows=20_000),
    "a field, repeated": partial(parquet_bombs.seeds, length=4 * MIB, rows=20_000, column="note"),
    "three values that fill memory": partial(parquet_bombs.in_full, length=70 * MIB, values=3),
    "values told by the one before": partial(parquet_bombs.prefixes, length=MIB, rows=100),
    "rows without number": partial(parquet_bombs.seeds, length=1, rows=2_000_000),
}


@pytest.mark.parametrize("bomb", SEEDS)
def test_a_seed_list_in_parquet_is_refused_in_a_sentence_or_read_within_bounds(
    bomb: str, tmp_path: Path, confined: Confinement
) -> None:
    path = tmp_path / "seeds.parquet"
    SEEDS[bomb](path)
    assert path.stat().st_size < 100_000
    requested = ["crawl", "seeds", "-a", f"file={path}", "-a", f"out={tmp_path / 'out'}"]
    ended = confined.run(requested, where=tmp_path, program="scrapy")
    assert ended.is_orderly(), ended
    assert ended.code in (0, 3, 10), ended
    assert ended.code in (0, 10) or "seeds.parquet is refused: " in ended.errors, ended


def test_a_seed_list_from_the_web_is_bounded_alike(tmp_path: Path, confined: Confinement) -> None:
    parquet_bombs.seeds(tmp_path / "seeds.parquet", length=16 * MIB, rows=100_000)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        url = f"http://127.0.0.1:{server.server_port}/seeds.parquet"
        allowed = ["-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8"]
        ended = confined.run(
            ["crawl", "seeds", "-a", f"file={url}", "-a", f"out={tmp_path / 'out'}", *allowed],
            where=tmp_path,
            program="scrapy",
        )
        server.shutdown()
        thread.join()
    assert ended.is_orderly(), ended
    assert "seeds.parquet is refused: " in ended.errors, ended


CAPTURES: dict[str, list[str]] = {
    "inspect": ["inspect", "-n", "5", "captures.parquet"],
    "inspect a directory": ["inspect", "."],
    "query": ["query", "captures.parquet", "--sql", "SELECT max(length(url)) FROM captures"],
    "query all": ["query", "captures.parquet", "--sql", "FROM captures"],
    "recrawl": ["crawl", "captures.parquet", "-o", "out"],
    "summary": ["summary", "captures.parquet"],
}


@pytest.fixture(scope="module", params=[2 * MIB, 70 * MIB])
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("crawled")
    parquet_bombs.captures(directory / "captures.parquet", length=request.param, rows=3000)
    return directory


@pytest.mark.parametrize("command", CAPTURES)
def test_a_capture_index_costs_every_reader_little(
    command: str, crawled: Path, confined: Confinement
) -> None:
    ended = confined.run(CAPTURES[command], where=crawled)
    assert ended.is_orderly(), ended
    assert ended.code in (0, 3, 5, 10), ended


def test_the_report_of_the_dashboard_has_no_more_memory_than_it_may(
    crawled: Path, confined: Confinement
) -> None:
    ended = confined.run(
        ["captures.parquet", "j0b1d"], where=crawled, program="amicrawl.fleet.dashboard.summaries:main"
    )
    assert ended.is_orderly(), ended
    assert "captures.parquet" in ended.errors, ended


@pytest.mark.parametrize("command", ["summary", "summary --quick", "query"])
def test_an_index_table_costs_every_reader_little(
    command: str, tmp_path: Path, confined: Confinement
) -> None:
    parquet_bombs.index_table(tmp_path / "table.parquet", length=2 * MIB, rows=3000)
    requested = [*command.split(), "table.parquet"]
    if command == "query":
        requested += ["--sql", "SELECT max(length(url)) FROM ccindex"]
    ended = confined.run(requested, where=tmp_path)
    assert ended.is_orderly(), ended
    assert ended.code in (0, 3, 5, 10), ended


def test_ordinary_tables_are_read_whole_in_their_order(tmp_path: Path) -> None:
    urls = [f"https://host-{number % 997}.example/{number}" for number in range(50_000)]
    table = pa.table({"url": urls, "size": range(50_000), "kind": ["text/html"] * 50_000})
    choices: list[dict[str, Any]] = [
        {},
        {"use_dictionary": False},
        {"row_group_size": 7000},
        {"data_page_version": "2.0"},
    ]
    for number, options in enumerate(choices):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(table, path, **options)
        with ParquetTable(path, "it") as opened:
            read = pa.Table.from_batches(opened.batches(["url", "size", "kind"], rows=3000))
        assert read.equals(table)


def test_a_batch_is_smaller_where_values_are_large(tmp_path: Path) -> None:
    parquet_bombs.seeds(tmp_path / "a.parquet", length=MIB // 2, rows=100, values=100)
    with ParquetTable(tmp_path / "a.parquet", "it") as opened:
        sizes = [batch.nbytes for batch in opened.batches(["url"])]
    assert sum(sizes) >= 50 * MIB
    assert len(sizes) > 1
    assert max(sizes) <= BATCH_BYTES


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        (pa.array([["a"], ["b", "c"]]), "holds lists or records"),
        (pa.array([{"a": 1}, {"a": 2}]), "holds lists or records"),
    ],
)
def test_what_is_no_flat_column_is_refused(column: pa.Array[Any], reason: str, tmp_path: Path) -> None:
    pq.write_table(pa.table({"url": column}), tmp_path / "a.parquet")
    with (
        ParquetTable(tmp_path / "a.parquet", "it") as opened,
        pytest.raises(InputError, match=reason),
    ):
        list(opened.batches(["url"]))
