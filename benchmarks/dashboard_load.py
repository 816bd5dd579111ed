"""What many jobs cost one Redis and one dashboard, and whether a month of their logs makes Redis grow.

    python -m benchmarks.dashboard_load [--jobs N] [--lines N] [--seconds S] [--followed N]
                                          [--viewers N] [--json FILE]
    python -m benchmarks.dashboard_load --month [LINES] [--json FILE]

Four kinds of processes: redis-server; a writer that has the `CrawlLink` of every job (as a crawl has:
claim, lease, one flush a second, trimming); `amicrawl dashboard`; viewers, each of which follows some of
the jobs and notes how old a line is when it arrives. Processor time is that of each process over
the window, in per cent of one core; memory is the largest resident set that was seen in it.

`--month` writes the lines of one job as fast as Redis takes them, through the same script in the largest
batches that a crawl sends, trims as often as a crawl does for that many lines, and samples the memory of
Redis. Ten lines a second are 26 million in a month. There is no dashboard, so nothing is ever marked as
broadcast: what bounds the log is its own limit.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psutil

from amicrawl.fleet.database.connection import RedisSettings, connect
from amicrawl.fleet.jobs.link import CrawlLink, Fed
from amicrawl.fleet.jobs.restoring import fetched_copy
from amicrawl.fleet.jobs.submission import Submission, submit
from amicrawl.fleet.leases.lease import Claims
from amicrawl.fleet.logs import job_log
from benchmarks.crawlers import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from amicrawl.fleet.database.connection import JobStore

_TTL = timedelta(seconds=30)
_BATCH = 2000
_LINES_A_SECOND = 10
"""What one of a hundred jobs writes."""
_ENTRY = (
    '{"ts":%.6f,"url":"http://site-0.example/articles/%09d.html?from=list","response_code":200,'
    '"wget_code":"OK","is_error":false,"is_warning":false,"type":"download"}'
)
_TRIMMED_EVERY = 30
"""Seconds of a crawl between two trims."""


@contextmanager
def redis_server() -> Iterator[tuple[str, psutil.Process]]:
    """Run a server on a socket of its own."""
    with tempfile.TemporaryDirectory() as directory:
        path = f"{directory}/redis.sock"
        command = [
            "redis-server",
            "--port",
            "0",
            "--unixsocket",
            path,
            "--save",
            "",
            "--appendonly",
            "no",
        ]
        process = subprocess.Popen(command, cwd=directory, stdout=subprocess.DEVNULL)
        try:
            while not Path(path).exists():
                time.sleep(0.05)
            yield f"unix://{path}", psutil.Process(process.pid)
        finally:
            process.kill()
            process.wait()


def claimed(store: JobStore, number: int) -> tuple[str, int]:
    """Submit and claim job *number*; return its ident and token."""
    done = submit(store, Submission(url=f"http://site-{number}.example/"), now=time.time())
    claim = Claims(store).reserve(["pending"], "pipeline:" + "0" * 32, _TTL)
    assert claim is not None
    return done.ident, claim.token


def facts(number: int, second: int) -> dict[str, str]:
    """Return what a crawl tells of itself once a second."""
    hosts = [
        {
            "host": f"www{n}.site-{number}.example",
            "in_flight": 2,
            "pages": second * 3,
            "waiting": 40,
            "delay_ms": 250,
        }
        for n in range(10)
    ]
    now = {
        "ts": time.time(),
        "state": "running",
        "rates": {"items": 10.0, "bytes": 3e5},
        "rev": {"history": 0},
    }
    return {"now": json.dumps(now), "hosts": json.dumps(hosts)}


def write(url: str, jobs: int, lines: int, ready: Any, stop: Any) -> None:
    """Be the crawls of *jobs* jobs that write *lines* log lines a second together, until *stop*."""
    store = connect(RedisSettings(url=url))
    links = []
    for number in range(jobs):
        ident, token = claimed(store, number)
        # A client of its own: in earnest each is a process of its own, too.
        own = connect(RedisSettings(url=url))
        link = CrawlLink(own, fetched_copy(own, ident, token=token), ttl=_TTL, on_reply=lambda _: None)
        link.start()
        links.append(link)
    ready.set()
    began, written = time.monotonic(), 0
    while not stop.is_set():
        due = int((time.monotonic() - began) * lines)
        for line in range(written, due):
            site = line % jobs
            links[site].inbox.download(
                f"http://site-{site}.example/articles/{line:09d}.html?from=list", 200, "OK"
            )
        written = due
        second = int(time.monotonic() - began)
        for number, link in enumerate(links):
            if second > getattr(link, "told_second", -1):
                link.told_second = second  # type: ignore[attr-defined]
                figures = {"items_downloaded": written // jobs, "r2xx": written // jobs}
                link.feed(Fed(figures, facts(number, second)))
        stop.wait(0.1)


def view(url: str, idents: list[str], stop: Any, told: Any) -> None:
    """Follow *idents* until *stop*; tell how many lines came, were skipped, and how old they were."""
    came = dropped = events = 0
    ages: list[float] = []
    with httpx.stream(
        "GET", f"{url}/api/v1/events?jobs={','.join(idents)}&replay=0", timeout=30
    ) as response:
        name = ""
        for line in response.iter_lines():
            field, _, value = line.partition(": ")
            if field == "event":
                name = value
                events += 1
            elif field == "data" and name == "log":
                said, now = json.loads(value), time.time()
                came += len(said["entries"])
                dropped += said["dropped"]
                ages += [now - entry["ts"] for entry in said["entries"]]
            if stop.is_set():
                break
    ages.sort()
    told.put(
        (
            came,
            dropped,
            events,
            ages[len(ages) // 2] if ages else 0.0,
            ages[-len(ages) // 100 or -1] if ages else 0.0,
        )
    )


class Watched:
    """What some processes take over a window."""

    def __init__(self, processes: dict[str, psutil.Process]) -> None:
        self._processes = processes
        self._began = time.monotonic()
        self._cpu = {name: self._used(process) for name, process in processes.items()}
        self._memory: dict[str, list[int]] = {name: [] for name in processes}

    def look(self) -> None:
        """Note the memory."""
        for name, process in self._processes.items():
            self._memory[name].append(process.memory_info().rss)

    def result(self) -> dict[str, dict[str, Any]]:
        """Return per cent of a core, and MiB: the most, and ten samples in their order."""
        wall = time.monotonic() - self._began
        return {
            name: {
                "cpu_percent": round(100 * (self._used(process) - self._cpu[name]) / wall, 1),
                "peak_mib": round(max(self._memory[name]) / 2**20, 1),
                "tenths_mib": [
                    round(m / 2**20) for m in self._memory[name][:: len(self._memory[name]) // 10]
                ],
            }
            for name, process in self._processes.items()
        }

    @staticmethod
    def _used(process: psutil.Process) -> float:
        times = process.cpu_times()
        return float(times.user + times.system)


@contextmanager
def dashboard(url: str) -> Iterator[tuple[str, psutil.Process]]:
    """Run the dashboard as users do."""
    command = [sys.executable, "-m", "amicrawl", "dashboard", "--port", "0", "--redis", url]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        found = None
        for line in process.stderr:
            found = re.search(r"The dashboard is at (\S+),", line)
            if found:
                break
        assert found is not None
        threading.Thread(target=process.stderr.read, daemon=True).start()
        try:
            yield found[1], psutil.Process(process.pid)
        finally:
            process.terminate()


def load(options: argparse.Namespace) -> dict[str, Any]:
    """Measure many jobs, one dashboard and its viewers."""
    context = multiprocessing.get_context("spawn")
    ready, stop, told = context.Event(), context.Event(), context.Queue()
    with redis_server() as (url, server):
        writer = context.Process(
            target=write, args=(url, options.jobs, options.lines, ready, stop), daemon=True
        )
        writer.start()
        ready.wait(120)
        store = connect(RedisSettings(url=url))
        idents = list(store.client.lrange("working", 0, options.followed - 1))
        with dashboard(url) as (address, served):
            viewers = [
                context.Process(target=view, args=(address, idents, stop, told), daemon=True)
                for _ in range(options.viewers)
            ]
            for viewer in viewers:
                viewer.start()
            time.sleep(options.warm_up)
            named = {"redis": server, "dashboard": served, "writer": psutil.Process(writer.pid)}
            named |= {f"viewer {n}": psutil.Process(each.pid) for n, each in enumerate(viewers)}
            window = _window(store, Watched(named), seconds=options.seconds)
            stop.set()
            seen = [told.get(timeout=60) for _ in viewers]
    return {"jobs": options.jobs, "followed": len(idents), **window, "viewers": [*map(_seen, seen)]}


def _window(store: JobStore, watched: Watched, *, seconds: int) -> dict[str, Any]:
    """Watch for *seconds*, and return what was written and used in that time."""
    first = _lines_written(store)
    samples = []
    for _ in range(seconds):
        time.sleep(1)
        watched.look()
        samples.append(int(store.client.info("memory")["used_memory"]))
    running = [str(ident) for ident in store.client.lrange("working", 0, -1)]
    return {
        "processes": watched.result(),
        "lines_per_second": round((_lines_written(store) - first) / seconds, 1),
        "redis_used_mib": [round(samples[0] / 2**20, 1), round(samples[-1] / 2**20, 1)],
        "entries_kept": sum([int(store.client.zcard(f"{ident}_log")) for ident in running]),
    }


def _lines_written(store: JobStore) -> int:
    return int(store.client.info("commandstats").get("cmdstat_zadd", {}).get("calls", 0))


def _seen(told: tuple[int, int, int, float, float]) -> dict[str, Any]:
    """Return what a viewer told, by name."""
    came, dropped, events, median, worst = told
    return {
        "lines": came,
        "skipped": dropped,
        "events": events,
        "age_median_s": round(median, 2),
        "age_99_s": round(worst, 2),
    }


def month(lines: int) -> dict[str, Any]:
    """Write *lines* lines of one job and sample the memory of Redis."""
    samples: list[tuple[int, float, int]] = []
    with redis_server() as (url, server):
        store = connect(RedisSettings(url=url))
        ident, token = claimed(store, 0)
        link = CrawlLink(
            store,
            fetched_copy(store, ident, token=token),
            ttl=timedelta(days=1),
            on_reply=lambda _: None,
        )
        began = time.monotonic()
        per_trim = _TRIMMED_EVERY * _LINES_A_SECOND
        written = next_sample = 0
        while written < lines:
            stamp = time.time()
            entries = [_ENTRY % (stamp + line / 1e6, written + line) for line in range(_BATCH)]
            # The link's own step, without its thread that waits a second between two.
            link._run(Fed({"r2xx": written}, facts(0, written)), {}, entries, renew=True)  # noqa: SLF001
            if per_trim <= _BATCH or written % per_trim < _BATCH:
                job_log.trim_log(store, ident)
            written += _BATCH
            if written >= next_sample:
                used = int(store.client.info("memory")["used_memory"])
                samples.append(
                    (written, round(used / 2**20, 2), int(store.client.zcard(f"{ident}_log")))
                )
                next_sample += max(lines // 20, _BATCH)
                print(samples[-1], file=sys.stderr, flush=True)
        took = time.monotonic() - began
        peak = server.memory_info().rss
    settled = [mib for at, mib, _ in samples if at > lines // 10]
    return {
        "lines": written,
        "seconds": round(took, 1),
        "samples": samples,
        "used_mib_after_a_tenth": {
            "least": min(settled),
            "most": max(settled),
            "mean": round(statistics.mean(settled), 2),
        },
        "redis_rss_mib": round(peak / 2**20, 1),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=100)
    parser.add_argument(
        "--lines", type=int, default=1000, help="log lines a second, of all jobs together"
    )
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--warm-up", type=int, default=10)
    parser.add_argument("--followed", type=int, default=50, help="jobs that each viewer follows")
    parser.add_argument("--viewers", type=int, default=1)
    parser.add_argument("--month", type=int, nargs="?", const=26_000_000, metavar="LINES")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    result = load(options) if options.month is None else month(options.month)
    text = json.dumps(result, indent=2)
    print(text)
    if options.json is not None:
        options.json.write_text(text + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
