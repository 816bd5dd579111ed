"""What anybody may have written into Redis: markup, wrong types, nonsense, too much."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import pytest
from dashboard_client import IDENT, OTHER, DashboardClient, add_lines, run_job, until
from dashboard_serving import serve_in_thread

from amicrawl.fleet.dashboard.views import (
    entry_view,
    files_view,
    history_view,
    hosts_view,
    ignores_view,
    job_view,
)
from amicrawl.fleet.dashboard.wording import link, plain
from amicrawl.fleet.jobs.watching import FIELDS, SeenJob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from redis_server import RedisServer

    from amicrawl.fleet.dashboard.serving import Running

MARKUP = "\"'><script>alert(1)</script><img src=x onerror=alert(2)>{{7*7}}"
ODD = "\x1b[2J\u202egpj.exe\x00"
PAGES = ("/", f"/jobs/{IDENT}", "/pipelines", "/pending", "/submit", "/finished")
PATHS = (
    *(
        "/jobs",
        f"/jobs/{IDENT}",
        f"/jobs/{IDENT}/log",
        f"/jobs/{IDENT}/ignores",
        "/pipelines",
        "/pending",
    ),
    *("/finished", "/dead", "/status", "/jobs?state=completed,aborted,failed"),
)
ARCHIVEBOT = ("/logs/recent", "/pipelines", "/pending", "/status", "/finished", f"/ignores/{IDENT}")


@pytest.fixture(scope="module")
def running(shared_redis: RedisServer) -> Iterator[Running]:
    with serve_in_thread(shared_redis.url) as found:
        yield found


@pytest.fixture
def api(redis_server: RedisServer, running: Running) -> DashboardClient:
    return DashboardClient(running.url)


class Elements(HTMLParser):
    """The elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def assert_harmless(text: str) -> None:
    """Check that a page has no element, attribute or link that came from the data."""
    for tag, attributes in Elements(text).found:
        assert not any(name.startswith("on") for name in attributes), (tag, attributes)
        assert "style" not in attributes or tag == "svg", (tag, attributes)
        if tag == "script":
            assert (attributes.get("src") or "").startswith("/static/") or attributes.get(
                "type"
            ) == "application/json"
        if tag == "img":
            assert (attributes.get("src") or "").startswith("/static/")
        for name in ("href", "src", "action", "formaction"):
            value = attributes.get(name)
            assert value is None or re.match(r"https?://|/(?!/)|#|$", value), (tag, name, value)
    assert "{{" not in text or "7*7" in text
    assert "\x1b" not in text
    assert "\u202e" not in text


PIPELINE_FIELDS = (
    *("id", "hostname", "fqdn", "pid", "nickname", "version", "python", "mem_usage", "mem_available"),
    *("disk_usage", "disk_available", "load_average_1m", "load_average_5m", "load_average_15m"),
    *("ts", "status", "slots", "running", "amicrawl_drain"),
)


def fill(server: RedisServer, said: str) -> None:
    """Write *said* into every text that is shown."""
    key = "pipeline:" + "a" * 32
    with server.client() as client:
        fields = dict.fromkeys(FIELDS, said)
        client.hset(
            IDENT, mapping={**fields, "url": f"javascript:{said}", "started_at": "1", "pipeline_id": key}
        )
        for name in ("finished_at", "aborted", "failed"):
            client.hdel(IDENT, name)
        client.rpush("working", IDENT)
        client.hset(OTHER, mapping={**fields, "url": f"http://{said}/", "finished_at": "1700000000"})
        client.sadd(f"{IDENT}_ignores", said)
        client.sadd(f"{OTHER}_ignores", said)
        client.lpush("pending", said, OTHER)
        client.lpush(f"pending:{said}", IDENT)
        client.hset(key, mapping=dict.fromkeys(PIPELINE_FIELDS, said))
        entries: list[Any] = [
            {
                "ts": 1,
                "type": "download",
                "url": f"javascript:{said}",
                "response_code": 200,
                "wget_code": said,
            },
            {"ts": 1, "type": "ignore", "url": f"data:{said}", "pattern": said, "source": said},
            {"ts": 1, "type": "stdout", "message": said},
            {"ts": 1, "type": said, "message": said},
        ]
        client.hset(IDENT, "log_score", "0")
        add_lines(client, IDENT, *map(json.dumps, entries), said)
        facts = {
            "now": {
                "state": said,
                "faults": [said],
                "directory": f"../../{said}",
                "rates": said,
                "rev": said,
            },
            "hosts": [{"host": said, "pages": said, "in_flight": -1e400}, said],
            "ignores": [{"pattern": said, "hits": said}],
            "files": [{"name": said, "bytes": said, "sealed": said}],
            "history": [{"ts": said}],
        }
        client.hset(f"amicrawl:facts:{IDENT}", mapping={k: json.dumps(v) for k, v in facts.items()})
        client.hset(
            f"amicrawl:claim:{IDENT}", mapping={"attempt": said, "resumed": said, "directory": said}
        )
        client.zadd("amicrawl:dead", {json.dumps({"where": said, "why": said, "excerpt": said}): 1.0})


