"""`amicrawl pipeline`: run jobs from Redis on this machine; `ls` and `drain` are about all pipelines."""

from __future__ import annotations

import json
import logging
import math
import os
import re
import signal
import socket
import sys
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from amicrawl.cli.options import AsJson, Settings, grouped, print_table
from amicrawl.cli.project import crawl_settings, options_of_crawls, project_settings
from amicrawl.cli.redis_options import RedisOptions, with_store
from amicrawl.disk import Disk
from amicrawl.errors import UsageError
from amicrawl.fleet.checkpoints import opened_store, url_of_job
from amicrawl.fleet.database import connect
from amicrawl.fleet.jobs import (
    Mode,
    Pipeline,
    PipelineIdentity,
    PipelineOptions,
    Workshop,
    is_silent,
    pipelines,
    queue_order,
    tell_to_drain,
)
from amicrawl.fleet.leases import GRACE
from amicrawl.terminal import harmless, human_size, human_span
from amicrawl.uploads import open_bucket

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.fleet.database import JobStore, RedisSettings


_BUCKET = "AMICRAWL_BUCKET"

app = typer.Typer(invoke_without_command=True, add_completion=False)


WhichPipeline = Annotated[str, typer.Argument(help="Name or key of a pipeline.", show_default=False)]
Finish = Annotated[bool, typer.Option("--finish", help="Finish running jobs first.")]


@dataclass(frozen=True)
class CrawlOptions:
    """Which jobs a pipeline takes, and how it runs their crawls."""

    slots: Annotated[int, typer.Option(min=1, max=200, help="Jobs at once.")] = 2
    name: Annotated[
        str, typer.Option(metavar="NICK", help="Name of the pipeline; the machine's by default.")
    ] = ""
    data: Annotated[Path, typer.Option(help="Directory that holds a directory per job.")] = Path("jobs")
    large: Annotated[bool, typer.Option("--large", help="Take jobs from pending-large, too.")] = False
    shallow_only: Annotated[
        bool, typer.Option("--shallow-only", help="Take shallow jobs only, from pending-ao.")
    ] = False
    finish_jobs: Annotated[
        bool, typer.Option("--finish-jobs", help="On the first signal, finish running jobs.")
    ] = False
    lease: Annotated[
        float,
        typer.Option(
            min=2, max=3600, help="Seconds without a heartbeat after which a crawl counts as dead."
        ),
    ] = 30
    min_free: Annotated[
        str, typer.Option(metavar="SIZE", help="Take no job with less free disk space.")
    ] = "5GiB"
    failures: Annotated[
        int, typer.Option(min=1, help="Consecutive crashes after which a job is failed.")
    ] = 5
    settings: Settings = None
    keep_for: Annotated[
        float,
        typer.Option(
            min=0, help="Seconds that a returned job is reserved for the machine with its files."
        ),
    ] = 600
    bucket: Annotated[str, typer.Option(metavar="URL", help="Bucket for the jobs' files.")] = ""
    checkpoint_every: Annotated[
        float, typer.Option(min=1, help="Seconds between checkpoints in the bucket.")
    ] = 300


@app.callback()
@grouped
def pipeline(context: typer.Context, *, crawls: CrawlOptions, redis: RedisOptions) -> None:
    """Run jobs from Redis, each crawl in a child process.

    The first SIGTERM or Ctrl-C has the crawls stop and gives their jobs back, to be resumed; the second
    one does so at once. A file STOP in the data directory lets running jobs finish instead.
    Example: amicrawl pipeline --slots 4 --data /srv/jobs
    """
    if context.invoked_subcommand is not None:
        return
    nickname = crawls.name or _nickname(socket.gethostname())
    bucket = crawls.bucket or _bucket_of_all(crawls.settings or [])
    options = PipelineOptions(
        slots=crawls.slots,
        queues=tuple(queue_order(nickname, large=crawls.large, shallow_only=crawls.shallow_only)),
        lease=timedelta(seconds=crawls.lease),
        min_free=_size(crawls.min_free),
        on_signal=Mode.FINISHES if crawls.finish_jobs else Mode.RELEASES,
        failures_borne=crawls.failures,
        kept_for=timedelta(seconds=crawls.keep_for),
        grace=min(GRACE, crawls.lease / 2),
    )
    where = redis.settings()
    _run(nickname, where, _workshop(crawls, where, bucket=bucket), options)


def _workshop(crawls: CrawlOptions, where: RedisSettings, *, bucket: str) -> Workshop:
    """Return what makes the crawls; the *bucket*, if any, is there and open to us."""
    disk, data = Disk(), crawls.data.absolute()
    command, further = _crawl_command(crawls.settings or [], bucket)
    if bucket:
        open_bucket(bucket, disk=disk)
    return Workshop(
        data=data,
        store_id=opened_store(data, disk=disk),
        command=command,
        environment={**os.environ, **further, **where.environment()},
        lease_seconds=crawls.lease,
        disk=disk,
        bucket=bucket,
        checkpoint_every=crawls.checkpoint_every,
    )


