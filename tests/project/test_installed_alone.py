"""What a user installs is enough: a crawl and a look at it need nothing that only the tests bring."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from demo_site.server import DemoSite
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if TYPE_CHECKING:
    from collections.abc import Iterator

PROJECT = Path(__file__).parents[2]
COMMANDS = Path(sys.executable).parent

HIDE = """
import os, sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in os.environ["HIDDEN_MODULES"].split():
            raise ModuleNotFoundError(f"No module named {name!r}: users do not have it", name=name)

sys.meta_path.insert(0, Hidden())
"""


def required_by(name: str) -> set[str]:
    """Return the distributions that *name* requires, whatever extra is chosen."""
    lines = distribution(name).requires or []
    return {canonicalize_name(Requirement(line).name) for line in lines}


def installed_with_amicrawl() -> set[str]:
    """Return those distributions and all that come with them."""
    found: set[tuple[str, frozenset[str]]] = set()
    waiting: list[tuple[str, frozenset[str]]] = [("amicrawl", frozenset())]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in found:
            continue
        found.add((name, extras))
        for line in distribution(name).requires or []:
            wanted = Requirement(line)
            if any(
                wanted.marker is None or wanted.marker.evaluate({"extra": extra})
                for extra in (extras or {""})
            ):
                waiting.append((canonicalize_name(wanted.name), frozenset(wanted.extras)))
    return {name for name, _ in found}


def of_the_tests_alone() -> list[str]:
    """Return the modules of this environment that a user would not have."""
    ours = installed_with_amicrawl()
    return sorted(
        module
        for module, owners in packages_distributions().items()
        if not {canonicalize_name(owner) for owner in owners} & ours
        and not module.startswith(("_", "pip", "uv"))
    )


def imported_modules() -> Iterator[tuple[str, Path]]:
    for path in (PROJECT / "amicrawl").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from ((alias.name.partition(".")[0], path) for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield node.module.partition(".")[0], path


def test_every_import_is_of_something_that_is_required() -> None:
    # What Scrapy requires is Scrapy's to choose: whoever extends it uses what it uses.
    allowed = required_by("amicrawl") | required_by("scrapy")
    owners = packages_distributions()
    seen = 0
    for module, path in imported_modules():
        if module in sys.stdlib_module_names or module == "amicrawl":
            continue
        seen += 1
        # What an extra requires may not be here: its modules are called as it is.
        of = {canonicalize_name(owner) for owner in owners.get(module, [module])}
        assert of & allowed, f"{module} in {path}"
    assert seen > 10


NOT_IMPORTED = {
    "warcio",  # a command, and a second reader in the tests (docs/decisions/0025)
    "opf-fido",  # signature files, found by their place
    "pycld2",  # these three by a name in a call
    "python-magic",
    "chardetng-py",
    "python-multipart",  # Starlette's, for forms
}


def test_everything_that_is_required_is_used() -> None:
    owners = packages_distributions()
    imported = {
        canonicalize_name(owner)
        for module, _ in imported_modules()
        for owner in owners.get(module, [module])
    }
    assert required_by("amicrawl") - imported == NOT_IMPORTED


def test_the_documentation_says_what_each_dependency_is_for() -> None:
    page = (PROJECT / "docs" / "installation.md").read_text()
    table = page.partition("## What each dependency is for")[2].partition("\n## ")[0]
    named = re.findall(r"^\| ([a-z][a-z0-9, -]*) \|", table, re.MULTILINE)
    listed = {name for names in named for name in names.split(", ")}
    declared = [Requirement(line) for line in distribution("amicrawl").requires or []]
    assert listed == {
        canonicalize_name(each.name) for each in declared if "extra" not in str(each.marker or "")
    }


@pytest.fixture
def alone(tmp_path: Path) -> dict[str, str]:
    """Environment variables under which Python finds only what a user has installed."""
    hidden = of_the_tests_alone()
    assert {"pytest", "hypothesis", "pandas"} <= set(hidden)
    (tmp_path / "sitecustomize.py").write_text(HIDE)
    return os.environ | {"PYTHONPATH": str(tmp_path), "HIDDEN_MODULES": " ".join(hidden)}


def test_a_crawl_and_a_look_at_it_need_nothing_else(tmp_path: Path, alone: dict[str, str]) -> None:
    out = tmp_path / "out"
    with DemoSite(pause=0.0) as site:
        seeds = site.seeds(tmp_path / "seeds.jsonl")
        crawl = [str(COMMANDS / "scrapy"), "crawl", "seeds", "-a", f"file={seeds}", "-a", f"out={out}"]
        fast = ["-s", "AMICRAWL_ALLOW_PRIVATE=127.0.0.0/8", "-s", "AMICRAWL_DELAY=0"]
        done = subprocess.run(
            [*crawl, *fast], cwd=PROJECT, env=alone, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        address = site.url
    look = [str(COMMANDS / "amicrawl"), "inspect", str(out), "-n", "100"]
    shown = subprocess.run(look, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
    assert shown.returncode == 0, shown.stderr
    assert f"{address}guest-book.html" in shown.stdout
    frame = f"import amicrawl; amicrawl.open({str(out)!r}).to_pandas()"
    asked = subprocess.run(
        [sys.executable, "-c", frame], env=alone, capture_output=True, text=True, check=False
    )
    assert "Run: pip install 'amicrawl[dataframes]', or use to_arrow()." in asked.stderr
