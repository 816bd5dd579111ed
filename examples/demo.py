"""Archive the demo site with `scrapy crawl seeds` and show what came: `make crawl` without seeds.

The site is served on this machine for as long as the crawl runs, each time on the same port if that is
free, so that a second crawl meets the pages of the first. Ends with the exit code of the crawl, or, if
that is 0, with that of `amicrawl inspect`.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from demo_site.server import DemoSite

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = Path(sys.executable).parent
ROOT = Path(__file__).resolve().parent.parent
PORT = 8651
"""Where the site is served unless somebody else is there."""


def site_at(port: int) -> DemoSite:
    """Return the demo site on *port* of this machine, or on a free one where that is taken."""
    try:
        return DemoSite(port=port)
    except OSError:
        return DemoSite()


def crawl_command(seeds: Path, out: Path) -> list[str]:
    """Return the command that archives *seeds* into *out*."""
    return [
        str(COMMANDS / "scrapy"),
        "crawl",
        "seeds",
        "-a",
        f"file={seeds}",
        "-a",
        f"out={out}",
        # Addresses of this machine are refused otherwise, and a guest would wait longer between pages.
        "-s",
        "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8",
        "-s",
        "AMICRAWL_DELAY=0.05",
    ]


def run(command: Sequence[str]) -> int:
    """Run *command* in the project's directory to its end, interrupts included; return its exit code."""
    process = subprocess.Popen(command, cwd=ROOT)

    def pass_on(number: int, _frame: object) -> None:
        # A terminal sends an interrupt to both of us; what is sent to us alone has to be handed on.
        if number != signal.SIGINT:
            process.send_signal(number)

    before = {number: signal.signal(number, pass_on) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        code = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return code if code >= 0 else 128 - code


def main(arguments: list[str]) -> int:
    """Archive the demo site into the directory that *arguments* name."""
    parser = argparse.ArgumentParser(description="Archive the demo site and show what came.")
    parser.add_argument(
        "--out", type=Path, default=Path("ami-out"), help="directory to write to (ami-out)"
    )
    out = parser.parse_args(arguments).out.absolute()
    with tempfile.TemporaryDirectory() as directory, site_at(PORT) as site:
        seeds = site.seeds(Path(directory) / "seeds.jsonl")
        sys.stderr.write(f"A demo site is served at {site.url} while the crawl runs.\n")
        code = run(crawl_command(seeds, out))
    if not (out / "captures.parquet").exists():
        return code
    inspected = run([str(COMMANDS / "amicrawl"), "inspect", str(out), "-n", "40"])
    return code or inspected


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
