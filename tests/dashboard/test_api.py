"""The HTTP API: every verb, every list, its document, and ArchiveBot's endpoints beside it."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import fromstring

import jsonschema
import pytest
from dashboard_client import IDENT, OTHER, DashboardClient, add_lines, download, run_job, until
from dashboard_serving import serve_in_thread

from amicrawl.fleet.dashboard.api import operations
from amicrawl.fleet.dashboard.operations import document

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis_server import RedisServer

    from amicrawl.fleet.dashboard.serving import Running


@pytest.fixture(scope="module")
def running(shared_redis: RedisServer) -> Iterator[Running]:
    with serve_in_thread(shared_redis.url) as found:
        yield found


@pytest.fixture
def api(redis_server: RedisServer, running: Running) -> DashboardClient:
    return DashboardClient(running.url)


def conforms(operation_path: str, method: str, response: Any) -> None:
    """Check *respond* against what the document says of it."""
    described = document(operations())
    operation = described["paths"]["/api/v1" + operation_path][method]
    told = operation["responses"][str(response.status_code)]["content"]
    kind = response.headers["content-type"].partition(";")[0]
    schema = {**told[kind]["schema"], "components": described["components"]}
    jsonschema.validate(response.json(), schema)


def test_a_job_that_is_submitted_is_there_once_and_waits(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    said = {
        "url": "http://EXAMPLE.org:80/a/../b",
        "shallow": True,
        "note": "a note",
        "delay_min": 0,
        "concurrency": 2,
        "ignore_sets": ["blogs"],
        "ignores": ["secret"],
        "no_offsite_links": True,
        "user_agent": "Somebody",
    }
    response = api.post("/jobs", said)
    conforms("/jobs", "post", response)
    ident = response.json()["ident"]
    job = api.get(f"/jobs/{ident}").json()
    assert job["url"] == "http://example.org/b"
    assert (job["state"], job["queue"], job["depth"]) == ("queued", "pending-ao", "shallow")
    assert (job["delay_min"], job["delay_max"], job["concurrency"]) == (0, 375, 2)
    assert {"pattern": "secret", "hits": None} in job["ignores"]
    assert (job["started_by"], job["note"], job["user_agent"]) == ("dashboard", "a note", "Somebody")
    again = api.post("/jobs", said)
    assert (again.status_code, again.json()["ident"]) == (409, ident)
    with redis_server.client() as client:
        assert client.lrange("pending-ao", 0, -1) == [ident]


def test_jobs_are_listed_by_the_filters_of_the_page(api: DashboardClient) -> None:
    for name in ("a", "b", "c"):
        said = {"url": f"http://{name}.example.org/", "note": "leap year" if name < "c" else ""}
        assert api.post("/jobs", said).status_code == 201

    def listed(query: str) -> list[str]:
        response = api.get(f"/jobs?{query}")
        conforms("/jobs", "get", response)
        return [job["url"][7] for job in response.json()["jobs"]]

    assert listed("") == ["a", "b", "c"]
    assert listed("search=LEAP+year") == ["a", "b"]
    assert listed("search=leap&sort=-url&limit=1") == ["b"]
    assert listed("by=dashboard&pipeline=pending&state=queued") == ["a", "b", "c"]
    assert listed("by=anna") == listed("pipeline=fra-1") == listed("state=running") == []
    assert api.get("/jobs?sort=colour").status_code == 422


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"url": ""},
        {"url": "gopher://x.example/"},
        {"url": "javascript:alert(1)"},
        {"url": "http://x.example/", "unknown": 1},
        {"url": "http://x.example/", "shallow": "yes"},
        {"url": "http://x.example/", "concurrency": 0},
        {"url": "http://x.example/", "delay_min": 9, "delay_max": 3},
        {"url": "http://x.example/", "ignores": ["("]},
        {"url": "http://x.example/", "ignores": ["(a+"]},
        {"url": "http://x.example/", "ignore_sets": ["nosuchset"]},
        {"url": "http://x.example/", "pipeline": "no tag"},
        {"url": "http://x.example/", "large": True, "shallow": True},
        {"url": "http://x.example/", "note": "two\nlines"},
        {"url": "http://x.example/" + "x" * 9000},
        {"url": ["http://x.example/"]},
        [],
        None,
        "url",
    ],
)
def test_what_cannot_be_a_job_is_refused_with_a_sentence(
    api: DashboardClient, redis_server: RedisServer, body: Any
) -> None:
    headers = {"x-csrf-token": api.csrf, "content-type": "application/json"}
    response = api.client.post("/api/v1/jobs", content=json.dumps(body), headers=headers)
    conforms("/jobs", "post", response)
    assert response.status_code == 422
    assert len(response.json()["detail"]) > 10
    with redis_server.client() as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"url": NaN}', b"[" * 100_000])
def test_what_is_no_json_is_refused(api: DashboardClient, body: bytes) -> None:
    headers = {"x-csrf-token": api.csrf, "content-type": "application/json"}
    assert api.client.post("/api/v1/jobs", content=body, headers=headers).status_code == 422


def test_every_verb_changes_its_field_and_tells_the_crawl(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client, client.pubsub() as heard:
        run_job(client, IDENT, settings_age=4)
        heard.subscribe(f"archivebot:job:{IDENT}")
        verbs: list[tuple[str, dict[str, Any]]] = [
            ("ignore", {"pattern": "a.c"}),
            ("ignore-set", {"name": "blogs"}),
            ("unignore", {"pattern": "a.c"}),
            ("delay", {"min": 10, "max": 20}),
            ("concurrency", {"workers": 7}),
            ("note", {"note": "new"}),
            ("reports", {"on": True}),
            ("pause", {}),
            ("resume", {}),
            ("abort", {}),
        ]
        for name, body in verbs:
            response = api.post(f"/jobs/{IDENT}/{name}", body)
            conforms(f"/jobs/{{ident}}/{name}", "post", response)
            assert response.status_code == 200, response.text
        record = client.hgetall(IDENT)
        assert record["settings_age"] == str(4 + len(verbs))
        assert (record["delay_min"], record["delay_max"], record["concurrency"]) == ("10", "20", "7")
        assert record["note"] == "new"
        assert "suppress_ignore_reports" not in record
        assert record["abort_requested"] == "true"
        ignores = client.smembers(f"{IDENT}_ignores")
        assert "a.c" not in ignores
        assert ignores
        told = [m["data"] for _ in range(len(verbs) + 1) if (m := heard.get_message(timeout=5))]
        assert told[1:] == [str(age) for age in range(5, 5 + len(verbs))]
    assert api.get(f"/jobs/{IDENT}").json()["state"] == "aborting"


def test_a_crawl_without_a_lease_has_no_rate(api: DashboardClient, redis_server: RedisServer) -> None:
    """What a crawl reported last says nothing once its pipeline is gone."""

    def rates() -> tuple[float | None, float | None]:
        (job,) = api.get("/jobs").json()["jobs"]
        return job["items_per_s"], job["bytes_per_s"]

    with redis_server.client() as client:
        run_job(client, IDENT)
        now = json.dumps({"state": "running", "rates": {"items": 3.5, "bytes": 7.0}})
        client.hset(f"amicrawl:facts:{IDENT}", "now", now)
        client.hset(f"amicrawl:claim:{IDENT}", "attempt", "1")
        client.set(f"amicrawl:lease:{IDENT}", "1")
        assert rates() == (3.5, 7.0)
        client.delete(f"amicrawl:lease:{IDENT}")
        assert rates() == (None, None)


def test_a_refusal_says_whether_it_is_the_request_or_the_state(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        run_job(client, OTHER, finished_at=1_700_000_100)
    wrong = api.post(f"/jobs/{IDENT}/ignore", {"pattern": "("})
    assert wrong.status_code == 422
    assert api.post(f"/jobs/{IDENT}/expire").status_code == 409
    assert api.post(f"/jobs/{OTHER}/pause").status_code == 409
    for unknown in ("0" * 25, "nobody", "pending", "working", "x" * 30, "%2e%2e"):
        response = api.get(f"/jobs/{unknown}")
        assert response.status_code == 404, unknown
        assert api.post(f"/jobs/{unknown}/pause").status_code in {404, 422}, unknown


def test_a_waiting_job_is_moved_and_removed(api: DashboardClient) -> None:
    idents = [api.submit(f"http://{name}.example/") for name in "abc"]
    response = api.post("/pending/move", {"queue": "pending", "ident": idents[2], "position": 0})
    conforms("/pending/move", "post", response)

    def order() -> list[str]:
        queues = api.get("/pending").json()["queues"]
        return [job["ident"] for queue in queues if queue["name"] == "pending" for job in queue["jobs"]]

    assert order() == [idents[2], idents[0], idents[1]]
    api.post("/pending/move", {"queue": "pending", "ident": idents[2], "position": 99})
    assert order() == [idents[0], idents[1], idents[2]]
    assert api.post("/pending/remove", {"queue": "pending", "ident": idents[0]}).status_code == 200
    assert order() == [idents[1], idents[2]]
    assert api.post("/pending/remove", {"queue": "pending", "ident": idents[0]}).status_code == 409
    assert (
        api.post("/pending/move", {"queue": "working", "ident": idents[1], "position": 0}).status_code
        == 422
    )
    assert order() == [idents[1], idents[2]]


def test_a_pattern_is_tried_on_what_the_log_tells(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(client, IDENT, *(download(number) for number in range(20)))
    response = api.post(f"/jobs/{IDENT}/test-pattern", {"pattern": "org/1[0-4]$"})
    conforms("/jobs/{ident}/test-pattern", "post", response)
    assert (response.json()["tested"], response.json()["matched"]) == (20, 5)
    urls = [f"http://{IDENT}.example/x", "http://other.example/x"]
    response = api.post(f"/jobs/{IDENT}/test-pattern", {"pattern": "{primary_netloc}", "urls": urls})
    assert response.json()["urls"] == urls[:1]
    for bad in ("(", "(a+", "(?P<x"):
        told = api.post(f"/jobs/{IDENT}/test-pattern", {"pattern": bad}).json()
        assert (told["valid"], told["matched"]) == (False, 0)
        assert len(told["why"]) > 10
    with redis_server.client() as client:
        assert not client.exists(f"{IDENT}_ignores")


def test_a_log_is_read_from_its_end_and_from_any_place(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(
            client, IDENT, *(download(number, code=(200, 404, 500)[number % 3]) for number in range(30))
        )
        add_lines(client, IDENT, json.dumps({"ts": 1, "type": "stdout", "message": "hello"}))

    def scores(query: str) -> list[int]:
        response = api.get(f"/jobs/{IDENT}/log?{query}")
        conforms("/jobs/{ident}/log", "get", response)
        return [entry["score"] for entry in response.json()["entries"]]

    assert scores("limit=3") == [29, 30, 31]
    assert scores("limit=3&before=29") == [26, 27, 28]
    assert scores("limit=3&after=10") == [11, 12, 13]
    assert scores("type=stdout") == [31]
    assert scores("after=31") == []
    entry = api.get(f"/jobs/{IDENT}/log?after=1&limit=1").json()["entries"][0]
    assert (entry["response_code"], entry["is_warning"], entry["is_error"]) == (404, True, False)
    for bad in ("limit=0", "limit=9999", "after=x", "type=odd", "nonsense=1", "before=-1"):
        assert api.get(f"/jobs/{IDENT}/log?{bad}").status_code == 422, bad


def test_pipelines_are_listed_with_their_jobs_and_can_be_drained(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    key = "pipeline:" + "a" * 32
    with redis_server.client() as client:
        run_job(client, IDENT, pipeline_id=key)
        record = {
            "id": key,
            "nickname": "nick",
            "hostname": "h",
            "pid": "7",
            "ts": str(int(time.time())),
            "disk_usage": "91.5",
            "load_average_1m": "0.5",
            "status": "Running",
        }
        client.hset(key, mapping=record)
        client.hset("pipeline:" + "b" * 32, mapping={"nickname": "old", "ts": "1700000000"})
    until(lambda: len(api.get("/pipelines").json()["pipelines"]) == 2)
    response = api.get("/pipelines")
    conforms("/pipelines", "get", response)
    first, second = response.json()["pipelines"]
    assert (first["nickname"], first["disk_usage"], first["load"][0]) == ("nick", 91.5, 0.5)
    assert first["jobs"] == [{"ident": IDENT, "url": f"http://{IDENT}.example/"}]
    assert (first["is_stale"], second["is_stale"]) == (False, True)
    until(lambda: api.get("/status").json()["pipelines"] == 1)
    assert api.get(f"/jobs/{IDENT}").json()["pipeline"] == "nick"
    drained = api.post(f"/pipelines/{'a' * 32}/drain", {"on": True})
    conforms("/pipelines/{id}/drain", "post", drained)
    assert drained.json()["pipeline"]["draining"] is True
    assert api.post(f"/pipelines/{'c' * 32}/drain", {"on": True}).status_code == 404
    told = api.client.get("/pipelines", headers={"accept": "application/json"}).json()["pipelines"]
    assert {"id", "nickname", "pid"} <= told[0].keys() | told[1].keys()


def test_figures_and_lists_agree_with_redis(api: DashboardClient, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, r2xx=5, items_queued=9, items_downloaded=6)
        run_job(client, OTHER, finished_at=1_700_000_100, r2xx=5)
        client.lrem("working", 0, OTHER)
        client.set("jobs_completed", 12)
    ident = api.submit("http://waits.example/", pipeline="nick")
    until(lambda: api.get("/status").json()["queues"].get("pending:nick") == 1)
    status = api.get("/status")
    conforms("/status", "get", status)
    assert (status.json()["running"], status.json()["queued"], status.json()["completed"]) == (1, 1, 12)
    for path in ("/jobs", "/finished", "/pending", "/dead", "/ignore-sets", "/session"):
        conforms(path, "get", api.get(path))
    conforms("/jobs/{ident}", "get", api.get(f"/jobs/{IDENT}"))
    until(lambda: [job["ident"] for job in api.get("/finished").json()["jobs"]] == [OTHER])
    states = {job["ident"]: job["state"] for job in api.get("/jobs").json()["jobs"]}
    assert states == {IDENT: "running", ident: "queued"}
    ended = api.get("/jobs?state=completed,failed").json()["jobs"]
    assert [job["ident"] for job in ended] == [OTHER]
    assert api.get(f"/jobs/{IDENT}").json()["todo"] == 3
    assert api.get("/jobs?state=odd").status_code == 422


def test_the_document_describes_every_route_and_its_schemas_hold_together(api: DashboardClient) -> None:
    described = api.get("/openapi.json").json()
    assert described["openapi"].startswith("3.1")
    listed = {
        (method.upper(), path.removeprefix("/api/v1"))
        for path, methods in described["paths"].items()
        for method in methods
    }
    assert listed == {(operation.method, operation.path) for operation in operations()}
    text = json.dumps(described)
    for name in set(re.findall(r'"#/components/schemas/([^"]+)"', text)):
        assert name in described["components"]["schemas"], name
    for schema in described["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    detail = described["components"]["schemas"]["JobDetail"]
    assert {"ident", "responses", "hosts", "ignores"} <= detail["properties"].keys()
    assert "ident" in detail["required"]
    assert "ignores" not in detail["required"]
    assert described["components"]["schemas"]["Submit"]["additionalProperties"] is False
    names = [one["operationId"] for methods in described["paths"].values() for one in methods.values()]
    assert len(names) == len(set(names))


def test_tools_made_for_archivebot_find_its_endpoints(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, r2xx=2)
        client.sadd(f"{IDENT}_ignores", "a.c")
        add_lines(client, IDENT, *(download(number) for number in range(20)))
        run_job(client, OTHER, finished_at=1_700_000_100)
        client.lrem("working", 0, OTHER)
        client.sadd(f"{OTHER}_ignores", "b")
    ident = api.submit("http://waits.example/")
    tool = {"accept": "application/json"}
    until(lambda: api.client.get("/status", headers=tool).json()["working"] == 1)
    recent = api.client.get("/logs/recent?count=3", headers=tool).json()
    assert [entry["url"][-2:] for entry in recent] == ["17", "18", "19"]
    assert recent[0]["job_data"]["r2xx"] == 2
    assert recent[0]["job_data"]["depth"] == "inf"
    status = api.client.get("/status", headers=tool).json()
    assert (status["pending"], status["working"], status["pending-others"]) == (1, 1, 0)
    assert status["pending-others-details"] == {}
    tagged = api.submit("http://tagged.example/", pipeline="blue")
    status = api.client.get("/status", headers=tool).json()
    until(lambda: api.client.get("/status", headers=tool).json()["pending-others"] == 1)
    details = api.client.get("/status", headers=tool).json()["pending-others-details"]
    assert details == {"pending:blue": 1}
    # The queues are looked at in another moment than the counts.
    until(lambda: "pending:blue" in api.client.get("/pending").text)
    assert api.client.get("/pending").text == (
        f"pending:\n    1. http://waits.example/ ({ident})\n"
        f"pending:blue:\n    1. http://tagged.example/ ({tagged})\n"
    )
    finished = api.client.get("/finished", headers=tool).json()
    assert (finished[0]["finished_at"], type(finished[0]["finished_at"])) == (1_700_000_100, int)
    assert [(job["ident"], job["finished"]) for job in finished] == [(OTHER, True)]
    assert f"{IDENT}\ta.c\n" in api.client.get(f"/ignores/{IDENT},{OTHER}").text
    for count in ("11", "0", "-1", "00001999999", f"00001{'0' * 5000}", "", "3.0", "\u0663"):
        assert api.client.get("/logs/recent", params={"count": count}, headers=tool).status_code == 400
    assert api.client.get("/ignores/pending", headers=tool).status_code == 400
    compact = api.client.get(f"/ignores/{ident}?compact=true").text
    assert compact == f"{ident}\tset global\n"
    api.post(f"/jobs/{ident}/ignore", {"pattern": "/own/"})
    compact = api.client.get(f"/ignores/{ident}?compact=true").text
    assert compact == f"{ident}\tset global\n{ident}\t/own/\n"
    assert api.client.get(f"/ignores/{ident},{IDENT}?compact=true").status_code == 400


def test_feeds_have_the_newest_messages_and_else_the_ends_of_jobs(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, OTHER, finished_at=1_700_000_100)
        client.lrem("working", 0, OTHER)
        client.sadd(f"{OTHER}_ignores", "b")
        atom = fromstring(api.client.get("/feed").text)
        name = "{http://www.w3.org/2005/Atom}"
        [entry] = atom.findall(f"{name}entry")
        assert entry.findtext(f"{name}title") == f"completed: http://{OTHER}.example/"
        assert entry.findtext(f"{name}updated") == "2023-11-14T22:15:00Z"
        client.zadd("tweets:done", {f"message {n} <b>": n for n in range(1, 121)})
        for path in ("/feed/archivebot.rss", "/feed/archivebot.atom"):
            found = [one.text for one in fromstring(api.client.get(path).text).iter() if one.text]
            assert [text for text in found if text.startswith("message")] == [
                f"message {n} <b>" for n in range(120, 20, -1)
            ]


def test_redis_that_is_away_is_told_and_ends_nothing() -> None:
    with serve_in_thread("redis://127.0.0.1:1/0") as running:
        api = DashboardClient(running.url)
        for path in ("/jobs", "/status", f"/jobs/{IDENT}", "/pending", "/pipelines"):
            response = api.get(path)
            assert response.status_code == 503
            assert "does not respond" in response.json()["detail"]
        assert api.post(f"/jobs/{IDENT}/pause").status_code == 503
        assert api.page("/").status_code == 503


def test_a_line_end_in_redis_makes_no_further_line(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        client.hset(IDENT, "url", f"http://a.example/\n    2. http://forged.example/ ({OTHER})")
        client.sadd(f"{IDENT}_ignores", f"calendar\n{OTHER}\t.*", "plain")
        client.lpush("pending", IDENT)
    tool = {"accept": "application/json"}
    pending = api.client.get("/pending", headers=tool).text
    assert pending == (
        f"pending:\n    1. http://a.example/\\n    2. http://forged.example/ ({OTHER}) ({IDENT})\n"
    )
    ignores = api.client.get(f"/ignores/{IDENT}").text
    assert ignores == f"{IDENT}\tcalendar\\n{OTHER}\\t.*\n{IDENT}\tplain\n"
