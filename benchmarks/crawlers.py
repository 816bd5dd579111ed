"""The crawlers that are measured: how each is made ready, what is run, where its archive then lies."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

ROOT = Path(__file__).resolve().parent.parent
COMMANDS = Path(sys.executable).parent
PER_HOST = 8


class CrawlerMissingError(Exception):
    """A crawler that cannot be run here; the message says why."""


class Crawler(Protocol):
    """One way to turn a list of URLs into an archive."""

    name: str
    share: float
    """Part of the pages that it is given: the slower ones would keep everybody waiting."""

    def make_ready(self) -> str:
        """Install what is missing; return the version. Raises CrawlerMissingError."""

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return *urls* in the order that suits this crawler best."""

    def command(self, urls: Path, out: Path) -> list[str]:
        """Return the command that archives the list *urls*, one a line, into *out*, where it is run."""

    def environment(self) -> Mapping[str, str]:
        """Return the environment variables for the command."""

    def archives(self, out: Path) -> list[Path]:
        """Return the files that it left in *out*."""


class Environment:
    """An environment for the crawl and what is measured with its parts.

    In that of the tests a crawl would start more slowly than at its users': pyarrow loads pandas where
    there is one.
    """

    def __init__(self, python: str = "") -> None:
        """*python* is another interpreter than that of the tests."""
        self._python = python or str(COMMANDS / "python")
        place = ROOT / "benchmarks" / "out" if python else ROOT / "benchmarks" / "peers" / "amicrawl"
        self.directory = place / ".venv"

    def make_ready(self) -> None:
        """Install what a crawl needs, if it is missing."""
        script = str(ROOT / ".ci" / "environment.py")
        _install([self._python, script, "run", "--directory", str(self.directory)])


class Amicrawl:
    """The crawl of this project as users run it: WARC records, digests, index and frontier included."""

    share = 1.0

    def __init__(
        self,
        settings: Mapping[str, str] = MappingProxyType({}),
        *,
        processes: int = 1,
        environment: Environment | None = None,
    ) -> None:
        """Crawl with further *settings*, in that many *processes*."""
        self.name = "amicrawl" if processes == 1 else f"amicrawl, {processes} processes"
        self._made = environment or Environment()
        self._processes = processes
        self._settings = settings

    def make_ready(self) -> str:
        """Install it into an environment of its own."""
        self._made.make_ready()
        python = self._made.directory / "bin" / "python"
        code = "import platform; print(platform.python_version())"
        return f"{_version_of(('amicrawl', 'Scrapy'), python=python)}, Python " + _first_line(
            [str(python), "-c", code]
        )

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return them as they are: it spreads hosts by itself."""
        return urls

    def command(self, urls: Path, out: Path) -> list[str]:
        """Return the command; politeness is off, since the server is ours."""
        settings = {
            "AMICRAWL_ALLOW_PRIVATE": "127.0.0.0/8",
            "AMICRAWL_DELAY": "0",
            "AMICRAWL_PER_HOST": str(PER_HOST),
            "AMICRAWL_ROBOTS": "ignore",
            # The server's certificate is its own, and the peers look at none.
            "AMICRAWL_TLS": "record",
            "LOG_LEVEL": "WARNING",
            **self._settings,
        }
        scrapy = str(self._made.directory / "bin" / "scrapy")
        words = [scrapy, "crawl", "seeds", "-a", f"file={urls}", "-a", f"out={out}"]
        if self._processes > 1:
            words += ["-a", f"processes={self._processes}"]
        for name, value in settings.items():
            words += ["-s", f"{name}={value}"]
        return words

    def environment(self) -> Mapping[str, str]:
        """Return this process's, with the project found from any directory."""
        return _variables(SCRAPY_SETTINGS_MODULE="amicrawl.settings", PYTHONPATH=str(ROOT))

    def archives(self, out: Path) -> list[Path]:
        """Return the sealed WARC files."""
        return sorted(out.glob("*.warc.gz"))


class Ami:
    """The Go program after which list crawls are modelled, as a binary: `make bench AMI=path`."""

    name = "ami"
    share = 1.0

    def __init__(self, binary: Path) -> None:
        """*binary* is the program."""
        self._binary = binary.resolve()

    def make_ready(self) -> str:
        """Return the version of the binary."""
        if not os.access(self._binary, os.X_OK):
            raise CrawlerMissingError(f"{self._binary} is not a program.")
        return _first_line([str(self._binary), "--version"])

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return them as they are: it spreads hosts by itself."""
        return urls

    def command(self, urls: Path, out: Path) -> list[str]:
        """Return the command with what suits two cores best: with more workers it loses pages."""
        listed = urls.with_suffix(".jsonl")
        listed.write_text("".join(f'{{"url":"{url}"}}\n' for url in urls.read_text().split()))
        program = [str(self._binary), "crawl", str(listed)]
        return [*program, "--format", "warc", "--workers", "256", "-o", str(out / "ami")]

    def environment(self) -> Mapping[str, str]:
        """Return this process's."""
        return _variables()

    def archives(self, out: Path) -> list[Path]:
        """Return the WARC files."""
        return sorted(out.rglob("*.warc.gz"))


