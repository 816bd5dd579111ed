"""`amicrawl replay`: the pages of a crawl as visitors saw them, in a browser, by pywb."""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import amicrawl
from amicrawl.cli.options import CrawlDirectory, Port, check_directory
from amicrawl.errors import InputError, UsageError
from amicrawl.listing import process_directories, read_crawl_json
from amicrawl.terminal import counted

if TYPE_CHECKING:
    from collections.abc import Callable

PORT = 8652
_PROGRAM = "wayback"
Tool = Annotated[
    Path | None, typer.Option(help="The program `wayback` of pywb, if it is not on the path.")
]
AsProxy = Annotated[
    bool,
    typer.Option(
        "--proxy", help="Be a proxy for a browser: pages are shown as they are, without rewriting."
    ),
]


def replay(
    directory: CrawlDirectory, port: Port = PORT, wayback: Tool = None, *, proxy: AsProxy = False
) -> None:
    """Show the pages of the crawl in DIRECTORY as visitors saw them, in a browser; needs pywb.

    Makes an index of the archive in a temporary directory, and serves it on this machine until Ctrl-C.
    Example: amicrawl replay ami-out
    """
    check_directory(directory)
    program = _program(wayback, directory)
    # Those of the processes are there until their crawl has ended.
    places = [directory, *process_directories(directory)]
    endings = ("*.warc.gz", "*.warc.gz.open")
    files = [file for place in places for each in endings for file in sorted(place.glob(each))]
    if not files:
        raise InputError(f"{directory} has no WARC files. Give the output directory of a crawl.")
    # pywb would go on without the command, and the directory stay.
    _on_ending_signals(_interrupt, signal.SIGTERM, signal.SIGHUP)
    with tempfile.TemporaryDirectory(
        prefix="amicrawl-replay-",
        ignore_cleanup_errors=True,  # the browser may still write to it
    ) as home:
        indexed = amicrawl.index(files, out=Path(home) / "index")
        # JSON is YAML; a path may have any character in it.
        roots = [f"{each.absolute()}/" for each in places]
        archive = {"index_paths": f"{home}/index/", "archive_paths": roots}
        (Path(home) / "config.yaml").write_text(json.dumps({"collections": {"crawl": archive}}))
        said = f"{counted(len(indexed.outcomes), 'file')} indexed; "
        browser = f"{home}/browser" if proxy else None
        typer.echo(said + _how_to_open(_start_of(directory), port, browser), err=True)
        mode = ["--proxy", "crawl"] if proxy else []
        code = _serve([program, "-b", "127.0.0.1", "-p", str(port), "-d", home, *mode])
    if code:
        raise UsageError(f"{program} ended with {code}; see the lines above. Is port {port} taken?")


def _how_to_open(start: str, port: int, profile: str | None) -> str:
    """Return where the pages are, or how a browser with *profile* is started whose proxy has them."""
    if profile is None:
        return f"replay at http://localhost:{port}/crawl/{start}"
    # Certificates are pywb's own; the profile is not that of the operator.
    line = [
        "chromium", f"--proxy-server=http://localhost:{port}", "--proxy-bypass-list=<-loopback>",
        "--ignore-certificate-errors", f"--user-data-dir={profile}", *([start] if start else []),
    ]  # fmt: skip
    return f"replay with:\n{shlex.join(line)}"


def _on_ending_signals(handler: Callable[[int, object], None], *numbers: signal.Signals) -> None:
    """Have *handler* called at the signals *numbers*, those that are ignored excepted."""
    for number in numbers:
        # Under nohup SIGHUP comes ignored and has to stay so.
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _interrupt(*_: object) -> None:
    """End the command as Ctrl-C does: with its temporary directory."""
    raise KeyboardInterrupt


def _serve(command: list[str]) -> int:
    """Run *command* until a signal ends this process or it ends itself; return its exit code, or 0."""
    signals: list[int] = []
    started: list[subprocess.Popen[bytes]] = []

    # No exception: in the moment in which the process is started, it would leave that behind.
    def end(number: int, _frame: object) -> None:
        signals.append(number)
        for each in started:
            each.terminate() if len(signals) == 1 else each.kill()

    _on_ending_signals(end, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    # A group of its own: what Ctrl-C sends to all of ours makes it print a traceback.
    with subprocess.Popen(command, process_group=0) as process:  # noqa: S603
        started.append(process)
        if signals:
            process.terminate()
        code = process.wait()
    if not signals:
        return code
    typer.echo("Stopped.", err=True)
    return 0


def _program(given: Path | None, directory: Path) -> str:
    """Return the path of pywb's server; UsageError where it is not there."""
    beside = Path(sys.executable).with_name(_PROGRAM)
    found = shutil.which(str(given or _PROGRAM)) or (str(beside) if beside.exists() else None)
    if found is None:
        raise UsageError(
            "Replay needs pywb, whose program `wayback` was not found. Run: pipx install pywb. Or pack "
            f"the crawl with `amicrawl wacz {directory} -o crawl.wacz`, and open that file at "
            "https://replayweb.page, which reads it in your browser."
        )
    return found


def _start_of(directory: Path) -> str:
    """Return a URL to begin with: the start URL of a site; empty for a list."""
    asked = read_crawl_json(directory).get("asked")
    url = asked.get("url") if isinstance(asked, dict) else None
    return url.split()[0] if isinstance(url, str) and url else ""
