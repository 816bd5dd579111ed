"""A crawl as a child process whose memory is watched, and what must be true of its archive and log."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import warm_processes
from archive_reading import check_by_fastwarc, read_block, records, rows, run_clean
from loopback import PROJECT, environment

if TYPE_CHECKING:
    from collections.abc import Sequence

MIB = 1024**2

# A line feed ends a line, and everything else below the space, DEL, the C1 controls and the marks that
# turn text around have no business in a log.
_RAW_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


_WARCIO_WITHOUT_BROTLI = "import sys; sys.modules['brotli'] = None; from warcio.cli import main; main()"


@dataclass(frozen=True)
class Ended:
    """How a child process ended."""

    code: int
    said: str
    """What it wrote to standard output and error."""
    peak: int
    """Bytes of memory that it had resident at the most."""
    seconds: float


def run_watched(line: Sequence[str], *, log: Path, within: float) -> Ended:
    """Run *line* to its end, which must come *within* seconds; what it says goes to the file *log*."""
    began = time.monotonic()
    with log.open("wb") as said:
        child = warm_processes.Popen(
            line, cwd=PROJECT, env=environment(), stdout=said, stderr=subprocess.STDOUT
        )
        try:
            peak = _watch(child, until=began + within)
        finally:
            if child.poll() is None:
                child.kill()
                child.wait()
    return Ended(child.returncode, log.read_text(), peak, time.monotonic() - began)


def _watch(child: subprocess.Popen[bytes], *, until: float) -> int:
    """Wait for *child* and return its peak of resident memory.

    Not by `getrusage`: the kernel counts the memory of the parent, before the child became another
    program, as the child's.
    """
    peak = 0
    status = Path(f"/proc/{child.pid}/status")
    while child.poll() is None and time.monotonic() < until:
        found = re.search(r"VmHWM:\s+([0-9]+) kB", status.read_text())
        peak = int(found[1]) * 1024 if found else peak
        time.sleep(0.02)
    return peak


def check_sealed(path: Path) -> None:
    """Fail unless three independent readers find *path* whole.

    As `archive_reading.check_sealed` does, but for a fault of one of them: warcio 1.8.1 breaks off at
    any response that names brotli where brotli 1.2 is installed, so it is kept from finding that.
    """
    run_clean("gzip", "-t", str(path))
    run_clean(sys.executable, "-c", _WARCIO_WITHOUT_BROTLI, "check", str(path))
    check_by_fastwarc(path)


def check_archive(directory: Path) -> None:
    """Fail unless all files are sealed and sound, and rows and records agree to the last one."""
    files = sorted(directory.glob("*.warc.gz"))
    assert files
    assert not list(directory.glob("*.open"))
    for path in files:
        check_sealed(path)
    found = rows(directory)
    kinds: dict[str, int] = {}
    ids = []
    for item in records(directory):
        kinds[item.rec_type] = kinds.get(item.rec_type, 0) + 1
        if item.rec_type in ("response", "revisit"):
            ids.append(item.rec_headers.get_header("WARC-Record-ID"))
        read_block(item)
    stored = [row["record_id"] for row in found if row["warc_file"]]
    assert sorted(ids) == sorted(stored)
    responses = len(stored)
    assert kinds.pop("revisit", 0) + kinds.pop("response", 0) == responses
    assert kinds == {"warcinfo": len(files), "request": responses}


def raw_controls(said: str) -> list[str]:
    """Return the lines in *said* with a character that a terminal or a reader of logs would obey."""
    return [line for line in said.split("\n") if _RAW_CONTROL.search(line)]
