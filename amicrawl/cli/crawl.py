"""`amicrawl crawl`: crawl a site, a seed list or by a crawl file; `recrawl`: fetch again what is due."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from amicrawl.cli.crawl_target import target_of
from amicrawl.cli.options import (
    Depth,
    PartitionedOptions,
    Quiet,
    Settings,
    grouped,
    pairs,
    settings_options,
)
from amicrawl.cli.project import crawl_settings
from amicrawl.config import PREFIX, CrawlConfig, Rendering, Robots
from amicrawl.crawl import start_crawl
from amicrawl.crawlfile import Action, Plan, last_crawls, plan
from amicrawl.errors import UsageError

if TYPE_CHECKING:
    from amicrawl.crawlfile import CrawlFile


_AGES = f"{PREFIX}RECRAWL_AFTER"
_OUT = f"{PREFIX}OUT"
ALL_AGES = "0h"
"""The age from which every URL is due."""
_DEFAULT_OUT = CrawlConfig.model_fields["out"].default


What = Annotated[
    list[str],
    typer.Argument(
        metavar="WHAT",
        help="URL of a site, or several; a seed list, or - for one on standard input; or a crawl file.",
        show_default=False,
    ),
]
Out = Annotated[
    str,
    typer.Option(
        *("-o", "--out"),
        metavar="DIR",
        help="Output directory; overrides the crawl file. ami-out by default.",
    ),
]
Processes = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Crawl with N processes that share the hosts; auto: one per core.",
        show_default="1",
    ),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option(metavar="REGEX", help="Do not follow links that match; may be repeated."),
]
Watch = Annotated[
    bool, typer.Option("--watch", help="Show the crawl in a browser meanwhile; prints the address.")
]
Now = Annotated[bool, typer.Option("--now", help="Crawl even if the schedule says it is not due.")]


@dataclass(frozen=True)
class RequestOptions:
    """How a crawl requests, when it stops, what it prints; every setting and spider argument."""

    delay: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="SECONDS", help="Delay between two requests to a host; 1 by default."
        ),
    ] = None
    robots: Annotated[
        Robots | None, typer.Option(help="Whether robots.txt is obeyed; obey by default.")
    ] = None
    operator: Annotated[
        str | None,
        typer.Option(metavar="CONTACT", help="Who crawls: a URL or e-mail address, sent to servers."),
    ] = None
    max_pages: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Stop after N responses.")
    ] = None
    max_time: Annotated[
        float | None, typer.Option(min=0, metavar="SECONDS", help="Stop after so many seconds.")
    ] = None
    browser: Annotated[
        Rendering | None,
        typer.Option(
            help="Open pages in Chromium and archive what their scripts request; alone: always.",
        ),
    ] = None
    quiet: Quiet = False
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the log and reports of progress as JSON lines.")
    ] = False
    verbose: Annotated[
        int, typer.Option("-v", "--verbose", count=True, help="Print the log; twice: at level DEBUG.")
    ] = 0
    settings: Settings = None
    arguments: Annotated[
        list[str] | None,
        typer.Option(
            "-a", metavar="NAME=VALUE", help="Set a spider argument; overrides the crawl file."
        ),
    ] = None

    def all_settings(self, **further: object) -> list[str]:
        """Return the settings of -s, then those of options, also of *further*: the last one counts."""
        options = {
            "DELAY": self.delay,
            "ROBOTS": self.robots,
            "OPERATOR": self.operator,
            "STOP_PAGES": self.max_pages,
            "STOP_TIME": self.max_time,
            "BROWSER": self.browser,
            "LOG_FORMAT": "json" if self.as_json else None,
            **further,
        }
        typed = (f"{PREFIX}{name}={value}" for name, value in options.items() if value is not None)
        return [*(self.settings or ()), *typed]

    def log_options(self) -> list[str]:
        """Return the options of Scrapy that say how much is printed."""
        if self.quiet and self.verbose:
            raise UsageError("-q and -v contradict each other. Leave one away.")
        if self.quiet:
            return ["-s", "LOG_ENABLED=0"]
        return ["-L", "INFO" if self.verbose == 1 else "DEBUG"] if self.verbose else []


@grouped
def crawl(
    what: What,
    *,
    out: Out = "",
    depth: Depth = None,
    ignore: Ignore = None,
    request: RequestOptions,
    processes: Processes = "",
    where: PartitionedOptions,
    watch: Watch = False,
    now: Now = False,
) -> None:
    """Crawl a site by its URL, the URLs of a seed list, or what a crawl file describes.

    Example: amicrawl crawl https://example.org/ -o archive --depth 2 --delay 2

    Runs `scrapy crawl` with the spider `site`, `seeds`, or that of the crawl file. In a Scrapy project
    that archives, its settings apply, elsewhere amicrawl's own. A crawl file with a schedule that is not
    due yet is not crawled: the command prints when it is due, so a timer may call it every hour.
    With --engine spark, a cluster crawls a seed list into a bucket.
    """
    settings = request.all_settings(IGNORES=_patterns(ignore or []))
    given = pairs(request.arguments or [], option="-a")
    if where.on_spark:
        others = {"--processes": processes, "--now": now, "--depth": depth, "--ignore": ignore}
        others |= {"--watch": watch}
        _begin_over_spark(what, given, settings, where, out=out, others=others)
        return
    target = target_of(what)
    if not isinstance(target, Path) and target.spider == "seeds" and (depth is not None or ignore):
        raise UsageError("--depth and --ignore are about links, and a seed list follows none.")
    further = [*settings_options(settings), *request.log_options()]
    options = {"out": out, "processes": processes, "depth": depth}
    given |= {name: value for name, value in options.items() if value}
    if isinstance(target, Path):
        wanted = given | _as_arguments(pairs(request.settings or [], option="-s"), given)
        _begin_by_file(target, given, wanted, further, now=now, watch=watch)
    else:
        if watch:
            _watch(given | _as_arguments(pairs(request.settings or [], option="-s"), given))
        begin([target.spider], target.arguments | given, further)


def _begin_over_spark(
    what: list[str],
    arguments: dict[str, str],
    settings: list[str],
    where: PartitionedOptions,
    *,
    out: str,
    others: dict[str, object],
) -> None:
    """Crawl over Spark; *others* are options that are about other crawls."""
    for option, value in others.items():
        if value:
            raise UsageError(f"{option} does not go with --engine spark. Leave it away.")
    from amicrawl.cli.spark_crawl import crawl_over_spark  # noqa: PLC0415  # most crawls are none of it

    crawl_over_spark(
        what,
        out=out,
        master=where.master,
        partitions=where.partitions,
        settings=settings,
        arguments=arguments,
    )


def _watch(wanted: dict[str, str]) -> None:
    """Show the crawl with the arguments *wanted* in a browser."""
    from amicrawl.cli.watch import watch_beside  # noqa: PLC0415  # most crawls are not watched

    directory = Path(wanted.get("out") or os.environ.get(_OUT) or _project_out())
    watch_beside(directory / wanted.get("run_id", ""))


def _project_out() -> str:
    """Return what the settings of the Scrapy project say of the output directory."""
    from scrapy.utils.project import get_project_settings  # noqa: PLC0415

    return str(get_project_settings().get(_OUT) or _DEFAULT_OUT)


def _patterns(written: list[str]) -> str | None:
    """Return the patterns as the setting takes them; UsageError for one with white space."""
    for pattern in written:
        if len(pattern.split()) != 1:
            raise UsageError(
                f"--ignore {pattern!r} is empty or has white space in it: write \\s for that."
            )
    return " ".join(written) or None


def _begin_by_file(
    path: Path,
    given: dict[str, str],
    wanted: dict[str, str],
    settings: list[str],
    *,
    now: bool,
    watch: bool,
) -> None:
    """Run the crawl of the crawl file *path*, or say that it is not due."""
    # Its checks load what judges ignore patterns, which a list has no use for.
    from amicrawl.crawlfile import read_crawl_file  # noqa: PLC0415

    crawl_file = read_crawl_file(path)
    directory = Path(wanted.get("out") or crawl_file.settings.get(_OUT) or _DEFAULT_OUT)
    planned = _plan(crawl_file, directory, by_hand=now or "run_id" in wanted)
    if planned.action is Action.WAIT:
        typer.echo(planned.sentence)
        return
    if planned.run_id and planned.action is Action.CRAWL and "run_id" not in wanted:
        given["run_id"] = planned.run_id
    if watch:
        _watch({"out": str(directory), **({"run_id": planned.run_id} if planned.run_id else {})})
    begin(_spider_line(path, crawl_file, planned, directory=directory), given, settings)


def _as_arguments(settings: dict[str, str], arguments: dict[str, str]) -> dict[str, str]:
    """Return what *settings* say of the place for the output and *arguments* do not."""
    places = {"out": settings.get(_OUT), "run_id": settings.get(f"{PREFIX}RUN_ID")}
    return {name: value for name, value in places.items() if value and name not in arguments}


def _plan(file: CrawlFile, out: Path, *, by_hand: bool) -> Plan:
    """Return what *file* has to be done about *out*; what is done *by_hand* waits for nothing."""
    crawls = last_crawls(out, file.run_id) if file.schedule.every and not by_hand else []
    return plan(file.schedule, file.run_id, crawls, now=datetime.now(UTC))


def _spider_line(path: Path, file: CrawlFile, planned: Plan, *, directory: Path) -> list[str]:
    if planned.action is Action.RECRAWL:
        # What was requested on the command line is for the spider of the file, but for the output.
        line = ["recrawl", "-a", f"dir={directory / planned.run_id}", "-a", f"config={path}"]
        return line if _AGES in file.settings else [*line, "-a", f"after={file.schedule.every_text}"]
    return [file.spider, "-a", f"config={path}"]


def begin(spider: list[str], arguments: dict[str, str], settings: list[str]) -> NoReturn:
    """Run the crawl by *spider*, a name and what follows it, with further *arguments*, and exit."""
    line = list(spider)
    for name, value in arguments.items():
        line += ["-a", f"{name}={value}"]
    environment, further = crawl_settings()
    os.environ.update(environment)
    start_crawl([*line, *further, *settings])


Directory = Annotated[str, typer.Argument(metavar="DIR", help="The output directory of a crawl.")]
Before = Annotated[
    str,
    typer.Option(
        metavar="DATE",
        help="Include what has probably changed until then, for example 2027-01-31.",
        show_default="now",
    ),
]
After = Annotated[
    str,
    typer.Option(metavar="SPAN", help="Request again what is that old: 12h, 7d, 4w."),
]
All = Annotated[bool, typer.Option("--all", help="Request every URL again.")]


@grouped
def recrawl(
    directory: Directory,
    *,
    before: Before = "",
    after: After = "",
    everything: All = False,
    request: RequestOptions,
) -> None:
    """Request again what is due of the crawl in DIR, and store what has changed.

    Example: amicrawl recrawl ami-out --after 7d

    This is `scrapy crawl recrawl`. Without --after and --all, a URL is due when its page has probably
    changed: after a week at first, and then by how often it was found changed.
    """
    if sum(map(bool, (before, after, everything))) > 1:
        raise UsageError(
            "--before, --after and --all are three rules for what is due. Give one of them."
        )
    rules = {"before": before, "after": ALL_AGES if everything else after}
    given = {"dir": directory} | {name: value for name, value in rules.items() if value}
    further = [*settings_options(request.all_settings()), *request.log_options()]
    begin(["recrawl"], given | pairs(request.arguments or [], option="-a"), further)
