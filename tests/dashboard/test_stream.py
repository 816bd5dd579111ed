"""The stream: what a viewer is told, also when it comes back, reads slowly, or Redis goes away."""

from __future__ import annotations

import json
import socket
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from dashboard_client import IDENT, OTHER, DashboardClient, add_lines, download, run_job, until
from dashboard_serving import serve_in_thread
from redis_server import end, started_server

from amicrawl.fleet.dashboard.hub import MOST_VIEWERS, Followed
from amicrawl.fleet.dashboard.overview import Point, Rates
from amicrawl.fleet.dashboard.stream import MOST_BYTES, MOST_LINES, LogLine, Viewer, Wish
from amicrawl.fleet.dashboard.views import job_view
from amicrawl.fleet.database import RedisUnavailable
from amicrawl.fleet.jobs.watching import SeenJob

if TYPE_CHECKING:
    from collections.abc import Iterator

    from redis_server import RedisServer

    from amicrawl.fleet.dashboard.serving import Running


@pytest.fixture
def running(redis_server: RedisServer) -> Iterator[Running]:
    with serve_in_thread(redis_server.url) as found:
        yield found


@pytest.fixture
def api(running: Running) -> DashboardClient:
    return DashboardClient(running.url)


def lines(events: Iterator[tuple[str, Any, str]], ident: str, last: int) -> tuple[list[int], str]:
    """Read until the log entry *last* of *ident*; return the numbers read, and the last id."""
    found: list[int] = []
    for name, said, number in events:
        if name == "log" and said["ident"] == ident:
            found += [entry["score"] for entry in said["entries"]]
            if found and found[-1] >= last:
                return found, number
    raise AssertionError("the stream ended")


def test_a_viewer_is_told_the_past_then_what_happens(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT, r2xx=1)
        add_lines(client, IDENT, *(download(number) for number in range(300)))
        events = api.events(f"jobs={IDENT}&replay=50")
        told: dict[str, Any] = {}
        for name, said, _ in events:
            told.setdefault(name, said)
            if name == "log":
                break
        assert list(told) == ["hello", "overview", "job", "log"]
        assert told["overview"]["full"] is True
        # However lately the job began: a page that has it already must not be told otherwise.
        assert [job["ident"] for job in told["overview"]["jobs"]] == [IDENT]
        assert told["job"]["ident"] == IDENT
        assert {"ignores", "history", "files"} <= told["job"].keys()
        assert told["log"]["reset"] is True
        assert [entry["score"] for entry in told["log"]["entries"]] == list(range(251, 301))
        add_lines(client, IDENT, *(download(number) for number in range(300, 400)))
        assert lines(events, IDENT, 400)[0] == list(range(301, 401))
        client.hset(IDENT, "r2xx", 77)
        until(lambda: (e := next(events))[0] == "job" and e[1]["responses"]["r2xx"] == 77)
        client.hset(IDENT, "finished_at", 1_700_000_100)
        client.lrem("working", 0, IDENT)
        missing = {"gone", "completed"}
        for name, said, _ in events:
            if name == "overview" and said["gone"] == [IDENT]:
                missing.discard("gone")
            if name == "ended":
                missing.discard(said["state"])
            if not missing:
                break


