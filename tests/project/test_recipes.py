"""What a recipe names is there, and one change touches few modules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
_SECTION = re.search(
    r"^## Recipes\n(.*?)^## ", (PROJECT / "CONTRIBUTING.md").read_text(), re.DOTALL | re.MULTILINE
)
assert _SECTION is not None
RECIPES = dict(re.findall(r"^\*\*(.+?)\.\*\* (.*?)\n\n", _SECTION[1] + "\n", re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=RECIPES.keys())
def test_a_recipe_names_at_most_five_modules_and_all_of_them_are_there(recipe: str) -> None:
    modules = set(re.findall(r"`(amicrawl/[\w/]+\.py)`", recipe))
    assert len(modules) <= 5
    assert [module for module in modules if not (PROJECT / module).is_file()] == []


def test_what_is_changed_most_has_a_recipe() -> None:
    wanted = {"A setting", "A setting of a job", "A live setting of a job", "A verb of jobs"}
    wanted |= {
        "A column of `captures.parquet`",
        "A digest",
        "A seed format",
        "A source of links",
        "A command",
    }
    assert wanted <= RECIPES.keys()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("amicrawl/config.py", "CrawlConfig"),
        ("amicrawl/crawlfile/keys.py", "_SETTINGS"),
        ("amicrawl/fleet/jobs/job_settings.py", "SETTINGS"),
        ("amicrawl/fleet/jobs/job_settings.py", "JobSetting"),
        ("amicrawl/fleet/dashboard/api.py", "_OPERATIONS"),
        ("amicrawl/cli/commands.py", "_BY_GROUP"),
        ("amicrawl/cli/job/__init__.py", "_VERBS"),
        ("amicrawl/record/captures.py", "COLUMNS"),
        ("amicrawl/record/captures.py", "CaptureItem"),
        ("amicrawl/record/captures.py", "row_of"),
        ("amicrawl/seed/formats.py", "SeedFormat"),
        ("amicrawl/seed/formats.py", "LIST_ENDINGS"),
        ("amicrawl/seed/reader.py", "_seeds"),
        ("amicrawl/discovery/markup.py", "_ADDRESSES"),
        ("amicrawl/discovery/markup.py", "_NAMES"),
        ("amicrawl/crawl/in_force.py", "Layer"),
        ("amicrawl/record/deduplication.py", "Digests"),
    ],
)
def test_the_names_in_the_recipes_are_in_their_modules(module: str, name: str) -> None:
    assert re.search(rf"^(def |class )?{name}\b", (PROJECT / module).read_text(), re.MULTILINE)
