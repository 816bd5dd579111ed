"""`amicrawl query`: what it prints and writes, what it says of mistakes, how much memory it takes."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import typer
import warm_processes
from table.queried_captures import write_captures
from table.queried_table import EOT, write_file, write_partitions
from typer.testing import CliRunner

from amicrawl.archive.table.named_queries import named_queries
from amicrawl.cli.query import query
from amicrawl.errors import AmicrawlError, ExitCode, InputError, OutputError, UsageError

app = typer.Typer()
app.command()(query)

MANY = "SELECT i, 'http://example.com/' || i AS url FROM range(500000) t(i)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_partitions(tmp_path_factory.mktemp("command") / "table")


def shown(*arguments: object, given: str | None = None) -> str:
    """Return what the command prints; an error of ours is raised."""
    result = CliRunner().invoke(app, [str(argument) for argument in arguments], input=given)
    if isinstance(result.exception, AmicrawlError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_a_result_is_a_table_for_people(folder: Path) -> None:
    assert shown(folder, "count_by_partition") == (
        "crawl            subset           captures\n"
        "CC-MAIN-2013-20  crawldiagnostics         2\n"
        "CC-MAIN-2013-20  robotstxt                5\n"
        "CC-MAIN-2013-20  warc                    20\n"
        "EOT-2012         warc                    14\n"
        "(4 rows)\n"
    ).replace("subset           captures", "subset            captures")


def test_a_question_is_found_by_its_published_name_too(folder: Path) -> None:
    assert shown(folder, "count-by-partition") == shown(folder, "count_by_partition.sql")


def test_a_result_is_csv(folder: Path) -> None:
    printed = shown(folder, "count_hostname_elements", "-p", "at_least=7", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(printed)))
    assert rows[1] == {"label": "www", "frequency": "12", "positions": '{"3": 11, "5": 1}'}


def test_a_result_is_json(folder: Path) -> None:
    printed = shown(folder, "count_by_tld_page_host_domain", "--format", "json")
    found = json.loads(printed)
    assert found[0] == {"tld": "gov", "pages": 13, "hosts": 4, "domains": 2}
    assert found[-1] == {"tld": None, "pages": 1, "hosts": 1, "domains": 0}
    assert json.loads(shown(folder, "count_idna", "-p", "crawl=NONE", "--format", "json")) == []
    odd = "SELECT 1::DOUBLE / 0 AS a, 'x' || chr(127) AS b, 12345678901234567890123::HUGEINT AS c, 1.5 d"
    printed = shown(folder, "--sql", odd, "--format", "json")
    assert json.loads(printed) == [{"a": None, "b": "x\x7f", "c": 12345678901234567890123, "d": 1.5}]
    assert "\x7f" not in printed


def test_json_is_one_object_a_line_as_in_other_commands(folder: Path) -> None:
    lines = shown(folder, "count_by_tld_page_host_domain", "--json").splitlines()
    assert json.loads(lines[0]) == {"tld": "gov", "pages": 13, "hosts": 4, "domains": 2}
    listed = [json.loads(line) for line in shown("--list", "--json").splitlines()]
    (found,) = (each for each in listed if each["name"] == "count_domains_of_tld")
    assert found["parameters"]["tld"] == "gov"
    with pytest.raises(UsageError, match="--json is --format jsonl"):
        shown(folder, "count_idna", "--json", "--format", "csv")


@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_a_file_is_written_as_its_name_ends(ending: str, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / f"result.{ending}"
    out.write_text("what was there before")
    assert shown(folder, "get_records_of_domain", "-p", "domain=anl.gov", "-o", out) == ""
    assert list(tmp_path.iterdir()) == [out]
    if ending == "parquet":
        table = pq.read_table(out)
        assert table.num_rows == 7
        assert table.schema.names == ["url", "warc_filename", "warc_record_offset", "warc_record_length"]
    elif ending == "json":
        assert len(json.loads(out.read_text())) == 7
    else:
        assert len(out.read_text().splitlines()) == 8


def test_a_parquet_result_keeps_maps_and_times(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "result.parquet"
    shown(folder, "count_by_month", "-o", out)
    assert pq.read_schema(out).field("month").type == pa.date32()
    shown(folder, "count_hostname_elements", "-o", out)
    assert pa.types.is_map(pq.read_schema(out).field("positions").type)


def test_sql_comes_from_standard_input(folder: Path) -> None:
    assert "41" in shown(folder, "--sql", "-", given="SELECT count(*)\nFROM ccindex -- all\n;\n")


def test_maps_within_lists_and_records_are_objects_too(folder: Path) -> None:
    """They were lists of pairs, in which NaN was left, which is no JSON."""
    sql = (
        "SELECT [map {'a': 'nan'::DOUBLE}, NULL] AS m, {'x': map {'b': [map {1: 2}]}, 'y': NULL} AS n, "
        "map {[1]: map {'c': 0.5::DOUBLE}} AS o, union_value(k := [1]) AS u"
    )
    assert json.loads(shown(folder, "--sql", sql, "--json"), parse_constant=pytest.fail) == {
        "m": [{"a": None}, None],
        "n": {"x": {"b": [{"1": 2}]}, "y": None},
        "o": {"[1]": {"c": 0.5}},
        "u": [1],
    }


def test_two_columns_may_have_one_name(folder: Path) -> None:
    assert shown(folder, "--sql", "SELECT 1 AS a, 2 AS a", "--format", "csv") == "a,a\n1,2\n"


@pytest.mark.parametrize("form", ["table", "csv", "json", "jsonl"])
def test_times_beyond_the_years_of_python_are_shown(form: str, folder: Path) -> None:
    """A table may come from anyone, and one such value in it is no reason to show nothing."""
    sql = (
        "SELECT * FROM (VALUES ('infinity'::TIMESTAMP, DATE '5881580-07-10'), "
        "(TIMESTAMP '2026-01-02 03:04:05', DATE '2026-01-02')) t(a, b)"
    )
    printed = shown(folder, "--sql", sql, "--format", form)
    assert "2026-01-02 03:04:05" in printed
    assert printed.count("out of range") == 2


def test_what_comes_from_the_web_is_harmless_in_the_table(folder: Path) -> None:
    printed = shown(folder, "--sql", "SELECT 'a' || chr(27) || '[2J' || chr(10) || 'b' AS x")
    assert "\x1b" not in printed
    assert "a\\x1b[2J\\nb" in printed


def test_all_queries_are_listed_or_those_that_a_table_has_columns_for(
    folder: Path, tmp_path: Path
) -> None:
    listed = shown("--list")
    assert all(
        name in listed and queried.sentence in listed for name, queried in named_queries().items()
    )
    here = shown(folder, "--list").splitlines()
    assert "count_by_month" in here
    assert "list_redirect_targets" not in here
    assert "captures_by_status" not in here
    crawl = shown(write_captures(tmp_path / "captures.parquet"), "--list").splitlines()
    assert "captures_by_status" in crawl
    assert "count_by_month" not in crawl


def test_the_sql_is_shown_with_and_without_a_table(folder: Path) -> None:
    assert shown("--show", "count_by_month") == named_queries()["count_by_month"].text
    script = shown(folder, "--show", "count_domains_of_tld", "-p", "tld=o'x")
    assert "url_host_tld = 'o''x'" in script
    assert "read_parquet([" in script


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["count_by_moth"], r"no query count_by_moth \(did you mean count_by_month\?\)"),
        (["zzz"], "no query zzz. amicrawl query --list"),
        (["count_by_month", "-p", "craw=x"], r"no parameter craw \(did you mean crawl\?\)"),
        (["count_by_partition", "-p", "x=1"], "It has none"),
        (["count_by_month", "-p", "crawl"], "--param 'crawl' is not NAME=VALUE"),
        (["count_language_tld", "-p", "at_least=many"], "at_least is a whole number"),
        (["random_sample_urls", "-p", "percent=1;2"], "percent is a number"),
        (["get_records_for_language", "-p", "match=some"], "one of only, primary, any"),
        (["captures_by_status"], "reads a capture index"),
        (["list_redirect_targets"], "needs the column fetch_redirect"),
        (["count_by_month", "--format", "xml"], "no format xml"),
        ([], "Say which table"),
        (["count_by_month", "--sql", "SELECT 1"], "Say which table"),
        (["--sql", "SELECT 1", "-p", "a=b"], "belong to shipped queries"),
        (["--sql", "SELECT 1 AS \udcff"], "This SQL is not UTF-8"),
        (["get_records_of_domain", "-p", "domain=\udcff"], "A value of --param is not UTF-8"),
        (["--sql", "SELECT 1 AS a, 2 AS a", "--json"], "Two columns of this result are called a"),
        (["--sql", "SELECT INTERVAL 1 MONTH i", "--format", "parquet"], "Parquet cannot hold this"),
        (["--sql", "SELECT {'t': 'infinity'::TIMESTAMP} AS s"], "with a time that cannot be shown"),
    ],
)
def test_mistakes_are_named_in_a_sentence(arguments: list[str], words: str, folder: Path) -> None:
    with pytest.raises(UsageError, match=words):
        shown(folder, *arguments)


def test_columns_of_directories_are_missed_by_name(tmp_path: Path) -> None:
    in_files = pa.schema([field for field in EOT if field.name not in {"crawl", "subset"}])
    file = write_file(tmp_path / "part.parquet", in_files)
    with pytest.raises(UsageError, match=r"needs the column crawl, subset.*directories crawl="):
        shown(file, "count_by_month")


def test_a_ranking_that_is_none_is_named(folder: Path, tmp_path: Path) -> None:
    queried = "count_domains_alexa_top_1m"
    with pytest.raises(InputError, match=r"ranking .*missing\.csv cannot be read"):
        shown(folder, queried, "-p", f"sites={tmp_path}/missing.csv")
    (tmp_path / "sites.csv").write_text("here,are,no,ranks\n")
    with pytest.raises(InputError, match=r"sites\.csv begins with neither"):
        shown(folder, queried, "-p", f"sites={tmp_path}/sites.csv")


@pytest.mark.parametrize("rows", ["1,a.test\nfirst,b.test\n", "1,a.test,x\n2\n"])
def test_a_ranking_that_breaks_off_is_named_and_not_the_table(
    rows: str, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "sites.csv").write_text(rows)
    with pytest.raises(InputError, match=r"sites\.csv cannot be read as a table"):
        shown(folder, "count_domains_alexa_top_1m", "-p", f"sites={tmp_path}/sites.csv")


def test_a_result_does_not_land_in_the_table_or_nowhere(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="would become a part of the table"):
        shown(folder, "count_by_month", "-o", folder / "result.parquet")
    with pytest.raises(OutputError, match="there is no directory"):
        shown(folder, "count_by_month", "-o", tmp_path / "nowhere" / "result.csv")


def test_a_result_does_not_replace_what_is_queried(tmp_path: Path) -> None:
    """The index of a crawl was gone, and a count in its place."""
    (tmp_path / "run").mkdir()
    written = write_captures(tmp_path / "run/captures.parquet")
    before = written.read_bytes()
    (tmp_path / "link.parquet").symlink_to(written)
    for table, out in [
        (written, written),
        (written, tmp_path / "link.parquet"),
        (tmp_path / "*/captures.parquet", written),
    ]:
        with pytest.raises(UsageError, match="is what is queried, and would be written over"):
            shown(table, "captures_count", "-o", out)
    assert written.read_bytes() == before


def test_a_cr_in_a_value_is_no_end_of_a_line_of_csv(folder: Path, tmp_path: Path) -> None:
    """Readers take a CR that is not quoted for the end of a row."""
    values = ["a\rb", "a\nb", "a\r\nb", "\r", 'a"\r', ""]
    sql = " UNION ALL ".join(f"SELECT '{value}' AS v, {at} AS n" for at, value in enumerate(values))
    shown(folder, "--sql", f"{sql} ORDER BY n", "-o", tmp_path / "result.csv")
    with (tmp_path / "result.csv").open(newline="") as lines:
        rows = list(csv.reader(lines))
    assert rows == [["v", "n"], *[[value, str(at)] for at, value in enumerate(values)]]


def test_sql_for_a_table_that_is_not_there_is_told_what_it_is_called(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"is called ccindex in SQL"):
        shown(folder, "--sql", 'SELECT count(*) FROM "table"')


def test_a_failure_on_the_way_leaves_no_whole_file(folder: Path, tmp_path: Path) -> None:
    failing = (
        "SELECT CASE WHEN i < 200000 THEN i ELSE CAST('x' || i AS BIGINT) END AS a "
        "FROM range(300000) t(i)"
    )
    with pytest.raises(UsageError, match="cannot be run"):
        shown(folder, "--sql", failing, "-o", tmp_path / "result.csv")
    assert not (tmp_path / "result.csv").exists()


def test_what_the_page_on_questions_shows_runs_as_it_stands_there(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "queries.md").read_text()
    write_partitions(tmp_path / "table")
    write_captures(tmp_path / "ami-out" / "captures.parquet")
    (block,) = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    (code,) = (
        each for each in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "QueryTable" in each
    )
    with contextlib.chdir(tmp_path):
        for line in block.splitlines():
            words = shlex.split(line, comments=True)
            assert words[:2] == ["amicrawl", "query"]
            given = "SELECT 1" if "<" in words else None
            assert shown(*words[2 : words.index("<") if given else None], given=given) or "-o" in words
        assert (tmp_path / "records.csv").exists()
        exec(compile(code, "queries.md", "exec"), {})


def test_records_that_could_not_be_exported_are_told(folder: Path, tmp_path: Path) -> None:
    queried = [
        str(folder),
        "get_records_of_domain",
        "--archives",
        str(tmp_path),
        "--warc",
        str(tmp_path / "w"),
    ]
    result = CliRunner().invoke(app, queried)
    assert result.exit_code == 5
    assert "0 records in 0 files" in result.output
    assert "3 missed" in result.output
    assert "there is no such file below" in result.output
    with pytest.raises(UsageError, match="--warc writes records, not rows"):
        shown(*queried, "--format", "csv")


def test_a_record_without_a_place_is_told_by_what_is_known_of_it(folder: Path, tmp_path: Path) -> None:
    """An index has no offset for what lies in a file that is packed as a whole; a table has -1."""
    (tmp_path / "a.warc.gz").write_bytes(b"")
    sql = "SELECT f AS warc_filename, o AS warc_record_offset, 0 AS warc_record_length FROM (VALUES "
    sql += (
        "('a.warc.gz', -1), ('a.warc.gz', NULL), (NULL, 7), (NULL, NULL), ('a.warc.gz', 7)) AS t(f, o)"
    )
    queried = [folder, "--sql", sql, "--archives", tmp_path, "--warc", tmp_path / "w"]
    result = CliRunner().invoke(app, [str(each) for each in queried])
    assert result.exit_code == 5
    assert result.stderr.splitlines() == [
        *["a.warc.gz: the index does not say where in the file"] * 2,
        *["A row without a file name: the index does not say in which file"] * 2,
        "a.warc.gz, byte 7: no record begins there",
    ]


def test_the_command_ends_with_the_code_of_the_mistake(folder: Path) -> None:
    line = [sys.executable, "-m", "amicrawl", "query", str(folder), "nothing"]
    done = warm_processes.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("amicrawl: There is no query nothing")


def test_a_reader_that_has_had_enough_is_no_mistake(folder: Path) -> None:
    line = [sys.executable, "-m", "amicrawl", "query", str(folder), "--sql", MANY, "--format", "csv"]
    with warm_processes.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as command:
        assert command.stdout is not None
        assert command.stderr is not None
        assert command.stdout.readline() == b"i,url\n"
        command.stdout.close()
        assert (command.wait(), command.stderr.read()) == (0, b"")


def test_a_large_result_is_never_held_whole(folder: Path, tmp_path: Path) -> None:
    """Half a million rows are some 90 MB as Python objects; the process may grow by far less."""
    script = (
        "import resource, typer\n"
        "from amicrawl.cli.query import query\n"
        "try:\n"
        "    typer.run(query)\n"
        "except SystemExit as end:\n"
        "    assert not end.code, end.code\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)\n"
    )
    out = tmp_path / "big.csv"
    peaks = []
    for sql in ("SELECT 1 AS i", MANY):
        line = [sys.executable, "-c", script, str(folder), "--sql", sql, "-o", str(out)]
        done = warm_processes.run(line, capture_output=True, text=True, check=True)
        peaks.append(int(done.stdout))
    assert out.stat().st_size > 12_000_000
    assert peaks[1] < peaks[0] + 50


@pytest.mark.parametrize("sql", ["{endless}", "CREATE TABLE t AS {endless}; FROM t"])
def test_ctrl_c_ends_a_question_that_takes_long(folder: Path, sql: str) -> None:
    endless = "SELECT count(*) FROM range(3000000) a(i), range(3000000) b(j) WHERE a.i <> b.j"
    command = [
        sys.executable,
        "-m",
        "amicrawl",
        "query",
        str(folder),
        "--unrestricted",
        "--sql",
        "-",
    ]
    with warm_processes.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdin is not None
        # More than a pipe holds: when all of it has gone in, the command has begun to read.
        running.stdin.write(f"{sql.format(endless=endless)} -- {' ' * 100_000}\n".encode())
        running.stdin.close()
        time.sleep(0.5)
        running.send_signal(signal.SIGINT)
        try:
            code = running.wait(timeout=60)
        finally:
            running.kill()
        assert running.stderr is not None
        assert b"Traceback" not in running.stderr.read()
    assert code == ExitCode.STOPPED


INTERRUPTED = """
import contextlib, pathlib, signal, sys
from amicrawl.archive.table.query import QueryTable

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
whole = 0
for step in range(300):
    with contextlib.suppress(KeyboardInterrupt):
        signal.setitimer(signal.ITIMER_REAL, 0.0001 * (step + 1))
        with QueryTable(pathlib.Path(sys.argv[1])) as table:
            table.ask_sql("SELECT 1")
            signal.setitimer(signal.ITIMER_REAL, 0)
        whole += 1