def test_a_long_list_is_told_when_it_changed_and_not_with_every_figure(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    def tell(**rev: int) -> None:
        client.hset(f"amicrawl:facts:{IDENT}", "now", json.dumps({"ts": 1.0, "rev": rev}))

    with redis_server.client() as client:
        run_job(client, IDENT)
        client.sadd(f"{IDENT}_ignores", "a", "b")
        history = [{"ts": 5, "downloaded": 1}]
        client.hset(f"amicrawl:facts:{IDENT}", "history", json.dumps(history))
        tell(history=1)
        events = (said for name, said, _ in api.events(f"jobs={IDENT}") if name == "job")
        first = next(events)
        assert [ignore["pattern"] for ignore in first["ignores"]] == ["a", "b"]
        assert [point["ts"] for point in first["history"]] == [5.0]
        client.hset(IDENT, "r2xx", 1)
        second = next(events)
        assert second["responses"]["r2xx"] == 1
        assert not {"ignores", "history", "files"} & second.keys()
        client.hset(f"amicrawl:facts:{IDENT}", "history", json.dumps([*history, {"ts": 6}]))
        tell(history=2)
        until(lambda: "history" in (third := next(events)) and len(third["history"]) == 2)


def test_the_first_word_of_a_job_is_whole_also_where_its_log_was_followed_before(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    """Who goes from the page of all jobs to that of one: its log was followed, its details were not."""
    with redis_server.client() as client:
        run_job(client, IDENT)
        everything = api.events("jobs=*")
        for number in range(3):
            add_lines(client, IDENT, download(number))
            until(lambda: next(everything)[0] == "log")
            first = next(said for name, said, _ in api.events(f"jobs={IDENT}") if name == "job")
            assert {"ignores", "history", "files"} <= first.keys()


def test_who_comes_back_gets_what_was_missed_once(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(client, IDENT, *(download(number) for number in range(10)))
        _, last = lines(api.events(f"jobs={IDENT}"), IDENT, 10)
        add_lines(client, IDENT, *(download(number) for number in range(10, 15)))
        events = api.events(f"jobs={IDENT}", last_event_id=last)
        found, _ = lines(events, IDENT, 15)
        assert found == list(range(11, 16))
        events = api.events(f"jobs={IDENT}", last_event_id="0badcafe-7")
        found, _ = lines(events, IDENT, 15)
        assert found == list(range(1, 16))


def test_the_log_of_all_jobs_has_the_last_lines_of_one_that_has_just_ended(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    """What it says between two readings, the later of which finds it among those that run no more."""
    with redis_server.client() as client:
        events = api.events("jobs=*")
        for number in range(5):
            ident = f"{number:025d}"
            run_job(client, ident)
            add_lines(client, ident, download(1))
            lines(events, ident, 1)
            time.sleep(0.55 + 0.08 * number)  # from there to the next overview, in steps
            ended = client.pipeline()
            ended.zadd(f"{ident}_log", {download(2): 2, download(3): 3}).hset(ident, "log_score", 3)
            ended.lrem("working", 0, ident).publish("updates", ident)
            ended.execute()
            assert lines(events, ident, 3)[0] == [2, 3]


def test_a_job_that_was_submitted_again_is_in_the_log_of_all_jobs_from_its_first_line(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(client, IDENT, *(download(number) for number in range(100)))
        events = api.events("jobs=*")
        lines(events, IDENT, 100)
        client.delete(IDENT, f"{IDENT}_log", "working")
        run_job(client, IDENT)
        add_lines(client, IDENT, download(7))
        assert lines(events, IDENT, 1)[0] == [1]


def test_lists_that_redis_went_away_for_are_read_with_the_next_reading() -> None:
    class Going:
        """A watch whose Redis goes once the record was read, and comes back."""

        is_away = True

        def jobs(self, idents: list[str], *, facts: tuple[str, ...]) -> list[SeenJob]:
            if self.is_away:
                raise RedisUnavailable("away")
            return [SeenJob({}, dict.fromkeys(facts, "[]")) for _ in idents]

        def ignores(self, ident: str) -> list[str]:
            return [f"pattern of {ident}"]

    watch: Any = Going()
    seen = SeenJob({"url": "http://example.org/"})
    followed, job = Followed(IDENT), job_view(IDENT, seen)
    with pytest.raises(RedisUnavailable):
        followed.take_detail(job, seen, watch)
    watch.is_away = False
    (told,) = followed.take_detail(job, seen, watch).values()
    assert [each["pattern"] for each in json.loads(told)["ignores"]] == [f"pattern of {IDENT}"]
    assert {"ignores", "history", "files"} <= json.loads(told).keys()


def test_only_what_was_requested_is_told(api: DashboardClient, redis_server: RedisServer) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        run_job(client, OTHER)
        add_lines(client, IDENT, download(1), json.dumps({"ts": 1, "type": "stdout", "message": "said"}))
        add_lines(client, OTHER, download(2))
        events = api.events(f"jobs={IDENT}&types=stdout")
        for name, said, _ in events:
            assert name not in {"job", "log"} or said["ident"] == IDENT
            if name == "log":
                assert [entry["message"] for entry in said["entries"]] == ["said"]
                break
        everything = api.events("jobs=*")
        found: set[str] = set()
        while found != {IDENT, OTHER}:
            name, said, _ = next(everything)
            assert name != "job"
            if name == "log":
                found.add(said["ident"])
        for bad in ("jobs=nobody", "jobs=" + ",".join([IDENT] * 200), "replay=9999", "types=odd"):
            assert api.get(f"/events?{bad}").status_code == 422, bad


def test_a_flood_of_lines_is_bounded_and_what_was_skipped_is_counted(
    api: DashboardClient, redis_server: RedisServer
) -> None:
    with redis_server.client() as client:
        run_job(client, IDENT)
        add_lines(client, IDENT, download(0))
        events = api.events(f"jobs={IDENT}")
        lines(events, IDENT, 1)
        batch = client.pipeline(transaction=False)
        batch.zadd(f"{IDENT}_log", {download(number): number + 1 for number in range(1, 20_000)})
        batch.hset(IDENT, "log_score", 20_000)
        batch.publish("updates", IDENT)
        batch.execute()
        read = dropped = 0
        for name, said, _ in events:
            if name == "log":
                read += len(said["entries"])
                dropped += said["dropped"]
                if said["entries"] and said["entries"][-1]["score"] == 20_000:
                    break
        assert read + dropped == 19_999
        assert read <= MOST_LINES


def test_a_browser_that_does_not_read_holds_nobody_up(
    api: DashboardClient, running: Running, redis_server: RedisServer
) -> None:
    port = int(running.url.rpartition(":")[2])
    with (
        redis_server.client() as client,
        socket.create_connection(("127.0.0.1", port), timeout=10) as deaf,
    ):
        run_job(client, IDENT)
        deaf.sendall(f"GET /api/v1/events?jobs={IDENT} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        until(lambda: running.hub.viewers == 1)
        events = api.events(f"jobs={IDENT}")
        for begin in range(0, 5000, 500):
            add_lines(
                client,
                IDENT,
                *(
                    download(number, "http://x.example/" + "y" * 2000)
                    for number in range(begin, begin + 500)
                ),
            )
        found, _ = lines(events, IDENT, 5000)
        assert found[-1] == 5000
        deaf.close()
        until(lambda: running.hub.viewers == 1)


def test_there_are_only_so_many_viewers(running: Running, api: DashboardClient) -> None:
    viewers = [running.hub.join(Wish(), wake=lambda: None) for _ in range(MOST_VIEWERS)]
    assert None not in viewers
    assert api.get("/events").status_code == 503
    for viewer in viewers:
        assert viewer is not None
        running.hub.leave(viewer)
    assert next(api.events())[0] == "hello"


def test_redis_may_go_and_come_back() -> None:
    server = started_server()
    try:
        with serve_in_thread(server.url) as running:
            api = DashboardClient(running.url)
            with server.client() as client:
                run_job(client, IDENT)
                add_lines(client, IDENT, download(0))
            events = api.events(f"jobs={IDENT}")
            lines(events, IDENT, 1)
            server.kill()
            until(lambda: next(events)[0] == "away")
            server.start()
            with server.client() as client:
                run_job(client, IDENT)
                add_lines(client, IDENT, *(download(number) for number in range(3)))
            assert lines(events, IDENT, 3)[0][-1] == 3
            until(lambda: (e := next(events))[0] == "overview" and bool(e[1]["totals"]["running"]))
    finally:
        end(server)


def test_a_name_in_front_of_all_keys_is_kept_to(redis_server: RedisServer) -> None:
    with redis_server.client() as client, serve_in_thread(redis_server.url, prefix="team:") as running:
        run_job(client, OTHER)
        api = DashboardClient(running.url)
        ident = api.submit("http://team.example/")
        assert client.lrange("team:pending", 0, -1) == [ident]
        assert [job["ident"] for job in api.get("/jobs").json()["jobs"]] == [ident]
        until(lambda: api.get("/status").json()["running"] == 0)


def viewer(**wish: Any) -> tuple[Viewer, list[None]]:
    woken: list[None] = []
    return Viewer(Wish(**wish), wake=lambda: woken.append(None)), woken


def test_state_is_told_newest_only_and_a_viewer_is_woken_once() -> None:
    found, woken = viewer()
    for number in range(5):
        found.tell("job", b'{"n":%d}' % number, about="a")
        found.tell_overview(b"{}", {"a": b'{"n":%d}' % number}, (), is_full=number == 0)
    found.tell_overview(b"{}", {}, ["a", "b"], is_full=False)
    assert len(woken) == 1
    events, _ = found.take()
    overview, job = (json.loads(event.data) for event in events)
    assert [event.name for event in events] == ["overview", "job"]
    assert job == {"n": 4}
    assert (overview["full"], overview["jobs"], set(overview["gone"])) == (True, [], {"a", "b"})
    assert found.take()[0] == []
    found.tell("job", b"{}", about="a")
    assert len(woken) == 2


def test_lines_beyond_the_bounds_go_oldest_first_and_are_counted_by_job() -> None:
    found, _ = viewer(jobs=frozenset({"a", "b"}))
    found.tell_log("a", [LogLine(number, "download", b"{}") for number in range(MOST_LINES)], reset=True)
    found.tell_log("b", [LogLine(MOST_LINES + number, "download", b'{"b":1}') for number in range(10)])
    events, last = found.take()
    by_job = {json.loads(event.data)["ident"]: json.loads(event.data) for event in events}
    assert (by_job["a"]["dropped"], len(by_job["a"]["entries"])) == (10, MOST_LINES - 10)
    assert (by_job["b"]["dropped"], len(by_job["b"]["entries"])) == (0, 10)
    assert by_job["a"]["reset"] is True
    assert last == MOST_LINES + 9
    found.tell_log("a", [LogLine(n, "download", b'"%s"' % (b"x" * 100_000)) for n in range(100)])
    (event,), _ = found.take()
    assert len(event.data) <= MOST_BYTES + 10_000
    assert json.loads(event.data)["dropped"] > 0


def test_no_line_is_lost_or_told_twice_between_two_threads() -> None:
    found, _ = viewer(all_logs=True)
    total = 5000
    got: list[int] = []

    def fill() -> None:
        for number in range(1, total + 1):
            found.tell_log("a", [LogLine(number, "download", b"%d" % number)])

    filling = threading.Thread(target=fill)
    filling.start()
    dropped = 0
    deadline = time.monotonic() + 30
    while len(got) + dropped < total and time.monotonic() < deadline:
        for event in found.take()[0]:
            said = json.loads(event.data)
            got += said["entries"]
            dropped += said["dropped"]
    filling.join()
    assert len(got) + dropped == total
    assert got == sorted(set(got))


def test_rates_are_those_of_the_last_seconds() -> None:
    rates = Rates()
    assert rates.items() is None
    for second in range(100):
        rates.add(Point(float(second), second * 2, second * 1000, second * 5))
    assert (rates.items(), rates.bytes(), rates.lines()) == (2.0, 1000.0, 5.0)
    rates.add(Point(100.0, 0, 0, 0))
    assert rates.items() is None