@pytest.mark.parametrize("said", [MARKUP, ODD, MARKUP + ODD])
def test_markup_from_anywhere_is_shown_and_never_obeyed(
    api: DashboardClient, redis_server: RedisServer, said: str
) -> None:
    fill(redis_server, said)
    for path in PAGES:
        response = api.page(path)
        assert response.status_code == 200, (path, response.text[-500:])
        assert_harmless(response.text)
    for path in PATHS:
        response = api.get(path)
        assert response.status_code == 200, (path, response.text)
        assert response.headers["content-type"].startswith("application/json")
        response.json()
    for path in ARCHIVEBOT:
        response = api.client.get(path, headers={"accept": "application/json"})
        assert response.status_code == 200, path
        assert "text/html" not in response.headers["content-type"]
        assert "\x1b" not in response.text
    detail = api.get(f"/jobs/{IDENT}").json()
    assert detail["link"] is None
    assert all(entry.get("link") is None for entry in api.get(f"/jobs/{IDENT}/log").json()["entries"])
    events = api.events(f"jobs={IDENT},{OTHER}")
    seen = {name for name, _, _ in (next(events) for _ in range(5))}
    assert {"hello", "overview", "job", "log"} <= seen


KINDS = ("string", "list", "set", "zset", "hash", "stream")


@pytest.mark.parametrize("kind", KINDS)
def test_a_key_of_a_wrong_type_breaks_nothing(
    api: DashboardClient, redis_server: RedisServer, kind: str
) -> None:
    make: Callable[[Any, str], Any] = {
        "string": lambda client, key: client.set(key, "x"),
        "list": lambda client, key: client.rpush(key, "x"),
        "set": lambda client, key: client.sadd(key, "x"),
        "zset": lambda client, key: client.zadd(key, {"x": 1}),
        "hash": lambda client, key: client.hset(key, "x", "y"),
        "stream": lambda client, key: client.xadd(key, {"x": "y"}),
    }[kind]
    with redis_server.client() as client:
        run_job(client, OTHER)
        for key in (
            *(
                IDENT,
                f"{IDENT}_log",
                f"{IDENT}_ignores",
                "pending",
                "pending-ao",
                "pending:tag",
                "pipelines",
            ),
            *("pipeline:" + "b" * 32, "jobs_completed", "finish_notifications", f"{OTHER}_log"),
            *(f"amicrawl:facts:{OTHER}", f"amicrawl:claim:{OTHER}", "amicrawl:dead", f"{OTHER}_ignores"),
        ):
            make(client, key)
    for path in (p for p in PATHS if IDENT not in p):
        response = api.get(path)
        assert response.status_code == 200, (path, response.text)
    for path in ("/", "/pipelines", "/pending", "/finished", f"/jobs/{OTHER}"):
        assert api.page(path).status_code == 200, path
    assert api.get(f"/jobs/{IDENT}").status_code == 404
    events = api.events(f"jobs={IDENT},{OTHER}")
    names = [next(events)[0] for _ in range(4)]
    assert "job" in names
    with redis_server.client() as client:
        client.delete("working")
        make(client, "working")
    assert api.get("/jobs").status_code == 200


