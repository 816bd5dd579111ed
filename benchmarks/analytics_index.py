"""How many records a second `amicrawl index` indexes, beside cdxj-indexer.

    python -m benchmarks.analytics_index [--pages 8000] [--files 3] [--rounds 3] [--memory [RECORDS...]]

Files of HTML responses of 2 to 30 kB, each with its request, packed with gzip, a member a record. Both
sort, and what they write is compared to the byte. The unit is processor time, user and system, of the
whole command, start included, and of the command less what it takes to index a file of one page. Medians
of the rounds, in which the two take turns, go to standard output as JSON.

Besides: what two processes cost more than one, and with `--memory` the most memory that indexing takes
of files with ten thousand to a million records, or with as many as are named: of ten million, with pages
of some 300 bytes, a file is 4 GB, its index 2 GB, and all takes five minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amicrawl.archive.lines.record_lines import cdxj_lines
from amicrawl.reading.records import Broken, read_records
from amicrawl.record.warc import GZIP_WINDOW
from benchmarks.measure import run
from benchmarks.peer import peer_command
from benchmarks.report import machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from amicrawl.reading.records import Record
    from benchmarks.measure import Cost

_WORDS = 2000
_LENGTHS = (300, 4500)
"""Words of a page: the least and the most."""
_SHORT = (30, 60)
_MANY_RECORDS = (10_000, 100_000, 1_000_000)
# From a process that is small itself: what a child takes at most is counted from the fork on.
_LAUNCHER = (
    "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
    "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
)
_TIMEOUT = 900.0
_LONG_TIMEOUT = 3600.0


def write_warc(
    path: Path, *, pages: int, seed: int, lengths: tuple[int, int] = _LENGTHS
) -> tuple[int, int]:
    """Write *pages* exchanges to *path* and return the bytes of all records, and of the file.

    A page has a number of words between *lengths*.
    """
    source = random.Random(seed)
    words = ["".join(source.choices("etaoinshrdlucmfw", k=source.randint(2, 9))) for _ in range(_WORDS)]
    weights = [1 / rank for rank in range(1, _WORDS + 1)]
    plain = 0
    with path.open("wb") as file:
        for number in range(pages):
            host = f"www.host{number % 500}.example.org"
            url = f"https://{host}/{source.choice(words)}/{number}.html?b={number}&a=1"
            body = "<p>" + " ".join(source.choices(words, weights, k=source.randint(*lengths)))
            result = (
                "HTTP/1.1 200 OK\r\nDate: Wed, 24 Apr 2024 10:00:00 GMT\r\nServer: benchmark\r\n"
                f"Content-Type: text/html; charset=utf-8\r\nContent-Length: {len(body)}\r\n\r\n{body}"
            )
            requested = f"GET /{number} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: benchmark\r\n\r\n"
            digest = "WARC-Payload-Digest: sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK\r\n"
            for kind, block, more in (("response", result, digest), ("request", requested, "")):
                record = (
                    f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\n"
                    f"WARC-Date: 2024-04-24T10:00:00Z\r\nWARC-IP-Address: 192.0.2.1\r\n{more}"
                    f"WARC-Record-ID: <urn:uuid:{source.getrandbits(128):032x}>\r\n"
                    f"Content-Type: application/http; msgtype={kind}\r\n"
                    f"Content-Length: {len(block)}\r\n\r\n"
                    f"{block}\r\n\r\n"
                ).encode()
                packer = zlib.compressobj(6, zlib.DEFLATED, GZIP_WINDOW)
                file.write(packer.compress(record) + packer.flush())
                plain += len(record)
    return plain, path.stat().st_size


def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pages", type=int, default=8000, help="pages of each file")
    parser.add_argument("--files", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--memory", type=int, nargs="*", metavar="RECORDS", help="also measure memory")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        report = _measured(Path(scratch), options)
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


def _measured(scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    files = [scratch / f"pages-{number}.warc.gz" for number in range(options.files)]
    sizes = [write_warc(file, pages=options.pages, seed=number) for number, file in enumerate(files)]
    records = 2 * options.pages * options.files
    commands = {"amicrawl": _ours, "cdxj-indexer": _theirs}
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    starts: dict[str, list[Cost]] = {name: [] for name in commands}
    write_warc(scratch / "one.warc.gz", pages=1, seed=0)
    indexed: list[float] = []
    by_processes: dict[int, list[float]] = {1: [], 2: []}
    for _ in range(options.rounds):
        for name, command in commands.items():
            costs[name].append(_run(command(files, scratch / name), scratch))
            starts[name].append(_run(command([scratch / "one.warc.gz"], scratch / "one"), scratch))
        if (scratch / "amicrawl").read_bytes() != (scratch / "cdxj-indexer").read_bytes():
            raise SystemExit("the two indexes differ")
        indexed.append(_rate(files[0]))
        for processes, spent in by_processes.items():
            ours = _ours(files, scratch / "amicrawl", processes=processes)
            spent.append(_run(ours, scratch).cpu_s)
    found = {name: _figures(records, costs[name], starts[name]) for name in commands}
    rates = ("records_per_cpu_s", "records_per_cpu_s_less_start")
    report: dict[str, Any] = {
        "machine": machine(),
        "records": records,
        "bytes": {"plain": sum(size[0] for size in sizes), "packed": sum(size[1] for size in sizes)},
        "commands": found,
        "ratio": {
            rate: round(found["amicrawl"][rate] / found["cdxj-indexer"][rate], 2) for rate in rates
        },
        "in_process_records_per_cpu_s": round(statistics.median(indexed)),
        "cpu_s_by_processes": {
            processes: round(statistics.median(spent), 2) for processes, spent in by_processes.items()
        },
        "same_bytes": True,
    }
    if options.memory is not None:
        report["peak_rss_mib_by_records"] = memory(scratch, options.memory)
    return report


def memory(scratch: Path, many_records: Sequence[int]) -> dict[int, int]:
    """Return the MiB that indexing takes at most, of files with so many records, in thousands."""
    taken = {}
    write_warc(scratch / "few.warc.gz", pages=500, seed=0, lengths=_SHORT)
    thousand = (scratch / "few.warc.gz").read_bytes()
    for records in many_records or _MANY_RECORDS:
        many = scratch / "many.warc.gz"
        with many.open("wb") as file:
            for _ in range(records // 1000):
                file.write(thousand)
        command = [sys.executable, "-S", "-c", _LAUNCHER, *_ours([many], scratch / "index")]
        done = subprocess.run(command, check=True, capture_output=True, timeout=_LONG_TIMEOUT)
        taken[records] = round(int(done.stdout) / 1024)
        many.unlink()
    return taken


def _ours(files: Sequence[Path], out: Path, *, processes: int = 1) -> list[str]:
    jobs = ["--jobs", str(processes), "--merge", str(out)]
    return [sys.executable, "-m", "amicrawl", "index", *jobs, *map(str, files)]


def _theirs(files: Sequence[Path], out: Path) -> list[str]:
    return [peer_command("cdxj_indexer", "cdxj-indexer"), "-s", "-o", str(out), *map(str, files)]


def _figures(records: int, costs: Sequence[Cost], starts: Sequence[Cost]) -> dict[str, float]:
    spent = statistics.median(cost.cpu_s for cost in costs)
    start = statistics.median(cost.cpu_s for cost in starts)
    return {
        "cpu_s": round(spent, 2),
        "start_cpu_s": round(start, 2),
        "records_per_cpu_s": round(records / spent),
        "records_per_cpu_s_less_start": round(records / (spent - start)),
        "peak_rss_mib": round(max(cost.peak_rss_bytes for cost in costs) / 1024**2),
    }


def _run(command: Sequence[str], scratch: Path) -> Cost:
    cost = run(command, cwd=scratch, env=dict(os.environ), log=scratch / "log", timeout=_TIMEOUT)
    if cost.exit_code:
        raise SystemExit(f"{command[0]} failed:\n{(scratch / 'log').read_text()}")
    return cost


def _rate(path: Path) -> float:
    """Return the records a second of processor time that this process indexes."""
    began = time.process_time()
    count = 0

    def counted() -> Iterator[Record]:
        nonlocal count
        for record in read_records(path, on_broken=_unexpected):
            count += 1
            yield record

    sorted(line.encoded() for record in counted() for line in cdxj_lines(record, filename=path.name))
    return count / (time.process_time() - began)


def _unexpected(broken: Broken) -> None:
    raise SystemExit(str(broken))


if __name__ == "__main__":
    main()
