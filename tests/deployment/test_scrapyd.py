"""scrapyd: a real one, to which the project is deployed, runs jobs and cancels one; files are whole."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import venv
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from archive_reading import check_sealed, records, rows
from loopback import PROJECT, QUICK, RawServer, environment, free_port, page, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FAST_URLS, SLOW_URLS = 5, 40
CONFIGURATION = """[scrapyd]
bind_address = 127.0.0.1
http_port = {port}
poll_interval = 0.1
max_proc = 3
eggs_dir = {directory}/eggs
logs_dir = {directory}/logs
items_dir = {directory}/items
jobs_dir = {directory}/jobs
dbs_dir = {directory}/dbs
"""
CRAWL_FILE = """public = false

[seeds]
file = "{seeds}"

[output]
out = "{out}"
"""


class Scrapyd:
    """A scrapyd of one's own: its process, its directory, and its JSON interface."""

    def __init__(self, directory: Path, python: Path, *, settings: str = "") -> None:
        self.directory = directory
        self.port = free_port()
        directory.mkdir()
        text = CONFIGURATION.format(port=self.port, directory=directory)
        (directory / "scrapyd.conf").write_text(text)
        if settings:
            (directory / "scrapy.cfg").write_text(f"[settings]\n{settings}\n")
        self._log = (directory / "scrapyd.log").open("wb")
        self.process = subprocess.Popen(
            [str(python), "-W", "ignore", "-m", "scrapyd"],
            cwd=directory,
            env=environment(),
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def call(self, what: str, *, post: bool = False, **values: str | list[str]) -> dict[str, Any]:
        """Return the response to *what*.json; fails where scrapyd says that it is an error."""
        query = urllib.parse.urlencode(values, doseq=True)
        url = f"http://127.0.0.1:{self.port}/{what}.json"
        address, body = (url, query.encode()) if post else (f"{url}?{query}", None)
        with urllib.request.urlopen(address, body, timeout=60) as respond:
            said: dict[str, Any] = json.loads(respond.read())
        assert said.pop("status") == "ok", said
        return said

    def schedule(self, project: str, settings: dict[str, str], **arguments: str) -> str:
        """Start a job of the spider `seeds` and return its name."""
        given = [f"{name}={value}" for name, value in settings.items()]
        job = self.call(
            "schedule", post=True, project=project, spider="seeds", setting=given, **arguments
        )
        return str(job["jobid"])

    def has_finished(self, job: str) -> bool:
        """Tell whether *job* has ended."""
        return job in {each["id"] for each in self.call("listjobs")["finished"]}

    def said_of(self, job: str) -> str:
        """Return what scrapyd logged when the process of *job* ended."""
        text = (self.directory / "scrapyd.log").read_text()
        ends = [line for line in text.splitlines() if f"job='{job}'" in line and "started:" not in line]
        return ends[-1]

    def stop(self) -> None:
        """End scrapyd and whatever it still runs."""
        self.process.terminate()
        try:
            self.process.wait(60)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self._log.close()

    def is_up(self) -> bool:
        """Tell whether it responds."""
        assert self.process.poll() is None, (self.directory / "scrapyd.log").read_text()
        try:
            self.call("daemonstatus")
        except (urllib.error.URLError, ConnectionError):
            return False
        return True


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.1)


