"""One's own SQL: the names that published queries use, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table.queried_captures import write_captures
from table.queried_table import EOT, write_file, write_partitions

from amicrawl.archive.table.query import QueryTable
from amicrawl.errors import InputError, OutputError, UsageError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_partitions(tmp_path_factory.mktemp("own") / "table")


def queried(path: Path, sql: str, *, restricted: bool = True) -> list[tuple[Any, ...]]:
    with QueryTable(path, restricted=restricted) as table:
        return [
            row
            for batch in table.ask_sql(sql).batches
            for row in zip(*[column.to_pylist() for column in batch.columns], strict=True)
        ]


@pytest.mark.parametrize(
    "name", ["ccindex", '"ccindex"."ccindex"', "eot", '"eot"."eot"', "index", '"index"']
)
def test_the_table_has_the_names_of_published_questions(name: str, folder: Path) -> None:
    assert queried(folder, f"SELECT count(*) FROM {name}") == [(41,)]


def test_the_table_is_described_as_published(folder: Path) -> None:
    """The description shows the 31 columns; those of the directories come last."""
    described = queried(folder, "DESCRIBE SELECT * FROM eot")
    assert [row[0] for row in described] == EOT.names
    types = {row[0]: row[1] for row in described}
    assert (types["url_port"], types["fetch_status"]) == ("INTEGER", "SMALLINT")
    assert (types["fetch_time"], types["warc_record_length"]) == ("TIMESTAMP", "BIGINT")
    assert all(row[2:] == ("YES", None, None, None) for row in described)


def test_files_are_read_by_their_own_names_too(tmp_path: Path) -> None:
    file = write_file(tmp_path / "EOTNL.parquet")
    for source in (f"read_parquet('{tmp_path}/*.parquet')", f"'{file}'", f"read_parquet('{file}')"):
        described = queried(tmp_path, f"DESCRIBE SELECT * FROM {source};")
        assert [row[0] for row in described] == EOT.names


def test_questions_to_a_capture_index_run_as_published(tmp_path: Path) -> None:
    file = write_captures(tmp_path / "captures.parquet")
    sql = f"SELECT url, json_extract_string(meta_json, '$.source') FROM '{file}' WHERE meta_json <> ''"
    assert ("http://a.test/", "hand") in queried(file, sql)
    assert queried(file, "SELECT count(*) FROM captures") == [(10,)]


EXPRESSIONS: Final[list[tuple[str, Any]]] = [
    ("regexp_like('xn--a', '^xn')", True),
    ("levenshtein_distance('exemple', 'example')", 1),
    ("cardinality(split('a.b.c', '.'))", 3),
    ("array_join(slice(split('a.b.c', '.'), 2, 2), '-')", "b-c"),
    ("array_join(reverse(split('a.b', '.')), '.')", "b.a"),
    ("reverse('ab')", "ba"),
    ("url_decode('a%20b')", "a b"),
    ("url_extract_host('https://u:p@EXAMPLE.com:8080/x?y#z')", "EXAMPLE.com"),
    ("url_extract_path('https://example.com/x/y?z=/')", "/x/y"),
    ("url_extract_query('https://example.com/x/y?z=/#f')", "z=/"),
    ("list_transform([1, 2], w -> w + 1)", [2, 3]),
    ("if(1 > 2, 'a', 'b')", "b"),
    ("contains(split('a,b', ','), 'b')", True),
    ("rlike('abc', 'b')", True),
    ("size(split('a.b', '.'))", 2),
    ("parse_url('https://example.com/x?y=1', 'HOST')", "example.com"),
    ("parse_url('https://example.com/x?y=1', 'QUERY')", "y=1"),
    ("get_json_object('{\"a\": {\"b\": 1}}', '$.a.b')", "1"),
    ("date_format(date_parse('20130225', '%Y%m%d'), '%Y-%m')", "2013-02"),
    ("map_filter(map(['a', 'b'], [1, 2]), lambda e: e.value > 1)", [("b", 2)]),
]


def test_functions_go_by_the_names_of_other_engines(folder: Path) -> None:
    listed = ", ".join(expression for expression, _ in EXPRESSIONS)
    (found,) = queried(folder, f"SELECT {listed} FROM ccindex LIMIT 1")
    for (expression, right), value in zip(EXPRESSIONS, found, strict=True):
        assert value == right, expression
    aggregated = "SELECT map_agg(k, v), approx_distinct(k) FROM (VALUES ('a', 1), ('b', 2)) t(k, v)"
    assert queried(folder, aggregated) == [([("a", 1), ("b", 2)], 2)]


def test_a_view_and_a_question_to_it_run_together(folder: Path) -> None:
    sql = """
      CREATE TEMP VIEW pairs AS SELECT content_languages AS l, count(*) AS n FROM ccindex GROUP BY 1;
      CREATE OR REPLACE MACRO twice(n) AS 2 * n;
      /* last */ SELECT l, twice(n) FROM pairs WHERE l = 'hun';
    """
    assert queried(folder, sql) == [("hun", 4)]


def test_what_is_only_spoken_of_in_a_string_or_a_comment_is_not_refused(folder: Path) -> None:
    sql = "EXPLAIN /* not ANALYZE, é */ SELECT url FROM ccindex WHERE url LIKE '%analyze%' -- analyse"
    assert queried(folder, sql)[0][0] == "physical_plan"


def test_a_pivot_runs_if_its_values_are_named_and_says_so_otherwise(folder: Path) -> None:
    named = "PIVOT ccindex ON fetch_status IN (200) USING count(*) GROUP BY url_host_tld"
    assert queried(folder, named)
    for sql in (
        "PIVOT ccindex ON fetch_status USING count(*)",
        "WITH p AS (PIVOT ccindex ON fetch_status USING count(*)) FROM p",
    ):
        with pytest.raises(UsageError, match="Name the values"):
            queried(folder, sql)


@pytest.mark.parametrize(
    "sql",
    [
        "COPY (SELECT 1) TO '{place}/taken.csv'",
        "WITH x AS (COPY (SELECT 1) TO '{place}/taken.csv') SELECT * FROM x",
        "CREATE TABLE t AS WITH x AS (COPY (SELECT 1) TO '{place}/taken.csv') SELECT * FROM x; SELECT 1",
        "EXPLAIN ANALYZE COPY (SELECT 1) TO '{place}/taken.csv'",
        "EXPLAIN (ANALYZE) COPY (SELECT 1) TO '{place}/taken.csv'",
        "EXPLAIN /* 'é */ (FORMAT JSON, \"Analyse\") COPY (SELECT 1) TO '{place}/taken.csv'",
        "PIVOT (WITH x AS (COPY (SELECT 1) TO '{place}/taken.csv') FROM ccindex) ON url USING count(*)",
        "SELECT 1; COPY (SELECT 1) TO '{place}/taken.csv'; SELECT 2",
        "SELECT * FROM query('WITH x AS (COPY (SELECT 1) TO ''{place}/taken.csv'') SELECT * FROM x')",
        "PREPARE p AS COPY (SELECT 1) TO '{place}/taken.csv'; EXECUTE p",
        "CREATE MACRO m() AS TABLE WITH x AS (COPY (SELECT 1) TO '{place}/taken.csv') FROM x; FROM m()",
        "EXPORT DATABASE '{place}/taken.csv'",
        "ATTACH '{place}/taken.csv'",
        "SET enable_external_access = true",
        "RESET lock_configuration",
        "PRAGMA enable_external_access = true",
        "INSTALL httpfs",
        "LOAD '{place}/x.duckdb_extension'",
        "CREATE PERSISTENT SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
        "CREATE /* */ SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
        "CALL pragma_version()",
        "DROP VIEW ccindex",
        "INSERT INTO ccindex SELECT * FROM ccindex",
        "WITH x AS (INSERT INTO ccindex SELECT * FROM ccindex) SELECT 1",
        "SELECT * FROM read_csv('{outside}')",
        "SELECT * FROM read_text('{outside}')",
        "SELECT * FROM read_blob('{place}/../outside.csv')",
        "SELECT * FROM glob('{outside}')",
        "SELECT * FROM '{outside}'",
        "SELECT * FROM read_csv('http://127.0.0.1:9/x.csv')",
        "SELECT * FROM read_parquet('s3://bucket/x.parquet')",
        "SELECT * FROM folder",
        "SELECT getenv('HOME')",
        "CREATE VIEW v AS SELECT 1",
        "",
        "-- nothing",
        "SELECT nope FROM ccindex",
        "SELEKT 1",
        "SELECT CAST(url AS INTEGER) FROM ccindex",
    ],
)
def test_what_would_do_more_than_read_the_table_is_refused(sql: str, folder: Path) -> None:
    outside = folder.parent / "outside.csv"
    outside.write_text("secret\n1\n")
    before = sorted(folder.parent.rglob("*"))
    with pytest.raises(UsageError) as refused:
        queried(folder, sql.format(place=folder, outside=outside))
    assert "secret\n" not in str(refused.value)
    assert sorted(folder.parent.rglob("*")) == before


def test_without_restrictions_the_engine_does_what_its_user_may(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("url\nhttp://example.com/\n")
    sql = f"SELECT count(*) FROM ccindex JOIN read_csv('{tmp_path}/other.csv') USING (url)"
    assert queried(folder, sql, restricted=False) == [(1,)]
    assert queried(folder, f"COPY (SELECT 1 AS a) TO '{tmp_path}/out.csv'; SELECT 1", restricted=False)
    assert (tmp_path / "out.csv").exists()


def test_a_question_that_needs_more_memory_than_there_is_says_so(folder: Path) -> None:
    sql = (
        "SET memory_limit = '20MB'; SET temp_directory = ''; SET threads = 1;"
        "SELECT md5(i::VARCHAR) AS m FROM range(2000000) t(i) ORDER BY m"
    )
    with pytest.raises(OutputError, match="needs more memory, or more room in"):
        queried(folder, sql, restricted=False)


def test_a_file_that_is_opened_alone_hides_its_neighbours(tmp_path: Path) -> None:
    one = write_file(tmp_path / "one.parquet")
    two = write_file(tmp_path / "two.parquet")
    with pytest.raises(UsageError, match=r"Only .* can be read"):
        queried(one, f"SELECT * FROM '{two}'")


def test_a_mistake_is_shown_where_it_stands(folder: Path) -> None:
    with pytest.raises(UsageError) as refused:
        queried(folder, "SELECT url,\n  urll\nFROM ccindex")
    assert "LINE 2:   urll\n" in str(refused.value)
    assert "EXPLAIN" not in str(refused.value)


def test_explanations_are_shown(folder: Path) -> None:
    ((_, plan),) = queried(folder, "EXPLAIN SELECT count(*) FROM ccindex WHERE crawl = 'EOT-2012'")
    assert "EOT-2012" in plan


def test_names_with_signs_of_patterns_are_names(tmp_path: Path) -> None:
    folder = write_partitions(tmp_path / "we[i]rd ta'ble *")
    assert queried(folder, "SELECT count(*) FROM ccindex") == [(41,)]


def test_what_is_hidden_or_being_written_does_not_count(tmp_path: Path) -> None:
    folder = write_partitions(tmp_path / "table")
    (folder / "_temporary").mkdir()
    (folder / "_temporary" / "part.parquet").write_text("half")
    (folder / ".part.parquet").write_text("half")
    (folder / "part.parquet.open").write_text("half")
    assert queried(folder, "SELECT count(*) FROM ccindex") == [(41,)]


def test_a_place_without_a_table_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "text.parquet").write_text("this is not Parquet, however long it is")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    both = tmp_path / "both"
    write_captures(both / "captures.parquet")
    write_file(both / "part.parquet")
    for name, words in (
        ("missing", "does not exist"),
        ("empty", "holds no Parquet file"),
        ("text.parquet", "is not a complete Parquet file: it does not end"),
        ("other.parquet", "is not a table to query"),
        ("both", "holds both"),
    ):
        with pytest.raises(InputError, match=words) as missed:
            QueryTable(tmp_path / name)
        assert name in str(missed.value)


def test_a_table_that_is_cut_is_named_while_it_is_read(tmp_path: Path) -> None:
    file = write_file(tmp_path / "t.parquet")
    whole = file.read_bytes()
    file.write_bytes(b"PAR1" + bytes(len(whole) // 2) + whole[4 + len(whole) // 2 :])
    with pytest.raises((InputError, UsageError), match=r"t\.parquet|SQL"):
        queried(file, "SELECT url FROM ccindex ORDER BY url")
