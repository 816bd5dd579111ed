"""What Redis costs a job: processor time of redis-server for each page that a job fetches.

    python -m benchmarks.job_cost [--pages 20000] [--hosts 200] [--delay 0]

A job with a list of start pages is run by one pipeline on a redis-server of its own; the time that the
server took is divided by the pages, and by the seconds that the crawl took. With a delay (milliseconds
between two requests to a host) the rate is that of polite crawls. What the server takes in the same time
without any client, which is more than a slow job takes, is measured first and given apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import redis

from benchmarks.crawlers import ROOT
from benchmarks.report import machine
from benchmarks.rounds import Server

_PORT = 6399
_IDLE_SECONDS = 20


def _cpu(client: redis.Redis) -> float:
    """Return the processor seconds that the server has used; `ps` counts them in hundredths."""
    used: Any = client.info("cpu")
    return float(used["used_cpu_user"] + used["used_cpu_sys"])


def _idle(client: redis.Redis) -> float:
    """Return the processor seconds that the server takes in a second for itself."""
    before, began = _cpu(client), time.perf_counter()
    time.sleep(_IDLE_SECONDS)
    return (_cpu(client) - before) / (time.perf_counter() - began)


def measure(pages: int, hosts: int, delay: int) -> dict[str, object]:
    """Return what the job and its Redis took."""
    with tempfile.TemporaryDirectory(prefix="amicrawl-job-cost-") as place, Server(hosts) as server:
        urls = Path(place) / "urls.txt"
        server.write_urls(urls, pages, kinds=("page",))
        server_of_jobs = subprocess.Popen(
            ["redis-server", "--port", str(_PORT), "--save", "", "--dir", place],
            stdout=subprocess.DEVNULL,
        )
        try:
            return _job(Path(place), urls, pages, delay)
        finally:
            server_of_jobs.terminate()
            server_of_jobs.wait()


def _job(place: Path, urls: Path, pages: int, delay: int) -> dict[str, object]:
    environment = {**os.environ, "REDIS_URL": f"redis://127.0.0.1:{_PORT}/0"}
    program = [sys.executable, "-m", "amicrawl"]
    time.sleep(1)
    client = redis.Redis(port=_PORT)
    idle = _idle(client)
    submit = ["job", "submit", "http://list.example/", "--list", str(urls), "--shallow"]
    submit += ["--delay", str(delay), "--concurrency", "99"]
    subprocess.run([*program, *submit], env=environment, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    settings = (
        "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8",
        "AMICRAWL_ROBOTS=ignore",
        "AMICRAWL_ADDRESS_DELAY=0",
    )
    line = [*program, "pipeline", "--slots", "1", "--data", str(place / "data")]
    began, before = time.perf_counter(), _cpu(client)
    pipeline = subprocess.Popen(
        [*line, *(word for setting in settings for word in ("-s", setting))],
        env=environment, cwd=ROOT, stderr=(place / "log").open("wb"),
    )  # fmt: skip
    try:
        while not (found := [*(place / "data").glob("*.json")]):
            if pipeline.poll() is not None:
                sys.exit(
                    f"The pipeline ended with {pipeline.returncode}:\n{(place / 'log').read_text()}"
                )
            time.sleep(0.2)
        seconds, cpu = time.perf_counter() - began, _cpu(client) - before
    finally:
        pipeline.terminate()
        pipeline.wait()
    ended = json.loads(found[0].read_text())
    return {
        "machine": machine(),
        "pages": pages,
        "delay_ms": delay,
        "job": {name: ended.get(name) for name in ("r2xx", "items_queued", "exit_code", "completed")},
        "seconds": round(seconds, 1),
        "redis_us_a_page": round((cpu - idle * seconds) / pages * 1e6, 2),
        "redis_percent_of_a_core": round(100 * (cpu / seconds - idle), 3),
        "redis_idle_percent_of_a_core": round(100 * idle, 3),
    }


def main() -> None:
    """Print the figures as JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.job_cost")
    parser.add_argument("--pages", type=int, default=20_000)
    parser.add_argument("--hosts", type=int, default=200)
    parser.add_argument("--delay", type=int, default=0)
    requested = parser.parse_args()
    print(json.dumps(measure(requested.pages, requested.hosts, requested.delay), indent=1))


if __name__ == "__main__":
    main()
