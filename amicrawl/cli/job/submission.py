"""`amicrawl job submit`: queue a job, and wait for its end, through times when Redis is away."""

from __future__ import annotations

import getpass
import hashlib
import json
import re
import time
from dataclasses import dataclass
from decimal import Decimal
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

from amicrawl.cli.job.listing import EVERY, Absence, moment
from amicrawl.cli.job.settings import given_in, options_of
from amicrawl.cli.options import AsJson, grouped
from amicrawl.cli.redis_options import with_store
from amicrawl.disk import readable
from amicrawl.errors import ExitCode, InputError, UsageError
from amicrawl.fleet.database import JobStore, RedisUnavailable
from amicrawl.fleet.jobs import JobExistsError, JobState, Submission, Submitted, job_settings, lookup
from amicrawl.fleet.jobs import submit as submit_job
from amicrawl.fleet.jobs.lookup import LARGEST_LIST
from amicrawl.urls import with_scheme

if TYPE_CHECKING:
    from collections.abc import Mapping

    from amicrawl.crawlfile import CrawlFile
    from amicrawl.fleet.jobs import JobRecord

SettingOptions: Any = options_of(job_settings.SETTINGS)

_CODES = {
    JobState.COMPLETED: ExitCode.DONE,
    JobState.ABORTED: ExitCode.STOPPED,
    JobState.FAILED: ExitCode.OUR_ERROR,
}
_AGE = re.compile(r"([0-9]{1,6})([smhd]?)")
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}

Url = Annotated[str | None, typer.Argument(metavar="URL", help="Start URL.")]
UrlList = Annotated[
    str | None, typer.Option("--list", metavar="FILE|URL", help="Take the start URLs from a list.")
]
Config = Annotated[
    Path | None, typer.Option("--config", help="A crawl file with further settings.", show_default=False)
]
Wait = Annotated[
    bool, typer.Option("--wait", help="Wait until it ends; exit code 0 if completed, 6 if aborted.")
]


def _complete_set(incomplete: str) -> list[str]:
    """Return the names of ignore sets that begin so, for a shell."""
    # Loaded for a shell that completes.
    from amicrawl.discovery import set_names  # noqa: PLC0415

    return [name for name in set_names() if name.startswith(incomplete)]


@dataclass(frozen=True)
class JobOptions:
    """What a job's record says beside its URL."""

    shallow: Annotated[
        bool, typer.Option("--shallow", help="Only the page, with what it needs to be shown.")
    ] = False
    pipeline: Annotated[
        str, typer.Option(metavar="TAG", help="Only pipelines with TAG in their nickname.")
    ] = ""
    large: Annotated[bool, typer.Option("--large", help="Only pipelines for large jobs.")] = False
    browser: Annotated[
        Literal["always", "auto"] | None,
        typer.Option(help="Open pages in Chromium, as for `amicrawl crawl`; alone: always."),
    ] = None
    ignore_set: Annotated[
        list[str] | None,
        typer.Option(
            autocompletion=_complete_set, metavar="SET", help="A shipped ignore set; may be repeated."
        ),
    ] = None
    ignore: Annotated[
        list[str] | None, typer.Option(metavar="PATTERN", help="An ignore pattern; may be repeated.")
    ] = None
    force: Annotated[
        bool, typer.Option("--force", help="Crawl again although an earlier job has ended.")
    ] = False
    if_older: Annotated[
        str | None,
        typer.Option(metavar="AGE", help="The same, if it ended at least so long ago: 90m, 12h, 2d."),
    ] = None
    started_by: Annotated[str, typer.Option("--by", metavar="NAME", help="Submitter.")] = ""
    started_in: Annotated[
        str,
        typer.Option(
            "--in", metavar="CHANNEL", help="IRC channel in which ArchiveBot's bot announces the end."
        ),
    ] = "command line"

    def submission(
        self, target: _JobTarget, config: str | None, settings: Mapping[str, job_settings.Value]
    ) -> Submission:
        """Return the job for *target* with *settings*, which count more than the crawl file *config*."""
        return Submission(
            url=target.url,
            depth="shallow" if self.shallow else "inf",
            is_list=target.is_list,
            lines=target.lines,
            config=self._with_browser(config),
            settings=settings,
            pipeline=self.pipeline,
            large=self.large,
            ignore_sets=tuple(_names(self.ignore_set or [])),
            ignores=tuple(self.ignore or ()),
            started_by=self.started_by or _user(),
            started_in=self.started_in,
            again=_again(self.if_older, force=self.force),
        )

    def _with_browser(self, config: str | None) -> str | None:
        """Return the crawl file of the job, which says in place of the record how pages are opened."""
        if self.browser is None:
            return config
        if config is not None:
            raise UsageError("--browser and --config: write browser = into [browser] of the crawl file.")
        return f'[browser]\nbrowser = "{self.browser}"\n'


@with_store
@grouped
def submit(
    store: JobStore,
    url: Url = None,
    *,
    url_list: UrlList = None,
    config: Config = None,
    job: JobOptions,
    settings: SettingOptions,
    wait: Wait = False,
    as_json: AsJson = False,
) -> None:
    """Queue a job and print its ident.

    A URL has one job, whatever its depth; one that is there already is refused, which --force and
    --if-older change for jobs that have ended. Example: amicrawl job submit http://example.org/ --wait
    """
    text, pace = (None, {}) if config is None else _config_of(config)
    values = {**pace, **given_in(settings, job_settings.SETTINGS)}
    submission = job.submission(_target(url, url_list), text, values)
    try:
        submitted = submit_job(store, submission, now=time.time())
    except JobExistsError as error:
        raise UsageError(f"{error} {_advice(error.record)}") from error
    _show(submitted, as_json=as_json)
    if wait:
        raise typer.Exit(_wait_for(store, submitted.ident))


