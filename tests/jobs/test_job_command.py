"""`amicrawl job` from outside: what it prints, and what it ends with."""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
import warm_processes
from loopback import environment
from typer.testing import CliRunner

from amicrawl.cli import app
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.database import redis_values
from amicrawl.fleet.database.ident import ident_of
from amicrawl.fleet.jobs import verbs
from amicrawl.fleet.jobs.crawl.specification import _crawl_file_settings as take_crawl_file
from amicrawl.fleet.logs.job_log import Download, Entry, Ignore, Stdout, encoded

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

    from redis_server import RedisServer

    from amicrawl.fleet.database.connection import JobStore

    Command = Callable[..., "Done"]

PROJECT = Path(__file__).parents[2]
URL = "http://a.example/"
IDENT = ident_of(URL)


class Done(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str


@pytest.fixture
def job(redis_server: RedisServer) -> Command:
    """Run a verb in this process: a new one takes a second to start."""

    def run(verb: str, *arguments: str) -> Done:
        line = ["job", verb, *arguments, "--redis", redis_server.url]
        result = CliRunner().invoke(app, line)
        if isinstance(result.exception, AmicrawlError):
            return Done(result.exception.exit_code, result.stdout, str(result.exception))
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Done(result.exit_code, result.stdout, result.stderr)

    return run


def test_a_job_is_submitted_shown_steered_and_aborted(job: Command, store: JobStore) -> None:
    done = job("submit", "A.example", "--note", "why not", "--delay", "1-2", "--ignore", "own$")
    assert (done.code, done.out.strip()) == (0, IDENT)
    assert f"{URL} is queued: pending" in done.err
    assert IDENT in job("ls").out
    assert "why not" in job("status", URL).out
    shown = job("show", IDENT).out
    assert "own$" in shown
    assert "1 to 2 ms" in shown
    assert "whole site" in shown
    store.client.hset(store.keys.claim(IDENT), "directory", "a.example-inf-1")
    assert "directory      a.example-inf-1" in job("show", IDENT).out
    assert json.loads(job("where", IDENT, "--json").out)["directory"] == "a.example-inf-1"
    store.client.delete(store.keys.claim(IDENT))
    for verb, *arguments in (
        ("ignore", "x$", "y$"),
        ("unignore", "x$"),
        ("ignore-set", "forums,calendar"),
        ("delay", "5"),
        ("concurrency", "7"),
        ("note", "because"),
        ("reports", "on"),
        ("pause",),
        ("resume",),
        ("move", "front"),
        ("where",),
    ):
        assert job(verb, IDENT, *arguments).code == 0, verb
    facts = json.loads(job("show", IDENT, "--json").out)
    assert (facts["delay_min"], facts["delay_max"], facts["concurrency"]) == (5, 5, 7)
    assert (facts["note"], facts["suppress_ignore_reports"], facts["paused"]) == (
        "because",
        False,
        False,
    )
    assert {"y$", "own$"} <= set(facts["ignores"])
    assert "is aborted" in job("abort", IDENT).out
    assert "aborted" in job("ls", "--finished").out
    job("expire", IDENT)
    assert job("show", IDENT).code == ExitCode.INPUT
    assert "1 aborted" in job("status").out
    assert store.client.dbsize() == 3, "the count, the notice and the list of ended jobs"


@pytest.mark.parametrize("verb", ["abort", "pause", "expire"])
def test_a_verb_acts_on_every_job_named_and_reports_each(
    job: Command, store: JobStore, verb: str
) -> None:
    """One that has ended, or is none, keeps it from no other."""
    hosts = ["a.example", "b.example", "c.example"]
    for host in hosts:
        job("submit", host)
    job("abort", "http://a.example/")
    done = job(verb, "no ident", "http://nowhere.example/", *(f"http://{host}/" for host in hosts))
    assert done.code == ExitCode.USAGE, "that of the first fault"
    assert "is not a job" in done.err
    assert "There is no job" in done.err
    if verb == "expire":
        assert "The record of http://a.example/ is deleted" in done.out
        assert done.err.count("amicrawl: ") == 4
    else:
        assert len(done.out.splitlines()) == 2
        states = [json.loads(job("show", f"http://{host}/", "--json").out) for host in hosts]
        assert [each["aborted"] or each["paused"] for each in states] == [True] * 3


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (("show", "no ident"), ExitCode.USAGE, "is not a job: give its URL"),
        (("show", IDENT), ExitCode.INPUT, "There is no job"),
        (("abort", "http://nowhere.example"), ExitCode.INPUT, "There is no job"),
        (("submit", "gopher://x"), ExitCode.USAGE, "cannot be the URL of a job"),
        (("submit",), ExitCode.USAGE, "Nothing to crawl"),
        (("submit", URL, "--delay", "soon"), ExitCode.USAGE, "or a range"),
        (("submit", URL, "--force", "--if-older", "2d"), ExitCode.USAGE, "not both"),
        (("submit", URL, "--if-older", "long"), ExitCode.USAGE, "not an age"),
        (("submit", URL, "--list", "/nowhere/urls.txt"), ExitCode.INPUT, "cannot be read"),
        (("submit", URL, "--list", "http://b.example/x"), ExitCode.USAGE, "one of them"),
        (("submit", URL, "--config", "/nowhere/x.toml"), ExitCode.INPUT, "/nowhere/x.toml"),
        (("move", IDENT, "somewhere"), ExitCode.USAGE, "not a place"),
        (("no-such-verb",), ExitCode.USAGE, "No such command"),
    ],
)
def test_what_is_refused_is_said_with_its_code(
    job: Command, line: tuple[str, ...], code: ExitCode, said: str
) -> None:
    done = job(*line)
    assert done.code == code
    assert said in done.err


