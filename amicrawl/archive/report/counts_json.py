"""Counts as JSON: one object that cdx-summary's readers understand, and that adds up again.

The keys of cdx-summary's summary come first, in its order. Behind them, under `amicrawl`, is
everything that adding needs: all hosts, raw types and statuses, sketches. A summary or report that
cdx-summary itself wrote is read too; what it does not carry is then missing from the sum.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from amicrawl.archive.report.counts import FACETS, RULES, CaptureTally, Counts, Sample
from amicrawl.archive.report.figures import MOST_HOSTS, MOST_SAMPLES, report_of, summary_of
from amicrawl.archive.report.sketch import Sketch
from amicrawl.jsontext import parsed

if TYPE_CHECKING:
    from collections.abc import Iterable

VERSION = 1
"""Raised when `amicrawl` in the JSON changes its meaning."""

_LIMIT = 10**30
_MOST_VALUES = 40_000_000
"""Values that the JSON may have; a host takes four."""
_GROUP_TYPES = {"Text": "text/plain"}
"""The one group whose name, taken for a media type, would be put into another."""


def counts_to_json(counts: Counts, *, hosts: int = MOST_HOSTS, samples: int = MOST_SAMPLES) -> str:
    """Return *counts* as one JSON object: a summary that shows that many, and what adds up."""
    summary = summary_of(counts, hosts=hosts, samples=samples)
    return _text({**summary, "amicrawl": _state(counts)})


def summary_to_json(counts: Counts, *, hosts: int = MOST_HOSTS, samples: int = MOST_SAMPLES) -> str:
    """Return the summary of *counts* with the keys of cdx-summary and no others."""
    return _text(summary_of(counts, hosts=hosts, samples=samples))


def narrow_to_json(counts: Counts) -> str:
    """Return the keys of cdx-summary's summary that need no keys of captures (`count_narrow`)."""
    summary = summary_of(counts, hosts=0, samples=0)
    names = ("captures", "bytes", "first", "last", "mimestatus", "yearmonth")
    return _text({name: summary[name] for name in names})


def report_to_json(counts: Counts, *, samples: int = MOST_SAMPLES) -> str:
    """Return the unsummarised report of *counts* as cdx-summary has it."""
    return _text(report_of(counts, samples=samples))


def counts_from_json(text: bytes, *, rules: str) -> Counts:
    """Return the counts in *text*; ValueError with the reason where it carries none.

    A summary of cdx-summary's own is taken to follow *rules*.
    """
    try:
        value = parsed(text, most=_MOST_VALUES, loads=json.loads)
    except ValueError as error:
        raise ValueError("it is not one JSON object") from error
    if not isinstance(value, dict):
        raise ValueError("it is not one JSON object")  # noqa: TRY004  # a fault of the file
    state = value.get("amicrawl")
    try:
        return _of_cdx_summary(value, rules=rules) if state is None else _of_state(state)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError(f"something is missing or of another type ({error!r})") from error


def _text(value: object) -> str:
    # Keys of an index need not be UTF-8; escaped, their octets are read back unchanged.
    return json.dumps(value, indent=2, ensure_ascii=True)


def _state(counts: Counts) -> dict[str, Any]:
    return {
        "version": VERSION,
        "rules": counts.rules,
        "captures": counts.captures,
        "bytes": counts.bytes,
        "unsized": counts.unsized,
        "urls": counts.urls,
        "hosts": counts.hosts,
        "first": counts.first,
        "last": counts.last,
        "ordered": counts.ordered,
        "first_key": counts.first_key.decode("utf-8", "surrogateescape"),
        "last_key": counts.last_key.decode("utf-8", "surrogateescape"),
        "by_host": _flat(counts.by_host.items()),
        "by_mime_status": _flat(counts.by_mime_status.items()),
        "by_path_query": _flat(counts.by_path_query.items()),
        "by_month": _flat(counts.by_month.items()),
        "facets": {name: _flat(tally.items()) for name, tally in counts.facets.items()},
        "samples": [list(sample) for sample in counts.samples],
        "skipped": dict(counts.skipped),
        "digested": counts.digested,
        "different_urls": counts.different_urls.to_json(),
        "different_digests": counts.different_digests.to_json(),
    }


def _flat(items: Iterable[tuple[Any, tuple[int, int]]]) -> list[list[Any]]:
    """Return each entry as its key, or the parts of it, then captures and bytes."""
    return [[*(key if isinstance(key, tuple) else (key,)), *numbers] for key, numbers in items]


