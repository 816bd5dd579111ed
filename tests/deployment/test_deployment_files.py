"""The units and the container file that are shipped as examples, as far as they need not run for it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from loopback import PROJECT

from amicrawl.config import CrawlConfig
from amicrawl.errors import ExitCode

UNITS = PROJECT / "examples" / "systemd"
CONTAINER = PROJECT / "examples" / "container"
BOOTSTRAP = "bootstrap-requirements.txt"

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed here"
)


def unit_value(name: str, key: str) -> str:
    """Return what the unit *name* says for *key*, which it says once."""
    (value,) = re.findall(rf"(?m)^{key}=(.*)$", (UNITS / name).read_text())
    return str(value)


def instructions() -> list[tuple[str, str]]:
    """Return the instructions of the container file, with what follows each on its line or lines."""
    text = (CONTAINER / "Containerfile").read_text().replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in lines)]


def argument_of(instruction: str) -> str:
    """Return what the last *instruction* of that name says: the last stage's."""
    return [rest for word, rest in instructions() if word == instruction][-1]


@pytest.fixture
def units(tmp_path: Path) -> list[str]:
    """The units as an instance of this machine, where amicrawl lies elsewhere."""
    ours = str(Path(sys.executable).parent / "amicrawl")
    for suffix in ("service", "timer"):
        text = (UNITS / f"amicrawl@.{suffix}").read_text()
        (tmp_path / f"amicrawl@gov.{suffix}").write_text(
            text.replace("/opt/amicrawl/bin/amicrawl", ours)
        )
    text = (UNITS / "amicrawl-pipeline.service").read_text()
    (tmp_path / "amicrawl-pipeline.service").write_text(text.replace("/opt/amicrawl/bin/amicrawl", ours))
    return [str(path) for path in sorted(tmp_path.iterdir())]


@needs_systemd
def test_systemd_finds_nothing_to_say_about_the_units(units: list[str]) -> None:
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", *units], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@needs_systemd
def test_systemd_finds_the_service_well_shut_in(units: list[str]) -> None:
    """Its scale ends at 10; a unit that says nothing is at 9.6."""
    for service in (unit for unit in units if unit.endswith(".service")):
        line = ["systemd-analyze", "security", "--offline=true", "--threshold=20", service]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-200:] + done.stderr


def test_the_unit_treats_every_exit_code_as_the_manual_says() -> None:
    fine = {int(code) for code in unit_value("amicrawl@.service", "SuccessExitStatus").split()}
    final = {int(code) for code in unit_value("amicrawl@.service", "RestartPreventExitStatus").split()}
    assert fine == {ExitCode.STOPPED, ExitCode.LIMIT}
    again = set(ExitCode) - fine - final - {ExitCode.DONE}
    assert again == {ExitCode.OUR_ERROR, ExitCode.UNAVAILABLE}, "what is not final is begun again"


def test_a_stop_leaves_more_time_than_a_drain_takes() -> None:
    of_the_unit = unit_value("amicrawl@.service", "TimeoutStopSec").removesuffix("min")
    (of_the_container,) = re.findall(
        r"(?m)^ +stop_grace_period: (\d+)m$", (CONTAINER / "compose.yaml").read_text()
    )
    for minutes in (of_the_unit, of_the_container):
        assert int(minutes) * 60 > 3 * CrawlConfig().drain_time
    assert unit_value("amicrawl@.service", "KillSignal") == argument_of("STOPSIGNAL") == "SIGINT"


def test_the_container_does_not_run_as_root_and_keeps_its_data_outside() -> None:
    assert argument_of("USER") == "10001:10001"
    assert argument_of("VOLUME") == argument_of("WORKDIR") == "/data"


def test_every_stage_names_the_version_of_its_base() -> None:
    bases = [rest.split()[0] for word, rest in instructions() if word == "FROM"]
    assert len(bases) == 2
    assert all(re.fullmatch(r"[a-z]+:\d[\w.-]*", base) for base in bases)


def test_the_container_file_copies_what_there_is_and_what_is_not_ignored() -> None:
    kept = (CONTAINER / "Containerfile.dockerignore").read_text().splitlines()
    copied = [rest.split() for word, rest in instructions() if word == "COPY"]
    sources = [word for words in copied if not words[0].startswith("--from") for word in words[:-1]]
    assert len(sources) > 3
    for source in sources:
        assert (PROJECT / source).exists(), source
        assert f"!{source}" in kept


def test_the_container_is_built_by_what_the_project_is_built_by() -> None:
    runs = [rest for word, rest in instructions() if word == "RUN"]
    assert any(f"--require-hashes -r {BOOTSTRAP}" in rest for rest in runs)
    assert all("--no-build-isolation" in rest for rest in runs if "uv build" in rest)
    assert [rest for rest in runs if "pip install" in rest and "--require-hashes" not in rest] == []