def _advice(record: JobRecord) -> str:
    if record.has_ended:
        log = f" `amicrawl job log {record.ident}` shows why." if record.failed else ""
        return f"Submit it with --force to crawl it again.{log}"
    return f"To start over, abort it first: amicrawl job abort {record.ident}"


def _show(submitted: Submitted, *, as_json: bool) -> None:
    for warning in submitted.warnings:
        typer.echo(f"amicrawl: {warning}", err=True)
    if as_json:
        typer.echo(json.dumps({**submitted._asdict(), "warnings": list(submitted.warnings)}))
        return
    typer.echo(submitted.ident)
    begun = "is crawled again" if submitted.again else "is queued"
    typer.echo(f"{submitted.url} {begun}: {submitted.queue}", err=True)


class _JobTarget(NamedTuple):
    """What a job crawls."""

    url: str
    is_list: bool = False
    """Whether the URL stands for a list of start URLs."""
    lines: str | None = None
    """The list, where it has no URL of its own."""


def _target(url: str | None, url_list: str | None) -> _JobTarget:
    """Return what a job crawls that is given *url*, a list, or both."""
    if url_list is None:
        if url is None:
            raise UsageError("Nothing to crawl: give a URL, or a list with --list.")
        return _JobTarget(with_scheme(url))
    if url_list.lower().startswith(("http://", "https://")):
        if url is not None:
            raise UsageError(
                "Give a URL, or the URL of a list with --list: a job begins at one of them."
            )
        return _JobTarget(url_list, is_list=True)
    lines = _lines_of(Path(url_list))
    name = re.sub(r"[^A-Za-z0-9._-]", "-", Path(url_list).name) or "list"
    digest = hashlib.sha256(lines.encode()).hexdigest()[:32]
    # A job is named by a URL. One below `.invalid` belongs to no site.
    named = with_scheme(url) if url else f"http://list.invalid/{digest}/{name}"
    return _JobTarget(named, is_list=True, lines=lines)


def _lines_of(path: Path) -> str:
    with readable(path), path.open("rb") as file:
        content = file.read(LARGEST_LIST + 1)
    if len(content) > LARGEST_LIST:
        raise UsageError(
            f"{path} has more than {LARGEST_LIST:,} bytes, all that Redis keeps of a list. Put it "
            "on a web server and give its URL: --list http://..."
        )
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not a list of URLs: byte {error.start} is not UTF-8.") from error


def _config_of(config: Path) -> tuple[str, dict[str, job_settings.Value]]:
    """Return what a crawl file says, checked, as text that another machine can follow; and its pace.

    The pace is in the record of a job, which goes before the file.
    """
    # Loaded for a job that has one: to check a file takes as much loading as to talk to Redis.
    from amicrawl.crawlfile import CrawlFileError, effective, examine  # noqa: PLC0415

    examined = examine(config, is_part=True)
    if examined.faults:
        raise CrawlFileError(examined.faults)
    _check_for_a_job(config, examined.file)
    delay = examined.file.settings.get("AMICRAWL_DELAY")
    pace: dict[str, job_settings.Value] = {}
    if delay is not None:
        # A crawl may wait longer than the file says, and never less: 0.0004 s are not 0 ms.
        pace["delay_min"] = pace["delay_max"] = ceil(Decimal(str(delay)) * 1000)
    if (at_once := examined.file.settings.get("AMICRAWL_PER_HOST")) is not None:
        pace["concurrency"] = at_once
    return effective(examined.sheet, directory=Path.cwd()), pace


def _check_for_a_job(config: Path, crawl_file: CrawlFile) -> None:
    if crawl_file.arguments.get("url") or crawl_file.arguments.get("file"):
        raise UsageError(
            f"{config} says where to begin, and so does the job. Take [seeds] url and file out, or "
            f"crawl it without a job: amicrawl crawl {config}"
        )


def _again(if_older: str | None, *, force: bool) -> Literal["never", "ended"] | int:
    if if_older is None:
        return "ended" if force else "never"
    match = _AGE.fullmatch(if_older)
    if match is None or force:
        raise UsageError(
            "Give --force or --if-older, not both."
            if force
            else f"--if-older {if_older!r} is not an age: give seconds, or 90m, 12h, 2d."
        )
    return int(match[1]) * _SECONDS[match[2]]


def _names(given: list[str]) -> list[str]:
    return [name for text in given for name in text.replace(",", " ").split()]


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # a container may run as a number without a name
        return ""


def _wait_for(store: JobStore, ident: str) -> ExitCode:
    """Wait until the job *ident* has ended, telling how it stands; return the exit code for that."""
    last: JobRecord | None = None
    away, absence = False, Absence()
    while True:
        try:
            with store.responding():
                record = lookup.again(store, last) if last else lookup.job_or_none(store, ident)
        except RedisUnavailable as error:
            if not away:
                typer.echo(f"amicrawl: {error} Waiting for it.", err=True)
            away = True
            absence.interrupted()
        else:
            away = False
            if absence.is_final(record):
                typer.echo(f"amicrawl: {lookup.no_such_job(ident)}", err=True)
                return ExitCode.INPUT
            if record is not None:
                if last is None or record.state is not last.state:
                    typer.echo(f"{moment(time.time())} {ident} {record.state.phrase}", err=True)
                if record.has_ended:
                    return _CODES[record.state]
                last = record
        time.sleep(EVERY)