def test_too_much_of_anything_is_cut(api: DashboardClient, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, note="n" * 5_000_000, user_agent="u" * 5_000_000)
        client.hset(IDENT, mapping={f"field{n}": "x" * 1000 for n in range(2000)})
        client.sadd(f"{IDENT}_ignores", "i" * 5_000_000, *(f"p{n}" for n in range(20_000)))
        client.zadd(f"{IDENT}_log", {"z" * 5_000_000: 1, "[" * 50_000: 2})
        client.hset(IDENT, "log_score", 2)
        client.hset(f"amicrawl:facts:{IDENT}", "now", "[" * 3_000_000)
        client.hset(f"amicrawl:facts:{IDENT}", "hosts", json.dumps([{"host": "h" * 9000}] * 500))
        client.rpush("pending", *(["x" * 1000] * 3000))
    response = api.get(f"/jobs/{IDENT}")
    assert response.status_code == 200
    assert len(response.content) < 4_000_000
    job = response.json()
    assert len(job["note"]) <= 2000
    assert len(job["ignores"]) <= 5000
    assert len(job["hosts"]) <= 100
    for path in (*PATHS, "/status"):
        response = api.get(path)
        assert response.status_code == 200, path
        assert len(response.content) < 4_000_000, path
    assert api.page(f"/jobs/{IDENT}").status_code == 200
    assert api.page("/").status_code == 200


def test_octets_that_are_no_text_are_told(api: DashboardClient, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        client.hset(IDENT, mapping={"note": b"\xff\xfe", "url": b"http://\xff.example/"})
        client.sadd(f"{IDENT}_ignores", b"\xff")
        client.zadd(f"{IDENT}_log", {b"\xff{": 1})
        client.lpush("pending", b"\xff")
        client.set(b"pending:\xff", b"\xff")
    for path in PATHS:
        assert api.get(path).status_code == 200, path
    for path in PAGES:
        assert api.page(path).status_code == 200, path
    assert "note is not UTF-8" in api.get(f"/jobs/{IDENT}").json()["faults"]


def test_what_is_wrong_in_one_job_hides_no_other(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, r2xx="many", log_score="x", started_at="yesterday", items_queued="1e9999")
        run_job(client, OTHER, r2xx="7", items_queued="10", items_downloaded="4")
        client.rpush("working", "../../etc/passwd", "*", "")
    jobs = {job["ident"]: job for job in api.get("/jobs").json()["jobs"]}
    assert jobs[OTHER]["responses"]["r2xx"] == 7
    assert jobs[OTHER]["todo"] == 6
    assert any("r2xx" in fault for fault in jobs[IDENT]["faults"])
    assert jobs.keys() == {IDENT, OTHER}
    events = api.events(f"jobs={OTHER}")
    until(lambda: next(events)[0] == "job")


def test_a_time_beyond_the_calendar_breaks_no_endpoint(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        times = dict.fromkeys(("started_at", "queued_at"), "1e99")
        for ident, ended in ((IDENT, {}), (OTHER, {"finished_at": "1e99"})):
            run_job(client, ident, **times, **ended)
            client.sadd(f"{ident}_ignores", "x")
        add_lines(client, IDENT, json.dumps({"ts": 1, "type": "stdout", "message": "said"}))
    for path in ARCHIVEBOT:
        assert api.client.get(path).status_code == 200, path
    for path in PATHS:
        assert api.get(path).status_code == 200, path
    for path in PAGES:
        assert api.page(path).status_code == 200, path
    assert api.client.get("/finished").json()[0]["finished_at"] is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        "{}",
        "[1, null, {}]",
        '{"a": 1}',
        "[[[[",
        "\ud800",
        '[{"ts": 1e999}]',
        "[" * 100_000,
    ],
)
def test_what_a_crawl_tells_is_read_or_left_out(text: str) -> None:
    for view in (hosts_view, history_view, files_view):
        assert isinstance(view(text), list)
    assert ignores_view(["a"], text) == [{"pattern": "a", "hits": None}]
    assert entry_view(1.0, text)["type"] == "unknown"
    seen = SeenJob({"url": "http://a.example/", "started_at": "1"}, {"now": text, "hosts": text})
    assert job_view(IDENT, seen)["state"] == "running"


