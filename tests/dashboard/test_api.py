"""The HTTP API: every verb, every list, its document, and ArchiveBot's endpoints beside it."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import fromstring

import jsonschema
import pytest
from dashboard_asking import IDENT, OTHER, Asking, add_lines, download, run_job, until
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
def asking(redis_server: RedisServer, running: Running) -> Asking:
    return Asking(running.url)


def conforms(operation_path: str, method: str, answer: Any) -> None:
    """Check *answer* against what the document says of it."""
    described = document(operations())
    operation = described["paths"]["/api/v1" + operation_path][method]
    told = operation["responses"][str(answer.status_code)]["content"]
    kind = answer.headers["content-type"].partition(";")[0]
    schema = {**told[kind]["schema"], "components": described["components"]}
    jsonschema.validate(answer.json(), schema)


def test_a_job_that_is_submitted_is_there_once_and_waits(
    asking: Asking, redis_server: RedisServer
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
    answer = asking.post("/jobs", said)
    conforms("/jobs", "post", answer)
    ident = answer.json()["ident"]
    job = asking.get(f"/jobs/{ident}").json()
    assert job["url"] == "http://example.org/b"
    assert (job["state"], job["queue"], job["depth"]) == ("queued", "pending-ao", "shallow")
    assert (job["delay_min"], job["delay_max"], job["concurrency"]) == (0, 375, 2)
    assert {"pattern": "secret", "hits": None} in job["ignores"]
    assert (job["started_by"], job["note"], job["user_agent"]) == ("dashboard", "a note", "Somebody")
    again = asking.post("/jobs", said)
    assert (again.status_code, again.json()["ident"]) == (409, ident)
    with redis_server.client() as client:
        assert client.lrange("pending-ao", 0, -1) == [ident]


def test_jobs_are_listed_by_the_filters_of_the_page(asking: Asking) -> None:
    for name in ("a", "b", "c"):
        said = {"url": f"http://{name}.example.org/", "note": "leap year" if name < "c" else ""}
        assert asking.post("/jobs", said).status_code == 201

    def listed(query: str) -> list[str]:
        answer = asking.get(f"/jobs?{query}")
        conforms("/jobs", "get", answer)
        return [job["url"][7] for job in answer.json()["jobs"]]

    assert listed("") == ["a", "b", "c"]
    assert listed("search=LEAP+year") == ["a", "b"]
    assert listed("search=leap&sort=-url&limit=1") == ["b"]
    assert listed("by=dashboard&pipeline=pending&state=queued") == ["a", "b", "c"]
    assert listed("by=anna") == listed("pipeline=fra-1") == listed("state=running") == []
    assert asking.get("/jobs?sort=colour").status_code == 422


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
    asking: Asking, redis_server: RedisServer, body: Any
) -> None:
    headers = {"x-csrf-token": asking.csrf, "content-type": "application/json"}
    answer = asking.client.post("/api/v1/jobs", content=json.dumps(body), headers=headers)
    conforms("/jobs", "post", answer)
    assert answer.status_code == 422
    assert len(answer.json()["detail"]) > 10
    with redis_server.client() as client:
        assert client.dbsize() == 0


@pytest.mark.parametrize("body", [b"", b"{", b"\xff\xfe", b'{"url": NaN}', b"[" * 100_000])
def test_what_is_no_json_is_refused(asking: Asking, body: bytes) -> None:
    headers = {"x-csrf-token": asking.csrf, "content-type": "application/json"}
    assert asking.client.post("/api/v1/jobs", content=body, headers=headers).status_code == 422


def test_every_verb_changes_its_field_and_tells_the_crawl(
    asking: Asking, redis_server: RedisServer
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
            answer = asking.post(f"/jobs/{IDENT}/{name}", body)
            conforms(f"/jobs/{{ident}}/{name}", "post", answer)
            assert answer.status_code == 200, answer.text
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
    assert asking.get(f"/jobs/{IDENT}").json()["state"] == "aborting"


def test_a_crawl_without_a_lease_has_no_rate(asking: Asking, redis_server: RedisServer) -> None:
    """What a crawl reported last says nothing once its pipeline is gone."""

    def rates() -> tuple[float | None, float | None]:
        (job,) = asking.get("/jobs").json()["jobs"]
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
    asking: Asking, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        run_job(client, OTHER, finished_at=1_700_000_100)
    wrong = asking.post(f"/jobs/{IDENT}/ignore", {"pattern": "("})
    assert wrong.status_code == 422
    assert asking.post(f"/jobs/{IDENT}/expire").status_code == 409
    assert asking.post(f"/jobs/{OTHER}/pause").status_code == 409
    for unknown in ("0" * 25, "nobody", "pending", "working", "x" * 30, "%2e%2e"):
        answer = asking.get(f"/jobs/{unknown}")
        assert answer.status_code == 404, unknown
        assert asking.post(f"/jobs/{unknown}/pause").status_code in {404, 422}, unknown


def test_a_waiting_job_is_moved_and_removed(asking: Asking) -> None:
    idents = [asking.submit(f"http://{name}.example/") for name in "abc"]
    answer = asking.post("/pending/move", {"queue": "pending", "ident": idents[2], "position": 0})
    conforms("/pending/move", "post", answer)

    def order() -> list[str]:
        queues = asking.get("/pending").json()["queues"]
        return [job["ident"] for queue in queues if queue["name"] == "pending" for job in queue["jobs"]]

    assert order() == [idents[2], idents[0], idents[1]]
    asking.post("/pending/move", {"queue": "pending", "ident": idents[2], "position": 99})
    assert order() == [idents[0], idents[1], idents[2]]
    assert asking.post("/pending/remove", {"queue": "pending", "ident": idents[0]}).status_code == 200
    assert order() == [idents[1], idents[2]]
    assert asking.post("/pending/remove", {"queue": "pending", "ident": idents[0]}).status_code == 409
    assert (
        asking.post("/pending/move", {"queue": "working", "ident": idents[1], "position": 0}).status_code
        == 422
    )
    assert order() == [idents[1], idents[2]]


def test_a_pattern_is_tried_on_what_the_log_tells(asking: Asking, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(client, IDENT, *(download(number) for number in range(20)))
    answer = asking.post(f"/jobs/{IDENT}/test-pattern", {"pattern": "org/1[0-4]$"})
    conforms("/jobs/{ident}/test-pattern", "post", answer)
    assert (answer.json()["tested"], answer.json()["matched"]) == (20, 5)
    urls = [f"http://{IDENT}.example/x", "http://other.example/x"]
    answer = asking.post(f"/jobs/{IDENT}/test-pattern", {"pattern": "{primary_netloc}", "urls": urls})
    assert answer.json()["urls"] == urls[:1]
    for bad in ("(", "(a+", "(?P<x"):
        told = asking.post(f"/jobs/{IDENT}/test-pattern", {"pattern": bad}).json()
        assert (told["valid"], told["matched"]) == (False, 0)
        assert len(told["why"]) > 10
    with redis_server.client() as client:
        assert not client.exists(f"{IDENT}_ignores")


def test_a_log_is_read_from_its_end_and_from_any_place(
    asking: Asking, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(
            client, IDENT, *(download(number, code=(200, 404, 500)[number % 3]) for number in range(30))
        )
        add_lines(client, IDENT, json.dumps({"ts": 1, "type": "stdout", "message": "hello"}))

    def scores(query: str) -> list[int]:
        answer = asking.get(f"/jobs/{IDENT}/log?{query}")
        conforms("/jobs/{ident}/log", "get", answer)
        return [entry["score"] for entry in answer.json()["entries"]]

    assert scores("limit=3") == [29, 30, 31]
    assert scores("limit=3&before=29") == [26, 27, 28]
    assert scores("limit=3&after=10") == [11, 12, 13]
    assert scores("type=stdout") == [31]
    assert scores("after=31") == []
    entry = asking.get(f"/jobs/{IDENT}/log?after=1&limit=1").json()["entries"][0]
    assert (entry["response_code"], entry["is_warning"], entry["is_error"]) == (404, True, False)
    for bad in ("limit=0", "limit=9999", "after=x", "type=odd", "nonsense=1", "before=-1"):
        assert asking.get(f"/jobs/{IDENT}/log?{bad}").status_code == 422, bad


def test_pipelines_are_listed_with_their_jobs_and_can_be_drained(
    asking: Asking, redis_server: RedisServer
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
    until(lambda: len(asking.get("/pipelines").json()["pipelines"]) == 2)
    answer = asking.get("/pipelines")
    conforms("/pipelines", "get", answer)
    first, second = answer.json()["pipelines"]
    assert (first["nickname"], first["disk_usage"], first["load"][0]) == ("nick", 91.5, 0.5)
    assert first["jobs"] == [{"ident": IDENT, "url": f"http://{IDENT}.example/"}]
    assert (first["is_stale"], second["is_stale"]) == (False, True)
    until(lambda: asking.get("/status").json()["pipelines"] == 1)
    assert asking.get(f"/jobs/{IDENT}").json()["pipeline"] == "nick"
    drained = asking.post(f"/pipelines/{'a' * 32}/drain", {"on": True})
    conforms("/pipelines/{id}/drain", "post", drained)
    assert drained.json()["pipeline"]["draining"] is True
    assert asking.post(f"/pipelines/{'c' * 32}/drain", {"on": True}).status_code == 404
    told = asking.client.get("/pipelines", headers={"accept": "application/json"}).json()["pipelines"]
    assert {"id", "nickname", "pid"} <= told[0].keys() | told[1].keys()


def test_figures_and_lists_agree_with_redis(asking: Asking, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, r2xx=5, items_queued=9, items_downloaded=6)
        run_job(client, OTHER, finished_at=1_700_000_100, r2xx=5)
        client.lrem("working", 0, OTHER)
        client.set("jobs_completed", 12)
    ident = asking.submit("http://waits.example/", pipeline="nick")
    until(lambda: asking.get("/status").json()["queues"].get("pending:nick") == 1)
    status = asking.get("/status")
    conforms("/status", "get", status)
    assert (status.json()["running"], status.json()["queued"], status.json()["completed"]) == (1, 1, 12)
    for path in ("/jobs", "/finished", "/pending", "/dead", "/ignore-sets", "/session"):
        conforms(path, "get", asking.get(path))
    conforms("/jobs/{ident}", "get", asking.get(f"/jobs/{IDENT}"))
    until(lambda: [job["ident"] for job in asking.get("/finished").json()["jobs"]] == [OTHER])
    states = {job["ident"]: job["state"] for job in asking.get("/jobs").json()["jobs"]}
    assert states == {IDENT: "running", ident: "queued"}
    ended = asking.get("/jobs?state=completed,failed").json()["jobs"]
    assert [job["ident"] for job in ended] == [OTHER]
    assert asking.get(f"/jobs/{IDENT}").json()["todo"] == 3
    assert asking.get("/jobs?state=odd").status_code == 422


def test_the_document_describes_every_route_and_its_schemas_hold_together(asking: Asking) -> None:
    described = asking.get("/openapi.json").json()
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


def test_tools_made_for_archivebot_find_its_endpoints(asking: Asking, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, r2xx=2)
        client.sadd(f"{IDENT}_ignores", "a.c")
        add_lines(client, IDENT, *(download(number) for number in range(20)))
        run_job(client, OTHER, finished_at=1_700_000_100)
        client.lrem("working", 0, OTHER)
        client.sadd(f"{OTHER}_ignores", "b")
    ident = asking.submit("http://waits.example/")
    tool = {"accept": "application/json"}
    until(lambda: asking.client.get("/status", headers=tool).json()["working"] == 1)
    recent = asking.client.get("/logs/recent?count=3", headers=tool).json()
    assert [entry["url"][-2:] for entry in recent] == ["17", "18", "19"]
    assert recent[0]["job_data"]["r2xx"] == 2
    assert recent[0]["job_data"]["depth"] == "inf"
    status = asking.client.get("/status", headers=tool).json()
    assert (status["pending"], status["working"], status["pending-others"]) == (1, 1, 0)
    assert status["pending-others-details"] == {}
    tagged = asking.submit("http://tagged.example/", pipeline="blue")
    status = asking.client.get("/status", headers=tool).json()
    until(lambda: asking.client.get("/status", headers=tool).json()["pending-others"] == 1)
    details = asking.client.get("/status", headers=tool).json()["pending-others-details"]
    assert details == {"pending:blue": 1}
    # The queues are looked at in another moment than the counts.
    until(lambda: "pending:blue" in asking.client.get("/pending").text)
    assert asking.client.get("/pending").text == (
        f"pending:\n    1. http://waits.example/ ({ident})\n"
        f"pending:blue:\n    1. http://tagged.example/ ({tagged})\n"
    )
    finished = asking.client.get("/finished", headers=tool).json()
    assert (finished[0]["finished_at"], type(finished[0]["finished_at"])) == (1_700_000_100, int)
    assert [(job["ident"], job["finished"]) for job in finished] == [(OTHER, True)]
    assert f"{IDENT}\ta.c\n" in asking.client.get(f"/ignores/{IDENT},{OTHER}").text
    assert asking.client.get("/logs/recent?count=11", headers=tool).status_code == 400
    assert asking.client.get("/ignores/pending", headers=tool).status_code == 400
    compact = asking.client.get(f"/ignores/{ident}?compact=true").text
    assert compact == f"{ident}\tset global\n"
    asking.post(f"/jobs/{ident}/ignore", {"pattern": "/own/"})
    compact = asking.client.get(f"/ignores/{ident}?compact=true").text
    assert compact == f"{ident}\tset global\n{ident}\t/own/\n"
    assert asking.client.get(f"/ignores/{ident},{IDENT}?compact=true").status_code == 400


def test_feeds_have_the_newest_messages_and_else_the_ends_of_jobs(
    asking: Asking, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, OTHER, finished_at=1_700_000_100)
        client.lrem("working", 0, OTHER)
        client.sadd(f"{OTHER}_ignores", "b")
        atom = fromstring(asking.client.get("/feed").text)
        name = "{http://www.w3.org/2005/Atom}"
        [entry] = atom.findall(f"{name}entry")
        assert entry.findtext(f"{name}title") == f"completed: http://{OTHER}.example/"
        assert entry.findtext(f"{name}updated") == "2023-11-14T22:15:00Z"
        client.zadd("tweets:done", {f"message {n} <b>": n for n in range(1, 121)})
        for path in ("/feed/archivebot.rss", "/feed/archivebot.atom"):
            found = [one.text for one in fromstring(asking.client.get(path).text).iter() if one.text]
            assert [text for text in found if text.startswith("message")] == [
                f"message {n} <b>" for n in range(120, 20, -1)
            ]


def test_redis_that_is_away_is_told_and_ends_nothing() -> None:
    with serve_in_thread("redis://127.0.0.1:1/0") as running:
        asking = Asking(running.url)
        for path in ("/jobs", "/status", f"/jobs/{IDENT}", "/pending", "/pipelines"):
            answer = asking.get(path)
            assert answer.status_code == 503
            assert "does not answer" in answer.json()["detail"]
        assert asking.post(f"/jobs/{IDENT}/pause").status_code == 503
        assert asking.page("/").status_code == 503
