"""`amicrawl explain`: whether a crawl takes a URL, which rule decides, and what became of it so far.

The output has two parts: what the rules say now of a link to the URL, and what happened, and when.
The rules are those of a crawl (`--dir`), of a crawl file (`--config`), or of start URLs (`--start`). All
of them are evaluated, in the order of the crawl: several may keep a URL out.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from amicrawl.cli.options import AsOneObject, Depth, json_text
from amicrawl.config import PREFIX, SETTINGS, CrawlConfig, Identity, Rendering, Robots
from amicrawl.crawlfile import read_crawl_file
from amicrawl.discovery import Kind, Selection, date_in, make_selection
from amicrawl.errors import InputError, UsageError
from amicrawl.frontier import Hop, Trap, classify
from amicrawl.listing import FILE_NAME, process_directories, read_crawl_json
from amicrawl.meguri import Status
from amicrawl.politeness import RobotsCache, robots_url
from amicrawl.terminal import harmless
from amicrawl.urls import Canonical, Refused, canonical_form, fetchable, url_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from amicrawl.api import Capture

_LEAST_STATUS = 100


@dataclass(frozen=True, slots=True)
class Rules:
    """What is looked up."""

    config: CrawlConfig = field(default_factory=CrawlConfig)
    starts: tuple[str, ...] = ()
    depth: str = "inf"
    directory: Path | None = None
    """Where the crawl was made; None where none was."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the URL is reached, which the rules go by."""

    kind: Kind
    hops: int
    """Links between a start URL and it."""
    steps: int
    """Steps between its page and it, which is a requisite."""
    parent: str | None
    """The page that links to it; None where that is not known."""


@dataclass(frozen=True, slots=True)
class RuleOutcome:
    """What one rule says."""

    rule: str
    keeps_out: bool
    says: str


Url = Annotated[str, typer.Argument(metavar="URL", help="The URL, as written in a page.")]
Directory = Annotated[
    Path | None, typer.Option("--dir", help="Output directory of a crawl: use its rules and its state.")
]
Config = Annotated[Path | None, typer.Option(help="Use the rules of a crawl file.")]
Starts = Annotated[list[str] | None, typer.Option(metavar="URL", help="A start URL (may be repeated).")]
Hops = Annotated[int | None, typer.Option(min=0, help="Links between a start URL and URL; default 1.")]
Requisite = Annotated[
    bool, typer.Option("--requisite", help="The URL is a page requisite (image, style sheet).")
]
Parent = Annotated[str | None, typer.Option("--from", metavar="URL", help="The page that links to it.")]


def explain(
    url: Url,
    *,
    directory: Directory = None,
    config: Config = None,
    start: Starts = None,
    depth: Depth = None,
    hops: Hops = None,
    requisite: Requisite = False,
    parent: Parent = None,
    as_json: AsOneObject = False,
) -> None:
    """Say whether a crawl takes URL, and which rule decides.

    Example: amicrawl explain https://example.org/a --start https://example.org/
    """
    if depth and not start:
        raise UsageError("--depth is for --start: a crawl and a crawl file have their own.")
    place = None if directory is None else _place_of(url, directory)
    rules = _rules(place, config, tuple(start or ()), depth or "inf")
    row = _row(rules, url)
    link = _link(rules, row, requisite=requisite, hops=hops, parent=parent)
    outcomes = list(_outcomes(rules, url, link))
    against = next((outcome.rule for outcome in outcomes if outcome.keeps_out), None)
    happened = _happened(rules, row)
    if as_json:
        found = {
            "url": url,
            "taken": against is None,
            "kind": link.kind.value,
            "hops": link.hops,
            "rules": [asdict(outcome) for outcome in outcomes],
            "decided_by": against,
            "happened": happened,
            "row": row,
        }
        typer.echo(json_text(found))
        return
    typer.echo(harmless(url))
    for line in _lines(outcomes, [*_known(rules, row), *_rendered(rules, url)]):
        typer.echo(line)
    typer.echo(
        f"now: a link to it is kept out by {against}" if against else "now: a link to it is taken"
    )
    typer.echo(f"so far: {harmless(happened)}")


