"""Every shipped query runs, and returns what was worked out by hand for a small table."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from table.queried_captures import write_captures, write_rows
from table.queried_crawls import write_crawls, write_crawls_table
from table.queried_table import CCINDEX, EOT, cdxj_lines, write_file, write_partitions

from amicrawl.archive.table.builder import TableOptions, make_table
from amicrawl.archive.table.named_queries import macros, named_queries, named_query
from amicrawl.archive.table.query import QueryTable
from amicrawl.archive.table.schema import SCHEMAS
from amicrawl.disk import Disk
from amicrawl.errors import InputError, UsageError
from amicrawl.record.table import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.archive.table.query import QueryResult

DATA = Path(__file__).parent / "data"
PUBLISHED = {
    "count_by_partition",
    "count_by_tld_page_host_domain",
    "count_domains_of_tld",
    "count_fetch_status",
    "count_hostname_elements",
    "count_url_path_elements",
    "count_idna",
    "count_robotstxt_url_paths",
    "count_domains_alexa_top_1m",
    "compare_mime_type_http_vs_detected",
    "average_warc_record_length_by_mime_type",
    "host_length_distrib",
    "get_records_of_domain",
    "get_records_of_mime_type",
    "get_records_for_language",
    "get_home_pages_languages",
    "get_records_home_pages",
    "get_records_robotstxt",
    "random_sample_urls",
    "random_sample_extract",
    "similar_domains",
    "count_language_tld",
    "loglikelihood_language_tld",
    "correlation_language_charset",
    "site_discovery_by_language",
    "discovery_of_non_english_sites",
    "get_language_translations_url_path",
    "site_discovery_hungarian",
}


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("queried")
    return {
        "eot": write_partitions(directory / "eot"),
        "ccindex": write_partitions(directory / "cc", CCINDEX),
        "captures": write_captures(directory / "crawl" / "captures.parquet"),
        "captures_twice": write_captures(directory / "twice" / "captures.parquet", twice=True),
        "captures_crawls": write_crawls(directory / "crawls" / "captures.parquet"),
        "crawls": write_crawls_table(directory / "compared" / "crawls.parquet"),
    }


def values_of(result: QueryResult) -> list[list[Any]]:
    """Return the rows as the stored results write them."""
    return [
        [_stored(value) for value in row]
        for batch in result.batches
        for row in zip(*[column.to_pylist() for column in batch.columns], strict=True)
    ]


def _stored(value: Any) -> Any:
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return {str(key): each for key, each in value}
    if isinstance(value, datetime):
        return str(value)
    return value.isoformat() if isinstance(value, date) else value


def expected(name: str) -> dict[str, Any]:
    file = DATA / "answers" / f"{name}.json"
    assert file.exists(), f"{name} has no expected result: work one out by hand"
    found: dict[str, Any] = json.loads(file.read_text())
    return found


def chosen(parameters: Mapping[str, str]) -> dict[str, str]:
    return {name: str(DATA / value) if name == "sites" else value for name, value in parameters.items()}


@pytest.mark.parametrize("name", named_queries())
def test_every_query_returns_what_was_worked_out_by_hand(name: str, tables: dict[str, Path]) -> None:
    right = expected(name)
    with QueryTable(tables[right["table"]]) as table:
        result = table.ask(named_query(name), chosen(right["parameters"]))
        assert result.schema.names == right["columns"]
        rows = values_of(result)
    assert len(rows) == len(right["rows"])
    for row, right_row in zip(rows, right["rows"], strict=True):
        for value, right_value in zip(row, right_row, strict=True):
            assert value == (
                pytest.approx(right_value, rel=1e-9) if isinstance(right_value, float) else right_value
            )


def test_tables_that_are_made_of_an_index_give_the_same_results(tmp_path: Path) -> None:
    """The URL columns were written down by hand above; here they come from the lines."""
    (tmp_path / "all.cdxj").write_text("".join(cdxj_lines()))
    for name in ("eot", "ccindex"):
        report = make_table(
            [tmp_path / "all.cdxj"],
            tmp_path / name,
            disk=Disk(),
            options=TableOptions(schema=SCHEMAS[name]),
        )
        assert (report.rows, report.rejects) == (41, 0)
    for queried in named_queries().values():
        right = expected(queried.name)
        if right["table"] in SCHEMAS:
            with QueryTable(tmp_path / right["table"]) as table:
                rows = values_of(table.ask(queried, chosen(right["parameters"])))
            assert [_rounded(row) for row in rows] == [_rounded(row) for row in right["rows"]], (
                queried.name
            )


def _rounded(row: list[Any]) -> list[Any]:
    return [round(value, 9) if isinstance(value, float) else value for value in row]


def test_the_hand_made_table_has_the_columns_of_those_that_are_made() -> None:
    for ours, right in ((EOT, SCHEMAS["eot"].columns), (CCINDEX, SCHEMAS["ccindex"].columns)):
        types = {field.name: field.type for field in right}
        assert all(types[field.name] == field.type for field in ours)
    assert EOT.names == SCHEMAS["eot"].columns.names


def test_all_published_questions_are_there() -> None:
    assert len(PUBLISHED) == 28
    assert set(named_queries()) >= PUBLISHED


def test_every_expected_result_has_a_question_and_rows() -> None:
    for file in (DATA / "answers").iterdir():
        assert file.stem in named_queries()
        assert json.loads(file.read_text())["rows"], f"{file.name}: an empty result proves nothing"


def test_what_is_shown_runs_without_parameters_in_an_engine_that_knows_nothing_of_us(
    tables: dict[str, Path],
) -> None:
    with ExitStack() as opened, duckdb.connect() as engine:
        requested_of = {name: opened.enter_context(QueryTable(path)) for name, path in tables.items()}
        for name, queried in named_queries().items():
            right = expected(name)
            table = requested_of[right["table"]]
            values = chosen(right["parameters"])
            assert table.script(queried, values).endswith(f"{queried.sql(values)};")
            script = table.script(queried, {})
            assert script.startswith(f"-- {queried.sentence}")
            *before, last = duckdb.extract_statements(script)
            engine.begin()
            for statement in before:
                engine.execute(statement)
            assert engine.sql(last.query).columns == right["columns"], name
            engine.rollback()


@pytest.mark.parametrize("name", named_queries())
def test_a_question_tells_the_columns_that_it_needs(name: str) -> None:
    queried = named_query(name)
    known = {field.name for field in ((*EOT, *CCINDEX) if queried.relation == "ccindex" else CAPTURES)}
    named = set(re.findall(r"\w+", re.sub(r"\$\w+", "", queried.statement))) & known
    assert {*queried.columns, *queried.optional} == named


@pytest.mark.parametrize("name", named_queries())
def test_every_parameter_has_its_place_and_every_place_a_parameter(name: str) -> None:
    queried = named_query(name)
    filled = queried.sql({})
    assert "$" not in filled.replace("'$.\"'", "").replace("$'", "")
    for parameter in queried.parameters:
        assert parameter.kind == "ranking" or f"${parameter.name}" in queried.statement


@pytest.mark.parametrize("moment", ["2026-11-23", "2026-11-23T12:30", "2026-11-23 12:30:59Z"])
def test_a_time_is_written_in_the_usual_ways(moment: str) -> None:
    assert f"'{moment}'" in named_query("captures_new_since").sql({"since": moment})


@pytest.mark.parametrize("moment", ["", "yesterday", "2026-13-01", "2026-11-23T24:00", "2026-11-23'"])
def test_what_is_not_a_time_is_refused(moment: str) -> None:
    with pytest.raises(UsageError, match="time in UTC"):
        named_query("captures_new_since").sql({"since": moment})


def test_every_macro_can_be_made_alone() -> None:
    with duckdb.connect() as engine:
        for name, made in macros().items():
            engine.begin()
            engine.execute(made)
            known = engine.execute("SELECT function_name FROM duckdb_functions() WHERE NOT internal")
            assert name in {function for (function,) in known.fetchall()}
            engine.rollback()


def test_rows_without_a_partition_count_as_successful_captures(tmp_path: Path) -> None:
    """What is not named like a crawl's files lands in the default partition, and is requested too."""
    folder = tmp_path / "crawl=__HIVE_DEFAULT_PARTITION__" / "subset=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir(parents=True)
    write_file(
        folder / "part.parquet",
        pa.schema([each for each in EOT if each.name not in {"crawl", "subset"}]),
    )
    with QueryTable(tmp_path) as table:
        assert values_of(table.ask(named_query("count_idna"), {})) == [["xn--mnchen-3ya.de"] * 2 + [1]]
    with QueryTable(tmp_path) as table:
        assert values_of(table.ask(named_query("count_by_partition"), {})) == [[None, None, 41]]


