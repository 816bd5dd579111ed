"""`amicrawl watch`: one crawl in a browser, from its directory alone; `crawl --watch` begins it, too."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from amicrawl.cli.options import Port, check_directory, check_installed
from amicrawl.disk import Disk

NEEDED = ("jinja2", "python_multipart", "starlette", "uvicorn")
PORT = 8651
_LOOK_EVERY = 1.0

Crawl = Annotated[Path, typer.Argument(metavar="DIR", help="Output directory of a crawl.")]
Beside = Annotated[bool, typer.Option("--beside", hidden=True, help="End with the parent process.")]


def watch(directory: Crawl, port: Port = PORT, beside: Beside = False) -> None:
    """Show the crawl in DIR in a browser: rate, queue, hosts, failures; pause, change or stop it.

    Serves a page on this machine until Ctrl-C, also of a crawl that has ended or was killed. It reads
    the files of the crawl and writes its control files. Example: amicrawl watch ami-out
    """
    check_installed("dashboard", *NEEDED)
    stop = threading.Event()
    if beside:
        parent = os.getppid()
        threading.Thread(target=_end_with, args=(parent, stop), daemon=True).start()
    else:
        check_directory(directory)
    from amicrawl.crawl import write_control  # noqa: PLC0415  # Scrapy's part is loaded when it is used
    from amicrawl.fleet.dashboard import serve_watch  # noqa: PLC0415  # the extra may be missing

    serve_watch(
        directory,
        port=port,
        write=partial(write_control, disk=Disk()),
        stop=stop,
        on_ready=lambda url: typer.echo(f"watch {directory} at {url}/", err=True),
    )


def watch_beside(directory: Path) -> None:
    """Begin `amicrawl watch` for the crawl of this process into *directory*; it ends with it."""
    check_installed("dashboard", *NEEDED)
    command = [sys.executable, "-m", "amicrawl", "watch", str(directory), "--port", "0", "--beside"]
    # A signal to the crawl is not one to this: it ends after the crawl has.
    subprocess.Popen(command, stdin=subprocess.DEVNULL, process_group=0)  # noqa: S603


def _end_with(parent: int, stop: threading.Event) -> None:
    """Set *stop* once the process *parent* is no longer that of this one."""
    while os.getppid() == parent:
        time.sleep(_LOOK_EVERY)
    stop.set()