def _link(
    rules: Rules, row: dict[str, Any] | None, *, requisite: bool, hops: int | None, parent: str | None
) -> Way:
    """Return how the URL whose row is *row* is reached: as is said, else as the crawl has found it."""
    requisite = requisite or (row is not None and row["link"] == "requisite")
    before = _row(rules, parent or (row["via"] if row is not None else "")) if requisite else None
    if hops is None:
        known = before if row is None else row
        # A requisite has as many as its page.
        hops = int(known["depth"]) if known is not None else int(not requisite)
    return Way(Kind.REQUISITE if requisite else Kind.LINK, hops, _steps_to(before) + 1, parent)


def _happened(rules: Rules, row: dict[str, Any] | None) -> str:
    """Return what became of the URL whose row in the frontier is *row*, and when."""
    if rules.directory is None:
        return "unknown: no crawl is given"
    if row is None:
        return "not fetched: no link to it was found, or every one was kept out"
    # Loaded where there is a row: the commands about frontiers come with numpy and Arrow.
    from amicrawl.cli.frontier.rows import CAUSES, hour_begins, within_hour  # noqa: PLC0415

    found = f"found {within_hour(row['first_seen'])}"
    if row["crawl_count"] or row["http_status"] >= _LEAST_STATUS:
        times = f", {row['crawl_count']:,} times in all" if row["crawl_count"] > 1 else ""
        found += f", captured {within_hour(row['settled'])}{times}"
    else:
        found += ", not captured"
        if row["error_count"]:
            found += _last_failure(rules.directory, row["url"])
    status = row["status"]
    if status == Status.WITHHELD:
        found += f"; withheld: {CAUSES[row['http_status']][1]}" if row["http_status"] in CAUSES else ""
    elif status == Status.EXCLUDED:
        found += "; robots.txt forbade it when its turn came"
    elif row["http_status"] >= _LEAST_STATUS:
        found += f"; the last response had the status {row['http_status']}"
    return found + (f"; due from {hour_begins(row['next_due'])} on" if row["next_due"] else "")


def _last_failure(directory: Path, url: str) -> str:
    """Return why the last fetch of *url* failed by the index in *directory*; empty if unknown."""
    captures = _captures(directory, url)
    why = captures[-1].error.rstrip(".") if captures else ""
    return f"; the last fetch failed: {why}" if why else ""


def _captures(directory: Path, url: str) -> list[Capture]:
    """Return the captures of *url*, the oldest first; none while the first crawl there has not ended."""
    # Arrow is loaded for what only the index knows.
    from amicrawl.api import open as open_archive  # noqa: PLC0415

    try:
        return open_archive(directory).by_url(url)
    except InputError:
        return []


def _lines(outcomes: Iterable[RuleOutcome], known: Iterable[str]) -> Iterator[str]:
    for outcome in outcomes:
        mark = "no " if outcome.keeps_out else "ok "
        yield f"  {mark} {outcome.rule:<10} {harmless(outcome.says)}"
    for line in known:
        yield f"      frontier   {harmless(line)}"


def _rules(directory: Path | None, config: Path | None, starts: tuple[str, ...], depth: str) -> Rules:
    if sum((directory is not None, config is not None, bool(starts))) != 1:
        raise UsageError(
            "Name the output of a crawl (--dir), a crawl file (--config), or start URLs (--start): "
            "one of the three."
        )
    if directory is not None:
        return _rules_of_directory(directory)
    if config is not None:
        return _rules_of_file(config)
    return Rules(starts=starts, depth=depth)


def _place_of(url: str, directory: Path) -> Path:
    """Return the directory of the process that has *url*, while several crawl into *directory*.

    The first one's where none has it; *directory* itself where one process crawls.
    """
    places = process_directories(directory)
    having = (place for place in places if _row(Rules(directory=place), url) is not None)
    return next(having, [*places, directory][0])


def _rules_of_directory(directory: Path) -> Rules:
    """Return the rules that the crawl in *directory* was made by, as its `crawl.json` says."""
    said = read_crawl_json(directory)
    if not said:
        raise InputError(
            f"{directory} holds no crawl: there is no {FILE_NAME} in it. Give a crawl's directory."
        )
    try:
        settings, asked = dict(said["settings"]), dict(said["asked"])
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(f"{directory / FILE_NAME} is not what a crawl writes: {error!r}.") from error
    given = {PREFIX + str(name).upper(): value for name, value in settings.items() if value is not None}
    # Another version may have had others.
    config = CrawlConfig.from_settings({name: given[name] for name in given if name in SETTINGS})
    return Rules(config, _starts_of(directory), str(asked.get("depth", "inf")), directory)