def _of_state(state: dict[str, Any]) -> Counts:
    if state["version"] != VERSION or state["rules"] not in RULES:
        raise ValueError("it was written by another version of amicrawl")
    facets = {name: _tally(rows) for name, rows in state["facets"].items()}
    if not facets.keys() <= set(FACETS):
        raise ValueError("it has facets that are not known here")
    return Counts(
        rules=state["rules"],
        captures=_number(state["captures"]),
        bytes=_number(state["bytes"]),
        unsized=_number(state["unsized"]),
        urls=_number(state["urls"]),
        hosts=_number(state["hosts"]),
        first=_time(state["first"]),
        last=_time(state["last"]),
        ordered=bool(state["ordered"]),
        first_key=state["first_key"].encode("utf-8", "surrogateescape"),
        last_key=state["last_key"].encode("utf-8", "surrogateescape"),
        by_host=_tally(state["by_host"]),
        by_mime_status=CaptureTally(
            {
                (_str(mime), _str(status)): _pair(c, size)
                for mime, status, c, size in state["by_mime_status"]
            }
        ),
        by_path_query=CaptureTally(
            {(_number(p), _number(q)): _pair(c, size) for p, q, c, size in state["by_path_query"]}
        ),
        by_month=CaptureTally(
            {_month(month): _pair(captures, size) for month, captures, size in state["by_month"]}
        ),
        facets=facets,
        samples=[Sample(_time(time), _str(url), _rank(rank)) for time, url, rank in state["samples"]],
        skipped=Counter({_str(reason): _number(count) for reason, count in state["skipped"].items()}),
        digested=_number(state["digested"]),
        different_urls=Sketch.from_json(state["different_urls"]),
        different_digests=Sketch.from_json(state["different_digests"]),
    )


def _of_cdx_summary(value: dict[str, Any], *, rules: str) -> Counts:
    """Return what a summary or report of cdx-summary has; it has no bytes by category."""
    counts = Counts(rules=rules, ordered=False)
    counts.captures, counts.bytes = _number(value["captures"]), _number(value["bytes"])
    counts.urls, counts.hosts = _number(value["urls"]), _number(value["hosts"])
    counts.first, counts.last = _time(value["first"]), _time(value["last"])
    for host, captures in value["tophosts"].items():
        counts.by_host.add(_key_of_host(host), _number(captures), 0)
    for mime, row in value["mimestatus"].items():
        for status, captures in row.items():
            if captures:
                counts.by_mime_status.add(
                    (_GROUP_TYPES.get(mime, mime), _first_of(status)), _number(captures), 0
                )
    for path, row in value["pathquery"].items():
        for query, captures in row.items():
            if captures:
                counts.by_path_query.add((_depth(path), _depth(query)), _number(captures), 0)
    for year, row in value["yearmonth"].items():
        for month, captures in row.items():
            if captures:
                counts.by_month.add(_month(f"{year}{month}"), _number(captures), 0)
    counts.samples = [Sample(_time(time), _str(url), 0) for time, url in value["samples"]]
    return counts


def _key_of_host(shown: str) -> str:
    """Return the form that a host has in a key; cdx-summary writes its port behind the first label."""
    name, _, port = shown.rpartition(":")
    if "." in name and port.isdigit():
        return f"{_key_of_host(name)}:{port}"
    return ",".join(reversed(shown.split(".")))


def _first_of(status: str) -> str:
    """Return a status of the group that *status* names, or itself."""
    return {"Other": "-"}.get(status, status.replace("XX", "00"))


def _depth(label: str) -> int:
    return 5 if label == "Other" else _number(int(label[1:]))


def _tally(rows: list[list[Any]]) -> CaptureTally[str]:
    return CaptureTally({_str(key): _pair(captures, size) for key, captures, size in rows})


def _pair(captures: object, size: object) -> tuple[int, int]:
    return _number(captures), _number(size)


def _number(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < _LIMIT:
        raise ValueError("a count that is not a number")
    return value


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a name that is not a string")  # noqa: TRY004  # a fault of the file
    return value


def _rank(value: object) -> int:
    if _number(value) >= 1 << 64:
        raise ValueError("a rank that is not one of 64 bits")
    return _number(value)


def _month(value: object) -> str:
    text = _str(value)
    if not (len(text) == 6 and text.isascii() and text.isdigit()):
        raise ValueError("a month that is not 6 digits")
    return text


def _time(value: object) -> str:
    text = _str(value)
    if text and not (len(text) == 14 and text.isascii() and text.isdigit()):
        raise ValueError("a time that is not 14 digits")
    return text
