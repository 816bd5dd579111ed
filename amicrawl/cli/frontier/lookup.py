"""`amicrawl frontier show` and `explain`: one URL, its row and its host, decoded, and why it is due."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from ipaddress import IPv6Address
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
import typer

from amicrawl.cli.frontier.rows import (
    CAUSES,
    HOUR,
    AnyPath,
    AtHour,
    as_text_field,
    flag_names,
    float_value,
    hour_begins,
    hour_text,
    key_text,
    second_text,
    source_name,
    within_hour,
)
from amicrawl.cli.options import AsJson, json_text, print_lines
from amicrawl.crawl import provenance_of
from amicrawl.errors import InputError
from amicrawl.frontier import Offer, Source, offered, settled_at
from amicrawl.meguri import (
    ANNEX_MARK,
    RESTING,
    WAITING,
    Status,
    conventions,
    find_url,
    open_rows,
    status_name,
    string_at,
)
from amicrawl.meguri.format.faults import Malformed
from amicrawl.meguri.format.schema import HOST_COLUMNS, URL_COLUMNS, Codec
from amicrawl.meguri.format.strings import annex_at, unpack_robots
from amicrawl.terminal import harmless, human_span
from amicrawl.urls import Canonical, UrlKey, canonical_form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from amicrawl.meguri import RowSource


_HOURS = ("first_seen", "last_crawled", "last_changed", "next_due", "last_modified")
_HOST_HOURS = ("ip_expiry", "robots_fetched", "robots_expiry")
_HOST_SECONDS = ("host_next_eligible", "ip_next_eligible")
_KEYS = ("host_key", "path_key", "content_fp", "simhash")
_STRINGS = {"url_ref": "url", "etag_ref": "etag", "redirect_ref": "redirect"}
_HOST_STRINGS = {"host_ref": "host", "registrable_ref": "registrable"}


def row_facts(source: RowSource, row: int) -> dict[str, Any]:
    """Return every field of URL row *row*, then its strings and annexes, as JSON values.

    Beside a time in hours stands the date as `<name>_at`, null for never.
    """
    names = [column.name for column in URL_COLUMNS]
    fields = source.rows(np.array([row]), names)
    facts: dict[str, Any] = {"row": row}
    for name in names:
        facts[name] = _plain(fields[name][0], is_key=name in _KEYS)
        if name == "status":
            facts["status_name"] = status_name(facts[name])
        elif name == "source":
            facts["source_name"] = source_name(facts[name])
        elif name in _HOURS:
            facts[f"{name}_at"] = hour_text(facts[name])
    facts["settled"] = settled_at(facts)
    facts["settled_at"] = hour_text(facts["settled"])
    arena = source.arena()
    for ref, name in _STRINGS.items():
        facts |= as_text_field(name, string_at(arena, facts[ref]))
        annex = annex_at(arena, facts[ref]) if name != "redirect" else None
        if annex is not None:
            facts[f"{name}_annex"] = _json_or_text(annex)
    return facts | _found_by(source, row, string_at(arena, facts["url_ref"]) or b"", arena)


def _found_by(source: RowSource, row: int, url: bytes, arena: bytes | memoryview) -> dict[str, Any]:
    """Return where URL row *row*, of *url*, was found first, and how, as in the index of a crawl."""
    fields = source.rows(np.array([row]), ["url_ref", "source", "depth"])
    annex = annex_at(arena, int(fields["url_ref"][0]))
    said = offered(url, b"" if annex is None else ANNEX_MARK + annex)
    number = int(fields["source"][0])
    known = Source(number) if number in set(Source) else Source.LINK
    offer = Offer(
        said.seed, UrlKey(0, 0), known, 0, int(fields["depth"][0]), said.extra, said.via, said.route
    )
    via, link, hops, route = provenance_of(offer)
    return {"via": via, "link": link, "hops": hops, "route": route}


_LONGEST_WAY = 50


def way_to(source: RowSource, row: dict[str, Any]) -> list[str]:
    """Return the URLs that lead to the URL of *row*, as `row_facts` gives it, the nearest first.

    Each was first found on the next; at most 50, and no further than there are rows.
    """
    way: list[str] = []
    via = str(row["via"])
    while via and via not in way and len(way) < _LONGEST_WAY:
        way.append(via)
        match = find_url(source, via)
        via = "" if match is None else str(row_facts(source, match.row)["via"])
    return way


def host_facts(source: RowSource, host_key: int) -> dict[str, Any] | None:
    """Return every field of the host row with *host_key*, decoded as in `row_facts`, if there is one."""
    keys = source.host_column("host_key")
    row = int(np.searchsorted(keys, np.uint64(host_key)))
    if row == len(keys) or int(keys[row]) != host_key:
        return None
    facts: dict[str, Any] = {"row": row}
    for column in HOST_COLUMNS:
        name = column.name
        value = source.host_column(name)[row]
        if name == "resolved_ip":
            facts[name] = _address(value.tobytes())
            continue
        facts[name] = _plain(value, is_key=name == "host_key")
        if name in _HOST_HOURS:
            facts[f"{name}_at"] = hour_text(facts[name])
        elif name in _HOST_SECONDS:
            facts[f"{name}_at"] = second_text(facts[name])
        elif name == "flags":
            facts["flag_names"] = flag_names(facts[name])
    arena = source.arena()
    for ref, name in _HOST_STRINGS.items():
        facts |= as_text_field(name, string_at(arena, facts[ref]))
    blob = string_at(arena, facts["robots_ref"])
    if blob is not None:
        facts |= _robots_text(blob)
    return facts


def _plain(value: Any, *, is_key: bool) -> Any:
    plain = value.item()
    if is_key:
        return key_text(plain)
    return float_value(plain) if isinstance(plain, float) else plain


def _address(octets: bytes) -> str | None:
    if not any(octets):
        return None
    address = IPv6Address(octets)
    return str(address.ipv4_mapped or address)


def _robots_text(blob: bytes) -> dict[str, Any]:
    try:
        return as_text_field("robots", unpack_robots(blob, Codec.ZSTD))
    except Malformed as error:
        return {"robots": None, "robots_fault": error.reason}


def _json_or_text(annex: bytes) -> Any:
    try:
        return json.loads(annex, parse_constant=str)
    except (ValueError, RecursionError):
        return annex.decode("utf-8", "backslashreplace")


_Url = Annotated[str, typer.Argument(metavar="URL", help="The URL, as found or in its canonical form.")]
_INDENT = 22


def show(path: AnyPath, url: _Url, *, as_json: AsJson = False) -> None:
    """Show every field of the row that URL has in PATH, and of its host.

    Example: amicrawl frontier show ami-out https://example.com/
    """
    with open_rows(path) as source:
        match = find_url(source, url)
        if match is None:
            raise _not_found(path, source, url)
        facts = row_facts(source, match.row)
        host = host_facts(source, match.key.host)
        found = {"url": url, "matched_by": match.convention, "row": facts, "host": host}
        print_lines([json_text(found)] if as_json else _shown(found))


def _not_found(path: Path, source: RowSource, url: str) -> InputError:
    keys = ", ".join(
        f"{key_text(key.host)}:{key_text(key.path)} ({convention})"
        for convention, key in conventions(source, url)
    )
    return InputError(
        f"{path} has no row for {harmless(url)}. These keys were looked for: {keys}. Check the URL, or "
        "list what there is with amicrawl frontier ls."
    )


def _shown(found: dict[str, Any]) -> Iterator[str]:
    yield harmless(found["url"])
    yield f"matched by its {found['matched_by']}"
    yield from _fields("row", found["row"])
    if found["host"] is None:
        yield "host: no row"
    else:
        yield from _fields("host", found["host"])


def _fields(what: str, facts: dict[str, Any]) -> Iterator[str]:
    """Write each field in a line, with what decodes it behind it."""
    yield f"{what} {facts['row']}:"
    for name, value in facts.items():
        if name == "row" or _decodes(name, facts):
            continue
        text = "-" if value is None else value if isinstance(value, str) else json_text(value)
        decoded = facts.get(f"{name}_at") or facts.get(f"{name}_name") or facts.get("flag_names")
        if decoded and (name == "flags" or f"{name}_at" in facts or f"{name}_name" in facts):
            text += f"  ({', '.join(decoded) if isinstance(decoded, list) else decoded})"
        yield f"  {name:<{_INDENT}}{harmless(text)}"


def _decodes(name: str, facts: dict[str, Any]) -> bool:
    stem = name.rpartition("_")[0]
    return name == "flag_names" or (name.endswith(("_at", "_name")) and stem in facts)


def explain(path: AnyPath, url: _Url, *, at: AtHour = 0, as_json: AsJson = False) -> None:
    """Say why URL is or is not due in PATH.

    Example: amicrawl frontier explain ami-out https://example.com/
    """
    now = at * HOUR or int(time.time())
    with open_rows(path) as source:
        match = find_url(source, url)
        form = canonical_form(url)
        question = Question(
            url,
            form.url if isinstance(form, Canonical) else None,
            None if isinstance(form, Canonical) else str(form.reason),
            now,
        )
        tried = [
            {"reading": name, "host_key": key_text(key.host), "path_key": key_text(key.path)}
            for name, key in conventions(source, url)
        ]
        row = None if match is None else row_facts(source, match.row)
        host = host_facts(source, (match.key if match else conventions(source, url)[0][1]).host)
        verdict = sentences(question, None if match is None else match.convention, row, host)
        if as_json:
            known = {
                "url": url,
                "canonical": question.canonical,
                "hour": now // HOUR,
                "due": verdict.due,
            }
            print_lines(
                [json_text({**known, "keys": tried, "row": row, "host": host, "says": verdict.says})]
            )
        else:
            print_lines(map(harmless, verdict.says))


@dataclass(frozen=True, slots=True)
class Question:
    """The question."""

    url: str
    canonical: str | None
    refusal: str | None
    """Why it has no canonical form; None where it has one."""
    second: int
    """As of when, in seconds since 1970."""


class LookupVerdict(NamedTuple):
    """The text for people."""

    due: bool
    """Whether a crawl that starts then would take the URL, its host permitting."""
    says: list[str]


def sentences(
    question: Question, convention: str | None, row: dict[str, Any] | None, host: dict[str, Any] | None
) -> LookupVerdict:
    """Return what is said of a URL whose row and host row, as far as there are any, say so much."""
    says = [question.url]
    if question.canonical is None:
        says.append(f"It has no canonical form: {question.refusal}.")
    elif question.canonical == question.url:
        says.append("This is its canonical form.")
    else:
        says.append(f"Its canonical form is {question.canonical}.")
    if row is None:
        says.append("There is no row for it, under any reading: it was never offered, or left out.")
        says += _of_host(host, question.second)
        return LookupVerdict(due=False, says=says)
    key = f"{row['host_key']}:{row['path_key']}"
    says.append(f"Its row, number {row['row']}, has the key {key}, matched by its {convention}.")
    says.append(f"It was found as {row['source_name']}, at depth {row['depth']}.")
    if row.get("via"):
        hops = "hop" if row["hops"] == 1 else "hops"
        route = f", {row['route']}" if row["route"] else ""
        says.append(
            f"It was first found on {row['via']} ({row['link']}), {row['hops']} {hops} from a start"
            f"{route}."
        )
    says += _history(row)
    due, reason = _due(row, question.second)
    says.append(reason)
    says += _of_host(host, question.second)
    return LookupVerdict(due=due, says=says)


def _history(row: dict[str, Any]) -> Iterator[str]:
    if row["crawl_count"]:
        last = within_hour(row["last_crawled"]) if row["last_crawled"] else "at an unknown time"
        responded = f", response {row['http_status']}" if row["http_status"] >= 100 else ""
        yield f"It was crawled {_times(row['crawl_count'])}, last {last}{responded}."
    elif row["http_status"] >= 100:
        when = within_hour(row["settled"])
        yield f"Its last response, {when}, had the status {row['http_status']}."
    else:
        yield "It was never fetched."
    if row["retry_count"] or row["error_count"]:
        yield (
            f"Attempts since that failed and are to be repeated: {row['retry_count']}; errors in all: "
            f"{row['error_count']}."
        )
    if row["change_count"]:
        last = within_hour(row["last_changed"]) if row["last_changed"] else "at an unknown time"
        yield f"It changed {_times(row['change_count'])}, last {last}."


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"


_NEVER = {
    Status.IN_FLIGHT: "handed out and not settled; a crawl that opens the frontier takes it back",
    Status.TRAPPED: "taken for one of endlessly many, so it is never handed out",
    Status.WITHHELD: "kept out by the crawl's configuration",
}


def _due(row: dict[str, Any], now: int) -> tuple[bool, str]:
    status, due = row["status"], row["next_due"]
    state = f"It is {row['status_name']}"
    if status not in WAITING and status not in RESTING:
        why = _NEVER.get(status, "a state that nothing is known of, so it is not handed out")
        if status == Status.WITHHELD and row["http_status"] in CAUSES:
            why += f": {CAUSES[row['http_status']][1]}"
        return False, f"{state}: {why}."
    if due == 0:
        if status in WAITING:
            return True, f"{state} without a time, so it is due at once."
        return False, f"{state} and has no time to come back, so it is not handed out again."
    when = hour_begins(due)
    if due > now // HOUR:
        return False, f"{state} and due from {when} on, in {human_span(due * HOUR - now)}: not yet."
    return True, f"{state} and has been due since {when}, for {human_span(now - due * HOUR)}."


def _of_host(host: dict[str, Any] | None, now: int) -> Iterator[str]:
    if host is None:
        yield "Its host has no row, so no gate of it is known."
        return
    name = host.get("host") or host["host_key"]
    yield f"Its host group is {name} ({host['host_key']}), with {host['url_count']:,} URLs."
    opens = max(host["host_next_eligible"], host["ip_next_eligible"])
    if opens > now:
        yield f"The host's gate is shut until {second_text(opens)}."
    else:
        yield "The host's gate is open."
    if host["crawl_delay"]:
        yield f"Between two requests to it {host['crawl_delay'] / 10:g} s must pass."
    if host["flag_names"]:
        yield f"It is marked: {', '.join(host['flag_names'])}."
    yield _robots(host, now // HOUR)


def _robots(host: dict[str, Any], hour: int) -> str:
    if not host["robots_fetched"]:
        return "Its robots.txt is not recorded here."
    fetched = f"Its robots.txt was fetched {within_hour(host['robots_fetched'])}"
    if not host["robots_expiry"]:
        return f"{fetched}."
    tense = "expired" if host["robots_expiry"] <= hour else "expires"
    return f"{fetched} and {tense} {hour_begins(host['robots_expiry'])}."