def _starts_of(directory: Path) -> tuple[str, ...]:
    """Return where the crawl of a site in *directory* began, which its scope goes by; else nothing."""
    # As below.
    from amicrawl.crawl import read_starts, site_crawled_in  # noqa: PLC0415

    site = site_crawled_in(directory)
    try:
        return () if site is None else tuple(seed.url for seed in read_starts(site))
    except InputError as error:
        raise InputError(
            f"{error} The start URLs of the crawl, which decide its scope, are in that list. Start the "
            f"command where the crawl was started, or use amicrawl frontier explain {directory} URL."
        ) from error


def _rules_of_file(path: Path) -> Rules:
    """Return the rules of the crawl file at *path*, whose list of start URLs is read too."""
    file = read_crawl_file(path)
    config = CrawlConfig.from_settings(file.settings)
    if file.spider != "site":
        raise UsageError(f"{path} is for the spider `{file.spider}`, which follows no links.")
    # Loaded for a crawl file only: the crawl's own reader of starts comes with Scrapy.
    from amicrawl.crawl import SiteArguments, read_starts  # noqa: PLC0415

    starts = read_starts(SiteArguments.parse(file.arguments))
    depth = file.arguments.get("depth", "inf")
    return Rules(config, tuple(seed.url for seed in starts), depth)


def _outcomes(rules: Rules, url: str, link: Way) -> Iterator[RuleOutcome]:
    found = fetchable(url)
    if isinstance(found, Refused):
        yield RuleOutcome("form", keeps_out=True, says=str(found.reason))
        return
    selection = make_selection(rules.config, rules.starts, depth=rules.depth)
    if url in rules.starts:
        yield RuleOutcome("scope", keeps_out=False, says="a start URL, which no rule keeps out")
    else:
        yield from _of_selection(selection, url, link)
    yield _of_traps(url)
    if (calendar := _of_calendar(rules.config, url)) is not None:
        yield calendar
    yield _of_robots(rules, url)


def _of_selection(selection: Selection, url: str, link: Way) -> Iterator[RuleOutcome]:
    if link.kind is Kind.REQUISITE:
        against = selection.rule_against_requisite(link.steps)
        says = against or f"{link.steps} of at most {selection.requisite_hops} steps from its page"
        yield RuleOutcome("requisites", keeps_out=bool(against), says=says)
    on_site = link.parent is None or selection.is_on_site(link.parent, hops=1)
    within = selection.scope.decide(url, kind=link.kind, hops=link.hops, parent_in_scope=on_site)
    yield RuleOutcome("scope", keeps_out=not within.in_scope, says=within.rule)
    ignored = selection.ignores.match(url)
    says = f"none of {len(selection.ignores)} patterns"
    if ignored is not None:
        says = f"{ignored.source or 'pattern'}: {ignored.expression}"
    yield RuleOutcome("ignores", keeps_out=ignored is not None, says=says)
    wrong = selection.wrong_shape(url)
    yield RuleOutcome("shape", keeps_out=wrong is not None, says=wrong or "regular")


def _steps_to(row: dict[str, Any] | None) -> int:
    """Return how many steps the requisite whose row is *row* lies from its page; 0 for a page."""
    route = "" if row is None else str(row["route"]).replace(Hop.REDIRECT, "")
    return len(route) - len(route.rstrip(Hop.REQUISITE))


