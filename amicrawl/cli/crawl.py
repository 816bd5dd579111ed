"""`amicrawl crawl`: run the crawl of a crawl file, if it is due."""

from __future__ import annotations

import os
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from amicrawl.cli.name_value import pairs, passed_on
from amicrawl.cli.project import OUR_SETTINGS, SETTINGS_MODULE, project_directory
from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawlfile import read_crawl_file
from amicrawl.crawlfile.schedule import Action, Plan, last_crawls, plan

if TYPE_CHECKING:
    from amicrawl.crawlfile import CrawlFile

_OUT = f"{PREFIX}OUT"
_DEFAULT_OUT = CrawlConfig.model_fields["out"].default


File = Annotated[Path, typer.Argument(help="A crawl file.", show_default=False)]
Out = Annotated[str, typer.Option("--out", help="Directory for the output, in place of the file's.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="NAME=VALUE", help="A setting, in place of the file's."),
]
Arguments = Annotated[
    list[str] | None,
    typer.Option("-a", metavar="NAME=VALUE", help="A spider argument, in place of the file's."),
]
Now = Annotated[bool, typer.Option("--now", help="Crawl even if the schedule says: later.")]


def crawl(
    file: File, out: Out = "", settings: Settings = None, arguments: Arguments = None, now: Now = False
) -> None:
    """Run the crawl of FILE: `scrapy crawl` with its spider, arguments and settings.

    Where [schedule] says that the crawl is not due yet, say when it is, and do nothing: a timer may call
    this every hour. Outside of a Scrapy project the settings are amicrawl's own. Example:
    amicrawl crawl crawls/gov.toml
    """
    crawl_file = read_crawl_file(file)
    given = pairs(arguments or [], option="-a")
    if out:
        given["out"] = out
    wanted = given | _as_arguments(pairs(settings or [], option="-s"), given)
    directory = Path(wanted.get("out") or crawl_file.settings.get(_OUT) or _DEFAULT_OUT)
    planned = _plan(crawl_file, directory, by_hand=now or "run_id" in wanted)
    if planned.action is Action.WAIT:
        typer.echo(planned.sentence)
        return
    line = _command(file, crawl_file, planned, directory=directory)
    if planned.run_id and planned.action is Action.CRAWL and "run_id" not in wanted:
        given["run_id"] = planned.run_id
    for name, value in given.items():
        line += ["-a", f"{name}={value}"]
    _become([*line, *passed_on(settings)])


def _as_arguments(settings: dict[str, str], arguments: dict[str, str]) -> dict[str, str]:
    """Return what *settings* say of the place for the output and *arguments* do not."""
    places = {"out": settings.get(_OUT), "run_id": settings.get(f"{PREFIX}RUN_ID")}
    return {name: value for name, value in places.items() if value and name not in arguments}


def _plan(file: CrawlFile, out: Path, *, by_hand: bool) -> Plan:
    """Return what *file* has to be done about *out*; what is done *by_hand* waits for nothing."""
    crawls = last_crawls(out, file.run_id) if file.schedule.every and not by_hand else []
    return plan(file.schedule, file.run_id, crawls, now=datetime.now(UTC))


def _command(path: Path, file: CrawlFile, planned: Plan, *, directory: Path) -> list[str]:
    line = [sys.executable, "-P", "-m", "scrapy", "crawl"]
    if planned.action is Action.RECRAWL:
        # What was asked for on the command line is for the spider of the file, but for the output.
        return [*line, "recrawl", "-a", f"dir={directory / planned.run_id}", "-a", f"config={path}"]
    return [*line, file.spider, "-a", f"config={path}"]


def _become(line: list[str]) -> None:
    """Replace this process by *line*, so that signals and the exit code are those of the crawl."""
    sys.stdout.flush()
    sys.stderr.flush()
    environment = dict(os.environ)
    if SETTINGS_MODULE not in environment and project_directory() is None:
        environment[SETTINGS_MODULE] = OUR_SETTINGS
    os.execve(line[0], line, environment)  # noqa: S606  # a list, and no shell
