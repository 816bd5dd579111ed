"""Reads what lies in a bucket as who takes over a crawl does: a pipeline, a worker, a task of Spark."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.jobs.checkpoint import restore_checkpoint
from amicrawl.fleet.jobs.job_bucket import fetch
from amicrawl.fleet.sharing.worker import fetch_state
from amicrawl.fleet.spark.bucket_objects import read_json
from amicrawl.record.bucket import open_bucket

if TYPE_CHECKING:
    from collections.abc import Callable


def main() -> int:
    """Have everything that takes from the bucket in the working directory take from it."""
    url, out = Path("bucket").absolute().as_uri(), Path("out").absolute()
    takers: dict[str, Callable[[Path], object]] = {
        "checkpoint": lambda to: restore_checkpoint(to, url, disk=Disk()),
        "shelf": lambda to: fetch(to, url, checkpoints=[], disk=Disk()),
        "task": lambda _: read_json(open_bucket(url, disk=Disk()), "checkpoint.json"),
        "partition": lambda to: fetch_state(to, url, disk=Disk()),
    }
    codes = [ExitCode.DONE]
    for name, take in takers.items():
        directory = out / name
        directory.mkdir(parents=True)
        try:
            take(directory)
        except AmicrawlError as error:
            sys.stderr.write(f"{name}: {str(error)[:2000]}\n")
            codes.append(error.exit_code)
    return int(max(codes))


if __name__ == "__main__":
    sys.exit(main())
