"""The page of one crawl: when, how politely, what came, what failed and what to do about it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from amicrawl.archive.report.charts import (
    Leaf,
    Markup,
    element,
    share_bar,
    stacked,
    treemap,
)
from amicrawl.archive.report.crawl_figures import CLASSES, ELSEWHERE
from amicrawl.archive.report.document import chart, document, section, table
from amicrawl.archive.report.timeline import listed, shown_moment, timeline
from amicrawl.terminal import counted, human_size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.archive.report.crawl_figures import CrawlFigures, FailureReason
    from amicrawl.archive.report.figures import Grid

_ROWS = 15
_GROUPS, _LEAVES, _HOSTS = 8, 14, 48
_TREE = "Where the responses are"
_REMEDIES: Mapping[str, str] = {
    "name-not-found": "The host has no address: check the spelling of the seed, or leave the host out.",
    "name-lookup-failed": "No name server responded: check AMICRAWL_DNS_SERVERS, run the command again.",
    "address-refused": "The address is private: permit it with AMICRAWL_ALLOW_PRIVATE if it is yours.",
    "no-route": "No way to the address: check the network of this machine, IPv6 too.",
    "connection-refused": "Nothing listens there: the server is down, or the port is wrong.",
    "connect-timeout": "No connection in time: try later, or raise AMICRAWL_CONNECT_TIMEOUT.",
    "connection-reset": "The server closed the connection: crawl more slowly, run the command again.",
    "tls-handshake": "No common TLS: the server is old or broken; there is nothing to set.",
    "tls-certificate": "The certificate is not valid: AMICRAWL_TLS=record fetches and records that.",
    "proxy": "The proxy refused or failed: check AMICRAWL_PROXY.",
    "response-timeout": "No response in time: run the same command later, or raise AMICRAWL_TIMEOUT.",
    "empty-response": "The server closed without a response: run the same command later.",
    "unfetchable-url": "Not a URL that can be requested: correct the seed list.",
    "host-skipped": "The host failed too often: `amicrawl frontier retry DIR` queues its URLs again.",
    "robots-denied": "robots.txt denies it: with permission of the site, AMICRAWL_ROBOTS=ignore.",
    "refused-by-crawl": "A rule of the crawl keeps it out: `amicrawl explain URL --dir DIR` names it.",
    "repeated-seed": "Another line of the list has the same URL: there is nothing to do.",
}
_ANY_OTHER = "See the column `error` of captures.parquet."


def page_of_crawl(figures: CrawlFigures, *, title: str) -> str:
    """Return the page of a crawl as one HTML document that needs no network."""
    return document(
        title,
        lead=_lead(figures),
        figures=_tiles(figures),
        sections=crawl_sections(figures),
        made_by="Made by amicrawl report. Times are UTC.",
    )


def crawl_sections(figures: CrawlFigures) -> list[Markup]:
    """Return what there is to show of a crawl, a section each."""
    sections = [
        _notes(figures),
        timeline(figures),
        _change(figures),
        _reasons("Requests without a response", figures.failures),
        _reasons("URLs that were not requested", figures.withheld),
        _types(figures),
        _statuses(figures),
        _sizes(figures),
        _kept_out(figures),
        _hosts(figures),
        _tree(figures),
        _politeness(figures),
        _runs(figures),
    ]
    return [each for each in sections if each is not None]


def _lead(figures: CrawlFigures) -> Markup:
    if not figures.rows:
        return element("p", None, "The crawl has no row in its index.")
    state = figures.crawl.get("state")
    reason = str(figures.crawl.get("finish_reason") or "")
    ended = {"finished": f"ended: {reason or 'unknown'}", "running": "running, or killed"}
    said = ended.get(str(state), "no crawl.json")
    if figures.crawl.get("unfinished"):
        said += ", not complete"
    if not figures.last:
        return element("p", None, f"At unknown times; {said}.")
    return element(
        "p", None, f"{shown_moment(figures.first)} to {shown_moment(figures.last)} UTC; {said}."
    )


def _tiles(figures: CrawlFigures) -> list[tuple[str, str]]:
    seconds = max((figures.last - figures.first) / 1000, 1.0)
    responses = sum(figures.classes[name] for name in CLASSES[:4])
    requests = figures.rows - figures.classes["not requested"]
    pace = f"{requests / seconds:,.1f}"
    return [
        ("Requests", f"{requests:,}"),
        ("Responses", f"{responses:,}"),
        ("Payload", human_size(figures.bytes)),
        ("Hosts", f"{len(figures.hosts):,}"),
        ("Without a response", f"{figures.classes['no response']:,}"),
        ("Unchanged", f"{figures.unchanged:,}"),
        ("Payloads of other URLs", f"{figures.revisits:,}"),
        ("Requests per second", "below 0.1" if requests and pace == "0.0" else pace),
    ]


def _notes(figures: CrawlFigures) -> Markup | None:
    found = [*figures.notes, *map(str, listed(figures.crawl.get("notes")))]
    if figures.truncated:
        cut = ", ".join(f"{rows:,} by {why}" for why, rows in figures.truncated.most_common())
        found.append(f"Payloads that are not whole: {cut}.")
    if not found:
        return None
    items = [element("li", None, each) for each in found]
    return section("To note", element("ul", {"class": "samples"}, items), wide=True)


def _change(figures: CrawlFigures) -> Markup | None:
    change = figures.change
    if change is None:
        return None
    grid: Grid = {
        "this crawl": {"the same": change.both_same, "changed": change.changed, "new": change.new},
        "the older one": {"the same": change.both_same, "changed": change.changed, "gone": change.gone},
    }
    styles = {"the same": "s2", "changed": "s4", "new": "s3", "gone": "s5"}
    rows = [
        ["In both, the same payload", f"{change.both_same:,}"],
        ["In both, changed", f"{change.changed:,}"],
        ["New", f"{change.new:,}"],
        ["of them moved: the payload was at a URL that is gone", f"{change.moved:,}"],
        ["Gone", f"{change.gone:,}"],
    ]
    title, drawing = "Since the older crawl", stacked(grid, styles, "URLs of both crawls")
    behind = table("URLs with a response", ["URLs", "Number"], rows, names=True)
    drawn = chart(title, drawing, unit="URLs with a response", behind=behind, classes=styles)
    return section(title, drawn, wide=True)


def _reasons(title: str, reasons: Mapping[str, FailureReason]) -> Markup | None:
    if not reasons:
        return None
    ordered = sorted(reasons.items(), key=lambda item: -item[1].rows)
    items = []
    for name, reason in ordered:
        urls = [element("li", None, url) for url in reason.examples]
        items.append(
            element(
                "li",
                None,
                element("strong", None, f"{reason.rows:,} {name}"),
                element("p", None, _with_code(_REMEDIES.get(name, _ANY_OTHER))),
                element(
                    "details", None, element("summary", None, "Examples"), element("ul", None, urls)
                ),
            )
        )
    return section(title, element("ul", {"class": "samples"}, items))


def _with_code(text: str) -> list[str]:
    """Return *text* with what stands between backticks as code."""
    parts = text.split("`")
    return [element("code", None, part) if place % 2 else part for place, part in enumerate(parts)]


_LINKS = {
    "offered": "new: added to the frontier",
    "known": "known: in the frontier before",
    "met": "known: met on a page before",
    "other_shard": "of another shard",
}


def _links_in_words(name: str) -> str:
    """Return what the count *name* of links in `crawl.json` stands for."""
    kept_out, _, rule = name.partition("/")
    return f"kept out: {rule}" if rule and kept_out == "kept_out" else _LINKS.get(name, name)


def _kept_out(figures: CrawlFigures) -> Markup | None:
    found = Counter[str]()
    for group in ("links", "ignored"):
        counts = figures.crawl.get(group)
        for name, count in counts.items() if isinstance(counts, dict) else ():
            if isinstance(count, int) and count:
                words = _links_in_words(name) if group == "links" else f"ignored: {name}"
                found[words] += count
    if not found:
        return None
    rows = [[name, f"{count:,}"] for name, count in found.most_common(_ROWS)]
    return section(
        "What became of links",
        table(f"Top {len(rows)} of {len(found)}", ["What became of them", "Links"], rows, names=True),
    )


def _types(figures: CrawlFigures) -> Markup | None:
    total = sum(rows for rows, _ in figures.types.values()) or 1
    ordered = sorted(figures.types.items(), key=lambda item: -item[1][0])[:_ROWS]
    rows = [
        [kind, f"{count:,}", human_size(size), share_bar(count / total)]
        for kind, (count, size) in ordered
    ]
    if not rows:
        return None
    caption = f"Top {len(rows)} of {len(figures.types):,}, as servers declare them"
    header = ["Media type", "Responses", "Payload", "Share"]
    return section("Media types", table(caption, header, rows, names=True))


def _statuses(figures: CrawlFigures) -> Markup | None:
    total = figures.statuses.total() or 1
    rows = [
        [str(status), f"{count:,}", share_bar(count / total)]
        for status, count in sorted(figures.statuses.items(), key=lambda item: -item[1])[:_ROWS]
    ]
    if not rows:
        return None
    return section("Statuses", table("By status", ["Status", "Responses", "Share"], rows, names=True))


def _hosts(figures: CrawlFigures) -> Markup | None:
    ordered = sorted(figures.hosts.items(), key=lambda item: -item[1].rows)[:_ROWS]
    rows: list[list[str]] = []
    for name, host in ordered:
        seconds = (host.last - host.first) / 1000
        pace = f"{seconds / (host.rows - 1):,.2f} s" if host.rows > 1 and seconds >= 0 else ""
        share = share_bar(host.rows / (figures.rows or 1))
        rows.append([name, f"{host.rows:,}", human_size(host.bytes), f"{host.failed:,}", pace, share])
    if not rows:
        return None
    caption = f"Top {len(rows)} of {len(figures.hosts):,}; the gap is the mean time between two rows"
    header = ["Host", "Rows", "Payload", "No response", "Gap", "Share"]
    return section("Hosts", table(caption, header, rows, names=True), wide=True)


def _sizes(figures: CrawlFigures) -> Markup | None:
    if not figures.sizes:
        return None
    total = figures.sizes.total()
    rows = []
    for bits, count in sorted(figures.sizes.items()):
        name = "empty" if bits <= 0 else f"below {human_size(2**bits)}"
        rows.append([name, f"{count:,}", share_bar(count / total)])
    return section("Sizes", table("Payloads by size", ["Size", "Responses", "Share"], rows, names=True))


def _tree(figures: CrawlFigures) -> Markup | None:
    if not figures.directories:
        return None
    if ELSEWHERE in {host for host, _ in figures.directories}:
        return _largest_hosts(figures)
    is_one_host = len({host for host, _ in figures.directories}) == 1
    groups: dict[str, Counter[str]] = {}
    sizes = Counter[tuple[str, str]]()
    for (host, path), (count, octets) in figures.directories.items():
        first = f"/{path.split('/')[1]}/" if path.count("/") > 1 else "/"
        group, leaf = (first, path) if is_one_host else (host, first)
        groups.setdefault(group, Counter())[leaf] += count
        sizes[group, leaf] += octets
    kept = sorted(groups, key=lambda name: -groups[name].total())
    shown = {
        name: [
            Leaf(
                leaf,
                f"{'' if is_one_host else name}{leaf}: {count:,} responses, "
                + human_size(sizes[name, leaf]),
                count,
            )
            for leaf, count in groups[name].most_common(_LEAVES)
        ]
        for name in kept[:_GROUPS]
    }
    rows = [
        [leaf.title.rpartition(": ")[0], f"{leaf.value:,}"]
        for leaves in shown.values()
        for leaf in leaves
    ]
    rows.sort(key=lambda row: -int(row[1].replace(",", "")))
    behind = table("Responses by directory", ["Directory", "Responses"], rows, names=True)
    drawing = treemap(shown, "Responses by directory")
    return section(_TREE, chart(_TREE, drawing, unit="Responses", behind=behind), wide=True)


def _largest_hosts(figures: CrawlFigures) -> Markup:
    """Return the treemap of a crawl of so many directories that its hosts say more."""
    ordered = sorted(figures.hosts.items(), key=lambda item: -item[1].rows)[:_HOSTS]
    leaves = {
        name: [Leaf(name, f"{name}: {host.rows:,} rows, {human_size(host.bytes)}", host.rows)]
        for name, host in ordered
    }
    rows = [[name, f"{host.rows:,}"] for name, host in ordered]
    caption = f"The {len(ordered):,} largest of {len(figures.hosts):,} hosts"
    drawn = chart(
        _TREE,
        treemap(leaves, "Rows by host"),
        unit="Rows",
        behind=table(caption, ["Host", "Rows"], rows, names=True),
        note=f"{caption}.",
    )
    return section(_TREE, drawn, wide=True)


_ASKED: Mapping[str, str] = {
    "ident": "Job",
    "url": "Started at",
    "file": "Seed list",
    "depth": "Depth",
}
"""What a crawl was asked for in the words of this page; anything else has its own name."""
_SHOWN_SETTINGS: Mapping[str, tuple[str, str]] = {
    "delay": ("Delay between requests to a host", "s"),
    "per_host": ("Requests at once to a host", ""),
    "inflight_max": ("Requests at once, at most", ""),
    "robots": ("robots.txt", ""),
    "operator": ("Operator", ""),
    "timeout": ("Longest exchange", "s"),
    "max_body": ("Largest body", "bytes"),
    "identity": ("When two URLs are the same", ""),
}
"""What a setting is in the words of this page, and its unit."""
_DEPTHS: Mapping[str, str] = {"inf": "whole site", "shallow": "page and what it needs"}
_NOTHING_SPECIAL = frozenset({"", "None", "False"})
_OF_THE_MACHINE = frozenset({"out", "shard", "shards", "processes"})


def _politeness(figures: CrawlFigures) -> Markup | None:
    rows = []
    asked, settings = figures.crawl.get("asked"), figures.crawl.get("settings")
    if isinstance(asked, dict):
        given = {str(name): str(value) for name, value in asked.items() if name not in _OF_THE_MACHINE}
        order = [*filter(given.__contains__, _ASKED), *(name for name in given if name not in _ASKED)]
        shown = {**given, "depth": _DEPTHS.get(given.get("depth", ""), given.get("depth", ""))}
        rows += [[_ASKED.get(name, name), shown[name]] for name in order]
    if isinstance(settings, dict):
        rows += [
            [words, _measured(settings.get(name, ""), unit)]
            for name, (words, unit) in _SHOWN_SETTINGS.items()
        ]
    rows = [row for row in rows if row[1] not in _NOTHING_SPECIAL]
    if not rows:
        return None
    return section(
        "How it was crawled",
        table("Settings in force", ["Setting", "Value"], rows, names=True),
    )


def _measured(value: object, unit: str) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    return human_size(int(value)) if unit == "bytes" else f"{value:,.10g} {unit}".strip()


def _runs(figures: CrawlFigures) -> Markup | None:
    runs = [
        run for run in [*listed(figures.crawl.get("earlier")), figures.crawl] if isinstance(run, dict)
    ]
    rows = [
        [
            str(run.get("started") or ""),
            str(run.get("finished") or ""),
            str(run.get("finish_reason") or "killed"),
        ]
        for run in runs
        if run.get("started")
    ]
    if not rows:
        return None
    rows[-1][2] = str(figures.crawl.get("finish_reason") or "running, or killed")
    caption = counted(len(rows), "start") + (", the last one last" if len(rows) > 1 else "")
    return section("Starts and resumes", table(caption, ["Started", "Ended", "Reason"], rows[-_ROWS:]))
