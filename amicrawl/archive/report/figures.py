"""What is shown of counts: grids, top hosts, samples and what lies beyond cdx-summary. Pure.

Names of hosts are those of the key: `com,example:8080` is shown as `example.com:8080`, but by the rules
of cdx-summary as `example:8080.com`, as that tool has it. The groups of media types,
statuses, paths and queries, and their order, are those of cdx-summary with its oddities
(`application/x-javascript` and `text/csv` are Other), so that figures of both can be laid side by side.

Two collections share hosts that are counted exactly, and URLs and payloads, exact only while they are
few: what is in both is the sum of both less the union, and sketches estimate all three. Their errors
are of the size of the whole, so a small overlap of large collections is bounded from above only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from amicrawl.archive.report.counts import CDX_SUMMARY, CaptureTally, drawn
from amicrawl.archive.report.sketch import STANDARD_ERROR, Sketch
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from amicrawl.archive.report.counts import Counts


MIME_GROUPS = (
    "HTML",
    "Image",
    "CSS",
    "JavaScript",
    "JSON",
    "XML",
    "Text",
    "PDF",
    "Font",
    "Audio",
    "Video",
    "Revisit",
    "Other",
)
STATUS_GROUPS = ("2XX", "3XX", "4XX", "5XX", "Other")
PATH_GROUPS = ("P0", "P1", "P2", "P3", "P4", "Other")
QUERY_GROUPS = ("Q0", "Q1", "Q2", "Q3", "Q4", "Other")
MONTHS = tuple(f"{month:02d}" for month in range(1, 13))

_BY_TOKEN = {group.lower(): group for group in MIME_GROUPS if group != "Text"} | {"plain": "Text"}


def mime_group(mime: str) -> str:
    """Return the group of the media type *mime*: its subtype decides, then its main type."""
    lower = mime.lower()
    main, _, sub = lower.partition("/")
    named = _BY_TOKEN.get(sub) or _BY_TOKEN.get(main)
    if named:
        return named
    if sub.startswith("xhtml"):
        return "HTML"
    if sub.endswith("+xml") or sub.startswith("xml-"):
        return "XML"
    return "Other"


def status_group(status: str) -> str:
    """Return the group of *status*, three digits or a hyphen."""
    return f"{status[0]}XX" if "200" <= status <= "599" else "Other"


def path_group(segments: int) -> str:
    """Return the row for a path of that many segments."""
    return PATH_GROUPS[min(segments, 5)]


def query_group(parameters: int) -> str:
    """Return the column for a query of that many parameters."""
    return QUERY_GROUPS[min(parameters, 5)]


MOST_HOSTS = 10
MOST_SAMPLES = 10

Grid = dict[str, dict[str, int]]


class Figure(NamedTuple):
    """A number that may be an estimate."""

    value: int
    error: int = 0
    """Twice the standard error, within which 19 of 20 estimates lie; 0 for what was counted exactly."""

    def __str__(self) -> str:
        if not self.error:
            return f"{self.value:,}"
        if self.value <= self.error:
            return f"fewer than {self.value + self.error:,}"
        return f"{self.value:,} ± {self.error:,}"


def summary_of(counts: Counts, *, hosts: int, samples: int) -> dict[str, Any]:
    """Return the summary of *counts* with the keys of cdx-summary, in its order."""
    return {
        **_overview(counts),
        "tophosts": dict(top_hosts(counts, hosts)),
        "mimestatus": mime_status_grid(counts),
        "pathquery": path_query_grid(counts),
        "yearmonth": year_month_grid(counts),
        "samples": [[sample.time, sample.url] for sample in drawn(counts.samples, size=samples)],
    }


def report_of(counts: Counts, *, samples: int) -> dict[str, Any]:
    """Return the unsummarised report: all hosts, raw types, statuses, depths; months that occur."""
    mime_status: Grid = {}
    for (mime, status), (captures, _) in counts.by_mime_status.items():
        mime_status.setdefault(mime, {})[status] = captures
    path_query: Grid = {}
    for (path, query), (captures, _) in counts.by_path_query.items():
        path_query.setdefault(f"P{path}", {})[f"Q{query}"] = captures
    year_month: Grid = {}
    for month, (captures, _) in counts.by_month.items():
        year_month.setdefault(month[:4], {})[month[4:]] = captures
    return {
        **_overview(counts),
        "tophosts": dict(top_hosts(counts, len(counts.by_host))),
        "mimestatus": mime_status,
        "pathquery": path_query,
        "yearmonth": year_month,
        "samples": [[sample.time, sample.url] for sample in drawn(counts.samples, size=samples)],
    }


def _overview(counts: Counts) -> dict[str, Any]:
    return {
        "captures": counts.captures,
        "urls": counts.urls,
        "hosts": counts.hosts,
        "bytes": counts.bytes,
        "first": counts.first,
        "last": counts.last,
    }


def mime_status_grid(counts: Counts) -> Grid:
    """Return captures by group of media type and of status, all of both."""
    grid = _empty(MIME_GROUPS, STATUS_GROUPS)
    for (mime, status), (captures, _) in counts.by_mime_status.items():
        grid[mime_group(mime)][status_group(status)] += captures
    return grid


def path_query_grid(counts: Counts) -> Grid:
    """Return captures by number of path segments and of query parameters."""
    grid = _empty(PATH_GROUPS, QUERY_GROUPS)
    for (path, query), (captures, _) in counts.by_path_query.items():
        grid[path_group(path)][query_group(query)] += captures
    return grid


def year_month_grid(counts: Counts) -> Grid:
    """Return captures by year, sorted, and month; only months 01 to 12 are in the grid."""
    grid = _empty(sorted({month[:4] for month in counts.by_month}), MONTHS)
    for month, (captures, _) in counts.by_month.items():
        if month[4:] in MONTHS:
            grid[month[:4]][month[4:]] += captures
    return grid


def top_hosts(counts: Counts, most: int) -> list[tuple[str, int]]:
    """Return the hosts with the most captures and these, as shown; of equal ones, the first met."""
    ranked = sorted(counts.by_host.items(), key=lambda entry: -entry[1][0])
    return [(host_shown(host, rules=counts.rules), captures) for host, (captures, _) in ranked[:most]]


def largest_hosts(counts: Counts, most: int) -> list[tuple[str, int, int]]:
    """Return the hosts with the most bytes, as shown, with captures and bytes."""
    ranked = sorted(counts.by_host.items(), key=lambda entry: -entry[1][1])
    return [(host_shown(host, rules=counts.rules), *numbers) for host, numbers in ranked[:most]]


def hosts_counted(counts: Counts) -> int:
    """Return how many hosts there are; by the rules of cdx-summary, how often they change."""
    if counts.rules == CDX_SUMMARY or not counts.by_host:
        return counts.hosts
    return max(len(counts.by_host), counts.hosts if counts.ordered else 0)


def host_shown(host: str, *, rules: str) -> str:
    """Return the *host* of a key in the usual order of labels."""
    if rules == CDX_SUMMARY:
        return ".".join(reversed(host.split(",")))
    if "," not in host:
        # `dns:`, `localhost:8080` or an IPv6 address: nothing to turn around.
        return host
    name, mark, port = host.rpartition(":")
    labels = name if mark else port
    return ".".join(reversed(labels.split(","))) + (f":{port}" if mark else "")


def different_urls(counts: Counts) -> Figure:
    """Return how many different keys there are: exact if they came in order, or while they are few."""
    if counts.ordered and counts.captures:
        return Figure(counts.urls)
    sketch = counts.different_urls
    return Figure(min(sketch.count(), counts.urls), sketch_error(sketch))


def duplicates(counts: Counts) -> Figure:
    """Return how many captures have a digest that another before them has."""
    different = counts.different_digests
    return Figure(max(counts.digested - different.count(), 0), sketch_error(different))


def sketch_error(sketch: Sketch) -> int:
    """Return twice the standard error of the count of *sketch*; 0 where it is exact."""
    return 0 if sketch.is_exact else round(2 * STANDARD_ERROR * sketch.count())


def by_domain(counts: Counts) -> CaptureTally[str]:
    """Return captures and bytes by registrable domain, by the public suffix list that is installed."""
    # JSON has no domains, and it takes as long to load the list as all else of a summary.
    from amicrawl.urls import registrable_domain  # noqa: PLC0415

    return _regrouped(counts, registrable_domain)


def by_tld(counts: Counts) -> CaptureTally[str]:
    """Return captures and bytes by top-level domain; a key without host counts for its scheme."""
    return _regrouped(counts, _tld)


def _regrouped(counts: Counts, group: Any) -> CaptureTally[str]:
    tally: CaptureTally[str] = CaptureTally()
    for host, numbers in counts.by_host.items():
        tally.add(group(_without_port(host_shown(host, rules=""))), *numbers)
    return tally


def _without_port(shown: str) -> str:
    """Return a host without its port, which an address of IPv6 has behind brackets."""
    name, colon, port = shown.rpartition(":")
    is_port = colon and port.isdigit() and (":" not in name or name.endswith("]"))
    return name if is_port else shown


def _tld(name: str) -> str:
    last = name.rpartition(".")[2]
    if name.endswith(":"):
        return name
    return "(address)" if last.isdigit() or ":" in name else last


def ranked(tally: CaptureTally[str], most: int) -> list[tuple[str, int, int]]:
    """Return the entries with the most captures; of equal ones, the first in the alphabet."""
    rows = sorted(tally.items(), key=lambda entry: (-entry[1][0], entry[0]))
    return [(name, *numbers) for name, numbers in rows[:most]]


def _empty(rows: Iterable[str], columns: Iterable[str]) -> Grid:
    names = list(columns)
    return {row: dict.fromkeys(names, 0) for row in rows}


class Overlap(NamedTuple):
    """What is in both of two collections, or in one of them only."""

    hosts: tuple[int, int, int]
    """In the first only, in both, in the second only."""
    captures_of_shared_hosts: tuple[int, int]
    urls: tuple[Figure, Figure, Figure]
    """In the first, in both, in the second."""
    digests: tuple[Figure, Figure, Figure]

    def as_dict(self) -> dict[str, object]:
        """Return it for JSON; each figure with its error."""

        def figures(three: tuple[Figure, Figure, Figure]) -> dict[str, dict[str, int]]:
            names = ("first", "both", "second")
            return {
                name: {"value": one.value, "error": one.error}
                for name, one in zip(names, three, strict=True)
            }

        only_first, both, only_second = self.hosts
        return {
            "hosts": {"first": only_first + both, "both": both, "second": only_second + both},
            "captures_of_shared_hosts": dict(
                zip(("first", "second"), self.captures_of_shared_hosts, strict=True)
            ),
            "urls": figures(self.urls),
            "digests": figures(self.digests),
        }


def overlap_of(first: Counts, second: Counts) -> Overlap:
    """Return what *first* and *second* share; UsageError where they were counted by different rules."""
    if first.rules != second.rules:
        raise UsageError("Collections that were counted by different rules cannot be compared.")
    shared = first.by_host.keys() & second.by_host.keys()
    return Overlap(
        hosts=(len(first.by_host) - len(shared), len(shared), len(second.by_host) - len(shared)),
        captures_of_shared_hosts=(
            sum(first.by_host[host][0] for host in shared),
            sum(second.by_host[host][0] for host in shared),
        ),
        urls=(
            different_urls(first),
            _shared(first.different_urls, second.different_urls),
            different_urls(second),
        ),
        digests=(
            _counted(first.different_digests),
            _shared(first.different_digests, second.different_digests),
            _counted(second.different_digests),
        ),
    )


def overlap_rows(overlap: Overlap) -> list[list[str]]:
    """Return *overlap* as rows of a table: what, in the first, in both, in the second."""
    only_first, both, only_second = overlap.hosts
    first, second = overlap.captures_of_shared_hosts
    return [
        ["Hosts", f"{only_first + both:,}", f"{both:,}", f"{only_second + both:,}"],
        ["Captures of Shared Hosts", f"{first:,}", "", f"{second:,}"],
        ["Different URLs", *map(str, overlap.urls)],
        ["Different Digests", *map(str, overlap.digests)],
    ]


def _counted(sketch: Sketch) -> Figure:
    return Figure(sketch.count(), sketch_error(sketch))


def _shared(first: Sketch, second: Sketch) -> Figure:
    union = Sketch()
    union.absorb(first)
    union.absorb(second)
    if first.is_exact and second.is_exact:
        return Figure(first.shared_with(second))
    most = min(first.count(), second.count())
    shared = min(max(first.count() + second.count() - union.count(), 0), most)
    errors = (sketch_error(first), sketch_error(second), sketch_error(union))
    return Figure(shared, min(round(sum(error**2 for error in errors) ** 0.5), most))