def _run(nickname: str, where: RedisSettings, workshop: Workshop, options: PipelineOptions) -> None:
    """Run the pipeline *nickname* until it is asked to stop."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    store = connect(where)
    pipeline = Pipeline(store, workshop, options, identity=PipelineIdentity.of_this_process(nickname))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: pipeline.signalled())
    logging.getLogger(__name__).info(
        "Pipeline %s takes jobs from Redis at %s into %s", nickname, where.shown, workshop.data
    )
    pipeline.run()
    store.close()


@app.command()
@with_store
def drain(store: JobStore, name: WhichPipeline, finish: Finish = False) -> None:
    """Drain the pipeline NAME: it takes no more jobs, returns those it has, and ends.

    Example: amicrawl pipeline drain crawler-1
    """
    for key in tell_to_drain(store, name, how="finish" if finish else "release"):
        typer.echo(f"{key} is asked to stop")


def _crawl_command(
    settings: Sequence[str], bucket: str
) -> tuple[Callable[[str, Path], Sequence[str]], dict[str, str]]:
    """Return what makes the command line of a crawl with *settings*, and its environment's additions.

    In a Scrapy project that archives, the crawl runs by that project's settings; anywhere else by ours.
    """
    environment, project_options = crawl_settings()
    further = [*project_options, *options_of_crawls(settings)]

    def command(ident: str, directory: Path) -> list[str]:
        line = [sys.executable, "-P", "-m", "amicrawl.crawl.start", "job", "-a", f"ident={ident}"]
        # What it prints is read line by line, for the log of the job.
        line += ["-s", "AMICRAWL_LOG_FORMAT=json"]
        line += ["-s", f"AMICRAWL_OUT={directory}", "-s", "AMICRAWL_RUN_ID=", *further]
        return [*line, "-s", f"{_BUCKET}={url_of_job(bucket, directory)}"] if bucket else line

    return command, environment


def _bucket_of_all(settings: Sequence[str]) -> str:
    """Return the bucket that is set for every crawl, in which each job is to have a path of its own."""
    pairs = [setting.partition("=") for setting in settings]
    given = {name: value for name, _, value in pairs}
    return str(given.get(_BUCKET) or project_settings([_BUCKET]).get(_BUCKET) or "")


def _nickname(hostname: str) -> str:
    fit = re.sub(r"[^A-Za-z0-9_-]+", "-", hostname.partition(".")[0])[:30]
    return fit if len(fit) >= 3 else f"{fit}-pipeline"


def _size(text: str) -> int:
    try:
        return int(TypeAdapter(ByteSize).validate_python(text))
    except ValidationError as error:
        raise UsageError(f"--min-free {text!r} is not a size. Write 5GiB, for example.") from error


_TEXTS = ("nickname", "status", "hostname", "version")
_SILENT = "silent"
_COUNTS = {"running": "running", "slots": "slots", "free_bytes": "disk_available", "reported": "ts"}
_HEADING = ("name", "status", "jobs", "load", "free", "reported", "key")
_UNKNOWN = "?"
_MOST = 10**18


@with_store
def list_pipelines(store: JobStore, *, as_json: AsJson = False) -> None:
    """List the pipelines: name, status, slots in use, load, free disk, when it last reported.

    Example: amicrawl pipeline ls --json

    One that has not reported for 15 seconds is `silent`: it was killed, or cannot reach Redis.


    Example: amicrawl pipeline ls --json
    """
    now = store.now()
    found = [_facts(fields, now) for fields in pipelines(store)]
    if as_json:
        for facts in found:
            typer.echo(json.dumps(facts))
        return
    print_table(
        _HEADING,
        [_row(facts, int(now)) for facts in found],
        right=(False, False, True, True, True, True, False),
        otherwise="No pipeline runs. Start one with `amicrawl pipeline --data DIRECTORY`.",
    )


def _facts(fields: Mapping[str, str], now: float) -> dict[str, Any]:
    """Return what a record says, its figures as numbers; None for what is none."""
    return {
        "key": fields.get("id", ""),
        **{name: fields.get(name, "") for name in _TEXTS},
        **{name: _count(fields.get(field, "")) for name, field in _COUNTS.items()},
        "load": _load(fields.get("load_average_1m", "")),
        "silent": is_silent(fields, now),
    }


def _count(text: str) -> int | None:
    return min(int(text), _MOST) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _load(text: str) -> float | None:
    try:
        load = float(text[:30])
    except ValueError:
        return None
    return load if math.isfinite(load) else None


def _row(facts: Mapping[str, Any], now: int) -> tuple[str, ...]:
    free, load, reported = facts["free_bytes"], facts["load"], facts["reported"]
    jobs = [_UNKNOWN if facts[name] is None else str(facts[name]) for name in ("running", "slots")]
    return (
        harmless(facts["nickname"], limit=40),
        _SILENT if facts["silent"] else harmless(facts["status"], limit=20),
        f"?/{jobs[1]}" if facts["silent"] else "/".join(jobs),
        _UNKNOWN if load is None else f"{load:.2f}",
        _UNKNOWN if free is None else human_size(free),
        # Its clock may be ahead of ours.
        _UNKNOWN if reported is None else f"{human_span(max(now - reported, 0))} ago",
        harmless(facts["key"], limit=100),
    )


app.command("ls")(list_pipelines)