def test_the_same_job_twice_is_refused_until_it_is_forced(job: Command, store: JobStore) -> None:
    job("submit", URL)
    assert job("submit", URL, "--force").code == ExitCode.USAGE
    store.client.hset(IDENT, mapping={"started_at": "1.5", "finished_at": "100"})
    store.client.delete("pending")
    assert "--force" in job("submit", URL).err
    assert job("submit", URL, "--if-older", "2d").code == 0


@pytest.mark.parametrize(
    ("fields", "said", "advice"),
    [
        ({}, "is queued", f"amicrawl job abort {IDENT}"),
        ({"started_at": "1.5"}, "is running", f"amicrawl job abort {IDENT}"),
        ({"abort_requested": "true"}, "is being aborted", f"amicrawl job abort {IDENT}"),
        ({"finished_at": "9"}, "has completed", "--force"),
        ({"finished_at": "9", "aborted": "true"}, "was aborted", "--force"),
        ({"failed": "true"}, "has failed", f"--force to crawl it again. `amicrawl job log {IDENT}`"),
    ],
)
def test_a_job_that_exists_is_named_with_its_state_and_what_to_do(
    job: Command, store: JobStore, fields: dict[str, str], said: str, advice: str
) -> None:
    job("submit", URL)
    for name, value in fields.items():
        store.client.hset(IDENT, name, value)
    refused = job("submit", URL)
    assert refused.code == ExitCode.USAGE
    assert f"There is a job for {URL} already: {IDENT} {said}." in refused.err
    assert advice in refused.err
    assert job("status", URL).out.startswith(f"{IDENT} {said}: {URL}")


def test_totals_and_list_call_a_queued_job_queued(job: Command) -> None:
    job("submit", URL)
    assert "0 running, 1 queued (pending 1)." in job("status").out
    assert f"{IDENT}  queued" in job("ls").out


def test_a_list_is_kept_in_redis_or_named_by_its_url(
    job: Command, store: JobStore, tmp_path: Path
) -> None:
    urls = tmp_path / "my urls.txt"
    urls.write_text("http://a.example/1\nhttp://a.example/2\n")
    ident = job("submit", "--list", str(urls)).out.strip()
    record = json.loads(job("show", ident, "--json").out)
    assert record["url"].startswith("http://list.invalid/")
    assert record["url"].endswith("/my-urls.txt")
    assert store.client.get(store.keys.url_list(ident)) == urls.read_text()
    assert job("submit", "--list", str(urls)).code == ExitCode.USAGE, "the same list is the same job"
    ident = job("submit", "--list", "http://a.example/urls.txt").out.strip()
    assert json.loads(job("show", ident, "--json").out)["url_file"] == "http://a.example/urls.txt"
    urls.write_bytes(b"\xff")
    assert job("submit", "--list", str(urls)).code == ExitCode.INPUT
    urls.write_bytes(b"x" * (5 << 20))
    assert job("submit", "--list", str(urls)).code == ExitCode.USAGE