def _of_traps(url: str) -> RuleOutcome:
    form = canonical_form(url)
    text = form.url if isinstance(form, Canonical) else url
    trap = classify(text, int(time.time() // 3600))
    says = "matches none"
    if trap is not Trap.NONE:
        kind = str(trap.name).lower()
        says = f"it is like a {kind} trap; that counts once its host has shown 16 of them"
    return RuleOutcome("traps", keeps_out=False, says=says)


def _of_calendar(config: CrawlConfig, url: str) -> RuleOutcome | None:
    """Return what follows from a date in *url*; None where it has none, or calendars are not ended."""
    dated = date_in(url)
    if dated is None or not config.calendar_pages:
        return None
    day = "-".join(f"{number:02d}" for number in (dated.year, dated.month, dated.day) if number)
    says = (
        f"about {day}: left out once {config.calendar_pages} such pages in a row, each further from "
        "today, have shown nothing new (AMICRAWL_CALENDAR_PAGES)"
    )
    return RuleOutcome("calendar", keeps_out=False, says=says)


def _of_robots(rules: Rules, url: str) -> RuleOutcome:
    """Return what the robots.txt that the crawl has kept says; without one, nothing."""
    origin = robots_url(url)
    # As above.
    from amicrawl.crawl import HostOverrides, read_robots  # noqa: PLC0415

    config, key_of = rules.config, partial(url_key, identity=Identity.CANONICAL)
    overrides = HostOverrides(config.host_overrides, key_of=key_of)
    if overrides.robots_at(url, config.robots) is Robots.IGNORE:
        return RuleOutcome(
            "robots", keeps_out=False, says="ignored: AMICRAWL_ROBOTS, or a host override"
        )
    if rules.directory is None or isinstance(origin, Refused):
        return RuleOutcome("robots", keeps_out=False, says="not checked here")
    agent, rows = read_robots(rules.directory / "frontier")
    cache = RobotsCache.from_rows(rows, agent=agent, written_for=agent, now=time.time())
    verdict = cache.find(origin, now=time.time())
    if verdict is None:
        says = "nothing is known: there was no response, or it has expired"
        return RuleOutcome("robots", keeps_out=False, says=says)
    allowed = verdict.allows(url)
    says = verdict.reason
    if allowed and verdict.rules is not None:
        says = f"{origin} allows it"
    elif allowed:
        says = f"there is no {origin}, so nothing is forbidden"
    return RuleOutcome("robots", keeps_out=allowed is False, says=says)


def _row(rules: Rules, url: str) -> dict[str, Any] | None:
    """Return the row that the frontier of the crawl has for *url*, if there is one."""
    if rules.directory is None:
        return None
    # As above.
    from amicrawl.cli.frontier.lookup import row_facts, way_to  # noqa: PLC0415
    from amicrawl.meguri import find_url, open_rows  # noqa: PLC0415

    for directory in process_directories(rules.directory) or [rules.directory]:
        if not (directory / "frontier").is_dir():
            continue
        with open_rows(directory) as source:
            match = find_url(source, url)
            if match is not None:
                row = row_facts(source, match.row)
                return {**row, "way": way_to(source, row)}
    return None


_WHY_RENDERED = {
    Rendering.ALWAYS: "AMICRAWL_BROWSER is always",
    Rendering.AUTO: "AMICRAWL_BROWSER is auto, and its scripts make nearly all text and links",
}


def _rendered(rules: Rules, url: str) -> Iterator[str]:
    """Yield whether a browser opened *url*, and why, or which page requested it there."""
    if rules.directory is None or rules.config.browser is Rendering.NEVER:
        return
    captures = _captures(rules.directory, url)
    if not captures:
        return
    last = captures[-1]
    if last.page == url:
        yield f"opened in a browser: {_WHY_RENDERED[rules.config.browser]}"
        # A seed may have that word for a value, too.
        if fault := json.loads(last.meta_json or "{}").get("page_fault"):
            yield f"not shown as a whole: {fault}"
    elif last.page:
        yield f"requested in a browser by {last.page} ({last.resource_type})"
    else:
        yield "not opened in a browser: it is not a page of HTML, or has content without its scripts"


def _known(rules: Rules, row: dict[str, Any] | None) -> Iterator[str]:
    if rules.directory is None:
        return
    if row is None:
        yield "no row: it was never offered, or kept out"
        return
    hops = "1 hop" if row["hops"] == 1 else f"{row['hops']} hops"
    yield f"{row['status_name']}, found as {row['link'] or row['source_name']}, {hops} from a start"
    for number, via in enumerate(row["way"]):
        yield f"{'  ' * number}first found on {via}"
    yield f"more with: amicrawl frontier explain {rules.directory} URL"
