"""Commands run in children with little memory and time: 2 GiB of addresses, seconds of a processor.

One process loads what commands need, once, and forks for each of them; so a run takes what the command
takes and not what Python takes to start.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ADDRESSES = 2 << 30
"""Bytes that a child may map."""
SECONDS = 20
"""Of a processor, that a child may use; one that waits is given fifteen times as long."""
MEMORY = 640 << 20
"""Bytes that a child may have had in memory."""

_BY_PACKAGE = {
    "amicrawl": "cli crawlfile discovery.css discovery.kinds",
    "amicrawl.archive.index": "derivatives.links derivatives.wat_wet lookup.source wacz.package",
    "amicrawl.archive.report": "parquet reading",
    "amicrawl.archive.table": "query read_only_sql",
    "amicrawl.cli": (
        "archive_files cdx check collection crawl crawl_facts derivatives frontier index inspect job"
        " query summary table wacz"
    ),
    "amicrawl.crawl": "addon run seedlist",
    "amicrawl.meguri": "dump format.manifest format.operations format.verification",
    "lxml": "etree",
    "pyarrow": "compute parquet",
    "scrapy": "cmdline crawler",
    "scrapy.core": "engine",
}
_LOADED = (
    *(f"{package}.{name}" for package, names in _BY_PACKAGE.items() for name in names.split()),
    *("duckdb", "pydantic.type_adapter", "tomllib", "zstandard"),
)
"""What commands import, but for `merge`: Arrow takes a GiB of addresses while that is imported."""


class Ended(NamedTuple):
    """How a child ended."""

    code: int
    """Its exit code; negative for a signal."""
    memory: int
    """Bytes that it had in memory at most."""
    seconds: float
    """Of a processor."""
    output: str
    errors: str

    def is_orderly(self, memory: int = MEMORY) -> bool:
        """Whether it ended by itself, within *memory* bytes, and without a traceback."""
        return self.code >= 0 and self.memory < memory and "Traceback" not in self.errors


class Confinement:
    """Runs commands, one after the other. A context manager."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, arguments: Sequence[str | Path], *, where: Path, program: str = "amicrawl") -> Ended:
        """Run *program* (amicrawl, scrapy, or `module:function` to call) with *arguments* in *where*."""
        requested = {
            "program": program,
            "arguments": [str(each) for each in arguments],
            "where": str(where),
        }
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(requested) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._process.communicate()


def _program(name: str) -> Callable[[], object]:
    if name == "amicrawl":
        return import_module("amicrawl.cli").main  # type: ignore[no-any-return]
    if name == "scrapy":
        os.environ["SCRAPY_SETTINGS_MODULE"] = "amicrawl.settings"
        return import_module("scrapy.cmdline").execute  # type: ignore[no-any-return]
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)  # type: ignore[no-any-return]


def _be(requested: dict[str, object], out: Path, err: Path) -> None:
    """Be the child; does not return."""
    os.setsid()
    for path, descriptor in ((Path(os.devnull), 0), (out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), descriptor)
    os.chdir(str(requested["where"]))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESSES, ADDRESSES))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS + 1))
    faulthandler.enable(2)
    sys.argv = [str(requested["program"]), *requested["arguments"]]  # type: ignore[misc]
    sys.stdin = open(0)  # noqa: SIM115
    code = 0
    try:
        code = int(_program(str(requested["program"]))() or 0)  # type: ignore[call-overload]
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:  # noqa: BLE001
        import_module("traceback").print_exc()
        code = 70
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _wait(child: int) -> tuple[int, resource.struct_rusage]:
    timer = threading.Timer(SECONDS * 15, os.killpg, (child, signal.SIGKILL))
    timer.start()
    try:
        _, status, used = os.wait4(child, 0)
    finally:
        timer.cancel()
    return os.waitstatus_to_exitcode(status), used


def main() -> None:
    """Read what to run, a JSON object a line; write how each ended."""
    for name in _LOADED:
        import_module(name)
    assert "twisted.internet.reactor" not in sys.modules, "each child installs its own"
    # A child whose collector looks through what is shared would copy all of it.
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        requested = json.loads(line)
        out, err = (Path(requested["where"]) / f".{name}" for name in ("stdout", "stderr"))
        child = os.fork()
        if not child:
            _be(requested, out, err)
        code, used = _wait(child)
        texts = [path.read_bytes()[-100_000:].decode("utf-8", "replace") for path in (out, err)]
        ended = Ended(code, used.ru_maxrss * 1024, used.ru_utime + used.ru_stime, *texts)
        print(json.dumps(ended), flush=True)


if __name__ == "__main__":
    main()
