"""Runs readers in forked children, each with little memory and time: an abort ends a child, not a test.

`Forked` starts one process that has imported the readers and no threads; it forks a child for each case.
As a program, it is that process: a path and a name come in on standard input, a line goes out.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEMORY, SECONDS = 2 << 30, 20


def parquet(path: Path) -> None:
    """Read all columns of the table at *path* as readers of strangers' tables do."""
    with ParquetTable(path, path.name) as table:
        table.check()
        columns = [field.name for field in table.schema]
        for batch in table.batches(columns, rows=100, nested=True):
            batch.validate()


def captures(path: Path) -> None:
    """Read the table at *path* as the index of a crawl."""
    with opened_index(path) as table:
        for _ in table.batches([each for each in ("url", "status") if each in table.schema.names]):
            pass


class Forked:
    """Runs cases."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        command = [sys.executable, "-m", "fuzz.forked"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._file = Path(tempfile.mkdtemp(prefix="amicrawl-fuzz-")) / "case"

    def run(self, reader: str, octets: bytes) -> None:
        """Have *reader* read *octets*. Raises AssertionError unless it does, or refuses."""
        self._file.write_bytes(octets)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{reader} {self._file}\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline().strip()
        assert ended in ("read", "refused"), f"{reader}: {ended}"


@cache
def forked() -> Forked:
    """Return the process that all cases of this process share."""
    return Forked()


def _child(reader: str, path: Path) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    try:
        {"parquet": parquet, "captures": captures}[reader](path)
    except (AmicrawlError, pa.ArrowException, OSError, UnicodeDecodeError):
        os._exit(1)
    except BaseException as error:  # noqa: BLE001  # named for the test, and the child ends
        os.write(1, f"{type(error).__name__}: {error}".replace("\n", " ")[:300].encode())
        os._exit(2)
    os._exit(0)


def main() -> None:
    """Fork a child for each line of standard input."""
    for line in sys.stdin:
        reader, path = line.split()
        child = os.fork()
        if not child:
            _child(reader, Path(path))
        _, status = os.waitpid(child, 0)
        code = os.waitstatus_to_exitcode(status)
        said = {0: "read", 1: "refused"}.get(code, f" ended with {code}")
        print(said, flush=True)


if __name__ == "__main__":
    import pyarrow as pa

    from amicrawl.errors import AmicrawlError
    from amicrawl.parquet import ParquetTable
    from amicrawl.record import opened_index

    pa.set_cpu_count(1)
    main()
