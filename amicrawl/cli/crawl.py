"""`amicrawl crawl`: crawl a site or a seed list, or what a crawl file says, if that is due."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.crawl_target import target_of
from amicrawl.cli.name_value import pairs, passed_on
from amicrawl.cli.project import crawl_settings
from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawlfile import read_crawl_file
from amicrawl.crawlfile.schedule import Action, Plan, last_crawls, plan

if TYPE_CHECKING:
    from amicrawl.crawlfile import CrawlFile

_OUT = f"{PREFIX}OUT"
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
        *("-o", "--out"), metavar="DIR", help="Directory for the output, before a file's; else ami-out."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="NAME=VALUE", help="A setting, in place of a crawl file's."),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option("-a", metavar="NAME=VALUE", help="A spider argument, in place of a crawl file's."),
]
Processes = Annotated[
    str,
    typer.Option(
        metavar="N",
        help="Crawl with N processes, each some of the hosts; auto: one a core.",
        show_default="1",
    ),
]
Now = Annotated[bool, typer.Option("--now", help="Crawl even if the schedule says: later.")]


def crawl(
    what: What,
    *,
    out: Out = "",
    settings: Settings = None,
    arguments: Arguments = None,
    processes: Processes = "",
    now: Now = False,
) -> None:
    """Crawl WHAT: a site by its URL, the URLs of a seed list, or what a crawl file says.

    Example: amicrawl crawl https://example.org/ -o archive

    This is `scrapy crawl` with the spider `site`, `seeds`, or that of the file. It works anywhere:
    outside of a Scrapy project that archives, the settings are amicrawl's own. Where the schedule of a
    crawl file says that it is not due yet, say when it is, and do nothing: a timer may call every hour.
    """
    target = target_of(what)
    given = pairs(arguments or [], option="-a")
    if out:
        given["out"] = out
    if processes:
        given["processes"] = processes
    wanted = given | _as_arguments(pairs(settings or [], option="-s"), given)
    if isinstance(target, Path):
        _begin_by_file(target, given, wanted, passed_on(settings), now=now)
    else:
        begin([target.spider], target.arguments | given, passed_on(settings))


def _begin_by_file(
    path: Path, given: dict[str, str], wanted: dict[str, str], settings: list[str], *, now: bool
) -> None:
    """Become the crawl of the crawl file *path*, or say that it is not due."""
    crawl_file = read_crawl_file(path)
    directory = Path(wanted.get("out") or crawl_file.settings.get(_OUT) or _DEFAULT_OUT)
    planned = _plan(crawl_file, directory, by_hand=now or "run_id" in wanted)
    if planned.action is Action.WAIT:
        typer.echo(planned.sentence)
        return
    if planned.run_id and planned.action is Action.CRAWL and "run_id" not in wanted:
        given["run_id"] = planned.run_id
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
        # What was asked for on the command line is for the spider of the file, but for the output.
        return ["recrawl", "-a", f"dir={directory / planned.run_id}", "-a", f"config={path}"]
    return [file.spider, "-a", f"config={path}"]


def begin(spider: list[str], arguments: dict[str, str], settings: list[str]) -> None:
    """Become the crawl by *spider*, a name and what follows it, with further *arguments*."""
    line = [sys.executable, "-P", "-m", "scrapy", "crawl", *spider]
    for name, value in arguments.items():
        line += ["-a", f"{name}={value}"]
    environment, further = crawl_settings()
    _become([*line, *further, *settings], environment)


def _become(line: list[str], environment: dict[str, str]) -> None:
    """Replace this process by *line*, so that signals and the exit code are those of the crawl."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execve(line[0], line, {**os.environ, **environment})  # noqa: S606  # a list, and no shell