print(whole)
"""


def test_ctrl_c_is_one_whatever_the_engine_is_at(folder: Path) -> None:
    # Apart from this process: what is interrupted between two steps leaves a directory to the end.
    line = [sys.executable, "-c", INTERRUPTED, str(folder)]
    done = warm_processes.run(line, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 300, "not one was interrupted: this says nothing"


INTERRUPTED_CALL = """
import signal, time
from amicrawl.threads import StoppableCall

def interrupt(*_):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
interrupted = 0
for step in range(2000):
    call = StoppableCall(lambda: time.sleep(0.0001))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.000001 * (step % 400 + 1))
        call.result()
        signal.setitimer(signal.ITIMER_REAL, 0)
    except KeyboardInterrupt:
        interrupted += 1
    while not call.is_over:
        call.wait(1)
print(interrupted)
"""


def test_ctrl_c_leaves_no_lock_in_disorder_whenever_it_comes() -> None:
    line = [sys.executable, "-c", INTERRUPTED_CALL]
    done = warm_processes.run(line, capture_output=True, text=True, check=True)
    assert int(done.stdout) > 0, "not one was interrupted: this says nothing"


HIT_IN_AN_IMPORT = """
import os, sys
from amicrawl.__main__ import main
def watch(frame, event, _):
    if event == "call" and frame.f_code.co_name == "__setattr__":
        while frame := frame.f_back:
            if getattr(frame.f_locals.get("self"), "name", "") == "_duckdb":
                sys.setprofile(None)
                print("hit", file=sys.stderr)
                os.kill(os.getpid(), 2)
                return
sys.setprofile(watch)
main()
"""


def test_ctrl_c_while_the_engine_is_imported_is_one_once_it_is(folder: Path) -> None:
    """Where Python code that it calls raised an exception, the engine aborted the process."""
    line = [sys.executable, "-c", HIT_IN_AN_IMPORT, "query", str(folder), "--sql", "SELECT 1"]
    # Not a warm process: there it is imported already.
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert done.stderr.startswith("hit\n")
    assert done.returncode == ExitCode.STOPPED, done.stderr
    assert "Stopped" in done.stderr
    assert "Traceback" not in done.stderr
