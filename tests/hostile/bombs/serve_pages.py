"""Starts a dashboard, requests its pages and what they are made of, and ends it."""

from __future__ import annotations

import sys
import urllib.error
import urllib.request

from amicrawl.disk import Disk
from amicrawl.errors import AmicrawlError, ExitCode
from amicrawl.fleet.dashboard.serving import Settings, serving_in_thread
from amicrawl.fleet.database.connection import RedisSettings


def main() -> int:
    """Serve the Redis and request the job that the command line names; 0 where all had a response."""
    redis, job = sys.argv[1:]
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    lists = ("jobs", "pipelines", "pending", "finished", "dead", "status")
    paths = [*("", "pipelines", "pending", "finished", f"jobs/{job}"), *(f"api/v1/{n}" for n in lists)]
    paths += [f"api/v1/jobs/{job}", f"api/v1/jobs/{job}/log", f"api/v1/jobs/{job}/ignores"]
    # Until the time of the processor that a child may use is over; this only ends a wait for nothing.
    patience = 280
    try:
        settings = Settings(redis=RedisSettings(redis), port=0)
        with serving_in_thread(settings, disk=Disk()) as running:
            for path in paths:
                try:
                    with opener.open(f"{running.url.rstrip('/')}/{path}", timeout=patience) as response:
                        size = len(response.read())
                except urllib.error.HTTPError as error:
                    size = len(error.read())
                    if error.code not in {404, 503}:
                        sys.stderr.write(f"/{path}: {error.code}\n")
                        return 1
                sys.stdout.write(f"/{path}: {size} bytes\n")
    except AmicrawlError as error:
        sys.stderr.write(f"{error}\n")
        return int(error.exit_code)
    return ExitCode.DONE


if __name__ == "__main__":
    sys.exit(main())