def python_without_amicrawl(directory: Path) -> Path:
    """Make an environment that has all that amicrawl needs, but not amicrawl: that is in the egg."""
    venv.create(directory, symlinks=True)
    python = directory / "bin" / "python"
    found = subprocess.check_output(
        [str(python), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"], text=True
    )
    # The links to editable installs in that directory are not followed from here.
    (Path(found.strip()) / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    missing = subprocess.run(
        [str(python), "-c", "import amicrawl"], cwd=directory, capture_output=True, check=False
    )
    assert missing.returncode, "amicrawl is installed here otherwise than for development"
    return python


def project_copy(directory: Path, *, port: int) -> Path:
    """Copy what the egg is built from, with the address of the scrapyd of this test."""
    directory.mkdir()
    for name in ("pyproject.toml", "setup.py", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, directory)
    text = (PROJECT / "scrapy.cfg").read_text()
    assert "http://127.0.0.1:6800/" in text
    (directory / "scrapy.cfg").write_text(text.replace(":6800/", f":{port}/"))
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(PROJECT / "amicrawl", directory / "amicrawl", ignore=ignored)
    return directory


def deploy(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Run `scrapyd-deploy` in *directory*."""
    return subprocess.run(
        [str(Path(sys.executable).parent / "scrapyd-deploy"), *options],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


class Site:
    """A loopback server that can be made to take its time."""

    def __init__(self) -> None:
        self.hurry = threading.Event()
        self.server = RawServer(self._respond)

    def _respond(self, head: bytes) -> bytes:
        path = head.split(b" ")[1]
        if path.startswith(b"/slow"):
            self.hurry.wait(0.4)
        return page(b"page " + path, "Content-Type: text/plain")

    def requested(self, start: bytes) -> int:
        return sum(head.split(b" ")[1].startswith(start) for head in self.server.requests)


class Deployed:
    """The two daemons after all jobs have run, and the jobs' names."""

    def __init__(self, directory: Path, egg: Scrapyd, eggless: Scrapyd, site: Site) -> None:
        self.directory, self.egg, self.eggless, self.site = directory, egg, eggless, site
        self.out = directory / "out"
        self.settings = {**QUICK, "AMICRAWL_OUT": str(self.out)}
        url = site.server.url
        fast = [f"{url}/fast{n}" for n in range(FAST_URLS)]
        slow = [f"{url}/slow{n}" for n in range(SLOW_URLS)]
        self.fast_list = str(write_lines(directory / "fast.txt", fast))
        self.slow_list = str(write_lines(directory / "slow.txt", slow))

    def run(self) -> None:
        """Deploy, and run the jobs one after and beside the other."""
        with ThreadPoolExecutor(1) as beside:
            installed = beside.submit(
                self.eggless.schedule, "installed", self.settings, file=self.fast_list, run_id="tuesday"
            )
            self._deploy()
            self.installed = installed.result()
        self._run_jobs()

    def _deploy(self) -> None:
        project = project_copy(self.directory / "project", port=self.egg.port)
        self.deployed = deploy(project, "--version", "1_0")
        assert self.deployed.returncode == 0, self.deployed.stderr
        self.left_by_deploying = {path.name for path in project.iterdir()}
        # With the version, which saves scrapyd from listing the spiders of the egg a second time.
        self.spiders = self.egg.call("listspiders", project="amicrawl", _version="1_0")["spiders"]

    def _run_jobs(self) -> None:
        egg = {"_version": "1_0"}
        slow_settings = {**self.settings, "AMICRAWL_PER_HOST": "2"}
        self.slow = self.egg.schedule("amicrawl", slow_settings, file=self.slow_list, **egg)
        fast = {"file": self.fast_list, "jobid": "monday", **egg}
        self.fast = self.egg.schedule("amicrawl", self.settings, **fast)
        wait_until(lambda: self.egg.has_finished(self.fast) and self.site.requested(b"/slow") > 4)
        self.cancelled = self.egg.call("cancel", post=True, project="amicrawl", job=self.slow)
        wait_until(lambda: self.egg.has_finished(self.slow))
        self.rows_when_cancelled = rows(self.out / self.slow)
        self.open_when_cancelled = sorted((self.out / self.slow).glob("*.open"))
        self.site.hurry.set()
        again = {"file": self.slow_list, "out": str(self.out / self.slow), **egg}
        self.resumed = self.egg.schedule("amicrawl", self.settings, **again)
        crawl_file = self.directory / "crawl.toml"
        of_the_file = self.directory / "of-the-file"
        crawl_file.write_text(CRAWL_FILE.format(seeds=self.fast_list, out=of_the_file))
        self.filed = self.egg.schedule("amicrawl", QUICK, config=str(crawl_file), **egg)
        for job in (self.resumed, self.filed):
            wait_until(lambda job=job: self.egg.has_finished(job))  # type: ignore[misc]
        wait_until(lambda: self.eggless.has_finished(self.installed))


@contextmanager
def running(*daemons: Scrapyd) -> Iterator[None]:
    try:
        for daemon in daemons:
            wait_until(daemon.is_up)
        yield
    finally:
        for daemon in daemons:
            daemon.stop()


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    directory = tmp_path_factory.mktemp("scrapyd")
    egg = Scrapyd(directory / "egg", python_without_amicrawl(directory / "environment"))
    installed = "installed = amicrawl.settings"
    eggless = Scrapyd(directory / "eggless", Path(sys.executable), settings=installed)
    site = Site()
    with running(egg, eggless), site.server:
        deployed = Deployed(directory, egg, eggless, site)
        deployed.run()
        yield deployed


def test_deploying_leaves_nothing_that_git_would_see(ran: Deployed) -> None:
    """`build` and `*.egg-info` are ignored; a `setup.py` that scrapyd-deploy writes would not be."""
    of_the_project = {"pyproject.toml", "setup.py", "scrapy.cfg", "README.md", "LICENSE", "amicrawl"}
    assert ran.left_by_deploying - of_the_project <= {"build", "amicrawl.egg-info"}


def test_the_egg_holds_what_is_not_python_as_well(ran: Deployed) -> None:
    wanted = {
        str(path.relative_to(PROJECT))
        for path in (PROJECT / "amicrawl").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".py"
    }
    assert "amicrawl/templates/spiders/archive.tmpl" in wanted
    with zipfile.ZipFile(ran.egg.directory / "eggs" / "amicrawl" / "1_0.egg") as egg:
        names = set(egg.namelist())
    assert sorted(wanted - names) == []
    assert {name.split("/")[0] for name in names} == {"amicrawl", "EGG-INFO"}


def test_the_spiders_of_the_egg_are_listed(ran: Deployed) -> None:
    assert {"recrawl", "seeds"} <= set(ran.spiders)
    assert '"spiders": ' in ran.deployed.stdout


def test_a_job_fetches_its_list_and_seals_what_it_got(ran: Deployed) -> None:
    out = ran.out / ran.fast
    assert len(rows(out)) == FAST_URLS
    assert {row["status"] for row in rows(out)} == {200}
    assert sum(each.rec_type == "response" for each in records(out)) == FAST_URLS
    for path in out.glob("*.warc.gz"):
        check_sealed(path)
    assert "Process finished:" in ran.egg.said_of(ran.fast), "which scrapyd says of exit code 0"


def test_a_job_writes_to_a_directory_of_its_own_name(ran: Deployed) -> None:
    assert ran.fast == "monday"
    assert {path.name for path in ran.out.iterdir()} == {"monday", ran.slow, "tuesday"}


def test_a_job_whose_crawl_file_names_a_directory_gets_that(ran: Deployed) -> None:
    assert len(rows(ran.directory / "of-the-file")) == FAST_URLS


def test_a_cancelled_job_has_sealed_what_it_got(ran: Deployed) -> None:
    assert ran.cancelled["prevstate"] == "running"
    assert ran.open_when_cancelled == []
    assert 4 < len(ran.rows_when_cancelled) < SLOW_URLS
    assert "exitstatus=6 " in ran.egg.said_of(ran.slow)


def test_a_job_in_the_same_directory_goes_on_where_the_cancelled_one_ended(ran: Deployed) -> None:
    out = ran.out / ran.slow
    assert len({row["url"] for row in rows(out)}) == len(rows(out)) == SLOW_URLS
    assert ran.site.requested(b"/slow") == SLOW_URLS, "nothing was fetched a second time"
    for path in out.glob("*.warc.gz"):
        check_sealed(path)


def test_scrapyd_keeps_a_log_of_each_job(ran: Deployed) -> None:
    log = ran.egg.directory / "logs" / "amicrawl" / "seeds" / f"{ran.fast}.log"
    assert "Traceback" not in log.read_text()


def test_an_installed_amicrawl_needs_no_egg(ran: Deployed) -> None:
    assert not (ran.eggless.directory / "eggs").exists()
    assert len(rows(ran.out / "tuesday")) == FAST_URLS, "the directory that run_id names"
    assert "Process finished:" in ran.eggless.said_of(ran.installed)
