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
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ByteSize, TypeAdapter, ValidationError

from amicrawl.cli.options import AsJson
from amicrawl.cli.project import crawl_settings, options_of_crawls, project_settings
from amicrawl.cli.redis_options import PrefixOption, RedisOption, redis_settings, with_store
from amicrawl.disk import Disk
from amicrawl.errors import UsageError
from amicrawl.jobs.attempt import Workshop
from amicrawl.jobs.checkpoint import path_of
from amicrawl.jobs.connection import connect
from amicrawl.jobs.data_directory import opened_store
from amicrawl.jobs.lease import GRACE
from amicrawl.jobs.pipeline import Pipeline, PipelineOptions
from amicrawl.jobs.pipeline_record import (
    PipelineIdentity,
    is_silent,
    pipelines,
    redis_now,
    tell_to_drain,
)
from amicrawl.jobs.queues import queue_order
from amicrawl.jobs.supervisor import Mode
from amicrawl.record.bucket import open_bucket
from amicrawl.terminal import aligned, harmless, human_size, human_span

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from amicrawl.jobs.connection import JobStore, RedisSettings


_BUCKET = "AMICRAWL_BUCKET"

app = typer.Typer(invoke_without_command=True, add_completion=False)


Slots = Annotated[int, typer.Option("--slots", min=1, max=200, help="Jobs at once.")]
Name = Annotated[
    str, typer.Option("--name", metavar="NICK", help="Name of the pipeline; the machine's by default.")
]
Data = Annotated[Path, typer.Option("--data", help="Directory that holds a directory per job.")]
Large = Annotated[bool, typer.Option("--large", help="Take jobs from pending-large, too.")]
ShallowOnly = Annotated[
    bool, typer.Option("--shallow-only", help="Take shallow jobs only, from pending-ao.")
]
FinishJobs = Annotated[
    bool, typer.Option("--finish-jobs", help="On the first signal, finish running jobs.")
]
Lease = Annotated[
    float,
    typer.Option(
        "--lease",
        min=2,
        max=3600,
        help="Seconds without a heartbeat after which a crawl counts as dead.",
    ),
]
MinFree = Annotated[
    str, typer.Option("--min-free", metavar="SIZE", help="Take no job with less free disk space.")
]
Failures = Annotated[
    int, typer.Option("--failures", min=1, help="Consecutive crashes after which a job is failed.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("-s", "--set", metavar="NAME=VALUE", help="A setting of every crawl."),
]
KeepFor = Annotated[
    float,
    typer.Option(
        "--keep-for",
        min=0,
        help="Seconds that a returned job is reserved for the machine with its files.",
    ),
]
Bucket = Annotated[str, typer.Option("--bucket", metavar="URL", help="Bucket for the jobs' files.")]
WhichPipeline = Annotated[str, typer.Argument(help="Name or key of a pipeline.", show_default=False)]
Finish = Annotated[bool, typer.Option("--finish", help="Finish running jobs first.")]
CheckpointEvery = Annotated[
    float,
    typer.Option("--checkpoint-every", min=1, help="Seconds between checkpoints in the bucket."),
]


@app.callback()
def pipeline(
    context: typer.Context,
    *,
    slots: Slots = 2,
    name: Name = "",
    data: Data = Path("jobs"),
    large: Large = False,
    shallow_only: ShallowOnly = False,
    finish_jobs: FinishJobs = False,
    lease: Lease = 30,
    min_free: MinFree = "5GiB",
    failures: Failures = 5,
    settings: Settings = None,
    keep_for: KeepFor = 600,
    bucket: Bucket = "",
    checkpoint_every: CheckpointEvery = 300,
    redis: RedisOption = None,
    prefix: PrefixOption = None,
) -> None:
    """Run jobs from Redis, each crawl in a child process.

    The first SIGTERM or Ctrl-C has the crawls stop and gives their jobs back, to be resumed; the second
    one does so at once. A file STOP in the data directory lets running jobs finish instead.
    Example: amicrawl pipeline --slots 4 --data /srv/jobs
    """
    if context.invoked_subcommand is not None:
        return
    nickname = name or _nickname(socket.gethostname())
    bucket = bucket or _bucket_of_all(settings or [])
    options = PipelineOptions(
        slots=slots,
        queues=tuple(queue_order(nickname, large=large, shallow_only=shallow_only)),
        lease=timedelta(seconds=lease),
        min_free=_size(min_free),
        on_signal=Mode.FINISHES if finish_jobs else Mode.RELEASES,
        failures_borne=failures,
        # With a bucket every machine can fetch its files.
        kept_for=timedelta(seconds=0 if bucket else keep_for),
        grace=min(GRACE, lease / 2),
    )
    where = redis_settings(redis, prefix)
    workshop = _workshop(
        data.absolute(), where, settings or [], bucket=bucket, lease=lease, every=checkpoint_every
    )
    _run(nickname, where, workshop, options)


def _workshop(
    data: Path, where: RedisSettings, settings: Sequence[str], *, bucket: str, lease: float, every: float
) -> Workshop:
    """Return what makes the crawls in *data*; the *bucket*, if any, is there and open to us."""
    disk = Disk()
    command, further = _crawl_command(settings, bucket)
    if bucket:
        open_bucket(bucket, disk=disk)
    return Workshop(
        data=data,
        store_id=opened_store(data, disk=disk),
        command=command,
        environment={**os.environ, **further, **where.environment()},
        lease_seconds=lease,
        disk=disk,
        bucket=bucket,
        checkpoint_every=every,
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
    """Drain the pipeline NAME: it takes no more jobs, returns those it has, and ends."""
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
        line += ["-s", f"AMICRAWL_OUT={directory}", "-s", "AMICRAWL_RUN_ID=", *further]
        return [*line, "-s", f"{_BUCKET}={path_of(bucket, directory.name)}"] if bucket else line

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

    One that has not reported for 15 seconds is `silent`: it was killed, or cannot reach Redis.
    """
    now = redis_now(store)
    found = [_facts(fields, now) for fields in pipelines(store)]
    if as_json:
        for facts in found:
            typer.echo(json.dumps(facts))
        return
    if not found:
        typer.echo("No pipeline runs. Start one with `amicrawl pipeline --data DIRECTORY`.")
        return
    right = (False, False, True, True, True, True, False)
    for line in aligned([_HEADING, *(_row(facts, int(now)) for facts in found)], right=right):
        typer.echo(line)


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