def test_the_page_on_questions_names_them_all() -> None:
    page = (Path(__file__).parents[2] / "docs" / "queries.md").read_text()
    for name, queried in named_queries().items():
        assert f"`{name}`" in page
        assert queried.sentence in page
    for name in macros():
        assert f"`{name}`" in page


def test_a_single_file_gives_the_results_of_partitions(tables: dict[str, Path], tmp_path: Path) -> None:
    write_file(tmp_path / "EOTNL.parquet")
    for name in ("count_by_partition", "get_records_of_domain"):
        with QueryTable(tmp_path / "EOTNL.parquet") as one, QueryTable(tables["eot"]) as many:
            parameters = {"domain": "anl.gov"} if name == "get_records_of_domain" else {}
            assert values_of(one.ask(named_query(name), parameters)) == values_of(
                many.ask(named_query(name), parameters)
            )


def test_one_partition_is_a_table_too(tables: dict[str, Path]) -> None:
    with QueryTable(tables["eot"] / "crawl=EOT-2012" / "subset=warc") as table:
        assert values_of(table.ask(named_query("count_by_partition"), {})) == [["EOT-2012", "warc", 14]]


def test_files_of_different_ages_are_united(tmp_path: Path) -> None:
    write_file(tmp_path / "a.parquet", pa.schema([each for each in EOT if each.name != "content_puid"]))
    write_file(tmp_path / "b.parquet", EOT)
    with QueryTable(tmp_path) as table:
        found = values_of(table.ask_sql("SELECT count(*), count(content_puid) FROM ccindex"))
    assert found == [[82, 12]]


