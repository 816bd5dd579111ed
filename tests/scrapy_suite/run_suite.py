"""Run Scrapy's own tests with the add-on, and hold what differs against `differences.toml`.

    run_suite.py [--workers N] [--only line,handler] [--plain] [--tests NAME ...]

    line     Scrapy's tests that make crawlers, with the add-on in every crawler
    handler  Scrapy's tests of a download handler, on ours

The tests are those of the source distribution of the locked version, whose digest the lock file has. One
that fails and is not named is run again without others beside it, and then without the add-on: where it
fails there, too, nothing differs. `--plain` runs all of them without the add-on before, and says what
fails. Exit code 1 where a test differs that is not named, or one is named that no longer does.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = HERE / ".cache"
IN_SUITE = HERE / "in_suite"
PYTHON = HERE / ".venv" / "bin" / "python"
MITMDUMP = HERE / ".venv-mitmproxy" / "bin" / "mitmdump"
HANDLER_TESTS = "tests/test_downloader_handler_guest.py"
MOST_DIFFERENCES = 20
NOT_RUN = (
    # Of other libraries, whose handlers are not in the way of a guest's; of benchmarks; and of the web.
    "--ignore=tests/benchmarks",
    "--ignore=tests/test_downloader_handler_aiohttp.py",
    "--ignore=tests/test_downloader_handler_httpx.py",
    "--ignore=tests/test_downloader_handler_twisted_http2.py",
    "-m",
    "not requires_internet",
    # Of a pytest that is newer than the one that these tests were written for.
    "-W",
    "ignore::pytest.PytestRemovedIn10Warning",
)


def main() -> int:
    """Run what the command line says; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--workers", default="3")
    parser.add_argument("--only", default="line,handler")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--tests", nargs="*", help="files of the run in place of all")
    given = parser.parse_args()
    named = tomllib.loads((HERE / "differences.toml").read_text()).get("difference", [])
    with tempfile.TemporaryDirectory(prefix="scrapy-suite-") as scratch:
        suite = Suite(Path(scratch), workers=given.workers)
        if given.plain:
            fails = suite.run("plain", given.tests or ["tests", f"--ignore={HANDLER_TESTS}"])
            print("Without the add-on fail:", *sorted(fails), sep="\n    ")
        differing = {
            run: _differing(run, suite, given.tests or _tests_of(run), named=_names(named, run))
            for run in given.only.split(",")
        }
    return _judge(differing, named, is_whole=not given.tests)


def _tests_of(run: str) -> list[str]:
    if run == "handler":
        return [HANDLER_TESTS]
    return [f"tests/{name}" for name in (HERE / "with_line.txt").read_text().split()]


def _names(named: list[dict[str, Any]], run: str) -> set[str]:
    return {each["test"] for each in named if each["run"] == run}


def _differing(run: str, suite: Suite, tests: list[str], *, named: set[str]) -> set[str]:
    """Return those of *tests* that fail in *run*, and, unless they are *named*, again and there only."""
    failed = suite.run(run, tests)
    known, others = failed & named, failed - named
    if others:
        others = suite.run(run, sorted(others), is_alone=True)
    if others and run == "line":
        others -= suite.run("plain", sorted(others), is_alone=True)
    return known | others


class Suite:
    """Scrapy's tests, unpacked below *scratch*."""

    def __init__(self, scratch: Path, *, workers: str) -> None:
        self._scratch = scratch
        self._tests = _unpacked(scratch)
        self._workers = workers

    def run(self, run: str, tests: list[str], *, is_alone: bool = False) -> set[str]:
        """Run *tests* and return the names of those that fail."""
        report, archives = self._scratch / "report.xml", self._scratch / "archives"
        archives.mkdir(exist_ok=True)
        report.unlink(missing_ok=True)
        environment = {
            **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
            "MITMDUMP": str(MITMDUMP),
            "AMICRAWL_SUITE_OUT": str(archives),
            "PYTHONPATH": "" if run == "plain" else os.pathsep.join([str(IN_SUITE), str(self._tests)]),
        }
        beside = ["-p", "no:xdist"] if is_alone else ["-n", self._workers, "--dist", "worksteal"]
        pytest = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reactor=asyncio"]
        done = subprocess.run(
            [*pytest, "--timeout=120", f"--junit-xml={report}", *tests, *NOT_RUN, *beside],
            cwd=self._tests,
            env=environment,
            check=False,
        )
        shutil.rmtree(archives)
        if done.returncode not in {0, 1} or not report.exists():
            raise SystemExit(f"The run {run!r} could not be made: pytest ended with {done.returncode}.")
        return {
            _name(case, self._tests)
            for case in ET.parse(report).getroot().iter("testcase")  # made by pytest just now
            if case.find("failure") is not None or case.find("error") is not None
        }


def _unpacked(scratch: Path) -> Path:
    """Download the source distribution unless it is in the cache, check its digest, and unpack it."""
    lock = tomllib.loads((ROOT / "uv.lock").read_text())
    package = next(each for each in lock["package"] if each["name"] == "scrapy")
    name, digest = f"scrapy-{package['version']}", package["sdist"]["hash"].removeprefix("sha256:")
    archive = CACHE / f"{name}.tar.gz"
    if not archive.exists():
        CACHE.mkdir(exist_ok=True)
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", "scrapy"]
        subprocess.run([*pip, "--dest", str(CACHE), name.replace("-", "==")], check=True)
    if hashlib.sha256(archive.read_bytes()).hexdigest() != digest:
        archive.unlink()
        raise SystemExit(f"{archive.name} is not what uv.lock names, and was removed. Start again.")
    with tarfile.open(archive) as tar:
        tar.extractall(scratch, filter="data")
    shutil.copy(IN_SUITE / "handler_tests.py", scratch / name / HANDLER_TESTS)
    # A command that takes long on a machine at work is not a difference.
    commands = scratch / name / "tests" / "utils" / "cmdline.py"
    commands.write_text(commands.read_text().replace("timeout=15,", "timeout=100,"))
    return scratch / name


def _name(case: ET.Element, suite: Path) -> str:
    """Return the node ID of a test in *suite*, as pytest takes it, from its place in a report."""
    module: list[str] = []
    classes: list[str] = []
    for part in case.attrib["classname"].split("."):
        (classes if classes or part[:1].isupper() else module).append(part)
    path = "/".join(module)
    name = f"{path}/__init__.py" if (suite / path).is_dir() else f"{path}.py"
    return "::".join([name, *classes, case.attrib["name"]])


def _judge(differing: dict[str, set[str]], named: list[dict[str, Any]], *, is_whole: bool) -> int:
    """Compare what is *differing* by run with what is *named*; return the exit code."""
    faults = []
    if len(named) > MOST_DIFFERENCES:
        faults.append(f"differences.toml names {len(named)} tests; {MOST_DIFFERENCES} are the most.")
    faults += [f"{each['test']} has no reason." for each in named if not each.get("why", "").strip()]
    for run, tests in differing.items():
        expected = _names(named, run)
        faults += [f"{run}: {test} fails, and is not named." for test in sorted(tests - expected)]
        if is_whole:
            faults += [
                f"{run}: {test} is named, and does not fail." for test in sorted(expected - tests)
            ]
    for fault in faults:
        print(fault)
    counts = {run: len(tests) for run, tests in differing.items()}
    print("Differing tests by run:", counts, "as named" if not faults else "NOT as named")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
