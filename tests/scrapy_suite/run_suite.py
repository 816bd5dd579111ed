"""Run Scrapy's own tests with the add-on, and hold what differs against `differences.toml`.

    run_suite.py [--workers N] [--only plain,line,handler]

    plain    Scrapy's tests as they are
    line     those that make crawlers, with the add-on in every crawler
    handler  Scrapy's tests of a download handler, on ours

The tests are those of the source distribution of the locked version, whose digest the lock file has. A
test that fails in a run, and not in the plain one, differs. Exit code 1 where a test differs that is not
named, or one is named that no longer does.
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
from collections import Counter
from pathlib import Path
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
    parser.add_argument("--workers", default="2")
    parser.add_argument("--only", default="plain,line,handler")
    given = parser.parse_args()
    runs = given.only.split(",")
    with tempfile.TemporaryDirectory(prefix="scrapy-suite-") as scratch:
        suite = _unpacked(Path(scratch))
        failed = {run: _failed(run, suite, Path(scratch), workers=given.workers) for run in runs}
    if "plain" in failed:
        failed = {
            run: tests - failed["plain"] if run == "line" else tests for run, tests in failed.items()
        }
    return _judge(failed)


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
    return scratch / name


def _failed(run: str, suite: Path, scratch: Path, *, workers: str) -> set[str]:
    """Return the tests that fail in *run* twice: the second time without others beside them."""
    tests = {
        "plain": ["tests", f"--ignore={HANDLER_TESTS}"],
        "line": [f"tests/{name}" for name in (HERE / "with_line.txt").read_text().split()],
        "handler": [HANDLER_TESTS],
    }[run]
    first = _run(run, suite, scratch, [*tests, *NOT_RUN, "-n", workers, "--dist", "worksteal"])
    if not first:
        return set()
    return _run(run, suite, scratch, [*sorted(first), "-p", "no:xdist"])


def _run(run: str, suite: Path, scratch: Path, arguments: list[str]) -> set[str]:
    report, archives = scratch / "report.xml", scratch / "archives"
    archives.mkdir(exist_ok=True)
    report.unlink(missing_ok=True)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")},
        "MITMDUMP": str(MITMDUMP),
        "AMICRAWL_SUITE_OUT": str(archives),
        "PYTHONPATH": os.pathsep.join([str(IN_SUITE), str(ROOT)]) if run != "plain" else "",
    }
    pytest = [str(PYTHON), "-m", "pytest", "-q", "-p", "no:cacheprovider", "--reactor=asyncio"]
    done = subprocess.run(
        [*pytest, "--timeout=120", f"--junit-xml={report}", *arguments],
        cwd=suite,
        env=environment,
        check=False,
    )
    shutil.rmtree(archives)
    if done.returncode not in {0, 1} or not report.exists():
        raise SystemExit(f"The run {run!r} could not be made: pytest ended with {done.returncode}.")
    return {
        _name(case, suite)
        for case in ET.parse(report).getroot().iter("testcase")  # made by pytest just now
        if case.find("failure") is not None or case.find("error") is not None
    }


def _name(case: ET.Element, suite: Path) -> str:
    """Return the node ID of a test in *suite*, as pytest takes it, from its place in a report."""
    module: list[str] = []
    classes: list[str] = []
    for part in case.attrib["classname"].split("."):
        (classes if classes or part[:1].isupper() else module).append(part)
    path = "/".join(module)
    name = f"{path}/__init__.py" if (suite / path).is_dir() else f"{path}.py"
    return "::".join([name, *classes, case.attrib["name"]])


def _judge(failed: dict[str, set[str]]) -> int:
    """Compare what *failed* by run with `differences.toml`; return the exit code."""
    named = tomllib.loads((HERE / "differences.toml").read_text()).get("difference", [])
    faults = []
    if len(named) > MOST_DIFFERENCES:
        faults.append(f"differences.toml names {len(named)} tests; {MOST_DIFFERENCES} are the most.")
    faults += [f"{each['test']} has no reason." for each in named if not each.get("why", "").strip()]
    for run, tests in failed.items():
        expected = {each["test"] for each in named if run in each["runs"]}
        faults += [f"{run}: {test} fails, and is not named." for test in sorted(tests - expected)]
        faults += [f"{run}: {test} is named, and does not fail." for test in sorted(expected - tests)]
    for fault in faults:
        print(fault)
    counts = Counter({run: len(tests) for run, tests in failed.items()})
    print("Differing tests by run:", dict(counts), "as named" if not faults else "NOT as named")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
