"""Runs readers in forked children, each with little memory and time: an abort ends a child, not a test.

`Forked` starts one process that has imported the readers and no threads; it forks a child for each case.
As a program, it is that process: a name comes in on standard input for each file, a line goes out.
"""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import traceback
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
MEMORY, SECONDS, WAITED = 4 << 30, 20, 60
"""Bytes of addresses, seconds of a processor, and seconds in all that a case may take."""
RESIDENT = 1 << 30
"""Bytes that a case may have in memory."""


class Reader(NamedTuple):
    """What reads a case."""

    file: str
    """What the case is called; several readers go by the end of a name."""
    read: Callable[[Path], object]


def parquet(path: Path) -> None:
    """Read all columns of the table at *path* as readers of strangers' tables do."""
    faults = contextlib.suppress(pa.ArrowException, OSError, UnicodeDecodeError)
    with faults, ParquetTable(path, path.name) as table:
        table.check()
        columns = [field.name for field in table.schema]
        for batch in table.batches(columns, rows=100, nested=True):
            batch.validate()


def captures(path: Path) -> None:
    """Read the table at *path* as the index of a crawl, for a resume and for its report."""
    with opened_index(path) as table, blamed_on(path):
        for _ in table.batches([each for each in ("url", "status") if each in table.schema.names]):
            pass


def seeds(path: Path) -> None:
    """Read the list at *path*, whatever its format is."""
    with open_seed(str(path), on_fault=lambda _: None) as reader:
        for seed in reader:
            assert "\n" not in seed.url
            assert "\0" not in seed.url


def robots(path: Path) -> None:
    """Read a robots.txt, and apply it."""
    rules = parse_robots(path.read_bytes(), agent="amicrawl")
    for target in ("/", "/a/b?c=d", "/robots.txt", "/%61"):
        assert rules.allows(target) in (True, False)


def reconstructed(path: Path) -> None:
    """Write down the response of another download handler, whose body says that it is compressed."""
    for coding in ("br", "gzip", "deflate", "zstd"):
        response = Response("http://a.example/", headers={"Content-Encoding": coding})
        response = response.replace(body=path.read_bytes())
        request = Request("http://a.example/")
        reconstruct(request, response, by="x.Handler", now=datetime.now(UTC), max_size=1 << 20)


def commands(*lines: str) -> Callable[[Path], None]:
    """Return what runs commands on a file, `{}`: each ends with a code that is documented."""

    def run(path: Path) -> None:
        for line in lines:
            words = [word.replace("+", " ").replace("{}", path.name) for word in line.split(" ")]
            sys.argv = ["amicrawl", *words]
            code: object = 0
            try:
                cli.main()
            except SystemExit as end:
                code = end.code or 0
            assert code in CODES, f"{line}: code {code}: {_last_words()}"

    return run


def _raise(_: Path) -> None:
    raise RuntimeError("x")


def _last_words() -> str:
    sys.stderr.flush()
    return Path("stderr").read_text("utf-8", "replace").strip()[-300:]


READERS = {
    # What the process that runs them has to survive and report.
    "abort": Reader("case", lambda _: os.abort()),
    "traceback": Reader("case", _raise),
    "memory": Reader("case", lambda _: b"x" * (RESIDENT + (64 << 20))),
    "parquet": Reader("case.parquet", parquet),
    "captures": Reader("captures.parquet", captures),
    "capture summary": Reader(
        "captures.parquet", commands("summary {}", "inspect {}", "report . -o r.html", "summary .")
    ),
    "table": Reader("table.parquet", commands("summary {}", "summary --quick {}")),
    "duckdb": Reader(
        "captures.parquet",
        commands("query {} --sql SELECT+*+FROM+captures", "query {} captures_failures"),
    ),
    "seeds": Reader("list", seeds),
    "sitemap": Reader("list.xml", seeds),
    "robots": Reader("robots.txt", robots),
    "reconstructed": Reader("body", reconstructed),
    "crawl file": Reader("crawl.toml", commands("check {}")),
    "arc": Reader("case.arc", commands("inspect {}", "index {} -j 1 -o i", "wat {} -j 1 -o w")),
    "wacz": Reader("case.warc.gz", commands("inspect {}", "wacz {} -o out.wacz")),
}


class Forked:
    """Runs cases."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'tests'}"}
        self._directory = Path(tempfile.mkdtemp(prefix="amicrawl-fuzz-"))
        self._process = subprocess.Popen(
            [sys.executable, "-m", "fuzz.forked", str(self._directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, reader: str, octets: bytes) -> None:
        """Have *reader* read *octets*. Raises AssertionError unless it does, or refuses."""
        (self._directory / READERS[reader].file).write_bytes(octets)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{reader}\n")
        self._process.stdin.flush()
        ended = self._process.stdout.readline().strip()
        assert ended in ("read", "refused"), f"{reader}: {ended}"


@cache
def forked() -> Forked:
    """Return the process that all cases of this process share."""
    return Forked()


def _child(reader: Reader) -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    signal.alarm(WAITED)
    said = os.dup(1)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
    try:
        reader.read(Path(reader.file))
    except AmicrawlError:
        os._exit(101)
    except BaseException as error:  # noqa: BLE001  # named for the test, and the child ends
        at = traceback.extract_tb(error.__traceback__)[-1]
        words = f"{type(error).__name__}: {error} ({at.name}, line {at.lineno})"
        os.write(said, words.replace("\n", " ")[-900:].encode())
        os._exit(102)
    os._exit(100)


def _run(reader: Reader) -> str:
    """Fork a child that runs *reader*; return how it ended."""
    child = os.fork()
    if not child:
        _child(reader)
    _, status, used = os.wait4(child, 0)
    code = os.waitstatus_to_exitcode(status)
    if used.ru_maxrss * 1024 > RESIDENT:
        return f" took {used.ru_maxrss >> 10} MiB"
    return {100: "read", 101: "refused"}.get(code, f" ended with {code}")


def _names() -> Iterator[str]:
    for line in sys.stdin:
        yield line.strip()


def main() -> None:
    """Fork a child for each line of standard input, in a directory that has nothing but its case."""
    os.chdir(sys.argv[1])
    for name in _names():
        reader = READERS[name]
        ended = _run(reader)
        for path in Path().iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        print(ended, flush=True)


if __name__ == "__main__":
    from datetime import UTC, datetime

    import duckdb  # noqa: F401  # loaded once
    import pyarrow as pa
    import pyarrow.compute
    import pyarrow.parquet  # loaded once
    from scrapy import Request
    from scrapy.http import Response

    from amicrawl import cli
    from amicrawl.crawl.reconstruct import reconstruct
    from amicrawl.errors import AmicrawlError, ExitCode
    from amicrawl.parquet import ParquetTable
    from amicrawl.politeness.robots import parse_robots
    from amicrawl.record import opened_index
    from amicrawl.record.table import blamed_on
    from amicrawl.seed import open_seed

    CODES = frozenset(int(code) for code in ExitCode) - {ExitCode.OUR_ERROR, ExitCode.STOPPED}
    pa.set_cpu_count(1)
    main()