def test_indexes_of_several_crawls_add_up(tmp_path: Path) -> None:
    for run in ("one", "two"):
        write_captures(tmp_path / run / "captures.parquet")
    for path in (tmp_path, tmp_path / "*" / "captures.parquet"):
        with QueryTable(path) as table:
            assert values_of(table.ask(named_query("captures_count"), {})) == [[20, 14, 6, 2, 104_204]]


@pytest.mark.parametrize(
    "name",
    [
        *("captures_failures", "captures_seeds_to_retry", "captures_unchanged_by_host"),
        *("captures_linked_from", "pages_not_shown", "pages_not_whole"),
    ],
)
def test_a_seed_that_is_listed_twice_counts_by_its_capture(name: str, tmp_path: Path) -> None:
    """The row of its second line is the newest, and no fetch: the seed was to be retried."""
    page = {"url": "http://a.test/", "host": "a.test", "via": "http://b.test/", "status": 200}
    page |= {"link": "requisite", "meta_json": '{"page_fault":"timeout"}', "unchanged": True}
    repeated = {"url": page["url"], "host": "a.test", "fetched_at": 2, "error": "repeated-seed: so"}
    values = {"url": "http://b.test/"} if name == "captures_linked_from" else {}
    found = []
    for rows in ([page], [page, repeated]):
        with QueryTable(write_rows(rows, tmp_path / "captures.parquet")) as table:
            found.append(values_of(table.ask(named_query(name), values)))
    assert found[0] == found[1]


@pytest.mark.parametrize("name", ["*", 'a"b', "a.b", "a\\b", "a/b", "a~b", "~1", "", "q'r", "0", "é"])
def test_metadata_have_any_name(name: str, tmp_path: Path) -> None:
    """An asterisk stood for all fields, and a quotation mark was an error that named the table."""
    rows = [{"url": "u", "meta_json": json.dumps({name: "1", "other": "2"})}]
    with QueryTable(write_rows(rows, tmp_path / "captures.parquet")) as table:
        assert values_of(table.ask(named_query("captures_metadata"), {"name": name})) == [["u", "1"]]
    with QueryTable(tmp_path / "captures.parquet") as table:
        assert values_of(table.ask(named_query("captures_by_metadata"), {"name": name})) == [["1", 1, 0]]


def test_robots_txt_is_no_seed_to_retry(tmp_path: Path) -> None:
    links = ["", "seed", "redirect", "robots", "link", "requisite"]
    rows = [{"url": f"http://a.test/{link}", "link": link, "status": 503} for link in links]
    with QueryTable(write_rows(rows, tmp_path / "captures.parquet")) as table:
        found = values_of(table.ask(named_query("captures_seeds_to_retry"), {}))
    assert [row[0] for row in found] == [f"http://a.test/{link}" for link in ("", "redirect", "seed")]