def test_a_crawl_file_is_checked_and_goes_along_whole(
    job: Command, store: JobStore, tmp_path: Path
) -> None:
    (tmp_path / "base.toml").write_text("[politeness]\ndelay = 3.0\n")
    file = tmp_path / "crawl.toml"
    file.write_text('extends = "base.toml"\nspider = "site"\n')
    done = job("submit", URL, "--config", str(file))
    assert done.code == 0, done.err
    text = str(store.client.get(store.keys.config(IDENT)))
    assert "delay = 3.0" in text
    assert "extends" not in text
    facts = json.loads(job("show", IDENT, "--json").out)
    assert (facts["delay_min"], facts["delay_max"], facts["concurrency"]) == (3000, 3000, 3)
    file.write_text("[politeness]\ndelay = 1.5\nper_host = 2\n")
    given = ("--config", str(file), "--delay", "40-50")
    facts = json.loads(job("show", job("submit", "http://c.example/", *given).out.strip(), "--json").out)
    assert (facts["delay_min"], facts["delay_max"], facts["concurrency"]) == (40, 50, 2)
    for seconds, delay in (("0.0004", 1), ("1.0001", 1001), ("2.3", 2300), ("0.0", 0)):
        file.write_text(f"[politeness]\ndelay = {seconds}\n")
        url = f"http://{delay}.example/"
        shown = job("show", job("submit", url, "--config", str(file)).out.strip(), "--json").out
        assert json.loads(shown)["delay_min"] == delay, "no delay is shorter than what the file says"
    file.write_text("[politeness]\ndelay = -1\n")
    assert "delay" in job("submit", "http://b.example/", "--config", str(file)).err
    file.write_text('[seeds]\nurl = "http://c.example/"\n')
    assert "where to begin" in job("submit", "http://b.example/", "--config", str(file)).err


def test_a_job_can_have_its_pages_opened_in_a_browser(
    job: Command, store: JobStore, tmp_path: Path
) -> None:
    ident = job("submit", URL, "--browser").out.strip()
    config = str(store.client.get(store.keys.config(ident)))
    assert take_crawl_file(config, ident)["AMICRAWL_BROWSER"] == "always"
    ident = job("submit", "http://c.example/", "--browser", "auto").out.strip()
    assert 'browser = "auto"' in str(store.client.get(store.keys.config(ident)))
    (tmp_path / "a.toml").write_text("[politeness]\ndelay = 1.5\n")
    both = job("submit", "http://d.example/", "--browser", "--config", str(tmp_path / "a.toml"))
    assert (both.code, "[browser] of the crawl file" in both.err) == (ExitCode.USAGE, True)


def test_a_list_without_jobs_says_how_to_submit_one(job: Command) -> None:
    assert "amicrawl job submit URL" in job("ls").out
    assert "amicrawl job submit URL" in job("ls", "--finished").out


def test_a_fetch_without_a_response_is_not_listed_as_one(job: Command, store: JobStore) -> None:
    job("submit", URL)
    store.client.hset(IDENT, mapping={"r2xx": "3", "r5xx": "1", "runk": "40", "error_count": "41"})
    store.client.hset(IDENT, "started_at", "1700000000")
    heads, row = job("ls").out.splitlines()
    at = heads.index("responses")
    assert row[at : at + len("responses")].strip() == "4"
    assert "4 responses, 41 errors" in job("status", IDENT).out


def test_what_waits_is_listed_in_order_with_or_without_record(job: Command, store: JobStore) -> None:
    assert job("pending").out == "No job is queued.\n"
    job("submit", URL)
    job("submit", "http://b.example/", "--shallow")
    store.client.rpush("pending", "f" * 25)
    lines = [json.loads(line) for line in job("pending", "--json").out.splitlines()]
    assert [(line["queue"], line["place"], line["url"]) for line in lines] == [
        ("pending", 1, None),
        ("pending", 2, URL),
        ("pending-ao", 1, "http://b.example/"),
    ]
    assert "no record" in job("pending").out
    assert json.loads(job("status", "--json").out)["queues"]["pending"] == 2


