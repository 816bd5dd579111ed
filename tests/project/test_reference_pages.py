"""The reference pages say what the code does: settings, columns, errors, exit codes, stats."""

from __future__ import annotations

import ast
import json
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from amicrawl.capture import Failure
from amicrawl.config import Headers
from amicrawl.crawl.decision import STATS
from amicrawl.errors import ExitCode
from amicrawl.record import CAPTURES

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_the_tables_of_settings_and_keys_and_the_schema_are_those_of_the_code() -> None:
    script = PROJECT / ".ci" / "reference.py"
    done = subprocess.run(
        [sys.executable, script, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


def test_a_reference_that_differs_from_the_code_is_named(tmp_path: Path) -> None:
    for name in (".ci", "docs", "amicrawl"):
        shutil.copytree(PROJECT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    page = tmp_path / "docs" / "settings.md"
    page.write_text(
        page.read_text().replace("| `AMICRAWL_DELAY` | `1.0` |", "| `AMICRAWL_DELAY` | `2.0` |")
    )
    command = [sys.executable, str(tmp_path / ".ci" / "reference.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == "docs/settings.md differs from the code: run `make reference`.\n"


def test_a_word_that_is_a_value_is_not_documented_as_the_setting_of_that_name() -> None:
    told = {name.strip("`"): text for name, _, text in table("settings.md", "Setting")}
    for value in Headers:
        assert f"`{value}`" in told["AMICRAWL_HEADERS"]
    for key in ("delay", "per_host", "robots", "auth"):
        assert f"`{key}`" in told["AMICRAWL_HOST_OVERRIDES"]


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


class _Claims:
    """Tells which functions of the tests assert something, themselves or in those that they call."""

    def __init__(self) -> None:
        self._where: dict[str, list[Path]] = {}
        for path in (PROJECT / "tests").glob("**/[!.]*.py"):
            if "/." not in str(path.relative_to(PROJECT)):
                for name in re.findall(r"^ *(?:async )?def (\w+)\(", path.read_text(), re.MULTILINE):
                    self._where.setdefault(name, []).append(path)
        self._parsed: dict[Path, ast.Module] = {}
        self._known: dict[str, bool] = {"raises": True, "warns": True, "fail": True}

    def of(self, name: str) -> bool:
        """Return whether a function called *name* asserts something."""
        if name not in self._known:
            self._known[name] = False  # for one that calls itself
            self._known[name] = any(self.within(node) for node in self._functions(name))
        return self._known[name]

    def within(self, node: ast.AST) -> bool:
        """Return whether *node* has an assertion, or a call of what has one."""
        for each in ast.walk(node):
            if isinstance(each, ast.Assert | ast.Raise):
                return True
            function = each.func if isinstance(each, ast.Call) else None
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            if name and self.of(name):
                return True
        return False

    def _functions(self, name: str) -> Iterator[ast.AST]:
        for path in self._where.get(name, ()):
            if path not in self._parsed:
                self._parsed[path] = ast.parse(path.read_text())
            for node in ast.walk(self._parsed[path]):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == name:
                    yield node


def test_each_test_that_the_page_about_security_names_asserts_something() -> None:
    claims, text = _Claims(), (PROJECT / "docs" / "security.md").read_text()
    names = sorted(set(re.findall(r"`(test_[a-z0-9_]+)`", text)))
    assert [name for name in names if not claims.of(name)] == []
    assert not claims.within(ast.parse("def test_x():\n    print(len([1]))"))


def test_each_promise_of_the_page_about_security_has_a_test() -> None:
    text = (PROJECT / "docs" / "security.md").read_text()
    promises = [line for line in text.split("\n") if line.startswith("| ") and " Tests |" not in line]
    assert len(promises) > 60
    # What is trusted promises nothing.
    unshown = [
        line[:80] for line in promises if not re.search(r"`tests?[_/]", line.rpartition(" | ")[2])
    ]
    assert all("| trusted |" in line for line in unshown), unshown


def test_each_library_in_c_or_cxx_is_in_the_page_about_security() -> None:
    """Compiled files of a distribution that the package imports say that it is one."""
    imported = {
        name
        for path in (PROJECT / "amicrawl").rglob("*.py")
        for name in re.findall(r"^ *(?:import|from) (\w+)", path.read_text(), re.MULTILINE)
    }
    owners = metadata.packages_distributions()
    compiled = {
        owner
        for name in imported
        for owner in owners.get(name, ())
        if any(".so" in file.suffixes for file in metadata.files(owner) or ())
    }
    assert {"pyarrow", "lxml", "brotli"} <= compiled
    text = (PROJECT / "docs" / "security.md").read_text()
    table = text.partition("## Libraries in C and C++")[2].partition("## ")[0]
    assert [name for name in sorted(compiled) if name not in table] == []


def test_the_bill_of_materials_names_what_the_lock_file_installs(tmp_path: Path) -> None:
    into = tmp_path / "sbom.json"
    make = ["make", "-s", "sbom", f"SBOM={into}"]
    subprocess.run(make, cwd=PROJECT, check=True, capture_output=True, timeout=120)
    said = json.loads(into.read_text())
    assert (said["bomFormat"], said["specVersion"]) == ("CycloneDX", "1.5")
    versions = {each["name"]: each["version"] for each in said["components"]}
    assert versions["pyarrow"] == metadata.version("pyarrow")
    assert {"scrapy", "duckdb", "lxml"} <= versions.keys()
    assert "pytest" not in versions, "what tests need is not part of a release"
