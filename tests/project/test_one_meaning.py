"""A name of a class stands for one thing in the whole package, with few exceptions."""

from __future__ import annotations

import ast
from collections import Counter
from pathlib import Path

import amicrawl

SHARED = frozenset({
    # Scrapy finds commands by this name.
    "Command",
    # The shapes of the API are called as what they show.
    *("DeadLetter", "Pipeline", "Queue", "Submitted"),
    # A record is read, or written: as the WARC standard calls both.
    "Record",
    # What Python users hold, beside what the crawl is made of.
    *("Archive", "Capture", "Crawl", "Headers"),
})  # fmt: skip
"""Names of several classes."""


def test_a_class_name_stands_for_one_class() -> None:
    names = Counter(
        node.name.lstrip("_")
        for path in Path(amicrawl.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    )
    assert {name for name, count in names.items() if count > 1} == SHARED