class BareLoop:
    """The floor: `benchmarks.bare`, in the environment of the crawl."""

    name = "bare loop"
    share = 1.0

    def __init__(self, environment: Environment | None = None) -> None:
        self._made = environment or Environment()

    def make_ready(self) -> str:
        """Return what it is made of."""
        self._made.make_ready()
        return "wire, gzip, two digests, write"

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return them as they are."""
        return urls

    def command(self, urls: Path, out: Path) -> list[str]:
        """Return the command."""
        python = self._made.directory / "bin" / "python"
        return [str(python), "-m", "benchmarks.bare", str(urls), str(out)]

    def environment(self) -> Mapping[str, str]:
        """Return this process's, with the benchmarks found from any directory."""
        return _variables(PYTHONPATH=str(ROOT))

    def archives(self, out: Path) -> list[Path]:
        """Return the WARC file."""
        return sorted(out.glob("*.warc.gz"))


class ScrapyWebarchive:
    """Stock Scrapy with the scrapy-webarchive plug-in, in the newest versions that work together."""

    name = "scrapy-webarchive"
    share = 0.2

    def __init__(self) -> None:
        self._project = ROOT / "benchmarks" / "peers" / "scrapy_webarchive"
        self._environment = self._project / ".venv"

    def make_ready(self) -> str:
        """Install it into an environment of its own."""
        if sys.version_info >= (3, 13):
            raise CrawlerMissingError("scrapy-webarchive is for Python before 3.13.")
        pins = self._project / "requirements.txt"
        stamp = self._environment / "ready"
        if not stamp.exists() or stamp.read_text() != pins.read_text():
            sys.stderr.write("Installing scrapy-webarchive into an environment of its own.\n")
            shutil.rmtree(self._environment, ignore_errors=True)
            _install([str(COMMANDS / "python"), "-m", "venv", str(self._environment)])
            # Without --no-deps, pip takes an extra that a package no longer has for an unpinned package.
            pip = [str(self._environment / "bin" / "python"), "-m", "pip", "install", "--quiet"]
            _install([*pip, "--no-deps", "--require-hashes", "-r", str(pins)])
            stamp.write_text(pins.read_text())
        wanted = ("scrapy-webarchive", "Scrapy", "Twisted", "warcio")
        return _version_of(wanted, python=self._environment / "bin" / "python")

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return them as they are: the hosts take turns in the list, which suits Scrapy's slots."""
        return urls

    def command(self, urls: Path, out: Path) -> list[str]:
        """Return the command."""
        scrapy = str(self._environment / "bin" / "scrapy")
        return [scrapy, "crawl", "list", "-a", f"file={urls}", "-s", f"SW_EXPORT_URI={out}/"]

    def environment(self) -> Mapping[str, str]:
        """Return this process's, with the small project beside this file as the one to use."""
        return _variables(SCRAPY_SETTINGS_MODULE="settings", PYTHONPATH=str(self._project))

    def archives(self, out: Path) -> list[Path]:
        """Return the WACZ file: the plug-in packs its WARC file into one at the end."""
        return sorted(out.glob("*.wacz"))


class Wget:
    """GNU Wget with its own WARC writer: one request after the other, in C."""

    name = "wget"
    share = 0.2

    def make_ready(self) -> str:
        """Return the version of the one that is installed."""
        if shutil.which("wget") is None:
            raise CrawlerMissingError("wget is not installed.")
        return _first_line(["wget", "--version"]).partition(" built")[0]

    def in_order(self, urls: Sequence[str]) -> Sequence[str]:
        """Return them host by host: wget keeps one connection open, to the host of its last request."""
        return sorted(urls, key=lambda url: url.split("/", 3)[2])

    def command(self, urls: Path, out: Path) -> list[str]:
        """Return the command; pages are kept in the WARC file only."""
        return [
            "wget",
            "--no-config",
            "-q",
            "-O",
            "/dev/null",
            "-i",
            str(urls),
            f"--warc-file={out / 'wget'}",
        ]

    def environment(self) -> Mapping[str, str]:
        """Return this process's."""
        return _variables()

    def archives(self, out: Path) -> list[Path]:
        """Return the WARC file."""
        return sorted(out.glob("*.warc.gz"))


def _variables(**ours: str) -> dict[str, str]:
    """Return the environment variables of this process and *ours*."""
    # Where Python may not keep what it compiles, it compiles at every start, which no user's crawl does.
    return {
        name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"
    } | ours


def _version_of(packages: Sequence[str], *, python: Path) -> str:
    code = "import importlib.metadata as m, sys; print(*(f'{n} {m.version(n)}' for n in sys.argv[1:]))"
    return _first_line([str(python), "-c", code, *packages])


def _first_line(command: Sequence[str]) -> str:
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()[0]


def _install(command: Sequence[str]) -> None:
    if subprocess.run(command, check=False, stdout=sys.stderr).returncode:
        raise CrawlerMissingError("it could not be installed; what is printed above says why.")