def test_the_log_is_printed_harmless_line_by_line(job: Command, store: JobStore) -> None:
    job("submit", URL)
    entries: list[Entry] = [
        Download(3661.5, URL, 503, "timeout"),
        Ignore(3662.0, f"{URL}x", "x$"),
        Stdout(3663.0, "one\n\x1b[2Jtwo"),
    ]
    store.client.zadd(f"{IDENT}_log", {encoded(entry): n for n, entry in enumerate(entries)})
    lines = job("log", IDENT).out.splitlines()
    assert lines == [
        f"01:01:01 503 {URL} (timeout)",
        f"01:01:02 IGN {URL}x by x$",
        "01:01:03     one",
        r"01:01:03     \x1b[2Jtwo",
    ]
    assert len(job("log", IDENT, "-n", "1").out.splitlines()) == 2
    assert json.loads(job("log", IDENT, "--json", "-n", "1").out)["type"] == "stdout"


def test_follow_prints_what_comes_until_the_job_has_ended(job: Command, store: JobStore) -> None:
    job("submit", URL)
    store.client.zadd(f"{IDENT}_log", {encoded(Stdout(1.0, "before")): 1})

    def go_on() -> None:
        time.sleep(0.3)
        store.client.zadd(f"{IDENT}_log", {encoded(Stdout(2.0, "meanwhile")): 2})
        time.sleep(0.3)
        store.client.zadd(f"{IDENT}_log", {encoded(Stdout(3.0, "the last line")): 3})
        store.client.hset(IDENT, "finished_at", "9")

    thread = threading.Thread(target=go_on)
    thread.start()
    out = job("log", IDENT, "--follow").out
    thread.join()
    assert [line.split(" ", 1)[1].strip() for line in out.splitlines()] == [
        *("before", "meanwhile", "the last line"),
    ]


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"finished_at": "9"}, ExitCode.DONE),
        ({"failed": "true"}, ExitCode.OUR_ERROR),
        ({"aborted": "true", "finished_at": "9"}, ExitCode.STOPPED),
    ],
)
def test_waiting_ends_with_the_job_and_says_how(
    job: Command, store: JobStore, fields: dict[str, str], code: ExitCode
) -> None:
    def end() -> None:
        while not store.client.exists(IDENT):
            time.sleep(0.01)
        time.sleep(0.1)
        store.client.hset(IDENT, items=[text for pair in fields.items() for text in pair])

    thread = threading.Thread(target=end)
    thread.start()
    assert job("submit", URL, "--wait").code == code
    thread.join()


def test_waiting_survives_a_record_that_goes_with_an_abort(job: Command, store: JobStore) -> None:
    def end() -> None:
        while not store.client.exists(IDENT):
            time.sleep(0.01)
        time.sleep(0.7)
        verbs.abort(store, IDENT, now=1.0)
        store.client.expire(IDENT, 0)

    thread = threading.Thread(target=end)
    thread.start()
    assert job("submit", URL, "--wait").code == ExitCode.STOPPED
    thread.join()


@pytest.mark.parametrize("follow", [False, True])
def test_who_waits_for_a_job_that_redis_has_lost_waits_until_it_is_written_again(
    job: Command, store: JobStore, *, follow: bool
) -> None:
    submitted = job("submit", URL)
    record: dict[Any, Any] = store.client.hgetall(IDENT)

    def lose_and_end() -> None:
        time.sleep(0.7)
        store.client.flushall()
        time.sleep(1.2)
        store.client.zadd(f"{IDENT}_log", {encoded(Stdout(2.0, "afterwards")): 2})
        store.client.hset(IDENT, mapping=record | {"finished_at": "9"})

    store.client.delete(IDENT)
    thread = threading.Thread(target=lose_and_end)
    if follow:
        store.client.hset(IDENT, mapping=record)
        thread.start()
        done = job("log", IDENT, "--follow")
        assert "afterwards" in done.out
    else:
        thread.start()
        done = job("submit", URL, "--wait")
    thread.join()
    assert (submitted.code, done.code) == (0, ExitCode.DONE)


def test_dead_letters_are_listed_and_thrown_away(job: Command, store: JobStore) -> None:
    redis_values.put_dead_letter(store, where="key", why="it is odd", value="\x1b[2J", now=3661.0)
    assert job("dead").out == "1970-01-01 01:01:01  key: it is odd: \\x1b[2J\n"
    assert json.loads(job("dead", "--json").out)["where"] == "key"
    assert "1 dead letter deleted" in job("dead", "--clear").out
    assert job("dead").out == ""


