"""ArchiveBot's own endpoints, for tools that read those: what they respond, without their pages.

They only read. Unlike there, no other site's pages may read them (CORS is closed), and they take
signing in.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring
from zlib import crc32

import orjson
from starlette.responses import PlainTextResponse, Response

from amicrawl.discovery import ignore_set, set_names
from amicrawl.fleet.dashboard.problems import Problem
from amicrawl.fleet.dashboard.wording import iso, one_line, plain, whole
from amicrawl.fleet.database import PENDING, PENDING_SHALLOW, TAGGED, is_ident, scored_at
from amicrawl.fleet.jobs import lookup

if TYPE_CHECKING:
    from starlette.requests import Request

    from amicrawl.fleet.dashboard.app import Site

_MOST_RECENT = 10
_COUNTS = {str(count): count for count in range(1, _MOST_RECENT + 1)}
_MOST_IDENTS = 50
_MOST_MESSAGES = 100
_LONGEST_MESSAGE = 1000
_TITLE = "Archived sites"
_OURS = frozenset({"score", "link"})


def recent_logs(site: Site, request: Request) -> Response:
    """`/logs/recent?count=1..10`: the last entries of every job that runs, each with its job."""
    most = _COUNTS.get(request.query_params.get("count", str(_MOST_RECENT)))
    if most is None:
        raise Problem(400, f"count is a number from 1 to {_MOST_RECENT}.")
    running = site.board.running()
    with site.store.responding():
        records = lookup.jobs(site.store, running)
    entries = site.board.recent(list(records), most=most)
    jobs = [
        {
            **{name: value for name, value in entry.items() if name not in {"score", "link"}},
            "job_data": data,
        }
        for ident, data in ((ident, _job_data(record)) for ident, record in records.items())
        for entry in entries[ident]
        if entry["type"] != "unknown"
    ]
    return _json(jobs)


def status(site: Site, _request: Request) -> Response:
    """`/status`: how many jobs are queued, run and have ended."""
    totals = site.board.totals(viewers=0)
    queues = totals["queues"]
    others = {name: count for name, count in queues.items() if name.startswith(TAGGED)}
    return _json(
        {
            "pending": queues.get(PENDING, 0),
            "pending-ao": queues.get(PENDING_SHALLOW, 0),
            "pending-others": sum(others.values()),
            "pending-others-details": others,
            "working": totals["running"],
            "completed": totals["completed"],
            "aborted": totals["aborted"],
            "failed": totals["failed"],
        }
    )


def pipelines(site: Site, _request: Request) -> Response:
    """`/pipelines` for clients that accept JSON: the records as they are, all values texts."""
    with site.store.responding():
        records = site.board.pipeline_records()
    return _json(
        {
            "pipelines": [
                {plain(name): plain(value) for name, value in record.items()} for record in records
            ]
        }
    )


def pending(site: Site, _request: Request) -> Response:
    """`/pending` where no HTML is requested: each queue that holds jobs, and these numbered below it."""
    lines = []
    for queue in site.board.queues():
        if queue["jobs"]:
            lines.append(f"{one_line(queue['name'])}:")
            lines += [
                f"    {number}. {one_line(job['url'])} ({job['ident']})"
                for number, job in enumerate(queue["jobs"], start=1)
            ]
    return PlainTextResponse("".join(f"{line}\n" for line in lines))


def finished(site: Site, _request: Request) -> Response:
    """`/finished` for clients that accept JSON: the jobs that have ended."""
    with site.store.responding():
        records = lookup.finished(site.store)
    return _json([_job_data(record) for record in records])


def ignores(site: Site, request: Request) -> Response:
    """`/ignores/IDENT[,IDENT]`: a line for each pattern, the ident and a tab before it.

    With `compact=true` and one ident, a line `set NAME` stands for all patterns of a shipped set.
    """
    idents = request.path_params["idents"].split(",")
    if len(idents) > _MOST_IDENTS or not all(map(is_ident, idents)):
        raise Problem(400, f"Name up to {_MOST_IDENTS} idents with commas between.")
    is_compact = request.query_params.get("compact") == "true"
    if is_compact and len(idents) > 1:
        raise Problem(400, "compact=true is for one ident.")
    with site.store.responding():
        found = [(ident, lookup.ignores(site.store, ident)) for ident in idents]
    return PlainTextResponse(
        "".join(
            f"{ident}\t{one_line(line)}\n"
            for ident, patterns in found
            for line in (_compact(patterns) if is_compact else patterns)
        )
    )


def _compact(patterns: list[str]) -> list[str]:
    """Return the shipped sets that are in *patterns* as a whole, then the patterns of none of them."""
    left, names = dict.fromkeys(patterns), []
    for name in set_names():
        expressions = [entry.expression for entry in ignore_set(name)]
        if all(expression in left for expression in expressions):
            names.append(name)
            for expression in expressions:
                del left[expression]
    return [*(f"set {name}" for name in names), *left]


def feed(site: Site, request: Request) -> Response:
    """`/feed`, `/feed/archivebot.rss`, `/feed/archivebot.atom`: the newest 100 messages, Atom or RSS.

    Messages are those of ArchiveBot's `tweets:done`; where there are none, the ends of jobs.
    """
    with site.store.responding():
        messages = [
            (when, plain(text, limit=_LONGEST_MESSAGE))
            for when, text in scored_at(
                site.store,
                f"{site.store.keys.prefix}tweets:done",
                most=_MOST_MESSAGES,
                longest=_LONGEST_MESSAGE,
                newest=True,
            )
        ][::-1]
        messages = messages or [
            (record.ended_at or 0.0, f"{record.state}: {plain(record.url)}")
            for record in lookup.finished(site.store, most=_MOST_MESSAGES)
        ]
    address = str(request.base_url)
    if request.url.path.endswith(".rss"):
        return Response(_rss(messages, address), media_type="application/rss+xml")
    return Response(_atom(messages, address), media_type="application/atom+xml")


def _atom(messages: list[tuple[float, str]], address: str) -> bytes:
    root = Element("feed", xmlns="http://www.w3.org/2005/Atom")
    SubElement(root, "title").text = _TITLE
    SubElement(root, "id").text = address
    SubElement(root, "updated").text = iso(messages[0][0] if messages else 0.0)
    SubElement(SubElement(root, "author"), "name").text = "amicrawl"
    for when, text in messages:
        entry = SubElement(root, "entry")
        SubElement(entry, "id").text = f"{address}#{when:.0f}-{crc32(text.encode()):08x}"
        SubElement(entry, "title").text = text
        SubElement(entry, "updated").text = iso(when)
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _rss(messages: list[tuple[float, str]], address: str) -> bytes:
    root = Element("rss", version="2.0")
    channel = SubElement(root, "channel")
    for name, text in (("title", _TITLE), ("link", address), ("description", "The newest messages")):
        SubElement(channel, name).text = text
    for when, text in messages:
        item = SubElement(channel, "item")
        SubElement(item, "title").text = text
        if iso(when):
            SubElement(item, "pubDate").text = format_datetime(datetime.fromtimestamp(when, UTC))
    return bytes(tostring(root, encoding="utf-8", xml_declaration=True))


def _job_data(record: Any) -> dict[str, Any]:
    data: dict[str, Any] = record.job_data()
    times = {name: whole(data[name]) for name in ("queued_at", "started_at", "finished_at")}
    texts = {name: plain(value) for name, value in data.items() if isinstance(value, str)}
    return {**data, **texts, **times}


def _json(content: Any) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
