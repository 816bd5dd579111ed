"""What sites say where there is no such page, and what they say otherwise, in fourteen languages.

All of it was written for this (`wordings.json`). Of each list every third wording can be kept from the
training, so that what a model is worth is measured on sentences that it has not seen.
"""

from __future__ import annotations

import json
from importlib.resources import files
from typing import NamedTuple


class Wordings(NamedTuple):
    """The wordings of one language."""

    titles: tuple[str, ...]
    """Of pages that are not there."""
    messages: tuple[str, ...]
    """What such pages say."""
    menu: tuple[str, ...]
    """Words that any page of a site has around it."""
    subjects: tuple[str, ...]
    """Titles of pages that are there."""
    prose: tuple[str, ...]
    """Sentences of pages that are there."""
    short: tuple[str, ...]
    """What pages say that are there and say little."""
    common: tuple[str, ...]
    """Words that any text has, for and against nothing."""
    missed: tuple[str, ...]
    """What can be missing."""
    fates: tuple[str, ...]
    """What has become of it."""


def _wordings() -> dict[str, Wordings]:
    text = (files("benchmarks.soft404") / "wordings.json").read_text("utf-8")
    found: dict[str, dict[str, list[str]]] = json.loads(text)
    return {
        language: Wordings(**{kind: tuple(each) for kind, each in lists.items()})
        for language, lists in found.items()
    }


WORDINGS = _wordings()
"""The wordings by language, as ISO 639-1 has it."""
