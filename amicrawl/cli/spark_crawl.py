"""A seed list over Spark, for `amicrawl crawl`: what is requested is checked; the driver runs here."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from amicrawl.archive.spark import session
from amicrawl.cli.options import pairs, settings_options
from amicrawl.cli.project import OUR_SETTINGS, SETTINGS_MODULE
from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.errors import ExitCode, UsageError
from amicrawl.fleet.spark import MOST_PARTITIONS, SparkCrawl, crawl_on_spark
from amicrawl.terminal import counted
from amicrawl.uploads import check_bucket_url, check_keeps_state

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_TAKEN = ("format", "strict")
"""Spider arguments that have a meaning for the whole crawl."""
_REFUSED = (
    *("BUCKET", "OUT", "RUN_ID", "WEBHOOKS", "METRICS", "MAX_URLS"),
    *("STOP_PAGES", "STOP_BYTES", "STOP_TIME", "STOP_ERRORS"),
)
"""Settings that are the driver's, or would hold for each partition alone."""
_CONFIGURED = {
    "lease": "spark.amicrawl.lease",
    "checkpoint": "spark.amicrawl.checkpoint",
    "lease_port": "spark.amicrawl.leasePort",
}
_SCRATCH = "spark.amicrawl.scratch"


def crawl_over_spark(
    what: Sequence[str],
    *,
    out: str,
    master: str,
    partitions: int,
    settings: Sequence[str],
    arguments: Mapping[str, str],
) -> None:
    """Crawl the seed list *what* over Spark into the bucket *out*, and end with the exit code."""
    order = _order(what, out, partitions, settings, arguments)
    with session(master) as spark:
        configured = spark.sparkContext.getConf()
        numbers = {
            field: _seconds(name, configured.get(name) or "")
            for field, name in _CONFIGURED.items()
            if configured.get(name)
        }
        order = replace(
            order,
            scratch=configured.get(_SCRATCH) or "",
            lease=numbers.get("lease", order.lease),
            checkpoint=numbers.get("checkpoint", order.checkpoint),
            lease_port=int(numbers.get("lease_port", 0)),
        )
        came = crawl_on_spark(spark, order, tell=lambda line: typer.echo(line, err=True))
    rounds = counted(came.rounds, "round")
    typer.echo(f"{came.rows:,} rows in {order.out}, in {rounds}: see manifest.json there.")
    if came.bad:
        typer.echo(f"{came.bad:,} lines of the list could not be used; the first: {came.why}", err=True)
    if came.code is not ExitCode.DONE:
        raise typer.Exit(came.code)


def _order(
    what: Sequence[str],
    out: str,
    partitions: int,
    settings: Sequence[str],
    arguments: Mapping[str, str],
) -> SparkCrawl:
    if len(what) != 1 or what[0] == "-" or what[0].lower().startswith(("http://", "https://")):
        raise UsageError(
            "--engine spark crawls one seed list (lines, JSON Lines or Parquet), at a path that all "
            "executors see, or at a URI that Spark reads (s3a://, hdfs://)."
        )
    if Path(what[0]).suffix.lower() == ".toml":
        raise UsageError("--engine spark takes no crawl file. Give the list, and settings with -s.")
    if not out:
        raise UsageError(
            "--engine spark needs -o: s3://bucket/path, gs://bucket/path or a shared directory."
        )
    for name in arguments:
        if name not in _TAKEN:
            raise UsageError(f"-a {name} does not go with --engine spark. Leave it away.")
    given = pairs(settings, option="-s")
    for name in _REFUSED:
        if PREFIX + name in given:
            raise UsageError(f"{PREFIX}{name} does not go with --engine spark: see docs/spark.md.")
    if not 0 <= partitions <= MOST_PARTITIONS:
        raise UsageError(f"--partitions is a number from 1 to {MOST_PARTITIONS:,}.")
    config = CrawlConfig.from_settings({n: v for n, v in given.items() if n.startswith(PREFIX)})
    url = out if "://" in out else Path(out).absolute().as_uri()
    check_bucket_url(url)
    check_keeps_state(url, "A crawl over Spark")
    # What is in the bucket is not needed on the executor any more.
    removing = [] if f"{PREFIX}REMOVE_UPLOADED" in given else ["-s", f"{PREFIX}REMOVE_UPLOADED=1"]
    return SparkCrawl(
        source=what[0],
        out=url,
        partitions=partitions,
        format=arguments.get("format"),
        strict=arguments.get("strict", "0").lower() in {"1", "yes", "true"},
        prefix=config.warc_prefix,
        options=(*settings_options(settings), *removing),
        environment={SETTINGS_MODULE: OUR_SETTINGS},
    )


def _seconds(name: str, text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= 86400:
        raise UsageError(f"{name} is {text!r}: give a number from 1 to 86400.")
    return number
