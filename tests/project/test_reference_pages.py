"""The reference pages say what the code does: settings, columns, errors, exit codes, stats."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from amicrawl.capture import Failure
from amicrawl.config import PREFIX, CrawlConfig
from amicrawl.crawl.tally import STATS
from amicrawl.errors import ExitCode
from amicrawl.record import CAPTURES

PROJECT = Path(__file__).parents[2]


def table(page: str, first_heading: str) -> list[list[str]]:
    """Return the cells of the first table of *page* whose first heading is *first_heading*."""
    lines = (PROJECT / "docs" / page).read_text().splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith(f"| {first_heading} |"))
    rows = []
    for line in lines[start + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_every_setting_is_documented_with_its_default() -> None:
    told = {name.strip("`"): default.strip("`") for name, default, _ in table("settings.md", "Setting")}
    real = {}
    for name, field in CrawlConfig.model_fields.items():
        default = field.default
        real[PREFIX + name.upper()] = repr(default) if default == "" else str(default)
    assert told == real


def test_every_column_is_documented_in_its_place_with_its_type() -> None:
    told = [(name.strip("`"), kind) for name, kind, _ in table("output.md", "Column")]
    assert told == [(field.name, str(field.type)) for field in CAPTURES]


def test_every_word_of_the_error_column_is_documented() -> None:
    assert [word.strip("`") for word, _ in table("output.md", "Word")] == [
        str(failure) for failure in Failure
    ]


def test_every_exit_code_is_documented() -> None:
    told = [(int(code), name.strip("`")) for code, name, _, _ in table("exit-codes.md", "Code")]
    assert told == [(code.value, code.name) for code in ExitCode]


def test_every_stats_key_in_the_code_is_documented() -> None:
    told = {key.strip("`") for key, _ in table("settings.md", "Key")}
    used: set[str] = set(STATS.values())
    for path in (PROJECT / "amicrawl").rglob("*.py"):
        used |= set(re.findall(r'inc_value\(\s*"(amicrawl/[a-z_/]+)"', path.read_text()))
        used |= {
            f"amicrawl/frontier/{what}"
            for what in re.findall(r'_count\("([a-z_]+)"\)', path.read_text())
        }
    assert used == told


@pytest.mark.parametrize("page", ["frontier.md", "security.md"])
def test_every_test_that_a_page_names_is_there(page: str) -> None:
    """A page that says what shows a claim must not outlive it."""
    text = (PROJECT / "docs" / page).read_text()
    # Environments that other targets have made lie among the tests.
    ours = PROJECT / "tests"
    files = [path for path in ours.glob("**/[!.]*.py") if "/." not in str(path.relative_to(ours.parent))]
    defined = {
        name for path in files for name in re.findall(r"def (test_[a-z0-9_]+)\(", path.read_text())
    }
    names = re.findall(r"`(test_[a-z0-9_]+)`", text)
    assert len(names) > 20
    assert [name for name in names if name not in defined] == []
    paths = re.findall(r"`(tests/[a-z0-9_/.]+)`", text)
    assert [path for path in paths if not (PROJECT / path).exists()] == []


@pytest.mark.parametrize(
    "page", ["README.md", *sorted(f"docs/{path.name}" for path in (PROJECT / "docs").glob("*.md"))]
)
def test_links_between_pages_lead_somewhere(page: str) -> None:
    text = (PROJECT / page).read_text()
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", text):
        if not target.startswith(("http://", "https://")):
            assert ((PROJECT / page).parent / target).exists(), target
