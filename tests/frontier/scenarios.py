"""Scheduling scenarios, played by our frontier with a hand-moved clock; the test plays the crawl."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from itertools import pairwise
from math import log2
from typing import TYPE_CHECKING, Any, Self

import pytest
from faulty_disks import QuickDisk
from urls.vectors import VECTOR_FILES

from amicrawl.capture import Failure
from amicrawl.config import Identity
from amicrawl.errors import AmicrawlError
from amicrawl.frontier import DurableFrontier, Found, Offer, Outcome, Source
from amicrawl.frontier.revisits import Observation, Revisits
from amicrawl.meguri import LivePartition, Status
from amicrawl.politeness import Gates, HostBreaker, InflightLimit
from amicrawl.seed import Seed
from amicrawl.urls import Canonical, UrlKey, canonicalize, seed_key, text_of, url_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from amicrawl.meguri.rows import HostRow, UrlRow

    Line = dict[str, Any]
    Fetches = list[tuple[float, str]]
    """When which URL was handed out."""

VECTORS = VECTOR_FILES / "sched.jsonl"
HOUR = 3600
WEEK = 168
_META = {b"amicrawl.identity": b"canonical"}
_STATUS_NAMES = {
    "scheduled": Status.SCHEDULED,
    "in_flight": Status.IN_FLIGHT,
    "crawled": Status.CRAWLED,
    "gone": Status.GONE,
    "excluded_robots": Status.EXCLUDED,
    "trapped": Status.TRAPPED,
}


def scenarios() -> dict[str, Line]:
    """Return the scenarios by name."""
    lines = map(json.loads, VECTORS.read_text(encoding="utf-8").splitlines())
    return {line["name"]: line for line in lines}


def single(bits: str) -> float:
    """Return the number of single precision with these *bits*."""
    (value,) = struct.unpack("<f", int(bits, 0).to_bytes(4, "little"))
    return float(value)


def key_in(halves: list[str]) -> UrlKey:
    return UrlKey(int(halves[0], 0), int(halves[1], 0))


class WithoutShare(InflightLimit):
    """The reference keeps no part of the limit for hosts that have sent something."""

    @property
    def for_silent(self) -> int:
        return self.limit


class Weekly(Revisits):
    """Every page is due again after a week, as in a crawl without estimates."""

    def scheduled(self, row: UrlRow, visit: Observation, host: HostRow | None) -> dict[str, float]:
        changed = super().scheduled(row, visit, host)
        return {**changed, "rate": 0.0, "next_due": visit.fetched_at + WEEK}


def priority_bucket(priority: float) -> int:
    """Return the bucket, of 64, in which the reference queues *priority*: four an octave.

    Our queues go by the priority itself.
    """
    if not priority > 0:
        return 0
    return 63 if priority >= 1 else 63 - min(int(-log2(priority) * 4), 63)


@dataclass(frozen=True)
class Rules:
    """What a scenario is played with."""

    whole_seconds: bool = True
    """Delays as the reference keeps them, rounded down; otherwise as they were requested."""
    buckets: bool = False
    """Offer with the bucket of a priority in its place: what shares one keeps the order of offers."""
    in_flight: int = 1000
    weekly: bool = False
    """A crawl that goes on, over weeks, and requests each page once a week."""
    canonical_seeds: bool = False
    """Key seeds like links; the reference does not."""
    retry_after: bool = False
    """Shut the gate of a host for as long as it wants."""


class World:
    """Our frontier, and a crawl around it."""

    def __init__(self, directory: Path, line: Line, rules: Rules) -> None:
        self.rules = rules
        self.directory = directory
        times = [step["now"] for step in line["steps"] if "now" in step]
        self.clock = float(times[0] if times else 0)
        # What is known of a page comes with its seed; once it was crawled, nothing more is taken.
        warm = [step for step in line["steps"] if step["op"] == "warm"]
        self.warm: dict[UrlKey, Line] = {key_in(step["key"]): step for step in reversed(warm)}
        self.fetches: Fetches = []
        self.refused_reports = 0
        self._open()

    def _open(self) -> None:
        self.gates = Gates(1.0, 1)
        self.partition = LivePartition(
            self.directory, disk=QuickDisk(), hour=int(self.clock // HOUR), meta=_META
        )
        self.frontier = DurableFrontier(
            self.partition,
            self.gates,
            HostBreaker(10**6, max_retries=0),
            WithoutShare(self.rules.in_flight, 1, self.rules.in_flight),
            wall=lambda: self.clock,
            now=self.clock,
            recrawl_before=int(self.clock // HOUR) if self.rules.weekly else None,
            revisits=Weekly() if self.rules.weekly else None,
        )
        self.flying: dict[UrlKey, Seed] = {}

    def reopen(self, *, closed: bool = True) -> None:
        """End the process, and begin the next one."""
        self.frontier.flush()
        if closed:
            self.frontier.close()
        else:
            self.partition.abandon()
        self._open()

    def end(self) -> None:
        self.partition.abandon()

    def at(self, now: float) -> None:
        """Move the clock; it does not go back."""
        self.clock = max(self.clock, float(now))

    def offer(
        self,
        url: str,
        key: UrlKey,
        priority: float,
        *,
        source: Source = Source.SEED,
        depth: int = 0,
    ) -> bool:
        known = self.warm.get(key)
        seed = Seed(url)
        if known is not None:
            seed = Seed(
                url,
                digest=digest_of(known["fingerprint"]),
                etag=known["etag"],
                last_modified=str(known["last_modified"]),
            )
        if self.rules.buckets:
            priority = priority_bucket(priority)
        return self.frontier.offer(Offer(seed, key, source, priority, depth))

    def seed(self, url: str, priority: str, crawl_delay: int) -> bool:
        key = url_key(url, Identity.CANONICAL) if self.rules.canonical_seeds else seed_key(url)
        is_first = not any(row.host == key.host for row in self.rows().values())
        entered = self.offer(url, key, single(priority))
        if is_first:
            delay = crawl_delay // 10 if self.rules.whole_seconds else crawl_delay / 10
            self.gates.set_delay(key.host, delay)
        return entered

    def discover(self, said: Line) -> bool:
        return self.offer(
            said["url"],
            key_in(said["key"]),
            single(said["link_weight"]),
            source=Source(said["source"]),
            depth=said["depth"],
        )

    def next(self) -> Seed | None:
        """Take what comes next now, and return what it is to be requested with."""
        dispatch = self.frontier.next(self.clock)
        if dispatch is None:
            return None
        self.fetches.append((self.clock, dispatch.offer.seed.url))
        self.flying[dispatch.key] = dispatch.offer.seed
        return dispatch.offer.seed

    def report(self, key: UrlKey, said: Line) -> None:
        """Settle what is in flight at *key* with an outcome of the vectors."""
        seed = self.flying.pop(key, None)
        if seed is None:
            self.refused_reports += 1
            with pytest.raises(AmicrawlError, match="not in flight"):
                self.frontier.settle(key, Outcome(status=200), self.clock)
            return
        outcome = outcome_of(said, seed)
        target = said.get("redirect_target", "")
        form = canonicalize(target, base=seed.url) if target else None
        if isinstance(form, Canonical):
            outcome = outcome._replace(redirect=form.url)
            self._offer_redirect(form.url, key)
        if self.rules.retry_after and outcome.retry_after:
            self.gates.keep_shut(key.host, self.clock + outcome.retry_after)
        self.frontier.settle(key, outcome, self.clock)

    def _offer_redirect(self, url: str, source: UrlKey) -> None:
        row = self.row(source)
        key = url_key(url, Identity.CANONICAL)
        self.offer(url, key, row.priority, source=Source.REDIRECT, depth=row.depth)

    def row(self, key: UrlKey) -> UrlRow:
        number = self.partition.find(*key)
        assert number is not None
        return self.partition.get(number)

    def rows(self) -> dict[UrlKey, UrlRow]:
        found = map(self.partition.get, range(len(self.partition.state.rows)))
        return {UrlKey(row.host, row.path): row for row in found}

    def text_at(self, reference: int) -> str:
        return text_of(self.partition.texts_at(reference)[0])

    def said(self, row: UrlRow) -> Line:
        """Return *row* as the vectors tell of one."""
        fields: Line = {
            "url": self.text_at(row.url_ref),
            "status": int(row.status),
            "priority": f"0x{struct.unpack('<I', struct.pack('<f', row.priority))[0]:08x}",
            "lambda": row.rate,
            "etag": self.text_at(row.etag_ref) if row.etag_ref else "",
            "redirect": self.text_at(row.redirect_ref) if row.redirect_ref else "",
            "content_fp": f"0x{row.content_fp:016x}" if row.content_fp else 0,
        }
        fields |= {name: getattr(row, name) for name in _NUMBERS}
        return {name: value for name, value in fields.items() if value}

    def drive(
        self, result: Callable[[UrlKey, str, int], Line | Failure], *, within: float = 0.9 * HOUR
    ) -> Fetches:
        """Crawl for so many seconds: what is handed out gets its response at once.

        *respond* is given the key, the URL and how often it was fetched before.
        """
        end = self.clock + within
        begun = len(self.fetches)
        before: dict[UrlKey, int] = {}
        while self.clock <= end:
            if self.next() is not None:
                (key,) = self.flying
                said = result(key, self.flying[key].url, before.get(key, 0))
                before[key] = before.get(key, 0) + 1
                if isinstance(said, Failure):
                    del self.flying[key]
                    self.frontier.settle(key, Outcome(failure=said), self.clock)
                else:
                    self.report(key, said)
                continue
            moment = self.frontier.next_moment(self.clock)
            if moment is None:
                if not self.frontier.later:
                    break
                moment = (self.clock // HOUR + 1) * HOUR
            assert moment > self.clock
            self.clock = moment
        return self.fetches[begun:]


_NUMBERS = (
    "depth",
    "source",
    "last_crawled",
    "last_changed",
    "next_due",
    "crawl_count",
    "change_count",
    "no_change_streak",
    "http_status",
    "retry_count",
    "error_count",
)
_COUNTED_FOR_HOSTS = frozenset(
    {"url_count", "crawl_total", "error_total", "avg_latency", "host_next_eligible"}
)
NEVER_COMPARED = frozenset({"key", "first_seen", "simhash", "last_modified", "lambda"})
"""The first is ours to choose (when a URL was offered, not what its seed says); no simhash is taken of
pages; `Last-Modified` is kept as it was sent, behind the ETag; rates are compared where they are
estimated at all."""


class Worlds:
    """The worlds of one test, each in a directory of its own; closed whatever happens."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._open: list[World] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        for world in self._open:
            world.end()

    def __call__(self, line: Line, rules: Rules = Rules()) -> World:
        world = World(self._directory / str(len(self._open)), line, rules)
        self._open.append(world)
        return world


