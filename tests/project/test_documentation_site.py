"""The documentation is built as a site, and no link in it leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]


def built(configuration: Path, site: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "-f", str(configuration), "-d", str(site)]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = built(PROJECT / "mkdocs.yml", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_of_the_documentation_is_in_the_site(site: Path) -> None:
    pages = {path.stem for path in (PROJECT / "docs").glob("*.md")}
    assert pages <= {path.stem for path in site.glob("*.html")}


def test_the_command_reference_is_made_of_the_commands(site: Path) -> None:
    text = (site / "commands.html").read_text()
    for part in (
        "amicrawl crawl",
        "amicrawl frontier stats",
        "amicrawl job submit",
        "--slots",
        "--wait",
    ):
        assert part in text


def test_a_link_that_leads_nowhere_fails_the_build(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "index.md").write_text("[a page](that-is-not-there.md)\n")
    configuration = tmp_path / "mkdocs.yml"
    own = (PROJECT / "mkdocs.yml").read_text()
    checks = own[own.index("validation:") : own.index("nav:")]
    configuration.write_text(f"site_name: x\nstrict: true\n{checks}")
    done = built(configuration, tmp_path / "site")
    assert done.returncode == 1
    assert "that-is-not-there.md" in done.stderr
