"""The documentation uses the field's terms, and the glossary leads to what it names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
PAGES = [PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *sorted((PROJECT / "docs").glob("*.md"))]
RIDDLES = {
    "somebody": "a user, a client, another process",
    "nobody": "no user, no process",
    "whoever": "any client that, the user who",
    "whom": "which, or another sentence",
    "told": "given, reported, notified, distinguished",
    "mend(ed|s|ing)?": "fix, repair, correct",
    "gone on with": "resumed",
    "by whose": "whose",
    "apart by blanks": "space-separated",
    "not promised": "limitations",
    "(?<!there )(is|are|was|were) no (?!longer|more|other|need|such)": "is not a, are not",
    "errand|keepsake": "job specification, shared callback state",
    "(lies|stands) (in|beside|there)": "is in, is beside",
    "heard of": "known, received",
    "must be a text": "must be a string",
    "in the making": "what it is",
}
"""What a reader would have to guess, as a regular expression, and what to write."""
ASKS = re.compile(r"(?<![a-z])(?:un)?(?:ask|answer)(?:s|ed|ing)?(?![a-z])", re.IGNORECASE)
"""A URL is requested and a server responds: these are words for what people and formats do."""
WHERE_SOMEBODY_ASKS = {
    "the arguments of a crawl, which `crawl.json` calls `asked`": """
        archive/report/crawl_page.py cli/explain.py cli/frontier/damage.py cli/replay.py cli/report.py
        crawl/opening.py crawl/output.py crawl/processes/__init__.py
        crawl/processes/dealing.py crawl/run.py crawl/seedlist.py crawl/spec.py
        crawl/watching/progress.py crawl/watching/screen.py fleet/dashboard/watching.py
        listing/crawl_json.py
        spiders/queue.py spiders/recrawl.py spiders/seeds.py spiders/site.py
    """,
    "a user asks a job, a crawl or a pipeline to stop or to go on": """
        cli/job/__init__.py cli/job/listing.py cli/pipeline.py crawl/extensions.py crawl/state.py
        fleet/dashboard/api_changing.py fleet/dashboard/serving.py fleet/dashboard/shapes.py
        fleet/jobs/attempt.py fleet/jobs/ending.py fleet/jobs/pipeline.py
        fleet/jobs/pipeline_record.py fleet/jobs/record.py fleet/jobs/verbs.py
    """,
    "a command asks its user, who asks a table": """
        archive/table/query.py cli/dashboard.py cli/query.py uploads/rsync.py
    """,
    "a name in a file or a statistic of earlier versions": """
        crawl/policy.py crawl/robots.py fleet/spark/bucket_objects.py politeness/robots_policy.py
    """,
}
"""Why, and in which modules of the package."""
ROOMS = sorted(path for path in (PROJECT / "amicrawl").iterdir() if list(path.glob("*.py")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_says_it_in_the_fields_words(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "``", page.read_text())
    found = [
        f"line {text.count(chr(10), 0, match.start()) + 1}: {match[0]!r}; write: {instead}"
        for word, instead in RIDDLES.items()
        for match in re.finditer(rf"\b{word}\b", text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("room", ROOMS, ids=lambda room: room.name)
def test_a_room_says_it_in_the_fields_words(room: Path) -> None:
    found = [
        f"{path.relative_to(PROJECT)}:{number}: {match[0]!r}; write: {instead}"
        for path in sorted(room.rglob("*.py"))
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for word, instead in RIDDLES.items()
        for match in re.finditer(rf"\b{word}\b", line, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_only_people_ask_and_answer() -> None:
    package = PROJECT / "amicrawl"
    found = {
        str(path.relative_to(package)) for path in package.rglob("*.py") if ASKS.search(path.read_text())
    }
    assert found == {name for names in WHERE_SOMEBODY_ASKS.values() for name in names.split()}


def test_a_test_says_that_urls_are_requested_and_servers_respond() -> None:
    found = [
        f"{path.relative_to(PROJECT)}: {name}"
        for path in sorted((PROJECT / "tests").rglob("test_*.py"))
        if "site-packages" not in path.parts
        for name in re.findall(r"def (test_\w+)\(", path.read_text())
        if ASKS.search(name)
    ]
    # A job is asked to end, and a dialog asks first.
    assert len(found) <= 5, "\n".join(found)


def test_the_places_that_the_glossary_names_are_there() -> None:
    places = re.findall(
        r"`([a-z_0-9]+(?:/[a-z_0-9.]*)+)`", (PROJECT / "docs" / "glossary.md").read_text()
    )
    assert len(places) > 40
    assert not [place for place in places if not (PROJECT / "amicrawl" / place).exists()]


def test_modules_that_comments_and_docstrings_name_are_there() -> None:
    modules = sorted((PROJECT / "amicrawl").rglob("*.py"))
    places = {f"/{path.relative_to(PROJECT)}" for path in modules}
    named = [
        (path.relative_to(PROJECT), name)
        for path in modules
        for name in re.findall(r"`([a-z_0-9/]+\.py)`", path.read_text())
    ]
    assert len(named) > 40
    assert not [
        f"{path}: {name}"
        for path, name in named
        if not any(place.endswith(f"/{name}") for place in places)
    ]


def test_a_term_is_explained_once() -> None:
    lines = (PROJECT / "docs" / "glossary.md").read_text().splitlines()
    terms = [
        term.strip()
        for line in lines
        if line.startswith("| ") and not line.startswith("| Term")
        for term in line.split("|")[1].split(",")
    ]
    assert len(terms) == len(set(terms)) > 60
