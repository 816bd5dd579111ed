"""What a report on a crawl of many rows costs: `python -m benchmarks.crawl_report`.

    python -m benchmarks.crawl_report [--rows 10000000] [--hosts 20000]

Two indexes of made-up rows are written, of which one URL in ten is in one of them only; `amicrawl
report` is run on the later one, alone and with `--compare`. Printed are processor time, wall time and
peak memory.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from amicrawl.record import CAPTURES
from benchmarks.measure import run
from benchmarks.report import machine

_BATCH = 250_000
_BEGIN_MS = 1_790_000_000_000
_TYPES = ("text/html; charset=utf-8", "image/jpeg", "text/css", "application/pdf")
_ERRORS = ("", "connection-refused: Connection refused", "robots-denied: robots.txt disallows it")


def main() -> None:
    """Measure, and print what it took."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--hosts", type=int, default=20_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, ProcessPoolExecutor(1) as pool:
        place = Path(scratch)
        # By another process: a child begins with the peak of its parent, and would be told to have it.
        for name, first in (("older", 0), ("later", given.rows // 10)):
            pool.submit(write_crawl, place / name, first, given.rows, given.hosts).result()
        found = {"rows": given.rows, "hosts": given.hosts, "machine": machine()}
        found["alone"] = _measured(place)
        found["compared"] = _measured(place, "--compare", "older")
    json.dump(found, sys.stdout, indent=1)
    sys.stdout.write("\n")


def _measured(place: Path, *options: str) -> dict[str, Any]:
    line = [sys.executable, "-m", "amicrawl", "report", "later", "-o", "report.html", *options]
    cost = run(line, cwd=place, env=dict(os.environ), log=place / "log", timeout=3600)
    if cost.exit_code:
        sys.exit(f"the report was not written: {(place / 'log').read_text()[-2000:]}")
    return {
        "cpu_s": round(cost.cpu_s, 1),
        "wall_s": round(cost.wall_s, 1),
        "peak_mib": round(cost.peak_rss_bytes / 2**20),
        "page_kib": round((place / "report.html").stat().st_size / 1024),
    }


def write_crawl(directory: Path, first: int, rows: int, hosts: int) -> None:
    """Write the index of a crawl of *rows* pages, numbered from *first* on, on so many *hosts*."""
    directory.mkdir()
    with pq.ParquetWriter(directory / "captures.parquet", CAPTURES, compression="zstd") as writer:
        for begin in range(first, first + rows, _BATCH):
            end = min(begin + _BATCH, first + rows)
            writer.write_table(_table(np.arange(begin, end), hosts))
    (directory / "crawl.json").write_text(json.dumps({"format": 1, "files": [], "state": "finished"}))


def _table(numbers: np.ndarray[Any, Any], hosts: int) -> pa.Table:
    failed = np.where(numbers % 41 == 0, 1 + numbers % 2, 0)
    text = pa.array(numbers).cast(pa.string())
    host = pc.binary_join_element_wise(
        "host", pa.array(numbers % hosts).cast(pa.string()), "example", "."
    )
    part = pa.array(numbers % 97).cast(pa.string())
    url = pc.binary_join_element_wise("http:/", host, "part", part, "page", text, "/")
    made = {
        "url": url,
        "host": host,
        "status": np.where(failed > 0, 0, np.where(numbers % 13 == 0, 404, 200)),
        "fetched_at": _BEGIN_MS + numbers * 50,
        "body_length": np.where(failed > 0, 0, numbers * 7919 % 90_000),
        "content_type": pa.array(_TYPES).take(pa.array(numbers % len(_TYPES))),
        "digest": text,
        "error": pa.array(_ERRORS).take(pa.array(failed, pa.int64())),
    }
    empty = {"string": "", "int32": 0, "int64": 0, "bool": False}
    columns = [
        pa.array(made[field.name]).cast(field.type)
        if field.name in made
        else pa.repeat(pa.scalar(empty[str(field.type)], field.type), len(numbers))
        for field in CAPTURES
    ]
    return pa.Table.from_arrays(columns, schema=CAPTURES)


if __name__ == "__main__":
    main()