def test_redis_is_found_by_project_and_environment_and_its_absence_has_a_code(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    """From a process of its own: the sentence on standard error, and nothing else."""
    env = {**environment(), "REDIS_URL": "redis://127.0.0.1:1/0", "AMICRAWL_REDIS_PREFIX": "mine:"}
    (tmp_path / "scrapy.cfg").write_text("[settings]\ndefault = of_a_team\n")
    (tmp_path / "of_a_team.py").write_text(f'REDIS_URL = "{redis_server.url}"\n')
    line = [sys.executable, "-m", "amicrawl", "jobs", "submit", URL]

    def run(*further: str) -> subprocess.CompletedProcess[str]:
        return warm_processes.run(
            [*line, *further],
            cwd=tmp_path,
            env={**env, "PYTHONPATH": str(PROJECT)},
            capture_output=True,
            text=True,
            check=False,
        )

    assert run().returncode == 0
    with redis_server.client() as client:
        assert client.lrange("mine:pending", 0, -1) == [IDENT]
        assert client.hget(f"mine:{IDENT}", "log_key") == f"mine:{IDENT}_log"
    away = run("--redis", "redis://127.0.0.1:1/0")
    assert away.returncode == ExitCode.UNAVAILABLE
    assert away.stderr.startswith("amicrawl: Redis at 127.0.0.1:1 does not respond")
    assert away.stderr.count("\n") == 1


def test_figures_of_a_job_are_said_as_people_say_them(job: Command, store: JobStore) -> None:
    job("submit", URL, "--delay", "0", "--concurrency", "1")
    assert job("status", IDENT).out.strip().endswith("concurrency 1, delay none")
    store.client.hset(IDENT, mapping={"started_at": "1.5", "error_count": "1", "r2xx": "1"})
    assert "1 response, 1 error, 0 in queue; " in job("status", IDENT).out
    job("delay", IDENT, "250")
    assert job("status", IDENT).out.strip().endswith("delay 250 ms")
    assert "none" not in job("show", IDENT).out.split("delay")[1].splitlines()[0]


def test_how_far_the_end_of_a_job_is_can_be_seen_wherever_jobs_are_listed(
    job: Command, store: JobStore
) -> None:
    job("submit", URL)
    store.client.hset(IDENT, mapping={"started_at": "1", "amicrawl_step": "uploading 3 of 7, 41 %"})
    for verb in (["ls"], ["status", IDENT], ["show", IDENT]):
        assert "uploading 3 of 7, 41 %" in job(*verb).out
    assert json.loads(job("ls", "--json").out)["step"] == "uploading 3 of 7, 41 %"
    store.client.hset(IDENT, "finished_at", "2")
    assert "uploading" not in job("status", IDENT).out


def test_the_list_can_be_narrowed_by_the_rules_of_the_dashboard(job: Command, store: JobStore) -> None:
    key = "pipeline:" + "a" * 32
    store.client.sadd("pipelines", key)
    store.client.hset(key, mapping={"id": key, "nickname": "anna", "ts": "1"})
    for name in ("one", "two", "three"):
        job("submit", f"http://{name}.example/", "--note", f"note of {name}", "--by", "jo")
    running = ident_of("http://two.example/")
    store.client.lrem("pending", 0, running)
    store.client.lpush("working", running)
    store.client.hset(running, mapping={"started_at": "1", "pipeline_id": key})

    def found(*options: str) -> list[str]:
        return [json.loads(line)["url"] for line in job("ls", "--json", *options).out.splitlines()]

    one, two, three = (f"http://{name}.example/" for name in ("one", "two", "three"))
    assert found() == [two, one, three], "those that run, then in the order of the queue"
    assert found("--state", "queued") == [one, three]
    assert found("--search", "NOTE three") == [three]
    assert found("--pipeline", "anna") == [two]
    assert found("--pipeline", "pending") == [one, three]
    assert found("--by", "nobody") == []
    assert "(3 jobs without them)" in job("ls", "--by", "nobody").out
    assert "not one of 'queued', 'running'" in job("ls", "--state", "runing").err
    store.client.hset(running, "finished_at", "2")
    store.client.lrem("working", 0, running)
    assert found("--state", "completed") == [two], "none has to say that it may have ended"
