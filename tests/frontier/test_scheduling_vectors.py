"""The scheduling scenarios of the reference, each played by our frontier: what agrees, or not, and why.

`SCENARIOS` has an entry for every one: the comparison, whose docstring says what holds for both, and a
sentence on what differs.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from frontier.scenarios import (
    HOUR,
    WEEK,
    Rules,
    World,
    Worlds,
    by_host,
    compare_hosts,
    compare_rows,
    fetches_of_the_reference,
    follow,
    host_in,
    key_in,
    least_distance,
    results_of,
    rows_of_the_reference,
    scenarios,
    seeded,
    single,
)
from protego import Protego

from amicrawl.capture import Failure
from amicrawl.frontier.admission import TrapDetector, admit, classify
from amicrawl.frontier.outcomes import Soft404Detector
from amicrawl.meguri import Status
from amicrawl.urls import seed_key

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from amicrawl.meguri.rows import UrlRow
    from amicrawl.urls import UrlKey

    Line = dict[str, Any]
    Check = Callable[[Line, Worlds], None]

FOUND = scenarios()
NONE: frozenset[str] = frozenset()


def alike(
    line: Line,
    open_world: Worlds,
    *,
    rules: Rules = Rules(),  # noqa: B008  # it cannot change
    apart: frozenset[str] = NONE,
    hosts_apart: frozenset[str] = NONE,
    waits: bool = True,
    refused_reports: int = 0,
) -> None:
    """The same URLs at the same moments, the same rows and hosts at the end, but for fields *apart*."""
    world = open_world(line, rules)
    follow(world, line["steps"], waits=waits)
    compare_rows(world, line, apart=apart)
    compare_hosts(world, line, apart=hosts_apart)
    assert world.refused_reports == refused_reports


def same_urls(
    line: Line,
    open_world: Worlds,
    *,
    every: float = 1.0,
    ordered: bool = True,
    rules: Rules = Rules(),  # noqa: B008
) -> None:
    """The same URLs, once each; those of a host in the same order, and with so many seconds between."""
    world = seeded(open_world(line, rules), line)
    ours = world.drive(results_of(line))
    theirs = fetches_of_the_reference(line)
    assert sorted(url for _, url in ours) == sorted(url for _, url in theirs)
    assert least_distance(ours) >= every
    if ordered:
        assert by_host(ours) == by_host(theirs)


def evenly(line: Line, open_world: Worlds, *, every: float, rules: Rules = Rules()) -> None:  # noqa: B008
    """The same URLs in the same order, all of one host, exactly so many seconds apart."""
    world = seeded(open_world(line, rules), line)
    ours = world.drive(results_of(line))
    theirs = fetches_of_the_reference(line)
    assert [url for _, url in ours] == [url for _, url in theirs]
    assert [moment for moment, _ in ours] == [every * number for number in range(len(theirs))]


def crawl_delays(line: Line, open_world: Worlds) -> None:
    """With delays rounded down, the same URLs at the same moments; with real ones, just those apart."""
    theirs = fetches_of_the_reference(line)
    world = seeded(open_world(line), line)
    # Among hosts that open in the same second the reference goes by their keys, and we by their turns.
    ours = world.drive(results_of(line), within=10 * HOUR)
    assert sorted(ours) == sorted(theirs)
    compare_rows(world, line)
    world = seeded(open_world(line, Rules(whole_seconds=False)), line)
    delays = {
        host_in(step["url"]): step.get("crawl_delay", 0) for step in line["steps"] if "url" in step
    }
    moments: dict[str, list[float]] = {}
    for moment, url in world.drive(results_of(line), within=10 * HOUR):
        moments.setdefault(host_in(url), []).append(moment)
    for host, delay in delays.items():
        spacing = max(1.0, delay / 10)
        assert moments[host] == pytest.approx([0.0, spacing, 2 * spacing])


def later_and_better(line: Line, open_world: Worlds) -> None:
    """The better URL is next of its host; the moments are the same."""
    world = open_world(line)
    for step in line["steps"]:
        world.at(step.get("now", 0))
        if step["op"] == "seed":
            world.seed(step["url"], step["priority"], step["crawl_delay"])
        elif step["op"] == "dispatch":
            assert (world.next() is None) == (step["request"] is None)
        elif step["op"] == "report":
            (key,) = world.flying
            world.report(key, step["outcome"])
    theirs = fetches_of_the_reference(line)
    first, second, third, late = (url for _, url in theirs)
    assert [url for _, url in world.fetches] == [first, late, second, third]
    assert [moment for moment, _ in world.fetches] == [moment for moment, _ in theirs]


def second_report(line: Line, open_world: Worlds) -> None:
    """The second report raises, and the next URL is handed out once."""
    world = open_world(line)
    results = []
    for step in line["steps"]:
        world.at(step.get("now", 0))
        if step["op"] == "seed":
            world.seed(step["url"], step["priority"], step["crawl_delay"])
        elif step["op"] == "dispatch":
            seed = world.next()
            results.append(seed and seed.url)
        elif step["op"] == "report":
            world.report(key_in(step["key"]), step["outcome"])
    assert results == ["http://dup.example/0", "http://dup.example/1", None, None]
    assert world.refused_reports == 1
    assert {row.crawl_count for row in world.rows().values()} == {1}


def gone_at_once(line: Line, open_world: Worlds) -> None:
    """Requested once and not five times, and as gone as in the reference; looked for in two weeks."""
    world = seeded(open_world(line), line)
    ours = world.drive(results_of(line), within=100 * HOUR)
    assert ours == fetches_of_the_reference(line)[:1]
    (row,) = world.rows().values()
    (said,) = rows_of_the_reference(line).values()
    assert (row.status, row.http_status) == (said["status"], said["http_status"])
    assert row.next_due == world.clock // HOUR + 2 * WEEK


def five_attempts(line: Line, open_world: Worlds) -> None:
    """As many attempts and the same row at the end; between them, the hours that are only noted."""
    world = seeded(open_world(line), line)
    ours = world.drive(results_of(line), within=100 * HOUR)
    theirs = fetches_of_the_reference(line)
    assert [url for _, url in ours] == [url for _, url in theirs]
    noted = [
        row["next_due"] - step["outcome"]["fetched_at"]
        for step in line["steps"]
        if step["op"] == "report"
        for row in step["urls_changed"]
    ]
    hours = [moment // HOUR for moment, _ in ours]
    assert [after - before for before, after in pairwise(hours)] == noted[:-1]
    compare_rows(world, line, apart=frozenset({"next_due"}))


def without_states(line: Line, open_world: Worlds) -> None:
    """The same URLs in the same order, and behind them the target of the redirect."""
    world = seeded(open_world(line), line)
    responded = results_of(line)
    ours = world.drive(
        lambda key, url, before: (
            {"http_status": 200} if url.endswith("/x") else responded(key, url, before)
        )
    )
    theirs = fetches_of_the_reference(line)
    assert [url for _, url in ours] == [*(url for _, url in theirs), "http://n.example/x"]
    assert [moment for moment, _ in ours] == list(range(6))


def no_response(line: Line, open_world: Worlds) -> None:
    """The same URL at the same moment; ours is tried again after an hour."""
    world = open_world(line)
    follow(world, [step for step in line["steps"] if step["op"] != "stats"])
    (row,) = world.rows().values()
    assert (row.status, row.crawl_count) == (Status.SCHEDULED, 0)
    assert row.next_due == world.clock // HOUR + 1


def transport_errors(line: Line, open_world: Worlds) -> None:
    """The same URLs at the same moments; ours are tried again after an hour."""
    world = open_world(line)
    follow(world, line["steps"])
    rows = world.rows().values()
    assert {(row.status, row.next_due, row.error_count) for row in rows} == {(Status.SCHEDULED, 1, 1)}


def failures_then_success(line: Line, open_world: Worlds) -> None:
    """First attempts in the same order; the same URLs crawled, the same gone, after as many errors."""
    world = seeded(open_world(line, Rules(canonical_seeds=True)), line)
    by_url: dict[str, list[Line]] = {}
    for step in line["steps"]:
        if step["op"] == "report":
            by_url.setdefault(_url_of(line, step["key"]), []).append(step["outcome"])
    ours = world.drive(lambda _key, url, before: by_url[url][before], within=100 * HOUR)
    theirs = fetches_of_the_reference(line)
    assert list(dict.fromkeys(url for _, url in ours)) == list(dict.fromkeys(url for _, url in theirs))
    # The reference fetches the target of the redirect once more, under its other key.
    assert len(world.rows()) == len(rows_of_the_reference(line)) - 1
    for said in rows_of_the_reference(line).values():
        row = world.row(seed_of(world, said["url"]))
        assert row.status == said["status"], said
        assert row.crawl_count == said.get("crawl_count", 0)
        if said["url"] != "http://f.example/dead":  # its third response is a 404, which settles it here
            assert row.error_count == said.get("error_count", 0)


def seed_of(world: World, url: str) -> UrlKey:
    (key,) = (key for key, row in world.rows().items() if world.text_at(row.url_ref) == url)
    return key


def _url_of(line: Line, halves: list[str]) -> str:
    return str(rows_of_the_reference(line)[key_in(halves)]["url"])


def with_robots(line: Line, open_world: Worlds) -> None:
    """The same URLs fetched, the same excluded, though it is the crawl that reads robots.txt."""
    bodies: dict[int, Protego] = {}
    for step in line["steps"]:
        outcome = step.get("outcome", {})
        if "robots_body" in outcome and outcome["http_status"] == 200:
            bodies[key_in(step["key"]).host] = Protego.parse(outcome["robots_body"])

    def respond(key: UrlKey, url: str, before: int) -> Line | Failure:
        rules = bodies.get(key.host)
        if rules is not None and not rules.can_fetch(url, line["options"]["robots_agent"]):
            return Failure.ROBOTS_DENIED
        return responded(key, url, before)

    responded = results_of(line)
    world = seeded(open_world(line), line)
    requested = {url for _, url in world.drive(respond)}
    rows = world.rows()
    theirs = rows_of_the_reference(line)
    assert {key: row.status for key, row in rows.items()} == {
        key: row["status"] for key, row in theirs.items()
    }
    excluded = {row["url"] for row in theirs.values() if row["status"] == Status.EXCLUDED}
    assert requested - excluded == {url for _, url in fetches_of_the_reference(line)}
    for row in rows.values():
        assert row.crawl_count == theirs[_key(row)].get("crawl_count", 0)


def _key(row: UrlRow) -> UrlKey:
    return key_in([str(row.host), str(row.path)])


def future_seeds(line: Line, open_world: Worlds) -> None:
    """The same URLs at the same moments until the recovery, and after it what is not due still waits."""
    steps = line["steps"]
    recovery = next(at for at, step in enumerate(steps) if step["op"] == "checkpoint_and_recover")
    dated = [step for step in steps if step["op"] == "seed" and step["next_due"] > step["first_seen"]]
    world = open_world(line, Rules(weekly=True))
    # An offer has no date of its own: rows that are due later come with a file.
    for step in dated:
        key = seed_key(step["url"])
        number = world.partition.claim(*key)
        assert number is not None
        row = (*key, Status.SCHEDULED, single(step["priority"]), 0, 0)
        text = step["url"].encode()
        world.partition.fill(number, row, bytes([len(text)]) + text, first_seen=0)
        world.partition.put(number, world.partition.get(number)._replace(next_due=step["next_due"]))
    world.reopen()
    before = [step for step in steps[:recovery] if step not in dated and step["op"] != "due_list"]
    follow(world, before, waits=False)
    world.reopen()
    theirs = fetches_of_the_reference({"steps": steps[recovery:]})
    begun = len(world.fetches)
    for moment, _ in theirs:
        world.at(moment)
        while world.next() is not None:
            (key,) = world.flying
            world.report(key, {"http_status": 200, "fetched_at": int(moment // HOUR)})
    early = "http://w.example/in2000"  # due at 2100, which the last of these moments does not reach
    assert world.fetches[begun:] == [fetch for fetch in theirs if fetch[1] != early]
    assert world.row(seed_key(early)).next_due == 2100


def due_when_it_is_due(line: Line, open_world: Worlds) -> None:
    """The first fetch is the same; a recovery does not make the page due, a week does."""
    steps = line["steps"]
    recovery = next(at for at, step in enumerate(steps) if step["op"] == "checkpoint_and_recover")
    world = open_world(line, Rules(weekly=True))
    follow(world, steps[:recovery])
    world.reopen()
    assert world.frontier.next(world.clock + 60) is None
    world.at(world.clock + WEEK * HOUR)
    assert world.next() is not None


def estimates(line: Line, open_world: Worlds) -> None:
    """Given the same visits at the same hours, the same counts and the same rate of change."""
    world = open_world(line)
    compared = 0
    for step in line["steps"]:
        world.at(step.get("now", 0))
        if step["op"] == "seed":
            world.seed(step["url"], step["priority"], step["crawl_delay"])
        elif step["op"] == "report":
            key = key_in(step["key"])
            if key not in world.flying:
                # The reference requests again because it was restarted; ours because it is told to.
                world.frontier.due_again(key, is_lost=False)
                while world.next() is not None:
                    pass
            (said,) = step["urls_changed"]
            world.report(key, step["outcome"])
            row = world.row(key)
            for name in ("crawl_count", "change_count", "no_change_streak", "last_changed"):
                assert getattr(row, name) == said.get(name, 0), (name, said)
            if row.crawl_count > 1:  # from one visit nothing is estimated here
                assert row.rate == pytest.approx(single(said["lambda"]), rel=2e-7)
                compared += 1
    assert compared == 8


def with_bodies_of_one_kind(line: Line, open_world: Worlds) -> None:
    """The same URLs at the same moments; the rule finds the same pages to be error pages."""
    world = open_world(line)
    detector = Soft404Detector()
    follow(world, [step for step in line["steps"] if step["op"] != "stats"])
    for step in line["steps"]:
        if step["op"] == "report":
            host, path = key_in(step["key"])
            found = detector.observe(host, int(step["outcome"]["content_fp"], 0), path=path)
            assert found == (step["urls_changed"][0]["status"] == Status.GONE)
    compare_rows(world, line, apart=frozenset({"status"}))


def over_budget(line: Line, open_world: Worlds) -> None:
    """The rules, which the frontier does not apply by itself, let the same links in."""
    world = open_world(line)
    known = budget = 0
    sources = set()
    for step in line["steps"]:
        if step["op"] != "discover":
            continue
        said = step["discovery"]
        sources.add(said["source_host"])
        budget = 64 + 16 * len(sources)  # as the reference has it
        refusal = admit(
            said["depth"], depth_cap=0, url_count=known, url_budget=budget, suspect=False, passes=True
        )
        assert (refusal is None) == step["entered"], step
        assert refusal is not None or world.discover(said)
        known += 1
    stats, snapshot = line["steps"][-2:]
    assert budget == snapshot["host"]["url_budget"]
    assert world.frontier.counts[Status.SCHEDULED] == stats["by_status"]["scheduled"]


def trap_patterns(line: Line, open_world: Worlds) -> None:
    """The rules, which the frontier does not apply by itself, let the same links in, restart or not."""
    world = open_world(line)
    detector, suspect = TrapDetector(), False
    for step in line["steps"]:
        if step["op"] == "checkpoint_and_recover":
            detector = TrapDetector()
        if step["op"] != "discover":
            continue
        said = step["discovery"]
        key = key_in(said["key"])
        trap = classify(said["url"], step["now"] // HOUR)
        suspect |= detector.observe(key.host, said["url"], path=key.path, trap=trap)
        passes = detector.passes(key.host, trap, suspect=suspect)
        refusal = admit(
            said["depth"], depth_cap=0, url_count=0, url_budget=0, suspect=suspect, passes=passes
        )
        assert (refusal is None) == step["entered"], step
        assert refusal is not None or world.discover(said)
    stats = line["steps"][-1]
    assert world.frontier.counts[Status.SCHEDULED] == stats["by_status"]["scheduled"]


def recovery(line: Line, open_world: Worlds) -> None:
    """The same until the process ends; then the same URLs in the same order within each host."""
    steps = line["steps"]
    death = next(at for at, step in enumerate(steps) if step["op"] == "checkpoint_and_recover")
    for closed in (True, False):
        world = open_world(line)
        follow(world, steps[:death])
        lost = set(world.flying)
        world.reopen(closed=closed)
        assert world.frontier.lapsed == len(lost) == 2
        assert {world.row(key).status for key in lost} == {Status.SCHEDULED}
        ours = world.drive(lambda _key, _url, _before: {"http_status": 200, "latency_ms": 100})
        assert by_host(ours) == by_host(fetches_of_the_reference({"steps": steps[death:]}))
        compare_rows(world, line)


def validators(line: Line, open_world: Worlds) -> None:
    """The same URLs at the same moments, with the same validators in each request."""
    world = open_world(line, Rules(weekly=True))
    follow(world, [step for step in line["steps"] if step["op"] != "warm"], waits=False)
    # A row is due once its hour has come; nothing is written to say so before it is handed out.
    # No simhash is taken: what the reference takes for a retouched page counts as changed here. What a
    # seed says of an earlier capture is sent, but is no visit that a change is measured from.
    compare_rows(
        world, line, apart=frozenset({"status", "no_change_streak", "change_count", "last_changed"})
    )


def no_starving(line: Line, open_world: Worlds) -> None:
    """The same URLs; what waited a week in the reference is requested at the first moment."""
    same_urls(line, open_world)
    world = seeded(open_world(line), line)
    while world.next() is not None:
        pass
    assert "http://old.example/waiting" in {url for _, url in world.fetches}
    assert fetches_of_the_reference(line)[80][1] == "http://old.example/waiting"


def shards(line: Line, open_world: Worlds) -> None:
    """The same URLs, the best first of all, where the reference takes turns between its two lines."""
    world = seeded(open_world(line), line)
    while world.next() is not None:
        pass
    theirs = fetches_of_the_reference(line)
    assert sorted(world.fetches) == sorted(theirs)
    priorities = {
        step["url"]: single(step["priority"]) for step in line["steps"] if step["op"] == "seed"
    }
    ours = [priorities[url] for _, url in world.fetches]
    assert ours == sorted(ours, reverse=True)
    assert [priorities[url] for _, url in theirs] != ours


def larger_mix(line: Line, open_world: Worlds) -> None:
    """The same URLs; those that never respond 404 end as in the reference, after as many failures."""
    steps = {step["op"]: step for step in line["steps"]}
    world = open_world(line)
    for url, _host, priority, crawl_delay in steps["seed_many"]["rows"]:
        world.seed(url, priority, crawl_delay)
    missing: set[str] = set()

    def respond(key: UrlKey, url: str, before: int) -> Line:
        drawn = ((key.path >> 7) ^ (before * 0x9E37)) % 10
        if drawn == 1 and before == 0:
            missing.add(url)
            return {"http_status": 404}
        if drawn in (0, 2):
            return {"http_status": 410 if drawn else 503}
        return {"http_status": 200, "latency_ms": 200 * (before + 1) if drawn == 3 else 100}

    ours = world.drive(respond, within=100 * HOUR)
    theirs = [(moment, url) for moment, url in steps["drive"]["dispatches"]]
    assert {url for _, url in ours} == {url for _, url in theirs}
    assert least_distance(ours) >= 1
    rows = {world.text_at(row.url_ref): row for row in world.rows().values()}
    compared = 0
    for url, *wanted, due in steps["final_records"]["rows"]:
        row = rows[url]
        if url in missing:
            assert (row.status, row.http_status, row.crawl_count) == (Status.GONE, 404, 0)
            continue
        assert [row.status, row.retry_count, row.error_count, row.crawl_count] == wanted, url
        if row.error_count == 0:
            # A host has so few URLs that all first attempts are made within the hour.
            assert row.next_due == due
        compared += 1
    assert compared > 200


class Scenario(NamedTuple):
    """How a scenario is compared."""

    check: Check
    why: str = "nothing differs"


SAME = Scenario(alike)
ROBOTS = Scenario(
    with_robots, "robots.txt is fetched and obeyed by the crawl, whose refusals the frontier is told"
)
RETRIED = Scenario(
    five_attempts,
    "the reference tries again at once, five times within seconds; here the pauses are kept",
)
MISSING = Scenario(gone_at_once, "a refusal is a response: it is not requested five times in a row")
NOT_ADAPTED = (
    "the delay of a host does not follow its latency and errors, robots.txt and operator set it"
)

SCENARIOS = {
    "priority then politeness": SAME,
    "seeding again and ties": SAME,
    "crawl delays": Scenario(crawl_delays, "the reference rounds delays down to whole seconds"),
    "a better URL discovered late": Scenario(
        later_and_better, "the reference binds every waiting URL to its place at once"
    ),
    "bounded active hosts": Scenario(same_urls, "there is no bound on hosts that have a queue"),
    "dispatch threads raise the target": Scenario(
        partial(alike, rules=Rules(in_flight=12), apart=frozenset({"status"})),
        "there is no such target; the limit on requests in flight does the same",
    ),
    "outcomes out of order": Scenario(
        partial(
            alike,
            rules=Rules(buckets=True),
            apart=frozenset({"crawl_count"}),
            hosts_apart=frozenset({"crawl_total", "avg_latency"}),
            waits=False,
            refused_reports=2,
        ),
        "a second report and one of an unknown URL raise, where the reference counts one more crawl and "
        "files its host twice; and 0.7 goes before 0.6, which share a bucket there",
    ),
    "the same outcome delivered twice": Scenario(
        second_report, "a second report raises; the reference hands the next URL out twice"
    ),
    "state machine: 200": SAME,
    "state machine: 304 with flag": SAME,
    "state machine: 304 without flag": Scenario(
        partial(alike, apart=frozenset({"no_change_streak"})), "every 304 says that nothing changed"
    ),
    "state machine: 404": MISSING,
    "state machine: 410": Scenario(
        partial(alike, apart=frozenset({"next_due"})), "what was withdrawn is looked for after a year"
    ),
    "state machine: 500": RETRIED,
    "state machine: 503 retryable": RETRIED,
    "state machine: 429": RETRIED,
    "state machine: timeout": RETRIED,
    "state machine: status zero, not retryable": Scenario(
        no_response, "no response is no crawl; the reference counts one"
    ),
    "state machine: 301 with target": SAME,
    "state machine: 302 to another host": SAME,
    "state machine: 301 without target": SAME,
    "state machine: 301 to nothing crawlable": SAME,
    "state machine: 401": MISSING,
    "state machine: 204": SAME,
    "state machine off": Scenario(without_states, "there is no crawl without states; " + NOT_ADAPTED),
    "failures then success": Scenario(
        failures_then_success,
        "pauses are kept, a 404 settles, and seeds have the keys of links, so that the target of the "
        "redirect is known",
    ),
    "adaptive rate: 429 with retry-after 60 s": Scenario(
        partial(evenly, every=60.0, rules=Rules(retry_after=True)),
        "a Retry-After holds for the very next request, and is not doubled",
    ),
    "adaptive rate: 503 forever": Scenario(partial(evenly, every=1.0), NOT_ADAPTED),
    "adaptive rate: healthy and fast": SAME,
    "adaptive rate: delay 5 s, 503 forever": Scenario(partial(evenly, every=5.0), NOT_ADAPTED),
    "adaptive rate: transport errors": Scenario(transport_errors, "no response is no crawl"),
    "adaptive rate: rising and falling latency": Scenario(partial(evenly, every=1.0), NOT_ADAPTED),
    "adaptive rate: own policy": Scenario(
        same_urls, NOT_ADAPTED + "; and addresses are looked up by the fetcher"
    ),
    "hosts sharing an address": Scenario(
        same_urls, "addresses are the fetcher's business: hosts are told apart by their domain"
    ),
    "unresolved name": Scenario(alike, "nothing differs, but that no address comes with a request"),
    "robots": ROBOTS,
    "robots answered with 404": ROBOTS,
    "robots answered with 503": ROBOTS,
    "robots answered with no answer": ROBOTS,
    "robots answered with 301": ROBOTS,
    "robots answered with 200 with an empty body": ROBOTS,
    "robots answered with 403": ROBOTS,
    "robots forbid everything": ROBOTS,
    "schedule index: future seeds and recrawls": Scenario(
        future_seeds, "a recovery does not forget when a row is due; an offer has no date of its own"
    ),
    "freshness with the schedule index": Scenario(
        due_when_it_is_due, "the reference requests again never or at once, and we when it is due"
    ),
    "freshness with recoveries": Scenario(
        estimates,
        "nothing is estimated from one visit; a restart makes nothing due; intervals follow another "
        "water level",
    ),
    "discoveries": SAME,
    "importance and budgets": Scenario(
        partial(alike, rules=Rules(buckets=True)),
        "importance is not computed: links are offered with what the reference computed",
    ),
    "budget exhausted": Scenario(over_budget, "what is over the budget is not offered at all"),
    "trap patterns": Scenario(trap_patterns, "what is refused is not offered at all"),
    "soft 404": Scenario(
        with_bodies_of_one_kind,
        "the rule is not applied to rows: an error page is a capture as any other",
    ),
    "recovery in mid-crawl": Scenario(
        recovery,
        "when a host is due again is written down with the response: one that was in flight "
        "when the process ended may be contacted at once",
    ),
    "validators": Scenario(validators, "see the comparison"),
    "age promotion": Scenario(no_starving, "there is no bound on active hosts, so none waits for it"),
    "sharded ready bank": Scenario(shards, "there is one line, for one thread"),
    "larger mix": Scenario(larger_mix, "as for its parts: pauses are kept, a 404 settles"),
}


def test_every_scenario_has_its_comparison() -> None:
    assert list(SCENARIOS) == list(FOUND)
    assert all(scenario.why for scenario in SCENARIOS.values())


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_is_played_as_in_the_reference_or_differs_as_told(name: str, tmp_path: Path) -> None:
    with Worlds(tmp_path) as worlds:
        SCENARIOS[name].check(FOUND[name], worlds)