@pytest.mark.parametrize(
    "url",
    [
        *(
            "javascript:alert(1)",
            "JAVASCRIPT:alert(1)",
            "data:text/html,x",
            "ftp://a/",
            "//a/",
            "/a",
            "http://",
        ),
        *(
            "vbscript:x",
            "http:a",
            "https:///x",
            "http://[::1",
            "http://a\n.example/",
            "\u202ehttp://a/",
            "file:///etc",
        ),
    ],
)
def test_only_http_is_linked_to(url: str) -> None:
    assert link(url) is None
    assert link("https://a.example/?q=%3Cscript%3E") == "https://a.example/?q=%3Cscript%3E"


def test_text_that_turns_around_is_shown_as_it_is_written() -> None:
    assert plain("a\u202eb\x1bc\x00d\ud800e") == "a\\u202eb\\x1bc\\x00d\\ud800e"
    assert plain("übel\tgut 漢字") == "übel\tgut 漢字"
    assert len(plain("x" * 10_000, limit=100)) == 100


def test_what_a_crawl_reports_may_be_nested_however_deeply(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    """It ended the stream of every viewer, that of other jobs included."""
    deep = '{"x":{"a":' + "[" * 1000 + "]" * 1000 + '},"y":' + '{"b":' * 1000 + "1" + "}" * 1001
    with redis_server.client() as client:
        run_job(client, IDENT)
        client.hset(f"amicrawl:facts:{IDENT}", "now", deep)
    assert api.get(f"/jobs/{IDENT}").json()["facts"]["x"] == {"a": []}
    assert api.page(f"/jobs/{IDENT}").status_code == 200
    events = api.events(f"jobs={IDENT}")
    until(lambda: next(events)[0] == "job")


def test_names_that_are_no_text_end_neither_the_stream_nor_a_page(redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        client.lpush(b"pending:\xff", OTHER)
        client.hset(OTHER, "url", "http://waiting.example/")
        client.hset(b"pipeline:" + b"c" * 32, mapping={b"\xff": "1", "nickname": "one"})
    # A dashboard of its own: one that runs looks for new names every few seconds only.
    with serve_in_thread(redis_server.url) as running:
        api = DashboardClient(running.url)
        events = api.events(f"jobs={IDENT}")
        until(lambda: next(events)[0] == "job")
        assert "pending:\\udcff" in api.get("/status").json()["queues"]
        assert {job["queue"] for job in api.get("/jobs").json()["jobs"]} == {None, "pending:\\udcff"}
        assert api.page("/").status_code == 200
        json_only = {"accept": "application/json"}
        for path in ("/pipelines", "/status"):
            assert api.client.get(path, headers=json_only).status_code == 200, path


@pytest.mark.parametrize("score", [float("inf"), float("-inf"), 1e300])
def test_a_log_entry_may_have_any_number(
    api: DashboardClient, redis_server: RedisServer, score: float
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        client.zadd(f"{IDENT}_log", {json.dumps({"ts": 1, "type": "stdout", "message": "odd"}): score})
        events = api.events(f"jobs={IDENT}")
        until(lambda: next(events)[0] == "job")
        assert api.page(f"/jobs/{IDENT}").status_code == 200
        assert api.get(f"/jobs/{IDENT}/log").status_code == 200
        add_lines(client, IDENT, json.dumps({"ts": 2, "type": "stdout", "message": "plain"}))

        def is_told() -> bool:
            name, said, _ = next(events)
            return name == "log" and any(each["message"] == "plain" for each in said["entries"])

        until(is_told)


@pytest.mark.parametrize("moment", [float("inf"), float("-inf"), 1e300, 1e12, -5.0])
def test_a_message_of_any_time_and_any_text_leaves_the_feeds_readable(
    api: DashboardClient, redis_server: RedisServer, moment: float
) -> None:
    with redis_server.client() as client:
        client.zadd("tweets:done", {"odd \uffff\ufffe\u0001 <&": moment})
    for path in ("/feed/archivebot.rss", "/feed/archivebot.atom"):
        response = api.client.get(path)
        assert response.status_code == 200, path
        texts = [each.text for each in ET.fromstring(response.content).iter()]
        assert "odd \\uffff\\ufffe\\x01 <&" in texts