def digest_of(fingerprint: str) -> str:
    """Return a digest of a payload with this fingerprint."""
    return f"{int(fingerprint, 0):016x}".ljust(40, "0")


def outcome_of(said: Line, seed: Seed) -> Outcome:
    """Return what the vectors say of a fetch as the crawl would; *seed* is what was sent."""
    if not said["http_status"]:
        return Outcome(failure=Failure.CONNECT_TIMEOUT)
    unchanged = bool(said.get("not_modified"))
    digest = digest_of(said["content_fp"]) if "content_fp" in said else ""
    modified = str(said["last_modified"]) if "last_modified" in said else ""
    found = Found(
        digest=seed.digest if unchanged else digest,
        etag=said.get("etag", "") or (seed.etag if unchanged else ""),
        last_modified=modified or (seed.last_modified if unchanged else ""),
        unchanged=unchanged,
    )
    return Outcome(
        said["http_status"],
        found=found,
        latency_ms=said.get("latency_ms", 0),
        retry_after=-(-said.get("retry_after_ds", 0) // 10),
    )


def rows_of_the_reference(line: Line) -> dict[UrlKey, Line]:
    """Return every row as it was at the end."""
    rows: dict[UrlKey, Line] = {}
    for step in line["steps"]:
        rows.update((key_in(row["key"]), row) for row in step.get("urls_changed", ()))
    return rows


def hosts_of_the_reference(line: Line) -> dict[int, Line]:
    """Return every host as it was at the end."""
    hosts: dict[int, Line] = {}
    for step in line["steps"]:
        hosts.update((int(row["key"], 0), row) for row in step.get("hosts_changed", ()))
    return hosts


def fetches_of_the_reference(line: Line) -> Fetches:
    """Return when the reference handed out which URL; its requests for robots.txt aside."""
    return [
        (step["now"], step["request"]["url"])
        for step in line["steps"]
        if step["op"] == "dispatch" and step["request"] and "robots" not in step["request"]
    ]


def results_of(line: Line) -> Callable[[UrlKey, str, int], Line | Failure]:
    """Return what gives the responses that the reference got, URL by URL."""
    results: dict[UrlKey, list[Line]] = {}
    for step in line["steps"]:
        if step["op"] == "report":
            results.setdefault(key_in(step["key"]), []).append(step["outcome"])
    return lambda key, _url, before: results[key][before]


def seeded(world: World, line: Line) -> World:
    """Offer every seed of *line*, those too that the reference was given later."""
    for step in line["steps"]:
        if step["op"] == "seed":
            world.seed(step["url"], step["priority"], step["crawl_delay"])
    return world


def follow(world: World, steps: Iterable[Line], *, waits: bool = True) -> None:
    """Do what the reference did, step by step, and compare every result.

    Without *waits*, what it says of when to request again is not compared.
    """
    for step in steps:
        world.at(step.get("now", world.clock))
        match step["op"]:
            case "seed":
                entered = world.seed(step["url"], step["priority"], step["crawl_delay"])
                assert entered == bool(step.get("urls_changed") or step.get("brief")), step
            case "discover":
                assert world.discover(step["discovery"]) == step["entered"], step
            case "dispatch":
                _compare_request(world.next(), step)
            case "report":
                for link in _new_links(step):
                    world.discover(link)
                world.report(key_in(step["key"]), step["outcome"])
            case "next_eligible" if waits:
                assert world.frontier.next_moment(world.clock) == step["at"], step
            case "stats":
                _compare_counts(world, step)


def _compare_request(requested: Seed | None, step: Line) -> None:
    request = step["request"]
    assert (requested and requested.url) == (request and request["url"]), step
    if requested is not None:
        assert requested.etag == request.get("etag", "")
        assert requested.last_modified == str(request.get("last_modified", ""))


def _new_links(step: Line) -> list[Line]:
    """Return the links of a report that were new, each with the priority that the reference gave it."""
    changed = {tuple(row["key"]): row for row in step.get("urls_changed", ())}
    return [
        {**link, "link_weight": changed[tuple(link["key"])]["priority"]}
        for link in step["outcome"].get("links", ())
        if tuple(link["key"]) in changed
    ]


def _compare_counts(world: World, step: Line) -> None:
    counts = {_STATUS_NAMES[name]: count for name, count in step["by_status"].items()}
    assert {status: count for status, count in world.frontier.counts.items() if count} == counts
    assert len(world.frontier) == step["urls"]


def compare_rows(world: World, line: Line, *, apart: frozenset[str] = frozenset()) -> None:
    """Compare every row at the end, but for the fields *apart*."""
    left_out = NEVER_COMPARED | apart | ({"priority"} if world.rules.buckets else set())
    ours = world.rows()
    theirs = rows_of_the_reference(line)
    assert ours.keys() == theirs.keys()
    for key, row in theirs.items():
        said = world.said(ours[key])
        wanted = {name: value for name, value in row.items() if name not in left_out}
        assert {name: value for name, value in said.items() if name not in left_out} == wanted


def compare_hosts(world: World, line: Line, *, apart: frozenset[str] = frozenset()) -> None:
    """Compare what is counted for each host, but for the fields *apart*.

    Not its delay: gates know that, and the row of a new host says one second whatever it is.
    """
    world.frontier.flush()
    for host, said in hosts_of_the_reference(line).items():
        row = world.partition.host(host)
        assert row is not None
        for name in _COUNTED_FOR_HOSTS - apart:
            assert getattr(row, name) == said.get(name, 0), (said, name)


def host_in(url: str) -> str:
    return url.split("/")[2]


def by_host(fetches: Fetches) -> dict[str, list[str]]:
    """Return the URLs of each host in the order in which they were handed out."""
    hosts: dict[str, list[str]] = {}
    for _, url in fetches:
        hosts.setdefault(host_in(url), []).append(url)
    return hosts


def least_distance(fetches: Fetches) -> float:
    """Return the least time between two fetches of one host."""
    times: dict[str, list[float]] = {}
    for moment, url in fetches:
        times.setdefault(host_in(url), []).append(moment)
    return min(
        (later - earlier for moments in times.values() for earlier, later in pairwise(moments)),
        default=float("inf"),
    )