@pytest.mark.parametrize(("match", "urls"), [("only", 2), ("primary", 3), ("any", 4)])
def test_a_language_may_be_the_only_one_the_first_or_any(
    match: str, urls: int, tables: dict[str, Path]
) -> None:
    with QueryTable(tables["eot"]) as table:
        rows = values_of(table.ask(named_query("get_records_for_language"), {"match": match}))
    assert len(rows) == urls


def test_a_sample_is_the_same_however_the_table_is_cut(tables: dict[str, Path], tmp_path: Path) -> None:
    write_file(tmp_path / "one.parquet")
    samples = []
    for path, seed in ((tables["eot"], "1"), (tmp_path / "one.parquet", "1"), (tables["eot"], "2")):
        with QueryTable(path) as table:
            samples.append(
                values_of(table.ask(named_query("random_sample_urls"), {"percent": "40", "seed": seed}))
            )
    assert samples[0] == samples[1]
    assert samples[0] != samples[2]
    for percent, count in (("0", 0), ("100", 36)):
        with QueryTable(tables["eot"]) as table:
            assert (
                len(values_of(table.ask(named_query("random_sample_urls"), {"percent": percent})))
                == count
            )


def test_rankings_come_with_and_without_a_header(tables: dict[str, Path], tmp_path: Path) -> None:
    right = [[1, "anl.gov", 7], [2, "ruv.is", 4]]
    for text in (
        "1,anl.gov\n2,ruv.is\n",
        "anl.gov\nruv.is\n",
        "\ufeffGlobalRank,TLD,Domain\n1,gov,ANL.gov\n2,is,ruv.is\n",
        "site\nanl.gov\nruv.is\n",
    ):
        (tmp_path / "sites.csv").write_text(text)
        with QueryTable(tables["eot"]) as table:
            queried = named_query("count_domains_alexa_top_1m")
            assert values_of(table.ask(queried, {"sites": str(tmp_path / "sites.csv")})) == right


def test_a_question_by_domain_or_crawl_reads_what_it_needs_of_a_sorted_table(tmp_path: Path) -> None:
    rows = [
        {
            "url_surtkey": f"com,d{number // 100:05d})/{number:06d}",
            "url_host_registered_domain": f"d{number // 100:05d}.com",
        }
        for number in range(20_000)
    ]
    for crawl in ("A", "B"):
        folder = tmp_path / f"crawl={crawl}" / "subset=warc"
        folder.mkdir(parents=True)
        in_files = pa.schema([field for field in EOT if field.name not in {"crawl", "subset"}])
        pq.write_table(
            pa.Table.from_pylist(rows, schema=in_files), folder / "part.parquet", row_group_size=1000
        )
    sql = named_query("get_records_of_domain").sql({"domain": "d00077.com", "crawl": "B"})
    with QueryTable(tmp_path, restricted=False) as table:
        ((_, plan),) = values_of(table.ask_sql(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}"))
    assert '"Total Files Read": "1"' in plan
    assert '"row_groups_scanned": 1,' in plan
    assert '"total_row_groups_to_scan": 20,' in plan


def test_a_value_stays_a_value(tables: dict[str, Path]) -> None:
    with QueryTable(tables["eot"]) as table:
        hostile = "' OR 1 = 1 --"
        assert values_of(table.ask(named_query("get_records_of_domain"), {"domain": hostile})) == []


def test_a_name_that_would_stand_for_other_files_too_is_refused(
    tables: dict[str, Path], tmp_path: Path
) -> None:
    content = next(tables["eot"].rglob("*.parquet")).read_bytes()
    (tmp_path / "a*.parquet").write_bytes(content)
    with QueryTable(tmp_path / "a*.parquet") as alone:
        (whole,) = alone.ask_sql("SELECT count(*) AS n FROM ccindex").batches
    assert whole["n"].to_pylist() == [pq.read_metadata(tmp_path / "a*.parquet").num_rows]
    (tmp_path / "ab.parquet").write_bytes(content)
    with pytest.raises(InputError, match="cannot be distinguished from files beside it"):
        QueryTable(tmp_path)
