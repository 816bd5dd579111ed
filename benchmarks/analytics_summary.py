"""What a summary costs, beside cdx-summary: `python -m benchmarks.analytics_summary`.

The same captures as CDX-11, CDXJ and a Parquet table are summarised in turns by a process each; the real
cdx-summary (`peers/cdx_summary`, in its own environment) reads the CDX, the only one of these that it
can. Its figures and ours in its mode have to be equal. Rates are captures per second of processor time,
of all threads; the time a process takes to start, on nothing in the same form, is measured by itself and
given beside.
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
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import run
from benchmarks.peer import peer_command
from benchmarks.report import machine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from benchmarks.measure import Cost

_TIMEOUT = 900.0
_MIMES = ["text/html"] * 11 + ["image/jpeg"] * 4 + ["application/pdf", "text/css", "warc/revisit"]
_STATUSES = ["200"] * 8 + ["301", "404"]
_DIGITS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
_BATCH = 50_000


def main() -> None:
    """Measure, and print the report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--captures", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(1) as pool:
        # By another process: a child begins with the peak of its parent, and would be told to have it.
        paths = pool.submit(write_inputs, Path(scratch), options.captures).result()
        report = _measured(Path(scratch), paths, options)
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


def captures(count: int, *, seed: int) -> Iterator[tuple[str, ...]]:
    """Yield the eleven columns of *count* captures of some thousand hosts, sorted by host."""
    source = random.Random(seed)
    hosts = sorted(f"gov,lab{number},www{number % 7}" for number in range(1, max(count // 50, 1) + 1))
    for index in range(count):
        host = hosts[index * len(hosts) // count]
        path = "/".join(
            f"{source.choice(('news', 'docs', 'img'))}{source.randrange(99)}" for _ in range(4)
        )
        query = f"?a={source.randrange(999)}&b={index}" if index % 3 == 0 else ""
        mime = source.choice(_MIMES)
        status = "-" if mime == "warc/revisit" else source.choice(_STATUSES)
        time = f"2013{source.randrange(1, 13):02d}{source.randrange(1, 29):02d}{index % 24:02d}0000"
        url = f"http://{'.'.join(reversed(host.split(',')))}/{path}{query}"
        digest = "".join(source.choices(_DIGITS, k=32))
        size, file = str(source.randrange(300, 30_000)), f"EOT-2013-{index % 97:05d}.warc.gz"
        yield f"{host})/{path}{query}", time, url, mime, status, digest, "-", "-", size, str(index), file


def write_inputs(directory: Path, count: int) -> dict[str, Path]:
    """Write the same captures in three forms to *directory*."""
    paths = {kind: directory / f"index.{kind}" for kind in ("cdx", "cdxj", "parquet")}
    rows: list[tuple[str, ...]] = []
    writer = None
    with paths["cdx"].open("w") as cdx, paths["cdxj"].open("w") as cdxj:
        cdx.write(" CDX N b a m s k r M S V g\n")
        for row in captures(count, seed=5):
            cdx.write(" ".join(row) + "\n")
            cdxj.write(_cdxj(row))
            rows.append(row)
            if len(rows) == _BATCH:
                writer = _written(rows, paths["parquet"], writer)
                rows = []
    writer = _written(rows, paths["parquet"], writer) if rows or writer is None else writer
    writer.close()
    return paths


def _cdxj(row: tuple[str, ...]) -> str:
    key, time, url, mime, status, digest, _, _, size, offset, file = row
    fields = {"url": url, "mime": mime, "status": status, "digest": digest, "length": size}
    if status == "-":
        del fields["status"]
    return f"{key} {time} {json.dumps(fields | {'offset': offset, 'filename': file})}\n"


def _written(
    rows: list[tuple[str, ...]], path: Path, writer: pq.ParquetWriter | None
) -> pq.ParquetWriter:
    times = [datetime.strptime(row[1], "%Y%m%d%H%M%S").replace(tzinfo=UTC) for row in rows]
    table = pa.table(
        {
            "url_surtkey": [row[0] for row in rows],
            "url": [row[2] for row in rows],
            "fetch_time": pa.array(times, pa.timestamp("ms")),
            "fetch_status": pa.array([-1 if row[4] == "-" else int(row[4]) for row in rows], pa.int16()),
            "content_digest": [row[5] for row in rows],
            "content_mime_type": [row[3] for row in rows],
            "warc_record_length": pa.array([int(row[8]) for row in rows], pa.int64()),
        }
    )
    writer = writer or pq.ParquetWriter(path, table.schema, compression="zstd")
    writer.write_table(table)
    return writer


def _measured(scratch: Path, paths: dict[str, Path], options: argparse.Namespace) -> dict[str, Any]:
    ours = [sys.executable, "-m", "amicrawl", "summary", "--json"]
    same = ["--compat", "cdx-summary"]
    nothing = {kind: path.with_stem("empty") for kind, path in paths.items()}
    nothing["cdx"].touch()
    pq.write_table(pq.read_schema(paths["parquet"]).empty_table(), nothing["parquet"])
    commands = {
        "amicrawl, CDX": [*ours, str(paths["cdx"])],
        "amicrawl as cdx-summary, CDX": [*ours, *same, str(paths["cdx"])],
        "amicrawl, CDXJ": [*ours, str(paths["cdxj"])],
        "amicrawl, Parquet": [*ours, str(paths["parquet"])],
        "cdx-summary, CDX": [peer_command("cdx_summary", "cdxsummary"), "-j", str(paths["cdx"])],
    }
    starts = {
        "amicrawl": [*ours, str(nothing["cdx"])],
        "amicrawl, Parquet": [*ours, str(nothing["parquet"])],
        "cdx-summary": [peer_command("cdx_summary", "cdxsummary"), "-j", str(nothing["cdx"])],
    }
    start_of = dict.fromkeys(commands, "amicrawl")
    start_of |= {"amicrawl, Parquet": "amicrawl, Parquet", "cdx-summary, CDX": "cdx-summary"}
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    begun_in: dict[str, list[Cost]] = {name: [] for name in starts}
    for _ in range(options.rounds):
        for measured, told in ((commands, costs), (starts, begun_in)):
            for name, command in measured.items():
                told[name].append(_run(command, scratch))
    begun = {name: statistics.median(cost.cpu_s for cost in begun_in[name]) for name in starts}
    return {
        "machine": machine(),
        "captures": options.captures,
        "bytes": {kind: path.stat().st_size for kind, path in paths.items()},
        "start_cpu_s": {name: round(seconds, 2) for name, seconds in begun.items()},
        "commands": {
            name: _figures(options.captures, costs[name], begun[start_of[name]]) for name in commands
        },
        "same_figures": _figures_of(commands["amicrawl as cdx-summary, CDX"], scratch)
        == _figures_of(commands["cdx-summary, CDX"], scratch),
    }


def _figures(captures: int, costs: Sequence[Cost], start: float) -> dict[str, float]:
    spent = statistics.median(cost.cpu_s for cost in costs)
    return {
        "cpu_s": round(spent, 2),
        "wall_s": round(statistics.median(cost.wall_s for cost in costs), 2),
        "captures_per_cpu_s": round(captures / spent),
        "captures_per_cpu_s_less_start": round(captures / max(spent - start, 0.01)),
        "peak_rss_mib": round(max(cost.peak_rss_bytes for cost in costs) / 1024**2),
    }


def _figures_of(command: Sequence[str], scratch: Path) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, cwd=scratch, check=True, timeout=_TIMEOUT)
    figures: dict[str, Any] = json.loads(done.stdout)
    # Samples are drawn: by a die there, by a hash here.
    return {name: value for name, value in figures.items() if name != "samples"}


def _run(command: Sequence[str], scratch: Path) -> Cost:
    cost = run(command, cwd=scratch, env=dict(os.environ), log=scratch / "log", timeout=_TIMEOUT)
    if cost.exit_code:
        raise SystemExit(f"{command[0]} failed:\n{(scratch / 'log').read_text()[-2000:]}")
    return cost


if __name__ == "__main__":
    main()
