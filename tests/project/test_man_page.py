"""The man page has every command and option, and roff accepts it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("man") / "man1" / "amicrawl.1"
    line = [sys.executable, str(PROJECT / ".ci" / "man_page.py"), str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=PROJECT)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    return path


def test_the_man_page_has_commands_their_own_commands_and_options(page: Path) -> None:
    lines = page.read_text().splitlines()
    assert r".SS \&amicrawl crawl" in lines
    assert r".SS \&amicrawl frontier stats" in lines
    assert r".B \&\-\-delay SECONDS" in lines
    assert len([line for line in lines if line.startswith(".SS ")]) > 60
    requests = {line.split()[0] for line in lines if line.startswith((".", "'"))}
    assert requests <= {".TH", ".SH", ".SS", ".PP", ".TP", ".B", ".I"}, "no text is taken for a request"


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_roff_lays_the_man_page_out_without_a_warning(page: Path) -> None:
    line = ["groff", "-man", "-ww", "-Tutf8", str(page)]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Stop after N responses." in done.stdout
